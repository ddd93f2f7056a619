//! The uncertainty of a maximum: bootstrap over blocks, and a fit of the tail.
//!
//! Omega is a maximum and grows with the length of a run, so two runs compare by the largest ratio per fixed number of
//! messages, and the tail says what a longer run would show.

use ffclock_sim::Random;
use serde::Serialize;

/// The number of resamples.
const RESAMPLES: usize = 2000;
/// With fewer blocks an interval would mean nothing.
const BLOCKS_MIN: usize = 8;
/// With fewer excesses a fit would mean nothing.
const EXCESSES_MIN: usize = 30;
/// The share of the kept extremes that are fitted, at most: the tail begins somewhere among them.
const EXCESSES_SHARE: f64 = 0.1;

/// A mean with the interval in which 95 % of its resamples lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BootstrapInterval {
    /// Of the blocks as they are.
    pub mean: f64,
    /// 2.5 % of the resamples are smaller.
    pub low: f64,
    /// 2.5 % are larger.
    pub high: f64,
    /// How many blocks there were.
    pub blocks: usize,
}

/// The bootstrap interval of the mean of `values` (percentile method; Efron and Tibshirani 1993, chapter 13). `None`
/// for fewer than 8. The same values give the same interval.
pub fn bootstrap(values: &[f64]) -> Option<BootstrapInterval> {
    if values.len() < BLOCKS_MIN {
        return None;
    }
    let mut random = Random::named(values.len() as u64, "bootstrap");
    let mut draw = || values[(random.bits() % values.len() as u64) as usize];
    let count = values.len() as f64;
    let mut means: Vec<f64> = (0..RESAMPLES).map(|_| (0..values.len()).map(|_| draw()).sum::<f64>() / count).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| means[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some(BootstrapInterval {
        mean: values.iter().sum::<f64>() / count,
        low: at(0.025),
        high: at(0.975),
        blocks: values.len(),
    })
}

/// A generalised Pareto law for what lies above a threshold: P(X > u + y) = rate (1 + shape y / scale)^(-1/shape).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TailFit {
    /// Above which ratio the law was fitted.
    pub threshold: f64,
    /// How many ratios lie above it.
    pub excesses: usize,
    /// The share of all switches that they are.
    pub rate: f64,
    /// Negative: the ratio has an end. 0: it grows by the logarithm of the length. Positive: by a power of it.
    pub shape: f64,
    /// Of the excesses, as a ratio.
    pub scale: f64,
}

/// Fits the largest ratios by probability-weighted moments (Hosking and Wallis 1987, "Parameter and quantile
/// estimation for the generalized Pareto distribution", equation 7). `extremes` are the largest of `switches` ratios,
/// in any order. `None` for fewer than 30 excesses, or if they are all equal.
pub fn fit_tail(extremes: &[f64], switches: u64) -> Option<TailFit> {
    let mut largest = extremes.to_vec();
    largest.sort_unstable_by(|a, b| b.total_cmp(a));
    let wanted = (switches as f64 * EXCESSES_SHARE) as usize;
    let excesses = wanted.min(largest.len().saturating_sub(1));
    if excesses < EXCESSES_MIN {
        return None;
    }
    let threshold = largest[excesses];
    // From the smallest up, weighted by the share above: a0 and a1 of the paper, a1 with plotting positions (i - 0.35)
    // / n.
    let count = excesses as f64;
    let rising = largest[..excesses].iter().rev().map(|ratio| ratio - threshold);
    let (mut mean, mut weighted) = (0.0, 0.0);
    for (position, excess) in rising.enumerate() {
        mean += excess / count;
        weighted += excess * (1.0 - (position as f64 + 0.65) / count) / count;
    }
    let spread = mean - 2.0 * weighted;
    if spread <= 0.0 || weighted <= 0.0 {
        return None;
    }
    // Hosking and Wallis write k for the negative shape: k = a0 / (a0 - 2 a1) - 2, scale = 2 a0 a1 / (a0 - 2 a1).
    let (shape, scale) = (2.0 - mean / spread, 2.0 * mean * weighted / spread);
    Some(TailFit { threshold, excesses, rate: count / switches as f64, shape, scale })
}

impl TailFit {
    /// The ratio that is exceeded once in `switches` switches, on average.
    pub fn return_level(&self, switches: f64) -> f64 {
        let exceedances = (switches * self.rate).max(1.0);
        if self.shape.abs() < 1e-9 {
            return self.threshold + self.scale * exceedances.ln();
        }
        self.threshold + self.scale / self.shape * (exceedances.powf(self.shape) - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_tail_is_found_again() {
        for shape in [-0.2, 0.0001, 0.3] {
            let mut random = Random::new(1);
            let mut draw = || 5.0 + 2.0 / shape * ((1.0 - random.uniform()).powf(-shape) - 1.0);
            let mut ratios: Vec<f64> = (0..40_000).map(|_| draw()).collect();
            ratios.sort_unstable_by(|a, b| b.total_cmp(a));
            ratios.truncate(4096);
            let fit = fit_tail(&ratios, 40_000).expect("enough of them");
            assert!((fit.shape - shape).abs() < 0.06, "{shape}: {fit:?}");
            let exact = 5.0 + 2.0 / shape * (1e4f64.powf(shape) - 1.0);
            assert!((fit.return_level(1e4) / exact - 1.0).abs() < 0.1, "{shape}: {fit:?}, {exact}");
        }
    }

    #[test]
    fn too_little_is_not_fitted() {
        assert_eq!(fit_tail(&[3.0; 29], 1000), None);
        assert_eq!(fit_tail(&[3.0; 500], 1000), None);
        assert_eq!(bootstrap(&[1.0; 7]), None);
    }

    #[test]
    fn the_interval_of_a_mean_holds_it() {
        let mut random = Random::new(9);
        let values: Vec<f64> = (0..400).map(|_| random.uniform()).collect();
        let interval = bootstrap(&values).expect("enough");
        assert!(interval.low < 0.5 && 0.5 < interval.high, "{interval:?}");
        let wide = 2.0 * 1.96 * (1.0f64 / 12.0 / 400.0).sqrt();
        assert!(((interval.high - interval.low) / wide - 1.0).abs() < 0.15, "{interval:?}");
        assert_eq!(bootstrap(&values), bootstrap(&values));
    }
}
