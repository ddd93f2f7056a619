//! Ticks to time: how a reader of the page turns a counter reading into a moment.
//!
//! The long way is [`Estimate::at`]'s. The short way ([`plain_reading`]) multiplies by the same function
//! ([`Period::times`]), but adds UTC, which the page holds beside the estimate, and error figures in the page's own
//! units.
//!
//! Everything about one reading comes from one publication. Age counts in both directions: a stamp taken before the
//! reference of the estimate is converted by it, and the error figures grow with the distance. Error figures are
//! rounded up at every step.

use crate::interval::{DifferenceClock, Interval};
use crate::layout::{
    ABSOLUTE, ALL, MISSING, MORE, READING, STRICT, UNKNOWN, UNKNOWN_NOISE, WHOLE, field, high, state, vote,
};
use crate::{CounterId, PageError, ReadError, VoteCounts, layout};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Reading, ServerIdentity, Span,
    StandardUncertainty, Status, Tai, Ticks,
};

/// The time of a stamp on both scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampTime {
    /// UTC with its error figures and status.
    pub reading: Reading,
    /// The part of the reading's uncertainty that exchanges show.
    pub noise: StandardUncertainty,
    /// The same moment on the scale that never repeats a second.
    pub tai: Moment<Tai>,
}

/// The time of a stamp with both bounds and both uncertainties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotedTime {
    /// UTC with its error figures and status: the combined standard uncertainty among them.
    pub reading: Reading,
    /// The part of that uncertainty which exchanges show. A page of an earlier version states this alone: then the two
    /// are equal.
    pub noise: StandardUncertainty,
    /// The largest possible error of the reading although as many servers are false as the vote tolerates, in whatever
    /// way.
    pub strict: Bound,
    /// The same moment on the scale that never repeats a second.
    pub tai: Moment<Tai>,
}

/// One publication, read whole: all that a page said at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    sequence: u64,
    status: Status,
    counter_id: CounterId,
    period: Period,
    difference_period: Period,
    words: [u64; ALL.len()],
    /// `None` where the writer did not know of the strict bound.
    strict: Option<StrictWords>,
    /// `None` where the writer did not state it.
    difference_uncertainty: Option<GrowthRate>,
}

/// The words of a reading, in the order of [`READING`](layout::READING).
pub(crate) type ReadingWords = [u64; READING.len()];

/// The words of the absolute clock, in the order of [`ABSOLUTE`](layout::ABSOLUTE).
pub(crate) type AbsoluteWords = [u64; ABSOLUTE.len()];

/// The word at `place` of a slot, out of words that begin after the sequence.
macro_rules! word {
    ($words:expr, $place:ident) => {
        $words[crate::layout::slot::$place - 1]
    };
}

pub(crate) const fn status_of(code: u8) -> Option<Status> {
    match code {
        1 => Some(Status::Unsynchronised),
        2 => Some(Status::WarmingUp),
        3 => Some(Status::Holdover),
        4 => Some(Status::Synchronised),
        _ => None,
    }
}

/// An error figure of a page; the word of an unknown one is never mistaken for a number.
pub(crate) const fn error_of(word: u64) -> Span {
    if word == UNKNOWN { Span::MAX } else { Span::from_units((word as i128) << 32) }
}

/// The words about the vote, in the order of [`STRICT`](layout::STRICT).
type StrictWords = [u64; STRICT.len()];

/// Whether the last of these words, which all follow `sequence`, is the sum over the others.
fn checks(sequence: u64, words: &[u64]) -> bool {
    words.split_last().is_some_and(|(check, covered)| layout::sum(sequence, covered) == *check)
}

/// Whether the writer filled words that were added to slots: an earlier one left zeros there.
fn is_stated(sequence: u64, words: &[u64]) -> Result<bool, PageError> {
    match words.iter().all(|word| *word == 0) {
        true => Ok(false),
        false if checks(sequence, words) => Ok(true),
        false => Err(PageError::Corrupt),
    }
}

/// Whether the words of the absolute clock check.
#[inline(always)]
pub(crate) fn absolute_checks(sequence: u64, words: &AbsoluteWords) -> bool {
    let [covered @ .., check] = words;
    layout::sum(sequence, covered) == *check
}

