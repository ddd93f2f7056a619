//! Reading events into the window.

use super::super::AnalysisError;
use super::super::window::{Entry, Reach};
use super::{Pass, Send, Stamping, Turn};
use crate::log::{EventColumns, Optional, kind};
use crate::record::{Origin, SwitchRule};
use ffclock_units::Counter;

/// Rounds before the first that is seen, for processes that lag when the log begins.
const ROUNDS_BEFORE: u64 = 64;
/// Rounds beyond this are nobody's, and could not be counted on from.
const ROUND_MAX: u64 = 1 << 62;
/// Rows that are read before what they completed is worked on.
const ROWS_AT_ONCE: usize = 1 << 10;

/// A column with gaps of which only switches have values, read from switch to switch.
struct OfSwitches<'a> {
    column: &'a Optional,
    /// Whether there are as many values as switches: then each has the next one, if it has any.
    is_regular: bool,
    row: usize,
    values_before: usize,
}

impl<'a> OfSwitches<'a> {
    fn new(column: &'a Optional, switches: usize) -> Self {
        let is_regular = column.values.len() == switches;
        OfSwitches { column, is_regular, row: 0, values_before: 0 }
    }

    /// The value of a switch in `row`; rows rise.
    fn at(&mut self, row: usize) -> Option<i64> {
        let present = *self.column.present.get(row)? != 0;
        if !self.is_regular {
            let between = self.column.present.get(self.row..row)?;
            self.values_before += between.iter().filter(|&&present| present != 0).count();
            self.row = row;
        }
        let value = self.column.values.get(self.values_before).copied().filter(|_| present);
        self.values_before += usize::from(self.is_regular);
        value
    }
}

/// What the rows of switches have besides.
struct Switches<'a> {
    from: OfSwitches<'a>,
    decided: OfSwitches<'a>,
}

impl<'a> Switches<'a> {
    fn of(batch: &'a EventColumns) -> Self {
        let is_switch = |&&kind: &&i32| kind == kind::ADVANCE || kind == kind::CATCH_UP;
        let switches = batch.kind.iter().filter(is_switch).count();
        Switches {
            from: OfSwitches::new(&batch.from_round, switches),
            decided: OfSwitches::new(&batch.decided, switches),
        }
    }
}

/// The fields of an event whose process is one of the run.
#[derive(Clone, Copy)]
struct Row {
    process: usize,
    peer: usize,
    round: u64,
}

impl Pass {
    /// Takes the next events of a stream, and works on as far as all streams allow.
    ///
    /// # Errors
    /// [`AnalysisError::Event`] for a row that cannot be.
    pub fn take(&mut self, stream: usize, batch: &EventColumns) -> Result<(), AnalysisError> {
        let mut switches = Switches::of(batch);
        let mut begin = 0;
        while begin < batch.len() {
            let end = batch.len().min(begin + ROWS_AT_ONCE);
            let read_until = self.take_rows(batch, begin..end, &mut switches)?;
            self.progress(stream, read_until);
            begin = end;
        }
        Ok(())
    }

    /// The time of the last of `rows`, which are not empty.
    fn take_rows(
        &mut self,
        batch: &EventColumns,
        rows: std::ops::Range<usize>,
        switches: &mut Switches<'_>,
    ) -> Result<i64, AnalysisError> {
        let begin = rows.start;
        let who = batch.kind[rows.clone()].iter().zip(&batch.process[rows.clone()]).zip(&batch.peer[rows.clone()]);
        let what = batch.round[rows.clone()].iter().zip(&batch.at[rows]);
        let mut time_ps = i64::MIN;
        for (number, (((&kind, &process), &peer), (&round, &at))) in who.zip(what).enumerate() {
            let row = Row { process: process as u32 as usize, peer: peer as u32 as usize, round: round as u64 };
            if row.process >= self.positions.len() {
                return Err(no_process(begin + number, process));
            }
            if kind == kind::TRANSMISSION {
                continue;
            }
            time_ps = self.clocks.time_ps(row.process, Counter::from_raw(at as u64));
            if kind != kind::PERCEPTION {
                self.take_other(begin + number, (kind, row, time_ps), switches)?;
            } else if row.peer < self.positions.len() {
                self.perceive(row, time_ps);
            } else {
                return Err(no_process(begin + number, peer));
            }
        }
        Ok(time_ps)
    }

    // Apart, so that the loop over perceptions keeps its registers.
    #[inline(never)]
    fn take_other(
        &mut self,
        number: usize,
        (kind, row, time_ps): (i32, Row, i64),
        switches: &mut Switches<'_>,
    ) -> Result<(), AnalysisError> {
        let rule = match kind {
            kind::BROADCAST => {
                self.send(row, time_ps);
                return Ok(());
            }
            kind::ADVANCE => SwitchRule::Advance,
            kind::CATCH_UP => SwitchRule::CatchUp,
            other => return Err(event(number, format!("kind {other} is unknown; 0 to 4 are known"))),
        };
        let (from, decided) = (switches.from.at(number), switches.decided.at(number));
        let (Some(from), Some(decided)) = (from, decided) else {
            return Err(event(number, "a switch needs from_round and decided".to_owned()));
        };
        let decided_ps = self.clocks.time_ps(row.process, Counter::from_raw(decided as u64));
        let (from, to) = (from as u64, row.round);
        self.turn(Turn { process: row.process, from, to, at_ps: time_ps, decided_ps, rule });
        Ok(())
    }

