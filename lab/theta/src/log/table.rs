//! Parquet files as tables of whole columns, a batch of rows at a time.

use super::LogError;
use super::columns::Optional;
use ffclock_parquet_input::{ColumnFault, find, guarded};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::SerializedFileReader;
use parquet::file::writer::SerializedRowGroupWriter;
use std::fs::File;
use std::path::Path;

/// A field of a row group, while it is read.
pub(super) enum TableField {
    /// 32-bit integers.
    Int(ColumnReaderImpl<parquet::data_type::Int32Type>),
    /// 64-bit integers.
    Long(ColumnReaderImpl<parquet::data_type::Int64Type>),
    /// Floats.
    Double(ColumnReaderImpl<parquet::data_type::DoubleType>),
}

/// The physical type that a field must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Int,
    Long,
    Double,
}

impl ColumnType {
    fn name(self) -> &'static str {
        match self {
            ColumnType::Int => "INT32",
            ColumnType::Long => "INT64",
            ColumnType::Double => "DOUBLE",
        }
    }
}

pub(super) fn open(path: &Path) -> Result<SerializedFileReader<File>, LogError> {
    let file = File::open(path).map_err(LogError::io(path))?;
    let bytes = file.metadata().map_err(LogError::io(path))?.len();
    ffclock_parquet_input::open(file, bytes).map_err(LogError::parquet(path))
}

/// The column `name` of row group `group`; `None` if the file has no such column.
pub(super) fn field(
    file: &SerializedFileReader<File>,
    group: usize,
    name: &'static str,
    kind: ColumnType,
) -> Result<Option<TableField>, FieldFault> {
    let reader = match find(file, group, name) {
        Ok(reader) => reader,
        Err(ColumnFault::Missing) => return Ok(None),
        Err(ColumnFault::Nested) => return Err(FieldFault::Type),
        Err(ColumnFault::Parquet(error)) => return Err(FieldFault::Parquet(error)),
    };
    match (reader, kind) {
        (ColumnReader::Int32ColumnReader(reader), ColumnType::Int) => Ok(Some(TableField::Int(reader))),
        (ColumnReader::Int64ColumnReader(reader), ColumnType::Long) => Ok(Some(TableField::Long(reader))),
        (ColumnReader::DoubleColumnReader(reader), ColumnType::Double) => Ok(Some(TableField::Double(reader))),
        _ => Err(FieldFault::Type),
    }
}

/// Why a column cannot be read.
pub(super) enum FieldFault {
    Type,
    Parquet(ParquetError),
}

impl FieldFault {
    pub(super) fn at(self, path: &Path, column: &'static str, kind: ColumnType) -> LogError {
        match self {
            FieldFault::Parquet(error) => LogError::parquet(path)(error),
            FieldFault::Type => LogError::Column { path: path.to_owned(), column, expected: kind.name() },
        }
    }
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
    reader: &mut ColumnReaderImpl<parquet::data_type::Int64Type>,
    rows: usize,
    column: &mut Optional,
) -> Result<usize, ParquetError> {
    let before = column.present.len();
    let (records, ..) = guarded(|| reader.read_records(rows, Some(&mut column.present), None, &mut column.values))?;
    // A column declared without gaps has no levels.
    column.present.resize(before + records, 1);
    Ok(records)
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
