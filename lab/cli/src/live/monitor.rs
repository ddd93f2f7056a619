//! The monitor: what a contestant's clock shows, against the truth at the same moment. It reads the host's clock once;
//! everything else follows from files, so that the comparison has no width, and the contestant notices nothing.

use super::clock_bound::ClockBoundFile;
use super::clock_file::OutsideClock;
use super::interposer::OwnClock;
use super::oscillator_file::SampledOscillator;
use crate::failure::Failure;
use ffclock::Clock;
use ffclock_units::{Counter, Moment, Span, Utc};
use std::path::PathBuf;

/// One contestant's clock.
pub(super) struct Watched {
    oscillator: SampledOscillator,
    shown: Shown,
    /// What another program says of a system clock.
    claimed: Option<ClockBoundFile>,
}

/// Where a clock shows its time.
enum Shown {
    /// In its system clock.
    System(OutsideClock),
    /// In a page, which is not there at once.
    Page { path: PathBuf, clock: Option<Box<Clock>> },
}

/// What was seen [ns].
pub(super) struct Seen {
    /// The truth at this look.
    pub(super) truth_ns: i64,
    /// What the monitor read of the contestant's: its system clock, or the counter below its page.
    pub(super) read_ns: i64,
    pub(super) error_ns: i64,
    pub(super) bound_ns: Option<i64>,
}

/// The truth: the host's clock [ns].
pub(super) fn truth_ns() -> Result<i64, Failure> {
    let now = ffclock_sys::system_utc_now().since_origin().as_nanos();
    i64::try_from(now).map_err(|_| "the host's clock is beyond the year 2262".into())
}

impl Watched {
    /// Watches the clock of a contestant: its page, or else its system clock.
    pub(super) fn open(own: &OwnClock, page: Option<PathBuf>) -> Result<Self, Failure> {
        let shown = match page {
            Some(path) => Shown::Page { path, clock: None },
            None => Shown::System(OutsideClock::open(&own.clock)?),
        };
        Ok(Watched { oscillator: SampledOscillator::read(&own.oscillator)?, shown, claimed: None })
    }

    /// With the bound of a system clock that ClockBound's daemon claims.
    pub(super) fn bounded(self, claimed: Option<ClockBoundFile>) -> Self {
        Watched { claimed, ..self }
    }

    /// The clock that it reads, in the words of `witness.c`.
    pub(super) fn clock_read(&self) -> &'static str {
        match self.shown {
            Shown::System(_) => "system",
            Shown::Page { .. } => "raw",
        }
    }

    /// Looks at the clock; `None` as long as it shows no time.
    pub(super) fn look(&mut self) -> Result<Option<Seen>, Failure> {
        if let Shown::Page { path, clock: clock @ None } = &mut self.shown {
            *clock = Clock::open_at(path).ok().map(Box::new);
        }
        let truth = truth_ns()?;
        let raw = self.oscillator.raw_at(truth);
        match &self.shown {
            Shown::System(clock) => {
                let bound_ns = self.claimed.as_ref().and_then(ClockBoundFile::bound_ns);
                let read_ns = clock.shown_at(raw)?;
                Ok(Some(Seen { truth_ns: truth, read_ns, error_ns: read_ns - truth, bound_ns }))
            }
            Shown::Page { clock, .. } => Ok(clock.as_ref().and_then(|clock| Seen::in_page(clock, raw, truth))),
        }
    }
}

impl Seen {
    fn in_page(clock: &Clock, read_ns: i64, truth_ns: i64) -> Option<Self> {
        let counter = Counter::from_raw(u64::try_from(read_ns).ok()?);
        let reading = clock.snapshot().ok()?.reading_at(counter).ok()?;
        let truth = Moment::<Utc>::from_origin(Span::from_nanos(i128::from(truth_ns)));
        let nanos = |seconds: f64| (seconds * 1e9).round() as i64;
        let error_ns = nanos((reading.time - truth).as_seconds());
        Some(Seen { truth_ns, read_ns, error_ns, bound_ns: Some(nanos(reading.bound.as_seconds())) })
    }
}
