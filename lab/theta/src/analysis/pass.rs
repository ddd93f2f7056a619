//! One pass over the events of a log.
//!
//! The parts: [`Rules`] is what is known from the start, [`Streams`] how far the log has been read. Rows go into the
//! window of rounds, which joins broadcasts and perceptions, and broadcasts and switches into the [`Timeline`]. What
//! nothing earlier can precede is released from it in the order of time: a broadcast as a [`Flight`] of messages into
//! [`InTransit`], a switch to the [`SwitchJudge`].

mod certainty;
mod flight;
mod in_transit;
mod judge;
mod positions;
mod release;
mod round_clocks;
mod rows;
mod rules;
mod streams;
mod timeline;

pub(super) use certainty::{Certainty, Edges};

use super::AnalysisError;
use super::clock::Clocks;
use super::options::Options;
use super::recent::{RecentFigures, RecentSeconds};
use super::tally::PassTally;
use super::window::{Novelty, RoundPlace, RoundWindow};
use crate::log::{EventColumns, kind};
use crate::record::{RunDescription, SwitchRule};
use ffclock_units::Counter;
use in_transit::InTransit;
use judge::SwitchJudge;
use positions::Positions;
use round_clocks::RoundClocks;
use rows::{EventRow, RareRow, SwitchColumns, fault, no_process};
use rules::Rules;
use streams::Streams;
use timeline::{Broadcast, TimedSwitch, Timeline};

/// How far below the first round that is seen the window begins, for processes that lag when the log begins.
const ROUNDS_BEFORE: u64 = 64;
/// No process can reach a round beyond this, and arithmetic on rounds would overflow there.
const ROUND_MAX: u64 = 1 << 62;
/// Rows that are read before what they completed is released.
const ROWS_AT_ONCE: usize = 1 << 10;
/// A pass without an end keeps no more blocks: it makes them longer instead.
const BLOCKS_MAX: usize = 4096;

/// A pass over the events of a log, in bounded memory.
pub struct LogPass {
    rules: Rules,
    clocks: Clocks,
    streams: Streams,
    window: RoundWindow,
    positions: Positions,
    round_clocks: RoundClocks,
    timeline: Timeline,
    transit: InTransit,
    /// The first time that counts, until it has passed; `None` also where Theta is not computed.
    range_begin_ps: Option<i64>,
    judge: SwitchJudge,
    certainty: Certainty,
    tally: PassTally,
    /// Only in a pass that is watched.
    recent: Option<RecentSeconds>,
}

impl LogPass {
    /// A pass over a log of `run` that has `streams` streams.
    pub fn new(run: &RunDescription, clocks: Clocks, streams: usize, options: Options) -> Self {
        let rules = Rules::new(run, options);
        LogPass {
            clocks,
            streams: Streams::new(streams),
            window: rules.window(),
            positions: Positions::new(rules.processes()),
            round_clocks: RoundClocks::new(rules.processes()),
            timeline: Timeline::default(),
            transit: InTransit::default(),
            range_begin_ps: rules.theta_begins_ps(),
            judge: SwitchJudge::default(),
            certainty: Certainty::default(),
            tally: rules.tally(),
            rules,
            recent: None,
        }
    }

    /// A pass that is watched: it also knows the figures of the last `seconds`, and its memory does not grow with the
    /// run. Blocks become longer instead of more. Only process 0 may perceive.
    #[must_use]
    pub fn watched(mut self, seconds: u32) -> Self {
        self.window = self.window.of_one_receiver(self.rules.options.window_rounds);
        self.recent = Some(RecentSeconds::new(seconds));
        self
    }

    /// What has been counted so far; extremes are in no order yet.
    pub fn so_far(&self) -> &PassTally {
        &self.tally
    }

    /// The figures of the last seconds, up to the latest event that nothing earlier can follow. `None` before the first
    /// one, and unless the pass is watched.
    pub fn recent(&self) -> Option<RecentFigures> {
        self.recent.as_ref()?.figures()
    }

    /// How far a stream has been read: the time of its latest event less the disorder that it may have.
    pub(super) fn read_until(&self, stream: usize) -> i64 {
        self.streams.read_until(stream)
    }

    /// The stream that lags most, to be read next.
    pub fn hungriest(&self) -> usize {
        self.streams.slowest()
    }

