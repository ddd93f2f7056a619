//! Parquet files that may be damaged: an error in words, whatever the bytes are.
//!
//! The library takes much in a file for granted and panics where it does not hold. Files come from anywhere, so a
//! reader opens them here, finds their columns here and decodes within [`guarded`].
//!
//! Records of the probe and logs of theta are such files. Neither of these crates knows the other, and the product has
//! no Parquet, so this is a crate of its own.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Opens a file of this length.
///
/// # Errors
/// It is no Parquet file, or says of itself what cannot be.
pub fn open(file: File, bytes: u64) -> Result<SerializedFileReader<File>, ParquetError> {
    let file = guarded(|| SerializedFileReader::new(file))?;
    check_places(&file, bytes)?;
    Ok(file)
}

/// Does what the library may panic on. What was being read is given up then.
///
/// # Errors
/// Those of `work`, and one for a panic.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let gave_up = |_| Err(ParquetError::General("its content makes no sense to the decoder".to_owned()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(gave_up)
}

/// Checks that every column lies within the file of this length.
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

/// Why a column cannot be had.
#[derive(Debug)]
pub enum ColumnFault {
    /// The file has no column of that name.
    Missing,
    /// It has one of lists, or of parts of parts.
    Nested,
    /// The library says why.
    Parquet(ParquetError),
}

/// The column `name` of row group `group`.
///
/// # Errors
/// [`ColumnFault`].
pub fn find(file: &SerializedFileReader<File>, group: usize, name: &str) -> Result<ColumnReader, ColumnFault> {
    let schema = file.metadata().file_metadata().schema_descr();
    let index =
        schema.columns().iter().position(|column| column.path().string() == name).ok_or(ColumnFault::Missing)?;
    if schema.column(index).max_rep_level() > 0 || schema.column(index).max_def_level() > 1 {
        return Err(ColumnFault::Nested);
    }
    guarded(|| file.get_row_group(group).and_then(|group| group.get_column_reader(index))).map_err(ColumnFault::Parquet)
}

#[cfg(test)]
mod tests {
    use super::guarded;
    use parquet::errors::ParquetError;

    #[test]
    fn a_panic_of_the_decoder_is_an_error() {
        let read = guarded(|| -> Result<(), ParquetError> { panic!("index out of bounds") });
        assert!(read.is_err_and(|error| error.to_string().contains("no sense")));
        assert!(guarded(|| Ok(7)).is_ok_and(|value| value == 7));
    }
}
