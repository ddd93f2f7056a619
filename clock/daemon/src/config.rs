//! The configuration: TOML text in; a [`Config`], or a list of all its problems, out.
//!
//! Each option is declared once, in the crate that uses it (`ffclock_units::options!`). Here a TOML table only finds
//! the struct that knows the key. An unknown key is an error.

mod estimator;
mod values;
mod vote;

pub use estimator::{EstimatorConfig, Which};
pub use values::{
    CounterChoice, FilePath, HostAsymmetry, HostName, KernelClockUse, LoopbackAddress, StampChoice, Switchable,
    Unrecognised,
};
pub use vote::{PublishedBound, Quorum, ServerVote, Tolerance, VoteConfig};

use ffclock_source::SourceConfig;
use ffclock_sys::places;
use ffclock_units::{OptionDoc, OptionError, Span};
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

ffclock_units::options! {
    /// Options of the daemon as a whole.
    pub struct DaemonConfig {
        /// The counter to keep time with. `auto` takes the CPU's counter where it can be trusted, otherwise the
        /// kernel's raw clock. On FreeBSD there are `tsc` and the kernel's own, `module:active`.
        counter: CounterChoice = CounterChoice(ffclock_counter::Choice::Auto);
        /// Where packets are stamped: in user space, by the kernel through the socket, or, in addition to that, by the
        /// raw counter at the boundary to the driver. `trace` uses the kernel's tracepoints and needs tracefs; `module`
        /// needs the kernel module ffcounter.
        stamps: StampChoice = StampChoice::Kernel;
        /// This host's own delays: with `calibrated`, those that `ffclock-lab probe calibrate` measured are taken off
        /// the stamps.
        asymmetry: HostAsymmetry = HostAsymmetry::Unknown;
        /// The file in which `ffclock-lab probe calibrate` keeps what it measured.
        calibration: FilePath = FilePath::fixed(places::CALIBRATION);
        /// What to do with the feed-forward clock that FreeBSD's kernel can keep (`options FFCLOCK`): with `drive`, it
        /// is handed the published estimate every 16 s. The counter must be the kernel's own then, `module:active`,
        /// which `auto` chooses.
        kernel_clock: KernelClockUse = KernelClockUse::Leave;
        /// The page of shared memory that readers map.
        page: FilePath = FilePath::fixed(places::PAGE);
        /// The control socket.
        control: Switchable<FilePath> = Switchable::On(FilePath::fixed(places::CONTROL));
        /// The directory in which the rate of the counter is remembered across restarts.
        state: Switchable<FilePath> = Switchable::On(FilePath::fixed(places::STATE));
        /// A directory for recorded exchanges, one trace file for each server and start.
        record: Switchable<FilePath> = Switchable::Off;
        /// Where to serve metrics (OpenMetrics text over HTTP). Only loopback addresses are accepted.
        metrics: Switchable<LoopbackAddress> = Switchable::Off;
        /// How long a published estimate may be believed without a sign of life from the daemon.
        valid_for: Span = Span::from_secs(64), Span::from_secs(2) => Span::from_secs(86_400);
    }
}

ffclock_units::options! {
    /// The address of a server.
    pub struct ServerAddress {
        /// The server's name or address. A name is looked up again when the server stops answering.
        address: HostName = HostName::unset();
        /// The server's UDP port.
        port: u16 = 123, 1 => u16::MAX;
    }
}

impl ServerAddress {
    /// Whether both certainly mean the same server: an address can be written in several ways, and a name in either
    /// case.
    fn is_same_as(&self, other: &ServerAddress) -> bool {
        let literal = |address: &ServerAddress| address.address.as_str().parse::<std::net::IpAddr>().ok();
        let same = match (literal(self), literal(other)) {
            (Some(one), Some(another)) => one == another,
            _ => self.address.as_str().eq_ignore_ascii_case(other.address.as_str()),
        };
        same && self.port == other.port && !self.address.is_unset()
    }
}

