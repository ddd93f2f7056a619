//! The distribution of many errors in little memory.
//!
//! Up to a million values are kept and their percentiles are exact. From then on they are counted in a histogram with
//! 4096 steps an octave on either side of zero, so that a percentile is right to 1 part in 8192 (0.012 %). The largest
//! size and the root mean square are always exact.

use crate::Sorted;
use crate::signed_histogram::SignedHistogram;
use serde::Serialize;

/// At most this many values are kept.
const EXACT_MAX: usize = 1_000_000;

/// The figures of a distribution of errors, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorFigures {
    /// The number of values.
    pub count: u64,
    /// The median.
    pub median: f64,
    /// The distance between the quartiles.
    pub iqr: f64,
    /// The first percentile.
    pub p1: f64,
    /// The lower quartile.
    pub p25: f64,
    /// The upper quartile.
    pub p75: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest size.
    pub max_abs: f64,
    /// The root mean square.
    pub rms: f64,
}

/// Collects errors, in seconds.
#[derive(Default)]
pub struct ErrorDistribution {
    values: Vec<f64>,
    histogram: Option<SignedHistogram>,
    count: u64,
    max_abs: f64,
    sum_of_squares: f64,
}

impl ErrorDistribution {
    /// Takes one value, in seconds.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        self.max_abs = self.max_abs.max(value.abs());
        self.sum_of_squares += value * value;
        match &mut self.histogram {
            Some(histogram) => histogram.add(value),
            None if self.values.len() < EXACT_MAX => self.values.push(value),
            None => {
                let mut histogram = SignedHistogram::new();
                std::mem::take(&mut self.values).into_iter().for_each(|value| histogram.add(value));
                histogram.add(value);
                self.histogram = Some(histogram);
            }
        }
    }

    /// The figures; `None` of no values.
    pub fn figures(&self) -> Option<ErrorFigures> {
        if self.count == 0 {
            return None;
        }
        let sorted = Sorted::of(self.values.iter().copied());
        let percentile = |share: f64| match &self.histogram {
            Some(histogram) => histogram.percentile(share, self.count),
            None => sorted.quantile(share).unwrap_or(f64::NAN),
        };
        let (p25, p75) = (percentile(0.25), percentile(0.75));
        Some(ErrorFigures {
            count: self.count,
            median: percentile(0.5),
            iqr: p75 - p25,
            p1: percentile(0.01),
            p25,
            p75,
            p99: percentile(0.99),
            max_abs: self.max_abs,
            rms: (self.sum_of_squares / self.count as f64).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: numpy.percentile(range(1, 6), [1, 25, 50, 75, 99]).
    #[test]
    fn few_values_have_exact_percentiles() {
        let mut distribution = ErrorDistribution::default();
        assert_eq!(distribution.figures(), None);
        [3.0, -1.0, 5.0, 2.0, 4.0].iter().for_each(|value| distribution.add(value * 1.0));
        let figures = distribution.figures().unwrap();
        assert_eq!((figures.median, figures.p25, figures.p75, figures.iqr), (3.0, 2.0, 4.0, 2.0));
        assert!((figures.p1 - -0.88).abs() < 1e-12 && (figures.p99 - 4.96).abs() < 1e-12);
        assert_eq!((figures.max_abs, figures.rms), (5.0, 11f64.sqrt()));
    }

    #[test]
    fn many_values_are_right_to_the_stated_resolution() {
        let mut distribution = ErrorDistribution::default();
        let count = 1_500_001u64;
        for number in 0..count {
            let share = ((number * 700_001) % count) as f64 / (count - 1) as f64;
            distribution.add(share * 3e-6 - 1e-6);
        }
        assert!(distribution.values.capacity() == 0 && distribution.histogram.is_some());
        let figures = distribution.figures().unwrap();
        let near = |value: f64, expected: f64| assert!((value / expected - 1.0).abs() < 2e-4, "{value} {expected}");
        near(figures.median, 0.5e-6);
        near(figures.p25, -0.25e-6);
        near(figures.p75, 1.25e-6);
        near(figures.p99, 1.97e-6);
        near(figures.max_abs, 2e-6);
    }
}