/// The tag of the absolute clock.
#[inline(always)]
pub(crate) const fn absolute_tag(words: &AbsoluteWords) -> u64 {
    word!(words, TAG)
}

/// The reading at `counter`, where that lies in the window of a slot that was checked. `None` means only that it does
/// not: ask [`Snapshot::reading_at`]. Every instruction counts here.
#[inline(always)]
pub(crate) fn plain_reading(words: &ReadingWords, counter: Counter) -> Option<Reading> {
    let ticks = counter.raw().wrapping_sub(word!(words, COUNTER));
    if ticks >= word!(words, WINDOW) {
        return None;
    }
    let state = word!(words, STATE);
    let shift = field(state, state::PERIOD_SHIFT);
    let elapsed = Period::from_kept_parts(word!(words, PERIOD), shift).times(i128::from(ticks));
    let utc = u128::from(word!(words, UTC_SECONDS)) << 64 | u128::from(word!(words, FRACTION));
    let grown = |error: u64, per_tick: u64| Span::from_units((error.wrapping_add(high(ticks, per_tick)) as i128) << 32);
    Some(Reading {
        time: Moment::from_origin(Span::from_units(utc.wrapping_add(elapsed.units() as u128) as i128)),
        uncertainty: StandardUncertainty::of(grown(word!(words, UNCERTAINTY), word!(words, UNCERTAINTY_PER_TICK))),
        bound: Bound::of(grown(word!(words, BOUND), word!(words, BOUND_PER_TICK))),
        status: checked_status(field(state, state::STATUS)),
    })
}

/// The status of a code that is known to be one.
#[inline(always)]
const fn checked_status(code: u8) -> Status {
    match code & 3 {
        1 => Status::Unsynchronised,
        2 => Status::WarmingUp,
        3 => Status::Holdover,
        _ => Status::Synchronised,
    }
}

/// Whether the word `STATE` of a slot says that there is no estimate.
pub(crate) const fn is_withdrawn(state: u64) -> bool {
    matches!(status_of(field(state, layout::state::STATUS)), Some(Status::Unsynchronised))
}

/// The line of a slot that checks, for a reading beyond the plain conversion.
#[derive(Clone, Copy)]
pub(crate) struct SlotLine<'a> {
    status: Status,
    period: Period,
    words: &'a [u64; ALL.len()],
}

impl<'a> SlotLine<'a> {
    /// Checks the words of a slot; an error where they are damaged, or hold no estimate.
    #[inline(always)]
    pub(crate) fn new(sequence: u64, words: &'a [u64; ALL.len()]) -> Result<Self, ReadError> {
        let [covered @ .., check] = words;
        let state = word!(words, STATE);
        let status = status_of(field(state, state::STATUS));
        let period = Period::from_parts(word!(words, PERIOD), field(state, state::PERIOD_SHIFT));
        match status.zip(period) {
            Some((status, period)) if layout::sum(sequence, covered) == *check => {
                let is_withdrawn = matches!(status, Status::Unsynchronised);
                if is_withdrawn { Err(ReadError::NoEstimate) } else { Ok(SlotLine { status, period, words }) }
            }
            _ => Err(PageError::Corrupt.into()),
        }
    }

    /// The line of words that checked before; `None` where they hold no estimate.
    #[inline(always)]
    pub(crate) fn checked(words: &'a [u64; ALL.len()]) -> Option<Self> {
        let state = word!(words, STATE);
        let status =
            status_of(field(state, state::STATUS)).filter(|status| !matches!(status, Status::Unsynchronised))?;
        let period = Period::from_kept_parts(word!(words, PERIOD), field(state, state::PERIOD_SHIFT));
        Some(SlotLine { status, period, words })
    }

    pub(crate) const fn tag(&self) -> u64 {
        word!(self.words, TAG)
    }

