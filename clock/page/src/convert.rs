//! Ticks to time: how a reader of the page turns a counter reading into a moment or an interval.
//!
//! The long way is [`Estimate::at`]'s. The short way ([`plain_reading`]) multiplies by the same function
//! ([`Period::times`]), but adds UTC, which the page holds beside the estimate, and error figures in the page's own
//! units.
//!
//! Everything about one reading comes from one publication. Age counts in both directions: a stamp taken before the
//! reference of the estimate is converted by it, and the error figures grow with the distance. Error figures are
//! rounded up at every step.

use crate::layout::{ABSOLUTE, DIFFERENCE, MISSING, READING, SLOT_WORDS, UNKNOWN, slot, state};
use crate::{CounterId, PageError, ReadError, VoteCounts, layout};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Reading, ServerIdentity, Span,
    StandardUncertainty, Status, Tai, Ticks,
};

/// How long something lasted, by the difference clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// From the first stamp to the second; negative when the second was taken earlier.
    pub span: Span,
    /// The largest error that the rate can have put into `span`. How well the stamps themselves were taken is not in
    /// it.
    pub bound: Bound,
    /// How far the rate may be trusted; [`Status::Unsynchronised`] where the counter was not watched until the later
    /// stamp.
    pub status: Status,
}

/// One publication, read whole: all that a page said at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    sequence: u64,
    status: Status,
    counter_id: CounterId,
    period: Period,
    difference_period: Period,
    words: [u64; SLOT_WORDS - 1],
}

/// The words of a reading, in the order of [`READING`](layout::READING).
pub(crate) type ReadingWords = [u64; READING.len()];

/// The words of the absolute clock, in the order of [`ABSOLUTE`](layout::ABSOLUTE).
pub(crate) type AbsoluteWords = [u64; ABSOLUTE.len()];

/// The words of the difference clock, in the order of [`DIFFERENCE`](layout::DIFFERENCE).
pub(crate) type DifferenceWords = [u64; DIFFERENCE.len()];

/// The word at `place` of a slot, out of words that begin after the sequence.
macro_rules! word {
    ($words:expr, $place:ident) => {
        $words[slot::$place - 1]
    };
}

/// Eight bits of the word `STATE`.
const fn field(state: u64, lowest: u32) -> u8 {
    (state >> lowest) as u8
}

const fn status_of(code: u8) -> Option<Status> {
    match code {
        1 => Some(Status::Unsynchronised),
        2 => Some(Status::WarmingUp),
        3 => Some(Status::Holdover),
        4 => Some(Status::Synchronised),
        _ => None,
    }
}

/// An error figure of a page; the word of an unknown one is never mistaken for a number.
const fn error_of(word: u64) -> Span {
    if word == UNKNOWN { Span::MAX } else { Span::from_units((word as i128) << 32) }
}

