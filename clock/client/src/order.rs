//! What is certain about the order of moments, given that each is known within its bound.
//!
//! All of it is in TAI, which never repeats and never leaves out a second.

use crate::clock::{PAUSE, WaitError};
use crate::{Clock, ReadError, VotedTime};
use core::time::Duration;
use ffclock_units::{Moment, Span, Tai};
use std::thread;
use std::time::Instant;

/// A shorter rest is spent looking at the clock: a sleeping thread wakes up some tens of microseconds late.
const SHORT: Span = Span::from_micros(100);

/// The latest moment that a time can mean: a name for an event that no later look at the clock puts before it. Of a
/// time that is [`Status::Unsynchronised`](crate::Status::Unsynchronised) it is [`Moment::LATEST`], which never passes.
pub fn latest(time: &VotedTime) -> Moment<Tai> {
    time.reading.half_width().map_or(Moment::LATEST, |half| time.tai + half)
}

/// The earliest moment that a time can mean; [`Moment::EARLIEST`] of one that is
/// [`Status::Unsynchronised`](crate::Status::Unsynchronised).
pub fn earliest(time: &VotedTime) -> Moment<Tai> {
    time.reading.half_width().map_or(Moment::EARLIEST, |half| time.tai - half)
}

/// Whether the first event was before the second, as far as both bounds hold: whatever the errors within them, on two
/// hosts as well. False where the ranges touch, and where either time is
/// [`Status::Unsynchronised`](crate::Status::Unsynchronised).
pub fn certainly_before(first: &VotedTime, second: &VotedTime) -> bool {
    latest(first) < earliest(second)
}

impl Clock {
    /// Waits until `moment` has certainly passed, that is, until the earliest time that it can be now is later; gives
    /// the time that says so. With the [`latest`] moment of an earlier time this is the commit wait of databases: when
    /// it returns, every clock whose bound holds shows a later time than the one that was given to the commit.
    ///
    /// It takes about twice the bound. It sleeps, and looks without a pause for the last 100 us.
    ///
    /// # Errors
    /// [`WaitError`] with the last look at the clock, after `timeout`.
    pub fn wait_certainly_after(&self, moment: Moment<Tai>, timeout: Duration) -> Result<VotedTime, WaitError> {
        let begin = Instant::now();
        loop {
            let last = self.time_of(self.stamp());
            let rest = last.as_ref().map_or(Span::MAX, |time| moment - earliest(time));
            if let Ok(time) = last
                && rest < Span::ZERO
            {
                return Ok(time);
            }
            let Some(left) = timeout.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) else {
                return Err(WaitError { last: last.map(|time| time.reading) });
            };
            pause(rest, left, last.err());
        }
    }
}

/// Sleeps for most of `rest`, but no longer than `left`.
fn pause(rest: Span, left: Duration, error: Option<ReadError>) {
    if error.is_none() && rest < SHORT {
        return std::hint::spin_loop();
    }
    let nanos = u64::try_from((rest - SHORT).as_nanos()).unwrap_or(u64::MAX);
    thread::sleep(Duration::from_nanos(nanos).min(left).min(PAUSE));
}
