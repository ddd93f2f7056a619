//! How many readings are distributed, in little memory: min, quartiles, the upper tail, max.

use serde::{Deserialize, Serialize};

/// Sizes below this have a count each; from there on, [`STEPS`] counts for each factor of two.
const EXACT: u64 = 2048;
const STEPS_LOG2: u32 = 10;
const STEPS: u64 = 1 << STEPS_LOG2;

/// Counts sizes. Percentiles are exact below 2048 and right to 1 part in 1024 above; the ends are always exact.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    ends: Option<(u64, u64)>,
}

/// The figures of a distribution, in the unit of what was counted.
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

    /// The figures of a few values; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sorted = Sorted::of(values.iter().copied());
        sorted.quantile(0.0)?;
        Some(Spread::by(|share| sorted.quantile(share).unwrap_or(f64::NAN)))
    }

    /// The figures, each the value at its share of all.
    fn by(at: impl Fn(f64) -> f64) -> Self {
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

/// The value below which `share` of a few values lies, as [`Sorted::quantile`] has it; `None` of none.
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    Sorted::of(values.iter().copied()).quantile(share)
}

impl Histogram {
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

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The figures; `None` of nothing.
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

    /// The size at which `share` of all is reached.
    fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.count.saturating_sub(1) as f64) as u64;
        let mut before = 0;
        let found = self.counts.iter().position(|count| {
            before += count;
            before > rank
        });
        found.map_or(0.0, middle_of)
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

/// Values in order, of which any share can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// The values, put in order.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Sorted(values)
    }

    /// The value at `share` (0 to 1) of the way: linear interpolation between order statistics (Hyndman and Fan's type
    /// 7); `None` of nothing.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let last = self.0.len().checked_sub(1)?;
        let place = share * last as f64;
        let (low, high) = (self.0[place as usize], self.0[(place as usize + 1).min(last)]);
        Some(low + (high - low) * place.fract())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values: numpy.percentile of the same numbers.
    #[test]
    fn quantiles_interpolate() {
        let values = Sorted::of([4.0, 1.0, 2.0]);
        assert_eq!(values.quantile(0.5), Some(2.0));
        assert_eq!(values.quantile(0.75), Some(3.0));
        assert_eq!(Sorted::of([]).quantile(0.5), None);
    }

    #[test]
    fn the_figures_of_known_numbers() {
        let mut histogram = Histogram::default();
        (0..1000).for_each(|size| histogram.add(size));
        let spread = histogram.spread().unwrap();
        assert_eq!((spread.min, spread.p25, spread.median, spread.p75), (0.0, 249.0, 499.0, 749.0));
        assert_eq!(
            histogram.bins().map(|(size, count)| (size as u64, count)).collect::<Vec<_>>()[..2],
            [(0, 1), (1, 1)]
        );
        assert_eq!((spread.p95, spread.p99, spread.p999, spread.max), (949.0, 989.0, 998.0, 999.0));
        let few = Spread::of(&[3.0, 1.0, 5.0, 2.0, 4.0]).unwrap();
        assert_eq!((few.min, few.p25, few.median, few.p75, few.max), (1.0, 2.0, 3.0, 4.0, 5.0));
        assert_eq!((percentile(&[3.0, 1.0, 2.0], 0.5), percentile(&[1.0, 2.0], 0.1)), (Some(2.0), Some(1.1)));
        assert!(Spread::of(&[]).is_none() && percentile(&[], 0.5).is_none() && Histogram::default().spread().is_none());
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