impl fmt::Display for ServerAddress {
    /// The address as configured, with the port where it is not the usual one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, port) = (self.address.as_str(), self.port);
        match (port == ServerAddress::default().port, address.contains(':')) {
            (true, _) => f.write_str(address),
            (false, true) => write!(f, "[{address}]:{port}"),
            (false, false) => write!(f, "{address}:{port}"),
        }
    }
}

/// One configured server: where it is, how to talk to it, how to judge it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Address and port.
    pub address: ServerAddress,
    /// Its part in the vote.
    pub vote: ServerVote,
    /// Options of the conversation with it.
    pub source: SourceConfig,
    /// Options of its estimator.
    pub estimator: EstimatorConfig,
}

/// The whole configuration.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Config {
    /// Options of the daemon as a whole.
    pub daemon: DaemonConfig,
    /// How the servers vote.
    pub vote: VoteConfig,
    /// The servers, in the order in which they stand in the file.
    pub servers: Vec<ServerConfig>,
}

/// One problem, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, counted from one.
    pub line: usize,
    /// The problem, in words.
    pub message: String,
}

/// Everything that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// All problems, in the order of the file.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}line {}: {}", problem.line, problem.message)?;
        }
        Ok(())
    }
}

/// The most servers: each has a socket and up to 1 MiB of history.
pub const MOST_SERVERS: usize = 16;
/// The most problems that are reported: a longer list helps no one.
pub const MOST_PROBLEMS: usize = 20;
/// A configuration longer than this is refused unread.
pub const LONGEST_TEXT: usize = 1 << 20;

impl Config {
    /// Sets a key at the top of the file in the struct that knows it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.daemon.set(name, text) {
            Err(OptionError::Unknown) => self.vote.set(name, text),
            known => known,
        }
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// All problems found, each with its line.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let mut reader = Reader { text, problems: Vec::new() };
        let config = reader.config();
        match config {
            Some(config) if reader.problems.is_empty() => Ok(config),
            _ => {
                reader.problems.sort_by_key(|problem| problem.line);
                Err(ConfigError { problems: reader.problems })
            }
        }
    }
}

