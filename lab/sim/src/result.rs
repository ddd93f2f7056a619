//! The result of a run: the figures of each clock against the truth.

use crate::check::CheckResult;
use crate::scenario::Tag;
use ffclock_replay::PastReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// One run of one scenario.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct RunResult {
    /// The scenario.
    pub scenario: String,
    /// The tags of the scenario.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<Tag>,
    /// The seed.
    pub seed: u64,
    /// The parts that were left out of the learned estimator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How long the world lasted [s].
    pub duration_s: f64,
    /// Forward minimum delay minus backward minimum delay, at the beginning [s]. Half of it is a bias that no clock can
    /// see. 0 in a world of several servers, each of which has its own.
    pub asymmetry_s: f64,
    /// Each of several servers; empty in a world of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerResult>,
    /// Requests sent.
    pub requests: u64,
    /// Exchanges completed.
    pub exchanges: u64,
    /// Each clock.
    pub clocks: Vec<ClockResult>,
    /// What the learned clock says of the past, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub past: Option<PastReport>,
    /// How each clock did against the oracles, where these were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oracle_ratios: Vec<OracleRatio>,
    /// Each check.
    pub checks: Vec<CheckResult>,
    /// Whether all checks hold.
    pub passed: bool,
}

/// One of several servers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ServerResult {
    /// Its name. The clock of this name asks it alone.
    pub name: String,
    /// Requests sent to it.
    pub requests: u64,
    /// Exchanges completed.
    pub exchanges: u64,
    /// Forward minimum delay minus backward minimum delay, at the beginning [s].
    pub asymmetry_s: f64,
}

/// Whom a clock of several servers believed, in the time of the statistics.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct BeliefResult {
    /// Each server.
    pub servers: Vec<ServerBelief>,
    /// How often the set of believed servers changed; 0 of clocks that are slewed.
    pub changes: u64,
    /// The farthest that such a change moved the published time [s].
    pub largest_step_s: f64,
    /// The largest ratio of such a step to the standard uncertainty published before it.
    pub largest_step_over_uncertainty: f64,
}

/// What a clock of several servers thought of one of them: shares of the readings. The rest are those at which it
/// had no answer of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ServerBelief {
    /// The server.
    pub name: String,
    /// It was believed.
    pub believed: f64,
    /// The vote believed it, but it had no part in the clock: it moved against the others.
    #[serde(default)]
    pub suspect: f64,
    /// It was neither believed nor held to be wrong.
    pub undecided: f64,
    /// It was held to be wrong.
    pub disbelieved: f64,
    /// From when on it was not believed any more, since the world began [s]; `None` if it was believed at the end.
    pub out_since_s: Option<f64>,
    /// The readings since then at which the clock's bound did not hold the truth.
    #[serde(default)]
    pub outside_since: u64,
}

/// One figure of one clock over that of the oracles.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct OracleRatio {
    /// The clock.
    pub clock: String,
    /// The window; empty for the whole time of the statistics.
    pub window: String,
    /// The name of the figure.
    pub figure: String,
    /// Over that of the oracle that sees the past.
    pub over_causal: Option<f64>,
    /// Over that of the one that sees past and future.
    pub over_smoother: Option<f64>,
}

/// One clock.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ClockResult {
    /// Its name.
    pub name: String,
    /// The whole time of the statistics, under the empty name, and each window.
    pub windows: Vec<WindowResult>,
    /// How often its filter lost track and began again; of feed-forward clocks of one server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Whom it believed; of clocks that choose among several servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beliefs: Option<BeliefResult>,
}

/// The names of the figures that checks can ask for.
pub(crate) const FIGURES: [&str; 20] = [
    "median",
    "iqr",
    "p50",
    "p95",
    "p99",
    "max",
    "rms",
    "net-p99",
    "net-max",
    "rate-p99",
    "difference-p99",
    "containment",
    "bound",
    "strict-containment",
    "strict-bound",
    "calibration",
    "width",
    "combined-calibration",
    "over-uncertainty",
    "unread",
];

/// The figures of one clock in one piece of time. Error is clock minus true time [s], at readings between exchanges.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct WindowResult {
    /// The name of the window.
    pub name: String,
    /// Readings.
    pub readings: u64,
    /// The share of readings at which there was no clock.
    pub unread: f64,
    /// Median error.
    pub median: Option<f64>,
    /// Between the quartiles.
    pub iqr: Option<f64>,
    /// Percentiles of |error|.
    pub p50: Option<f64>,
    /// 95 %.
    pub p95: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
    /// The largest |error|.
    pub max: Option<f64>,
    /// Root mean square.
    pub rms: Option<f64>,
    /// 99th percentile of |error| without the bias by the path's asymmetry, which no clock can see.
    pub net_p99: Option<f64>,
    /// The largest |error| without that bias.
    pub net_max: Option<f64>,
    /// 99th percentile of |rate error| of the absolute clock over 1000 s.
    pub rate_p99: Option<f64>,
    /// The same of the difference clock, by which intervals are measured.
    pub difference_p99: Option<f64>,
    /// The share of readings whose bound holds the truth. For clocks with a bound only.
    pub containment: Option<f64>,
    /// The median bound.
    #[serde(default)]
    pub bound: Option<f64>,
    /// The share of readings whose strict bound holds the truth. For clocks of several servers that state one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_containment: Option<f64>,
    /// The median strict bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict_bound: Option<f64>,
    /// The share of readings with the truth inside twice the noise, the bias of the asymmetry taken out.
    pub calibration: Option<f64>,
    /// Twice the median noise over the 95th percentile of |error| without that bias: 1 is just wide enough.
    pub width: Option<f64>,
    /// The share of readings with the truth inside twice the combined standard uncertainty, the bias included.
    #[serde(default)]
    pub combined_calibration: Option<f64>,
    /// The root mean square of the error over the combined standard uncertainty, the bias included.
    #[serde(default)]
    pub over_uncertainty: Option<f64>,
}

impl WindowResult {
    /// The figure of a name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "median" => self.median,
            "iqr" => self.iqr,
            "p50" => self.p50,
            "p95" => self.p95,
            "p99" => self.p99,
            "max" => self.max,
            "rms" => self.rms,
            "net-p99" => self.net_p99,
            "net-max" => self.net_max,
            "rate-p99" => self.rate_p99,
            "difference-p99" => self.difference_p99,
            "containment" => self.containment,
            "bound" => self.bound,
            "strict-containment" => self.strict_containment,
            "strict-bound" => self.strict_bound,
            "calibration" => self.calibration,
            "width" => self.width,
            "combined-calibration" => self.combined_calibration,
            "over-uncertainty" => self.over_uncertainty,
            "unread" => Some(self.unread),
            _ => None,
        }
    }
}
