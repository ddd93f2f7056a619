//! What to put beside the times of an OpenTelemetry span, so that spans of different hosts can be compared: how far
//! each end can be off, and the length by the clock's own interval, which is not the difference of the two times.
//!
//! Usage: span_attributes [PAGE]. Prints the attributes as a line of JSON, as an exporter would send them.

use ffclock::{CivilTime, Clock, Stamp};
use std::error::Error;
use std::path::PathBuf;
use std::time::SystemTime;

/// A span with the attributes of its times.
struct TimedSpan {
    start: SystemTime,
    end: SystemTime,
    attributes: [(&'static str, String); 5],
}

/// From the stamps of its ends. They are cheap to take; converting them can wait until the span is exported.
fn timed_span(clock: &Clock, start: Stamp, end: Stamp) -> Result<TimedSpan, Box<dyn Error>> {
    let (first, last, length) = (clock.at(start)?, clock.at(end)?, clock.elapsed(start, end)?);
    Ok(TimedSpan {
        start: first.time.to_system_time().ok_or("a time before all others")?,
        end: last.time.to_system_time().ok_or("a time after all others")?,
        attributes: [
            ("clock.start.bound_ns", first.bound.as_nanos_up().to_string()),
            ("clock.end.bound_ns", last.bound.as_nanos_up().to_string()),
            ("clock.duration_ns", length.span.as_nanos().to_string()),
            ("clock.duration.bound_ns", length.bound.as_nanos_up().to_string()),
            ("clock.status", format!("\"{}\"", last.status.name())),
        ],
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let clock = match std::env::args_os().nth(1) {
        Some(page) => Clock::open_at(&PathBuf::from(page))?,
        None => Clock::open()?,
    };
    let start = clock.stamp();
    let work: u64 = std::hint::black_box(1..=100_000).sum();
    let span = timed_span(&clock, start, clock.stamp())?;
    let nanos = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_nanos());
    let attributes = span.attributes.map(|(name, value)| format!("\"{name}\":{value}")).join(",");
    let (begin, end) = (nanos(span.start)?, nanos(span.end)?);
    println!("{{\"name\":\"sum {work}\",\"start\":{begin},\"end\":{end},\"attributes\":{{{attributes}}}}}");
    Ok(())
}
