//! Messages in the order of their perception to events of a run.

mod step_back;

use super::open_rounds::{HeardRound, OpenRounds};
use super::{MessageError, MessageLine, SENDERS_MAX};
use crate::record::{
    ClockSample, Event, HostId, LogOrigin, ProcessId, RecordedForm, Round, RunDescription, RunHost, SwitchEvent,
    SwitchRule, WayIn,
};
use ffclock_units::{Counter, Period, Rate};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// Times farther from the origin do not fit a log: 50 days.
pub(super) const SPAN_NS_MAX: u64 = 50 * DAY_NS;
/// A list without an end counts from a later origin when it has come this far.
const ORIGIN_NS_MAX: u64 = 25 * DAY_NS;
/// As many messages in a row, all of them more than 50 days after those before: time has gone on. If all of them are
/// earlier, it has gone back.
const IN_A_ROW: u32 = 16;
const SECOND_NS: i64 = 1_000_000_000;

/// Whose messages are taken, and how far they may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageOptions {
    /// The one whose messages are taken.
    pub receiver: String,
    /// Those it hears.
    pub senders: Vec<String>,
    /// The number of senders that need not be heard: the receiver goes on without them.
    pub tolerated: u32,
    /// Messages that take longer are passed over, in nanoseconds.
    pub longest_ns: u64,
    /// As many rounds are remembered, to which further messages may belong.
    pub rounds_open: usize,
}

/// Messages that are left out, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PassedOver {
    /// Lines that are no messages.
    pub malformed: u64,
    /// To other receivers.
    pub elsewhere: u64,
    /// From senders that were not named.
    pub strangers: u64,
    /// Sent and never perceived.
    pub lost: u64,
    /// From a sender that had been heard with this id.
    pub repeated: u64,
    /// Perceived earlier than the line before.
    pub out_of_order: u64,
    /// They took longer than messages may.
    pub too_long: u64,
    /// More than 50 days from most others; in a list without an end, from the one before.
    pub remote: u64,
}

impl PassedOver {
    /// Those without which the figures may be wrong: what was not meant for this receiver, and what got lost, are not
    /// among them.
    pub const fn damage(&self) -> u64 {
        let PassedOver { malformed, strangers, repeated, out_of_order, too_long, remote, .. } = *self;
        malformed + strangers + repeated + out_of_order + too_long + remote
    }
}

/// Makes events of messages.
#[derive(Debug)]
pub struct MessageRounds {
    options: MessageOptions,
    senders: HashMap<String, u32>,
    quorum: usize,
    rounds: OpenRounds,
    /// The round in which the receiver is.
    current: u64,
    origin_ns: Option<i64>,
    newest_ns: i64,
    /// The latest message that was remote, and how many were in a row.
    remote: (i64, u32),
    /// The same of messages that were earlier than those before.
    behind: (i64, u32),
    steps_back: u64,
    taken: u64,
    passed_over: PassedOver,
}

impl MessageRounds {
    /// Before the first message.
    ///
    /// # Errors
    /// [`MessageError::Senders`] and [`MessageError::Tolerated`].
    pub fn new(options: MessageOptions) -> Result<Self, MessageError> {
        let senders: HashMap<String, u32> = options.senders.iter().cloned().zip(1..).collect();
        let count = options.senders.len();
        if senders.is_empty() || count > SENDERS_MAX || senders.len() != count {
            return Err(MessageError::Senders(senders.len()));
        }
        let Some(quorum) = count.checked_sub(options.tolerated as usize).filter(|&quorum| quorum > 0) else {
            return Err(MessageError::Tolerated { tolerated: options.tolerated, senders: count });
        };
        Ok(MessageRounds {
            rounds: OpenRounds::new(options.rounds_open, count),
            options,
            senders,
            quorum,
            current: 1,
            origin_ns: None,
            newest_ns: i64::MIN,
            remote: (0, 0),
            behind: (0, 0),
            steps_back: 0,
            taken: 0,
            passed_over: PassedOver::default(),
        })
    }

    /// Times count from this one on, in nanoseconds, in place of that of the first message.
    pub(super) fn count_from(&mut self, origin_ns: Option<i64>) {
        self.origin_ns = origin_ns;
    }

    /// The run, of one host.
    pub fn run(&self) -> RunDescription {
        let MessageOptions { receiver, senders, tolerated, longest_ns, .. } = &self.options;
        let processes = senders.len() as u32 + 1;
        let names =
            senders.iter().zip(1..).map(|(name, process): (_, u32)| (format!("process {process}"), name.clone()));
        let settings = names.chain([("receiver".to_owned(), receiver.clone())]);
        RunDescription {
            origin: LogOrigin::Imported,
            form: RecordedForm::Unknown,
            processes,
            // The receiver itself sends none of the n - f messages.
            tolerated: tolerated + 1,
            delay_ps: 0,
            delay_min_ps: 0,
            disorder_ps: longest_ns.saturating_mul(1000).min(i64::MAX as u64),
            hosts: vec![RunHost { name: "messages".to_owned(), counter: "messages".to_owned() }],
            host_of: vec![HostId(0); processes as usize],
            faults: vec![],
            settings: settings.collect::<BTreeMap<_, _>>(),
            unrecorded: 0,
        }
    }

    /// What a round that is remembered takes beyond the bits of the first 64 senders, in bytes.
    pub(crate) const fn bytes_beyond(senders: usize) -> usize {
        OpenRounds::bytes_beyond(senders)
    }

