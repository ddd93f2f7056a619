//! Exact ratios of delays.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;

/// A ratio of two positive delays, compared exactly.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    over: u64,
    under: u64,
}

impl Ratio {
    /// One.
    pub const ONE: Ratio = Ratio { over: 1, under: 1 };

    /// `over / under`; `None` unless both are positive.
    #[inline]
    pub fn of(over: i64, under: i64) -> Option<Self> {
        let (over, under) = (u64::try_from(over).ok()?, u64::try_from(under).ok()?);
        (over > 0 && under > 0).then_some(Ratio { over, under })
    }

    /// The two delays, as they were given.
    pub const fn parts(self) -> (u64, u64) {
        (self.over, self.under)
    }

    /// The nearest float, about.
    #[inline]
    pub fn as_f64(self) -> f64 {
        // Delays fit signed numbers, of which floats are made in one step.
        self.over as i64 as f64 / self.under as i64 as f64
    }

    /// Whether this is larger.
    #[inline]
    pub fn exceeds(self, other: Ratio) -> bool {
        u128::from(self.over) * u128::from(other.under) > u128::from(other.over) * u128::from(self.under)
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (u128::from(self.over) * u128::from(other.under)).cmp(&(u128::from(other.over) * u128::from(self.under)))
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

/// A ratio as it is written: the two delays, and the float for those who only look.
#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(default)]
    value: f64,
    over_ps: i64,
    under_ps: i64,
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written { value: self.as_f64(), over_ps: self.over as i64, under_ps: self.under as i64 }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { over_ps, under_ps, .. } = Written::deserialize(deserializer)?;
        Ratio::of(over_ps, under_ps).ok_or_else(|| serde::de::Error::custom("a ratio has two positive parts"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_compare_exactly() {
        let big = i64::MAX;
        assert!(Ratio::of(big, big - 1) < Ratio::of(big - 1, big - 2));
        assert_eq!(Ratio::of(2, 4), Ratio::of(1, 2));
        assert_eq!(Ratio::of(0, 4), None);
        assert_eq!(Ratio::of(4, -1), None);
    }
}
