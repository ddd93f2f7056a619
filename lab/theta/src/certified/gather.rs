//! All messages and switches of a log in memory, with clock times.

use super::CertifyError;
use crate::analysis::{AnalysisError, Clocks, SwitchStamping};
use crate::log::{LogReader, WayInColumns};
use crate::record::{ClockSample, Event, RunDescription, SwitchEvent, SwitchRule};
use std::collections::BTreeMap;

/// More messages do not fit into memory at once.
const MESSAGES_MAX: usize = 20_000_000;

/// An event by the clock of its host, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClockStamp {
    pub(crate) clock_ps: i64,
    pub(crate) host: usize,
}

/// A message between correct processes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatheredMessage {
    pub(crate) key: MessageKey,
    pub(crate) sent: ClockStamp,
    pub(crate) perceived: ClockStamp,
}

/// A switch of a correct process.
#[derive(Clone, Debug)]
pub(crate) struct GatheredSwitch {
    pub(crate) process: usize,
    pub(crate) at: ClockStamp,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// The correct messages that made it advance; none for a catch-up.
    pub(crate) contributors: Vec<GatheredMessage>,
}

/// What certifying needs of a log.
pub(crate) struct JoinedLog {
    pub(crate) messages: Vec<GatheredMessage>,
    pub(crate) turns: Vec<GatheredSwitch>,
    /// The messages between hosts. The log of a faulty process bounds nothing.
    pub(crate) crossings: Vec<GatheredMessage>,
    /// The number of messages of an advance, n-f.
    pub(crate) threshold: usize,
}

/// (round, sender, receiver).
pub(crate) type MessageKey = (u64, u32, u32);

/// A switch with the clock of its host when it happened and when it was decided.
struct StampedSwitch {
    switch: SwitchEvent,
    stamp: ClockStamp,
    decided_ps: i64,
}

struct LogJoiner {
    clocks: Clocks,
    hosts: Vec<usize>,
    correct: Vec<bool>,
    sends: BTreeMap<(u64, u32), ClockStamp>,
    perceptions: BTreeMap<MessageKey, ClockStamp>,
    switches: Vec<StampedSwitch>,
}

impl JoinedLog {
    pub(crate) fn from_log(log: &LogReader, stamping: SwitchStamping) -> Result<Self, CertifyError> {
        let mut gatherer = LogJoiner::new(log.run(), log.clocks())?;
        let failed = |error| AnalysisError::from(error).into();
        log.each_event(WayInColumns::Skip, failed, |event| gatherer.take(event))?;
        Ok(gatherer.gathered(log.run(), stamping))
    }

    pub(crate) fn from_events(
        run: &RunDescription,
        clocks: &[ClockSample],
        events: &[Event],
        stamping: SwitchStamping,
    ) -> Result<Self, CertifyError> {
        let mut gatherer = LogJoiner::new(run, clocks)?;
        for event in events {
            gatherer.take(event)?;
        }
        Ok(gatherer.gathered(run, stamping))
    }
}

impl LogJoiner {
    fn new(run: &RunDescription, clocks: &[ClockSample]) -> Result<Self, CertifyError> {
        Ok(LogJoiner {
            clocks: Clocks::new(run, clocks)?,
            hosts: run.host_of.iter().map(|host| host.index()).collect(),
            correct: run.correct(),
            sends: BTreeMap::new(),
            perceptions: BTreeMap::new(),
            switches: vec![],
        })
    }

    fn take(&mut self, event: &Event) -> Result<(), CertifyError> {
        let process = event.process().index();
        let Some(&host) = self.hosts.get(process) else {
            let fault = format!("{process} is no process of this run");
            return Err(AnalysisError::Event { row: self.sends.len() + self.perceptions.len() + 1, fault }.into());
        };
        let stamp = ClockStamp { clock_ps: self.clocks.time_ps(process, event.at()), host };
        match *event {
            Event::Broadcast { process, round, .. } => drop(self.sends.entry((round.0, process.0)).or_insert(stamp)),
            Event::Perception { process, sender, round, .. } => {
                self.perceptions.entry((round.0, sender.0, process.0)).or_insert(stamp);
            }
            Event::Switch(switch) if self.correct[process] => {
                let decided_ps = self.clocks.time_ps(process, switch.decided);
                self.switches.push(StampedSwitch { switch, stamp, decided_ps });
            }
            Event::Switch(_) | Event::Transmission { .. } => {}
        }
        if self.perceptions.len() > MESSAGES_MAX { Err(CertifyError::TooLong(MESSAGES_MAX)) } else { Ok(()) }
    }

    fn is_correct(&self, process: u32) -> bool {
        self.correct.get(process as usize).copied().unwrap_or(false)
    }

    fn message(&self, &key: &MessageKey, &perceived: &ClockStamp) -> Option<GatheredMessage> {
        let (round, sender, _) = key;
        let &sent = self.sends.get(&(round, sender))?;
        Some(GatheredMessage { key, sent, perceived })
    }

    fn gathered(self, run: &RunDescription, stamping: SwitchStamping) -> JoinedLog {
        let both_correct = |&(&(_, sender, receiver), _): &(&MessageKey, &ClockStamp)| {
            self.is_correct(sender) && self.is_correct(receiver)
        };
        let mut messages: Vec<_> =
            self.perceptions.iter().filter(both_correct).filter_map(|(key, at)| self.message(key, at)).collect();
        messages.sort_unstable_by_key(|message| message.sent);
        let crossings =
            messages.iter().filter(|message| message.sent.host != message.perceived.host).copied().collect();
        let mut turns: Vec<_> = self.switches.iter().map(|switch| self.turn(switch, stamping)).collect();
        turns.sort_by_key(|turn| turn.at);
        JoinedLog { messages, turns, crossings, threshold: run.advance_threshold() as usize }
    }

    fn turn(
        &self,
        &StampedSwitch { switch, stamp, decided_ps }: &StampedSwitch,
        stamping: SwitchStamping,
    ) -> GatheredSwitch {
        let process = switch.process.0;
        let broadcast = self.sends.get(&(switch.to.0, process)).filter(|_| stamping == SwitchStamping::AfterBroadcast);
        let at = broadcast.map_or(stamp, |&broadcast| broadcast.max(stamp));
        let contributor = |sender: u32| {
            let key = (switch.from.0, sender, process);
            let perceived = self.perceptions.get(&key).filter(|perceived| perceived.clock_ps <= decided_ps)?;
            self.message(&key, perceived)
        };
        let senders = 0..self.correct.len() as u32;
        let contributors = match switch.rule {
            SwitchRule::Advance => senders.filter(|&sender| self.is_correct(sender)).filter_map(contributor).collect(),
            SwitchRule::CatchUp => vec![],
        };
        GatheredSwitch { process: process as usize, at, from: switch.from.0, to: switch.to.0, contributors }
    }
}
