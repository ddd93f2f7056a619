//! Raw counter readings and the distances between them.

use core::ops::{Add, Neg, Sub};

/// A raw reading of a free-running counter, in ticks since an arbitrary origin of one counter epoch.
///
/// Readings subtract to [`Ticks`] and never add:
/// ```compile_fail
/// use ffclock_units::Counter;
/// let _ = Counter::from_raw(1) + Counter::from_raw(2);
/// ```
/// A reading is not a number of ticks:
/// ```compile_fail
/// use ffclock_units::{Counter, Ticks};
/// let _: Ticks = Counter::from_raw(1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Counter(u64);

/// A distance between two counter readings of the same epoch, in ticks; negative when the first was taken earlier.
///
/// Ticks become time only through a [`Period`](crate::Period):
/// ```compile_fail
/// use ffclock_units::{Span, Ticks};
/// let _: Span = Ticks::from_raw(1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(i64);

/// Names one uninterrupted run of a counter. Readings of different epochs say nothing about each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CounterEpoch(u64);

impl Counter {
    /// Wraps a value as the hardware gave it.
    pub const fn from_raw(ticks: u64) -> Self {
        Counter(ticks)
    }

    /// The value as the hardware gave it.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether this reading was taken after `other`, correct across one turn of the 64-bit counter.
    pub const fn is_after(self, other: Counter) -> bool {
        (self.0.wrapping_sub(other.0) as i64) > 0
    }
}

impl Sub for Counter {
    type Output = Ticks;
    fn sub(self, earlier: Counter) -> Ticks {
        Ticks(self.0.wrapping_sub(earlier.0) as i64)
    }
}

impl Add<Ticks> for Counter {
    type Output = Counter;
    fn add(self, distance: Ticks) -> Counter {
        Counter(self.0.wrapping_add(distance.0 as u64))
    }
}

impl Sub<Ticks> for Counter {
    type Output = Counter;
    fn sub(self, distance: Ticks) -> Counter {
        Counter(self.0.wrapping_sub(distance.0 as u64))
    }
}

impl Ticks {
    /// No distance.
    pub const ZERO: Ticks = Ticks(0);

    /// Wraps a number of ticks.
    pub const fn from_raw(ticks: i64) -> Self {
        Ticks(ticks)
    }

    /// The number of ticks.
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// The number of ticks as a float; exact up to 2^53 (34 days at 3 GHz).
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The distance without its sign; the most negative value saturates.
    pub const fn abs(self) -> Ticks {
        Ticks(self.0.saturating_abs())
    }

    /// Half the distance, rounded towards negative infinity.
    pub const fn halved(self) -> Ticks {
        Ticks(self.0 >> 1)
    }
}

impl Add for Ticks {
    type Output = Ticks;
    fn add(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_add(other.0))
    }
}

impl Sub for Ticks {
    type Output = Ticks;
    fn sub(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(other.0))
    }
}

impl Neg for Ticks {
    type Output = Ticks;
    fn neg(self) -> Ticks {
        Ticks(self.0.saturating_neg())
    }
}

impl CounterEpoch {
    /// Wraps the number of an epoch.
    pub const fn from_raw(number: u64) -> Self {
        CounterEpoch(number)
    }

    /// The number of the epoch.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The epoch that follows this one.
    #[must_use]
    pub const fn next(self) -> Self {
        CounterEpoch(self.0.wrapping_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_survives_a_turn_of_the_counter() {
        let before = Counter::from_raw(u64::MAX - 9);
        let after = before + Ticks::from_raw(30);
        assert_eq!(after.raw(), 20);
        assert_eq!(after - before, Ticks::from_raw(30));
        assert_eq!(before - after, Ticks::from_raw(-30));
        assert!(after.is_after(before) && !before.is_after(after));
    }

    #[test]
    fn ticks_saturate_instead_of_wrapping() {
        let most = Ticks::from_raw(i64::MAX);
        assert_eq!(most + Ticks::from_raw(1), most);
        assert_eq!(Ticks::from_raw(i64::MIN).abs(), most);
        assert_eq!(-Ticks::from_raw(i64::MIN), most);
    }
}
