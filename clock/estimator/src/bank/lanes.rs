//! Four numbers side by side, one for each of four models, so that the compiler may use registers of any width with the
//! same result.

use core::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

/// How many models share a register's worth of arithmetic.
pub const LANES: usize = 4;

/// One number for each model of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes(pub [f64; LANES]);

impl Lanes {
    pub const ZERO: Lanes = Lanes([0.0; LANES]);

    /// The same number for every model.
    pub const fn all(value: f64) -> Self {
        Lanes([value; LANES])
    }

    /// A function of each number.
    pub fn map(self, function: impl FnMut(f64) -> f64) -> Self {
        Lanes(self.0.map(function))
    }

    /// A function of two numbers of each model.
    #[inline(always)]
    pub fn zip(self, other: Lanes, function: impl Fn(f64, f64) -> f64) -> Self {
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (self.0, other.0);
        Lanes([function(a0, b0), function(a1, b1), function(a2, b2), function(a3, b3)])
    }

    /// The number of one model; NaN for a model that the group does not have.
    pub fn of(&self, lane: usize) -> f64 {
        debug_assert!(lane < LANES);
        self.0.get(lane).copied().unwrap_or(f64::NAN)
    }

    /// Replaces the number of one model.
    pub fn put(&mut self, lane: usize, value: f64) {
        debug_assert!(lane < LANES);
        if let Some(cell) = self.0.get_mut(lane) {
            *cell = value;
        }
    }
}

macro_rules! elementwise {
    ($trait:ident, $method:ident, $operator:tt) => {
        impl $trait for Lanes {
            type Output = Lanes;
            #[inline(always)]
            fn $method(self, other: Lanes) -> Lanes {
                self.zip(other, |a, b| a $operator b)
            }
        }
    };
}

elementwise!(Add, add, +);
elementwise!(Sub, sub, -);
elementwise!(Mul, mul, *);

impl Neg for Lanes {
    type Output = Lanes;
    fn neg(self) -> Lanes {
        self.map(|value| -value)
    }
}

impl AddAssign for Lanes {
    #[inline(always)]
    fn add_assign(&mut self, other: Lanes) {
        *self = *self + other;
    }
}

impl SubAssign for Lanes {
    #[inline(always)]
    fn sub_assign(&mut self, other: Lanes) {
        *self = *self - other;
    }
}
