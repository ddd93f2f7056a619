//! What a run says, fresh or from a record.

use crate::failure::Failure;
use ffclock_counters::campaign::CampaignPhase;
use ffclock_probe::agreement::Methods;
use ffclock_probe::digest::Digest;
use ffclock_probe::effect::{Corrected, Effect};
use ffclock_probe::findings::Findings;
use ffclock_probe::outcome::PacketCounts;
use ffclock_probe::record::{ProbeRecord, read};
use ffclock_probe::site::Site;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// One phase.
#[derive(Serialize)]
pub(super) struct MeasuredPhase {
    pub(super) phase: CampaignPhase,
    pub(super) counts: PacketCounts,
    pub(super) unavailable: Vec<String>,
    pub(super) length_s: f64,
    pub(super) findings: Findings,
    /// Where the stamps come from, and how the methods agree.
    #[serde(flatten)]
    pub(super) methods: Methods,
    /// Median delays without what the probes cost, where that was measured.
    pub(super) corrected: Vec<Corrected>,
}

/// A run as `run`, `show` and `advise` look at it.
pub(super) struct ProbeAnswer {
    pub(super) about: Value,
    pub(super) phases: Vec<MeasuredPhase>,
    /// What the probes cost, where that was measured.
    pub(super) effect: Option<Effect>,
}

/// The medians of all locations without what the probes cost.
pub(super) fn corrected(effect: &Effect, findings: &Findings, methods: &Methods) -> Vec<Corrected> {
    let is_known = findings.reference == (Site::DriverOut, Site::DriverIn);
    let delays = findings.delays.iter().filter(|_| is_known);
    delays.map(|delay| effect.correct(delay.site, delay.delay_ns.median, methods)).collect()
}

impl ProbeAnswer {
    /// The answer of a record file.
    pub(super) fn recorded(path: &Path) -> Result<Self, Failure> {
        Ok(ProbeAnswer::of(read(path).map_err(|error| format!("{} {error}", path.display()))?))
    }

    /// The answer of a record that is read already.
    pub(super) fn of(record: ProbeRecord) -> Self {
        let ProbeRecord { about, period, effect, phases } = record;
        let measured = phases.into_iter().map(|phase| {
            let findings = Findings::of(&phase.passages, period);
            let corrected = effect.as_ref().map(|effect| corrected(effect, &findings, &phase.methods));
            MeasuredPhase {
                findings,
                phase: phase.phase,
                counts: phase.counts,
                unavailable: phase.unavailable,
                length_s: phase.length_s,
                methods: phase.methods,
                corrected: corrected.unwrap_or_default(),
            }
        });
        ProbeAnswer { about, phases: measured.collect(), effect }
    }

    /// The phases by load.
    pub(super) fn digest(&self) -> Digest<'_> {
        Digest::of(self.phases.iter().map(|measured| (measured.phase.load, &measured.findings)))
    }

    /// Everything that some phase lacked, each reason once.
    pub(super) fn unavailable(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.phases.iter().flat_map(|measured| &measured.unavailable).cloned().collect();
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }
}
