//! The same run with its delays drawn again.

use super::g_r;
use crate::algorithm::AlgorithmForm;
use crate::analysis::{AnalysisError, Clocks, Options, PairMode, SwitchPair};
use crate::log::{LogReader, WayInColumns};
use crate::record::{Event, RecordedForm, RunDescription};
use crate::simulate::{CollectedEvents, LinkDelays, RedrawnRun};
use std::collections::BTreeMap;

/// More delays than this are not kept in memory.
const DELAYS_MAX: usize = 1 << 24;

/// What it takes to run again: the sizes of the run, and the delays of each link.
pub(super) struct Redraw {
    run: RunDescription,
    simulation: RedrawnRun,
}

/// What a redrawn run showed.
pub(super) struct Redrawn {
    pub(super) pairs: Vec<SwitchPair>,
    pub(super) g_r: Option<f64>,
}

impl Redraw {
    /// From a log, for runs of as many rounds; a reason where it cannot be repeated.
    pub(super) fn of(log: &LogReader, rounds: u64) -> Result<Result<Self, String>, AnalysisError> {
        let run = log.run();
        let form = match run.form {
            RecordedForm::Repaired => AlgorithmForm::Repaired,
            RecordedForm::Printed => AlgorithmForm::Printed,
            RecordedForm::Unknown => {
                return Ok(Err("an imported log follows no algorithm that could be repeated".to_owned()));
            }
        };
        let delays = link_delays(log)?;
        let simulation = RedrawnRun::new(run, form, delays, rounds);
        Ok(simulation.map(|simulation| Redraw { run: described(run), simulation }))
    }

    /// `None` where messages do not fit into memory.
    pub(super) fn run(&self, seed: u64) -> Option<Redrawn> {
        let mut events = CollectedEvents::default();
        self.simulation.run(seed, &mut events).ok()?;
        let options = Options { pairs: PairMode::Keep, ..Options::default() };
        let tally = events.analysed(&self.run, options).ok()?;
        Some(Redrawn { g_r: g_r(&tally), pairs: tally.pairs })
    }
}

/// Faults have been left behind with the delays of the run.
fn described(run: &RunDescription) -> RunDescription {
    RunDescription { faults: vec![], settings: BTreeMap::new(), unrecorded: 0, ..run.clone() }
}

/// From broadcast to perception, by sender and receiver. A delay that the clocks make negative counts as the shortest.
fn link_delays(log: &LogReader) -> Result<LinkDelays, AnalysisError> {
    let run = log.run();
    let mut clocks = Clocks::new(run, log.clocks())?;
    let mut sent = BTreeMap::new();
    let mut delays = LinkDelays::new(run.processes);
    log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
        if let Event::Broadcast { process, round, at } = *event {
            sent.insert((process, round), clocks.time_ps(process.index(), at));
        }
        Ok(())
    })?;
    let mut kept = 0;
    log.each_event(WayInColumns::Skip, AnalysisError::from, |event| {
        if let Event::Perception { process, sender, round, at, .. } = *event
            && let Some(&begin_ps) = sent.get(&(sender, round))
            && kept < DELAYS_MAX
        {
            let delay_ps = clocks.time_ps(process.index(), at).saturating_sub(begin_ps).max(1);
            delays.add(sender, process, delay_ps as u64);
            kept += 1;
        }
        Ok(())
    })?;
    Ok(delays)
}