    /// The time at a counter reading of the epoch, on both scales.
    #[inline(always)]
    pub(crate) fn time_at(&self, counter: Counter) -> Result<(Reading, Moment<Tai>), ReadError> {
        let words = self.words;
        if Counter::from_raw(word!(words, EPOCH_BEGIN)).is_after(counter) {
            return Err(ReadError::BeforeEpoch);
        }
        let age = counter - Counter::from_raw(word!(words, COUNTER));
        let tai = Moment::from_origin(reference(words) + self.period * age);
        let offsets = word!(words, LEAP_OFFSETS);
        let is_before = tai.whole_seconds() < word!(words, LEAP_AT) as i64;
        let offset = if is_before { offsets as i32 } else { (offsets >> 32) as i32 };
        let is_over = counter.is_after(Counter::from_raw(word!(words, VALID_UNTIL)));
        let reading = Reading {
            time: Moment::from_origin(tai.since_origin() - Span::from_secs(i64::from(offset))),
            uncertainty: StandardUncertainty::of(grown(
                word!(words, UNCERTAINTY),
                word!(words, UNCERTAINTY_PER_TICK),
                age,
            )),
            bound: Bound::of(grown(word!(words, BOUND), word!(words, BOUND_PER_TICK), age)),
            status: if is_over { Status::Unsynchronised } else { self.status },
        };
        Ok((reading, tai))
    }
}

/// TAI at the counter value of a slot.
#[inline(always)]
const fn reference(words: &[u64; ALL.len()]) -> Span {
    let offset = word!(words, STATE) as i64 >> state::TAI_OFFSET;
    let seconds = (word!(words, UTC_SECONDS) as i64).wrapping_add(offset);
    Span::from_units(((seconds as i128) << 64) | word!(words, FRACTION) as i128)
}

impl Snapshot {
    /// Checks the words of a slot and takes them apart.
    pub(crate) fn new(sequence: u64, whole: &[u64; WHOLE.len()]) -> Result<Self, PageError> {
        let (words, added) = whole.split_first_chunk().ok_or(PageError::Corrupt)?;
        let (strict, more) = added.split_first_chunk().ok_or(PageError::Corrupt)?;
        let more: &[u64; MORE.len()] = more.first_chunk().ok_or(PageError::Corrupt)?;
        if !checks(sequence, words) {
            return Err(PageError::Corrupt);
        }
        let snapshot = Self::take_apart(sequence, *words).ok_or(PageError::Corrupt)?;
        let [uncertainty, ..] = *more;
        Ok(Snapshot {
            strict: is_stated(sequence, strict)?.then_some(*strict),
            difference_uncertainty: is_stated(sequence, more)?.then(|| GrowthRate::from_units(uncertainty)),
            ..snapshot
        })
    }

    /// `None` where a field has a value that no writer gives it. What was added to slots is not in it.
    fn take_apart(sequence: u64, words: [u64; ALL.len()]) -> Option<Self> {
        let state = word!(words, STATE);
        Some(Snapshot {
            sequence,
            status: status_of(field(state, state::STATUS))?,
            counter_id: layout::counter_of(word!(words, TAG))?,
            period: Period::from_parts(word!(words, PERIOD), field(state, state::PERIOD_SHIFT))?,
            difference_period: Period::from_parts(
                word!(words, DIFFERENCE_PERIOD),
                field(state, state::DIFFERENCE_SHIFT),
            )?,
            words,
            strict: None,
            difference_uncertainty: None,
        })
    }

    pub(crate) const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// How many publications the page had seen with this one.
    pub const fn count(&self) -> u64 {
        self.sequence >> 1
    }

    /// The counter that it is about.
    pub const fn counter_id(&self) -> CounterId {
        self.counter_id
    }

    /// The epoch of that counter.
    pub const fn epoch(&self) -> CounterEpoch {
        layout::epoch_of(word!(self.words, TAG))
    }

    /// A counter reading at or after the beginning of the epoch.
    pub const fn epoch_begin(&self) -> Counter {
        Counter::from_raw(word!(self.words, EPOCH_BEGIN))
    }

    /// The last counter reading at which the status holds.
    pub const fn valid_until(&self) -> Counter {
        Counter::from_raw(word!(self.words, VALID_UNTIL))
    }

    /// The status as it was published, whatever the time is now.
    pub const fn published_status(&self) -> Status {
        self.status
    }

    /// The leap step around the time of the publication.
    pub const fn leap(&self) -> LeapStep {
        let offsets = word!(self.words, LEAP_OFFSETS);
        LeapStep { before: offsets as i32, after: (offsets >> 32) as i32, at: word!(self.words, LEAP_AT) as i64 }
    }

