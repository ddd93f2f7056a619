//! The interleaved mode (RFC 9769, section 2), the server's half: when replies left, remembered for the next request.
//!
//! A reply cannot say exactly when it leaves, but the kernel knows afterwards. A client that names the receive time of
//! its last reply in the origin field of a request gets, in an interleaved reply, the time at which that reply left.
//! Which requests do that is seen without any memory: of our times, those of receiving are odd and those of leaving are
//! even (in units of 2^-32 s), so a reply also never has two equal times, by which a client could not see its mode.
//!
//! That time is from the page as it was then, so its bound is remembered with it: a page that has become better since
//! says nothing of it.
//!
//! The memory is a table of fixed size, by address and receive time. A flood of forged requests takes places in it, and
//! costs a client no more than the interleaved mode: it gets basic replies.

use ffclock_units::Bound;
use ffclock_wire::{NtpTimestamp, ServedRequest, claiming_at_least};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;

/// Replies that lie beside one another in memory and take one another's places.
const WAYS: usize = 4;

/// When a reply left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Departure {
    /// The time, by the page as it was then.
    pub left: NtpTimestamp,
    /// How wrong that may be.
    pub bound: Bound,
}

/// When one reply left.
#[derive(Clone, Copy, Default)]
struct NotedDeparture {
    /// Names the reply: a secret function of its client and its receive time. 0 for an empty place.
    name: u64,
    left: NtpTimestamp,
    bound: Bound,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Shelf([NotedDeparture; WAYS]);

/// When the replies to interleaving clients left.
pub struct Departures {
    shelves: Vec<Shelf>,
    secret: RandomState,
}

/// How to answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interleave {
    /// As any other; the client does not interleave.
    Never,
    /// In the basic mode. The client interleaves, so it is worth knowing when this reply leaves.
    NextTime,
    /// In the interleaved mode: with the time at which the reply before left. It is worth knowing when this one does.
    Now(Departure),
}

/// A time of receiving as it stands in a reply: odd, and not before the packet came.
pub fn odd(receive: NtpTimestamp) -> NtpTimestamp {
    NtpTimestamp::from_raw(receive.raw() | 1)
}

/// A time of leaving as it stands in a reply: even, and not after the packet left. A missing time stays missing, and
/// the one time that would become so stays in its second.
pub fn even(transmit: NtpTimestamp) -> NtpTimestamp {
    let rounded = transmit.raw() & !1;
    NtpTimestamp::from_raw(if rounded == 0 && !transmit.is_missing() { 2 } else { rounded })
}

/// The interleaved reply to `request` made of the basic one: the origin is its receive field, which shows the mode, and
/// the time of leaving is that of the reply before (RFC 9769, section 2). The claim covers both.
pub fn interleaved(mut basic: [u8; 48], request: &ServedRequest, before: &Departure) -> [u8; 48] {
    basic[24..32].copy_from_slice(&request.receive.raw().to_be_bytes());
    basic[40..48].copy_from_slice(&before.left.raw().to_be_bytes());
    claiming_at_least(basic, before.bound)
}

impl Departures {
    /// A table of about this size: the next smaller power of two.
    pub fn new(bytes: usize) -> Self {
        let shelves = (bytes / size_of::<Shelf>()).max(1);
        Departures { shelves: vec![Shelf::default(); 1 << shelves.ilog2()], secret: RandomState::new() }
    }

    /// How to answer a request from `ip`. What it names is forgotten: no second request gets the same time of leaving
    /// (RFC 9769, section 2).
    pub fn decide(&mut self, ip: IpAddr, request: &ServedRequest) -> Interleave {
        let names_reply = request.origin.raw() & 1 == 1 && request.receive != request.transmit;
        if !names_reply {
            return Interleave::Never;
        }
        let (name, shelf) = self.place(ip, request.origin);
        match shelf.0.iter_mut().find(|noted| noted.name == name) {
            Some(found) if !found.left.is_missing() => {
                let NotedDeparture { left, bound, .. } = std::mem::take(found);
                Interleave::Now(Departure { left, bound })
            }
            _ => Interleave::NextTime,
        }
    }

    /// The reply to `ip` that states `receive` left like this. Where two replies have that name, neither is remembered:
    /// one client would get the time of the other (RFC 9769, section 2: times are unique).
    pub fn remember(&mut self, ip: IpAddr, receive: NtpTimestamp, Departure { left, bound }: Departure) {
        let (name, shelf) = self.place(ip, receive);
        let places = &mut shelf.0;
        if let Some(twin) = places.iter_mut().find(|noted| noted.name == name) {
            twin.left = NtpTimestamp::MISSING;
            return;
        }
        // The oldest goes; it is the furthest back on the circle of an era.
        let age = |noted: &NotedDeparture| match noted.name {
            0 => u64::MAX,
            _ => left.raw().wrapping_sub(noted.left.raw()),
        };
        if let Some(place) = places.iter_mut().max_by_key(|noted| age(noted)) {
            *place = NotedDeparture { name, left, bound };
        }
    }

