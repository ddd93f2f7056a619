//! The columns of a Parquet file that may be damaged: an error in words, whatever the bytes are.

use super::RecordError;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Opens a file of so many bytes.
pub(super) fn open(file: File, bytes: u64) -> Result<SerializedFileReader<File>, ParquetError> {
    let file = guarded(|| SerializedFileReader::new(file))?;
    check_places(&file, bytes)?;
    Ok(file)
}

/// Does what the library may panic on: it takes much in a file for granted, and a damaged file must be an error in words. What was being
/// read is given up then.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let gave_up = |_| Err(ParquetError::General("its content makes no sense to the decoder".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(gave_up)
}

/// Checks that every column lies within the file of so many bytes: the library takes that for granted, and panics otherwise.
fn check_places(file: &SerializedFileReader<File>, bytes: u64) -> Result<(), ParquetError> {
    let misplaced = || ParquetError::General("a column lies outside the file".to_owned());
    for column in file.metadata().row_groups().iter().flat_map(|group| group.columns()) {
        let begin = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let sizes = [begin, column.compressed_size(), column.data_page_offset(), column.num_values()];
        if sizes.iter().any(|&size| size < 0) {
            return Err(misplaced());
        }
        let end = begin.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
        if end.is_none_or(|end| end > bytes) {
            return Err(misplaced());
        }
    }
    Ok(())
}

/// A column of whole numbers in one row group, while it is read.
pub(super) struct Column {
    name: String,
    reader: Width,
}

enum Width {
    Int(ColumnReaderImpl<Int32Type>),
    Long(ColumnReaderImpl<Int64Type>),
}

impl Column {
    /// The column `name` of row group `group`.
    pub(super) fn find(file: &SerializedFileReader<File>, group: usize, name: &str) -> Result<Self, RecordError> {
        let wrong = |what: &str| RecordError::Inconsistent(format!("column {name} {what}"));
        let schema = file.metadata().file_metadata().schema_descr();
        let index = schema.columns().iter().position(|column| column.path().string() == name);
        let index = index.ok_or_else(|| wrong("is missing"))?;
        if schema.column(index).max_rep_level() > 0 || schema.column(index).max_def_level() > 1 {
            return Err(wrong("is nested"));
        }
        let reader = guarded(|| file.get_row_group(group).and_then(|group| group.get_column_reader(index)))?;
        let reader = match reader {
            ColumnReader::Int32ColumnReader(reader) => Width::Int(reader),
            ColumnReader::Int64ColumnReader(reader) => Width::Long(reader),
            _ => return Err(wrong("does not hold whole numbers")),
        };
        Ok(Column { name: name.to_owned(), reader })
    }

    /// Up to `rows` of the next values, with their gaps; none at the end of the row group.
    pub(super) fn next(&mut self, rows: usize) -> Result<Vec<Option<i64>>, RecordError> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (records, ..) = match &mut self.reader {
            Width::Long(reader) => guarded(|| reader.read_records(rows, Some(&mut levels), None, &mut values))?,
            Width::Int(reader) => {
                let mut narrow = Vec::new();
                let read = guarded(|| reader.read_records(rows, Some(&mut levels), None, &mut narrow))?;
                values.extend(narrow.into_iter().map(i64::from));
                read
            }
        };
        // A column declared without gaps has no levels.
        if levels.is_empty() {
            levels.resize(records, 1);
        }
        let present = levels.iter().filter(|level| **level > 0).count();
        if levels.len() != records || present != values.len() {
            return Err(RecordError::Inconsistent(format!("column {} has other values than it announces", self.name)));
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
    }
}
