//! How often servers may be asked that refused to be asked more often, by address. What a server said to one
//! conversation holds for every other one with it: of a second table, after a reload, of another place in a pool.

use ffclock_units::Span;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The most addresses that are remembered: more than all servers and the spare addresses of their pools.
const MOST: usize = 256;

/// Whether what a server said was authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proof {
    /// Anyone on the way could have said it, so that it holds for conversations that are open to the same.
    Open,
    /// The server itself said it.
    Authentic,
}

/// The shortest polls that servers accept.
#[derive(Debug, Default)]
pub(crate) struct Slowdowns {
    by_address: BTreeMap<(SocketAddr, Proof), Span>,
    has_news: bool,
}

impl Slowdowns {
    /// The server at this address refuses a poll shorter than this.
    pub(crate) fn note(&mut self, address: SocketAddr, proof: Proof, shortest: Span) {
        let place = (address, proof);
        if self.by_address.len() >= MOST && !self.by_address.contains_key(&place) {
            self.by_address.pop_first();
        }
        self.by_address.insert(place, shortest);
        self.has_news = true;
    }

    /// The operator chose another poll for this server, which overrides what it said.
    pub(crate) fn forget(&mut self, address: SocketAddr) {
        self.by_address.retain(|(other, _), _| *other != address);
    }

    /// The shortest poll of the server at this address, if it refused a shorter one. A conversation that is
    /// authenticated believes what was.
    pub(crate) fn of(&self, address: SocketAddr, proof: Proof) -> Option<Span> {
        let said = |by: Proof| self.by_address.get(&(address, by)).copied();
        match proof {
            Proof::Open => said(Proof::Open).max(said(Proof::Authentic)),
            Proof::Authentic => said(Proof::Authentic),
        }
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
            slowdowns.note(at(port), Proof::Open, Span::from_secs(64));
        }
        assert!(slowdowns.take_news() && !slowdowns.take_news());
        assert_eq!(slowdowns.by_address.len(), MOST);
        slowdowns.note(at(1000), Proof::Open, Span::from_secs(128));
        assert_eq!(slowdowns.of(at(1000), Proof::Open), Some(Span::from_secs(128)));
        slowdowns.forget(at(1000));
        assert_eq!(slowdowns.of(at(1000), Proof::Open), None);
    }

    #[test]
    fn what_anyone_can_say_slows_no_conversation_that_is_authenticated() {
        let mut slowdowns = Slowdowns::default();
        let address = SocketAddr::from(([192, 0, 2, 1], 123));
        let [short, long] = [64, 128].map(Span::from_secs);
        slowdowns.note(address, Proof::Open, long);
        assert_eq!([Proof::Open, Proof::Authentic].map(|proof| slowdowns.of(address, proof)), [Some(long), None]);
        slowdowns.note(address, Proof::Authentic, short);
        assert_eq!(
            [Proof::Open, Proof::Authentic].map(|proof| slowdowns.of(address, proof)),
            [Some(long), Some(short)]
        );
    }
}
