//! The exchanges themselves, as CSV: the evidence of the estimator.

use crate::csv_file::CsvFile;
use crate::failure::Failure;
use ffclock_estimator::Verdict;
use ffclock_replay::{ReplayStep, ReplayTrack, offset_at, round_trip};
use ffclock_trace::TraceRow;
use ffclock_trace::decimal::write_seconds;
use ffclock_units::{Exchange, LeapTable, Span};
use std::path::Path;

const HEADER: &str = "seq,utc_ns,round_trip_s,floor_s,offset_s,forward_s,backward_s,used";

/// Writes a row for each exchange, whether the estimator used it or not, as soon as there is a clock.
pub(super) struct Exchanges {
    file: CsvFile,
    leaps: LeapTable,
}

impl Exchanges {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Exchanges { file: CsvFile::create(path, HEADER)?, leaps: LeapTable::built_in() })
    }

    /// Writes one exchange, judged by the clock right after it.
    pub(super) fn write(
        &mut self,
        row: &TraceRow,
        track: &ReplayTrack,
        step: Option<&ReplayStep>,
    ) -> Result<(), Failure> {
        let (Some(exchange), Some(estimate)) = (&row.exchange, track.published()) else { return Ok(()) };
        let leaps = &self.leaps;
        let floor = track.floor().unwrap_or_default();
        self.file.write(|output| {
            let utc = leaps.utc_from_tai(exchange.server_out).since_origin().as_nanos();
            write!(output, "{},{utc}", row.sequence)?;
            for span in [round_trip(exchange, estimate), floor, offset_at(exchange, estimate)] {
                output.write_all(b",")?;
                write_seconds(output, span)?;
            }
            for delay in true_delays(row, exchange) {
                output.write_all(b",")?;
                delay.map_or(Ok(()), |delay| write_seconds(output, delay))?;
            }
            writeln!(output, ",{}", u8::from(step.is_some_and(|step| step.verdict == Verdict::Used)))
        })
    }

    /// Hands the last rows to the system.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.file.finish()
    }
}

/// To the server and back, where the trace has reference times.
fn true_delays(row: &TraceRow, exchange: &Exchange) -> [Option<Span>; 2] {
    let forward = row.truth.and_then(|truth| truth.sent).map(|sent| exchange.server_in - sent);
    [forward, row.truth.map(|truth| truth.received - exchange.server_out)]
}
