//! An analysis that never ends: messages come in as lines, and the figures of the run and of its last minute can be
//! asked at any time.
//!
//! The pass is that of [`crate::analysis`], over the events that [`crate::import::import_messages`] would have put into
//! a log; so at the end the figures are those of the analysis of that log, bit by bit. Memory does not grow: rounds
//! that are older than what is kept are given up, and the counts say so.

use crate::analysis::{Clocks, LogPass, Options, PassTally, Ratio, RecentFigures};
use crate::import::{MessageError, MessageLine, MessageLines, MessageOptions, MessageRounds, PassedOver, TimeUnit};
use crate::log::EventColumns;
use crate::record::RunDescription;
use serde::Serialize;

/// The length of the window, in seconds.
const WINDOW_S: u32 = 60;
/// Events that are collected before the pass takes them.
const EVENTS_AT_ONCE: usize = 1 << 12;
/// The memory for rounds that are not finished, in bytes.
const ROUND_BYTES_MAX: usize = 16 << 20;
/// What a round takes beside its cells: its part in the window, in the timeline and in the table of ids.
const ROUND_BYTES: usize = 256;

/// What is known of the messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WatchFigures {
    /// Of the last minute; `None` before the first event that can be judged.
    pub minute: Option<RecentFigures>,
    /// Messages that count.
    pub messages: u64,
    /// Rounds that have begun.
    pub rounds: u64,
    /// First switches with a tau_r-.
    pub switches: u64,
    /// The largest ratio at first switches.
    pub omega: Option<Ratio>,
    /// tau+ in picoseconds.
    pub delay_max_ps: Option<i64>,
    /// The smallest tau_r- in picoseconds.
    pub relevant_min_ps: Option<i64>,
    /// Messages that arrive before they are sent: a clock is wrong.
    pub not_positive: u64,
    /// Messages of rounds that had been given up for want of memory.
    pub late: u64,
    /// What is left out.
    pub passed_over: PassedOver,
}

/// A list of messages without an end.
pub struct MessageWatch {
    lines: MessageLines,
    follower: RoundFollower,
}

/// Rounds and their analysis.
struct RoundFollower {
    rounds: MessageRounds,
    pass: LogPass,
    events: EventColumns,
}

impl RoundFollower {
    fn take(&mut self, message: &MessageLine<'_>) -> Result<(), MessageError> {
        let events = &mut self.events;
        self.rounds.take(message, &mut |event| {
            events.push(event);
            Ok::<(), MessageError>(())
        })?;
        if self.events.len() >= EVENTS_AT_ONCE { self.analyse() } else { Ok(()) }
    }

    fn analyse(&mut self) -> Result<(), MessageError> {
        let taken = self.pass.take(0, &self.events);
        self.events.clear();
        Ok(taken?)
    }
}

impl MessageWatch {
    /// How many rounds are kept until they are finished, by the number of senders.
    pub const fn rounds_open(senders: usize) -> usize {
        let cells = (senders + 1) * (senders + 3) * 8;
        let rounds = ROUND_BYTES_MAX / (cells + ROUND_BYTES);
        if rounds < 2 { 2 } else { rounds }
    }

    /// Before the first line.
    ///
    /// # Errors
    /// As [`MessageRounds::new`].
    pub fn new(options: MessageOptions, unit: TimeUnit) -> Result<Self, MessageError> {
        let window_rounds = options.rounds_open as u64;
        let rounds = MessageRounds::new(options)?;
        let run = rounds.run();
        let clocks = Clocks::new(&run, &[MessageRounds::clock()])?;
        let pass = LogPass::new(&run, clocks, 1, Options { window_rounds, ..Options::default() }).watched(WINDOW_S);
        let follower = RoundFollower { rounds, pass, events: EventColumns::default() };
        Ok(MessageWatch { lines: MessageLines::new(unit), follower })
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`MessageError::Header`] for a first line that does not name the columns.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), MessageError> {
        let follower = &mut self.follower;
        self.lines.push(bytes, &mut |message| follower.take(message))
    }

    /// What is known now.
    ///
    /// # Errors
    /// As [`MessageWatch::take`].
    pub fn figures(&mut self) -> Result<WatchFigures, MessageError> {
        self.follower.analyse()?;
        let (pass, rounds) = (&self.follower.pass, &self.follower.rounds);
        Ok(figures_of(pass.so_far(), pass.recent(), (rounds.rounds(), self.passed_over())))
    }

    fn passed_over(&self) -> PassedOver {
        PassedOver { malformed: self.lines.malformed, ..self.follower.rounds.passed_over() }
    }

    /// The end of the list.
    ///
    /// # Errors
    /// As [`MessageWatch::take`].
    pub fn finish(mut self) -> Result<WatchEnd, MessageError> {
        let follower = &mut self.follower;
        self.lines.finish(&mut |message| follower.take(message))?;
        self.follower.analyse()?;
        let passed_over = self.passed_over();
        let RoundFollower { rounds, pass, .. } = self.follower;
        let mut run = rounds.run();
        run.unrecorded = passed_over.damage();
        let (tally, minute) = pass.finish_watched();
        let figures = figures_of(&tally, minute, (rounds.rounds(), passed_over));
        Ok(WatchEnd { run, figures, tally })
    }
}

/// All that is known at the end.
#[derive(Clone, Debug)]
pub struct WatchEnd {
    /// The run, with what is missing of it.
    pub run: RunDescription,
    /// The figures, the last minute before the end among them.
    pub figures: WatchFigures,
    /// The counts of the pass.
    pub tally: PassTally,
}

fn figures_of(
    tally: &PassTally,
    minute: Option<RecentFigures>,
    (rounds, passed_over): (u64, PassedOver),
) -> WatchFigures {
    WatchFigures {
        minute,
        messages: tally.counts.messages,
        rounds,
        switches: tally.first.times,
        omega: tally.first.omega.map(|peak| peak.ratio),
        delay_max_ps: tally.delay_max_ps,
        relevant_min_ps: tally.first.relevant_min_ps,
        not_positive: tally.counts.not_positive,
        late: tally.counts.late,
        passed_over,
    }
}
