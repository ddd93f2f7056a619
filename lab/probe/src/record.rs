//! Every stamp of every packet on disk, and back: docs/probe.md describes both forms.
//!
//! A name that ends in `.parquet` makes a Parquet file, any other name a recording of JSON lines. The first
//! bytes of a file distinguish them. A file that was cut, or whose parts contradict one another, is refused, because a
//! cut file is not a shorter measurement.

mod columns;
mod dtrace;
mod table;
mod text;

use crate::agreement::Methods;
use crate::effect::Effect;
use crate::outcome::{PacketCounts, ProbeOutcome};
use crate::passages::{Beyond, PacketPassages};
use crate::site::Site;
use ffclock_counters::campaign::CampaignPhase;
use ffclock_counters::recording::RecordingError;
use ffclock_units::Period;
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// The ending of the names of Parquet files.
pub const PARQUET_ENDING: &str = "parquet";
/// The longest campaign: phases beyond it are none of ours.
const MOST_PHASES: usize = 1 << 12;

/// Why a record cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// It cannot be opened, read or written.
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
    /// The lines are no recording, or damaged, or cut.
    #[error(transparent)]
    Lines(#[from] RecordingError),
    /// A Parquet file without its end.
    #[error(
        "is a Parquet file without its end: the measurement was killed or the copy is incomplete; record again, or copy again"
    )]
    Truncated,
    /// A Parquet file that does not decode.
    #[error("is a damaged Parquet file ({0}); record again, or restore it from where it was copied")]
    Table(#[from] parquet::errors::ParquetError),
    /// A Parquet file of something else.
    #[error("is a Parquet file, but not one of `ffclock-lab probe run --record`: {0}")]
    Foreign(String),
    /// Its parts do not fit together.
    #[error(
        "contradicts itself: {0}; it was changed after it was recorded, or recorded by something else: record again"
    )]
    Inconsistent(String),
    /// Neither Parquet, nor lines of this program, nor of the script.
    #[error("is no record of `ffclock-lab probe run --record`, and no output of probe.d")]
    Unknown,
    /// Output of the DTrace script that makes no sense.
    #[error("line {line} is no output of probe.d ({reason}); run the script again, and keep its output as it is")]
    Script {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// The record of one phase.
#[derive(Clone, Debug)]
pub struct PhaseRecord {
    /// The number, the load and the begin of the phase.
    pub phase: CampaignPhase,
    /// What happened to packets and stamps.
    pub counts: PacketCounts,
    /// What the host did not offer.
    pub unavailable: Vec<String>,
    /// The length of the phase [s].
    pub length_s: f64,
    /// The stamps. At a site that both methods stamped they are those of the tracing.
    pub passages: PacketPassages,
    /// What both methods said of the same packets; the stamps by eBPF themselves are not kept where the tracing has
    /// some.
    pub methods: Methods,
}

/// A whole record.
#[derive(Clone, Debug)]
pub struct ProbeRecord {
    /// What the run was: way, device, driver, counter, rate, size, and whatever else was noted.
    pub about: Value,
    /// The counter's period.
    pub period: Period,
    /// What the probes cost, where that was measured.
    pub effect: Option<Effect>,
    /// The phases in the order of time.
    pub phases: Vec<PhaseRecord>,
}

/// The data of a phase other than its packets.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Beside {
    #[serde(flatten)]
    phase: CampaignPhase,
    counts: PacketCounts,
    unavailable: Vec<String>,
    took_s: f64,
    #[serde(flatten)]
    methods: Methods,
}

/// Writes a record.
pub enum ProbeWriter {
    /// As JSON lines.
    Lines(Box<text::TextRecord>),
    /// As a Parquet file.
    Table(Box<table::ParquetTable>),
}

