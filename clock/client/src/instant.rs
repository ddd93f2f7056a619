//! The clock in the manner of `std::time`: an [`Instant`] is a stamp beside its clock, a [`Timestamp`] a time with its
//! bound.
//!
//! What differs from the standard library is what a clock with bounds can say besides: whatever lasts is an
//! [`Interval`] with a bound, a conversion can fail, and what cannot be ordered has no order (`partial_cmp` is `None`,
//! and all comparisons are false).

use crate::{Clock, Interval, IntervalWay, ReadError, Stamp, VotedTime, certainly_before, earliest, latest};
use core::cmp::Ordering;
use core::ops::Sub;
use core::time::Duration;
use ffclock_units::{Bound, Moment, Span, StandardUncertainty, Status, Tai, Ticks, Utc};

/// More ticks than this away from a stamp, what is before it and what after begins to mix.
const FARTHEST: u64 = 1 << 62;

/// A raw reading of the counter, with the clock that can convert it, now or later. Taking one costs as much as
/// [`Clock::stamp`]; [`stamp`](Self::stamp) gives what can be stored or sent.
///
/// Two of them are ordered where they were taken in the same epoch of the same page: after a suspend or a restore of
/// the machine no order is known.
/// ```no_run
/// use ffclock::{Clock, Instant};
/// let clock = Clock::open()?;
/// let begin = Instant::now(&clock);
/// let elapsed = begin.elapsed()?;
/// println!("{:?} +- {:?}", elapsed.span, elapsed.bound);
/// let end = Instant::now(&clock);
/// assert!(begin < end);
/// assert_eq!((end - begin)?.span, end.duration_since(begin)?.span);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Instant<'clock> {
    clock: &'clock Clock,
    stamp: Stamp,
}

impl<'clock> Instant<'clock> {
    /// Reads the counter, after everything that the program did before; converts nothing and never fails. What was
    /// taken while there was no clock is refused later.
    #[inline]
    pub fn now(clock: &'clock Clock) -> Self {
        Instant { clock, stamp: clock.stamp() }
    }

    /// A stamp that was kept apart from its clock.
    #[inline]
    pub const fn of(clock: &'clock Clock, stamp: Stamp) -> Self {
        Instant { clock, stamp }
    }

    /// The stamp alone.
    #[inline]
    pub const fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// How long ago this was.
    ///
    /// # Errors
    /// As [`Clock::elapsed`].
    #[inline]
    pub fn elapsed(&self) -> Result<Interval, ReadError> {
        Instant::now(self.clock).duration_since(*self)
    }

    /// How long after `earlier` this was; negative where it was before.
    ///
    /// # Errors
    /// As [`Clock::elapsed`], and [`ReadError::OtherEpoch`] where the two are of different pages.
    #[inline]
    pub fn duration_since(&self, earlier: Instant<'_>) -> Result<Interval, ReadError> {
        if self.is_of_page_of(earlier) {
            self.clock.elapsed(earlier.stamp, self.stamp)
        } else {
            Err(ReadError::OtherEpoch)
        }
    }

    /// The same as the standard library has it, without its bound; `None` where this was before, or where no length is
    /// known.
    pub fn checked_duration_since(&self, earlier: Instant<'_>) -> Option<Duration> {
        let nanos = u128::try_from(self.duration_since(earlier).ok()?.span.as_nanos()).ok()?;
        let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
        Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
    }

    /// The instant that lies `duration` after this one, as the difference clock counts now: for deadlines. `None` where
    /// the clock knows no rate in this epoch, or the counter does not reach as far.
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        let ticks = self.ticks_in(duration)?;
        Some(self.at(Stamp::from_parts(self.stamp.counter() + ticks, self.stamp.epoch())))
    }

    /// The instant that lies `duration` before this one, likewise.
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        let ticks = self.ticks_in(duration)?;
        Some(self.at(Stamp::from_parts(self.stamp.counter() - ticks, self.stamp.epoch())))
    }

    /// The time of this instant.
    ///
    /// # Errors
    /// As [`Clock::at`].
    pub fn timestamp(&self) -> Result<Timestamp, ReadError> {
        self.clock.time_of(self.stamp).map(Timestamp)
    }

    fn at(&self, stamp: Stamp) -> Self {
        Instant { stamp, ..*self }
    }

    fn ticks_in(&self, duration: Duration) -> Option<Ticks> {
        let snapshot = self.clock.snapshot().ok().filter(|snapshot| snapshot.epoch() == self.stamp.epoch())?;
        let seconds = Span::from_secs(i64::try_from(duration.as_secs()).ok()?);
        let span = seconds + Span::from_nanos(duration.subsec_nanos().into());
        let ticks = snapshot.estimate()?.difference_period.ticks_in(span);
        (ticks.raw().unsigned_abs() < FARTHEST).then_some(ticks)
    }

    fn is_of_page_of(&self, other: Instant<'_>) -> bool {
        core::ptr::eq(self.clock, other.clock) || self.clock.path() == other.clock.path()
    }
}

impl Sub for Instant<'_> {
    type Output = Result<Interval, ReadError>;
    #[inline]
    fn sub(self, earlier: Self) -> Self::Output {
        self.duration_since(earlier)
    }
}