/// Shows every option with the section it belongs to: "" for the top, "source" and "estimator" for defaults of all
/// servers and keys of a `[[server]]`, "server" for keys of a `[[server]]` alone.
pub fn describe_all(visit: &mut dyn FnMut(&str, OptionDoc<'_>)) {
    DaemonConfig::describe(&mut |doc| visit("", doc));
    VoteConfig::describe(&mut |doc| visit("", doc));
    ServerAddress::describe(&mut |doc| visit("server", doc));
    ServerVote::describe(&mut |doc| visit("server", doc));
    SourceConfig::describe(&mut |doc| visit("source", doc));
    EstimatorConfig::describe(&mut |doc| visit("estimator", doc));
}

type Table<'t> = DeTable<'t>;
type Value<'t> = Spanned<DeValue<'t>>;

struct Reader<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> Reader<'t> {
    fn config(&mut self) -> Option<Config> {
        if self.text.len() > LONGEST_TEXT {
            self.problem(0, "the configuration is longer than 1 MiB".to_owned());
            return None;
        }
        let table = match DeTable::parse(self.text) {
            Ok(table) => table.into_inner(),
            Err(error) => {
                let place = error.span().unwrap_or_default();
                let named = self.text.get(place.clone()).unwrap_or_default();
                self.problem(place.start, clearer(error.message(), named));
                return None;
            }
        };
        let mut config = Config::default();
        let source = self.defaults(&table, "source", SourceConfig::default(), SourceConfig::set);
        let estimator = self.defaults(&table, "estimator", EstimatorConfig::default(), EstimatorConfig::set);
        for (key, value) in &table {
            match key.get_ref().as_ref() {
                "source" | "estimator" => {}
                "server" => config.servers = self.servers(value, &source, &estimator),
                name => self.apply(key.span().start, name, value, &mut |name, text| config.set(name, text)),
            }
        }
        self.check_whole(&table, &config);
        Some(config)
    }

    fn check_whole(&mut self, table: &Table<'_>, config: &Config) {
        if !self.problems.is_empty() {
            return;
        }
        if config.servers.is_empty() {
            self.problem(0, "no [[server]] is configured".to_owned());
        }
        for (name, message) in vote::contradictions(config) {
            let key = table.keys().find(|key| key.get_ref().as_ref() == name);
            self.problem(key.map_or(0, |key| key.span().start), message);
        }
    }

    fn defaults<C>(
        &mut self,
        table: &Table<'_>,
        section: &str,
        mut config: C,
        set: fn(&mut C, &str, &str) -> Result<(), OptionError>,
    ) -> C {
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref().as_ref() == section) else {
            return config;
        };
        match value.get_ref() {
            DeValue::Table(entries) => {
                for (key, value) in entries {
                    self.apply(key.span().start, key.get_ref(), value, &mut |name, text| set(&mut config, name, text));
                }
            }
            // `estimator = "classic"` alone needs no table.
            DeValue::String(_) if section == "estimator" => {
                self.apply(key.span().start, section, value, &mut |name, text| set(&mut config, name, text));
            }
            _ => self.problem(value.span().start, format!("{section} must be a table: [{section}]")),
        }
        config
    }

    fn servers(&mut self, value: &Value<'_>, source: &SourceConfig, estimator: &EstimatorConfig) -> Vec<ServerConfig> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.problem(value.span().start, "servers are written as [[server]]".to_owned());
            return Vec::new();
        };
        let mut servers: Vec<ServerConfig> = Vec::new();
        for entry in entries {
            if servers.len() == MOST_SERVERS {
                self.problem(entry.span().start, format!("more than {MOST_SERVERS} servers"));
                break;
            }
            let Some(server) = self.server(entry, source, estimator) else { continue };
            if servers.iter().any(|other| other.address.is_same_as(&server.address)) {
                self.problem(entry.span().start, format!("the server {} is configured twice", server.address));
            }
            if let Some(message) = vote::contradiction(&server) {
                self.problem(entry.span().start, message);
            }
            servers.push(server);
        }
        servers
    }

    fn server(
        &mut self,
        entry: &Value<'_>,
        source: &SourceConfig,
        estimator: &EstimatorConfig,
    ) -> Option<ServerConfig> {
        let DeValue::Table(entries) = entry.get_ref() else {
            self.problem(entry.span().start, "servers are written as [[server]]".to_owned());
            return None;
        };
        let mut server = ServerConfig {
            address: ServerAddress::default(),
            vote: ServerVote::default(),
            source: source.clone(),
            estimator: estimator.clone(),
        };
        for (key, value) in entries {
            self.apply(key.span().start, key.get_ref(), value, &mut |name, text| server.set(name, text));
        }
        if server.address.address.is_unset() {
            self.problem(entry.span().start, "the server has no address".to_owned());
        }
        Some(server)
    }

    fn apply(
        &mut self,
        at: usize,
        name: &str,
        value: &Value<'_>,
        set: &mut dyn FnMut(&str, &str) -> Result<(), OptionError>,
    ) {
        let Some(text) = scalar_text(value.get_ref()) else {
            self.problem(at, format!("{}: a single value is expected", excerpt(name)));
            return;
        };
        if let Err(error) = set(name, &text) {
            let message = match error {
                OptionError::Unknown => format!("unknown key `{}`", excerpt(name)),
                _ => format!("{name} = \"{}\": {error}", excerpt(&text)),
            };
            self.problem(at, message);
        }
    }

    fn problem(&mut self, at: usize, message: String) {
        if self.problems.len() == MOST_PROBLEMS {
            return;
        }
        let line = 1 + self.text.bytes().take(at).filter(|&byte| byte == b'\n').count();
        self.problems.push(Problem { line, message });
    }
}

impl ServerConfig {
    /// Sets a key of a `[[server]]` table in the struct that knows it.
    fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.address.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.vote.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.source.set(name, text) {
            Err(OptionError::Unknown) => self.estimator.set(name, text),
            known => known,
        }
    }
}

/// The library's complaint about the text `named`; a duplicate key is reported with its name and a remedy, since the
/// library gives neither.
fn clearer(message: &str, named: &str) -> String {
    if message != "duplicate key" {
        return message.to_owned();
    }
    let remedy = match named.trim() {
        "estimator" => {
            "in a table [estimator] the algorithm is named too: write the line `estimator = ...` below its heading"
        }
        _ => "keep one of the two",
    };
    format!("the key `{}` is there twice: {remedy}", excerpt(named.trim()))
}

