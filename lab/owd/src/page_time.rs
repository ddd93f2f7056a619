//! The time of stamps by the page of this host.
//!
//! Where the page has no estimate, and measuring was asked for nevertheless, times are by the counter's nominal period
//! from an origin that means nothing to another host. They are marked as not synchronised, and intervals remain right.

use crate::OwdError;
use crate::judge::ClockedTime;
use crate::sent::StampedPassage;
use ffclock::{Clock, Status};
use ffclock_counter::{CounterId, USABLE, nominal, read_ordered};
use ffclock_sys::Stamper;
use ffclock_units::{Bound, Counter, CounterEpoch, Moment, Period, Span, Stamp, StampLocation, Ticks, Utc};
use std::path::Path;

/// Packets may wait this long to be taken over, and still have their kernel's stamp.
const LONGEST_WAIT: Span = Span::from_secs(2);

/// Whether to measure with a clock that is not synchronised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsynchronised {
    /// No: refuse to begin.
    Refuse,
    /// Yes, round trips alone.
    Allow,
}

/// A page, and the counter that it is about.
#[derive(Debug)]
pub struct PageTime {
    clock: Clock,
    counter: CounterId,
    /// The counter's period: the page's, or the nominal one where it has none.
    period: Period,
}

impl PageTime {
    /// Opens the page at `path`, or where the client library looks for one.
    ///
    /// # Errors
    /// There is no page, its counter cannot be read, or its clock is not synchronised and that is not allowed.
    pub fn open(path: Option<&Path>, unsynchronised: Unsynchronised) -> Result<Self, OwdError> {
        let page = |error: &dyn std::fmt::Display| OwdError::Page(error.to_string());
        let clock = path.map_or_else(Clock::open, Clock::open_at).map_err(|error| page(&error))?;
        if unsynchronised == Unsynchronised::Refuse {
            check_synchronised(&clock)?;
        }
        let snapshot = clock.snapshot().ok();
        let counter = snapshot.map(|snapshot| snapshot.counter_id()).unwrap_or(CounterId::CPU);
        if !USABLE.contains(&counter) {
            return Err(OwdError::Page(format!("{}: its counter cannot be read here", clock.path().display())));
        }
        let nominal = nominal(counter).map_err(|error| page(&error))?.period;
        let estimate = snapshot.and_then(|snapshot| snapshot.estimate());
        Ok(PageTime { clock, counter, period: estimate.map_or(nominal, |estimate| estimate.difference_period) })
    }

    /// The counter that stamps are taken by.
    pub fn counter(&self) -> CounterId {
        self.counter
    }

    /// The period of that counter when the page was opened.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Stamps packets by that counter.
    pub(crate) fn stamper(&self) -> Stamper {
        let mut stamper = Stamper::new(self.counter, self.period);
        stamper.remember_for(LONGEST_WAIT);
        stamper
    }

    /// The epoch of stamps that are taken now.
    pub(crate) fn epoch(&self) -> CounterEpoch {
        self.clock.stamp().epoch()
    }

    /// A stamp taken now.
    pub(crate) fn passage_now(&self) -> StampedPassage {
        let stamp =
            Stamp { counter: read_ordered(self.counter), width: Ticks::from_raw(1), location: StampLocation::User };
        StampedPassage { stamp, epoch: self.epoch() }
    }

    /// The time of a passage. The width of its stamp is in the bound.
    pub(crate) fn time_of(&self, passage: &StampedPassage) -> ClockedTime {
        let stamp = ffclock::Stamp::from_parts(passage.stamp.counter, passage.epoch);
        let is_stamped = passage.is_stamped();
        match self.clock.time_of(stamp) {
            Ok(time) if time.reading.status != Status::Unsynchronised => ClockedTime {
                time: time.reading.time,
                bound: time.reading.bound + Bound::of(self.span(passage.stamp.width)).halved(),
                is_synchronised: true,
                is_stamped,
            },
            _ => {
                let time = self.free_time(passage);
                ClockedTime { time, bound: Bound::UNKNOWN, is_synchronised: false, is_stamped }
            }
        }
    }

    /// TAI - UTC at a passage; zero where it is not known.
    pub(crate) fn tai_ahead(&self, passage: &StampedPassage) -> Span {
        let stamp = ffclock::Stamp::from_parts(passage.stamp.counter, passage.epoch);
        let ahead = |time: ffclock::VotedTime| time.tai.since_origin() - time.reading.time.since_origin();
        self.clock.time_of(stamp).map_or(Span::ZERO, ahead)
    }

    /// From one passage to another, by the difference clock.
    pub(crate) fn interval(&self, first: &StampedPassage, second: &StampedPassage) -> Span {
        let [from, to] =
            [first, second].map(|passage| ffclock::Stamp::from_parts(passage.stamp.counter, passage.epoch));
        let counted = || self.span(second.stamp.counter - first.stamp.counter);
        self.clock.elapsed(from, to).map_or_else(|_| counted(), |interval| interval.span)
    }

    fn span(&self, ticks: Ticks) -> Span {
        self.period * ticks
    }

    /// The time of a passage without the page: right for intervals alone.
    pub(crate) fn free_time(&self, passage: &StampedPassage) -> Moment<Utc> {
        Moment::from_origin(self.span(passage.stamp.counter - Counter::from_raw(0)))
    }
}

fn check_synchronised(clock: &Clock) -> Result<(), OwdError> {
    let unsynchronised = |why: String| OwdError::Unsynchronised { path: clock.path().to_owned(), why };
    match clock.now() {
        Ok(reading) if reading.status == Status::Unsynchronised => {
            Err(unsynchronised("its clock is not synchronised".to_owned()))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(unsynchronised(error.to_string())),
    }
}
