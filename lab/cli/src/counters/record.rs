//! Where the records of a measurement go: into a file, to standard output as JSON, or nowhere.

use crate::failure::Failure;
use crate::files::in_the_way;
use crate::{GlobalOptions, output};
use ffclock_counters::recording::{Recorded, RecordingError, RecordingWriter, read};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

/// Where the records of one run go.
pub(super) struct RecordTarget {
    file: Option<(PathBuf, RecordingWriter<BufWriter<File>>)>,
    json: Option<RecordingWriter<Vec<u8>>>,
}

impl RecordTarget {
    /// Begins to record what `instrument` measures.
    pub(super) fn begin(
        global: &GlobalOptions,
        path: Option<&Path>,
        instrument: &str,
        about: &impl Serialize,
    ) -> Result<Self, Failure> {
        let open = |path: &Path| -> Result<_, Failure> {
            let file = create(path)?;
            let recorder = RecordingWriter::begin(BufWriter::new(file), instrument, about)
                .map_err(|error| unwritable(path, &error))?;
            Ok((path.to_owned(), recorder))
        };
        let file = path.map(open).transpose()?;
        let json = global.json.then(|| RecordingWriter::begin(Vec::new(), instrument, about)).transpose()?;
        let mut record = RecordTarget { file, json };
        record.pass_on()?;
        Ok(record)
    }

    /// Appends a record.
    pub(super) fn append(&mut self, kind: &str, fields: &impl Serialize) -> Result<(), Failure> {
        if let Some((path, recorder)) = &mut self.file {
            recorder.append(kind, fields).map_err(|error| unwritable(path, &error))?;
        }
        if let Some(json) = &mut self.json {
            json.append(kind, fields)?;
        }
        self.pass_on()
    }

    /// Appends many.
    pub(super) fn extend(&mut self, kind: &str, rows: &[impl Serialize]) -> Result<(), Failure> {
        rows.iter().try_for_each(|row| self.append(kind, row))
    }

    fn pass_on(&mut self) -> Result<(), Failure> {
        let Some(json) = &mut self.json else { return Ok(()) };
        let text = String::from_utf8_lossy(json.output_mut()).into_owned();
        json.output_mut().clear();
        output::write(&text)
    }

    /// Ends the recording cleanly, even where an error ended the measurement: the records up to then are kept, with the
    /// reason. Prints the page where no JSON is printed, and returns how the measurement ended.
    pub(super) fn conclude(mut self, ended: Result<(), Failure>, page: impl FnOnce() -> String) -> Result<(), Failure> {
        if let Err(failure) = &ended {
            self.append(BROKEN, &Broken { reason: failure.to_string() })?;
        }
        let is_json = self.json.is_some();
        self.finish()?;
        if is_json { ended } else { output::write(&page()).and(ended) }
    }

    /// Ends the recording cleanly.
    fn finish(self) -> Result<(), Failure> {
        if let Some((path, recorder)) = self.file {
            recorder.finish().map_err(|error| unwritable(&path, &error))?;
        }
        match self.json {
            Some(json) => output::write(&String::from_utf8_lossy(&json.finish()?)),
            None => Ok(()),
        }
    }
}

const BROKEN: &str = "broken";

/// Why a measurement ended before its time.
#[derive(Serialize, Deserialize)]
struct Broken {
    reason: String,
}

/// Why the measurement of a recording ended before its time, where it did.
pub(super) fn why_broken(recorded: &Recorded) -> Result<Option<String>, RecordingError> {
    Ok(recorded.all::<Broken>(BROKEN)?.pop().map(|broken| broken.reason))
}

/// Makes the file of a recording. What was measured before, or is the reference of this measurement, is never
/// overwritten; a device or a pipe has nothing to lose.
fn create(path: &Path) -> Result<File, Failure> {
    match File::create_new(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !path.is_file() => {
            OpenOptions::new().write(true).open(path).map_err(|error| unwritable(path, &error))
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(in_the_way(path, "--record")),
        made => made.map_err(|error| unwritable(path, &error)),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    format!("the recording {} cannot be written: {error}", path.display()).into()
}

/// Reads a recording.
pub(super) fn open(path: &Path) -> Result<Recorded, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::from(format!("{} {error}", path.display()));
    let file = File::open(path).map_err(|error| failed(&format!("cannot be opened: {error}")))?;
    read(BufReader::new(file)).map_err(|error| failed(&error))
}
