//! What the commands about logs have in common: spans, logs, their errors and their damage.

use crate::Failure;
use ffclock_theta::analysis::{SwitchStamping, TimeRange, trimmed};
use ffclock_theta::log::LogReader;
use ffclock_theta::record::RunFault;
use ffclock_units::Span;
use std::path::Path;

/// The place of a switch in time.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum StampingChoice {
    /// The messages just being sent are not yet in transit, as in the paper's histograms
    Before,
    /// They are in transit, as the theorem needs
    After,
}

impl From<StampingChoice> for SwitchStamping {
    fn from(choice: StampingChoice) -> Self {
        match choice {
            StampingChoice::Before => SwitchStamping::BeforeBroadcast,
            StampingChoice::After => SwitchStamping::AfterBroadcast,
        }
    }
}

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

/// The times of a log that count.
pub(super) fn range(path: &Path, log: &LogReader, trim: Option<Span>) -> Result<TimeRange, Failure> {
    let cut = trim.map(|trim| trimmed(log, picoseconds(trim)).map_err(|error| failure(path, &error)));
    cut.unwrap_or(Ok(TimeRange::ALL))
}

/// Whether the figures of a log, which have been printed, are those of the whole run by right clocks.
///
/// # Errors
/// The first reason why they are not: a part of the log is missing, events were not recorded, or a fault of the run
/// moved a clock.
pub(super) fn whole(path: &Path, log: &LogReader) -> Result<(), Failure> {
    let run = log.run();
    let unrecorded = || (run.unrecorded > 0).then(|| format!("{} events were lost by the recorder", run.unrecorded));
    let moved = || run.faults.iter().find(|fault| fault.kind.makes_clock_false()).map(|fault| moved(log, fault));
    let why = log.damage().first().cloned().or_else(unrecorded).or_else(moved);
    why.map_or(Ok(()), |why| Err(Failure::from(format!("{}: partial results: {why}", path.display()))))
}

fn moved(log: &LogReader, fault: &RunFault) -> String {
    let host = fault.host.and_then(|host| log.run().hosts.get(host.index())).map_or("?", |host| &host.name);
    format!("by a fault of the run the clock of host {host} leaves its bound: no delay of it is right")
}
