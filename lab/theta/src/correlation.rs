//! Whether long and short delays go together, tested.
//!
//! Omega is small beside Theta_ro where tau+ is large only while tau_r- is large too. That the largest ratio of a run
//! is smaller than the ratio of its extremes (g_r > 1) shows nothing by itself: it is so of independent delays. So the
//! pairs (tau_r-(e), tau+(e)) of first switches are compared by rank. Their messages are disjoint: those that gave
//! tau_r- have been perceived when the process switches, those of tau+ are in transit then.
//!
//! Two questions have to be answered before the rank correlation means anything. Could the same values have met by
//! chance, although both change slowly? Circular shifts of one series against the other keep the order within each.
//! Could the algorithm itself have tied them, as it switches when messages arrive? Its runs with the delays of each
//! link drawn again, independently of each other and of time, keep everything but the correlation.

mod ranks;
mod redraw;

use crate::analysis::{AnalysisError, Options, PairMode, PassTally, Ratio, SwitchPair, TimeRange, analyse};
use crate::log::LogReader;
use crate::record::RunDescription;
use ffclock_sim::Random;
use ranks::RankedPairs;
use redraw::{Redraw, RedrawLimits};
use serde::Serialize;

/// With fewer pairs nothing is tested.
pub const PAIRS_MIN: usize = 50;
/// Circular shifts that are tried, and resamples of the bootstrap.
const RESAMPLES: usize = 999;
/// A correlation is shown where chance gives as large a one this rarely, by both nulls.
pub const LEVEL: f64 = 0.05;

/// How to test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorrelationOptions {
    /// Runs with delays drawn again; with fewer than 19 nothing can be shown at the level of 0.05.
    pub redraws: u32,
    /// For shifts, resamples and redrawn runs: the same seed gives the same figures.
    pub seed: u64,
    /// The switches that count, of the run and by their rounds of the redrawn ones, and the messages drawn again.
    pub range: TimeRange,
    /// A run with more messages is not tested: its delays are held in memory, and each redrawn run has as many.
    pub messages_max: u64,
}

impl CorrelationOptions {
    /// A quarter of a gigabyte of delays: each is there twice, by link and among all.
    pub const MESSAGES_MAX: u64 = 1 << 24;
}

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CorrelationVerdict {
    /// Neither chance nor the algorithm gives as large a correlation.
    Shown,
    /// One of the two may.
    NotShown,
    /// There are too few pairs, or the delays cannot be drawn again.
    NotTested,
}

/// A figure beside its distribution under the null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AgainstNull {
    /// The median under the null.
    pub median: f64,
    /// The share of the null, the observation itself counted, that is as large as observed.
    pub p: f64,
}

/// The test of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Correlation {
    /// What follows.
    pub verdict: CorrelationVerdict,
    /// Why it was not tested.
    pub reason: Option<String>,
    /// Switches with something in transit.
    pub pairs: usize,
    /// Spearman's rank correlation of tau_r-(e) and tau+(e).
    pub rho: Option<f64>,
    /// Its 95 % interval by the block bootstrap.
    pub interval: Option<(f64, f64)>,
    /// Switches of a block; shifts are at least as long.
    pub block: usize,
    /// Against circular shifts.
    pub shifted: Option<AgainstNull>,
    /// Against runs with the delays of each link drawn again.
    pub redrawn: Option<AgainstNull>,
    /// g_r = Theta_ro / Omega.
    pub g_r: Option<f64>,
    /// The same of the redrawn runs.
    pub g_r_redrawn: Option<AgainstNull>,
    /// How many redrawn runs there were.
    pub redraws: u32,
}

/// Tests a log. `watch` is called before each redrawn run with its number, from 0.
///
/// # Errors
/// [`AnalysisError`] where the log cannot be analysed.
pub fn correlate(
    log: &LogReader,
    options: &CorrelationOptions,
    watch: &mut dyn FnMut(u32),
) -> Result<(Correlation, Vec<SwitchPair>), AnalysisError> {
    let analysis = Options { range: options.range, pairs: PairMode::Keep, ..Options::default() };
    let tally = analyse(log, analysis, &mut ())?;
    let observed = ObservedRun { pairs: tally.pairs.clone(), g_r: g_r(&tally), rounds: tally.last_round };
    let redraw = match hindrance(log.run(), options, tally.counts.messages) {
        Some(why) => Err(why),
        None => {
            let limits = RedrawLimits { range: options.range, messages_max: options.messages_max };
            Redraw::of(log, observed.rounds, limits)?
        }
    };
    let correlation = observed.tested(redraw, options, watch);
    Ok((correlation, observed.pairs))
}

