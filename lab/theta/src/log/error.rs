//! Errors of logs.

use parquet::basic::Type;
use parquet::errors::ParquetError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a log could not be written or read. Every message names the file and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system refuses.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The file is no Parquet file, or a damaged or cut one.
    #[error(
        "{path}: not a whole Parquet file ({detail}); a part cut off by a killed writer must be removed, the other parts can be read"
    )]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The message of the library.
        detail: String,
    },
    /// A column that the format requires is missing or has another type.
    #[error("{path}: no column `{column}` of type {expected}: see docs/theta-log.md")]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// The physical type it must have.
        expected: Type,
    },
    /// An invalid row.
    #[error("{path}: row {row}: {fault}")]
    Row {
        /// The file.
        path: PathBuf,
        /// Counting from 1.
        row: u64,
        /// What is wrong.
        fault: String,
    },
    /// `run.json` is missing, no JSON, or contradicts itself.
    #[error("{path}: {fault}")]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: String,
    },
}

impl LogError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> LogError {
        move |source| LogError::Io { path: path.to_owned(), source }
    }

    pub(super) fn parquet(path: &Path) -> impl FnOnce(ParquetError) -> LogError {
        move |error| LogError::Parquet { path: path.to_owned(), detail: error.to_string() }
    }

    pub(super) fn run(path: &Path, fault: impl Into<String>) -> LogError {
        LogError::Run { path: path.to_owned(), fault: fault.into() }
    }
}
