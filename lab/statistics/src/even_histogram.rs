//! Histograms with bins of equal width, bounded in memory.

use serde::{Deserialize, Serialize};

/// More bins than this become one: the overflow.
const BINS_MAX: u64 = 1 << 17;

/// Counts of non-negative whole numbers in bins of equal width. Two of the same width add up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvenHistogram {
    /// The width of a bin.
    pub width: u64,
    /// The number of values in `[i * width, (i + 1) * width)`, for each i.
    pub bins: Vec<u64>,
    /// The number of values beyond the last bin that is kept.
    pub overflow: u64,
}

impl EvenHistogram {
    /// No values yet. A width of 0 is taken as 1.
    pub fn new(width: u64) -> Self {
        EvenHistogram { width: width.max(1), bins: vec![], overflow: 0 }
    }

    /// Counts a value.
    #[inline]
    pub fn count(&mut self, value: u64) {
        let bin = value / self.width;
        if bin >= BINS_MAX {
            self.overflow += 1;
            return;
        }
        let bin = bin as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
    }

    /// The number of values that were counted.
    pub fn total(&self) -> u64 {
        self.bins.iter().sum::<u64>() + self.overflow
    }

    /// Adds the counts of another histogram of the same width.
    pub fn merge(&mut self, other: &EvenHistogram) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), 0);
        }
        for (bin, more) in self.bins.iter_mut().zip(&other.bins) {
            *bin += more;
        }
        self.overflow += other.overflow;
    }

    /// This less another of the same width that counted some of the same values.
    #[must_use]
    pub fn without(mut self, part: &EvenHistogram) -> Self {
        for (bin, less) in self.bins.iter_mut().zip(&part.bins) {
            *bin = bin.saturating_sub(*less);
        }
        self.overflow = self.overflow.saturating_sub(part.overflow);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_half_open_and_bounded() {
        let mut histogram = EvenHistogram::new(10);
        for value in [0, 9, 10, u64::MAX] {
            histogram.count(value);
        }
        assert_eq!((histogram.bins.as_slice(), histogram.overflow, histogram.total()), ([2, 1].as_slice(), 1, 4));
        let twice = {
            let mut twice = histogram.clone();
            twice.merge(&histogram);
            twice
        };
        assert_eq!(twice.without(&histogram), histogram);
    }
}
