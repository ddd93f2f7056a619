//! Parquet files as tables of whole columns, a batch of rows at a time.

use super::LogError;
use super::columns::Optional;
use ffclock_parquet_input::{ColumnFault, find, guarded};
use parquet::column::reader::ColumnReaderImpl;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

pub(super) fn open(path: &Path) -> Result<SerializedFileReader<File>, LogError> {
    let file = File::open(path).map_err(LogError::io(path))?;
    let bytes = file.metadata().map_err(LogError::io(path))?.len();
    ffclock_parquet_input::open(file, bytes).map_err(LogError::parquet(path))
}

/// A row group of a file.
pub(super) struct RowGroup<'a> {
    pub(super) path: &'a Path,
    pub(super) file: &'a SerializedFileReader<File>,
    pub(super) number: usize,
}

impl RowGroup<'_> {
    /// The column `name`; `None` if the file has none of that name.
    pub(super) fn optional<T: DataType>(&self, name: &'static str) -> Result<Option<ColumnReaderImpl<T>>, LogError> {
        match find(self.file, self.number, name) {
            Ok(reader) => T::get_column_reader(reader).map(Some).ok_or_else(|| self.no_column::<T>(name)),
            Err(ColumnFault::Missing) => Ok(None),
            Err(ColumnFault::Nested) => Err(self.no_column::<T>(name)),
            Err(ColumnFault::Parquet(error)) => Err(LogError::parquet(self.path)(error)),
        }
    }

    /// The column `name`.
    pub(super) fn required<T: DataType>(&self, name: &'static str) -> Result<ColumnReaderImpl<T>, LogError> {
        self.optional(name)?.ok_or_else(|| self.no_column::<T>(name))
    }

    /// The first `rows` values of the column `name`, which has no gaps.
    pub(super) fn values<T: DataType>(&self, name: &'static str, rows: usize) -> Result<Vec<T::T>, LogError> {
        let (mut reader, mut values) = (self.required::<T>(name)?, Vec::new());
        read_dense(&mut reader, rows, &mut values).map_err(LogError::parquet(self.path))?;
        Ok(values)
    }

    fn no_column<T: DataType>(&self, column: &'static str) -> LogError {
        LogError::Column { path: self.path.to_owned(), column, expected: T::get_physical_type() }
    }
}

/// Columns of one table that do not end together.
pub(super) fn uneven() -> ParquetError {
    ParquetError::General("columns of different length".to_owned())
}

/// Reads up to `rows` values of a column without gaps behind `values`; how many.
pub(super) fn read_dense<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values: &mut Vec<T::T>,
) -> Result<usize, ParquetError> {
    let mut levels = Vec::new();
    let (records, read, _) = guarded(|| reader.read_records(rows, Some(&mut levels), None, values))?;
    if read == records { Ok(records) } else { Err(ParquetError::General("a value is missing (null)".to_owned())) }
}

/// The same for a column that may have gaps.
pub(super) fn read_optional(
    reader: &mut ColumnReaderImpl<Int64Type>,
    rows: usize,
    column: &mut Optional,
) -> Result<usize, ParquetError> {
    let before = column.present.len();
    let (records, ..) = guarded(|| reader.read_records(rows, Some(&mut column.present), None, &mut column.values))?;
    // A column declared without gaps has no levels.
    column.present.resize(before + records, 1);
    Ok(records)
}

/// Writes a file of one row group with what `columns` writes.
pub(super) fn write_file(
    path: &Path,
    schema: &str,
    columns: impl FnOnce(&mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError>,
) -> Result<(), LogError> {
    let file = File::create(path).map_err(LogError::io(path))?;
    let write = || {
        let schema = Arc::new(parse_message_type(schema)?);
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default()))?;
        let mut group = writer.next_row_group()?;
        columns(&mut group)?;
        group.close()?;
        writer.close().map(drop)
    };
    write().map_err(LogError::parquet(path))
}

/// Writes the next column of a row group.
pub(super) fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column =
        group.next_column()?.ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
    let writer: &mut ColumnWriterImpl<'_, T> = column.typed::<T>();
    writer.write_batch(values, present, None)?;
    column.close()
}
