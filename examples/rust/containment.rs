//! A record for each event that shows that its time was within a limit of UTC, as rules of business clocks ask
//! (MiFID II, RTS 25, article 2: 100 us for trading by algorithms): the time, the largest possible error, what that
//! rests on, and the raw stamp by which it can be computed again.
//!
//! Usage: containment [PAGE]

use ffclock::{Clock, Stamp, Status};
use ffclock_units::{Bound, Span};
use std::error::Error;
use std::path::PathBuf;

const LIMIT: Span = Span::from_micros(100);

/// The record of one event, as a line of a table.
fn record(clock: &Clock, event: Stamp) -> Result<String, Box<dyn Error>> {
    let time = clock.time_of(event)?;
    let reading = time.reading;
    let is_shown = reading.status != Status::Unsynchronised && reading.bound <= Bound::of(LIMIT);
    Ok(format!(
        "utc_ns={} bound_ns={} strict_bound_ns={} status={} limit_ns={} within={} counter={} epoch={}",
        reading.time.since_origin().as_nanos(),
        reading.bound.as_nanos_up(),
        time.strict.as_nanos_up(),
        reading.status.name(),
        LIMIT.as_nanos(),
        // Not shown is not the same as outside.
        if is_shown { "shown" } else { "not-shown" },
        event.counter().raw(),
        event.epoch().raw(),
    ))
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = match std::env::args_os().nth(1) {
        Some(page) => Clock::open_at(&PathBuf::from(page))?,
        None => Clock::open()?,
    };
    let events: Vec<Stamp> = (0..3).map(|_| clock.stamp()).collect();
    for event in events {
        println!("{}", record(&clock, event)?);
    }
    Ok(())
}
