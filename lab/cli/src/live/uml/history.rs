//! What a guest's clock showed over its raw counter, from readings of its kernel, and how late the kernel was. It
//! changes the rate for a new second at its next interrupt, of which there are 100 in a second, and later still where
//! the host lets it wait.

use super::timekeeper::{Lines, SHIFT};

const NS: f64 = (1_u64 << SHIFT) as f64;
const SECOND: i128 = 1_000_000_000 << SHIFT;
/// A change of the multiplier below this is the kernel's rounding.
const ROUNDING: i128 = 8;
/// More than this between two lines is a clock that was set [parts].
const JUMP: i128 = 100 << SHIFT;
/// A change of rate that comes within this time after the begin of a second is that second's [parts].
const LATE_AT_MOST: i128 = SECOND / 4;

/// One line and the raw counter [parts] from which on it holds.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: i128,
    lines: Lines,
    /// What the clock would have gained more by now if no second had begun late [ns].
    withheld: f64,
}

/// The past of a guest's clock.
#[derive(Debug, Default)]
pub(super) struct History {
    pieces: Vec<Piece>,
    /// Where programs called for a change, from the raw reading [ns] before to that after each call, in order.
    calls: Vec<[i64; 2]>,
}

impl Lines {
    fn raw_at(&self, cycle: i128) -> i128 {
        self.raw + (cycle - self.cycle) * self.raw_slope
    }

    /// What the clock shows at a raw reading, both in parts.
    fn shown_at(&self, raw: i128) -> i128 {
        self.shown + (raw - self.raw) * self.slope / self.raw_slope
    }

    fn rate(&self) -> f64 {
        self.slope as f64 / self.raw_slope as f64 - 1.0
    }

    /// Where the next line takes over: where the two meet if the rate changed, else at the next one's begin.
    fn until(&self, next: &Lines) -> i128 {
        let turn = next.slope - self.slope;
        if turn.abs() > ROUNDING {
            let behind = self.shown + (next.cycle - self.cycle) * self.slope - next.shown;
            let met = next.raw_at(next.cycle + behind / turn);
            if (self.raw..next.raw + SECOND / 50).contains(&met) {
                return met;
            }
        }
        next.raw
    }
}

impl History {
    /// A past in which changes of the rate within these spans of the raw counter [ns] were called for: none of them is
    /// the late begin of a second.
    pub(super) fn with_calls(calls: Vec<[i64; 2]>) -> History {
        History { calls, ..History::default() }
    }

    /// Whether a program called for a change then [parts].
    fn is_called_for(&self, raw: i128) -> bool {
        let raw = (raw >> SHIFT) as i64;
        let next = self.calls.partition_point(|call| call[1] < raw);
        self.calls.get(next).is_some_and(|call| call[0] <= raw)
    }

    /// Whether a program called for a change between two readings [parts]. Of late readings several changes may lie
    /// between two, and where their lines meet is the time of none.
    fn is_called_for_between(&self, from: i128, to: i128) -> bool {
        let [from, to] = [from, to].map(|raw| (raw >> SHIFT) as i64);
        let next = self.calls.partition_point(|call| call[0].midpoint(call[1]) <= from);
        self.calls.get(next).is_some_and(|call| call[0].midpoint(call[1]) <= to)
    }

    /// Where within a span of the raw counter [ns] the clock's rate changed, or the clock was set.
    pub(super) fn change_within(&self, [from, to]: [i64; 2]) -> Option<i64> {
        let begin = self.pieces.partition_point(|piece| piece.from < i128::from(from) << SHIFT).max(1);
        let within = self.pieces.windows(2).skip(begin - 1);
        let mut within = within.take_while(|two| two[1].from <= i128::from(to) << SHIFT);
        let found = within.find(|two| {
            let [before, after] = [0, 1].map(|index: usize| two[index].lines);
            let jump = before.shown_at(two[1].from) - after.shown_at(two[1].from);
            (after.slope - before.slope).abs() > ROUNDING || jump.abs() > JUMP
        })?;
        Some((found[1].from >> SHIFT) as i64)
    }

