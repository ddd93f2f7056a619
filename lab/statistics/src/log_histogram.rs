//! A histogram of sizes over many orders of magnitude, in little memory.

use crate::Spread;
use crate::rank::at_share;

/// Sizes below this have a count each; from there on, [`STEPS`] counts for each factor of two.
const EXACT: u64 = 2048;
const STEPS_LOG2: u32 = 10;
const STEPS: u64 = 1 << STEPS_LOG2;

/// Counts sizes. Percentiles are exact below 2048 and right to 1 part in 1024 above; the ends are always exact.
#[derive(Clone, Debug, Default)]
pub struct LogHistogram {
    counts: Vec<u64>,
    count: u64,
    ends: Option<(u64, u64)>,
}

impl LogHistogram {
    /// Counts one size.
    pub fn add(&mut self, size: u64) {
        let index = index_of(size);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
        self.count += 1;
        let (low, high) = self.ends.unwrap_or((size, size));
        self.ends = Some((low.min(size), high.max(size)));
    }

    /// Counts what another histogram has counted.
    pub fn merge(&mut self, other: &LogHistogram) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        let both = self.ends.zip(other.ends).map(|(mine, theirs)| (mine.0.min(theirs.0), mine.1.max(theirs.1)));
        self.ends = both.or(self.ends).or(other.ends);
    }

    /// The number of sizes that were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The figures; `None` if nothing was counted.
    pub fn spread(&self) -> Option<Spread> {
        let (low, high) = self.ends?;
        let inside = Spread::by(|share| self.percentile(share).clamp(low as f64, high as f64));
        // The ends are known, not only the middle of what shares a count with them.
        Some(Spread { min: low as f64, max: high as f64, ..inside })
    }

    /// Each size that was counted (above 2048 the middle of those that share a count), with its count; ascending.
    pub fn bins(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, count)| (middle_of(index), *count))
    }

    fn percentile(&self, share: f64) -> f64 {
        at_share(self.bins(), share, self.count).unwrap_or(0.0)
    }
}

fn index_of(size: u64) -> usize {
    if size < EXACT {
        return size as usize;
    }
    let exponent = size.ilog2();
    let step = (size >> (exponent - STEPS_LOG2)) - STEPS;
    (EXACT + u64::from(exponent - EXACT.ilog2()) * STEPS + step) as usize
}

/// The middle of the sizes that share a count.
fn middle_of(index: usize) -> f64 {
    let index = index as u64;
    if index < EXACT {
        return index as f64;
    }
    let (octave, step) = ((index - EXACT) / STEPS, (index - EXACT) % STEPS);
    let width = f64::from(1_u32 << (EXACT.ilog2() - STEPS_LOG2)) * (octave as f64).exp2();
    (STEPS + step) as f64 * width + width / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_known_numbers() {
        let mut histogram = LogHistogram::default();
        assert!(histogram.spread().is_none());
        (0..1000).for_each(|size| histogram.add(size));
        let spread = histogram.spread().unwrap();
        assert_eq!((spread.min, spread.p25, spread.median, spread.p75), (0.0, 249.0, 499.0, 749.0));
        assert_eq!((spread.p95, spread.p99, spread.p999, spread.max), (949.0, 989.0, 998.0, 999.0));
        let bins: Vec<_> = histogram.bins().map(|(size, count)| (size as u64, count)).collect();
        assert_eq!(bins[..2], [(0, 1), (1, 1)]);
        assert_eq!((bins.len(), histogram.count()), (1000, 1000));
    }

    #[test]
    fn two_histograms_merge_into_that_of_all_sizes() {
        let of = |sizes: &mut dyn Iterator<Item = u64>| {
            let mut histogram = LogHistogram::default();
            sizes.for_each(|size| histogram.add(size));
            histogram
        };
        let (low, high, all) = (of(&mut (0..500)), of(&mut (500..9000)), of(&mut (0..9000)));
        for (mut first, second) in [(low.clone(), &high), (high.clone(), &low)] {
            first.merge(second);
            assert_eq!((first.spread(), first.count()), (all.spread(), 9000));
        }
        let mut empty = LogHistogram::default();
        empty.merge(&low);
        empty.merge(&LogHistogram::default());
        assert_eq!(empty.spread(), low.spread());
    }

    #[test]
    fn every_size_has_a_place_that_is_near() {
        for exponent in 0..64 {
            for offset in [0, 1, 2, 5] {
                let size = (1_u64 << exponent).saturating_add(((1_u64 << exponent) / 7).saturating_mul(offset));
                let middle = middle_of(index_of(size));
                assert!((middle / size as f64 - 1.0).abs() <= 1.0 / 1024.0, "{size}: {middle}");
            }
        }
        assert!(index_of(u64::MAX) < 60_000);
    }
}
