//! Writes a simulated run as a log.

use super::clocks::SimulatedClocks;
use super::observer::{Observer, Perceived};
use crate::algorithm::RoundSwitch;
use crate::log::{LogError, LogWriter};
use crate::record::{self, Event, ProcessId, Round, WayIn};
use std::collections::BTreeMap;

/// Writes events as the counters of their hosts show them.
pub(super) struct LogSink<'a> {
    writer: LogWriter,
    clocks: &'a SimulatedClocks,
    host_of: &'a dyn Fn(u32) -> u32,
    /// Still to be written, by time and number: those of one process at one time keep their order.
    waiting: BTreeMap<(u64, u64), Event>,
    number: u64,
    failure: Option<LogError>,
}

impl<'a> LogSink<'a> {
    pub(super) fn new(writer: LogWriter, clocks: &'a SimulatedClocks, host_of: &'a dyn Fn(u32) -> u32) -> Self {
        LogSink { writer, clocks, host_of, waiting: BTreeMap::new(), number: 0, failure: None }
    }

    fn counter(&self, process: u32, at: u64) -> ffclock_units::Counter {
        self.clocks.counter((self.host_of)(process) as usize, at)
    }

    fn note(&mut self, at: u64, event: Event) {
        self.number += 1;
        self.waiting.insert((at, self.number), event);
    }

    /// Writes the samples of the clocks and completes the log.
    pub(super) fn finish(mut self, end_ps: u64) -> Result<(), LogError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.clocks.samples(end_ps).for_each(|sample| self.writer.clock(sample));
        self.clocks.truth().for_each(|sample| self.writer.truth(sample));
        self.writer.run_mut().disorder_ps = self.clocks.disorder(end_ps);
        self.writer.finish()
    }
}

impl Observer for LogSink<'_> {
    fn broadcast(&mut self, process: u32, round: u64, at: u64) {
        let counter = self.counter(process, at);
        self.note(at, Event::Broadcast { process: ProcessId(process), round: Round(round), at: counter });
    }

    fn perceived(&mut self, perceived: &Perceived) {
        let Perceived { process, sender, round, came_at, at } = *perceived;
        let way_in = WayIn { kernel: Some(self.counter(process, came_at)), received: None };
        let (counter, sender) = (self.counter(process, at), ProcessId(sender));
        self.note(
            at,
            Event::Perception { process: ProcessId(process), sender, round: Round(round), at: counter, way_in },
        );
    }

    fn switched(&mut self, process: u32, switch: &RoundSwitch, at: u64) {
        let event = record::SwitchEvent {
            process: ProcessId(process),
            from: Round(switch.from),
            to: Round(switch.to),
            at: self.counter(process, at),
            decided: self.counter(process, switch.decided),
            rule: switch.rule,
        };
        self.note(at, Event::Switch(event));
    }

    fn until_now(&mut self, now: u64) {
        while let Some(next) = self.waiting.first_entry().filter(|next| next.key().0 <= now) {
            let event = next.remove();
            if self.failure.is_none() {
                self.failure = self.writer.event(&event).err();
            }
        }
    }
}
