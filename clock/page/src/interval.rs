//! How long something lasted: by the difference clock, or by two conversions, whichever is better.
//!
//! The difference clock has one rate for all intervals, so its error grows with the length of the interval. Two
//! conversions have the errors of two times, whatever lies between them. Where the lines cross is the *critical scale*
//! of the clock: sqrt(2) times the noise of the time, over the uncertainty of the rate. What no exchange shows of a
//! time, the path's asymmetry and the server's own error, is the same in both times and not in their difference, as
//! long as the same servers are believed.

use crate::convert::{StampTime, status_of};
use crate::layout::{self, INTERVAL, field, state};
use ffclock_units::{Bound, Counter, CounterEpoch, GrowthRate, Period, Span, StandardUncertainty, Status, Ticks};

/// How long something lasted, by the better of two ways to measure it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// From the first stamp to the second; negative when the second was taken earlier.
    pub span: Span,
    /// The standard uncertainty of `span`, of two times that of their noise. How well the stamps themselves were taken
    /// is not in it.
    pub uncertainty: StandardUncertainty,
    /// The largest error of `span`, as long as the bounds of the estimate hold. How well the stamps themselves were
    /// taken is not in it.
    pub bound: Bound,
    /// How far the clock may be trusted; [`Status::Unsynchronised`] where the counter was not watched until the later
    /// stamp.
    pub status: Status,
    /// How `span` was measured.
    pub way: IntervalWay,
}

/// How an interval was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalWay {
    /// By the difference clock: ticks, times a period that is the mean of the recent past.
    Difference,
    /// By the absolute clock: the time of the second stamp less that of the first.
    Absolute,
}

impl IntervalWay {
    /// The name in the answers of commands and in files.
    pub const fn name(self) -> &'static str {
        match self {
            IntervalWay::Difference => "difference",
            IntervalWay::Absolute => "absolute",
        }
    }
}

/// The words of an interval, in the order of [`INTERVAL`](layout::INTERVAL).
pub(crate) type IntervalWords = [u64; INTERVAL.len()];

/// The difference clock as a slot has it.
#[derive(Clone, Copy)]
pub(crate) struct DifferenceClock {
    pub period: Period,
    pub bound: GrowthRate,
    pub uncertainty: GrowthRate,
}

/// The growth of the noise is its mean over this time at least [s] (docs/algorithm/learned.md, `LEAST_HORIZON`).
const HORIZON_S: u128 = 3600;

impl DifferenceClock {
    /// The clock for an interval that ended `age` before the line: the rate was another one then.
    ///
    /// `growth` is that of the line's noise. A rate that walks leaves a line by g T in the time T where the rate itself
    /// has moved by sqrt(3) g, and goes on with the root of the time.
    pub fn aged(self, age: Span, growth: GrowthRate) -> Self {
        // In 2^-48 s/s the squares of both have less than 96 bits.
        let square = |rate: GrowthRate| (u128::from(rate.units() >> 16) + 1).pow(2);
        let seconds = (age.units().max(0) as u128 >> 64) + 1;
        let walked = square(growth).saturating_mul(3 * seconds) / HORIZON_S;
        let root = square(self.uncertainty).saturating_add(walked).isqrt() + 1;
        let is_known = self.uncertainty.units() != u64::MAX && growth.units() != u64::MAX && root < 1 << 48;
        let uncertainty = GrowthRate::from_units(if is_known { (root as u64) << 16 } else { u64::MAX });
        DifferenceClock { uncertainty, ..self }
    }

    #[inline(always)]
    pub fn interval(&self, ticks: Ticks, status: Status) -> Interval {
        let span = self.period * ticks;
        Interval {
            span,
            uncertainty: StandardUncertainty::of(self.uncertainty.over(span).as_span()),
            bound: self.bound.over(span),
            status,
            way: IntervalWay::Difference,
        }
    }
}

/// The interval between two counter readings of `epoch`, where nothing special is to be considered: both within the
/// epoch and the validity of a slot that checks, so close that the difference clock is the better one, and not longer
/// ago than such an interval lasts. `None` means only that this is not so: ask the snapshot.
#[inline(always)]
pub(crate) fn plain_interval(
    (sequence, words): (u64, IntervalWords),
    epoch: CounterEpoch,
    [first, second]: [Counter; 2],
) -> Option<Interval> {
    let [state, tag, begin, valid_until, mantissa, relative, check, uncertainty, short, check_more, line] = words;
    let from_begin = |counter: u64| counter.wrapping_sub(begin);
    let valid = from_begin(valid_until);
    let ticks = second - first;
    let later = if ticks.raw() < 0 { first } else { second };
    let age = Counter::from_raw(line) - later;
    if ticks.raw().unsigned_abs() > short
        || age.raw().max(0).unsigned_abs() > short
        || layout::sum(sequence, &[state, tag, begin, valid_until, mantissa, relative]) != check
        || layout::sum(sequence, &[uncertainty, short]) != check_more
        || layout::epoch_of(tag) != epoch
        || valid > i64::MAX as u64
        || from_begin(first.raw()) > valid
        || from_begin(second.raw()) > valid
    {
        return None;
    }
    let status = status_of(field(state, state::STATUS)).filter(|status| *status != Status::Unsynchronised)?;
    let period = Period::from_parts(mantissa, field(state, state::DIFFERENCE_SHIFT))?;
    let clock = DifferenceClock {
        period,
        bound: GrowthRate::from_units(relative),
        uncertainty: GrowthRate::from_units(uncertainty),
    };
    Some(clock.interval(ticks, status))
}

impl Interval {
    /// The better of this interval, by the difference clock, and of two conversions of its stamps.
    ///
    /// The smaller uncertainty decides. The bound is the smaller of the chosen one's own and of the other's with the
    /// distance between both: the true length lies within each.
    #[must_use]
    pub(crate) fn or_between(self, [first, second]: [StampTime; 2]) -> Interval {
        let absolute = Interval {
            span: second.tai - first.tai,
            uncertainty: together([first.noise, second.noise]),
            bound: first.reading.bound + second.reading.bound,
            way: IntervalWay::Absolute,
            ..self
        };
        let apart = Bound::of(self.span - absolute.span);
        let (better, other) =
            if self.uncertainty <= absolute.uncertainty { (self, absolute) } else { (absolute, self) };
        Interval { bound: better.bound.min(other.bound + apart), ..better }
    }
}

/// The root of the sum of squares, rounded up: the errors of two times are taken as independent.
fn together(uncertainties: [StandardUncertainty; 2]) -> StandardUncertainty {
    // In units of 2^-32 s the square of anything below 2^31 s has 126 bits.
    let [first, second] = uncertainties.map(|one| one.as_span().units() as u128 >> 32);
    if first.max(second) >= 1 << 62 {
        return StandardUncertainty::UNKNOWN;
    }
    let root = ((first + 1) * (first + 1) + (second + 1) * (second + 1)).isqrt() + 1;
    StandardUncertainty::of(Span::from_units((root << 32) as i128))
}
