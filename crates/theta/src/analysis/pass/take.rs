//! Reading events into the window.

use super::super::AnalysisError;
use super::super::window::{Entry, Reach};
use super::{Pass, Send, Stamping, Turn};
use crate::log::{EventColumns, Optional, kind};
use crate::record::{Origin, SwitchRule};
use ffclock_units::Counter;

/// Rounds before the first that is seen, for processes that lag when the log begins.
const ROUNDS_BEFORE: u64 = 64;

/// The rows of a column with gaps, for a few rows in rising order.
struct Gaps<'a> {
    column: &'a Optional,
    row: usize,
    values_before: usize,
}

impl<'a> Gaps<'a> {
    fn of(column: &'a Optional) -> Self {
        Gaps { column, row: 0, values_before: 0 }
    }

    fn at(&mut self, row: usize) -> Option<i64> {
        let between = self.column.present.get(self.row..row)?;
        self.values_before += between.iter().filter(|&&present| present != 0).count();
        self.row = row;
        if *self.column.present.get(row)? == 0 { None } else { self.column.values.get(self.values_before).copied() }
    }
}

/// The fields of an event, still unchecked.
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
        let mut read_until = i64::MIN;
        let (mut from_rounds, mut decisions) = (Gaps::of(&batch.from_round), Gaps::of(&batch.decided));
        let ids = batch.kind.iter().zip(&batch.process).zip(&batch.peer);
        let rows = ids.zip(batch.round.iter().zip(&batch.at)).enumerate();
        for (number, (((&kind, &process), &peer), (&round, &at))) in rows {
            let at = Counter::from_raw(at as u64);
            let row = Row { process: process as u32 as usize, peer: peer as u32 as usize, round: round as u64 };
            if row.process >= self.positions.len() {
                return Err(no_process(number, process));
            }
            let time_ps = self.clocks.time_ps(row.process, at);
            match kind {
                kind::PERCEPTION if row.peer >= self.positions.len() => return Err(no_process(number, peer)),
                kind::PERCEPTION => self.perceive(&row, time_ps),
                kind::BROADCAST => self.send(&row, time_ps),
                kind::TRANSMISSION => continue,
                kind::ADVANCE | kind::CATCH_UP => {
                    let rule = if kind == kind::ADVANCE { SwitchRule::Advance } else { SwitchRule::CatchUp };
                    let (from, decided) = (from_rounds.at(number), decisions.at(number));
                    let (Some(from), Some(decided)) = (from, decided) else {
                        return Err(event(number, "a switch needs from_round and decided".to_owned()));
                    };
                    let decided_ps = self.clocks.time_ps(row.process, Counter::from_raw(decided as u64));
                    let (from, to) = (from as u64, row.round);
                    self.turn(Turn { process: row.process, from, to, at_ps: time_ps, decided_ps, rule });
                }
                other => return Err(event(number, format!("kind {other} is unknown; 0 to 4 are known"))),
            }
            read_until = time_ps;
        }
        self.progress(stream, read_until);
        Ok(())
    }

    /// A stream has ended.
    pub fn end_stream(&mut self, stream: usize) {
        self.streams_ps[stream] = i64::MAX;
        self.release();
    }

    fn progress(&mut self, stream: usize, read_until: i64) {
        if read_until == i64::MIN {
            return;
        }
        self.streams_ps[stream] = self.streams_ps[stream].max(read_until.saturating_sub(self.disorder_ps));
        self.release();
    }

    #[inline]
    fn perceive(&mut self, row: &Row, time_ps: i64) {
        let counts = self.correct[row.peer] && self.listens[row.process];
        if self.window.reach(row.round) != Reach::Inside {
            // All messages of a round that was finished have been perceived, so this one has been too.
            if counts && self.window.was_finished(row.round) {
                self.tally.counts.duplicates += u64::from(self.options.range.holds(time_ps));
                return;
            }
            if !counts || !self.make_room(row.round, time_ps) {
                return;
            }
        }
        let weight = u32::from(self.listens[row.process]);
        let messages = self.window.round_mut(row.round);
        if messages.perceive(row.peer, row.process, time_ps, weight) == Entry::Duplicate {
            self.tally.counts.duplicates += u64::from(counts && self.options.range.holds(time_ps));
        }
    }

    fn send(&mut self, row: &Row, time_ps: i64) {
        self.see(row.process, time_ps);
        // What a faulty process says about its own sends is not believed, and not needed.
        if !self.correct[row.process] {
            return;
        }
        if self.window.reach(row.round) != Reach::Inside && !self.make_room(row.round, time_ps) {
            return;
        }
        if self.window.round_mut(row.round).send(row.process, time_ps) == Entry::Duplicate {
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
        }
    }

    /// Puts a switch that waited for its broadcast where it belongs: at the broadcast, or where it was if none came.
    pub(super) fn release_hold(&mut self, process: usize, broadcast_ps: i64) {
        if let Some(turn) = self.positions[process].held.take() {
            self.turns.insert(turn.at_ps.max(broadcast_ps), turn);
        }
    }

    fn see(&mut self, process: usize, time_ps: i64) {
        self.tally.seen[process] = true;
        let (first, last) = self.tally.span_ps.unwrap_or((time_ps, time_ps));
        self.tally.span_ps = Some((first.min(time_ps), last.max(time_ps)));
    }

    /// Brings `round` into the window if that is possible; counts the event as late or stray if not.
    fn make_room(&mut self, round: u64, time_ps: i64) -> bool {
        let in_range = u64::from(self.options.range.holds(time_ps));
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
