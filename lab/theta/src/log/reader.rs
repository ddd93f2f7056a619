//! Reads a log.

use super::columns::EventColumns;
use super::events::{EventReader, WayInColumns};
use super::writer::RunFile;
use super::{CLOCK_FILE, EVENT_PREFIX, EVENT_SUFFIX, FORMAT, LogError, RUN_FILE, TRUTH_FILE, VERSION, clocks};
use crate::record::{ClockSample, Event, RunDescription};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// More than this in `run.json` is refused.
const RUN_BYTES_MAX: u64 = 64 << 20;
/// More processes are refused.
const PROCESSES_MAX: u32 = 1 << 20;

/// The parts of one writer, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStream {
    /// Its name, part of the names of the files.
    pub name: String,
    /// The files.
    pub parts: Vec<PathBuf>,
}

/// An opened log. What is damaged is listed in [`LogReader::damage`] and left out; the rest can be read.
#[derive(Debug)]
pub struct LogReader {
    run: RunDescription,
    clocks: Vec<ClockSample>,
    truth: Vec<ClockSample>,
    streams: Vec<EventStream>,
    damage: Vec<String>,
}

impl LogReader {
    /// Opens the log in `directory`, reads its description and its clocks, and checks the ends of all event files.
    ///
    /// # Errors
    /// [`LogError`] when there is no usable `run.json`, no usable clock file, or no readable event file.
    pub fn open(directory: &Path) -> Result<Self, LogError> {
        let RunFile { complete, run, .. } = read_run(&directory.join(RUN_FILE))?;
        let mut damage = Vec::new();
        if !complete {
            damage.push("the writer did not come to the end of the run".to_owned());
        }
        let clocks = clocks::read(&directory.join(CLOCK_FILE))?;
        let truth = directory.join(TRUTH_FILE);
        let truth = if truth.exists() { clocks::read(&truth)? } else { vec![] };
        let streams = streams(directory, &mut damage)?;
        if streams.is_empty() {
            return Err(LogError::run(directory, "no readable event file (events-NAME-PART.parquet)"));
        }
        Ok(LogReader { run, clocks, truth, streams, damage })
    }

    /// The description of the run.
    pub fn run(&self) -> &RunDescription {
        &self.run
    }

    /// The samples of the clocks, in the order of the file.
    pub fn clocks(&self) -> &[ClockSample] {
        &self.clocks
    }

    /// The true samples of the clocks; empty unless the log comes from a simulation.
    pub fn truth(&self) -> &[ClockSample] {
        &self.truth
    }

    /// The same log with the true clocks, which a simulation writes.
    ///
    /// # Errors
    /// [`LogError::Run`] for a log without it.
    pub fn by_truth(self) -> Result<Self, LogError> {
        if self.truth.is_empty() {
            let file = self.streams.first().and_then(|stream| stream.parts.first()?.parent()).unwrap_or(Path::new("."));
            return Err(LogError::run(file, "there is no truth.parquet: only simulations know the truth"));
        }
        let mut run = self.run;
        run.faults.retain(|fault| !fault.kind.makes_clock_false());
        Ok(LogReader { clocks: self.truth.clone(), run, ..self })
    }

    /// The streams of events.
    pub fn streams(&self) -> &[EventStream] {
        &self.streams
    }

    /// What is missing or broken. Results of a damaged log are partial.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// Hands over every event, stream by stream.
    ///
    /// # Errors
    /// The first of `take`; and what `failed` makes of a part that cannot be read on.
    pub fn each_event<E>(
        &self,
        with_way_in: WayInColumns,
        failed: impl Fn(LogError) -> E,
        mut take: impl FnMut(&Event) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut batch = EventColumns::default();
        for part in self.streams.iter().flat_map(|stream| &stream.parts) {
            let mut reader = EventReader::open(part, with_way_in).map_err(&failed)?;
            while reader.next_batch(&mut batch).map_err(&failed)? {
                reader.events(&batch).try_for_each(|event| take(&event.map_err(&failed)?))?;
            }
        }
        Ok(())
    }
}

