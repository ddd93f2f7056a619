//! The columns of a record, which hold whole numbers with gaps.

use super::RecordError;
use ffclock_parquet_input::{ColumnFault, find, guarded};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::SerializedFileReader;
use std::fs::File;

/// A column of whole numbers in one row group, while it is read.
pub(super) struct IntegerColumn {
    name: String,
    reader: Width,
}

enum Width {
    Int(ColumnReaderImpl<Int32Type>),
    Long(ColumnReaderImpl<Int64Type>),
}

impl IntegerColumn {
    /// The column `name` of row group `group`.
    pub(super) fn find(file: &SerializedFileReader<File>, group: usize, name: &str) -> Result<Self, RecordError> {
        let wrong = |what: &str| RecordError::Inconsistent(format!("column {name} {what}"));
        let reader = find(file, group, name).map_err(|fault| match fault {
            ColumnFault::Missing => wrong("is missing"),
            ColumnFault::Nested => wrong("is nested"),
            ColumnFault::Parquet(error) => error.into(),
        })?;
        let reader = match reader {
            ColumnReader::Int32ColumnReader(reader) => Width::Int(reader),
            ColumnReader::Int64ColumnReader(reader) => Width::Long(reader),
            _ => return Err(wrong("does not hold whole numbers")),
        };
        Ok(IntegerColumn { name: name.to_owned(), reader })
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