    fn place(&mut self, ip: IpAddr, receive: NtpTimestamp) -> (u64, &mut Shelf) {
        let hash = self.secret.hash_one((ip.to_canonical(), receive.raw()));
        let mask = self.shelves.len() - 1;
        (hash.max(1), &mut self.shelves[hash as usize & mask])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;
    use ffclock_wire::{LogSeconds, Mode, Packet, Version};
    use proptest::prelude::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn at(raw: u64) -> NtpTimestamp {
        NtpTimestamp::from_raw(raw)
    }

    fn left(raw: u64) -> Departure {
        Departure { left: at(raw), bound: Bound::of(Span::from_micros(7)) }
    }

    fn request(origin: u64, receive: u64, transmit: u64) -> ServedRequest {
        let [origin, receive, transmit] = [origin, receive, transmit].map(at);
        ServedRequest { version: 4, reply_mode: Mode::Server, poll: 0, origin, receive, transmit }
    }

    /// RFC 9769, section 2: a basic client's origin is zero, or a time of leaving of ours (RFC 5905).
    #[test]
    fn a_client_that_names_no_reply_is_not_remembered() {
        let mut table = Departures::new(1 << 12);
        assert_eq!(table.decide(CLIENT, &request(0, 0, 7)), Interleave::Never);
        assert_eq!(table.decide(CLIENT, &request(100, 101, 102)), Interleave::Never);
    }

    /// RFC 9769, section 2: the two conditions of an interleaved reply, and that a time is used once.
    #[test]
    fn a_reply_that_is_named_is_answered_with_its_leaving_once() {
        let mut table = Departures::new(1 << 12);
        let named = request(101, 5, 6);
        assert_eq!(table.decide(CLIENT, &named), Interleave::NextTime, "nothing is known of it");
        table.remember(CLIENT, at(101), left(110));
        let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
        assert_eq!(table.decide(other, &named), Interleave::NextTime, "another client's reply");
        assert_eq!(table.decide(CLIENT, &request(101, 6, 6)), Interleave::Never, "no mode could be seen");
        assert_eq!(table.decide(CLIENT, &named), Interleave::Now(left(110)));
        assert_eq!(table.decide(CLIENT, &named), Interleave::NextTime);
    }

    #[test]
    fn one_name_of_two_replies_names_none() {
        let mut table = Departures::new(1 << 12);
        table.remember(CLIENT, at(101), left(110));
        table.remember(CLIENT, at(101), left(120));
        assert_eq!(table.decide(CLIENT, &request(101, 5, 6)), Interleave::NextTime);
    }

    #[test]
    fn an_address_is_the_same_in_either_family() {
        let mut table = Departures::new(1 << 12);
        let mapped = IpAddr::V6(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped());
        table.remember(mapped, at(101), left(110));
        assert_eq!(table.decide(CLIENT, &request(101, 5, 6)), Interleave::Now(left(110)));
    }

    #[test]
    fn a_flood_takes_no_more_memory_and_the_latest_are_remembered() {
        let mut table = Departures::new(1 << 10);
        let size = table.shelves.len();
        assert_eq!(size * size_of::<Shelf>(), 1 << 10);
        for number in 0..100_000_u64 {
            let ip = IpAddr::V6(Ipv6Addr::from_bits(number.into()));
            table.remember(ip, at(2 * number + 1), left(2 * number + 2));
            assert_eq!(table.decide(ip, &request(2 * number + 1, 8, 9)), Interleave::Now(left(2 * number + 2)));
            table.remember(ip, at(2 * number + 1), left(2 * number + 2));
        }
        assert_eq!(table.shelves.len(), size);
    }

    #[test]
    fn the_reply_shows_its_mode() {
        let reply = interleaved([9; 48], &request(101, 5, 6), &left(110));
        assert_eq!((&reply[24..32], &reply[40..48]), (&5_u64.to_be_bytes()[..], &110_u64.to_be_bytes()[..]));
        assert!(reply[..24].iter().chain(&reply[32..40]).all(|&byte| byte == 9));
    }

    /// The page had a bound of 50 ms when the reply before left, and has one of 1 ms now.
    #[test]
    fn the_claim_covers_the_time_that_is_from_a_worse_page() {
        let now = Packet {
            root_delay: Span::from_millis(2),
            precision: LogSeconds::from_exponent(-20),
            ..Packet::request(Version::V4, NtpTimestamp::MISSING)
        };
        let claimed = |bound: Span| {
            let before = Departure { left: at(110), bound: Bound::of(bound) };
            let reply = Packet::decode(&interleaved(now.encode(), &request(101, 5, 6), &before)).unwrap();
            reply.root_delay.halved() + reply.root_dispersion.as_span()
        };
        assert!((claimed(Span::from_millis(50)) - Span::from_millis(50)).abs() < Span::from_micros(31));
        assert!(claimed(Span::from_millis(50)) >= Span::from_millis(50));
        assert!((claimed(Span::from_micros(10)) - Span::from_millis(1)).abs() < Span::from_micros(31));
    }

    proptest! {
        #[test]
        fn times_move_by_one_step_and_are_never_equal(receive: u64, transmit: u64) {
            let (received, left) = (odd(at(receive)), even(at(transmit)));
            prop_assert_ne!(received, left);
            prop_assert!(received.raw() - receive <= 1);
            prop_assert!(left.raw().abs_diff(transmit) <= 1);
            prop_assert_eq!(left.is_missing(), transmit == 0);
        }

        /// What is answered is what was remembered last for that client and that time, or nothing.
        #[test]
        fn no_client_gets_the_time_of_another(steps in proptest::collection::vec((0..4_u8, 0..8_u64, any::<bool>()), 1..200)) {
            let mut table = Departures::new(256);
            for (number, (host, receive, remembers)) in steps.into_iter().enumerate() {
                let ip = IpAddr::V4(Ipv4Addr::new(192, 0, 2, host));
                let receive = 2 * receive + 1;
                if remembers {
                    let time = u64::from(host) << 32 | receive << 16 | (number as u64) << 1;
                    table.remember(ip, at(receive), left(time));
                } else if let Interleave::Now(Departure { left, .. }) = table.decide(ip, &request(receive, 1000, 1001)) {
                    prop_assert_eq!((left.raw() >> 32, left.raw() >> 16 & 0xffff), (u64::from(host), receive));
                }
            }
        }
    }
}
