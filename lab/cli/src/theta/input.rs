//! What the commands about logs have in common: spans, logs and their errors.

use crate::Failure;
use ffclock_theta::log::LogReader;
use ffclock_units::Span;
use std::path::Path;

/// A span of the command line that is not negative.
pub(super) fn not_negative(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
    if span.is_negative() { Err("must not be negative".to_owned()) } else { Ok(span) }
}

/// As logs count time.
pub(super) fn picoseconds(span: Span) -> u64 {
    (span.as_seconds() * 1e12).round() as u64
}

/// The log of a command line.
pub(super) fn open(path: &Path) -> Result<LogReader, Failure> {
    LogReader::open(path).map_err(|error| Failure::from(error.to_string()))
}

/// An error of a log, with its path.
pub(super) fn failure(log: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::from(format!("{}: {error}", log.display()))
}
