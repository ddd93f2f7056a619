//! How far a clock may be off: errors, and the bounds on them.

use crate::{GrowthRate, Span};
use core::ops::{Add, AddAssign};

/// A non-negative limit on the size of an error, rounded up wherever it is rounded. It can grow, never shrink:
/// ```compile_fail
/// use ffclock_units::Bound;
/// let _ = Bound::ZERO - Bound::ZERO;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bound(Span);

/// Ours minus the reference: positive when our clock is ahead. What must be added to our clock is the opposite, and is
/// never held as an error:
/// ```compile_fail
/// use ffclock_units::{ClockError, Span};
/// let _ = -ClockError::new(Span::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClockError(Span);

impl Bound {
    /// No error is possible.
    pub const ZERO: Bound = Bound(Span::ZERO);
    /// Nothing is known.
    pub const UNKNOWN: Bound = Bound(Span::MAX);

    /// The size of `span`, whatever its sign.
    pub const fn of(span: Span) -> Self {
        Bound(span.abs())
    }

    /// From seconds as a float, rounded up; negative values and NaN give [`Bound::UNKNOWN`], never a small bound.
    pub fn from_seconds(seconds: f64) -> Self {
        if seconds < 0.0 {
            return Bound::UNKNOWN;
        }
        let span = Span::from_seconds(seconds);
        Bound(span + Span::from_units(1))
    }

    /// The limit as a span.
    pub const fn as_span(self) -> Span {
        self.0
    }

    /// The limit in seconds, rounded to the nearest float.
    pub fn as_seconds(self) -> f64 {
        self.0.as_seconds()
    }

    /// The limit in nanoseconds, rounded up.
    pub const fn as_nanos_up(self) -> u128 {
        let units = self.0.units();
        let whole = units >> 64;
        let rest = units & 0xffff_ffff_ffff_ffff;
        (whole as u128).saturating_mul(1_000_000_000) + ((rest as u128 * 1_000_000_000).div_ceil(1 << 64))
    }

    /// This bound after `age` of growth, rounded up. Age counts in both directions from the reference.
    #[must_use]
    pub fn grown(self, age: Span, growth: GrowthRate) -> Self {
        self + growth.over(age)
    }

    /// Half the bound, rounded up.
    #[must_use]
    pub const fn halved(self) -> Self {
        Bound(Span::from_units((self.0.units() >> 1) + (self.0.units() & 1)))
    }

    /// Whether an error of this size lies within the bound.
    pub const fn contains(self, error: ClockError) -> bool {
        error.0.abs().units() <= self.0.units()
    }
}

impl Add for Bound {
    type Output = Bound;
    fn add(self, other: Bound) -> Bound {
        Bound(self.0 + other.0)
    }
}

impl AddAssign for Bound {
    fn add_assign(&mut self, other: Bound) {
        *self = *self + other;
    }
}

impl ClockError {
    /// `ours_minus_reference` is positive when we are ahead.
    pub const fn new(ours_minus_reference: Span) -> Self {
        ClockError(ours_minus_reference)
    }

    /// Ours minus the reference.
    pub const fn as_span(self) -> Span {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;

    #[test]
    fn bounds_round_up() {
        assert!(Bound::from_seconds(1e-9).as_span() > Span::from_seconds(1e-9));
        assert_eq!(Bound::of(Span::from_units(1)).as_nanos_up(), 1);
        assert_eq!(Bound::of(Span::from_units(3)).halved(), Bound::of(Span::from_units(2)));
        assert_eq!(Bound::of(-Span::from_secs(2)).as_nanos_up(), 2_000_000_000);
    }

    #[test]
    fn what_makes_no_sense_is_unknown_not_small() {
        assert_eq!(Bound::from_seconds(f64::NAN), Bound::UNKNOWN);
        assert_eq!(Bound::from_seconds(-1.0), Bound::UNKNOWN);
        assert_eq!(Bound::UNKNOWN + Bound::UNKNOWN, Bound::UNKNOWN);
    }

    #[test]
    fn a_bound_grows_on_both_sides_of_its_reference() {
        let grown = Bound::ZERO.grown(Span::from_secs(-10), GrowthRate::of(Rate::from_ppm(1.0)));
        assert!(grown >= Bound::of(Span::from_micros(10)));
        assert!(grown < Bound::of(Span::from_micros(11)));
    }

    #[test]
    fn an_error_lies_within_its_bound_or_outside() {
        let ahead = ClockError::new(Span::from_micros(3));
        assert!(Bound::of(Span::from_micros(3)).contains(ahead));
        assert!(!Bound::of(Span::from_micros(2)).contains(ahead));
    }
}
