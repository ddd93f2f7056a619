//! A simulated run in memory, analysed without a log.

use super::observer::{Observer, Perceived};
use crate::algorithm::RoundSwitch;
use crate::analysis::{AnalysisError, Clocks, LogPass, Options, PassTally};
use crate::log::EventColumns;
use crate::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, Round, RunDescription, RunHost, SwitchEvent, WayIn,
};
use ffclock_units::{Counter, Period, Rate};

/// Times are true, in ticks of this many picoseconds.
const TICK_PS: u64 = 10;

/// Events with the time at which they happened.
#[derive(Default)]
pub struct CollectedEvents(Vec<(u64, Event)>);

impl CollectedEvents {
    /// When a round was first sent, by the clock of the analysis, in picoseconds since the origin of the run.
    pub fn first_broadcast_ps(&self, wanted: Round) -> Option<i64> {
        let of_round = |event: &Event| match *event {
            Event::Broadcast { round, at, .. } => (round == wanted).then_some(at),
            _ => None,
        };
        let first = self.0.iter().filter_map(|(_, event)| of_round(event)).map(Counter::raw).min()?;
        i64::try_from(first.saturating_mul(TICK_PS)).ok()
    }

    /// The analysis of the run, by its true times.
    ///
    /// # Errors
    /// [`AnalysisError`] for events that `run` cannot have.
    pub fn analysed(mut self, run: &RunDescription, options: Options) -> Result<PassTally, AnalysisError> {
        self.0.sort_by_key(|&(at_ps, _)| at_ps);
        let run = on_one_host(run);
        let clocks = Clocks::new(&run, &[true_clock()])?;
        let mut pass = LogPass::new(&run, clocks, 1, options);
        let mut columns = EventColumns::default();
        self.0.iter().for_each(|(_, event)| columns.push(event));
        pass.take(0, &columns)?;
        Ok(pass.finish())
    }
}

/// One host has one clock, the true one.
fn on_one_host(run: &RunDescription) -> RunDescription {
    RunDescription {
        origin: LogOrigin::Simulated,
        disorder_ps: 0,
        hosts: vec![RunHost { name: "all".to_owned(), counter: "simulated".to_owned() }],
        host_of: vec![HostId(0); run.processes as usize],
        ..run.clone()
    }
}

fn true_clock() -> ClockSample {
    let period = Period::from_seconds(1e-12 * TICK_PS as f64).expect("ten picoseconds are a period");
    let (host, counter, drift_bound) = (HostId(0), Counter::from_raw(0), Rate::from_ppm(0.0));
    ClockSample { host, counter, time_ps: 0, bound_ps: 0, period, drift_bound }
}

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
