//! A row for each packet on disk, and back: CSV, or Parquet where the name ends in `.parquet`.
//!
//! Both have the same columns of whole numbers (docs/owd.md), with gaps where a figure is not known. What the run was
//! stands in the first line of the CSV, after `#`, and in the metadata of the Parquet file.

mod lines;
mod table;

use crate::judge::{Delay, PacketFate};
use ffclock_units::{Bound, Counter, Moment, Span, Utc};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// What every record begins with, or has in its metadata. Another number is another version.
const FORMAT: &str = "ffclock owd 1";
/// The columns after the fate.
const COLUMNS: [&str; 11] = [
    "sequence",
    "sent_ns",
    "forward_ps",
    "forward_bound_ps",
    "backward_ps",
    "backward_bound_ps",
    "round_trip_ps",
    "held_ps",
    "reflector_sequence",
    "sent_counter",
    "received_counter",
];
/// More rows than any run of a day.
const ROWS_MAX: usize = 1 << 28;

/// Why a record cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordFault {
    /// It cannot be opened, read or written.
    #[error("cannot be used: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("is no record of `ffclock-lab owd send --record`: {0}")]
    Foreign(String),
    /// A line that makes no sense.
    #[error("line {line} makes no sense ({reason}); the file was changed, or cut")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A Parquet file that does not decode.
    #[error("is a damaged Parquet file ({0}); record again, or restore it from where it was copied")]
    Table(#[from] parquet::errors::ParquetError),
}

/// What is known of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwdRow {
    /// Counted from 0 in the session.
    pub number: u64,
    /// Its fate.
    pub fate: PacketFate,
    /// T1, when it left.
    pub sent: Moment<Utc>,
    /// To the reflector.
    pub forward: Option<Delay>,
    /// From the reflector.
    pub backward: Option<Delay>,
    /// Both, by the counter and without the time in the reflector.
    pub round_trip: Option<Span>,
    /// In the reflector.
    pub held: Option<Span>,
    /// The reflector's own number.
    pub reflector_sequence: Option<u32>,
    /// The counter at T1.
    pub sent_counter: Counter,
    /// The counter at T4.
    pub received_counter: Option<Counter>,
}

/// A whole record.
#[derive(Clone, Debug)]
pub struct OwdRecord {
    /// What the run was.
    pub about: Value,
    /// The packets, in the order in which their fates were known.
    pub rows: Vec<OwdRow>,
}

type Cells = [Option<i64>; COLUMNS.len()];

impl OwdRow {
    fn cells(&self) -> Cells {
        let delay = |delay: Option<Delay>| delay.map(|delay| picoseconds(delay.delay));
        let bound = |delay: Option<Delay>| delay.map(|delay| picoseconds_up(delay.bound));
        let counter = |counter: Counter| counter.raw().cast_signed();
        [
            Some(self.number.cast_signed()),
            i64::try_from(self.sent.since_origin().as_nanos()).ok(),
            delay(self.forward),
            bound(self.forward),
            delay(self.backward),
            bound(self.backward),
            self.round_trip.map(picoseconds),
            self.held.map(picoseconds),
            self.reflector_sequence.map(i64::from),
            Some(counter(self.sent_counter)),
            self.received_counter.map(counter),
        ]
    }

    /// `None` if a figure is missing that every packet has.
    fn of(fate: PacketFate, cells: &Cells) -> Option<Self> {
        let [number, sent, forward, forward_bound, backward, backward_bound, round_trip, held, reflector, left, came] =
            *cells;
        let delay = |delay: Option<i64>, bound: Option<i64>| {
            let (delay, bound) = delay.zip(bound)?;
            Some(Delay { delay: span(delay), bound: Bound::of(span(bound)) })
        };
        Some(OwdRow {
            number: number?.cast_unsigned(),
            fate,
            sent: Moment::from_origin(Span::from_nanos(sent?.into())),
            forward: delay(forward, forward_bound),
            backward: delay(backward, backward_bound),
            round_trip: round_trip.map(span),
            held: held.map(span),
            reflector_sequence: reflector.and_then(|number| u32::try_from(number).ok()),
            sent_counter: Counter::from_raw(left?.cast_unsigned()),
            received_counter: came.map(|counter| Counter::from_raw(counter.cast_unsigned())),
        })
    }
}

/// Writes a record.
pub enum RecordWriter {
    /// As CSV.
    Lines(lines::LineWriter),
    /// As a Parquet file.
    Table(table::TableWriter),
}

impl RecordWriter {
    /// Begins a record at `path`; `about` is an object that describes the run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: &Path, about: &Value) -> Result<Self, RecordFault> {
        let is_table = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"));
        let file = File::create(path)?;
        Ok(if is_table {
            RecordWriter::Table(table::TableWriter::begin(file, about)?)
        } else {
            RecordWriter::Lines(lines::LineWriter::begin(file, about)?)
        })
    }

    /// Appends a packet.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, row: &OwdRow) -> Result<(), RecordFault> {
        match self {
            RecordWriter::Lines(lines) => lines.append(row),
            RecordWriter::Table(table) => table.append(row),
        }
    }

    /// Ends the record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<(), RecordFault> {
        match self {
            RecordWriter::Lines(lines) => lines.finish(),
            RecordWriter::Table(table) => table.finish(),
        }
    }
}

/// Reads a record; its first bytes say of which form it is.
///
/// # Errors
/// [`RecordFault`].
pub fn read(path: &Path) -> Result<OwdRecord, RecordFault> {
    let mut input = BufReader::new(File::open(path)?);
    if input.fill_buf()?.starts_with(table::MAGIC) { table::read(input.into_inner()) } else { lines::read(input) }
}

/// Rounded to the nearest; what is too long is the longest.
fn picoseconds(span: Span) -> i64 {
    let half = Span::from_units(1 << 63);
    let scaled = |units: i128| {
        (units >> 64) * 1_000_000_000_000 + (((units & i128::from(u64::MAX)) * 1_000_000_000_000 + half.units()) >> 64)
    };
    let limit = 9_000_000_i64;
    match span {
        span if span > Span::from_secs(limit) => i64::MAX,
        span if span < Span::from_secs(-limit) => i64::MIN,
        span => i64::try_from(scaled(span.units())).unwrap_or(i64::MAX),
    }
}

/// Rounded up.
fn picoseconds_up(bound: Bound) -> i64 {
    picoseconds(bound.as_span()).saturating_add(1)
}

/// Of picoseconds, rounded up.
fn span(picoseconds: i64) -> Span {
    let units = (i128::from(picoseconds) << 64) / 1_000_000_000_000;
    Span::from_units(units + i128::from(picoseconds > 0))
}

#[cfg(test)]
mod tests;