    /// Where around this span [ns] the readings leave open what the clock did, if something changed within.
    pub(super) fn around(&self, [from, to]: [i64; 2]) -> [i64; 2] {
        let after = |raw: i64| self.pieces.partition_point(|piece| (piece.lines.raw >> SHIFT) as i64 <= raw);
        let read_at = |index: usize| self.pieces.get(index).map(|piece| (piece.lines.raw >> SHIFT) as i64);
        [read_at(after(from).max(1) - 1).unwrap_or(from), read_at(after(to)).map_or(to, |raw| raw + 1)]
    }

    /// Takes a reading, if it is a new one.
    pub(super) fn add(&mut self, lines: Lines) {
        let Some(last) = self.pieces.last() else {
            return self.pieces.push(Piece { from: lines.raw, lines, withheld: 0.0 });
        };
        if !lines.is_later_than(&last.lines) {
            return;
        }
        let from = last.lines.until(&lines);
        // How long ago the second began that this line belongs to, as the line before it had it.
        let late = last.lines.shown_at(from).rem_euclid(SECOND);
        let turned = (lines.slope - last.lines.slope).abs() > ROUNDING;
        let is_called_for = self.is_called_for(from) || self.is_called_for_between(last.lines.raw, lines.raw);
        let is_late_second = turned && late < LATE_AT_MOST && !is_called_for;
        let withheld = if is_late_second { (lines.rate() - last.lines.rate()) * late as f64 / NS } else { 0.0 };
        self.pieces.push(Piece { from, lines, withheld: last.withheld + withheld });
    }

    /// The longest time without a new reading between two raw readings [ns].
    pub(super) fn gap_max(&self, from: i64, to: i64) -> i64 {
        let within = |piece: &&Piece| (from..to).contains(&((piece.lines.raw >> SHIFT) as i64));
        let raws: Vec<i128> = self.pieces.iter().filter(within).map(|piece| piece.lines.raw).collect();
        raws.windows(2).map(|two| ((two[1] - two[0]) >> SHIFT) as i64).max().unwrap_or(i64::MAX)
    }

    /// What the clock shows [ns] at a raw reading [ns], as if each second had begun in time.
    pub(super) fn shown_at(&self, raw_ns: i64) -> i64 {
        let raw = i128::from(raw_ns) << SHIFT;
        let index = self.pieces.partition_point(|piece| piece.from <= raw).max(1) - 1;
        let piece = &self.pieces[index];
        let shown = piece.lines.shown_at(raw) + (piece.withheld * NS) as i128;
        (shown >> SHIFT) as i64
    }
}

/// Nanoseconds of a count of the counter: many, so that the rate has enough digits.
#[cfg(test)]
const COUNT_NS: i128 = 1 << 20;

/// What the kernel holds after this many counts, where its clock then shows this [ns] and runs this much fast.
#[cfg(test)]
fn lines_at(cycle: i128, shown_ns: f64, ppm: f64) -> Lines {
    let raw_slope = COUNT_NS << SHIFT;
    let slope = raw_slope + (raw_slope as f64 * ppm * 1e-6).round() as i128;
    let (raw, shown) = ((cycle * COUNT_NS) << SHIFT, (shown_ns * NS) as i128);
    Lines { sequence: 2 * cycle as u32, cycle, shown, raw, slope, raw_slope }
}

#[test]
fn changes_that_were_called_for_between_late_readings_are_no_late_second() {
    // Readings after 1.05 s, 1.15 s and 1.25 s; called for after 1.16 s and 1.17 s: 50 ppm fast in between.
    let [first, second, third] = [1.05e9, 1.15e9, 1.25e9].map(|ns: f64| (ns / COUNT_NS as f64) as i128);
    let ns = |cycle: i128| (cycle * COUNT_NS) as f64;
    let call = |ns: i64| [ns - 1_000_000, ns + 1_000_000];
    let gained = 50e-6 * 10e6 + 2e-6 * (ns(third) - 1.17e9);
    let readings =
        [lines_at(first, ns(first), 0.0), lines_at(second, ns(second), 0.0), lines_at(third, ns(third) + gained, 2.0)];
    let mut history = History::with_calls([1_160_000_000, 1_170_000_000].map(call).to_vec());
    readings.into_iter().for_each(|lines| history.add(lines));
    let at = ns(third) as i64 + 1_000_000;
    assert!((history.shown_at(at) - at - (gained + 2.0) as i64).abs() <= 2, "{} ns", history.shown_at(at) - at);
}