    /// A stream has ended.
    pub fn end_stream(&mut self, stream: usize) {
        self.read(stream, i64::MAX);
        self.release();
    }

    fn progress(&mut self, stream: usize, read_until: i64) {
        if read_until == i64::MIN {
            return;
        }
        self.read(stream, read_until.saturating_sub(self.disorder_ps));
        self.release();
    }

    #[inline(always)]
    fn perceive(&mut self, row: Row, time_ps: i64) {
        let weight = u32::from(self.listens[row.process]);
        let Some(messages) = self.window.open(row.round) else { return self.perceive_outside(row, time_ps) };
        if messages.perceive(row.peer, row.process, time_ps, weight) == Entry::Duplicate {
            let counts = self.correct[row.peer] && weight > 0;
            self.tally.counts.duplicates += u64::from(counts && self.options.range.holds(time_ps));
        }
    }

    /// A perception of a round that is not in the window.
    #[cold]
    fn perceive_outside(&mut self, row: Row, time_ps: i64) {
        if !self.correct[row.peer] || !self.listens[row.process] {
            return;
        }
        // All messages of a round that was finished have been perceived, so this one has been too.
        if self.window.was_finished(row.round) {
            self.tally.counts.duplicates += u64::from(self.options.range.holds(time_ps));
        } else if self.make_room(row.round, time_ps) {
            self.perceive(row, time_ps);
        }
    }

    fn send(&mut self, row: Row, time_ps: i64) {
        self.see(row.process, time_ps);
        // What a faulty process says about its own sends is not believed, and not needed.
        if !self.correct[row.process] {
            return;
        }
        if self.window.reach(row.round) != Reach::Inside && !self.make_room(row.round, time_ps) {
            return;
        }
        let Some(messages) = self.window.open(row.round) else { return };
        if messages.send(row.process, time_ps) == Entry::Duplicate {
            if self.options.range.holds(time_ps) {
                self.tally.conformance.breach(|| format!("process {} sent round {} twice", row.process, row.round));
            }
            return;
        }
        let position = &mut self.positions[row.process];
        position.sent = position.sent.max(row.round);
        let first_of_process = position.switched_to == 0 && self.origin != Origin::Imported;
        self.tally.last_round = self.tally.last_round.max(row.round);
        self.sends.insert(time_ps, Send { sender: row.process, round: row.round, first_of_process });
        if position.held.is_some_and(|turn| turn.to == row.round) {
            self.release_hold(row.process, time_ps);
        }
    }

    fn turn(&mut self, turn: Turn) {
        self.see(turn.process, turn.at_ps);
        if !self.correct[turn.process] {
            return;
        }
        self.release_hold(turn.process, i64::MIN);
        let position = &mut self.positions[turn.process];
        if position.sent == 0 && position.switched_to == 0 {
            position.began_in = turn.to;
        }
        let before = std::mem::replace(&mut position.switched_to, turn.to);
        let torn = turn.to <= turn.from || (before != 0 && before != turn.from);
        if torn && self.options.range.holds(turn.at_ps) {
            let Turn { process, from, to, .. } = turn;
            let breach =
                || format!("process {process} switched from round {from} to {to} when it was in round {before}");
            self.tally.conformance.breach(breach);
        }
        // The client of an imported log has no broadcast of its own.
        if self.options.stamping == Stamping::BeforeBroadcast || self.origin == Origin::Imported {
            self.turns.insert(turn.at_ps, turn);
        } else {
            self.positions[turn.process].held = Some(turn);
            self.holders.push(turn.process);
            self.held_ps = self.held_ps.min(turn.at_ps);
        }
    }

    /// Puts a switch that waited for its broadcast where it belongs: at the broadcast, or where it was if none came before the next switch or the end.
    pub(super) fn release_hold(&mut self, process: usize, broadcast_ps: i64) {
        let Some(turn) = self.positions[process].held.take() else { return };
        self.turns.insert(turn.at_ps.max(broadcast_ps), turn);
        self.holders.retain(|&holder| holder != process);
        let held = self.holders.iter().filter_map(|&holder| self.positions[holder].held);
        self.held_ps = held.map(|turn| turn.at_ps).min().unwrap_or(i64::MAX);
    }

    fn see(&mut self, process: usize, time_ps: i64) {
        self.tally.seen[process] = true;
        let (first, last) = self.tally.span_ps.unwrap_or((time_ps, time_ps));
        self.tally.span_ps = Some((first.min(time_ps), last.max(time_ps)));
    }

    /// Brings `round` into the window if that is possible; counts the event as late or stray if not.
    fn make_room(&mut self, round: u64, time_ps: i64) -> bool {
        let in_range = u64::from(self.options.range.holds(time_ps));
        if round > ROUND_MAX {
            self.tally.counts.stray += in_range;
            return false;
        }
        if self.window.is_empty() && self.window.reach(round) == Reach::Ahead {
            self.window.begin_at(round.saturating_sub(ROUNDS_BEFORE));
        }
        while self.window.reach(round) == Reach::Ahead {
            if !self.window.may_follow(round) {
                self.tally.counts.stray += in_range;
                return false;
            }
            self.give_up_oldest();
        }
        if self.window.reach(round) == Reach::Past {
            self.tally.counts.late += in_range;
            return false;
        }
        true
    }
}

fn event(number: usize, fault: String) -> AnalysisError {
    AnalysisError::Event { row: number + 1, fault }
}

fn no_process(number: usize, process: i32) -> AnalysisError {
    event(number, format!("{process} is no process of this run"))
}
