//! Where a server's addresses come from: one name for one server, or a pool, whose name has several.

use super::{HostName, MOST_SERVERS, ServerAddress, ServerConfig, ptp};
use ffclock_service::words;
use ffclock_source::SourceConfig;
use ffclock_units::Span;
use std::net::SocketAddr;

const LOOK_UP_MIN: Span = Span::from_secs(60);
const LOOK_UP_MAX: Span = Span::from_secs(30 * 86_400);

ffclock_units::options! {
    /// A name that stands for several servers.
    pub struct PoolConfig {
        /// A name with several addresses, in place of `address`: each address is a server of its own, and one that does
        /// not answer, refuses, or is a falseticker for long is replaced by another of the name.
        pool: HostName = HostName::unset();
        /// How many addresses of a pool to use at a time.
        pool_size: u32 = 4, 1 => MOST_SERVERS as u32;
        /// How many servers of a pool vote where others do: with `"minority"` always fewer than the others together,
        /// and of two pools alone as many of the one as of the other, so that the operator of one name outvotes no
        /// one; with `"each"` all of them, as of a name that many operators share.
        pool_votes: PoolVotes = PoolVotes::Minority;
    }
}

ffclock_units::options! {
    /// How a server's addresses are looked up, and from which port it is asked.
    pub struct LookUpConfig {
        /// The addresses to use of a name.
        family: AddressFamily = AddressFamily::Any;
        /// How often the name of a server that answers is looked up again: one that has moved is followed.
        look_up_every: Span = Span::from_secs(86_400), LOOK_UP_MIN => LOOK_UP_MAX;
        /// Whether each request leaves from another port, chosen at random, which an attacker who cannot see our
        /// packets would have to guess beside the random numbers in them. Otherwise the port is random once.
        random_port: bool = false;
    }
}

/// How many servers of a pool vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolVotes {
    /// Fewer than the others, or as many as those of one other pool.
    Minority,
    /// All of them.
    Each,
}

/// The family of addresses to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFamily {
    /// Any.
    Any,
    /// IPv4 alone.
    Ipv4,
    /// IPv6 alone.
    Ipv6,
}

impl AddressFamily {
    /// Whether the address may be used.
    pub(crate) fn admits(self, address: &SocketAddr) -> bool {
        match self {
            AddressFamily::Any => true,
            AddressFamily::Ipv4 => address.is_ipv4(),
            AddressFamily::Ipv6 => address.is_ipv6(),
        }
    }
}

words!(PoolVotes { Minority: "minority", Each: "each" });
words!(AddressFamily { Any: "any", Ipv4: "ipv4", Ipv6: "ipv6" });

impl ServerConfig {
    /// The name in logs and in the answers of commands: as configured, and of a pool's servers with their number.
    pub(crate) fn name(&self) -> String {
        match (&self.reference, self.slot) {
            (Some(reference), _) => reference.input.to_string(),
            (None, _) if self.is_ptp() => self.ptp_name(),
            (None, Some(slot)) => format!("{}#{slot}", self.address),
            (None, None) => self.address.to_string(),
        }
    }

    /// The address whose name is the pool that it belongs to.
    pub(crate) fn pool(&self) -> Option<&ServerAddress> {
        self.slot.map(|_| &self.address)
    }

    /// Whether a conversation with the one goes on as one with the other: the same server, protected in the same way;
    /// of PTP, with the same options of the conversation.
    pub(crate) fn is_same_server(&self, other: &ServerConfig) -> bool {
        let of_ptp = |server: &ServerConfig| {
            let SourceConfig { reply_timeout, root_distance_max, .. } = server.source;
            server.is_ptp().then_some((reply_timeout, root_distance_max, server.look_up.family))
        };
        (&self.reference, &self.address, self.slot, &self.protection, &self.ptp)
            == (&other.reference, &other.address, other.slot, &other.protection, &other.ptp)
            && of_ptp(self) == of_ptp(other)
    }

    /// Whether the other is the same server once more.
    pub(super) fn is_twice(&self, other: &ServerConfig) -> bool {
        match (self.is_ptp(), other.is_ptp()) {
            (false, false) => self.address.is_same_as(&other.address),
            (true, true) => ptp::is_twice(self, other),
            _ => false,
        }
    }

    /// What it is called where there is another: of a pool the name, which all of its servers have.
    pub(super) fn twin_name(&self) -> String {
        if self.is_ptp() { self.ptp_name() } else { self.address.to_string() }
    }

    /// The servers that one table stands for: itself, or those of its pool, numbered from 1.
    pub(super) fn spread(mut self) -> Vec<ServerConfig> {
        if self.pool.pool.is_unset() {
            return vec![self];
        }
        self.address.address = self.pool.pool.clone();
        let numbered = |slot| ServerConfig { slot: Some(slot), ..self.clone() };
        (1..=self.pool.pool_size).map(numbered).collect()
    }
}

