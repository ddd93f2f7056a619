//! What each clock showed over time, as CSV.

use super::happenings;
use crate::csv_file::CsvFile;
use crate::failure::Failure;
use ffclock_sim::{Run, ShownReading};
use ffclock_trace::decimal::write_seconds;
use ffclock_units::Span;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

const HEADER: &str = "t_s,clock,error_s,bound_s,uncertainty_s,noise_s,counter,difference_period_s";

/// Writes a row for each clock at each reading, and keeps the first error for the end.
pub(super) struct Series {
    file: CsvFile,
    outcome: Result<(), Failure>,
}

impl Series {
    pub(super) fn create(path: &Path, run: &Run, trace: Option<&Path>) -> Result<Self, Failure> {
        Ok(Series { file: CsvFile::create(path, &(remarks(run, trace) + HEADER))?, outcome: Ok(()) })
    }

    pub(super) fn take(&mut self, sample: &ShownReading) {
        if self.outcome.is_ok() {
            self.outcome = self.file.write(|output| write_sample(output, sample));
        }
    }

    /// Hands the last rows to the system.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.outcome.and_then(|()| self.file.finish())
    }
}

/// What a report wants to know of the run, as lines before the header.
fn remarks(run: &Run, trace: Option<&Path>) -> String {
    let scenario = run.scenario;
    let mut text = format!("# scenario={}\n# about={}\n# seed={}\n", run.name, scenario.about, run.seed);
    let _ = writeln!(text, "# from_s={}", scenario.from.seconds());
    if let Some(trace) = trace {
        let _ = writeln!(text, "# trace={}", trace.display());
    }
    for happening in happenings::all(scenario) {
        let key = happening.kind.name();
        let _ = writeln!(text, "# {key}={},{},{}", happening.begin_s, happening.end_s, happening.text);
    }
    text
}

fn write_sample(output: &mut dyn Write, sample: &ShownReading) -> io::Result<()> {
    write_seconds(output, sample.at)?;
    write!(output, ",{},", sample.clock)?;
    write_seconds(output, sample.error.as_span())?;
    let Some(claims) = sample.claims else { return writeln!(output, ",,,,{},", sample.counter.raw()) };
    for figure in [claims.bound.as_span(), claims.uncertainty.as_span(), claims.noise.as_span()] {
        output.write_all(b",")?;
        if figure != Span::MAX {
            write_seconds(output, figure)?;
        }
    }
    writeln!(output, ",{},{:e}", sample.counter.raw(), claims.difference_period.as_seconds())
}
