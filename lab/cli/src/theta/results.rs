//! What an analysis found, for the tables, the figures and JSON.

use super::correlate::TestedRun;
use ffclock_theta::abc::{CycleStep, CycleWitness};
use ffclock_theta::analysis::ThetaReport;
use ffclock_theta::certified::Certified;
use ffclock_theta::round_trip::RoundTripReport;

/// All results.
#[derive(serde::Serialize)]
pub(super) struct Results {
    #[serde(flatten)]
    pub(super) report: ThetaReport,
    /// Whether times are the true ones rather than those of the clocks.
    pub(super) by_truth: bool,
    pub(super) certified: Option<Certified>,
    /// Where the run answered its messages.
    pub(super) round_trips: Option<RoundTripReport>,
    pub(super) xi: Option<XiReport>,
    /// Only for figures.
    #[serde(flatten)]
    pub(super) correlation: Option<TestedRun>,
}

/// Xi* for people and programs.
#[derive(serde::Serialize)]
pub(super) struct XiReport {
    /// Absent if no relevant cycle has more messages backward than forward.
    pub(super) witness: Option<CycleWitness>,
    /// What each step of the cycle is: process, and what it perceived.
    pub(super) steps: Vec<(u32, CycleStep)>,
}