/// What is wrong with a table's keys about addresses, given whether each of these is there: `address`, `pool`, and the
/// name of a key that needs `pool`.
pub(super) fn contradiction(
    server: &ServerConfig,
    (address, pool): (bool, bool),
    of_pool: Option<&str>,
) -> Option<String> {
    let name = server.pool.pool.as_str();
    match (address, pool) {
        (false, false) => Some("the server has no address".to_owned()),
        (true, true) => Some("address and pool contradict each other: a [[server]] has one of the two".to_owned()),
        (true, false) => of_pool.map(|key| format!("{key} is for a pool alone: write `pool` in place of `address`")),
        (false, true) => literal_fault(name),
    }
}

fn literal_fault(name: &str) -> Option<String> {
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    is_address.then(|| format!("pool = \"{name}\": a pool is a name with several addresses; write `address`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Unrecognised};

    fn problem(text: &str) -> (usize, String) {
        let error = Config::parse(text).unwrap_err();
        let [problem] = &error.problems[..] else { panic!("{error}") };
        (problem.line, problem.message.clone())
    }

    #[test]
    fn a_pool_is_as_many_servers_as_its_size() {
        let config = Config::parse("[[server]]\npool = \"pool.example\"\nport = 1123\npoll = \"4 s\"\n").unwrap();
        let names: Vec<String> = config.servers.iter().map(ServerConfig::name).collect();
        assert_eq!(names[0], "pool.example:1123#1");
        assert_eq!((names.len(), names[3].as_str()), (4, "pool.example:1123#4"));
        assert!(config.servers.iter().all(|server| server.source.poll == Span::from_secs(4)));
        let two = Config::parse("[[server]]\npool = \"p\"\npool_size = 2\n[[server]]\naddress = \"b\"\n").unwrap();
        let names: Vec<String> = two.servers.iter().map(ServerConfig::name).collect();
        assert_eq!(names, ["p#1", "p#2", "b"]);
        assert!(two.servers[0].pool().is_some() && two.servers[2].pool().is_none());
    }

    #[test]
    fn what_is_no_pool_is_refused_with_its_line() {
        assert_eq!(problem("[[server]]\nport = 1\n"), (1, "the server has no address".to_owned()));
        let both = problem("[[server]]\naddress = \"a\"\npool = \"b\"\n");
        assert!(both.1.starts_with("address and pool contradict each other"), "{both:?}");
        let sized = problem("[[server]]\naddress = \"a\"\npool_size = 2\n");
        assert!(sized.1.starts_with("pool_size is for a pool alone"), "{sized:?}");
        let literal = problem("[[server]]\npool = \"192.0.2.1\"\n");
        assert!(literal.1.contains("a name with several addresses"), "{literal:?}");
        let twice = problem("[[server]]\npool = \"p\"\n[[server]]\npool = \"P\"\npool_size = 1\n");
        assert_eq!(twice, (3, "the server P is configured twice".to_owned()));
        let port = problem("[[server]]\npool = \"p:123\"\n");
        assert!(port.0 == 2 && port.1.contains("the port has a key of its own"), "{port:?}");
        let many = problem("[[server]]\npool = \"p\"\npool_size = 9\n[[server]]\npool = \"q\"\npool_size = 9\n");
        assert_eq!(many, (4, "more than 16 servers: a pool counts by its pool_size".to_owned()));
        let votes = problem("[[server]]\npool = \"p\"\npool_votes = \"all\"\n");
        assert!(votes.1.contains("\"minority\" or \"each\""), "{votes:?}");
        let misplaced = problem("pool = \"p\"\n[[server]]\naddress = \"a\"\n");
        assert_eq!(misplaced, (1, "unknown key `pool`: it belongs below [[server]]".to_owned()));
    }

    #[test]
    fn families_admit_their_addresses() {
        let [four, six]: [SocketAddr; 2] = ["192.0.2.1:123".parse().unwrap(), "[2001:db8::1]:123".parse().unwrap()];
        for (text, admitted) in [("any", [true, true]), ("ipv4", [true, false]), ("ipv6", [false, true])] {
            let family: AddressFamily = text.parse().unwrap();
            assert_eq!(family.to_string(), text);
            assert_eq!([family.admits(&four), family.admits(&six)], admitted);
        }
        for text in ["minority", "each"] {
            assert_eq!(text.parse::<PoolVotes>().unwrap().to_string(), text);
        }
        assert_eq!("ipv5".parse::<AddressFamily>(), Err(Unrecognised));
    }
}
