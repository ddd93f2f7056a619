//! A record as a Parquet file: a row for each packet, and what the run was in the file's metadata.

use super::{COLUMNS, Cells, FORMAT, OwdRecord, OwdRow, ROWS_MAX, RecordFault};
use crate::judge::PacketFate;
use ffclock_parquet_input::{ColumnFault, find, guarded};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::sync::Arc;

/// The first bytes of every Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// Under this key of the file's metadata lies what the run was.
const KEY: &str = "ffclock";
/// The number of the fate in [`PacketFate::ALL`].
const FATE: &str = "fate";
const GROUP_ROWS: usize = 1 << 16;
/// Rows that are read at a time.
const BATCH_ROWS: usize = 1 << 14;

/// Writes a Parquet file.
pub struct TableWriter {
    writer: SerializedFileWriter<File>,
    rows: Vec<(i64, Cells)>,
}

impl TableWriter {
    pub(super) fn begin(file: File, about: &Value) -> Result<Self, RecordFault> {
        let mut schema = format!("message packet {{ required int64 {FATE};");
        for column in COLUMNS {
            let _ = write!(schema, " optional int64 {column};");
        }
        schema.push('}');
        let schema = Arc::new(parse_message_type(&schema)?);
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()))?;
        let text = json!({ "format": FORMAT, "about": about }).to_string();
        writer.append_key_value_metadata(KeyValue::new(KEY.to_owned(), text));
        Ok(TableWriter { writer, rows: Vec::new() })
    }

    pub(super) fn append(&mut self, row: &OwdRow) -> Result<(), RecordFault> {
        self.rows.push((row.fate as i64, row.cells()));
        if self.rows.len() < GROUP_ROWS { Ok(()) } else { self.write_group() }
    }

    pub(super) fn finish(mut self) -> Result<(), RecordFault> {
        self.write_group()?;
        self.writer.close()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), RecordFault> {
        let mut group = self.writer.next_row_group()?;
        let no_column = || ParquetError::General("the schema has fewer columns".to_owned());
        let fates: Vec<i64> = self.rows.iter().map(|(fate, _)| *fate).collect();
        let mut column = group.next_column()?.ok_or_else(no_column)?;
        column.typed::<Int64Type>().write_batch(&fates, None, None)?;
        column.close()?;
        for place in 0..COLUMNS.len() {
            let present: Vec<i16> = self.rows.iter().map(|(_, cells)| i16::from(cells[place].is_some())).collect();
            let values: Vec<i64> = self.rows.iter().filter_map(|(_, cells)| cells[place]).collect();
            let mut column = group.next_column()?.ok_or_else(no_column)?;
            column.typed::<Int64Type>().write_batch(&values, Some(&present), None)?;
            column.close()?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

pub(super) fn read(file: File) -> Result<OwdRecord, RecordFault> {
    let length = file.metadata()?.len();
    let file = ffclock_parquet_input::open(file, length)?;
    let foreign = |reason: &str| RecordFault::Foreign(reason.to_owned());
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let text = pairs.into_iter().flatten().find(|pair| pair.key == KEY).and_then(|pair| pair.value.as_deref());
    let text = text.ok_or_else(|| foreign("it does not say what it is"))?;
    let mut about: Value = serde_json::from_str(text).map_err(|error| foreign(&error.to_string()))?;
    if about["format"] != FORMAT {
        return Err(foreign("it has another format"));
    }
    let mut rows = Vec::new();
    for group in 0..file.num_row_groups() {
        read_group(&file, group, &mut rows)?;
    }
    Ok(OwdRecord { about: about["about"].take(), rows })
}

fn read_group(file: &SerializedFileReader<File>, group: usize, rows: &mut Vec<OwdRow>) -> Result<(), RecordFault> {
    let mut fates = column(file, group, FATE)?;
    let mut columns = COLUMNS.iter().map(|name| column(file, group, name)).collect::<Result<Vec<_>, _>>()?;
    loop {
        let wrong = |row: usize, reason: &str| RecordFault::Line { line: row + 1, reason: reason.to_owned() };
        let fates = next_cells(&mut fates)?;
        let cells = columns.iter_mut().map(next_cells).collect::<Result<Vec<_>, _>>()?;
        if cells.iter().any(|column| column.len() != fates.len()) || rows.len() > ROWS_MAX {
            return Err(wrong(rows.len(), "its columns have different lengths, or too many rows"));
        }
        if fates.is_empty() {
            return Ok(());
        }
        for (place, fate) in fates.iter().enumerate() {
            let fate = fate.and_then(|fate| PacketFate::ALL.get(usize::try_from(fate).ok()?));
            let row = std::array::from_fn(|column| cells[column][place]);
            let row = fate.and_then(|fate| OwdRow::of(*fate, &row));
            let missing = || wrong(rows.len(), "it has no fate, no number or no time");
            let row = row.ok_or_else(missing)?;
            rows.push(row);
        }
    }
}

fn column(
    file: &SerializedFileReader<File>,
    group: usize,
    name: &str,
) -> Result<ColumnReaderImpl<Int64Type>, RecordFault> {
    let wrong = |what: &str| RecordFault::Foreign(format!("its column {name} {what}"));
    match find(file, group, name) {
        Ok(ColumnReader::Int64ColumnReader(reader)) => Ok(reader),
        Ok(_) => Err(wrong("does not hold whole numbers")),
        Err(ColumnFault::Missing) => Err(wrong("is missing")),
        Err(ColumnFault::Nested) => Err(wrong("is nested")),
        Err(ColumnFault::Parquet(error)) => Err(error.into()),
    }
}

/// Some of the next values, with their gaps; none at the end of the row group.
fn next_cells(reader: &mut ColumnReaderImpl<Int64Type>) -> Result<Vec<Option<i64>>, RecordFault> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (records, ..) = guarded(|| reader.read_records(BATCH_ROWS, Some(&mut levels), None, &mut values))?;
    // A column declared without gaps has no levels.
    if levels.is_empty() {
        levels.resize(records, 1);
    }
    let mut values = values.into_iter();
    Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
}
