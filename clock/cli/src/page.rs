//! Reading the published clock, and saying what to do where it cannot be read.

use crate::Global;
use crate::failure::Failure;
use crate::text;
use ffclock::{Clock, Interval, OpenError, PageError, ReadError, Stamp, VotedTime};
use ffclock_units::{Bound, Moment, Reading, Span, StandardUncertainty, Status, Tai};
use serde::Serialize;

/// A time on both scales, from one publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublishedTime {
    /// UTC with its error figures and status.
    pub(crate) reading: Reading,
    /// The part of its uncertainty that exchanges show.
    pub(crate) noise: StandardUncertainty,
    /// The bound that holds although a minority of the servers is false.
    pub(crate) strict: Bound,
    /// The same moment on the scale that never repeats a second.
    pub(crate) tai: Moment<Tai>,
}

/// A time as `--json` shows it; `None` is what is not known.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TimeReport {
    utc: String,
    utc_ns: Option<i64>,
    tai_ns: Option<i64>,
    bound_s: Option<f64>,
    bound_strict_s: Option<f64>,
    uncertainty_s: Option<f64>,
    noise_s: Option<f64>,
    status: &'static str,
}

/// Opens the page.
pub(crate) fn open(global: &Global) -> Result<Clock, Failure> {
    let clock = global.page.as_deref().map_or_else(Clock::open, Clock::open_at);
    clock.map_err(|error| {
        let message = format!("cannot read the clock: {error}; --page names another page");
        match error {
            OpenError::Page { error: PageError::Empty, .. } => Failure::unsynchronised(message),
            _ => Failure::from(message),
        }
    })
}

/// The published time of this moment.
pub(crate) fn read(clock: &Clock) -> Result<PublishedTime, Failure> {
    stamp(clock).map(|(_, time)| time)
}

/// The published time of a stamp.
pub(crate) fn read_at(clock: &Clock, stamp: Stamp) -> Result<PublishedTime, Failure> {
    convert(clock, stamp).map_err(unreadable)
}

fn convert(clock: &Clock, stamp: Stamp) -> Result<PublishedTime, ReadError> {
    let VotedTime { reading, noise, strict, tai } = clock.time_of(stamp)?;
    Ok(PublishedTime { reading, noise, strict, tai })
}

/// The time between two stamps.
pub(crate) fn elapsed(clock: &Clock, begin: Stamp, end: Stamp) -> Result<Interval, Failure> {
    clock.elapsed(begin, end).map_err(unreadable)
}

/// A stamp, and whether it is good for anything: one that the page cannot convert now, it never will.
pub(crate) fn stamp(clock: &Clock) -> Result<(Stamp, PublishedTime), Failure> {
    let taken = || {
        let stamp = clock.stamp();
        convert(clock, stamp).map(|time| (stamp, time))
    };
    // The epoch may end between a stamp and its conversion, but not twice in a row.
    taken().or_else(|_| taken()).map_err(|error| match (clock.now(), error) {
        // A stamp cannot say why its counter was not to be read; the clock can.
        (Err(error), _) => unreadable(error),
        (Ok(_), ReadError::OtherEpoch) => unreadable(ReadError::Page(PageError::Corrupt)),
        (Ok(_), error) => unreadable(error),
    })
}

/// That what was shown may be relied on.
///
/// # Errors
/// It is unsynchronised.
pub(crate) fn judge(status: Status) -> Result<(), Failure> {
    match status {
        Status::Unsynchronised => Err(Failure::unsynchronised(
            "the clock is not synchronised: `ffclock status` shows why, `ffclock wait` waits for it",
        )),
        Status::WarmingUp | Status::Holdover | Status::Synchronised => Ok(()),
    }
}

/// A page without a time is not synchronised; anything else is a fault.
fn unreadable(error: ReadError) -> Failure {
    match error {
        ReadError::NoEstimate | ReadError::Disrupted | ReadError::Page(PageError::Empty) => {
            Failure::unsynchronised(format!("{error}: `ffclock status` shows why, `ffclock wait` waits for it"))
        }
        _ => Failure::from(error.to_string()),
    }
}

/// A time, already written, with what is known about its error.
pub(crate) fn sentence(time: &str, PublishedTime { reading, noise, .. }: &PublishedTime) -> String {
    let Reading { bound, status, uncertainty, .. } = reading;
    format!("{time}  +- {bound}  {} (standard uncertainty {uncertainty}, noise {noise})", status.name())
}

impl TimeReport {
    /// The time as `--json` shows it.
    pub(crate) fn of(time: &PublishedTime) -> Self {
        TimeReport {
            utc: text::utc(time.reading.time),
            utc_ns: whole_nanos(time.reading.time),
            tai_ns: whole_nanos(time.tai),
            bound_s: known_seconds(time.reading.bound.as_span()),
            bound_strict_s: known_seconds(time.strict.as_span()),
            uncertainty_s: known_seconds(time.reading.uncertainty.as_span()),
            noise_s: known_seconds(time.noise.as_span()),
            status: time.reading.status.name(),
        }
    }
}

/// An error figure as `--json` shows it [s]; `None` where nothing is known.
pub(crate) fn known_seconds(error: Span) -> Option<f64> {
    (error < Span::MAX).then(|| error.as_seconds())
}

/// Nanoseconds since 1970, from the year 1677 to 2262.
fn whole_nanos<S>(moment: Moment<S>) -> Option<i64> {
    i64::try_from(moment.since_origin().as_nanos()).ok()
}