impl ProbeWriter {
    /// Begins a record at `path`; `about` is an object that describes the run and holds `counter_hz`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, about: &Value) -> Result<Self, RecordError> {
        let about = with_sites(about);
        let is_table = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(PARQUET_ENDING));
        let file = File::create(path)?;
        Ok(if is_table {
            ProbeWriter::Table(Box::new(table::ParquetTable::begin(file, about)?))
        } else {
            ProbeWriter::Lines(Box::new(text::TextRecord::begin(file, &about)?))
        })
    }

    /// Notes what the probes cost; before the phases.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn effect(&mut self, effect: &Effect) -> Result<(), RecordError> {
        match self {
            ProbeWriter::Lines(lines) => lines.effect(effect),
            ProbeWriter::Table(table) => {
                table.effect(effect);
                Ok(())
            }
        }
    }

    /// Appends a phase.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn phase(&mut self, phase: &CampaignPhase, outcome: &ProbeOutcome) -> Result<(), RecordError> {
        let beside = Beside {
            phase: *phase,
            counts: outcome.counts.clone(),
            unavailable: outcome.unavailable.clone(),
            took_s: outcome.length_s,
            methods: outcome.methods.clone(),
        };
        self.append(beside, &outcome.passages)
    }

    /// Appends a phase of another record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn again(&mut self, phase: &PhaseRecord) -> Result<(), RecordError> {
        let beside = Beside {
            phase: phase.phase,
            counts: phase.counts.clone(),
            unavailable: phase.unavailable.clone(),
            took_s: phase.length_s,
            methods: phase.methods.clone(),
        };
        self.append(beside, &phase.passages)
    }

    fn append(&mut self, beside: Beside, passages: &PacketPassages) -> Result<(), RecordError> {
        match self {
            ProbeWriter::Lines(lines) => lines.phase(&beside, passages),
            ProbeWriter::Table(table) => table.phase(beside, passages),
        }
    }

    /// Ends the record. Without this call a reader refuses the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), RecordError> {
        match self {
            ProbeWriter::Lines(lines) => lines.finish(),
            ProbeWriter::Table(table) => table.finish(),
        }
    }
}

/// Reads a record: a Parquet file, JSON lines, or what the DTrace script printed.
///
/// # Errors
/// [`RecordError`].
pub fn read(path: &Path) -> Result<ProbeRecord, RecordError> {
    let mut input = BufReader::new(File::open(path)?);
    let beginning = input.fill_buf()?.to_vec();
    if beginning.starts_with(table::MAGIC) {
        return table::read(input.into_inner());
    }
    if beginning.starts_with(dtrace::FORMAT.as_bytes()) {
        return dtrace::read(input);
    }
    text::read(input).map_err(|error| match error {
        RecordError::Lines(RecordingError::Foreign) => RecordError::Unknown,
        other => other,
    })
}

/// The names of the sites in the order of all rows, beside what the record says of the run.
fn with_sites(about: &Value) -> Value {
    let mut about = about.clone();
    if let Some(map) = about.as_object_mut() {
        map.insert("sites".to_owned(), Site::ALL.map(Site::key).to_vec().into());
    }
    about
}

/// The places of a record's columns: `None` for a site that this program does not know, whose stamps are passed over.
fn sites_of(about: &Value) -> Result<Vec<Option<Site>>, RecordError> {
    let wrong = |reason: &str| RecordError::Inconsistent(reason.to_owned());
    let names = about["sites"].as_array().ok_or_else(|| wrong("it does not name its sites"))?;
    let sites: Vec<Option<Site>> = names.iter().map(|name| name.as_str().and_then(Site::from_key)).collect();
    let mut known: Vec<Site> = sites.iter().copied().flatten().collect();
    known.sort_unstable();
    if known.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(wrong("it names a site twice"));
    }
    Ok(sites)
}

fn period_of(about: &Value) -> Result<Period, RecordError> {
    let wrong = || RecordError::Inconsistent("its counter has no frequency (counter_hz)".to_owned());
    about["counter_hz"].as_f64().and_then(Period::from_hertz).ok_or_else(wrong)
}

/// The phase, if its packets are those that its counts announce.
fn checked(beside: Beside, passages: PacketPassages, number: usize) -> Result<PhaseRecord, RecordError> {
    let Beside { phase, counts, unavailable, took_s: length_s, methods } = beside;
    let wrong = |what: String| Err(RecordError::Inconsistent(format!("phase {number}: {what}")));
    if number >= MOST_PHASES || phase.number != number {
        return wrong(format!("it stands where phase {} is announced", phase.number));
    }
    if counts.sent != passages.len() as u64 {
        return wrong(format!("{} packets were sent and {} are recorded", counts.sent, passages.len()));
    }
    let received = passages.count(Site::UserReceive) as u64;
    if counts.received != received {
        return wrong(format!("{} replies were received and {received} are recorded", counts.received));
    }
    Ok(PhaseRecord { phase, counts, unavailable, length_s, passages, methods })
}

/// Appends a packet to a phase; `place` says where in the record it stands.
fn append(
    passages: &mut PacketPassages,
    stamps: impl Iterator<Item = (Site, i64)>,
    place: impl std::fmt::Display,
) -> Result<(), RecordError> {
    let beyond = |site: Site| RecordError::Inconsistent(format!("{place} has a stamp centuries away ({})", site.key()));
    passages.restore(stamps).map_err(|Beyond(site)| beyond(site))
}

#[cfg(test)]
mod tests;
