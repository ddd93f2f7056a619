//! What a grandmaster says of itself: class, accuracy, variance.

use ffclock_units::{Bound, Span, StandardUncertainty};

/// What a clock claims, as the data set comparison sees it (IEEE 1588-2019, 7.6.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClockQuality {
    /// What it follows, and how well it did last.
    pub class: ClockClass,
    /// Its claim of its largest error.
    pub accuracy: ClockAccuracy,
    /// Its claim of how steady it is.
    pub variance: ScaledVariance,
}

/// What a clock follows (IEEE 1588-2019, 7.6.2.5, table 4). Smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockClass(pub u8);

impl ClockClass {
    /// Synchronised to a primary reference, on the PTP timescale.
    pub const PRIMARY: ClockClass = ClockClass(6);
    /// Was of class 6, lost its reference, and is still within what it promises for holdover.
    pub const HOLDOVER: ClockClass = ClockClass(7);
    /// Was of class 7 and is beyond that; it follows no other clock.
    pub const DEGRADED: ClockClass = ClockClass(52);
    /// Was of class 7 and is beyond that; it may follow another clock.
    pub const DEGRADED_FOLLOWER: ClockClass = ClockClass(187);
    /// None of the others: what a clock is that was never set.
    pub const DEFAULT: ClockClass = ClockClass(248);
    /// A clock that only ever follows.
    pub const NEVER_MASTER: ClockClass = ClockClass(255);

    /// Whether a clock of this class follows a primary reference, or did until lately.
    pub const fn is_traceable(self) -> bool {
        matches!(self, ClockClass::PRIMARY | ClockClass::HOLDOVER)
    }
}

/// The claim of a largest error as its code in a message (IEEE 1588-2019, 7.6.2.6, table 5). Smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockAccuracy(pub u8);

/// The first code of the table, 1 ps.
const FINEST_CODE: u8 = 0x17;
/// The limits of the table in femtoseconds, from [`FINEST_CODE`] on.
const LIMITS_FS: [i64; 26] = [
    1_000,
    2_500,
    10_000,
    25_000,
    100_000,
    250_000,
    1_000_000,
    2_500_000,
    10_000_000,
    25_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
    25_000_000_000,
    100_000_000_000,
    250_000_000_000,
    1_000_000_000_000,
    2_500_000_000_000,
    10_000_000_000_000,
    25_000_000_000_000,
    100_000_000_000_000,
    250_000_000_000_000,
    1_000_000_000_000_000,
    10_000_000_000_000_000,
];

impl ClockAccuracy {
    /// Off by more than 10 s.
    pub const BEYOND: ClockAccuracy = ClockAccuracy(0x31);
    /// The clock makes no claim.
    pub const UNKNOWN: ClockAccuracy = ClockAccuracy(0xfe);

    /// The finest code whose limit is not below `bound`.
    pub fn of(bound: Bound) -> Self {
        let fits = |limit: &i64| femtoseconds(*limit) >= bound;
        match LIMITS_FS.iter().position(fits).and_then(|place| u8::try_from(place).ok()) {
            Some(place) => ClockAccuracy(FINEST_CODE + place),
            None => ClockAccuracy::BEYOND,
        }
    }

    /// The limit that the code stands for; `None` where it is no limit.
    pub fn as_bound(self) -> Option<Bound> {
        let place = usize::from(self.0.checked_sub(FINEST_CODE)?);
        LIMITS_FS.get(place).map(|limit| femtoseconds(*limit))
    }
}

/// A limit of the table, rounded up to 2^-64 s.
fn femtoseconds(count: i64) -> Bound {
    let (nanos, rest) = (count / 1_000_000, count % 1_000_000);
    let fraction = ((i128::from(rest) << 64) / 1_000_000_000_000_000) + 1;
    Bound::of(Span::from_nanos(i128::from(nanos)) + Span::from_units(fraction))
}

/// The logarithm of a variance as a message carries it: 256 log2(variance / s^2) + 2^15 (IEEE 1588-2019, 7.6.3.3).
/// Smaller is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScaledVariance(pub u16);

impl ScaledVariance {
    /// The clock makes no claim.
    pub const UNKNOWN: ScaledVariance = ScaledVariance(0xffff);

