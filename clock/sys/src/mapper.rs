//! From the kernel's stamps, which are by the system clock, to readings of the raw counter.
//!
//! A stamp lies between two pairs (counter, system clock): one read before the packet passed, one read after its stamp
//! came. It is carried over from the nearer pair with the nominal period, and its width says how wrong that can be:
//! - the width of the pair's own bracket;
//! - 600 ppm of the distance to the pair, since the system clock may be slewed by 500 ppm (adjtimex(2)) and the nominal
//!   period is a little off;
//! - what the two pairs disagree by, beyond the rate that the system clock kept against the counter before: a step so
//!   small that it passes for slewing is no larger than that.
//!
//! Steps are found in two ways. The kernel announces each one (see [`CancelOnSetTimer`](crate::CancelOnSetTimer)), but
//! some microseconds late; and two pairs that disagree by more than slewing can do prove one. After a step nothing that
//! was stamped before it is mapped. A stamp that contradicts the order of events, later than a pair read after it or
//! earlier than one read before it, is discarded too.
//!
//! Without word from the kernel ([`Watch::Blind`]) a step could hide behind slewing in the other direction, so the full
//! 600 ppm of the distance between the two pairs enter the width.

use crate::{Pair, PairReader, StampDiscarded, Watch};
use ffclock_units::{Counter, Moment, Period, Rate, Span, Stamp, StampLocation, Ticks, Utc};
use std::collections::VecDeque;

/// How far the system clock may run from the nominal period: 500 ppm of slewing and 100 ppm of error of that period.
const SLEW: Rate = Rate::from_ppm(600.0);
/// The system clock and the stamps are truncated to nanoseconds.
const RESOLUTION: Span = Span::from_nanos(2);
/// Marks remembered, unless more are asked for.
const REMEMBERED: usize = 16;
/// Of marks that follow each other more closely only the first and the last are remembered.
const CLOSE: Span = Span::from_millis(5);
/// A packet that came before a step is taken over within this time after the step was noticed: the process is running,
/// and empties its sockets whenever it wakes.
const LONGEST_WAIT: Span = Span::from_secs(4);
/// The rate of the system clock is measured over this and longer.
const RATE_OVER: Span = Span::from_secs(2);
/// At the very beginning a shorter time must do.
const FIRST_RATE_OVER: Span = Span::from_millis(1);

/// Maps stamps by pairs of `R`; one for all sockets of a process.
#[derive(Debug)]
pub(crate) struct Mapper<R> {
    reader: R,
    period: Period,
    /// The marks of the present run, oldest first.
    marks: VecDeque<PairMark>,
    /// How many are remembered.
    remembered: usize,
    /// Where the present run began: what is older was before a step.
    begin: Counter,
    /// The most that the system clock can have shown before that step. Where it was set back, stamps up to here may be
    /// of either side.
    shown_before: Option<Moment<Utc>>,
    anchor: Pair,
    drift: SystemClockRate,
}

/// A pair, and what was known of the system clock's rate when it was read. What happens later is judged by that rate:
/// one that was measured across a step would hide the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PairMark {
    pair: Pair,
    drift: SystemClockRate,
}

/// The rate of the system clock against the nominal period, and its largest error as long as the slewing does not
/// change.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SystemClockRate {
    rate: Rate,
    error: Rate,
}

const NO_DRIFT_KNOWN: SystemClockRate = SystemClockRate { rate: Rate::ZERO, error: SLEW };

/// Two marks around a stamp, and those beyond them.
#[derive(Clone, Copy, Debug)]
struct Around {
    before: PairMark,
    after: PairMark,
    /// The mark before `before`; `None` where the stamp is known to be later than `before`.
    previous: Option<PairMark>,
    next: Option<PairMark>,
}

impl<R: PairReader> Mapper<R> {
    /// Maps with pairs from `reader`.
    pub(crate) fn new(mut reader: R, period: Period) -> Self {
        let drift = NO_DRIFT_KNOWN;
        let first = reader.read_pair();
        let marks = [PairMark { pair: first, drift }].into();
        Mapper {
            reader,
            period,
            marks,
            remembered: REMEMBERED,
            begin: first.counter,
            shown_before: None,
            anchor: first,
            drift,
        }
    }

    /// Reads the counter alone.
    pub(crate) fn read_counter(&mut self) -> Counter {
        self.reader.read_counter()
    }