fn read_run(path: &Path) -> Result<RunFile, LogError> {
    let mut text = String::new();
    let file = File::open(path).map_err(LogError::io(path))?;
    file.take(RUN_BYTES_MAX).read_to_string(&mut text).map_err(LogError::io(path))?;
    let file: RunFile = serde_json::from_str(&text).map_err(|error| LogError::run(path, error.to_string()))?;
    if file.format != FORMAT || file.version != VERSION {
        let fault = format!("format {} version {} is not {FORMAT} version {VERSION}", file.format, file.version);
        return Err(LogError::run(path, fault));
    }
    check(&file.run).map_err(|fault| LogError::run(path, fault))?;
    Ok(file)
}

fn check(run: &RunDescription) -> Result<(), String> {
    let n = run.processes;
    if n == 0 || n > PROCESSES_MAX {
        return Err(format!("processes must lie between 1 and {PROCESSES_MAX}, not {n}"));
    }
    if run.origin != crate::record::LogOrigin::Imported && u64::from(n) < 3 * u64::from(run.tolerated) + 1 {
        return Err(format!("n = {n} processes cannot tolerate f = {}: n >= 3f+1 is needed", run.tolerated));
    }
    let spans = [("delay_ps", run.delay_ps), ("delay_min_ps", run.delay_min_ps), ("disorder_ps", run.disorder_ps)];
    if let Some((name, span)) = spans.into_iter().find(|(_, span)| i64::try_from(*span).is_err()) {
        return Err(format!("{name} = {span} is longer than the 106 days that a signed number of picoseconds holds"));
    }
    if run.host_of.len() != n as usize {
        return Err(format!("host_of names the hosts of {} processes, and there are {n}", run.host_of.len()));
    }
    let lost = run.host_of.iter().find(|host| host.index() >= run.hosts.len());
    if let Some(host) = lost {
        return Err(format!("host {} is not among the {} hosts", host.0, run.hosts.len()));
    }
    let processes = run.faults.iter().flat_map(|fault| [fault.process, fault.receiver]).flatten();
    if let Some(process) = processes.into_iter().find(|process| process.0 >= n) {
        return Err(format!("a fault names process {}, and there are {n}", process.0));
    }
    Ok(())
}

/// Name and number of `events-NAME-PART.parquet`.
fn name_and_part(file: &str) -> Option<(&str, u32)> {
    let (name, part) = file.strip_prefix(EVENT_PREFIX)?.strip_suffix(EVENT_SUFFIX)?.rsplit_once('-')?;
    Some((name, part.parse().ok()?))
}

fn streams(directory: &Path, damage: &mut Vec<String>) -> Result<Vec<EventStream>, LogError> {
    let mut found: BTreeMap<String, BTreeMap<u32, PathBuf>> = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(LogError::io(directory))? {
        let entry = entry.map_err(LogError::io(directory))?;
        let file = entry.file_name();
        if let Some((name, part)) = file.to_str().and_then(name_and_part) {
            found.entry(name.to_owned()).or_default().insert(part, entry.path());
        }
    }
    let whole = found.into_iter().map(|(name, parts)| EventStream { parts: readable(&name, &parts, damage), name });
    Ok(whole.filter(|stream| !stream.parts.is_empty()).collect())
}

/// The parts from the first on, up to the first that is missing or cannot be read: what follows a gap is not
/// used.
fn readable(name: &str, parts: &BTreeMap<u32, PathBuf>, damage: &mut Vec<String>) -> Vec<PathBuf> {
    let mut readable = Vec::new();
    for (expected, (&part, path)) in (0..).zip(parts) {
        if part != expected {
            damage.push(format!("stream {name}: part {expected} is missing; parts from {part} on are left out"));
            break;
        }
        if let Err(error) = EventReader::open(path, WayInColumns::Skip) {
            damage.push(error.to_string());
            break;
        }
        readable.push(path.clone());
    }
    readable
}
