//! The clock after each exchange, as CSV.

use crate::csv_file::CsvFile;
use crate::failure::Failure;
use ffclock_estimator::Verdict;
use ffclock_replay::{ReplayStep, SettledStep};
use ffclock_trace::decimal::write_seconds;
use ffclock_units::{LeapTable, Span};
use std::io::{self, Write};
use std::path::Path;

/// The columns. Until the next row the clock is `utc_ns` + (N - `counter`) * `period_s`.
const HEADER: &str =
    "seq,counter,utc_ns,period_s,uncertainty_s,noise_s,bound_s,floor_s,status,verdict,error_s,error_before_s";

/// The columns after them where the clock is worked out in retrospect as well.
const SMOOTHED_HEADER: &str = ",smoothed_utc_ns,smoothed_uncertainty_s,smoothed_error_s";

/// The clocks that have columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayColumns {
    /// The clock as it was.
    Causal,
    /// Also the clock in retrospect.
    Smoothed,
}

/// Writes a row for each exchange that was not rejected.
pub(super) struct RowWriter {
    file: CsvFile,
    columns: ReplayColumns,
    leaps: LeapTable,
}

impl RowWriter {
    pub(super) fn create(path: &Path, columns: ReplayColumns) -> Result<Self, Failure> {
        let more = if columns == ReplayColumns::Smoothed { SMOOTHED_HEADER } else { "" };
        let file = CsvFile::create(path, &format!("{HEADER}{more}"))?;
        Ok(RowWriter { file, columns, leaps: LeapTable::built_in() })
    }

    /// Writes the clock after one exchange.
    pub(super) fn write(&mut self, settled: &SettledStep) -> Result<(), Failure> {
        let (leaps, columns) = (&self.leaps, self.columns);
        self.file.write(|output| {
            write_step(output, leaps, &settled.step)?;
            if columns == ReplayColumns::Smoothed {
                write_smoothed(output, leaps, settled)?;
            }
            output.write_all(b"\n")
        })
    }

    /// Hands the last rows to the system.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish()
    }
}

fn write_step(output: &mut dyn Write, leaps: &LeapTable, step: &ReplayStep) -> io::Result<()> {
    let ReplayStep { estimate, counter, .. } = step;
    let at = estimate.at(*counter);
    let utc = leaps.utc_from_tai(at.time).since_origin().as_nanos();
    let period = estimate.period.as_seconds();
    write!(output, "{},{},{utc},{period:e},", step.sequence, counter.raw())?;
    for figure in [at.uncertainty.as_span(), at.noise.as_span(), at.bound.as_span()] {
        if figure != Span::MAX {
            write_seconds(output, figure)?;
        }
        output.write_all(b",")?;
    }
    write_seconds(output, step.floor)?;
    write!(output, ",{},{}", estimate.status.name(), verdict_name(step.verdict))?;
    for error in [step.error, step.error_before] {
        output.write_all(b",")?;
        error.map_or(Ok(()), |error| write_seconds(output, error.as_span()))?;
    }
    Ok(())
}

fn write_smoothed(output: &mut dyn Write, leaps: &LeapTable, settled: &SettledStep) -> io::Result<()> {
    let Some(smoothed) = settled.smoothed else { return output.write_all(b",,,") };
    write!(output, ",{},", leaps.utc_from_tai(smoothed.time).since_origin().as_nanos())?;
    write_seconds(output, smoothed.uncertainty.as_span())?;
    output.write_all(b",")?;
    settled.error.map_or(Ok(()), |error| write_seconds(output, error.as_span()))
}

const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Used => "used",
        Verdict::FloorOnly => "floor-only",
        Verdict::Contradiction => "contradiction",
        Verdict::Rejected(_) => "rejected",
    }
}