/// The upper half of a product.
const fn high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Whether the last of these words, which all follow `sequence`, is the sum over the others.
fn checks(sequence: u64, words: &[u64]) -> bool {
    words.split_last().is_some_and(|(check, covered)| layout::sum(sequence, covered) == *check)
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

/// The reading at `counter`, where that lies in the window of a slot that was checked. `None` says nothing else than
/// that: ask [`Snapshot::reading_at`]. Every instruction counts here.
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

/// The interval between two counter readings of `epoch`, where nothing special is to be considered: both within the
/// epoch and the validity of a slot that checks. `None` says nothing else than that: ask [`Snapshot::elapsed`].
#[inline(always)]
pub(crate) fn plain_interval(
    (sequence, words): (u64, DifferenceWords),
    epoch: CounterEpoch,
    [first, second]: [Counter; 2],
) -> Option<Interval> {
    let [covered @ .., check] = &words;
    let [state, tag, begin, valid_until, mantissa, relative, _] = words;
    let from_begin = |counter: u64| counter.wrapping_sub(begin);
    let valid = from_begin(valid_until);
    if layout::sum(sequence, covered) != *check
        || layout::epoch_of(tag) != epoch
        || valid > i64::MAX as u64
        || from_begin(first.raw()) > valid
        || from_begin(second.raw()) > valid
    {
        return None;
    }
    let status = status_of(field(state, state::STATUS)).filter(|status| *status != Status::Unsynchronised)?;
    let period = Period::from_parts(mantissa, field(state, state::DIFFERENCE_SHIFT))?;
    Some(interval(period, relative, second - first, status))
}

#[inline(always)]
fn interval(period: Period, relative: u64, ticks: Ticks, status: Status) -> Interval {
    let span = period * ticks;
    Interval { span, bound: GrowthRate::from_units(relative).over(span), status }
}

impl Snapshot {
    /// Checks the words of a slot and takes them apart.
    pub(crate) fn new(sequence: u64, words: [u64; SLOT_WORDS - 1]) -> Result<Self, PageError> {
        let (all, vote) = words.split_at(slot::CHECK_ALL);
        let is_earlier = vote.iter().all(|word| *word == 0);
        if !checks(sequence, all) || !(is_earlier || checks(sequence, vote)) {
            return Err(PageError::Corrupt);
        }
        Self::take_apart(sequence, words).ok_or(PageError::Corrupt)
    }

    /// `None` where a field has a value that no writer gives it.
    fn take_apart(sequence: u64, words: [u64; SLOT_WORDS - 1]) -> Option<Self> {
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
            time: Moment::from_origin(Span::from_units(
                ((self.tai_seconds() as i128) << 64) | word!(self.words, FRACTION) as i128,
            )),
            period: self.period,
            uncertainty: StandardUncertainty::of(error_of(word!(self.words, UNCERTAINTY))),
            uncertainty_growth: GrowthRate::from_units(word!(self.words, UNCERTAINTY_GROWTH)),
            bound: Bound::of(error_of(word!(self.words, BOUND))),
            bound_growth: GrowthRate::from_units(word!(self.words, BOUND_GROWTH)),
            difference_period: self.difference_period,
            difference_bound: GrowthRate::from_units(word!(self.words, DIFFERENCE_BOUND)),
            status: self.status,
        })
    }

    const fn tai_seconds(&self) -> i64 {
        let offset = word!(self.words, STATE) as i64 >> state::TAI_OFFSET;
        (word!(self.words, UTC_SECONDS) as i64).wrapping_add(offset)
    }

    /// The vote that the bounds rest on; `None` where an earlier version wrote the page.
    pub const fn vote(&self) -> Option<VoteCounts> {
        let word = word!(self.words, VOTE);
        let vote = VoteCounts {
            deciders: field(word, layout::vote::DECIDERS),
            tolerated: field(word, layout::vote::TOLERATED),
            believed: field(word, layout::vote::BELIEVED),
        };
        if self.says_strict() { Some(vote) } else { None }
    }

    /// Whether the writer knew of the strict bound.
    const fn says_strict(&self) -> bool {
        word!(self.words, CHECK_STRICT) != 0
    }

    /// The largest possible error of [`reading_at`](Self::reading_at) at this counter reading although as many servers
    /// are false as [`vote`](Self::vote) tolerates, in whatever way. Never less than the bound of the reading.
    pub fn strict_bound_at(&self, counter: Counter) -> Bound {
        if !self.says_strict() {
            return Bound::UNKNOWN;
        }
        let age = counter - Counter::from_raw(word!(self.words, COUNTER));
        let per_tick = word!(self.words, BOUND_STRICT_PER_TICK);
        Bound::of(grown(word!(self.words, BOUND_STRICT), per_tick, age))
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
        let estimate = self.estimate().ok_or(ReadError::NoEstimate)?;
        self.refuse_before_epoch(counter)?;
        Ok(estimate.at(counter).time)
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
        let tai = self.tai_at(counter)?;
        let leap = self.leap();
        let offset = if tai.whole_seconds() < leap.at { leap.before } else { leap.after };
        let age = counter - Counter::from_raw(word!(self.words, COUNTER));
        Ok(Reading {
            time: Moment::from_origin(tai.since_origin() - Span::from_secs(i64::from(offset))),
            uncertainty: StandardUncertainty::of(grown(
                word!(self.words, UNCERTAINTY),
                word!(self.words, UNCERTAINTY_PER_TICK),
                age,
            )),
            bound: Bound::of(grown(word!(self.words, BOUND), word!(self.words, BOUND_PER_TICK), age)),
            status: self.status_at(counter),
        })
    }

    /// From one counter reading to another by the difference clock: `period * (second - first)`.
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
        Ok(interval(self.difference_period, word!(self.words, DIFFERENCE_BOUND), second - first, status))
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
