//! A record as a Parquet file: a row for each packet, a column for each site, everything else in the file's metadata.

use super::columns::IntegerColumn;
use super::{Beside, MOST_PHASES, PhaseRecord, ProbeRecord, RecordError, append, checked, period_of, sites_of};
use crate::effect::Effect;
use crate::passages::PacketPassages;
use crate::site::Site;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::{Display, Write as _};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

/// The first and the last bytes of every Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Under this key of the file's metadata lies everything but the packets, as JSON.
const KEY: &str = "ffclock";
/// Another number is another version.
const FORMAT: &str = "ffclock probe 1";
const GROUP_ROWS: usize = 1 << 16;
/// Rows that are read at a time.
const BATCH_ROWS: usize = 1 << 14;
const PHASE: &str = "phase";
const SEQUENCE: &str = "sequence";

#[derive(Serialize, Deserialize)]
struct Metadata {
    format: String,
    about: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
    phases: Vec<Beside>,
}

/// Writes a Parquet file.
pub struct ParquetTable {
    writer: SerializedFileWriter<File>,
    metadata: Metadata,
}

impl ParquetTable {
    pub(super) fn begin(file: File, about: Value) -> Result<Self, RecordError> {
        let mut schema = format!("message packet {{ required int32 {PHASE}; required int64 {SEQUENCE};");
        for site in Site::ALL {
            let _ = write!(schema, " optional int64 {};", site.key());
        }
        schema.push('}');
        let schema = Arc::new(parse_message_type(&schema)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()))?;
        Ok(ParquetTable {
            writer,
            metadata: Metadata { format: FORMAT.to_owned(), about, effect: None, phases: Vec::new() },
        })
    }

    pub(super) fn effect(&mut self, effect: &Effect) {
        self.metadata.effect = Some(effect.clone());
    }

    pub(super) fn phase(&mut self, beside: Beside, passages: &PacketPassages) -> Result<(), RecordError> {
        let number = beside.phase.number as i32;
        for begin in (0..passages.len()).step_by(GROUP_ROWS) {
            let rows: Vec<usize> = (begin..passages.len().min(begin + GROUP_ROWS)).collect();
            let mut group = self.writer.next_row_group()?;
            let mut column = group.next_column()?.ok_or_else(no_column)?;
            column.typed::<Int32Type>().write_batch(&vec![number; rows.len()], None, None)?;
            column.close()?;
            let sequences: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
            let mut column = group.next_column()?.ok_or_else(no_column)?;
            column.typed::<Int64Type>().write_batch(&sequences, None, None)?;
            column.close()?;
            for site in Site::ALL {
                let stamps: Vec<Option<i64>> =
                    rows.iter().map(|row| passages.at(*row, site).map(|ticks| ticks.raw())).collect();
                let present: Vec<i16> = stamps.iter().map(|stamp| i16::from(stamp.is_some())).collect();
                let values: Vec<i64> = stamps.into_iter().flatten().collect();
                let mut column = group.next_column()?.ok_or_else(no_column)?;
                column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
                column.close()?;
            }
            group.close()?;
        }
        self.metadata.phases.push(beside);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), RecordError> {
        let text = serde_json::to_string(&self.metadata).map_err(std::io::Error::from)?;
        self.writer.append_key_value_metadata(KeyValue::new(KEY.to_owned(), text));
        self.writer.close()?;
        Ok(())
    }
}

fn no_column() -> ParquetError {
    ParquetError::General("the schema has fewer columns".to_owned())
}