    /// Remembers enough to map stamps of packets that have waited this long to be taken over; 80 ms without this call.
    pub(crate) fn remember_for(&mut self, longest_wait: Span) {
        let marks = longest_wait.as_seconds() / CLOSE.as_seconds();
        self.remembered = REMEMBERED.max(marks.ceil() as usize);
    }

    /// Reads a pair: before a packet is sent, and whenever a limit for stamps is of use.
    pub(crate) fn mark(&mut self) -> PairMark {
        self.read_on().0
    }

    /// Maps the kernel's stamp of a packet sent; `before` was made before sending it. Reads a new pair for the other
    /// side, so it must be called after the stamp has come.
    ///
    /// # Errors
    /// When the stamp cannot be trusted.
    pub(crate) fn map_sent(&mut self, stamped: Moment<Utc>, before: PairMark) -> Result<Stamp, StampDiscarded> {
        self.read_on();
        if self.begin.is_after(before.pair.counter) {
            return Err(StampDiscarded::ClockStepped);
        }
        let around = self.around(stamped, Some(before))?;
        Ok(self.carry_over(stamped, &around))
    }

    /// Maps the kernel's stamp of a packet received. It came after `since`, if it is the answer to a packet that was
    /// sent after making this mark. Reads a new pair for the other side, so it must be called after the packet was
    /// taken over.
    ///
    /// # Errors
    /// When the stamp cannot be trusted.
    pub(crate) fn map_received(
        &mut self,
        stamped: Moment<Utc>,
        since: Option<PairMark>,
    ) -> Result<Stamp, StampDiscarded> {
        let (now, has_stepped) = self.read_on();
        if has_stepped || self.may_be_of_last_run(stamped, &now) {
            return Err(StampDiscarded::ClockStepped);
        }
        let since = since.filter(|since| !self.begin.is_after(since.pair.counter) && since.pair.system <= stamped);
        let around = self.around(stamped, since)?;
        Ok(self.carry_over(stamped, &around))
    }

    /// Whether a stamp from before a step back could look like this one.
    fn may_be_of_last_run(&self, stamped: Moment<Utc>, now: &PairMark) -> bool {
        let waited = self.period * (now.pair.counter - self.begin);
        waited <= LONGEST_WAIT && self.shown_before.is_some_and(|shown| stamped <= shown)
    }

    /// Makes a mark and says whether the system clock was stepped since the one before.
    fn read_on(&mut self) -> (PairMark, bool) {
        let pair = self.reader.read_pair();
        let watch = self.reader.watch();
        if watch == Watch::Set {
            // The step may have come after this pair, so the new run begins with another.
            let pair = self.reader.read_pair();
            return (self.begin_run(pair), true);
        }
        if self.marks.back().is_some_and(|newest| self.proves_step(&newest.pair, &pair)) {
            return (self.begin_run(pair), true);
        }
        self.learn_drift(&pair);
        let drift = if watch == Watch::Blind { NO_DRIFT_KNOWN } else { self.drift };
        let mark = PairMark { pair, drift };
        self.remember(mark);
        (mark, false)
    }

    fn begin_run(&mut self, pair: Pair) -> PairMark {
        self.shown_before = self.marks.back().map(|last| {
            let passed = self.period * (pair.counter - last.pair.counter);
            last.pair.system + passed + part(passed, SLEW) + self.reading_error(&last.pair, &pair)
        });
        self.begin = pair.counter;
        self.anchor = pair;
        self.drift = NO_DRIFT_KNOWN;
        let mark = PairMark { pair, drift: self.drift };
        self.marks = [mark].into();
        mark
    }

