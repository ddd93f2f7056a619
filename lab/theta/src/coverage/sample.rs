//! Values with weights, each of a round, asked again and again with the rounds drawn again.

use super::BoundBasis;
use crate::analysis::{TailFit, fit_tail};

/// As many of the largest values are fitted at most.
const EXTREMES_MAX: usize = 4096;

/// How often each round was drawn; all once in the run as it is.
pub(super) type Draws = [u32];

#[derive(Clone, Copy, Debug)]
struct SampleEntry {
    value: f64,
    weight: f64,
    round: usize,
}

/// A value for each part of a run, the largest first.
pub(super) struct WeightedSample {
    entries: Vec<SampleEntry>,
    /// The weight of each round.
    totals: Vec<f64>,
}

/// A bound that a share of the rounds keeps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AssumedBound {
    pub(super) value: f64,
    pub(super) basis: BoundBasis,
}

impl WeightedSample {
    /// Of (value, weight, round).
    pub(super) fn of(parts: impl Iterator<Item = (f64, f64, usize)>, rounds: usize) -> Self {
        let mut entries: Vec<SampleEntry> =
            parts.map(|(value, weight, round)| SampleEntry { value, weight, round }).collect();
        entries.sort_unstable_by(|one, other| other.value.total_cmp(&one.value));
        let mut totals = vec![0.0; rounds];
        entries.iter().for_each(|entry| totals[entry.round] += entry.weight);
        WeightedSample { entries, totals }
    }

    fn total(&self, draws: &Draws) -> f64 {
        self.totals.iter().zip(draws).map(|(total, &times)| total * f64::from(times)).sum()
    }

    /// The share of the weight whose value is larger than each of `bounds`, which fall.
    pub(super) fn failing(&self, bounds: &[f64], draws: &Draws) -> Vec<f64> {
        let total = self.total(draws);
        let (mut entries, mut failing) = (self.entries.iter().peekable(), 0.0);
        let above = |&bound: &f64| {
            while let Some(entry) = entries.next_if(|entry| entry.value > bound) {
                failing += entry.weight * f64::from(draws[entry.round]);
            }
            if total > 0.0 { failing / total } else { 0.0 }
        };
        bounds.iter().map(above).collect()
    }

    /// For each share of `exceeding`, which rise: the smallest bound that no larger a share of the rounds breaks. Where
    /// the share is below one round, the tail of the values is continued; the bound is then no less than the largest
    /// of them.
    pub(super) fn assumed(&self, exceeding: &[f64], draws: &Draws) -> Vec<AssumedBound> {
        let total = self.total(draws);
        let mut entries = self.entries.iter().filter(|entry| draws[entry.round] > 0);
        let Some(largest) = entries.next() else { return vec![] };
        let (mut value, mut above) = (largest.value, largest.weight * f64::from(draws[largest.round]));
        let mut tail = None;
        let bound = |&share: &f64| {
            // A share of whole rounds is not to fall short of them by rounding.
            let allowed = share * total * (1.0 + 1e-12);
            if allowed < 1.0 {
                return tail.get_or_insert_with(|| self.tail(draws)).bound(share);
            }
            while above <= allowed {
                let Some(entry) = entries.next() else { break };
                value = entry.value;
                above += entry.weight * f64::from(draws[entry.round]);
            }
            AssumedBound { value, basis: BoundBasis::Measured }
        };
        exceeding.iter().map(bound).collect()
    }

    fn tail(&self, draws: &Draws) -> SampleTail {
        let again = |entry: &SampleEntry| std::iter::repeat_n(entry.value, draws[entry.round] as usize);
        let extremes: Vec<f64> = self.entries.iter().flat_map(again).take(EXTREMES_MAX).collect();
        let rounds = draws.iter().map(|&times| u64::from(times)).sum();
        SampleTail { largest: extremes.first().copied().unwrap_or(f64::NAN), fit: fit_tail(&extremes, rounds) }
    }
}

/// The largest value, and what may follow it.
struct SampleTail {
    largest: f64,
    fit: Option<TailFit>,
}

impl SampleTail {
    fn bound(&self, share: f64) -> AssumedBound {
        let Some(fit) = &self.fit else { return AssumedBound { value: self.largest, basis: BoundBasis::Largest } };
        AssumedBound { value: fit.return_level(1.0 / share).max(self.largest), basis: BoundBasis::TailFit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> WeightedSample {
        WeightedSample::of(values.iter().enumerate().map(|(round, &value)| (value, 1.0, round)), values.len())
    }

    #[test]
    fn the_bound_is_the_smallest_that_the_share_keeps() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        let bounds = |draws: &Draws| -> Vec<f64> {
            sample(&values).assumed(&[0.01, 0.1, 0.5], draws).iter().map(|bound| bound.value).collect()
        };
        assert_eq!(bounds(&[1; 100]), [99.0, 90.0, 50.0]);
        // The largest ten twice, the smallest ten not at all.
        let mut draws = [1; 100];
        draws[..10].fill(0);
        draws[90..].fill(2);
        assert_eq!(bounds(&draws), [100.0, 95.0, 60.0]);
        assert_eq!(sample(&values).failing(&[90.0, 50.0], &draws), [0.2, 0.6]);
    }

    #[test]
    fn beyond_the_run_the_tail_goes_on() {
        // The quantiles of an exponential law, whose tail has shape 0: at share p it is at -ln p.
        let values: Vec<f64> = (0..4000).map(|place| -((f64::from(place) + 0.5) / 4000.0).ln()).collect();
        let [rare, measured] = sample(&values).assumed(&[1e-5, 1e-2], &[1; 4000])[..] else { panic!("two") };
        assert_eq!((rare.basis, measured.basis), (BoundBasis::TailFit, BoundBasis::Measured));
        assert!((rare.value / -1e-5f64.ln() - 1.0).abs() < 0.05, "{rare:?}");
        assert!((measured.value / -1e-2f64.ln() - 1.0).abs() < 0.01, "{measured:?}");
        let few = sample(&values[..100]).assumed(&[1e-5], &[1; 100]);
        assert_eq!(few, [AssumedBound { value: values[0], basis: BoundBasis::Largest }]);
    }

    #[test]
    fn equal_values_break_a_bound_together() {
        let ties = sample(&[3.0, 2.0, 2.0, 2.0, 1.0]);
        assert_eq!(ties.assumed(&[0.4], &[1; 5])[0].value, 2.0);
        assert_eq!(ties.failing(&[2.0], &[1; 5]), [0.2]);
    }
}
