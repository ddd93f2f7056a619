//! A record as a Parquet file: a row for each packet, a column for each site, everything else in the file's metadata.

use super::{Beside, PhaseRecord, ProbeRecord, RecordError, checked, period_of, sites_of};
use crate::probe::passages::Passages;
use crate::probe::site::Site;
use parquet::column::reader::ColumnReader;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt::Write as _;
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
const PHASE: &str = "phase";
const SEQUENCE: &str = "sequence";

#[derive(Serialize, Deserialize)]
struct Told {
    format: String,
    about: Value,
    phases: Vec<Beside>,
}

/// Writes a Parquet file.
pub struct Table {
    writer: SerializedFileWriter<File>,
    told: Told,
}

impl Table {
    pub(super) fn begin(file: File, about: Value) -> Result<Self, RecordError> {
        let mut schema = format!("message packet {{ required int32 {PHASE}; required int64 {SEQUENCE};");
        for site in Site::ALL {
            let _ = write!(schema, " optional int64 {};", site.key());
        }
        schema.push('}');
        let schema = Arc::new(parse_message_type(&schema)?);
        let writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()))?;
        Ok(Table { writer, told: Told { format: FORMAT.to_owned(), about, phases: Vec::new() } })
    }

    pub(super) fn phase(&mut self, beside: Beside, passages: &Passages) -> Result<(), RecordError> {
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
        self.told.phases.push(beside);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), RecordError> {
        let text = serde_json::to_string(&self.told).map_err(std::io::Error::from)?;
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
    let file = SerializedFileReader::new(file)?;
    let told = told(&file)?;
    let (sites, period) = (sites_of(&told.about)?, period_of(&told.about)?);
    let mut rows = Rows { sites, phases: told.phases.iter().map(|_| Passages::default()).collect() };
    for number in 0..file.num_row_groups() {
        rows.take_in(&*file.get_row_group(number)?)?;
    }
    let phases = told.phases.into_iter().zip(rows.phases).enumerate();
    let phases = phases.map(|(number, (beside, passages))| checked(beside, passages, number));
    Ok(ProbeRecord { about: told.about, period, phases: phases.collect::<Result<Vec<PhaseRecord>, _>>()? })
}

fn told(file: &SerializedFileReader<File>) -> Result<Told, RecordError> {
    let metadata = file.metadata().file_metadata().key_value_metadata();
    let text = metadata.into_iter().flatten().find(|pair| pair.key == KEY).and_then(|pair| pair.value.as_deref());
    let text = text.ok_or_else(|| RecordError::Foreign(format!("it has no metadata called {KEY}")))?;
    let value: Value = serde_json::from_str(text).map_err(|error| RecordError::Foreign(error.to_string()))?;
    if value["format"] != FORMAT {
        return Err(RecordError::Foreign(format!("its format is {}, not \"{FORMAT}\"", value["format"])));
    }
    Told::deserialize(&value).map_err(|error| RecordError::Inconsistent(error.to_string()))
}

struct Rows {
    sites: Vec<Option<Site>>,
    phases: Vec<Passages>,
}

impl Rows {
    fn take_in(&mut self, group: &dyn RowGroupReader) -> Result<(), RecordError> {
        let count = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        if group.num_columns() != 2 + self.sites.len() {
            let columns = group.num_columns();
            return Err(RecordError::Inconsistent(format!("{columns} columns for {} sites", self.sites.len())));
        }
        let phases = numbers(group, 0, count)?;
        let sequences = numbers(group, 1, count)?;
        let columns: Vec<Vec<Option<i64>>> =
            (0..self.sites.len()).map(|site| numbers(group, 2 + site, count)).collect::<Result<_, _>>()?;
        for row in 0..count {
            let phase = phases[row].and_then(|phase| usize::try_from(phase).ok());
            let Some(passages) = phase.and_then(|phase| self.phases.get_mut(phase)) else {
                return Err(RecordError::Inconsistent(format!("row {row} belongs to no phase")));
            };
            if sequences[row] != Some(passages.len() as i64) {
                let expected = passages.len();
                return Err(RecordError::Inconsistent(format!("row {row} is not packet {expected} of its phase")));
            }
            let stamps = self.sites.iter().zip(&columns).filter_map(|(site, column)| Some(((*site)?, column[row]?)));
            passages.restore(stamps);
        }
        Ok(())
    }
}

/// A column of whole numbers, with its gaps.
fn numbers(group: &dyn RowGroupReader, column: usize, count: usize) -> Result<Vec<Option<i64>>, RecordError> {
    let mut levels = Vec::new();
    let values: Vec<i64> = match group.get_column_reader(column)? {
        ColumnReader::Int32ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(count, Some(&mut levels), None, &mut values)?;
            values.into_iter().map(i64::from).collect()
        }
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(count, Some(&mut levels), None, &mut values)?;
            values
        }
        _ => return Err(RecordError::Inconsistent(format!("column {column} does not hold whole numbers"))),
    };
    // A column declared without gaps has no levels.
    if levels.is_empty() {
        levels.resize(values.len(), 1);
    }
    let mut values = values.into_iter();
    let rows: Vec<Option<i64>> = levels.iter().map(|level| (*level > 0).then(|| values.next()).flatten()).collect();
    if rows.len() == count {
        Ok(rows)
    } else {
        Err(RecordError::Inconsistent(format!("column {column} has {} of {count} rows", rows.len())))
    }
}