    /// Of a clock with this standard uncertainty, rounded up.
    pub fn of(uncertainty: StandardUncertainty) -> Self {
        let units = uncertainty.as_span().units().max(1).unsigned_abs();
        // Twice the logarithm of the units of 2^-64 s, in steps of 1/256, hence 512 steps for each power of two.
        let steps = i64::from(log2_in_512ths(units)) + 1 - 128 * 256 + 0x8000;
        u16::try_from(steps.clamp(0, 0xfffe)).map_or(ScaledVariance::UNKNOWN, ScaledVariance)
    }

    /// The same, rounded up to a power of two of s^2: an estimate is not known better, and of two clocks of one kind
    /// none is to be the better one by what moves from second to second.
    #[must_use]
    pub const fn coarse(self) -> Self {
        ScaledVariance(if self.0 > 0xff00 { self.0 } else { self.0.next_multiple_of(0x100) })
    }
}

/// 512 log2(n), rounded down; `n` is above zero. By squaring: each squaring brings out one more bit of the logarithm.
fn log2_in_512ths(n: u128) -> u32 {
    debug_assert!(n > 0, "zero has no logarithm");
    let whole = n.max(1).ilog2();
    // The mantissa in 1..2 with 63 bits after the point.
    let mut mantissa = if whole > 63 { n >> (whole - 63) } else { n << (63 - whole) };
    let mut steps = whole;
    for _ in 0..9 {
        mantissa = (mantissa * mantissa) >> 63;
        let carry = u32::from(mantissa >> 64 != 0);
        mantissa >>= carry;
        steps = (steps << 1) | carry;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IEEE 1588-2019, table 5: 20 is 25 ns, 21 is 100 ns, 23 is 1 us, 2F is 1 s, 30 is 10 s.
    #[test]
    fn accuracies_of_the_table() {
        for (code, span) in [
            (0x20, Span::from_nanos(25)),
            (0x21, Span::from_nanos(100)),
            (0x23, Span::from_micros(1)),
            (0x29, Span::from_millis(1)),
            (0x2f, Span::from_secs(1)),
            (0x30, Span::from_secs(10)),
        ] {
            assert_eq!(ClockAccuracy::of(Bound::of(span)), ClockAccuracy(code), "{span:?}");
            let back = ClockAccuracy(code).as_bound().unwrap();
            assert!(back >= Bound::of(span) && back.as_span() - span <= Span::from_units(2));
        }
        assert_eq!(ClockAccuracy::of(Bound::UNKNOWN), ClockAccuracy::BEYOND);
        for code in [0, 0x16, 0x31, 0x32, 0x7f, 0x80, 0xfe, 0xff] {
            assert_eq!(ClockAccuracy(code).as_bound(), None);
        }
    }

    #[test]
    fn a_claim_is_never_below_the_bound() {
        for nanos in [0, 1, 3, 99, 101, 12_345, 1_000_001, 999_999_999] {
            let bound = Bound::of(Span::from_nanos(nanos));
            assert!(ClockAccuracy::of(bound).as_bound().unwrap() >= bound);
        }
    }

    /// IEEE 1588-2019, 7.6.3.3: a variance of 1.414e-15 s^2 is 0x4EAC. Ours is rounded up.
    #[test]
    fn the_variance_of_the_standard() {
        let deviation = StandardUncertainty::of(Span::from_units(693_656_447_260)); // sqrt(1.414e-15) s
        assert_eq!(ScaledVariance::of(deviation), ScaledVariance(0x4eac));
        assert_eq!(ScaledVariance::of(StandardUncertainty::ZERO), ScaledVariance(1));
        assert_eq!(ScaledVariance::of(StandardUncertainty::of(Span::from_secs(1))), ScaledVariance(0x8001));
        assert_eq!(ScaledVariance::of(StandardUncertainty::of(Span::MAX)), ScaledVariance(0xfdff + 1));
        let coarse = |steps| ScaledVariance(steps).coarse().0;
        assert_eq!([0, 1, 0x4e5d, 0x4f00, 0xff01, 0xffff].map(coarse), [0, 0x100, 0x4f00, 0x4f00, 0xff01, 0xffff]);
    }
}
