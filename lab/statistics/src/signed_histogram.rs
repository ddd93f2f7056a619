//! A histogram of signed values over many orders of magnitude, by the leading bits of the floats themselves.

use crate::rank::at_share;

/// Steps within a factor of two: the leading 12 bits of the fraction of a float.
const STEPS_LOG2: u32 = 12;
/// Sizes below 2^-70 s count as zero, those from 2^66 s on as the largest step.
const LOWEST_EXPONENT: i64 = -70;
const OCTAVES: i64 = 136;
const STEPS: usize = (OCTAVES as usize) << STEPS_LOG2;

/// Counts values by sign and size. Percentiles are right to 1 part in 8192.
pub(crate) struct SignedHistogram {
    negative: Vec<u64>,
    zero: u64,
    positive: Vec<u64>,
}

impl SignedHistogram {
    pub(crate) fn new() -> Self {
        SignedHistogram { negative: vec![0; STEPS], zero: 0, positive: vec![0; STEPS] }
    }

    /// Counts one value.
    pub(crate) fn add(&mut self, value: f64) {
        match step_of(value.abs()) {
            None => self.zero += 1,
            Some(step) if value < 0.0 => self.negative[step] += 1,
            Some(step) => self.positive[step] += 1,
        }
    }

    /// The middle of the step in which `share` of all `count` values is reached.
    pub(crate) fn percentile(&self, share: f64, count: u64) -> f64 {
        let negative = self.negative.iter().enumerate().rev().map(|(step, count)| (-middle_of(step), *count));
        let positive = self.positive.iter().enumerate().map(|(step, count)| (middle_of(step), *count));
        at_share(negative.chain([(0.0, self.zero)]).chain(positive), share, count).unwrap_or(0.0)
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

    #[test]
    fn zero_and_the_ends_have_their_places() {
        let mut histogram = SignedHistogram::new();
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
