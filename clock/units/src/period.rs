//! How long one tick lasts.

use crate::{Rate, Span, Ticks};
use core::ops::Mul;

/// The length of one tick: `mantissa * 2^-(64 + shift)` s, the mantissa's top bit always set.
///
/// Its relative step is at most 2^-63 whatever the frequency. (A plain count of 2^-64 s, as in FreeBSD's `timeffc.h`,
/// has steps of 0.16 ppb at 3 GHz, up to 163 ns in 1000 s.)
/// ```compile_fail
/// use ffclock_units::Period;
/// let _ = Period::from_raw_units(6_148_914_691);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    mantissa: u64,
    shift: u8,
}

/// The slowest counter has one tick a second.
const LONGEST_S: f64 = 1.0;
/// The fastest counter has 2^60 ticks a second.
const SHORTEST_S: f64 = 1.0 / (1u64 << 60) as f64;

impl Period {
    /// From seconds per tick, in [2^-60, 1); `None` outside, and for NaN.
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        if !(SHORTEST_S..LONGEST_S).contains(&seconds) {
            return None;
        }
        let bits = seconds.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i32 - 1023;
        let significand = (bits & ((1 << 52) - 1)) | (1 << 52);
        debug_assert!((-60..0).contains(&exponent), "the range was checked, and no number in it is subnormal");
        Some(Period { mantissa: significand << 11, shift: (-1 - exponent) as u8 })
    }

    /// From ticks per second, in (1, 2^60]; `None` outside, and for NaN.
    pub fn from_hertz(hertz: f64) -> Option<Self> {
        Self::from_seconds(1.0 / hertz)
    }

    /// From the two parts as a page carries them; `None` unless the top bit of the mantissa is set and the shift is
    /// below 60.
    pub const fn from_parts(mantissa: u64, shift: u8) -> Option<Self> {
        if mantissa >> 63 == 1 && shift < 60 { Some(Period { mantissa, shift }) } else { None }
    }

    /// From the two parts of a period that was made by this type and kept whole since: nothing is checked, and a
    /// product with other parts means nothing.
    #[inline(always)]
    pub const fn from_kept_parts(mantissa: u64, shift: u8) -> Self {
        Period { mantissa, shift: shift & 63 }
    }

    /// How long `ticks` last, below 2^63 of either sign: the exact product rounded down to 2^-64 s.
    #[inline(always)]
    pub const fn times(self, ticks: i128) -> Span {
        Span::from_units(ticks.wrapping_mul(self.mantissa as i128) >> self.shift)
    }

    /// The 64-bit fraction; its top bit is set.
    pub const fn mantissa(self) -> u64 {
        self.mantissa
    }

    /// How many places the fraction is shifted down below 2^-64 s.
    pub const fn shift(self) -> u8 {
        self.shift
    }

    /// Seconds per tick, rounded to the nearest float.
    pub fn as_seconds(self) -> f64 {
        const STEP: f64 = 1.0 / 18_446_744_073_709_551_616.0;
        let scale = 1.0 / (1u64 << self.shift) as f64;
        self.mantissa as f64 * STEP * scale
    }

    /// Ticks per second.
    pub fn as_hertz(self) -> f64 {
        1.0 / self.as_seconds()
    }

    /// The period of the same counter when it runs slow by `rate`: `self * (1 + rate)`; unchanged where that is out of
    /// range.
    #[must_use]
    pub fn stretched(self, rate: Rate) -> Self {
        Self::from_seconds(self.as_seconds() * (1.0 + rate.as_fraction())).unwrap_or(self)
    }

    /// The relative difference to `other`: `(self - other) / other`.
    pub fn relative_to(self, other: Period) -> Rate {
        Rate::from_fraction(self.as_seconds() / other.as_seconds() - 1.0)
    }

    /// How many ticks `span` lasts, rounded to the nearest as far as a float holds them; saturates.
    pub fn ticks_in(self, span: Span) -> Ticks {
        let ticks = span.as_seconds() / self.as_seconds();
        Ticks::from_raw((ticks + if ticks < 0.0 { -0.5 } else { 0.5 }) as i64)
    }
}

impl Mul<Ticks> for Period {
    type Output = Span;
    /// Exact product rounded down to 2^-64 s.
    #[inline]
    fn mul(self, ticks: Ticks) -> Span {
        self.times(ticks.raw() as i128)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_ticks_lasts_a_second() {
        for hertz in [24_000_000.0, 1e9, 2.994e9, 3_579_545.0] {
            let period = Period::from_hertz(hertz).unwrap();
            let span = period * Ticks::from_raw(hertz as i64);
            assert!((span.as_seconds() - 1.0).abs() < 1e-15, "{hertz}: {span:?}");
            assert_eq!(period.ticks_in(span), Ticks::from_raw(hertz as i64));
        }
    }

    #[test]
    fn floats_convert_without_loss() {
        for seconds in [1e-9, 3.3e-10, 2.8e-7, 0.5, SHORTEST_S] {
            assert_eq!(Period::from_seconds(seconds).unwrap().as_seconds(), seconds);
        }
    }

    #[test]
    fn absurd_periods_are_refused() {
        for seconds in [0.0, -1e-9, 1.0, f64::NAN, f64::INFINITY, 1e-19] {
            assert_eq!(Period::from_seconds(seconds), None);
        }
        assert_eq!(Period::from_parts(1, 0), None);
        assert_eq!(Period::from_parts(1 << 63, 60), None);
    }

    #[test]
    fn the_product_is_exact_and_rounds_down() {
        let period = Period::from_parts(1 << 63, 1).unwrap();
        assert_eq!(period * Ticks::from_raw(3), Span::from_units(3 << 62));
        let odd = Period::from_parts((1 << 63) | 1, 1).unwrap();
        assert_eq!(odd * Ticks::from_raw(-1), Span::from_units(-(1 << 62) - 1));
    }

    #[test]
    fn stretching_follows_the_sign_of_the_rate() {
        let period = Period::from_hertz(1e9).unwrap();
        let slower = period.stretched(Rate::from_ppm(10.0));
        assert!((slower.relative_to(period).as_ppm() - 10.0).abs() < 1e-6);
    }
}
