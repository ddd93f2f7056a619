//! A table written row by row as CSV. Every error message names the file.

use crate::failure::Failure;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A CSV file under way.
pub(crate) struct CsvFile {
    path: PathBuf,
    output: BufWriter<File>,
}

impl CsvFile {
    /// Makes the file, or empties it, and writes the line of column names.
    pub(crate) fn create(path: &Path, header: &str) -> Result<Self, Failure> {
        let file =
            File::create(path).map_err(|error| Failure::from(format!("cannot write {}: {error}", path.display())))?;
        let mut csv = CsvFile { path: path.to_owned(), output: BufWriter::with_capacity(1 << 18, file) };
        csv.write(|output| writeln!(output, "{header}"))?;
        Ok(csv)
    }

    /// Writes what `row` writes.
    pub(crate) fn write(&mut self, row: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        row(&mut self.output).map_err(|error| self.failure(&error))
    }

    /// Hands the last rows to the system.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.output.flush().map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::from(format!("cannot write {}: {error}", self.path.display()))
    }
}
