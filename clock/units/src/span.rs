//! Lengths of time.

use core::ops::{Add, AddAssign, Neg, Sub, SubAssign};

/// A length of time in units of 2^-64 s, of either sign, over +-9.2e18 s.
///
/// A span never comes from a number without a unit:
/// ```compile_fail
/// use ffclock_units::Span;
/// let _: Span = 5.into();
/// ```
/// Arithmetic saturates; nothing panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i128);

const PER_SECOND: i128 = 1 << 64;
const PER_SECOND_F64: f64 = 18_446_744_073_709_551_616.0;

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span.
    pub const MAX: Span = Span(i128::MAX);

    /// From a count of 2^-64 s.
    pub const fn from_units(units: i128) -> Self {
        Span(units)
    }

    /// The count of 2^-64 s.
    pub const fn units(self) -> i128 {
        self.0
    }

    /// From whole seconds.
    pub const fn from_secs(seconds: i64) -> Self {
        Span((seconds as i128) << 64)
    }

    /// From nanoseconds; exact to 2^-64 s, rounded down.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self::from_fraction(nanos, 1_000_000_000)
    }

    /// From microseconds; exact to 2^-64 s, rounded down.
    pub const fn from_micros(micros: i64) -> Self {
        Self::from_fraction(micros as i128, 1_000_000)
    }

    /// From milliseconds; exact to 2^-64 s, rounded down.
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_fraction(millis as i128, 1_000)
    }

    /// `numerator / denominator` seconds, rounded down. `denominator` is a positive number of parts per second below
    /// 2^62.
    pub(crate) const fn from_fraction(numerator: i128, denominator: i128) -> Self {
        debug_assert!(denominator > 0 && denominator < 1 << 62, "parts per second");
        let whole = numerator.div_euclid(denominator);
        let rest = numerator.rem_euclid(denominator);
        Span(whole.saturating_mul(PER_SECOND).saturating_add(rest * PER_SECOND / denominator))
    }

    /// From seconds as a float. What is too large saturates; NaN becomes the longest span, so that a fault is seen.
    pub fn from_seconds(seconds: f64) -> Self {
        if seconds.is_nan() { Span::MAX } else { Span((seconds * PER_SECOND_F64) as i128) }
    }

    /// In seconds, rounded to the nearest float.
    pub fn as_seconds(self) -> f64 {
        self.units_as_f64() / PER_SECOND_F64
    }

    /// The count of units, rounded once. A 128-bit conversion is a call into a library; spans below 128 s go through a
    /// register.
    fn units_as_f64(self) -> f64 {
        if self.0 as i64 as i128 == self.0 {
            return self.0 as i64 as f64;
        }
        let shortened = self.0 >> 8;
        if shortened as i64 as i128 != shortened {
            return self.0 as f64;
        }
        // At least 55 bits are left: two more than a float holds. With the lowest one set where bits were lost, the
        // rounding is the same.
        let lost = self.0 & 0xff != 0;
        (shortened as i64 | lost as i64) as f64 * 256.0
    }

    /// In whole nanoseconds, rounded to the nearest (halves up).
    pub const fn as_nanos(self) -> i128 {
        let whole = self.0.div_euclid(PER_SECOND);
        let rest = self.0.rem_euclid(PER_SECOND);
        whole * 1_000_000_000 + ((rest * 1_000_000_000 + PER_SECOND / 2) >> 64)
    }

    /// Half the span, rounded down.
    #[must_use]
    pub const fn halved(self) -> Span {
        Span(self.0 >> 1)
    }

    /// The span without its sign.
    #[must_use]
    pub const fn abs(self) -> Span {
        Span(self.0.saturating_abs())
    }

    /// Whether the span is below zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Neg for Span {
    type Output = Span;
    fn neg(self) -> Span {
        Span(self.0.saturating_neg())
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nanoseconds_survive_the_round_trip() {
        for nanos in [0, 1, -1, 999_999_999, -999_999_999, 1_700_000_000_123_456_789_i128] {
            assert_eq!(Span::from_nanos(nanos).as_nanos(), nanos);
        }
    }

    #[test]
    fn floats_saturate_and_never_hide_a_nan() {
        assert_eq!(Span::from_seconds(f64::INFINITY), Span::MAX);
        assert_eq!(Span::from_seconds(f64::NAN), Span::MAX);
        assert_eq!(Span::from_seconds(-0.5), -Span::from_millis(500));
        assert_eq!(Span::from_millis(250).as_seconds(), 0.25);
    }

    #[test]
    fn halving_rounds_down() {
        assert_eq!(Span::from_units(-3).halved(), Span::from_units(-2));
        assert_eq!(Span::from_units(3).halved(), Span::from_units(1));
    }
}
