//! A distribution in eight figures: its ends, its quartiles and its upper tail.

use crate::Sorted;
use serde::{Deserialize, Serialize};

/// The figures of a distribution, in the unit of its values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile.
    pub p75: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p999: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Every figure, changed by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Spread {
            min: change(self.min),
            p25: change(self.p25),
            median: change(self.median),
            p75: change(self.p75),
            p95: change(self.p95),
            p99: change(self.p99),
            p999: change(self.p999),
            max: change(self.max),
        }
    }

    /// The distance between the quartiles.
    pub fn iqr(&self) -> f64 {
        self.p75 - self.p25
    }

    /// The figures of a few values; `None` of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = Sorted::of(values.iter().copied());
        sorted.quantile(0.0)?;
        Some(Spread::by(|share| sorted.quantile(share).unwrap_or(f64::NAN)))
    }

    /// Each figure is the value at its share.
    pub(crate) fn by(at: impl Fn(f64) -> f64) -> Self {
        Spread {
            min: at(0.0),
            p25: at(0.25),
            median: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_few_values() {
        let few = Spread::of(&[3.0, 1.0, 5.0, 2.0, 4.0]).unwrap();
        assert_eq!((few.min, few.p25, few.median, few.p75, few.max), (1.0, 2.0, 3.0, 4.0, 5.0));
        assert_eq!(few.iqr(), 2.0);
        assert_eq!(few.map(|value| value * 2.0).p75, 8.0);
        assert!(Spread::of(&[]).is_none());
    }
}
