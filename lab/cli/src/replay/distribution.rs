//! The distribution of many errors in little memory.
//!
//! Up to a million values are kept and their percentiles are exact. From then on they are counted in a histogram with 4096 steps an
//! octave on either side of zero, so that a percentile is right to 1 part in 8192 (0.012 %). The largest size and the root mean square
//! are always exact. The same values in the same order give the same figures.

use serde::Serialize;

/// How many values are kept.
const EXACT_MAX: usize = 1_000_000;
/// Steps within a factor of two: the leading 12 bits of the fraction of a float.
const STEPS_LOG2: u32 = 12;
/// Sizes below 2^-70 s count as zero, those from 2^66 s on as the largest step.
const LOWEST_EXPONENT: i64 = -70;
const OCTAVES: i64 = 136;
const STEPS: usize = (OCTAVES as usize) << STEPS_LOG2;

/// The figures of a distribution of errors, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) count: u64,
    pub(super) median: f64,
    pub(super) iqr: f64,
    pub(super) p1: f64,
    pub(super) p25: f64,
    pub(super) p75: f64,
    pub(super) p99: f64,
    pub(super) max_abs: f64,
    pub(super) rms: f64,
}

/// Collects values.
#[derive(Default)]
pub(super) struct Distribution {
    values: Vec<f64>,
    histogram: Option<Histogram>,
    count: u64,
    max_abs: f64,
    sum_of_squares: f64,
}

impl Distribution {
    /// Takes one value, in seconds.
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        self.max_abs = self.max_abs.max(value.abs());
        self.sum_of_squares += value * value;
        match &mut self.histogram {
            Some(histogram) => histogram.add(value),
            None if self.values.len() < EXACT_MAX => self.values.push(value),
            None => {
                let mut histogram = Histogram::new();
                std::mem::take(&mut self.values).into_iter().for_each(|value| histogram.add(value));
                histogram.add(value);
                self.histogram = Some(histogram);
            }
        }
    }

    /// The figures; `None` of nothing.
    pub(super) fn figures(&self) -> Option<Figures> {
        if self.count == 0 {
            return None;
        }
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let percentile = |share: f64| match &self.histogram {
            Some(histogram) => histogram.percentile(share, self.count),
            None => interpolated(&sorted, share),
        };
        let (p25, p75) = (percentile(0.25), percentile(0.75));
        Some(Figures {
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

/// Between the two values next to `share` of the way, linearly (the definition that NumPy calls "linear").
fn interpolated(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place as usize;
    let low = sorted[below];
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * (place - below as f64)
}

/// Counts by sign and size.
struct Histogram {
    negative: Vec<u64>,
    zero: u64,
    positive: Vec<u64>,
}

impl Histogram {
    fn new() -> Self {
        Histogram { negative: vec![0; STEPS], zero: 0, positive: vec![0; STEPS] }
    }

    fn add(&mut self, value: f64) {
        match step_of(value.abs()) {
            None => self.zero += 1,
            Some(step) if value < 0.0 => self.negative[step] += 1,
            Some(step) => self.positive[step] += 1,
        }
    }

    /// The middle of the step in which `share` of the values is reached.
    fn percentile(&self, share: f64, count: u64) -> f64 {
        let rank = (share * (count - 1) as f64) as u64;
        let negative = self.negative.iter().enumerate().rev().map(|(step, count)| (-middle_of(step), *count));
        let positive = self.positive.iter().enumerate().map(|(step, count)| (middle_of(step), *count));
        let mut before = 0;
        let mut steps = negative.chain([(0.0, self.zero)]).chain(positive);
        steps
            .find(|(_, count)| {
                before += count;
                before > rank
            })
            .map_or(0.0, |(value, _)| value)
    }
}

/// The step of a size; `None` for what counts as zero.
fn step_of(size: f64) -> Option<usize> {
    let bits = (size.to_bits() >> (52 - STEPS_LOG2)) as i64;
    let step = bits - ((LOWEST_EXPONENT + 1023) << STEPS_LOG2);
    (step >= 0).then(|| (step as usize).min(STEPS - 1))
}

/// The middle of the sizes of a step.
fn middle_of(step: usize) -> f64 {
    let bits = step as i64 + ((LOWEST_EXPONENT + 1023) << STEPS_LOG2);
    let half_a_step = 1 << (51 - STEPS_LOG2);
    f64::from_bits((bits << (52 - STEPS_LOG2)) as u64 + half_a_step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: numpy.percentile(range(1, 6), [1, 25, 50, 75, 99]).
    #[test]
    fn few_values_have_exact_percentiles() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.figures(), None);
        [3.0, -1.0, 5.0, 2.0, 4.0].iter().for_each(|value| distribution.add(value * 1.0));
        let figures = distribution.figures().unwrap();
        assert_eq!((figures.median, figures.p25, figures.p75, figures.iqr), (3.0, 2.0, 4.0, 2.0));
        assert!((figures.p1 - -0.88).abs() < 1e-12 && (figures.p99 - 4.96).abs() < 1e-12);
        assert_eq!((figures.max_abs, figures.rms), (5.0, 11f64.sqrt()));
    }

    #[test]
    fn many_values_are_right_to_the_stated_resolution() {
        let mut distribution = Distribution::default();
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

    #[test]
    fn zero_and_the_ends_have_their_places() {
        let mut histogram = Histogram::new();
        [0.0, -0.0, 1e-300, f64::MAX, -1.0].iter().for_each(|value| histogram.add(*value));
        assert_eq!(histogram.zero, 3);
        assert_eq!((histogram.percentile(0.5, 5), histogram.percentile(0.0, 5)), (0.0, -1.0 - 1.0 / 8192.0));
    }

    #[test]
    fn a_step_holds_its_values() {
        for number in 0..100_000 {
            let size = 2f64.powi(number % 120 - 60) * (1.0 + f64::from(number) / 100_000.0);
            let middle = middle_of(step_of(size).unwrap());
            assert!((middle / size - 1.0).abs() <= 1.0 / 8192.0, "{size} {middle}");
        }
    }
}
