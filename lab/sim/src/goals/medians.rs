//! The runs of one scenario, and the medians over their seeds.

use crate::scenario::Tag;
use crate::{ORACLES, RunResult};
use ffclock_statistics::percentile;
use serde::Serialize;
use std::collections::BTreeSet;

/// The feedback clocks that the learned one must beat.
pub(super) const RIVALS: [&str; 3] = ["pi", "pll", "regression"];
const CAUSAL: &str = ORACLES[0];
const SMOOTHER: &str = ORACLES[1];

/// A figure of a clock in a window; the whole time of the statistics has the empty name.
#[derive(Clone, Copy, Debug)]
pub(super) struct MedianKey<'a> {
    pub(super) clock: &'a str,
    pub(super) figure: &'a str,
    pub(super) window: &'a str,
}

impl<'a> MedianKey<'a> {
    /// Over the whole time.
    const fn whole(clock: &'a str, figure: &'a str) -> Self {
        MedianKey { clock, figure, window: "" }
    }

    /// Of the learned clock over the whole time.
    const fn learned(figure: &'a str) -> Self {
        MedianKey::whole("learned", figure)
    }

    pub(super) fn of(self, run: &RunResult) -> Option<f64> {
        let clock = run.clocks.iter().find(|result| result.name == self.clock)?;
        clock.windows.iter().find(|result| result.name == self.window)?.figure(self.figure)
    }
}

/// The medians over the seeds of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Medians {
    /// The scenario.
    pub scenario: String,
    /// Its tags.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<Tag>,
    /// The number of seeds.
    pub seeds: usize,
    /// Of the learned clock [s].
    pub iqr: Option<f64>,
    /// 99th percentile of the size of the error, without the path's asymmetry [s].
    pub net_p99: Option<f64>,
    /// Largest error, without it [s].
    pub net_max: Option<f64>,
    /// 99th percentile of the rate error over 1000 s.
    pub rate_p99: Option<f64>,
    /// Learned over the best feedback clock.
    pub iqr_over_rivals: Option<f64>,
    /// The same.
    pub net_p99_over_rivals: Option<f64>,
    /// The feedback clock with the smallest IQR.
    pub best_rival: Option<&'static str>,
    /// Learned over the causal oracle, run by run.
    pub iqr_over_oracle: Option<f64>,
    /// The same.
    pub net_p99_over_oracle: Option<f64>,
    /// Learned over the oracle that sees the future too, run by run.
    pub iqr_over_smoother: Option<f64>,
    /// The causal oracle over the best feedback clock, in the runs with an oracle, median over median.
    pub oracle_iqr_over_rivals: Option<f64>,
    /// The same.
    pub oracle_net_p99_over_rivals: Option<f64>,
    /// The smallest share of readings inside the bound, of any seed and either feed-forward clock.
    pub containment: Option<f64>,
    /// Share of readings within twice the noise, without the path's asymmetry.
    pub calibration: Option<f64>,
    /// Twice the noise over what would do.
    pub width: Option<f64>,
}

/// The runs of one scenario.
#[derive(Clone, Copy)]
pub(super) struct ScenarioRuns<'a>(pub(super) &'a [RunResult]);

impl<'a> ScenarioRuns<'a> {
    pub(super) fn median(self, place: MedianKey) -> Option<f64> {
        median(self.0.iter().filter_map(|run| place.of(run)))
    }

    /// The median of the learned clock's ratio to an oracle, run by run: both see the same packets, and after a long
    /// silence their error is one draw of the oscillator, which is nearly the same for both and different with every
    /// seed.
    pub(super) fn over_oracle(self, oracle: MedianKey) -> Option<f64> {
        let learned = MedianKey { clock: "learned", ..oracle };
        median(self.0.iter().filter_map(|run| Some(learned.of(run)? / oracle.of(run)?)))
    }

    /// Whether its world has one server.
    pub(super) fn is_of_one(self) -> bool {
        self.0.iter().all(|run| run.servers.is_empty())
    }

    pub(super) fn tags(self) -> BTreeSet<Tag> {
        self.0.iter().flat_map(|run| &run.tags).copied().collect()
    }

    pub(super) fn medians(self, scenario: &str) -> Medians {
        let learned = |figure| self.median(MedianKey::learned(figure));
        let over_rivals = |figure| Some(learned(figure)? / self.best_rival(figure)?.0);
        Medians {
            scenario: scenario.to_owned(),
            tags: self.tags(),
            seeds: self.0.len(),
            iqr: learned("iqr"),
            net_p99: learned("net-p99"),
            net_max: learned("net-max"),
            rate_p99: learned("rate-p99"),
            iqr_over_rivals: over_rivals("iqr"),
            net_p99_over_rivals: over_rivals("net-p99"),
            best_rival: self.best_rival("iqr").map(|best| best.1),
            iqr_over_oracle: self.over_oracle(MedianKey::whole(CAUSAL, "iqr")),
            net_p99_over_oracle: self.over_oracle(MedianKey::whole(CAUSAL, "net-p99")),
            iqr_over_smoother: self.over_oracle(MedianKey::whole(SMOOTHER, "iqr")),
            oracle_iqr_over_rivals: self.oracle_over_rivals("iqr"),
            oracle_net_p99_over_rivals: self.oracle_over_rivals("net-p99"),
            containment: self.contained("learned").chain(self.contained("classic")).reduce(f64::min),
            calibration: learned("calibration"),
            width: learned("width"),
        }
    }

    fn contained(self, clock: &'a str) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(move |run| MedianKey::whole(clock, "containment").of(run))
    }

    fn best_rival(self, figure: &str) -> Option<(f64, &'static str)> {
        let each = RIVALS.into_iter().filter_map(|rival| Some((self.median(MedianKey::whole(rival, figure))?, rival)));
        each.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// Of the seeds that the oracle was run with, its median over that of the best feedback clock.
    fn oracle_over_rivals(self, figure: &str) -> Option<f64> {
        let runs = || self.0.iter().filter(|run| MedianKey::whole(CAUSAL, figure).of(run).is_some());
        let middle = |clock: &str| median(runs().filter_map(|run| MedianKey::whole(clock, figure).of(run)));
        let best = RIVALS.into_iter().filter_map(middle).min_by(f64::total_cmp)?;
        Some(middle(CAUSAL)? / best)
    }
}

pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    percentile(&values.collect::<Vec<_>>(), 0.5)
}
