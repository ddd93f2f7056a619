//! Laws of delays.

use crate::length::{LENGTH_MAX_PS, picoseconds};
use ffclock_sim::Random;
use ffclock_sim::scenario::Length;
use serde::Deserialize;
use std::sync::Arc;

/// A law of delays.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum MessageDelayLaw {
    /// Always the same.
    Constant {
        /// The delay.
        value: Length,
    },
    /// `min` and an exponential part.
    Exponential {
        /// The smallest delay.
        min: Length,
        /// The mean of the random part.
        mean: Length,
    },
    /// `min` and a lognormal part.
    Lognormal {
        /// The smallest delay.
        min: Length,
        /// The median of the random part.
        median: Length,
        /// The standard deviation of its logarithm.
        sigma: f64,
    },
    /// `min` and a Pareto part: P(part > x) = (scale / x)^alpha from `scale` on.
    Pareto {
        /// The smallest delay.
        min: Length,
        /// The smallest value of the random part.
        scale: Length,
        /// The exponent of the tail; the mean is infinite up to 1.
        alpha: f64,
    },
    /// Delays of a recorded run, drawn with replacement.
    Empirical {
        /// A log directory of a run, or a file with one length a line such as `41.5 us`.
        file: String,
    },
}

/// Fetches recorded delays by the name of their file.
pub(super) type LoadDelays<'a> = &'a mut dyn FnMut(&str) -> Result<Arc<[u64]>, String>;

/// A law made ready: numbers in picoseconds.
#[derive(Clone, Debug)]
pub(super) enum Sampler {
    Constant(u64),
    Exponential { min: u64, mean: f64 },
    Lognormal { min: u64, median: f64, sigma: f64 },
    Pareto { min: u64, scale: f64, alpha: f64 },
    Empirical(Arc<[u64]>),
}

impl Sampler {
    /// A law whose numbers make sense; `load` fetches recorded delays.
    pub(super) fn new(law: &MessageDelayLaw, load: LoadDelays<'_>) -> Result<Self, String> {
        let length = |name: &str, length: Length| {
            picoseconds(length).ok_or_else(|| format!("{name} = \"{}\" must lie between 0 s and 1000 s", length.0))
        };
        match law {
            MessageDelayLaw::Constant { value } => Ok(Sampler::Constant(length("value", *value)?)),
            MessageDelayLaw::Exponential { min, mean } => {
                Ok(Sampler::Exponential { min: length("min", *min)?, mean: length("mean", *mean)? as f64 })
            }
            MessageDelayLaw::Lognormal { min, median, sigma } if (0.0..=10.0).contains(sigma) => {
                Ok(Sampler::Lognormal {
                    min: length("min", *min)?,
                    median: length("median", *median)? as f64,
                    sigma: *sigma,
                })
            }
            MessageDelayLaw::Lognormal { sigma, .. } => Err(format!("sigma = {sigma} must lie between 0 and 10")),
            MessageDelayLaw::Pareto { min, scale, alpha } if (0.1..=1000.0).contains(alpha) => {
                Ok(Sampler::Pareto { min: length("min", *min)?, scale: length("scale", *scale)? as f64, alpha: *alpha })
            }
            MessageDelayLaw::Pareto { alpha, .. } => Err(format!("alpha = {alpha} must lie between 0.1 and 1000")),
            MessageDelayLaw::Empirical { file } => load(file).map(Sampler::Empirical),
        }
    }

