//! The addresses of one pool: which may be tried next, which were given up, and when its name is looked up again.
//!
//! It knows no socket and no clock; `keeper/pools.rs` hands its addresses to servers.

use crate::config::{AddressFamily, ServerAddress};
use ffclock_units::{Moment, Mono, Span};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// An address that was given up is not tried again for this time: a server that was off for maintenance may be back.
const GIVEN_UP_FOR: Span = Span::from_secs(3600);
/// The name is not looked up again before this.
const LOOK_UP_SOON: Span = Span::from_secs(30);
/// While look-ups bring nothing new they become rarer, up to this.
const LOOK_UP_LATE: Span = Span::from_secs(3600);
/// The most addresses that are kept; a name has a few at a time.
const MOST_SPARE: usize = 64;

/// The addresses of one name.
#[derive(Debug)]
pub(crate) struct Pool {
    address: ServerAddress,
    family: AddressFamily,
    spare: VecDeque<SocketAddr>,
    given_up: Vec<(SocketAddr, Moment<Mono>)>,
    next_look_up: Moment<Mono>,
    pause: Span,
}

impl Pool {
    /// A pool whose name has not been looked up.
    pub(crate) fn new(address: ServerAddress, family: AddressFamily, now: Moment<Mono>) -> Self {
        let (spare, given_up) = (VecDeque::new(), Vec::new());
        Pool { address, family, spare, given_up, next_look_up: now, pause: LOOK_UP_SOON }
    }

    /// Its name and port.
    pub(crate) fn address(&self) -> &ServerAddress {
        &self.address
    }

    /// From now on only addresses of this family are given out.
    pub(crate) fn set_family(&mut self, family: AddressFamily) {
        self.family = family;
    }

    /// When its name may be looked up again.
    pub(crate) fn next_look_up(&self) -> Moment<Mono> {
        self.next_look_up
    }

    /// Whether to look its name up now, since a server wants an address. The next time comes later and later while
    /// nothing new is found.
    pub(crate) fn begins_look_up(&mut self, now: Moment<Mono>) -> bool {
        let is_due = now >= self.next_look_up;
        if is_due {
            self.next_look_up = now + self.pause;
            self.pause = (self.pause + self.pause).min(LOOK_UP_LATE);
        }
        is_due
    }

    /// Its name has these addresses at present. What it had before stays a way out, after them.
    pub(crate) fn resolved(&mut self, addresses: &[SocketAddr]) {
        for address in addresses.iter().rev() {
            self.spare.retain(|spare| spare != address);
            self.spare.push_front(*address);
        }
        self.spare.truncate(MOST_SPARE);
    }

    /// An address that is not in use and was not given up lately.
    pub(crate) fn take(&mut self, in_use: &[SocketAddr], now: Moment<Mono>) -> Option<SocketAddr> {
        self.given_up.retain(|(_, until)| *until > now);
        let is_free = |address: &SocketAddr| {
            let was_given_up = self.given_up.iter().any(|(given_up, _)| given_up == address);
            self.family.admits(address) && !in_use.contains(address) && !was_given_up
        };
        let place = self.spare.iter().position(is_free)?;
        self.pause = LOOK_UP_SOON;
        self.spare.remove(place)
    }

    /// This address is of no use: it is not to be tried for a while.
    pub(crate) fn give_up(&mut self, address: SocketAddr, now: Moment<Mono>) {
        self.leave_out(address, now + GIVEN_UP_FOR);
    }

    /// This address cannot be asked at present, as where there is no network: it is tried again with the next look-up.
    pub(crate) fn postpone(&mut self, address: SocketAddr, now: Moment<Mono>) {
        self.leave_out(address, now + LOOK_UP_SOON);
    }

    fn leave_out(&mut self, address: SocketAddr, until: Moment<Mono>) {
        self.given_up.retain(|(other, _)| *other != address);
        self.given_up.push((address, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_secs(second))
    }

    fn host(last: u8) -> SocketAddr {
        ([192, 0, 2, last], 123).into()
    }

    fn pool() -> Pool {
        Pool::new(ServerAddress::default(), AddressFamily::Any, at(0))
    }

    #[test]
    fn no_address_is_given_out_twice() {
        let mut pool = pool();
        pool.resolved(&[host(1), host(2), host(3)]);
        assert_eq!(pool.take(&[host(1)], at(0)), Some(host(2)));
        pool.resolved(&[host(2), host(1)]);
        assert_eq!(pool.take(&[host(1), host(2)], at(0)), Some(host(3)));
        assert_eq!(pool.take(&[host(1), host(2), host(3)], at(0)), None);
    }

    #[test]
    fn what_was_given_up_comes_back_after_an_hour() {
        let mut pool = pool();
        pool.give_up(host(1), at(0));
        pool.resolved(&[host(1)]);
        assert_eq!(pool.take(&[], at(3599)), None);
        assert_eq!(pool.take(&[], at(3600)), Some(host(1)));
    }

    #[test]
    fn what_cannot_be_asked_comes_back_with_the_next_look_up() {
        let mut pool = pool();
        assert!(pool.begins_look_up(at(0)));
        pool.resolved(&[host(1)]);
        assert_eq!(pool.take(&[], at(0)), Some(host(1)));
        pool.postpone(host(1), at(0));
        pool.resolved(&[host(1)]);
        assert_eq!(pool.take(&[], at(29)), None);
        assert_eq!(pool.take(&[], pool.next_look_up()), Some(host(1)));
    }

    #[test]
    fn a_name_that_brings_nothing_new_is_looked_up_ever_more_rarely() {
        let mut pool = pool();
        let mut now = 0;
        let mut pauses = Vec::new();
        for _ in 0..10 {
            assert!(pool.begins_look_up(at(now)) && !pool.begins_look_up(at(now)));
            let next = pool.next_look_up().whole_seconds();
            pauses.push(next - now);
            now = next;
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]);
        pool.resolved(&[host(1)]);
        assert!(pool.take(&[], at(now)).is_some() && pool.begins_look_up(at(now)));
        assert_eq!(pool.next_look_up(), at(now + 30));
    }

    #[test]
    fn only_the_wanted_family_is_used_and_memory_is_bounded() {
        let mut pool = Pool::new(ServerAddress::default(), AddressFamily::Ipv6, at(0));
        let six: SocketAddr = "[2001:db8::1]:123".parse().unwrap();
        pool.resolved(&[host(1), six]);
        assert_eq!((pool.take(&[], at(0)), pool.take(&[six], at(0))), (Some(six), None));
        for last in 0..=255 {
            pool.resolved(&[host(last)]);
        }
        assert_eq!(pool.spare.len(), MOST_SPARE);
        pool.set_family(AddressFamily::Ipv4);
        assert_eq!(pool.take(&[], at(0)), Some(host(255)), "the latest first");
    }
}