    /// The server that the estimate comes from.
    pub const fn server(&self) -> Option<ServerIdentity> {
        match word!(self.words, SERVER) {
            MISSING => None,
            word => Some(ServerIdentity { stratum: (word >> 32) as u8, reference_id: word as u32 }),
        }
    }

    /// The estimate as it was published, but for error figures rounded up to 2^-32 s; `None` when it was withdrawn.
    pub const fn estimate(&self) -> Option<Estimate> {
        if matches!(self.status, Status::Unsynchronised) {
            return None;
        }
        Some(Estimate {
            counter: Counter::from_raw(word!(self.words, COUNTER)),
            time: Moment::from_origin(reference(&self.words)),
            period: self.period,
            uncertainty: StandardUncertainty::of(error_of(word!(self.words, UNCERTAINTY))),
            noise: StandardUncertainty::of(error_of(self.noise_word())),
            uncertainty_growth: GrowthRate::from_units(word!(self.words, UNCERTAINTY_GROWTH)),
            bound: Bound::of(error_of(word!(self.words, BOUND))),
            bound_growth: GrowthRate::from_units(word!(self.words, BOUND_GROWTH)),
            difference_period: self.difference_period,
            difference_bound: self.difference_bound(),
            difference_uncertainty: self.difference_uncertainty(),
            status: self.status,
        })
    }

    const fn difference_bound(&self) -> GrowthRate {
        GrowthRate::from_units(word!(self.words, DIFFERENCE_BOUND))
    }

    /// A writer of an earlier build states no uncertainty: then the bound has to do.
    const fn difference_uncertainty(&self) -> GrowthRate {
        match self.difference_uncertainty {
            Some(uncertainty) => uncertainty,
            None => self.difference_bound(),
        }
    }

    /// The length of an interval that the difference clock and two fresh conversions measure equally well: shorter ones
    /// are for the difference clock, longer ones for conversions. `None` where either is unknown.
    pub fn critical_scale(&self) -> Option<Span> {
        let noise = self.estimate()?.noise;
        let rate = self.difference_uncertainty?.as_rate().as_fraction();
        let is_known = noise != StandardUncertainty::UNKNOWN && rate > 0.0;
        is_known.then(|| Span::from_seconds(core::f64::consts::SQRT_2 * noise.as_seconds() / rate))
    }

    /// The vote that the bounds rest on; `None` where an earlier version wrote the page.
    pub const fn vote(&self) -> Option<VoteCounts> {
        let Some([_, _, _, word, _]) = self.strict else { return None };
        Some(VoteCounts {
            deciders: field(word, layout::vote::DECIDERS),
            tolerated: field(word, layout::vote::TOLERATED),
            believed: field(word, layout::vote::BELIEVED),
        })
    }

    /// The largest possible error of [`reading_at`](Self::reading_at) at this counter reading although as many servers
    /// are false as [`vote`](Self::vote) tolerates, in whatever way. Never less than the bound of the reading; unknown
    /// before the epoch, where there is no reading.
    pub fn strict_bound_at(&self, counter: Counter) -> Bound {
        let stated = self.strict.filter(|_| self.refuse_before_epoch(counter).is_ok());
        let Some([bound, per_tick, ..]) = stated else { return Bound::UNKNOWN };
        let age = counter - Counter::from_raw(word!(self.words, COUNTER));
        Bound::of(grown(bound, per_tick, age))
    }

    /// The noise at the counter value of the line, in the units of an error word.
    const fn noise_word(&self) -> u64 {
        let stated = match self.strict {
            Some([_, _, _, word, _]) => word >> vote::NOISE,
            None => 0,
        };
        match stated {
            0 => word!(self.words, UNCERTAINTY),
            UNKNOWN_NOISE => UNKNOWN,
            noise => noise,
        }
    }

    /// The noise at this counter reading: the standard uncertainty (k = 1) of [`reading_at`](Self::reading_at) without
    /// what no exchange shows, which are the path's asymmetry and the server's own error. A writer of an earlier build
    /// states nothing else, so then it is all of the uncertainty.
    pub fn noise_at(&self, counter: Counter) -> StandardUncertainty {
        let age = counter - Counter::from_raw(word!(self.words, COUNTER));
        StandardUncertainty::of(grown(self.noise_word(), word!(self.words, UNCERTAINTY_PER_TICK), age))
    }

