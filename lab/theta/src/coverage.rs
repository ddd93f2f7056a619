//! What an assumption made in calm is worth under load.
//!
//! A system designer assumes a bound: that no message takes longer than a timeout, or that no message in transit takes
//! longer than a multiple of what lets processes go on (the Theta-Model). Both are chosen where the system was
//! measured, in calm. Here the same bounds are compared with a second run, under load: the share of rounds, of time and
//! of messages that break them. The paper concludes that the ratio survives where the timeout does not; whether that
//! is so depends on how the load acts, and is measured here. `docs/theta.md` has the definitions.

mod resample;
mod sample;
mod suspicion;
mod sweep;

use crate::analysis::{AnalysisError, SwitchStamping, TimeRange, trimmed};
use crate::certified::CertifyError;
use crate::certified::gather::JoinedLog;
use crate::log::LogReader;
use resample::{ModelSamples, Resampler};
use serde::Serialize;
use sweep::CoveredRun;

pub use suspicion::{
    SilenceLength, SuspicionAdvice, SuspicionError, SuspicionLimit, SuspicionModel, SuspicionOptions, suspicion_advice,
};

/// With fewer rounds nothing is concluded.
pub const ROUNDS_MIN: usize = 50;

/// What is assumed to be bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundModel {
    /// tau+: no message in transit takes longer. A delay D that the algorithm waits besides changes nothing here.
    Timeout,
    /// tau+ / tau_r-.
    Ratio,
    /// tau+ / (tau_r- + D), where the algorithm waits for D before it goes on.
    RatioWithDelay,
}

/// A bound that is compared with both runs as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GivenBound {
    /// What is bounded.
    pub model: BoundModel,
    /// Picoseconds for a timeout; otherwise a ratio.
    pub bound: f64,
}

/// How to compare.
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageOptions {
    /// The share of the calm rounds that keep the bounds to be chosen, below 1: 0.99999.
    pub share: f64,
    /// Further bounds.
    pub given: Vec<GivenBound>,
    /// Where switches are stamped.
    pub stamping: SwitchStamping,
    /// What is left out at the start and the end of both runs, in picoseconds.
    pub trim_ps: u64,
    /// Resamples of the bootstrap.
    pub resamples: u32,
    /// The same seed gives the same intervals.
    pub seed: u64,
}

impl Default for CoverageOptions {
    fn default() -> Self {
        let stamping = SwitchStamping::AfterBroadcast;
        CoverageOptions { share: 0.99999, given: vec![], stamping, trim_ps: 0, resamples: 999, seed: 1 }
    }
}

/// Why two runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// A log cannot be used.
    #[error("the {run} run: {error}")]
    Log {
        /// Calm or loaded.
        run: &'static str,
        /// What is wrong with it.
        error: CertifyError,
    },
    /// They are runs of different algorithms.
    #[error("the runs differ in {what}: {calm} in calm, {loaded} under load; only the load may differ")]
    Different {
        /// The quantity.
        what: &'static str,
        /// In the calm run.
        calm: u64,
        /// In the loaded run.
        loaded: u64,
    },
    /// Too short to conclude anything.
    #[error("the {run} run has {rounds} rounds that can be judged: at least {least} are needed", least = ROUNDS_MIN)]
    TooFew {
        /// Calm or loaded.
        run: &'static str,
        /// First switches with a tau_r-.
        rounds: usize,
    },
}

/// Where a bound comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundBasis {
    /// It is a quantile of the calm run.
    Measured,
    /// The calm run is too short for the share: a generalised Pareto law fitted to its largest values.
    TailFit,
    /// Too short for a fit as well: the largest value that was seen.
    Largest,
    /// It was given.
    Given,
}

/// A share with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FailingShare {
    /// Of the runs as they are, 0 to 1. A difference of two shares may be negative.
    pub share: f64,
    /// 2.5 % of the resamples are smaller.
    pub low: f64,
    /// 2.5 % are larger.
    pub high: f64,
}

/// The shares that break a bound, 0 to 1; the rest keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundShares<Share> {
    /// Of the first switches.
    pub rounds: Share,
    /// Of the time, by tau+(t) and the tau_r- of the round.
    pub time: Share,
    /// Of the messages, by their delay and the least tau_r- of the rounds in which they are in transit.
    pub messages: Share,
}

/// A bound in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BoundCoverage {
    /// What is bounded.
    pub model: BoundModel,
    /// Picoseconds for a timeout; otherwise a ratio.
    pub bound: f64,
    /// Where it comes from.
    pub basis: BoundBasis,
    /// The 95 % interval of the bound, as far as the length of the calm run goes.
    pub interval: (f64, f64),
    /// What breaks it in calm.
    pub calm: BoundShares<f64>,
    /// What breaks it under load.
    pub loaded: BoundShares<FailingShare>,
}