pub(super) fn read(mut file: File) -> Result<ProbeRecord, RecordError> {
    let mut end = [0; 4];
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(4)))?;
    file.read_exact(&mut end)?;
    if end != *MAGIC || length < 12 {
        return Err(RecordError::Truncated);
    }
    let file = ffclock_parquet_input::open(file, length)?;
    let metadata = metadata(&file)?;
    if metadata.phases.len() > MOST_PHASES {
        return Err(RecordError::Inconsistent(format!("it announces {} phases", metadata.phases.len())));
    }
    let (sites, period) = (sites_of(&metadata.about)?, period_of(&metadata.about)?);
    let sites = sites.into_iter().flatten().collect();
    let mut rows = PassageRows { sites, phases: metadata.phases.iter().map(|_| PacketPassages::default()).collect() };
    for group in 0..file.num_row_groups() {
        rows.take_in(&file, group)?;
    }
    let phases = metadata.phases.into_iter().zip(rows.phases).enumerate();
    let phases = phases.map(|(number, (beside, passages))| checked(beside, passages, number));
    let phases = phases.collect::<Result<Vec<PhaseRecord>, _>>()?;
    Ok(ProbeRecord { about: metadata.about, period, effect: metadata.effect, phases })
}

fn metadata(file: &SerializedFileReader<File>) -> Result<Metadata, RecordError> {
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let text = pairs.into_iter().flatten().find(|pair| pair.key == KEY).and_then(|pair| pair.value.as_deref());
    let text = text.ok_or_else(|| RecordError::Foreign(format!("it has no metadata called {KEY}")))?;
    let value: Value = serde_json::from_str(text).map_err(|error| RecordError::Foreign(error.to_string()))?;
    if value["format"] != FORMAT {
        return Err(RecordError::Foreign(format!("its format is {}, not \"{FORMAT}\"", value["format"])));
    }
    Metadata::deserialize(&value).map_err(|error| RecordError::Inconsistent(error.to_string()))
}

struct PassageRows {
    /// Those that this program knows.
    sites: Vec<Site>,
    phases: Vec<PacketPassages>,
}

impl PassageRows {
    /// Takes a row group in, some rows of all columns at a time: what claims to be longer than it is shows before it
    /// fills the memory.
    fn take_in(&mut self, file: &SerializedFileReader<File>, group: usize) -> Result<(), RecordError> {
        let mut phases = IntegerColumn::find(file, group, PHASE)?;
        let mut sequences = IntegerColumn::find(file, group, SEQUENCE)?;
        let stamps = self.sites.iter().map(|site| IntegerColumn::find(file, group, &site.key()));
        let mut stamps = stamps.collect::<Result<Vec<IntegerColumn>, _>>()?;
        let mut taken = 0;
        loop {
            let (phases, sequences) = (phases.next(BATCH_ROWS)?, sequences.next(BATCH_ROWS)?);
            let stamps: Vec<_> = stamps.iter_mut().map(|column| column.next(BATCH_ROWS)).collect::<Result<_, _>>()?;
            let rows = phases.len();
            if sequences.len() != rows || stamps.iter().any(|column| column.len() != rows) {
                return Err(RecordError::Inconsistent(format!("row group {group} has columns of different lengths")));
            }
            for row in 0..rows {
                let stamps = self.sites.iter().zip(&stamps).filter_map(|(site, column)| Some((*site, column[row]?)));
                let place = format_args!("row {} of row group {group}", taken + row);
                let passages = next_packet(&mut self.phases, phases[row], sequences[row], &place)?;
                append(passages, stamps, place)?;
            }
            taken += rows;
            if rows == 0 {
                break;
            }
        }
        let announced = file.metadata().row_group(group).num_rows();
        if i64::try_from(taken) != Ok(announced) {
            return Err(RecordError::Inconsistent(format!("row group {group} has {taken} of {announced} rows")));
        }
        Ok(())
    }
}

/// The phase of a row, which must be the next packet there.
fn next_packet<'a>(
    phases: &'a mut [PacketPassages],
    phase: Option<i64>,
    sequence: Option<i64>,
    place: &impl Display,
) -> Result<&'a mut PacketPassages, RecordError> {
    let phase = phase.and_then(|phase| usize::try_from(phase).ok());
    let Some(passages) = phase.and_then(|phase| phases.get_mut(phase)) else {
        return Err(RecordError::Inconsistent(format!("{place} belongs to no phase")));
    };
    if sequence != Some(passages.len() as i64) {
        let expected = passages.len();
        return Err(RecordError::Inconsistent(format!("{place} is not packet {expected} of its phase")));
    }
    Ok(passages)
}
