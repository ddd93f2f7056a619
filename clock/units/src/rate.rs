//! Dimensionless rates.

use core::ops::{Add, Neg, Sub};

/// A relative rate or rate error, s/s: 1e-6 is one part per million. It has no bare form:
/// ```compile_fail
/// use ffclock_units::Rate;
/// let _: f64 = Rate::from_ppm(1.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Default)]
pub struct Rate(f64);

impl Rate {
    /// No deviation.
    pub const ZERO: Rate = Rate(0.0);

    /// From parts per one (s/s).
    pub const fn from_fraction(fraction: f64) -> Self {
        Rate(fraction)
    }

    /// From parts per million (us/s).
    pub const fn from_ppm(ppm: f64) -> Self {
        Rate(ppm * 1e-6)
    }

    /// From parts per billion (ns/s).
    pub const fn from_ppb(ppb: f64) -> Self {
        Rate(ppb * 1e-9)
    }

    /// In parts per one (s/s).
    pub const fn as_fraction(self) -> f64 {
        self.0
    }

    /// In parts per million (us/s).
    pub const fn as_ppm(self) -> f64 {
        self.0 * 1e6
    }

    /// In parts per billion (ns/s).
    pub const fn as_ppb(self) -> f64 {
        self.0 * 1e9
    }

    /// The form in which an error or a bound is shown: its size in two figures, rounded up so that it claims no less.
    #[must_use]
    pub fn to_two_figures(self) -> Rate {
        let size = self.0.abs();
        if size == 0.0 || !size.is_finite() {
            return Rate(size);
        }
        let mut unit = 1e-9;
        while size >= 100.0 * unit {
            unit *= 10.0;
        }
        while size < 10.0 * unit {
            unit /= 10.0;
        }
        let count = size / unit;
        let whole = count as u64;
        // A binary fraction does not hold two decimal figures: what lies a rounding above them is meant to be them.
        let up = if count - whole as f64 > 1e-9 { whole + 1 } else { whole };
        Rate(up as f64 * unit)
    }

    /// The size of the deviation.
    #[must_use]
    pub const fn abs(self) -> Rate {
        Rate(self.0.abs())
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0 + other.0)
    }
}

impl Sub for Rate {
    type Output = Rate;
    fn sub(self, other: Rate) -> Rate {
        Rate(self.0 - other.0)
    }
}

impl Neg for Rate {
    type Output = Rate;
    fn neg(self) -> Rate {
        Rate(-self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_in_two_figures_and_never_less_than_it_is() {
        for (ppb, shown) in [
            (200_498.7, 210_000.0),
            (200_000.0, 200_000.0),
            (20.0, 20.0),
            (-37.2, 38.0),
            (99.5, 100.0),
            (9.41, 9.5),
            (0.0123, 0.013),
        ] {
            let rate = Rate::from_ppb(ppb).to_two_figures().as_ppb();
            assert!((rate - shown).abs() < 1e-9 * shown, "{ppb}: {rate}");
        }
        assert_eq!(Rate::ZERO.to_two_figures(), Rate::ZERO);
        assert!(Rate::from_fraction(f64::NAN).to_two_figures().as_ppm().is_nan());
        assert!(Rate::from_fraction(f64::INFINITY).to_two_figures().as_ppm().is_infinite());
    }

    #[test]
    fn the_scales_agree() {
        assert_eq!(Rate::from_ppm(1.0).as_ppb(), 1000.0);
        assert!((Rate::from_ppb(500.0).as_ppm() - 0.5).abs() < 1e-12);
        assert!(((Rate::from_ppm(3.0) - Rate::from_ppm(5.0)).abs().as_ppm() - 2.0).abs() < 1e-12);
    }
}
