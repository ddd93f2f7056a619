//! How often servers may be asked that refused to be asked more often, by address. What a server said to one
//! conversation holds for every other one with it: of a second table, after a reload, of another place in a pool.

use ffclock_units::Span;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The most addresses that are remembered: more than all servers and the spare addresses of their pools.
const MOST: usize = 256;

/// The shortest polls that servers accept.
#[derive(Debug, Default)]
pub(crate) struct Slowdowns {
    by_address: BTreeMap<SocketAddr, Span>,
    has_news: bool,
}

impl Slowdowns {
    /// The server at this address refuses a poll shorter than this.
    pub(crate) fn note(&mut self, address: SocketAddr, shortest: Span) {
        if self.by_address.len() >= MOST && !self.by_address.contains_key(&address) {
            self.by_address.pop_first();
        }
        self.by_address.insert(address, shortest);
        self.has_news = true;
    }

    /// The operator chose another poll for this server, which overrides what it said.
    pub(crate) fn forget(&mut self, address: SocketAddr) {
        self.by_address.remove(&address);
    }

    /// The shortest poll of the server at this address, if it refused a shorter one.
    pub(crate) fn of(&self, address: SocketAddr) -> Option<Span> {
        self.by_address.get(&address).copied()
    }

    /// Whether there was a refusal since the last call.
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_said_last_counts_and_memory_is_bounded() {
        let mut slowdowns = Slowdowns::default();
        let at = |port: u16| SocketAddr::from(([192, 0, 2, 1], port));
        assert!(!slowdowns.take_news());
        for port in 1..=1000 {
            slowdowns.note(at(port), Span::from_secs(64));
        }
        assert!(slowdowns.take_news() && !slowdowns.take_news());
        assert_eq!(slowdowns.by_address.len(), MOST);
        slowdowns.note(at(1000), Span::from_secs(128));
        assert_eq!(slowdowns.of(at(1000)), Some(Span::from_secs(128)));
        slowdowns.forget(at(1000));
        assert_eq!(slowdowns.of(at(1000)), None);
    }
}