    fn remember(&mut self, mark: PairMark) {
        let before_newest = self.marks.len().checked_sub(2).and_then(|index| self.marks.get(index));
        if before_newest.is_some_and(|older| self.period * (mark.pair.counter - older.pair.counter) < CLOSE) {
            self.marks.pop_back();
        } else if self.marks.len() == self.remembered {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    /// How far the counter went from one pair to the other, and how much further the system clock did.
    fn compare(&self, before: &Pair, after: &Pair) -> (Span, Span) {
        let passed = self.period * (after.counter - before.counter);
        (passed, after.system - before.system - passed)
    }

    /// How far the two brackets together can pretend a difference.
    fn reading_error(&self, before: &Pair, after: &Pair) -> Span {
        (self.period * (before.width + after.width)).halved() + RESOLUTION
    }

    fn proves_step(&self, before: &Pair, after: &Pair) -> bool {
        let (passed, gained) = self.compare(before, after);
        gained.abs() > part(passed, SLEW) + self.reading_error(before, after)
    }

    fn learn_drift(&mut self, pair: &Pair) {
        let (passed, gained) = self.compare(&self.anchor, pair);
        if passed < FIRST_RATE_OVER {
            return;
        }
        let error = ratio(self.reading_error(&self.anchor, pair), passed);
        if passed >= RATE_OVER || error < self.drift.error {
            self.drift = SystemClockRate { rate: ratio(gained, passed), error };
        }
        if passed >= RATE_OVER {
            self.anchor = *pair;
        }
    }

    /// The largest step between two marks that would have gone unnoticed.
    fn doubt(&self, before: &PairMark, after: &PairMark) -> Span {
        let (passed, gained) = self.compare(&before.pair, &after.pair);
        (gained - scaled(passed, before.drift.rate)).abs() + part(passed, before.drift.error)
    }

    /// The nearest marks on both sides of a stamp.
    fn around(&self, stamped: Moment<Utc>, since: Option<PairMark>) -> Result<Around, StampDiscarded> {
        // Marks are in the order of time; of those before the stamp the last two matter.
        let first = match since {
            Some(since) => self.marks.partition_point(|mark| !mark.pair.counter.is_after(since.pair.counter)),
            None => self.marks.partition_point(|mark| mark.pair.system < stamped).saturating_sub(2),
        };
        let mut previous = None;
        let mut before = since;
        let mut later = self.marks.range(first..);
        let after = loop {
            let Some(mark) = later.next() else { break self.of_one_reading(stamped, since)? };
            if mark.pair.system >= stamped {
                break *mark;
            }
            previous = before.replace(*mark);
        };
        let Some(before) = before else { return Err(self.too_old()) };
        if before.pair.system > stamped {
            return Err(StampDiscarded::BeforeReading);
        }
        Ok(Around { before, after, previous, next: later.next().copied() })
    }

    /// The newest mark, where the counter has not moved since `since`: then it is not later by the counter, and yet may
    /// be after the stamp.
    fn of_one_reading(&self, stamped: Moment<Utc>, since: Option<PairMark>) -> Result<PairMark, StampDiscarded> {
        let newest = self.marks.back().filter(|newest| newest.pair.system >= stamped);
        let is_same = |newest: &&PairMark| since.is_some_and(|since| newest.pair.counter == since.pair.counter);
        newest.filter(is_same).copied().ok_or(StampDiscarded::AfterReading)
    }

    fn too_old(&self) -> StampDiscarded {
        let is_first_of_run = self.marks.front().is_some_and(|first| first.pair.counter == self.begin);
        if is_first_of_run { StampDiscarded::ClockStepped } else { StampDiscarded::TooOld }
    }

    fn carry_over(&self, stamped: Moment<Utc>, around: &Around) -> Stamp {
        let Around { before, after, .. } = around;
        let is_early = stamped - before.pair.system < after.pair.system - stamped;
        let near = if is_early { before.pair } else { after.pair };
        let away = stamped - near.system;
        let slack = RESOLUTION + part(away, SLEW) + self.hidden_steps(stamped, around);
        let ticks = self.period.ticks_in(away - scaled(away, before.drift.rate));
        let half = self.period.ticks_in(slack) + Ticks::from_raw(1);
        Stamp { counter: near.counter + ticks, width: near.width + half + half, location: StampLocation::Kernel }
    }

    /// What unnoticed steps can do to a stamp: those between its two pairs, and, where it lies so close to one of these
    /// that a step beyond could have moved it across, those beyond.
    fn hidden_steps(&self, stamped: Moment<Utc>, around: &Around) -> Span {
        let Around { before, after, previous, next } = around;
        let between = self.doubt(before, after);
        let earlier = previous.map_or(Span::ZERO, |previous| self.doubt(&previous, before));
        let later = next.map_or(Span::ZERO, |next| self.doubt(after, &next));
        let counts = |doubt: Span, distance: Span| if distance <= doubt { doubt } else { Span::ZERO };
        between + counts(earlier, stamped - before.pair.system) + counts(later, after.pair.system - stamped)
    }
}

fn scaled(span: Span, rate: Rate) -> Span {
    Span::from_seconds(span.as_seconds() * rate.as_fraction())
}

/// The share `rate` of the size of `span`.
fn part(span: Span, rate: Rate) -> Span {
    scaled(span.abs(), rate.abs())
}

fn ratio(part: Span, whole: Span) -> Rate {
    Rate::from_fraction(part.as_seconds() / whole.as_seconds())
}

#[cfg(test)]
mod tests;
