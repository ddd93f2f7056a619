//! An analysis that never ends: messages come in as lines, and the figures of the run and of its last minute can be
//! asked at any time.
//!
//! The pass is that of [`crate::analysis`], over the events that [`crate::import::import_messages`] would have put into
//! a log; so at the end the figures are those of the analysis of that log, bit by bit. Memory does not grow: messages
//! wait in `send_order` for as long as one may be on its way, and rounds that some senders are far behind with are
//! given up, as the counts say. Times count from an origin that moves on, so a list has no last day.

mod send_order;
mod too_long;

pub use too_long::TooLongFigures;

use crate::analysis::{Clocks, LogPass, Options, PassTally, Ratio, RecentFigures};
use crate::import::{MessageError, MessageLine, MessageLines, MessageOptions, MessageRounds, PassedOver, TimeUnit};
use crate::log::EventColumns;
use crate::record::{Event, ProcessId, Round, RunDescription, SwitchEvent, WayIn};
use ffclock_units::Counter;
use send_order::{SendOrder, TimeSlice, Waited, Waiting};
use serde::Serialize;
use too_long::RecentTooLong;

/// The length of the window, in seconds.
const WINDOW_S: u32 = 60;
/// The memory for rounds that are remembered, in bytes, and what each takes: with its place in the index.
const OPEN_BYTES_MAX: usize = 12 << 20;
const OPEN_BYTES: usize = 28;
/// The memory for them of more than 64 senders: all that waits for many senders takes more.
const OPEN_BYTES_MANY: usize = 8 << 20;
/// The memory for rounds that some senders have not reached, in bytes.
const ROUND_BYTES_MAX: usize = 8 << 20;
/// What such a round takes beside its cells.
const ROUND_BYTES: usize = 64;

/// A longer pause is as long as this for what came before it: times in picoseconds end there.
const PAUSE_NS_MAX: i64 = 100 * 86_400 * 1_000_000_000;

/// What is known of the messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct WatchFigures {
    /// Of the last minute; `None` before the first event that can be judged.
    pub minute: Option<RecentFigures>,
    /// Messages of the last minute that took longer than messages may: tau+ does not show them.
    pub minute_too_long: Option<TooLongFigures>,
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
    /// How often 16 messages in a row were earlier than those before: a clock was set back, or a line was wrong.
    pub steps_back: u64,
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
    order: SendOrder,
    /// Memory for what comes of one message.
    waiting: Vec<Waiting>,
    pass: LogPass,
    /// Memory for the events of one slice of time.
    events: EventColumns,
    too_long: RecentTooLong,
}

impl RoundFollower {
    fn take(&mut self, message: &MessageLine<'_>) -> Result<(), MessageError> {
        self.rounds.follow_back(message);
        if let Some(by_ns) = self.rounds.origin_moves_by(message) {
            self.move_origin(by_ns)?;
        }
        let before = (self.rounds.newest_ns(), self.rounds.passed_over().too_long);
        let (waiting, mut sent_ns) = (&mut self.waiting, 0);
        self.rounds.take(message, &mut |event| {
            let nanos = |at: Counter| at.raw() as i64;
            match *event {
                // The perception of the same message follows.
                Event::Broadcast { at, .. } => sent_ns = nanos(at),
                Event::Perception { sender, round, at, .. } => {
                    waiting.push(Waiting::message(sender.0, round.0, (sent_ns, nanos(at))));
                }
                Event::Switch(SwitchEvent { from, to, at, rule, .. }) => {
                    waiting.push(Waiting::switch(from.0, to.0, nanos(at), rule));
                }
                Event::Transmission { .. } => {}
            }
            Ok::<(), MessageError>(())
        })?;
        self.note_too_long(message, before);
        // First what came before: after a pause of days no slice of time lies in between.
        self.analyse_before(self.rounds.newest_ns())?;
        self.waiting.drain(..).for_each(|waiting| self.order.put(waiting));
        Ok(())
    }

    /// Notes a message that has just been passed over because it took too long, or how far time has come since then.
    fn note_too_long(&mut self, message: &MessageLine<'_>, (newest_ns, too_long): (i64, u64)) {
        if self.rounds.passed_over().too_long > too_long {
            let times = self.rounds.since_origin_ns(message);
            // One that arrives before it is sent has no delay.
            if let Some((sent_ns, perceived_ns)) = times.filter(|(sent_ns, perceived_ns)| perceived_ns > sent_ns) {
                self.too_long.note(perceived_ns, perceived_ns - sent_ns);
            }
        } else if !self.too_long.is_empty() && self.rounds.newest_ns() > newest_ns {
            self.too_long.come_to(self.rounds.newest_ns());
        }
    }