    /// One delay, in picoseconds.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Sampler::Constant(value) => *value,
            Sampler::Exponential { min, mean } => min + part(mean * random.exponential()),
            Sampler::Lognormal { min, median, sigma } => min + part(median * libm::exp(sigma * random.normal())),
            Sampler::Pareto { min, scale, alpha } => min + part(scale * random.pareto(*alpha)),
            Sampler::Empirical(delays) => delays[(random.bits() % delays.len() as u64) as usize],
        }
    }

    /// No delay is shorter.
    pub(super) fn least(&self) -> u64 {
        match self {
            Sampler::Constant(value) => *value,
            Sampler::Exponential { min, .. } | Sampler::Lognormal { min, .. } => *min,
            Sampler::Pareto { min, scale, .. } => min + part(*scale),
            Sampler::Empirical(delays) => delays.iter().copied().min().unwrap_or(0),
        }
    }

    /// A typical delay.
    pub(super) fn typical(&self) -> u64 {
        match self {
            Sampler::Constant(value) => *value,
            Sampler::Exponential { min, mean } => min + part(*mean),
            Sampler::Lognormal { min, median, .. } => min + part(*median),
            Sampler::Pareto { min, scale, .. } => min + part(2.0 * scale),
            Sampler::Empirical(delays) => delays[delays.len() / 2],
        }
    }
}

/// The random part of a delay; heavy tails end somewhere.
fn part(ps: f64) -> u64 {
    // A cast saturates, and the largest delay bounds it.
    (ps as u64).min(LENGTH_MAX_PS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    fn us(value: f64) -> Length {
        Length(Span::from_seconds(value * 1e-6))
    }

    fn sampler(law: &MessageDelayLaw) -> Result<Sampler, String> {
        Sampler::new(law, &mut |_| Ok(vec![5_000_000, 7_000_000, 9_000_000].into()))
    }

    /// Mean (of the empirical law: of 5, 7 and 9 us) within five standard errors of 100,000 draws.
    #[test]
    fn laws_have_their_means() {
        let laws = [
            (MessageDelayLaw::Constant { value: us(7.0) }, 7.0, 0.0),
            (MessageDelayLaw::Exponential { min: us(20.0), mean: us(10.0) }, 30.0, 10.0),
            (
                MessageDelayLaw::Lognormal { min: us(1.0), median: us(10.0), sigma: 0.5 },
                1.0 + 10.0 * (0.125f64).exp(),
                7.0,
            ),
            (MessageDelayLaw::Pareto { min: us(1.0), scale: us(10.0), alpha: 4.0 }, 1.0 + 40.0 / 3.0, 10.0),
            (MessageDelayLaw::Empirical { file: "x".to_owned() }, 7.0, 2.0),
        ];
        for (law, mean, deviation) in laws {
            let sampler = sampler(&law).unwrap();
            let mut random = Random::new(3);
            let draws: Vec<u64> = (0..100_000).map(|_| sampler.draw(&mut random)).collect();
            let seen = draws.iter().sum::<u64>() as f64 / 1e5 / 1e6;
            assert!((seen - mean).abs() <= 5.0 * deviation / 1e5f64.sqrt() + 1e-6, "{law:?}: {seen} against {mean}");
            assert!(draws.iter().all(|&draw| draw >= sampler.least()), "{law:?}");
        }
    }

    #[test]
    fn impossible_laws_are_refused() {
        let bad = [
            MessageDelayLaw::Constant { value: us(-1.0) },
            MessageDelayLaw::Constant { value: us(1e10) },
            MessageDelayLaw::Lognormal { min: us(0.0), median: us(1.0), sigma: f64::NAN },
            MessageDelayLaw::Lognormal { min: us(0.0), median: us(1.0), sigma: -1.0 },
            MessageDelayLaw::Pareto { min: us(0.0), scale: us(1.0), alpha: 0.0 },
        ];
        for law in bad {
            assert!(sampler(&law).unwrap_err().contains("must lie between"), "{law:?}");
        }
    }

    #[test]
    fn the_heaviest_tail_stays_within_time() {
        let sampler = sampler(&MessageDelayLaw::Pareto { min: us(0.0), scale: us(1.0), alpha: 0.1 }).unwrap();
        let mut random = Random::new(1);
        assert!((0..10_000).all(|_| sampler.draw(&mut random) <= LENGTH_MAX_PS));
    }
}