    /// As [`reading_at`](Self::reading_at), with the [strict bound](Self::strict_bound_at).
    ///
    /// # Errors
    /// As [`reading_at`](Self::reading_at).
    pub fn strict_reading_at(&self, counter: Counter) -> Result<Reading, ReadError> {
        Ok(Reading { bound: self.strict_bound_at(counter), ..self.reading_at(counter)? })
    }

    /// The status at a counter reading: the published one, as long as the writer meant to be heard of again after it.
    pub fn status_at(&self, counter: Counter) -> Status {
        if counter.is_after(self.valid_until()) { Status::Unsynchronised } else { self.status }
    }

    /// TAI at a counter reading.
    ///
    /// # Errors
    /// [`ReadError::NoEstimate`], [`ReadError::BeforeEpoch`].
    pub fn tai_at(&self, counter: Counter) -> Result<Moment<Tai>, ReadError> {
        self.time_at(counter).map(|time| time.tai)
    }

    /// UTC at a counter reading, with error figures and status: `time + period * (counter - reference)`, leap second
    /// applied.
    ///
    /// After [`valid_until`](Self::valid_until) there is still a reading, with the status [`Status::Unsynchronised`]:
    /// its bound has grown as it should, on the unchecked assumption that the counter ran on as before.
    ///
    /// # Errors
    /// [`ReadError::NoEstimate`], [`ReadError::BeforeEpoch`].
    pub fn reading_at(&self, counter: Counter) -> Result<Reading, ReadError> {
        self.time_at(counter).map(|time| time.reading)
    }

    /// The same on both scales.
    ///
    /// # Errors
    /// As [`reading_at`](Self::reading_at).
    pub fn time_at(&self, counter: Counter) -> Result<StampTime, ReadError> {
        if self.status == Status::Unsynchronised {
            return Err(ReadError::NoEstimate);
        }
        let line = SlotLine { status: self.status, period: self.period, words: &self.words };
        let (reading, tai) = line.time_at(counter)?;
        Ok(StampTime { reading, noise: self.noise_at(counter), tai })
    }

    /// From one counter reading to another by the difference clock: `period * (second - first)`. The longer ago it was,
    /// the more uncertain it is: the period is that of the recent past.
    ///
    /// # Errors
    /// [`ReadError::NoEstimate`]; [`ReadError::BeforeEpoch`] when either was taken before the epoch.
    pub fn elapsed(&self, first: Counter, second: Counter) -> Result<Interval, ReadError> {
        if self.status == Status::Unsynchronised {
            return Err(ReadError::NoEstimate);
        }
        self.refuse_before_epoch(first)?;
        self.refuse_before_epoch(second)?;
        let status = self.status_at(first).min(self.status_at(second));
        let clock = DifferenceClock {
            period: self.difference_period,
            bound: self.difference_bound(),
            uncertainty: self.difference_uncertainty(),
        };
        let ticks = second - first;
        let later = if ticks.raw() < 0 { first } else { second };
        let age = self.period * (Counter::from_raw(word!(self.words, COUNTER)) - later);
        let growth = GrowthRate::from_units(word!(self.words, UNCERTAINTY_GROWTH));
        let clock = if age > Span::ZERO { clock.aged(age, growth) } else { clock };
        Ok(clock.interval(ticks, status))
    }

    fn refuse_before_epoch(&self, counter: Counter) -> Result<(), ReadError> {
        if self.epoch_begin().is_after(counter) { Err(ReadError::BeforeEpoch) } else { Ok(()) }
    }
}

/// An error figure after `age`, in either direction; what is too large is unknown. The unit that the growth may lack is
/// in the figure.
fn grown(error: u64, per_tick: u64, age: Ticks) -> Span {
    let growth = high(age.raw().unsigned_abs(), per_tick);
    let unknown = error == UNKNOWN || per_tick == UNKNOWN;
    error_of(if unknown { UNKNOWN } else { error.saturating_add(growth) })
}
