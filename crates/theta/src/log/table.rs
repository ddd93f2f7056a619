//! Parquet files as tables of whole columns, a batch of rows at a time.

use super::LogError;
use super::columns::Optional;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedRowGroupWriter;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A field of a row group, while it is read.
pub(super) enum Field {
    /// 32-bit integers.
    Int(ColumnReaderImpl<parquet::data_type::Int32Type>),
    /// 64-bit integers.
    Long(ColumnReaderImpl<parquet::data_type::Int64Type>),
    /// Floats.
    Double(ColumnReaderImpl<parquet::data_type::DoubleType>),
}

/// The physical type that a field must have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Long,
    Double,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Int => "INT32",
            Kind::Long => "INT64",
            Kind::Double => "DOUBLE",
        }
    }
}

pub(super) fn open(path: &Path) -> Result<SerializedFileReader<File>, LogError> {
    let file = File::open(path).map_err(LogError::io(path))?;
    let bytes = file.metadata().map_err(LogError::io(path))?.len();
    let reader = guarded(|| SerializedFileReader::new(file)).map_err(LogError::parquet(path))?;
    check_places(&reader, bytes).map_err(LogError::parquet(path))?;
    Ok(reader)
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

/// The column `name` of row group `group`; `None` if the file has no such column.
pub(super) fn field(
    file: &SerializedFileReader<File>,
    group: usize,
    name: &'static str,
    kind: Kind,
) -> Result<Option<Field>, FieldFault> {
    let schema = file.metadata().file_metadata().schema_descr();
    let Some(index) = schema.columns().iter().position(|column| column.name() == name) else { return Ok(None) };
    if schema.column(index).max_rep_level() > 0 || schema.column(index).max_def_level() > 1 {
        return Err(FieldFault::Type);
    }
    let reader = guarded(|| file.get_row_group(group).and_then(|group| group.get_column_reader(index)));
    let reader = reader.map_err(FieldFault::Parquet)?;
    match (reader, kind) {
        (ColumnReader::Int32ColumnReader(reader), Kind::Int) => Ok(Some(Field::Int(reader))),
        (ColumnReader::Int64ColumnReader(reader), Kind::Long) => Ok(Some(Field::Long(reader))),
        (ColumnReader::DoubleColumnReader(reader), Kind::Double) => Ok(Some(Field::Double(reader))),
        _ => Err(FieldFault::Type),
    }
}

/// Why a column cannot be had.
pub(super) enum FieldFault {
    Type,
    Parquet(ParquetError),
}

impl FieldFault {
    pub(super) fn at(self, path: &Path, column: &'static str, kind: Kind) -> LogError {
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
