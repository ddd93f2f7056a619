//! The error estimate of a timestamp: how wrong it may be, in 16 bits (RFC 8762, section 4.2.1; RFC 4656, section
//! 4.1.2).
//!
//! One bit says whether the clock is synchronised, one the format of the timestamps, and the rest is a largest error:
//! `multiplier * 2^(scale - 32)` seconds. It is rounded up, so that what the other side computes with is never smaller
//! than our bound.

use ffclock_units::{Bound, Span};

const SYNCHRONISED: u16 = 0x8000;
const PTP: u16 = 0x4000;
const SCALE_SHIFT: u32 = 8;
const SCALE_MAX: u32 = 63;
const MULTIPLIER_MAX: i128 = 255;
/// The largest scale and the largest multiplier.
const LARGEST: u16 = (SCALE_MAX as u16) << SCALE_SHIFT | MULTIPLIER_MAX as u16;
/// From 2^-32 s to 2^-64 s, the unit of spans.
const FRACTION_SHIFT: u32 = 32;

/// The form of a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampForm {
    /// Seconds since 1900 UTC and a binary fraction.
    Ntp,
    /// Seconds since 1970 TAI and nanoseconds, as IEEE 1588 has them, truncated to 64 bits.
    Ptp,
}

/// An error estimate as it stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorEstimate(u16);

impl ErrorEstimate {
    /// From the 16 bits of the packet.
    pub const fn from_raw(bits: u16) -> Self {
        ErrorEstimate(bits)
    }

    /// The estimate of a clock that is synchronised, for timestamps whose error has no known limit: the largest that
    /// there is.
    pub const fn unknown() -> Self {
        ErrorEstimate(SYNCHRONISED | LARGEST)
    }

    /// Whether it is the largest that there is, which says nothing about the timestamps.
    pub const fn is_largest(self) -> bool {
        self.0 & LARGEST == LARGEST
    }

    /// The 16 bits of the packet.
    pub const fn raw(self) -> u16 {
        self.0
    }

    /// The estimate of a synchronised clock with NTP timestamps: the smallest that is not below `bound`.
    pub fn of(bound: Bound) -> Self {
        let units = bound.as_span().units();
        let fits = |scale: &u32| up(units, FRACTION_SHIFT + scale) <= MULTIPLIER_MAX;
        let scale = (0..SCALE_MAX).find(fits).unwrap_or(SCALE_MAX);
        let multiplier = up(units, FRACTION_SHIFT + scale).clamp(1, MULTIPLIER_MAX) as u16;
        ErrorEstimate(SYNCHRONISED | (scale as u16) << SCALE_SHIFT | multiplier)
    }

    /// The estimate of a clock that is not synchronised: the largest that there is.
    pub const fn unsynchronised() -> Self {
        ErrorEstimate(LARGEST)
    }

    /// Whether the clock says that it is synchronised to UTC by an external source (S).
    pub const fn is_synchronised(self) -> bool {
        self.0 & SYNCHRONISED != 0
    }

    /// The form of the timestamps of the packet (Z).
    pub const fn form(self) -> TimestampForm {
        if self.0 & PTP == 0 { TimestampForm::Ntp } else { TimestampForm::Ptp }
    }

    /// The largest error; `None` where the multiplier is 0, which is forbidden (RFC 4656, section 4.1.2: "MUST NOT").
    pub fn bound(self) -> Option<Bound> {
        let (scale, multiplier) = (u32::from(self.0 >> SCALE_SHIFT) & SCALE_MAX, i128::from(self.0 & 0xff));
        (multiplier > 0).then(|| Bound::of(Span::from_units(multiplier << (FRACTION_SHIFT + scale))))
    }
}

/// `units / 2^shift`, rounded up. `units` is not negative.
fn up(units: i128, shift: u32) -> i128 {
    (units >> shift) + i128::from(units & ((1 << shift) - 1) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_never_below_the_bound_and_seldom_far_above() {
        for exponent in 0..96 {
            for more in [0, 1, (1_i128 << exponent) / 3, (1 << exponent) - 1] {
                let bound = Bound::of(Span::from_units((1_i128 << exponent) + more));
                let estimate = ErrorEstimate::of(bound);
                let stated = estimate.bound().unwrap();
                assert!(estimate.is_synchronised() && stated >= bound, "{bound:?}: {stated:?}");
                // A step of the multiplier is at most 1/128 of it, or 2^-32 s.
                let slack = Span::from_units((bound.as_span().units() >> 7).max(1 << 32));
                assert!(stated.as_span() - bound.as_span() <= slack, "{bound:?}: {stated:?}");
            }
        }
    }

    #[test]
    fn the_ends_are_what_they_should_be() {
        assert_eq!(ErrorEstimate::of(Bound::ZERO).raw(), 0x8001);
        assert_eq!(ErrorEstimate::of(Bound::UNKNOWN).raw(), 0x8000 | 0x3fff);
        assert_eq!(ErrorEstimate::unknown(), ErrorEstimate::of(Bound::UNKNOWN));
        assert!(ErrorEstimate::unknown().is_largest() && ErrorEstimate::unsynchronised().is_largest());
        assert!(!ErrorEstimate::from_raw(0x8000 | 0x3ffe).is_largest());
        assert!(!ErrorEstimate::unsynchronised().is_synchronised());
        assert!(ErrorEstimate::from_raw(0x8000).bound().is_none());
        // RFC 4656, section 4.1.2: Error estimate = Multiplier*2^(-32)*2^Scale (in seconds).
        let second = ErrorEstimate::from_raw(0x2001).bound().unwrap();
        assert_eq!(second, Bound::of(Span::from_secs(1)));
        assert_eq!(ErrorEstimate::from_raw(0x4001).form(), TimestampForm::Ptp);
    }
}