    /// Analyses what nothing earlier can precede when all that was perceived before `newest_ns` has been taken.
    fn analyse_before(&mut self, newest_ns: i64) -> Result<(), MessageError> {
        while let Some(TimeSlice { waiting, end_ns }) = self.order.take_before(newest_ns) {
            for waiting in &waiting {
                self.add(waiting);
            }
            self.order.give_back(waiting);
            let taken = self.pass.take_before(&self.events, end_ns.saturating_mul(1000));
            self.events.clear();
            taken?;
        }
        Ok(())
    }

    fn add(&mut self, waiting: &Waiting) {
        let counter = |at_ns: i64| Counter::from_raw(at_ns as u64);
        let (process, at) = (ProcessId(0), counter(waiting.at_ns));
        match waiting.what() {
            Waited::Message { sender, round, perceived_ns } => {
                let (sender, round, way_in) = (ProcessId(sender), Round(round), WayIn::default());
                self.events.push(&Event::Broadcast { process: sender, round, at });
                let at = counter(perceived_ns);
                self.events.push(&Event::Perception { process, sender, round, at, way_in });
            }
            Waited::Switch { from, to, rule } => {
                let (from, to, decided) = (Round(from), Round(to), at);
                self.events.push(&Event::Switch(SwitchEvent { process, from, to, at, decided, rule }));
            }
        }
    }

    fn move_origin(&mut self, by_ns: i64) -> Result<(), MessageError> {
        // The message at hand was perceived then or later.
        self.analyse_before(by_ns)?;
        self.rounds.move_origin(by_ns);
        self.order.move_origin(by_ns);
        self.too_long.move_origin(by_ns);
        self.pass.move_origin(by_ns.min(PAUSE_NS_MAX) * 1000);
        Ok(())
    }
}

impl MessageWatch {
    /// How many rounds are remembered at most, to which further messages may belong; fewer of more than 64 senders.
    pub const ROUNDS_OPEN: usize = OPEN_BYTES_MAX / OPEN_BYTES;

    /// How many of them fit into the memory for them, by the number of senders.
    pub const fn rounds_open(senders: usize) -> usize {
        match MessageRounds::bytes_beyond(senders) {
            0 => Self::ROUNDS_OPEN,
            beyond => OPEN_BYTES_MANY / (OPEN_BYTES + beyond),
        }
    }

    /// How many rounds are held while some senders have not reached them, by the number of senders.
    const fn window_rounds(senders: usize) -> u64 {
        // Only one process perceives. A cell beside the head of its row, for each process.
        let cells = (senders + 1) * 3 * 8;
        (ROUND_BYTES_MAX / (cells + ROUND_BYTES)) as u64
    }

    /// Before the first line.
    ///
    /// # Errors
    /// As [`MessageRounds::new`].
    pub fn new(mut options: MessageOptions, unit: TimeUnit) -> Result<Self, MessageError> {
        let senders = options.senders.len();
        let window_rounds = Self::window_rounds(senders);
        options.rounds_open = options.rounds_open.min(Self::rounds_open(senders));
        let rounds = MessageRounds::new(options)?;
        // What the pass takes is in the order of time.
        let run = RunDescription { disorder_ps: 0, ..rounds.run() };
        let clocks = Clocks::new(&run, &[MessageRounds::clock()])?;
        let pass = LogPass::new(&run, clocks, 1, Options { window_rounds, ..Options::default() }).watched(WINDOW_S);
        let order = SendOrder::new(rounds.longest_ns());
        let (events, too_long) = (EventColumns::default(), RecentTooLong::default());
        let follower = RoundFollower { rounds, order, waiting: vec![], pass, events, too_long };
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
    pub fn figures(&self) -> WatchFigures {
        let pass = &self.follower.pass;
        let figures = figures_of(pass.so_far(), &self.follower.rounds, self.passed_over());
        WatchFigures { minute: pass.recent(), minute_too_long: self.follower.too_long.figures(), ..figures }
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
        self.follower.analyse_before(i64::MAX)?;
        let passed_over = self.passed_over();
        let RoundFollower { rounds, pass, too_long, .. } = self.follower;
        let mut run = rounds.run();
        run.unrecorded = passed_over.damage();
        let (tally, minute) = pass.finish_watched();
        let figures = figures_of(&tally, &rounds, passed_over);
        let figures = WatchFigures { minute, minute_too_long: too_long.figures(), ..figures };
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

/// The figures of the run.
fn figures_of(tally: &PassTally, rounds: &MessageRounds, passed_over: PassedOver) -> WatchFigures {
    WatchFigures {
        minute: None,
        minute_too_long: None,
        messages: tally.counts.messages,
        rounds: rounds.rounds(),
        switches: tally.first.times,
        omega: tally.first.omega.map(|peak| peak.ratio),
        delay_max_ps: tally.delay_max_ps,
        relevant_min_ps: tally.first.relevant_min_ps,
        not_positive: tally.counts.not_positive,
        late: tally.counts.late,
        steps_back: rounds.steps_back(),
        passed_over,
    }
}
