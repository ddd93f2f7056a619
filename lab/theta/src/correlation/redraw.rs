//! The same run with its delays drawn again.

use super::g_r;
use crate::algorithm::{AlgorithmForm, RoundSwitch};
use crate::analysis::{AnalysisError, Clocks, LogPass, Options, PairMode, SwitchPair};
use crate::log::{EventColumns, LogReader, WayInColumns};
use crate::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunHost, SwitchEvent, WayIn,
};
use crate::simulate::{LinkDelays, Observer, Perceived, RedrawnRun};
use ffclock_units::{Counter, Period, Rate};
use std::collections::BTreeMap;

/// More delays than this are not kept in memory.
const DELAYS_MAX: usize = 1 << 24;
/// Times of redrawn runs are true, in ticks of this many picoseconds.
const TICK_PS: u64 = 10;

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
        events.0.sort_by_key(|&(at_ps, _)| at_ps);
        let clocks = Clocks::new(&self.run, &[true_clock()]).ok()?;
        let options = Options { pairs: PairMode::Keep, ..Options::default() };
        let mut pass = LogPass::new(&self.run, clocks, 1, options);
        let mut columns = EventColumns::default();
        events.0.iter().for_each(|(_, event)| columns.push(event));
        pass.take(0, &columns).ok()?;
        let tally = pass.finish();
        Some(Redrawn { g_r: g_r(&tally), pairs: tally.pairs })
    }
}

/// All on one host, by the truth.
fn described(run: &RunDescription) -> RunDescription {
    RunDescription {
        origin: LogOrigin::Simulated,
        disorder_ps: 0,
        hosts: vec![RunHost { name: "redrawn".to_owned(), counter: "simulated".to_owned() }],
        host_of: vec![HostId(0); run.processes as usize],
        faults: vec![],
        settings: BTreeMap::new(),
        unrecorded: 0,
        ..run.clone()
    }
}

fn true_clock() -> ClockSample {
    let period = Period::from_seconds(1e-12 * TICK_PS as f64).expect("ten picoseconds are a period");
    let (host, counter, drift_bound) = (HostId(0), Counter::from_raw(0), Rate::from_ppm(0.0));
    ClockSample { host, counter, time_ps: 0, bound_ps: 0, period, drift_bound }
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

/// Events with the time at which they happened.
#[derive(Default)]
struct CollectedEvents(Vec<(u64, Event)>);

fn counter(at_ps: u64) -> Counter {
    Counter::from_raw(at_ps / TICK_PS)
}

impl Observer for CollectedEvents {
    fn broadcast(&mut self, process: u32, round: u64, at: u64) {
        self.0.push((at, Event::Broadcast { process: ProcessId(process), round: Round(round), at: counter(at) }));
    }

    fn perceived(&mut self, perceived: &Perceived) {
        let Perceived { process, sender, round, at, .. } = *perceived;
        let (process, sender, round) = (ProcessId(process), ProcessId(sender), Round(round));
        let way_in = WayIn::default();
        self.0.push((at, Event::Perception { process, sender, round, at: counter(at), way_in }));
    }

    fn switched(&mut self, process: u32, switch: &RoundSwitch, at: u64) {
        let event = SwitchEvent {
            process: ProcessId(process),
            from: Round(switch.from),
            to: Round(switch.to),
            at: counter(at),
            decided: counter(switch.decided),
            rule: switch.rule,
        };
        self.0.push((at, Event::Switch(event)));
    }

    fn until_now(&mut self, _: u64) {}
}
