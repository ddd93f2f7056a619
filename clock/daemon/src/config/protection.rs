//! How the conversations with servers are protected.

use super::{Config, ServerConfig};
use ffclock_service::{FilePath, Switchable, Unrecognised, words};
use ffclock_units::OptionValue;
use std::fmt;
use std::str::FromStr;

ffclock_units::options! {
    /// What protects the conversation with a server.
    pub struct ServerProtection {
        /// Whether packets are authenticated by NTS (RFC 8915). Keys are established with the host `address`, whose
        /// certificate must be valid for that name.
        nts: bool = false;
        /// The TCP port for establishing keys.
        nts_port: u16 = 4460, 1 => u16::MAX;
        /// A file of certificates in PEM. Only these are trusted, in place of those of the system, to vouch for the
        /// server.
        nts_ca: Switchable<FilePath> = Switchable::Off;
        /// The number of the symmetric key, in the file that `keys` names, that authenticates packets: AES128 or
        /// SHA256.
        key: KeyChoice = KeyChoice(None);
    }
}

ffclock_units::options! {
    /// What protects the vote.
    pub struct ProtectionConfig {
        /// Who may vote. With `"nts"` only servers that are authenticated by NTS, with `"authenticated"` those with a
        /// symmetric key as well. The others are asked and shown, as with `no_select`.
        require: Requirement = Requirement::Nothing;
    }
}

/// The number of a symmetric key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyChoice(pub Option<u32>);

impl FromStr for KeyChoice {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        match text {
            "off" => Ok(KeyChoice(None)),
            number => number
                .parse()
                .ok()
                .filter(|number| *number > 0)
                .map(|number| KeyChoice(Some(number)))
                .ok_or(Unrecognised),
        }
    }
}

impl fmt::Display for KeyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(number) => write!(f, "{number}"),
            None => f.write_str("off"),
        }
    }
}

impl OptionValue for KeyChoice {
    const KIND: &'static str = "the number of a key, or \"off\"";
}

/// What a server must have to vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// No authentication.
    Nothing,
    /// NTS or a symmetric key.
    Authenticated,
    /// NTS.
    Nts,
}

words!(Requirement { Nothing: "nothing", Authenticated: "authenticated", Nts: "nts" });

/// Which clock says whether a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NtsBootstrap {
    /// The system clock; keys are not established while it was clearly never set.
    Refuse,
    /// The clock that is published, once servers without NTS make a quorum.
    Quorum,
}

words!(NtsBootstrap { Refuse: "refuse", Quorum: "quorum" });

impl Requirement {
    fn is_met(self, server: &ServerProtection) -> bool {
        match self {
            Requirement::Nothing => true,
            Requirement::Authenticated => server.nts || server.key.0.is_some(),
            Requirement::Nts => server.nts,
        }
    }
}

/// Takes the vote from the servers that lack what is required. Every packet of the others is authenticated, so nothing
/// is left to decide later.
pub(super) fn apply(config: &mut Config) {
    let require = config.protection.require;
    for server in config.servers.iter_mut().filter(|server| !require.is_met(&server.protection)) {
        server.vote.no_select = true;
    }
}

/// What cannot work, with the key that it is about.
pub(super) fn contradictions(config: &Config) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let require = config.protection.require;
    if !config.servers.is_empty() && !config.servers.iter().any(|server| require.is_met(&server.protection)) {
        found.push(("require", format!("require = \"{require}\": no server has it, so none could vote")));
    }
    if config.daemon.keys.value().is_none() && config.servers.iter().any(|server| server.protection.key.0.is_some()) {
        found.push(("server", "a server has a key, and `keys` names no file with it".to_owned()));
    }
    let makes_quorum = |server: &ServerConfig| !server.protection.nts && !server.vote.no_select;
    let waits = config.daemon.nts_bootstrap == NtsBootstrap::Quorum;
    if waits && !config.servers.is_empty() && !config.servers.iter().any(makes_quorum) {
        let message = "nts_bootstrap = \"quorum\" needs servers with a vote that have no NTS: there is none";
        found.push(("nts_bootstrap", message.to_owned()));
    }
    found
}

/// What is wrong with the protection of one server.
pub(super) fn contradiction(server: &ServerConfig) -> Option<String> {
    let ServerProtection { nts, key, .. } = &server.protection;
    let message = match (nts, key.0, server.pool.pool.is_unset()) {
        (true, Some(_), _) => "nts and key contradict each other: one of them authenticates a packet",
        (true, None, false) => "nts and pool contradict each other: keys are established with a server of its own name",
        _ => return None,
    };
    Some(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        problem.message.clone()
    }

    #[test]
    fn servers_without_what_is_required_have_no_vote() {
        let text = "keys = \"/etc/ffclock/keys\"\n[[server]]\naddress = \"a.example\"\nnts = true\n\
            [[server]]\naddress = \"b.example\"\nkey = 7\n[[server]]\naddress = \"c.example\"\n";
        let votes = |require: &str| {
            let config = Config::parse(&format!("require = \"{require}\"\n{text}")).unwrap();
            config.servers.iter().map(|server| !server.vote.no_select).collect::<Vec<_>>()
        };
        assert_eq!(votes("nothing"), [true, true, true]);
        assert_eq!(votes("authenticated"), [true, true, false]);
        assert_eq!(votes("nts"), [true, false, false]);
        let config = Config::parse(text).unwrap();
        assert_eq!(config.servers[0].protection.nts_port, 4460);
        assert_eq!(config.servers[1].protection.key, KeyChoice(Some(7)));
    }

    #[test]
    fn what_cannot_work_is_named() {
        let server = "[[server]]\naddress = \"a.example\"\n";
        assert!(problem(&format!("require = \"nts\"\n{server}")).contains("none could vote"));
        assert!(problem(&format!("{server}key = 7\n")).contains("`keys` names no file"));
        assert!(problem(&format!("keys = \"/k\"\n{server}key = 7\nnts = true\n")).contains("contradict"));
        assert!(problem(&format!("nts_bootstrap = \"quorum\"\n{server}nts = true\n")).contains("have no NTS"));
        assert!(problem(&format!("keys = \"/k\"\n{server}key = 0\n")).contains("number of a key"));
        assert!(problem(&format!("require = \"tls\"\n{server}")).contains("\"authenticated\""));
    }
}
