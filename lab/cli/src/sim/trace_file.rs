//! The trace of a run: CSV if its name ends in `.csv`, otherwise the native format.

use crate::failure::Failure;
use crate::files::in_the_way;
use ffclock_sim::Run;
use ffclock_trace::{CsvWriter, Recorder, TraceRow};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

enum TraceWriter {
    Csv(CsvWriter<BufWriter<File>>),
    Native(Recorder),
}

/// A trace under way, which keeps the first error for the end.
pub(super) struct TraceFile {
    path: PathBuf,
    writer: TraceWriter,
    outcome: io::Result<()>,
}

impl TraceFile {
    /// Makes the file, which must not be there.
    pub(super) fn create(path: &Path, run: &Run) -> Result<Self, Failure> {
        let writer = begin(path, run).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => in_the_way(path, "--trace"),
            _ => failure(path, &error),
        })?;
        Ok(TraceFile { path: path.to_owned(), writer, outcome: Ok(()) })
    }

    pub(super) fn take(&mut self, row: &TraceRow) {
        if self.outcome.is_ok() {
            self.outcome = match &mut self.writer {
                TraceWriter::Csv(writer) => writer.append(row),
                TraceWriter::Native(recorder) => recorder.append(row),
            };
        }
    }

    /// Hands the last rows to the system.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let TraceFile { path, writer, outcome } = self;
        let finish = || match writer {
            TraceWriter::Csv(mut writer) => writer.flush(),
            TraceWriter::Native(mut recorder) => recorder.sync(),
        };
        outcome.and_then(|()| finish()).map_err(|error| failure(&path, &error))
    }

    /// Removes the file of a run that does not begin.
    pub(super) fn discard(self) {
        // The error that stops the run is reported. That the empty file could not be removed is not.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn begin(path: &Path, run: &Run) -> io::Result<TraceWriter> {
    let header = run.trace_header();
    if path.extension().is_some_and(|extension| extension == "csv") {
        Ok(TraceWriter::Csv(CsvWriter::new(BufWriter::new(File::create_new(path)?), &header)?))
    } else {
        Ok(TraceWriter::Native(Recorder::create(path, &header)?))
    }
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure::from(format!("cannot write {}: {error}", path.display()))
}