impl PartialEq for Instant<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp && self.is_of_page_of(*other)
    }
}

impl PartialOrd for Instant<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.stamp.partial_cmp(&other.stamp).filter(|_| self.is_of_page_of(*other))
    }
}

/// A time with its bound. `a < b` says that `a` was certainly before `b`, on whatever hosts they were taken, as far as
/// both bounds hold; where the two ranges overlap there is no order.
///
/// The difference of two is an [`Interval`] whose bound and uncertainty are the sums of both: right for any two hosts,
/// and more than [`Instant::duration_since`] says of two stamps of one clock.
/// ```no_run
/// use ffclock::{CivilTime, Clock, Timestamp};
/// let clock = Clock::open()?;
/// let event = Timestamp::now(&clock)?;
/// println!("{:?} +- {} ns", event.utc().to_system_time(), event.bound().as_nanos_up());
/// // What is at least this late is certainly after the event.
/// let shown = clock.wait_certainly_after(event.latest(), std::time::Duration::from_secs(1))?;
/// assert!(event < Timestamp::from(shown));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(VotedTime);

impl Timestamp {
    /// The present time.
    ///
    /// # Errors
    /// As [`Clock::at`].
    pub fn now(clock: &Clock) -> Result<Self, ReadError> {
        Instant::now(clock).timestamp()
    }

    /// All that is known of it: the strict bound and the noise as well.
    pub const fn time(&self) -> &VotedTime {
        &self.0
    }

    /// On the scale of calendars; [`CivilTime`](crate::CivilTime) has it in the types of other libraries.
    pub const fn utc(&self) -> Moment<Utc> {
        self.0.reading.time
    }

    /// On the scale without leap seconds.
    pub const fn tai(&self) -> Moment<Tai> {
        self.0.tai
    }

    /// The largest error.
    pub const fn bound(&self) -> Bound {
        self.0.reading.bound
    }

    /// How far it may be trusted.
    pub const fn status(&self) -> Status {
        self.0.reading.status
    }

    /// The earliest moment that it can mean.
    pub fn earliest(&self) -> Moment<Tai> {
        earliest(&self.0)
    }

    /// The latest moment that it can mean.
    pub fn latest(&self) -> Moment<Tai> {
        latest(&self.0)
    }
}

impl From<VotedTime> for Timestamp {
    fn from(time: VotedTime) -> Self {
        Timestamp(time)
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            Some(Ordering::Equal)
        } else if certainly_before(&self.0, &other.0) {
            Some(Ordering::Less)
        } else if certainly_before(&other.0, &self.0) {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

impl Sub for Timestamp {
    type Output = Interval;
    fn sub(self, earlier: Self) -> Interval {
        let [own, its] = [self, earlier].map(|one| one.0.reading.uncertainty.as_span());
        Interval {
            span: self.0.tai - earlier.0.tai,
            uncertainty: StandardUncertainty::of(own + its),
            bound: self.bound() + earlier.bound(),
            status: self.status().min(earlier.status()),
            way: IntervalWay::Absolute,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Reading;

    /// In whole seconds, which are exact.
    fn at(seconds: i64, bound: i64) -> Timestamp {
        let since = Span::from_secs(seconds);
        let reading = Reading {
            time: Moment::from_origin(since),
            bound: Bound::of(Span::from_secs(bound)),
            uncertainty: StandardUncertainty::of(Span::from_secs(2)),
            status: Status::Synchronised,
        };
        let strict = reading.bound;
        Timestamp(VotedTime { reading, noise: StandardUncertainty::ZERO, strict, tai: Moment::from_origin(since) })
    }

    #[test]
    fn ranges_that_touch_have_no_order() {
        assert!(at(0, 10) < at(21, 10) && at(21, 10) > at(0, 10));
        assert_eq!(at(0, 10).partial_cmp(&at(20, 10)), None);
        assert_eq!(at(0, 10).partial_cmp(&at(0, 11)), None, "the same time, known worse");
        assert_eq!(at(0, 10).partial_cmp(&at(0, 10)), Some(Ordering::Equal));
        let mut lost = at(100, 10);
        lost.0.reading.status = Status::Unsynchronised;
        assert_eq!(at(0, 10).partial_cmp(&lost), None);
        assert_eq!((lost - at(0, 10)).status, Status::Unsynchronised);
    }

    #[test]
    fn a_difference_is_as_wrong_as_both_can_be() {
        let difference = at(100, 10) - at(160, 7);
        assert_eq!((difference.span, difference.way), (Span::from_secs(-60), IntervalWay::Absolute));
        assert_eq!(difference.bound, at(0, 10).bound() + at(0, 7).bound());
        assert_eq!(difference.uncertainty.as_span(), Span::from_secs(2) + Span::from_secs(2));
        let mut unknown = at(0, 1);
        unknown.0.reading.bound = Bound::UNKNOWN;
        assert_eq!((at(0, 1) - unknown).bound, Bound::UNKNOWN);
        assert_eq!(unknown.partial_cmp(&at(1_000_000_000, 1)), None);
    }
}