/// Why delays cannot be drawn again.
fn hindrance(run: &RunDescription, options: &CorrelationOptions, messages: u64) -> Option<String> {
    if options.redraws == 0 {
        Some("no redrawn runs were asked for".to_owned())
    } else if messages > options.messages_max {
        Some(too_many(messages, options.messages_max))
    } else if run.correct().contains(&false) {
        Some("a faulty process took part: its run cannot be repeated with other delays".to_owned())
    } else {
        None
    }
}

fn too_many(messages: u64, most: u64) -> String {
    format!(
        "{messages} messages, and the delays of at most {most} are drawn again: theta correlate --trim tests a part of a run"
    )
}

/// What an analysis found of the run.
struct ObservedRun {
    pairs: Vec<SwitchPair>,
    g_r: Option<f64>,
    rounds: u64,
}

impl ObservedRun {
    fn tested(
        &self,
        redraw: Result<Redraw, String>,
        options: &CorrelationOptions,
        watch: &mut dyn FnMut(u32),
    ) -> Correlation {
        let mut found = Correlation {
            verdict: CorrelationVerdict::NotTested,
            reason: None,
            pairs: self.pairs.len(),
            rho: None,
            interval: None,
            block: 0,
            shifted: None,
            redrawn: None,
            g_r: self.g_r,
            g_r_redrawn: None,
            redraws: 0,
        };
        if self.pairs.len() < PAIRS_MIN {
            found.reason = Some(format!(
                "{} switches with something in transit: at least {PAIRS_MIN} are needed",
                self.pairs.len()
            ));
            return found;
        }
        let ranked = RankedPairs::of(&self.pairs);
        let mut random = Random::named(options.seed, "correlation");
        let rho = ranked.correlation();
        (found.rho, found.block) = (Some(rho), ranked.block());
        found.interval = Some(ranked.interval(RESAMPLES, &mut random));
        found.shifted = against(rho, ranked.shifted(RESAMPLES, &mut random));
        match redraw {
            Err(why) => found.reason = Some(why),
            Ok(redraw) => self.compare(&redraw, options, watch, &mut found),
        }
        found
    }

    /// With the runs that have nothing of the correlation.
    fn compare(
        &self,
        redraw: &Redraw,
        options: &CorrelationOptions,
        watch: &mut dyn FnMut(u32),
        found: &mut Correlation,
    ) {
        let (mut rhos, mut ratios) = (Vec::new(), Vec::new());
        for number in 0..options.redraws {
            watch(number);
            let Some(again) = redraw.run(options.seed.wrapping_add(u64::from(number))) else { continue };
            rhos.extend((again.pairs.len() >= PAIRS_MIN).then(|| RankedPairs::of(&again.pairs).correlation()));
            ratios.extend(again.g_r);
        }
        found.redraws = rhos.len() as u32;
        found.redrawn = found.rho.and_then(|rho| against(rho, rhos));
        found.g_r_redrawn = self.g_r.and_then(|g_r| against(g_r, ratios));
        match (found.shifted, found.redrawn) {
            (Some(shifted), Some(redrawn)) => {
                let is_shown = shifted.p <= LEVEL && redrawn.p <= LEVEL;
                found.verdict = if is_shown { CorrelationVerdict::Shown } else { CorrelationVerdict::NotShown };
            }
            _ => found.reason = Some("redrawn runs have too few switches with something in transit".to_owned()),
        }
    }
}

/// g_r = (tau+ / tau_r-) / Omega over first switches.
fn g_r(tally: &PassTally) -> Option<f64> {
    let theta_ro = Ratio::of(tally.delay_max_ps?, tally.first.relevant_min_ps?)?;
    Some(theta_ro.as_f64() / tally.first.omega?.ratio.as_f64())
}

/// One-sided; the observation is one of the draws, so that p is never 0.
fn against(observed: f64, mut null: Vec<f64>) -> Option<AgainstNull> {
    let as_large = null.iter().filter(|&&drawn| drawn >= observed).count();
    let p = (1 + as_large) as f64 / (1 + null.len()) as f64;
    Some(AgainstNull { median: ffclock_statistics::percentile_in_place(&mut null, 0.5)?, p })
}

#[cfg(test)]
mod tests;