    /// Takes the next events of a stream, and releases what all streams allow.
    ///
    /// # Errors
    /// [`AnalysisError::Event`] for an impossible row.
    pub fn take(&mut self, stream: usize, batch: &EventColumns) -> Result<(), AnalysisError> {
        let mut switches = SwitchColumns::of(batch);
        let mut begin = 0;
        while begin < batch.len() {
            let end = batch.len().min(begin + ROWS_AT_ONCE);
            let read_until = self.take_rows(batch, begin..end, &mut switches)?;
            self.progress(stream, read_until);
            begin = end;
        }
        if self.recent.is_some() {
            self.tally.limit_blocks(BLOCKS_MAX);
        }
        Ok(())
    }

    /// Takes events of the only stream, in any order. All events before `until_ps` have then been taken.
    ///
    /// # Errors
    /// As [`LogPass::take`].
    pub fn take_before(&mut self, batch: &EventColumns, until_ps: i64) -> Result<(), AnalysisError> {
        self.take_rows(batch, 0..batch.len(), &mut SwitchColumns::of(batch))?;
        self.streams.read(0, until_ps);
        self.release();
        if self.recent.is_some() {
            self.tally.limit_blocks(BLOCKS_MAX);
        }
        Ok(())
    }

    /// Counts all times from an origin that is later by `by_ps`, whole seconds: the times that are known, and those of
    /// the events that follow. Nothing else changes.
    pub fn move_origin(&mut self, by_ps: i64) {
        self.streams.move_origin(by_ps);
        self.window.move_origin(by_ps);
        self.positions.move_origin(by_ps);
        self.timeline.move_origin(by_ps);
        self.transit.move_origin(by_ps);
        self.certainty.move_origin(by_ps);
        self.tally.move_origin(by_ps);
        if let Some(recent) = &mut self.recent {
            recent.move_origin(by_ps);
        }
    }

    /// Ends a stream.
    pub fn end_stream(&mut self, stream: usize) {
        self.streams.read(stream, i64::MAX);
        self.release();
    }

    fn progress(&mut self, stream: usize, read_until: i64) {
        if read_until == i64::MIN {
            return;
        }
        self.streams.read(stream, read_until.saturating_sub(self.rules.disorder_ps));
        self.release();
    }

    /// The time of the last of `rows`, which are not empty; `i64::MIN` if none has a time.
    fn take_rows(
        &mut self,
        batch: &EventColumns,
        rows: std::ops::Range<usize>,
        switches: &mut SwitchColumns<'_>,
    ) -> Result<i64, AnalysisError> {
        let begin = rows.start;
        let who = batch.kind[rows.clone()].iter().zip(&batch.process[rows.clone()]).zip(&batch.peer[rows.clone()]);
        let what = batch.round[rows.clone()].iter().zip(&batch.at[rows]);
        let processes = self.positions.len();
        let mut time_ps = i64::MIN;
        for (number, (((&kind, &process), &peer), (&round, &at))) in who.zip(what).enumerate() {
            let row = EventRow { process: process as u32 as usize, peer: peer as u32 as usize, round: round as u64 };
            if row.process >= processes {
                return Err(no_process(begin + number, process));
            }
            if kind == kind::TRANSMISSION {
                continue;
            }
            time_ps = self.clocks.time_ps(row.process, Counter::from_raw(at as u64));
            if kind != kind::PERCEPTION {
                self.take_rare(RareRow { number: begin + number, kind, row, time_ps }, switches)?;
            } else if row.peer < processes {
                self.perceive(row, time_ps);
            } else {
                return Err(no_process(begin + number, peer));
            }
        }
        Ok(time_ps)
    }

    // Apart, so that the loop over perceptions keeps its registers.
    #[inline(never)]
    fn take_rare(&mut self, rare: RareRow, switches: &mut SwitchColumns<'_>) -> Result<(), AnalysisError> {
        let RareRow { number, kind, row, time_ps } = rare;
        let rule = match kind {
            kind::BROADCAST => {
                self.send(row, time_ps);
                return Ok(());
            }
            kind::ADVANCE => SwitchRule::Advance,
            kind::CATCH_UP => SwitchRule::CatchUp,
            other => return Err(fault(number, format!("kind {other} is unknown; 0 to 4 are known"))),
        };
        let fields = switches.at(number)?;
        let decided_ps = self.clocks.time_ps(row.process, Counter::from_raw(fields.decided as u64));
        let (from, to) = (fields.from as u64, row.round);
        self.switch(TimedSwitch { process: row.process, from, to, at_ps: time_ps, decided_ps, rule });
        Ok(())
    }