    /// The clock of all: the times of the list count from a perception in it.
    ///
    /// # Panics
    /// Never: a nanosecond is a period.
    pub fn clock() -> ClockSample {
        let period = Period::from_seconds(1e-9).expect("a nanosecond is a period");
        let (host, counter, drift_bound) = (HostId(0), Counter::from_raw(0), Rate::from_ppm(0.0));
        ClockSample { host, counter, time_ps: 0, bound_ps: 0, period, drift_bound }
    }

    /// Messages that became events.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Rounds that have begun.
    pub fn rounds(&self) -> u64 {
        self.rounds.begun()
    }

    /// Messages that were left out.
    pub fn passed_over(&self) -> PassedOver {
        self.passed_over
    }

    /// The latest perception since the origin, in nanoseconds; `i64::MIN` before the first.
    pub(crate) fn newest_ns(&self) -> i64 {
        self.newest_ns
    }

    /// When a message was sent and perceived, since the origin; `None` if it got lost.
    pub(crate) fn since_origin_ns(&self, message: &MessageLine<'_>) -> Option<(i64, i64)> {
        let (origin_ns, perceived_ns) = (self.origin_ns?, message.perceived_ns?);
        Some((message.sent_ns.saturating_sub(origin_ns), perceived_ns.saturating_sub(origin_ns)))
    }

    /// Messages that take longer are passed over, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.options.longest_ns
    }

    /// By how many nanoseconds, whole seconds of them, the origin must move on before this message is taken: time has
    /// gone so far that the rest of it would not fit. `None` nearly always.
    pub(crate) fn origin_moves_by(&mut self, message: &MessageLine<'_>) -> Option<i64> {
        let (origin_ns, perceived_ns) = (self.origin_ns?, message.perceived_ns?);
        let since_ns = perceived_ns.saturating_sub(origin_ns);
        if since_ns < ORIGIN_NS_MAX as i64 || !self.is_possible(message, perceived_ns) {
            return None;
        }
        if since_ns.abs_diff(self.newest_ns) > SPAN_NS_MAX {
            // One line may be wrong by anything; many that agree are not.
            let agrees = self.remote.0.abs_diff(perceived_ns) < SPAN_NS_MAX;
            self.remote = (perceived_ns, if agrees { self.remote.1 + 1 } else { 1 });
            if self.remote.1 < IN_A_ROW {
                return None;
            }
        }
        Some(since_ns - since_ns.rem_euclid(SECOND_NS))
    }

    fn is_possible(&self, message: &MessageLine<'_>, perceived_ns: i64) -> bool {
        message.receiver == self.options.receiver
            && self.senders.contains_key(message.sender)
            && perceived_ns.abs_diff(message.sent_ns) <= self.options.longest_ns
    }

    /// Counts all times from an origin that is later by this many nanoseconds.
    pub(crate) fn move_origin(&mut self, by_ns: i64) {
        self.origin_ns = self.origin_ns.map(|origin_ns| origin_ns.saturating_add(by_ns));
        self.newest_ns = self.newest_ns.saturating_sub(by_ns);
        self.remote = (0, 0);
    }

    /// Takes the next message, and hands over its events.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn take<E>(
        &mut self,
        message: &MessageLine<'_>,
        take: &mut dyn FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some((sender, sent_ns, perceived_ns)) = self.usable(message) else { return Ok(()) };
        let Some(HeardRound { number: round, heard }) = self.rounds.hear(message.id, sender) else {
            self.passed_over.repeated += 1;
            return Ok(());
        };
        self.newest_ns = perceived_ns;
        (self.remote.1, self.behind.1) = (0, 0);
        self.taken += 1;
        let counter = |at_ns: i64| Counter::from_raw(at_ns as u64);
        let (sender, at) = (ProcessId(sender), counter(perceived_ns));
        take(&Event::Broadcast { process: sender, round: Round(round), at: counter(sent_ns) })?;
        let (process, way_in) = (ProcessId(0), WayIn::default());
        take(&Event::Perception { process, sender, round: Round(round), at, way_in })?;
        if heard < self.quorum || round < self.current {
            return Ok(());
        }
        let switch = |from, to, rule| {
            Event::Switch(SwitchEvent { process, from: Round(from), to: Round(to), at, decided: at, rule })
        };
        if round > self.current {
            take(&switch(self.current, round, SwitchRule::CatchUp))?;
        }
        self.current = round + 1;
        take(&switch(round, round + 1, SwitchRule::Advance))
    }

    /// The sender, and the times since the origin; or the reason is counted.
    fn usable(&mut self, message: &MessageLine<'_>) -> Option<(u32, i64, i64)> {
        let mut count = |reason: fn(&mut PassedOver) -> &mut u64| {
            *reason(&mut self.passed_over) += 1;
            None
        };
        if message.receiver != self.options.receiver {
            return count(|over| &mut over.elsewhere);
        }
        let Some(&sender) = self.senders.get(message.sender) else { return count(|over| &mut over.strangers) };
        let Some(perceived_ns) = message.perceived_ns else { return count(|over| &mut over.lost) };
        let origin_ns = *self.origin_ns.get_or_insert(perceived_ns);
        let is_remote = |at_ns: i64| at_ns.abs_diff(origin_ns) > SPAN_NS_MAX;
        if is_remote(perceived_ns) || is_remote(message.sent_ns) {
            return count(|over| &mut over.remote);
        }
        let (sent_ns, perceived_ns) = (message.sent_ns - origin_ns, perceived_ns - origin_ns);
        if perceived_ns < self.newest_ns {
            return count(|over| &mut over.out_of_order);
        }
        if perceived_ns.abs_diff(sent_ns) > self.options.longest_ns {
            return count(|over| &mut over.too_long);
        }
        Some((sender, sent_ns, perceived_ns))
    }
}
