//! The clock after each exchange, as CSV.

use super::retrospect::Settled;
use super::track::{Step, bound_at, time_at, uncertainty_at};
use crate::failure::Failure;
use ffclock_estimator::Verdict;
use ffclock_trace::decimal::write_seconds;
use ffclock_units::{Bound, LeapTable, Span, Status};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The columns. Until the next row the clock is `utc_ns` + (N - `counter`) * `period_s`.
const HEADER: &str = "seq,counter,utc_ns,period_s,uncertainty_s,bound_s,floor_s,status,verdict,error_s,error_before_s";

/// What stands after them where the clock is worked out in retrospect as well.
const SMOOTHED_HEADER: &str = ",smoothed_utc_ns,smoothed_uncertainty_s,smoothed_error_s";

/// Which columns there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// The clock as it was.
    Causal,
    /// And in retrospect.
    Smoothed,
}

/// Writes a row for each exchange that was not rejected.
pub(super) struct Rows {
    path: PathBuf,
    output: BufWriter<File>,
    leaps: LeapTable,
}

impl Rows {
    pub(super) fn create(path: &Path, columns: Columns) -> Result<Self, Failure> {
        let file =
            File::create(path).map_err(|error| Failure::from(format!("cannot write {}: {error}", path.display())))?;
        let mut rows = Rows {
            path: path.to_owned(),
            output: BufWriter::with_capacity(1 << 18, file),
            leaps: LeapTable::built_in(),
        };
        let more = if columns == Columns::Smoothed { SMOOTHED_HEADER } else { "" };
        writeln!(rows.output, "{HEADER}{more}").map_err(|error| rows.failure(&error))?;
        Ok(rows)
    }

    /// Writes the clock after one exchange; `floor` is the smallest round trip of the path.
    pub(super) fn write(&mut self, step: &Step, floor: Span) -> Result<(), Failure> {
        let written = write_step(&mut self.output, &self.leaps, (step, floor));
        written.and_then(|()| self.output.write_all(b"\n")).map_err(|error| self.failure(&error))
    }

    /// Writes the clock after one exchange, with its time in retrospect.
    pub(super) fn write_settled(&mut self, settled: &Settled) -> Result<(), Failure> {
        let written = write_step(&mut self.output, &self.leaps, (&settled.step, settled.floor));
        written
            .and_then(|()| write_smoothed(&mut self.output, &self.leaps, settled))
            .map_err(|error| self.failure(&error))
    }

    /// Hands the last rows to the system.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.output.flush().map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::from(format!("cannot write {}: {error}", self.path.display()))
    }
}

fn write_step(output: &mut impl Write, leaps: &LeapTable, (step, floor): (&Step, Span)) -> io::Result<()> {
    let Step { estimate, counter, .. } = step;
    let utc = leaps.utc_from_tai(time_at(estimate, *counter)).since_origin().as_nanos();
    let period = estimate.period.as_seconds();
    write!(output, "{},{},{utc},{period:e},", step.sequence, counter.raw())?;
    for bound in [uncertainty_at(estimate, *counter), bound_at(estimate, *counter)] {
        if bound != Bound::UNKNOWN {
            write_seconds(output, bound.as_span())?;
        }
        output.write_all(b",")?;
    }
    write_seconds(output, floor)?;
    write!(output, ",{},{}", status_name(estimate.status), verdict_name(step.verdict))?;
    for error in [step.error, step.error_before] {
        output.write_all(b",")?;
        error.map_or(Ok(()), |error| write_seconds(output, error.as_span()))?;
    }
    Ok(())
}

fn write_smoothed(output: &mut impl Write, leaps: &LeapTable, settled: &Settled) -> io::Result<()> {
    let Some(smoothed) = settled.smoothed else { return output.write_all(b",,,\n") };
    write!(output, ",{},", leaps.utc_from_tai(smoothed.time).since_origin().as_nanos())?;
    write_seconds(output, smoothed.uncertainty.as_span())?;
    output.write_all(b",")?;
    settled.error.map_or(Ok(()), |error| write_seconds(output, error.as_span()))?;
    output.write_all(b"\n")
}

/// The status as a word.
pub(super) const fn status_name(status: Status) -> &'static str {
    match status {
        Status::Unsynchronised => "unsynchronised",
        Status::WarmingUp => "warming-up",
        Status::FreeRunning => "free-running",
        Status::Synchronised => "synchronised",
    }
}

const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Used => "used",
        Verdict::FloorOnly => "floor-only",
        Verdict::Contradiction => "contradiction",
        Verdict::Rejected(_) => "rejected",
    }
}
