//! How often one address is answered, in memory of a fixed size.
//!
//! An address has a token bucket in the form of one number: when the bucket will be full again (the virtual scheduling
//! form of the generic cell rate algorithm, ITU-T I.371). An address that has been silent for long has no more to
//! remember than one that was never seen, so its entry is the one to be replaced: a flood of forged addresses makes
//! room for itself by forgetting those who do no harm, and these are answered as if they were new.

use ffclock_sys::random_nonce;
use ffclock_units::Span;
use ffclock_xdp::RequestLimit;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;

/// Entries that lie beside one another in memory and take one another's places.
const WAYS: usize = 8;
/// Bits of an entry that hold its time; the others name the address.
const TIME_BITS: u32 = 40;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// From steps of time to 2^-64 s.
const STEP_SHIFT: u32 = 44;
/// Steps of time in a second.
const STEPS: f64 = (1_u64 << 20) as f64;

/// Entries of one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line([u64; WAYS]);

/// The time of a batch, in steps of 2^-20 s, modulo 2^40.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTime(u64);

impl LimitTime {
    /// From seconds on any clock that is not set.
    pub fn from_seconds(seconds: f64) -> Self {
        LimitTime((seconds * STEPS) as u64 & TIME_MASK)
    }
}

/// What the operator decides about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOptions {
    /// Steps for one request; 0 without a limit.
    interval: u64,
    /// Steps that may be owed.
    most: u64,
}

impl LimitOptions {
    /// One request each `interval_s` seconds in the mean, `burst` of them at once.
    pub fn new(interval_s: f64, burst: u32) -> Self {
        let interval = (interval_s * STEPS) as u64;
        LimitOptions { interval, most: interval.saturating_mul(u64::from(burst)).min(TIME_MASK / 4) }
    }
}

impl LimitOptions {
    /// The same limit for the driver; `None` without one.
    pub(crate) fn as_request_limit(&self, leak: u32) -> Option<RequestLimit> {
        let burst = self.most.checked_div(self.interval)?;
        let interval = Span::from_units(i128::from(self.interval) << STEP_SHIFT);
        Some(RequestLimit { interval, burst: u32::try_from(burst).unwrap_or(u32::MAX), leak })
    }
}

/// The table of one thread.
pub struct RateTable {
    lines: Vec<Line>,
    keys: RandomState,
}

impl RateTable {
    /// A table of about this size: the next smaller power of two.
    pub fn new(bytes: usize) -> Self {
        let lines = (bytes / size_of::<Line>()).max(1);
        let lines = 1 << lines.ilog2();
        RateTable { lines: vec![Line([0; WAYS]); lines], keys: RandomState::new() }
    }

    /// Whether a request of this address is within the limit; it counts if it is.
    pub fn admit(&mut self, ip: IpAddr, now: LimitTime, options: &LimitOptions) -> bool {
        if options.interval == 0 {
            return true;
        }
        let hash = self.keys.hash_one(key(ip));
        let name = hash >> TIME_BITS;
        let place = hash as usize & (self.lines.len() - 1);
        let Line(entries) = &mut self.lines[place];
        let owed = |entry: u64| {
            let owed = (entry & TIME_MASK).wrapping_sub(now.0) & TIME_MASK;
            // More than an address can owe is of the past.
            if owed > options.most { 0 } else { owed }
        };
        let own = entries.iter().position(|entry| *entry != 0 && entry >> TIME_BITS == name);
        let (place, before) = match own {
            Some(place) => (place, owed(entries[place])),
            None => {
                let least = (0..WAYS).min_by_key(|place| if entries[*place] == 0 { 0 } else { owed(entries[*place]) });
                (least.unwrap_or_default(), 0)
            }
        };
        let after = before + options.interval;
        if after > options.most {
            return false;
        }
        entries[place] = name << TIME_BITS | (now.0 + after) & TIME_MASK;
        true
    }
}

/// Chance, which no one needs to be unable to guess.
pub(crate) struct Chance(u64);

