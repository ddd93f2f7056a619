//! What a reflector remembers of its senders, in memory of a fixed size: how many packets of each address it may still
//! answer, and how many of each session it has answered.
//!
//! A table of four places for each hash. A sender that finds its places taken gets that of the one which was silent for
//! longest, whose count begins again when it comes back: a flood of addresses makes a reflector forgetful, never large.
//! Hashes are keyed at random, so that no sender can choose whose place it takes.

use ffclock_units::{Moment, Mono, Span};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::net::{IpAddr, SocketAddr};

/// Rows of places; 65536 senders in all.
const ROWS: usize = 1 << 14;
const WAYS: usize = 4;

#[derive(Clone, Copy, Debug)]
struct SenderPlace<V> {
    /// 0 is a free place.
    hash: u64,
    last: Moment<Mono>,
    value: V,
}

/// A table that forgets.
#[derive(Debug)]
struct ForgetfulTable<V> {
    hasher: RandomState,
    places: Vec<[SenderPlace<V>; WAYS]>,
}

impl<V: Copy> ForgetfulTable<V> {
    fn new(unused: V) -> Self {
        let free = SenderPlace { hash: 0, last: Moment::from_origin(Span::ZERO), value: unused };
        ForgetfulTable { hasher: RandomState::new(), places: vec![[free; WAYS]; ROWS] }
    }

    /// What is remembered under `key`; what is new there begins as `fresh`.
    fn entry(&mut self, key: &impl Hash, now: Moment<Mono>, fresh: V) -> &mut V {
        let hash = self.hasher.hash_one(key).max(1);
        let row = &mut self.places[hash as usize % ROWS];
        let known = row.iter().position(|place| place.hash == hash);
        let oldest = || (0..WAYS).min_by_key(|&way| (row[way].hash != 0, row[way].last)).unwrap_or(0);
        let way = known.unwrap_or_else(oldest);
        let place = &mut row[way];
        if known.is_none() {
            *place = SenderPlace { hash, last: now, value: fresh };
        }
        place.last = now;
        &mut place.value
    }
}

/// What an address may still have answered.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// In packets.
    left: f64,
    since: Moment<Mono>,
}

/// Decides which packets are answered, and counts those of each session.
#[derive(Debug)]
pub struct SenderAdmission {
    rate: u32,
    addresses: ForgetfulTable<Allowance>,
    sessions: ForgetfulTable<u32>,
}

impl SenderAdmission {
    /// Answers up to `rate` packets per second of each address, and a second's worth at once.
    pub fn new(rate: u32) -> Self {
        let unused = Allowance { left: 0.0, since: Moment::from_origin(Span::ZERO) };
        SenderAdmission { rate, addresses: ForgetfulTable::new(unused), sessions: ForgetfulTable::new(0) }
    }

    /// Whether a packet of `from` may be answered. Addresses of IPv6 count by their first 64 bits: a host has the rest
    /// to itself.
    pub fn admit(&mut self, from: IpAddr, now: Moment<Mono>) -> bool {
        // A socket of IPv6 that takes both families sees addresses of IPv4 as ::ffff:192.0.2.1, all in one /64.
        let from = from.to_canonical();
        let network = match from {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let most = f64::from(self.rate);
        let fresh = Allowance { left: most, since: now };
        let allowance = self.addresses.entry(&(from.is_ipv4(), network), now, fresh);
        let passed = (now - allowance.since).as_seconds().max(0.0);
        allowance.left = (allowance.left + passed * most).min(most);
        allowance.since = now;
        let is_admitted = allowance.left >= 1.0;
        if is_admitted {
            allowance.left -= 1.0;
        }
        is_admitted
    }

    /// The number of the next reply in a session, counted from 0 (RFC 8762, section 4.3: stateful).
    pub fn next_of(&mut self, from: SocketAddr, session: u16, now: Moment<Mono>) -> u32 {
        let next = self.sessions.entry(&(from, session), now, 0);
        let number = *next;
        *next = next.wrapping_add(1);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn mono(millis: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_millis(millis))
    }

    #[test]
    fn an_address_has_its_rate_and_no_more() {
        let mut admission = SenderAdmission::new(10);
        let one = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        let admitted =
            |admission: &mut SenderAdmission, now| (0..100).filter(|_| admission.admit(one, mono(now))).count();
        assert_eq!(admitted(&mut admission, 0), 10);
        assert_eq!(admitted(&mut admission, 500), 5);
        assert!(admission.admit(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)), mono(500)));
        // On a socket for both families they are mapped into one /64; each keeps its rate.
        let mapped = |last| IpAddr::V6(Ipv4Addr::new(192, 0, 2, last).to_ipv6_mapped());
        for last in [3, 4] {
            assert_eq!((0..100).filter(|_| admission.admit(mapped(last), mono(500))).count(), 10, "{last}");
        }
        assert!(!admission.admit(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 3)), mono(500)), "the same host in both forms");
        // The lower half of an address of IPv6 is free to choose.
        let six = |low| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8_u128 << 96 | low));
        assert_eq!((0..100).filter(|&low| admission.admit(six(low), mono(500))).count(), 10);
    }

    #[test]
    fn sessions_are_counted_apart() {
        let mut admission = SenderAdmission::new(10);
        let from = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let numbers: Vec<u32> = (0..3).map(|_| admission.next_of(from(1), 5, mono(0))).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!((admission.next_of(from(1), 6, mono(0)), admission.next_of(from(2), 5, mono(0))), (0, 0));
    }

    /// A million senders take no more room than one, and the busy one among them is remembered.
    #[test]
    fn a_million_senders_find_the_same_room() {
        let mut admission = SenderAdmission::new(10);
        let busy = SocketAddr::from((Ipv4Addr::LOCALHOST, 862));
        let mut busy_packets = 0;
        for number in 0..1_000_000_u32 {
            let now = mono(i64::from(number / 1000));
            assert!(admission.admit(IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 + number)), now));
            admission.next_of(SocketAddr::from((Ipv4Addr::from_bits(0x0a00_0000 + number), 862)), 0, now);
            if number % 1000 == 0 {
                assert_eq!(admission.next_of(busy, 0, now), busy_packets);
                busy_packets += 1;
            }
        }
        assert_eq!((admission.addresses.places.len(), admission.sessions.places.len()), (ROWS, ROWS));
    }
}