    #[inline(always)]
    fn perceive(&mut self, row: EventRow, time_ps: i64) {
        let weight = u32::from(self.rules.listens[row.process]);
        let Some(messages) = self.window.open(row.round) else { return self.perceive_outside(row, time_ps) };
        if messages.perceive(row.peer, row.process, time_ps, weight) == Novelty::Duplicate {
            let counts = self.rules.correct[row.peer] && weight > 0;
            self.tally.counts.duplicates += u64::from(counts && self.rules.counts(time_ps));
        }
    }

    /// A perception of a round that is not in the window.
    #[cold]
    fn perceive_outside(&mut self, row: EventRow, time_ps: i64) {
        if !self.rules.correct[row.peer] || !self.rules.listens[row.process] {
            return;
        }
        // All messages of a finished round have been perceived, so this one has been too.
        if self.window.was_finished(row.round) {
            self.tally.counts.duplicates += u64::from(self.rules.counts(time_ps));
        } else if self.make_room(row.round, time_ps) {
            self.perceive(row, time_ps);
        }
    }

    fn send(&mut self, row: EventRow, time_ps: i64) {
        self.tally.see(row.process, time_ps);
        // The log of a faulty process is not believed about its own broadcasts, and not needed.
        if !self.rules.correct[row.process] {
            return;
        }
        if self.window.reach(row.round) != RoundPlace::Inside && !self.make_room(row.round, time_ps) {
            return;
        }
        let Some(messages) = self.window.open(row.round) else { return };
        if messages.send(row.process, time_ps) == Novelty::Duplicate {
            if self.rules.counts(time_ps) {
                self.tally.conformance.breach(|| format!("process {} sent round {} twice", row.process, row.round));
            }
            return;
        }
        let first_of_process = !self.positions.has_switched(row.process) && !self.rules.is_imported();
        self.tally.last_round = self.tally.last_round.max(row.round);
        let broadcast = Broadcast { sender: row.process, round: row.round, first_of_process };
        self.timeline.insert_broadcast(time_ps, broadcast);
        if self.positions.note_broadcast(row.process, row.round) {
            self.release_held(row.process, time_ps);
        }
    }

    fn switch(&mut self, switch: TimedSwitch) {
        self.tally.see(switch.process, switch.at_ps);
        if !self.rules.correct[switch.process] {
            return;
        }
        self.release_held(switch.process, i64::MIN);
        let before = self.positions.note_switch(&switch);
        let is_torn = switch.to <= switch.from || (before != 0 && before != switch.from);
        if is_torn && self.rules.counts(switch.at_ps) {
            let TimedSwitch { process, from, to, .. } = switch;
            self.tally.conformance.breach(|| {
                format!("process {process} switched from round {from} to {to} when it was in round {before}")
            });
        }
        if self.rules.stamps_after_broadcast() {
            self.positions.hold(switch);
        } else {
            self.timeline.insert_switch(switch.at_ps, switch);
        }
    }

    /// Puts a switch that waited for its broadcast into the timeline: at the broadcast, or at its own time if none
    /// came before the next switch or the end.
    fn release_held(&mut self, process: usize, broadcast_ps: i64) {
        if let Some(switch) = self.positions.unhold(process) {
            self.timeline.insert_switch(switch.at_ps.max(broadcast_ps), switch);
        }
    }

    /// Brings `round` into the window if that is possible; otherwise counts the event as late or stray.
    fn make_room(&mut self, round: u64, time_ps: i64) -> bool {
        let in_range = u64::from(self.rules.counts(time_ps));
        if round > ROUND_MAX {
            self.tally.counts.stray += in_range;
            return false;
        }
        if self.window.is_empty() && self.window.reach(round) == RoundPlace::Ahead {
            self.window.begin_at(round.saturating_sub(ROUNDS_BEFORE));
        }
        while self.window.reach(round) == RoundPlace::Ahead {
            if !self.window.may_follow(round) {
                self.tally.counts.stray += in_range;
                return false;
            }
            self.give_up_oldest();
        }
        if self.window.reach(round) == RoundPlace::Past {
            self.tally.counts.late += in_range;
            return false;
        }
        true
    }
}