impl Chance {
    /// # Errors
    /// There are no random numbers to begin with.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Chance(random_nonce()? | 1))
    }

    /// True once in this number of times (xorshift64, Marsaglia 2003).
    pub(crate) fn one_in(&mut self, number: u64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.is_multiple_of(number.max(1))
    }
}

/// What counts as one address: an address of IPv4, or the 64 bits of IPv6 that one site has at the least.
fn key(ip: IpAddr) -> u64 {
    match ip {
        IpAddr::V4(ip) => u64::from(ip.to_bits()),
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => u64::from(ip.to_bits()),
            None => (ip.to_bits() >> 64) as u64,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn ip(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    fn at(seconds: f64) -> LimitTime {
        LimitTime::from_seconds(seconds)
    }

    #[test]
    fn a_burst_is_answered_and_then_the_mean() {
        let mut table = RateTable::new(1 << 16);
        let options = LimitOptions::new(0.125, 4);
        let answered = (0..10).filter(|_| table.admit(ip(7), at(100.0), &options)).count();
        assert_eq!(answered, 4);
        assert!(table.admit(ip(8), at(100.0), &options), "others are not concerned");
        let later = (0..80).filter(|tenth| table.admit(ip(7), at(100.1 + f64::from(*tenth) / 10.0), &options)).count();
        assert!((63..=66).contains(&later), "{later} in 8 s at 8 a second");
        let rested = (0..10).filter(|_| table.admit(ip(7), at(200.0), &options)).count();
        assert_eq!(rested, 4);
    }

    #[test]
    fn a_site_of_ipv6_is_one_address() {
        let mut table = RateTable::new(1 << 16);
        let options = LimitOptions::new(1.0, 1);
        let site = |last: u16| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 1, 2, 0, 0, 0, last));
        assert!(table.admit(site(1), at(5.0), &options));
        assert!(!table.admit(site(2), at(5.0), &options));
        assert!(table.admit(Ipv6Addr::new(0x2001, 0xdb8, 1, 3, 0, 0, 0, 1).into(), at(5.0), &options));
    }

    /// 10^6 forged addresses in 2 s: the table does not grow, an address that asks 5000 times a second stays limited,
    /// and honest clients, new ones and old ones, are answered.
    #[test]
    fn a_flood_of_forged_addresses_shuts_no_honest_client_out() {
        let mut table = RateTable::new(1 << 20);
        let options = LimitOptions::new(1.0, 8);
        let size = table.lines.len() * size_of::<Line>();
        let (mut shut_out, mut abuses) = (0, 0);
        for number in 0..1_000_000_u32 {
            let now = at(10.0 + f64::from(number) * 2e-6);
            table.admit(ip(number.wrapping_mul(2_654_435_761)), now, &options);
            if number % 100 == 0 {
                abuses += u32::from(table.admit(ip(0x7e00_0001), now, &options));
            }
            if number % 50_000 == 0 {
                shut_out += u32::from(!table.admit(ip(0x7f00_0000 + number / 50_000 % 4), now, &options));
            }
        }
        assert_eq!(shut_out, 0);
        assert!((8..=20).contains(&abuses), "{abuses} of 10,000: 8 at once, then one each second");
        assert_eq!(table.lines.len() * size_of::<Line>(), size);
    }

    #[test]
    fn without_a_limit_all_are_answered() {
        let mut table = RateTable::new(64);
        let options = LimitOptions::new(0.0, 1);
        assert!((0..1000).all(|_| table.admit(ip(1), at(1.0), &options)));
    }

    #[test]
    fn what_lies_days_back_owes_nothing() {
        let mut table = RateTable::new(64);
        let options = LimitOptions::new(1.0, 2);
        let start = 1e6;
        assert!(table.admit(ip(1), at(start), &options) && table.admit(ip(1), at(start), &options));
        assert!(!table.admit(ip(1), at(start), &options));
        for days in 1..30 {
            assert!(table.admit(ip(1), at(start + f64::from(days) * 86_400.0), &options), "{days}");
        }
    }
}
