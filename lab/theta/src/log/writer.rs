//! Writes a log.

use super::columns::EventColumns;
use super::{CLOCK_FILE, EVENT_PREFIX, EVENT_SUFFIX, FORMAT, LogError, RUN_FILE, TRUTH_FILE, VERSION, clocks, events};
use crate::record::{ClockSample, Event, RunDescription};
use parquet::file::writer::SerializedFileWriter;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Rows of a part: a killed writer loses at most these.
const PART_ROWS: usize = 1 << 20;

/// `run.json` as it stands in the file.
#[derive(Serialize, Deserialize)]
pub(super) struct RunFile {
    pub(super) format: String,
    pub(super) version: u32,
    /// Whether the writer reached the end. False in the log of an interrupted run.
    pub(super) complete: bool,
    pub(super) run: RunDescription,
}

/// The state of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteProgress {
    Begun,
    Complete,
}

/// Writes a stream of events into parts `events-NAME-00000.parquet`, `events-NAME-00001.parquet`, and so on.
pub struct EventWriter {
    directory: PathBuf,
    name: String,
    part: u32,
    file: Option<(PathBuf, SerializedFileWriter<File>)>,
    rows_in_part: usize,
    batch: EventColumns,
}

impl EventWriter {
    /// A stream called `name` (letters, digits, underscores) in the log `directory`, which must be there.
    ///
    /// # Errors
    /// [`LogError::Run`] for another name.
    pub fn create(directory: &Path, name: &str) -> Result<Self, LogError> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(LogError::run(
                directory,
                format!("`{name}` names no stream: use letters, digits and underscores"),
            ));
        }
        let (directory, name) = (directory.to_owned(), name.to_owned());
        Ok(EventWriter { directory, name, part: 0, file: None, rows_in_part: 0, batch: EventColumns::default() })
    }

    /// Appends an event.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Parquet`] when the disk refuses.
    pub fn append(&mut self, event: &Event) -> Result<(), LogError> {
        self.batch.push(event);
        if self.batch.len() >= events::GROUP_ROWS { self.write_batch() } else { Ok(()) }
    }

    /// Writes what is left and the ends of the files.
    ///
    /// # Errors
    /// As [`EventWriter::append`].
    pub fn finish(mut self) -> Result<(), LogError> {
        if !self.batch.is_empty() {
            self.write_batch()?;
        }
        self.close_part()
    }

    fn write_batch(&mut self) -> Result<(), LogError> {
        let (path, file) = match self.file.take() {
            Some(open) => self.file.insert(open),
            None => {
                let path = self.directory.join(format!("{EVENT_PREFIX}{}-{:05}{EVENT_SUFFIX}", self.name, self.part));
                let file = events::create(&path)?;
                self.file.insert((path, file))
            }
        };
        events::write_group(file, &self.batch).map_err(LogError::parquet(path))?;
        self.rows_in_part += self.batch.len();
        self.batch.clear();
        if self.rows_in_part >= PART_ROWS { self.close_part() } else { Ok(()) }
    }

    fn close_part(&mut self) -> Result<(), LogError> {
        if let Some((path, file)) = self.file.take() {
            file.close().map_err(LogError::parquet(&path))?;
            self.part += 1;
            self.rows_in_part = 0;
        }
        Ok(())
    }
}

/// Writes a whole log from one place. Processes that log on their own use an [`EventWriter`] each.
pub struct LogWriter {
    directory: PathBuf,
    run: RunDescription,
    events: EventWriter,
    clocks: Vec<ClockSample>,
    truth: Vec<ClockSample>,
}

impl LogWriter {
    /// Begins a log in `directory`, which is made; it must not hold a log yet. Until [`LogWriter::finish`] the log
    /// says that it is incomplete.
    ///
    /// # Errors
    /// [`LogError::Io`], and [`LogError::Run`] where a log is already.
    pub fn create(directory: &Path, run: &RunDescription) -> Result<Self, LogError> {
        fs::create_dir_all(directory).map_err(LogError::io(directory))?;
        if directory.join(RUN_FILE).exists() {
            return Err(LogError::run(directory, "there is a log already; choose another directory"));
        }
        let events = EventWriter::create(directory, "all")?;
        let writer =
            LogWriter { directory: directory.to_owned(), run: run.clone(), events, clocks: vec![], truth: vec![] };
        write_run(directory, run, WriteProgress::Begun)?;
        Ok(writer)
    }

    /// Gives up a log without events, of which nothing is left but what was in its directory before.
    ///
    /// # Errors
    /// [`LogError::Io`].
    pub fn discard(self) -> Result<(), LogError> {
        let run = self.directory.join(RUN_FILE);
        fs::remove_file(&run).map_err(LogError::io(&run))?;
        // It may hold other files.
        let _ = fs::remove_dir(&self.directory);
        Ok(())
    }

    /// The description of the run, which may change until the end.
    pub fn run_mut(&mut self) -> &mut RunDescription {
        &mut self.run
    }

    /// Appends an event.
    ///
    /// # Errors
    /// [`LogError::Io`] or [`LogError::Parquet`] when the disk refuses.
    pub fn event(&mut self, event: &Event) -> Result<(), LogError> {
        self.events.append(event)
    }

    /// Adds a sample of a host's clock.
    pub fn clock(&mut self, sample: ClockSample) {
        self.clocks.push(sample);
    }

    /// Adds a sample of a host's clock without its error.
    pub fn truth(&mut self, sample: ClockSample) {
        self.truth.push(sample);
    }

    /// Completes the log.
    ///
    /// # Errors
    /// As [`LogWriter::event`].
    pub fn finish(self) -> Result<(), LogError> {
        self.finish_as(WriteProgress::Complete)
    }

    /// Ends the log of a failed run: all files are complete, and the log stays marked as incomplete.
    ///
    /// # Errors
    /// As [`LogWriter::event`].
    pub fn finish_partial(self) -> Result<(), LogError> {
        self.finish_as(WriteProgress::Begun)
    }

    fn finish_as(mut self, progress: WriteProgress) -> Result<(), LogError> {
        let Self { directory, clocks, truth, .. } = &self;
        clocks::write(&directory.join(CLOCK_FILE), clocks)?;
        if !truth.is_empty() {
            clocks::write(&directory.join(TRUTH_FILE), truth)?;
        }
        let events = std::mem::replace(&mut self.events, EventWriter::create(&self.directory, "all")?);
        events.finish()?;
        write_run(&self.directory, &self.run, progress)
    }
}

/// Writes `run.json` beside its final place and moves it there, so that no reader sees half of it.
fn write_run(directory: &Path, run: &RunDescription, progress: WriteProgress) -> Result<(), LogError> {
    let path = directory.join(RUN_FILE);
    let complete = progress == WriteProgress::Complete;
    let file = RunFile { format: FORMAT.to_owned(), version: VERSION, complete, run: run.clone() };
    let text = serde_json::to_string_pretty(&file).map_err(|error| LogError::run(&path, error.to_string()))?;
    let beside = directory.join("run.json.new");
    fs::write(&beside, text).map_err(LogError::io(&beside))?;
    fs::rename(&beside, &path).map_err(LogError::io(&path))
}
