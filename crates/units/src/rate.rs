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
    fn the_scales_agree() {
        assert_eq!(Rate::from_ppm(1.0).as_ppb(), 1000.0);
        assert!((Rate::from_ppb(500.0).as_ppm() - 0.5).abs() < 1e-12);
        assert!(((Rate::from_ppm(3.0) - Rate::from_ppm(5.0)).abs().as_ppm() - 2.0).abs() < 1e-12);
    }
}