/// The beginning of a text from a file, safe to display.
fn excerpt(text: &str) -> String {
    let shown: String = text.chars().take(40).collect();
    shown.escape_default().to_string()
}

/// A TOML scalar as an option's text form.
fn scalar_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(truth) => Some(truth.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_estimator::Algorithm;

    const SMALL: &str = "[[server]]\naddress = \"192.0.2.1\"\n";

    fn problems(text: &str) -> Vec<(usize, String)> {
        let error = Config::parse(text).unwrap_err();
        error.problems.into_iter().map(|problem| (problem.line, problem.message)).collect()
    }

    #[test]
    fn the_smallest_configuration_is_one_server() {
        let config = Config::parse(SMALL).unwrap();
        assert_eq!(config.servers.len(), 1);
        assert_eq!(config.servers[0].address.address.as_str(), "192.0.2.1");
        assert_eq!(config.servers[0].address.port, 123);
        assert_eq!(config.daemon, DaemonConfig::default());
    }

    #[test]
    fn sections_give_defaults_and_a_server_overrides_them() {
        let text = "[source]\npoll = \"4 s\"\n[estimator]\nasymmetry = \"3 us\"\n\
                    [[server]]\naddress = \"a.example\"\n[[server]]\naddress = \"b.example\"\npoll = \"8 s\"\nasymmetry = \"-5 us\"\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.servers[0].source.poll, Span::from_secs(4));
        assert_eq!(config.servers[0].estimator.options.asymmetry, Span::from_micros(3));
        assert_eq!(config.servers[1].source.poll, Span::from_secs(8));
        assert_eq!(config.servers[1].estimator.options.asymmetry, Span::from_micros(-5));
    }

    #[test]
    fn the_learned_estimator_is_taken_unless_another_is_named() {
        let which = |text: &str| {
            let config = Config::parse(text).unwrap();
            config.servers.iter().map(|server| server.estimator.which.estimator).collect::<Vec<_>>()
        };
        let two = format!("{SMALL}[[server]]\naddress = \"192.0.2.2\"\nestimator = \"classic\"\n");
        assert_eq!(which(&two), [Algorithm::Learned, Algorithm::Classic]);
        let globally = "estimator = \"classic\"\n".to_owned() + &two;
        assert_eq!(which(&globally), [Algorithm::Classic, Algorithm::Classic]);
        let table = "[estimator]\nestimator = \"classic\"\nwander = \"1 ppm\"\n".to_owned() + SMALL;
        assert_eq!(which(&table), [Algorithm::Classic]);
        assert_eq!(Config::parse(&table).unwrap().servers[0].estimator.options.wander.as_ppm(), 1.0);
        assert!(problems(&format!("estimator = \"chrony\"\n{SMALL}"))[0].1.contains("\"classic\" or \"learned\""));
        assert!(problems(&format!("estimator = 3\n{SMALL}"))[0].1.contains("must be a table"));
    }

    #[test]
    fn parts_of_the_learned_estimator_are_left_out_in_the_laboratory_only() {
        for part in ["cycles", "reinitialisation"] {
            let (line, message) = problems(&format!("[estimator]\n{part} = false\n{SMALL}")).remove(0);
            assert_eq!(line, 2);
            assert!(
                message.starts_with(&format!("{part} = \"false\": ")) && message.contains("--without"),
                "{message}"
            );
        }
        describe_all(&mut |section, doc| assert_ne!((section, doc.name), ("estimator", "cycles")));
    }

    #[test]
    fn every_problem_is_named_with_its_line() {
        let found = problems("pagee = \"/x\"\nstamps = \"moon\"\n[[server]]\naddress = \"a b\"\npoll = 16\n");
        assert_eq!(found[0], (1, "unknown key `pagee`".to_owned()));
        assert_eq!(found[1].0, 2);
        assert!(found[1].1.contains("\"kernel\", \"user\""), "{found:?}");
        assert!(found.iter().any(|(line, text)| *line == 4 && text.contains("host name")), "{found:?}");
        assert!(found.iter().any(|(line, text)| *line == 5 && text.contains("span with its unit")), "{found:?}");
    }

    #[test]
    fn what_is_not_toml_or_not_a_clock_is_refused() {
        assert!(problems("[[server]\n")[0].0 >= 1);
        assert!(problems("")[0].1.contains("no [[server]]"));
        assert!(problems("server = 3\n")[0].1.contains("[[server]]"));
        assert!(problems("[[server]]\nport = 123\n")[0].1.contains("no address"));
        assert!(problems(&format!("metrics = \"192.0.2.1:80\"\n{SMALL}"))[0].1.contains("loopback"));
        let many: String = (0..=MOST_SERVERS).map(|n| format!("[[server]]\naddress = \"s{n}.example\"\n")).collect();
        assert_eq!(problems(&many), [(2 * MOST_SERVERS + 1, "more than 16 servers".to_owned())]);
        assert!(problems(&" ".repeat(LONGEST_TEXT + 1))[0].1.contains("1 MiB"));
    }

    #[test]
    fn a_key_that_is_there_twice_is_named_with_its_remedy() {
        let [twice] = &problems(&format!("valid_for = \"8 s\"\n{SMALL}port = 1\nport = 2\n"))[..] else { panic!() };
        assert_eq!(*twice, (5, "the key `port` is there twice: keep one of the two".to_owned()));
        let both = format!("estimator = \"classic\"\n\n[estimator]\nasymmetry = \"3 us\"\n{SMALL}");
        let [both] = &problems(&both)[..] else { panic!() };
        assert_eq!(both.0, 3);
        assert!(both.1.starts_with("the key `estimator` is there twice: "), "{}", both.1);
        assert!(both.1.contains("write the line `estimator = ...` below its heading"), "{}", both.1);
        let [table] = &problems(&format!("{SMALL}[source]\npoll = \"4 s\"\n[source]\n"))[..] else { panic!() };
        assert_eq!(*table, (5, "the key `source` is there twice: keep one of the two".to_owned()));
    }

    #[test]
    fn a_server_that_is_configured_twice_is_a_mistake() {
        for (one, another) in
            [("192.0.2.1", "192.0.2.1"), ("ntp.example", "NTP.example"), ("2001:db8::1", "2001:db8:0::1")]
        {
            let text = format!("[[server]]\naddress = \"{one}\"\n[[server]]\naddress = \"{another}\"\n");
            assert_eq!(problems(&text), [(3, format!("the server {another} is configured twice"))]);
            let other_port = Config::parse(&format!("{text}port = 1123\n")).unwrap();
            assert_eq!(other_port.servers.len(), 2);
        }
    }

    #[test]
    fn a_server_is_called_as_it_is_configured() {
        let named = |address: &str, port| ServerAddress { address: address.parse().unwrap(), port }.to_string();
        assert_eq!(named("ntp.example", 123), "ntp.example");
        assert_eq!(named("ntp.example", 1123), "ntp.example:1123");
        assert_eq!(named("::1", 123), "::1");
        assert_eq!(named("::1", 1123), "[::1]:1123");
    }

    #[test]
    fn a_file_full_of_mistakes_gets_a_short_answer() {
        let long = "k".repeat(100_000);
        let text: String = (0..1000).map(|n| format!("{long}{n} = 1\n")).take(9).collect::<String>()
            + &(0..1000).map(|n| format!("k{n} = 1\n")).collect::<String>();
        let error = Config::parse(&text).unwrap_err();
        assert_eq!(error.problems.len(), MOST_PROBLEMS);
        assert!(error.to_string().len() < 4000, "{}", error.to_string().len());
    }

    #[test]
    fn every_option_is_described() {
        let mut names = Vec::new();
        describe_all(&mut |section, doc| names.push(format!("{section}/{}", doc.name)));
        for expected in ["/counter", "server/address", "source/poll", "estimator/estimator", "estimator/asymmetry"] {
            assert!(names.iter().any(|name| name == expected), "{expected} missing in {names:?}");
        }
    }
}