/// A point of a model's curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoveragePoint {
    /// The share of calm rounds that may break the bound.
    pub calm_share: f64,
    /// Picoseconds for a timeout; otherwise a ratio.
    pub bound: f64,
    /// Where it comes from.
    pub basis: BoundBasis,
    /// The share of loaded rounds that break it.
    pub loaded: FailingShare,
}

/// A model at many bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoverageCurve {
    /// What is bounded.
    pub model: BoundModel,
    /// From the rarest to the most common breach in calm.
    pub points: Vec<CoveragePoint>,
}

/// Which of two assumptions breaks less often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoverageVerdict {
    /// The timeout fails more often.
    RatioHolds,
    /// The ratio fails more often.
    TimeoutHolds,
    /// The interval of the difference holds 0.
    NoDifference,
}

/// A model beside the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AgainstTimeout {
    /// The ratio, or the ratio with D.
    pub model: BoundModel,
    /// The share of loaded rounds that break the timeout less that which break the ratio.
    pub gain: FailingShare,
    /// What follows.
    pub verdict: CoverageVerdict,
}

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CoveredLength {
    /// First switches with a tau_r-.
    pub rounds: usize,
    /// Messages sent in these rounds.
    pub messages: usize,
    /// The time of these rounds.
    pub time_ps: f64,
    /// Rounds of a block of the bootstrap.
    pub block: usize,
}

/// Two runs compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The delay D, of both.
    pub delay_ps: u64,
    /// The share of calm rounds that keep the chosen bounds.
    pub share: f64,
    /// The run in calm.
    pub calm: CoveredLength,
    /// The run under load.
    pub loaded: CoveredLength,
    /// For each model the bound that `share` of the calm rounds keep.
    pub chosen: Vec<BoundCoverage>,
    /// The ratios beside the timeout, for these bounds.
    pub verdicts: Vec<AgainstTimeout>,
    /// Bounds that were given.
    pub given: Vec<BoundCoverage>,
    /// For each model.
    pub curves: Vec<CoverageCurve>,
}

/// Holds the bounds that suit a calm run against a loaded one. `watch` is called before each resample with its number.
///
/// # Errors
/// [`CoverageError`].
pub fn coverage(
    calm: &LogReader,
    loaded: &LogReader,
    options: &CoverageOptions,
    watch: &mut dyn FnMut(u32),
) -> Result<Coverage, CoverageError> {
    alike(calm, loaded)?;
    let runs = [covered("calm", calm, options)?, covered("loaded", loaded, options)?];
    let delay_ps = calm.run().delay_ps;
    let models = [BoundModel::Timeout, BoundModel::Ratio, BoundModel::RatioWithDelay];
    let samples = models
        .into_iter()
        .filter(|&model| model != BoundModel::RatioWithDelay || delay_ps > 0)
        .map(|model| ModelSamples::new(model, &runs, delay_ps as i64))
        .collect();
    let resampler = Resampler::new(samples, &runs, options);
    let resamples = resampler.resamples(watch);
    let (chosen, curves) = resampler.chosen(&resamples);
    Ok(Coverage {
        delay_ps,
        share: options.share,
        calm: runs[0].length(),
        loaded: runs[1].length(),
        verdicts: resampler.verdicts(&resamples),
        given: resampler.given(&resamples),
        chosen,
        curves,
    })
}

/// Bounds of one algorithm say nothing about another.
fn alike(calm: &LogReader, loaded: &LogReader) -> Result<(), CoverageError> {
    let (calm, loaded) = (calm.run(), loaded.run());
    let quantities = [
        ("n", u64::from(calm.processes), u64::from(loaded.processes)),
        ("f", u64::from(calm.tolerated), u64::from(loaded.tolerated)),
        ("D in picoseconds", calm.delay_ps, loaded.delay_ps),
    ];
    match quantities.into_iter().find(|(_, calm, loaded)| calm != loaded) {
        Some((what, calm, loaded)) => Err(CoverageError::Different { what, calm, loaded }),
        None => Ok(()),
    }
}

fn covered(run: &'static str, log: &LogReader, options: &CoverageOptions) -> Result<CoveredRun, CoverageError> {
    let failed = |error| CoverageError::Log { run, error };
    let range = match options.trim_ps {
        0 => Ok(TimeRange::ALL),
        trim_ps => trimmed(log, trim_ps).map_err(|error: AnalysisError| failed(error.into())),
    }?;
    let joined = JoinedLog::from_log(log, options.stamping).map_err(failed)?;
    let covered = CoveredRun::new(&joined, options.stamping, range);
    match covered.rounds.len() {
        rounds if rounds < ROUNDS_MIN => Err(CoverageError::TooFew { run, rounds }),
        _ => Ok(covered),
    }
}

#[cfg(test)]
mod tests;
