//! What can be wrong with a trace, and where.

use crate::decimal::DecimalFault;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Where in a trace something is wrong; lines and records count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePlace {
    /// The header.
    Header,
    /// This line of the (uncompressed) text.
    Line(u64),
    /// This record of a native trace.
    Record(u64),
}

impl fmt::Display for TracePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracePlace::Header => f.write_str("header"),
            TracePlace::Line(number) => write!(f, "line {number}"),
            TracePlace::Record(number) => write!(f, "record {number}"),
        }
    }
}

/// Why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The bytes cannot be read: a failing disk, a damaged or cut compressed stream. Nothing can follow.
    #[error("{place}: cannot read on: {source}")]
    Read {
        /// The place that reading had reached.
        place: TracePlace,
        /// The error of the reader or of the system.
        source: io::Error,
    },
    /// The file as a whole cannot be used. Nothing can follow.
    #[error("{0}")]
    File(Fault),
    /// One row is bad. Reading can continue with the next row.
    #[error("{place}: {fault}")]
    Row {
        /// The row.
        place: TracePlace,
        /// The fault of the row.
        fault: Fault,
    },
}

impl TraceError {
    /// Whether only one row is lost, so that reading may go on after it.
    pub fn is_one_row(&self) -> bool {
        matches!(self, TraceError::Row { .. })
    }
}

/// A fault of a trace or of one of its rows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A cell does not fit its column.
    #[error("{column}: {why}: \"{text}\"")]
    Cell {
        /// The name of the column.
        column: &'static str,
        /// The reason.
        why: CellFault,
        /// The beginning of its text.
        text: String,
    },
    /// A cell that may not be empty is empty.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The row has the wrong number of cells.
    #[error("{found} cells where {expected} are needed: \"{text}\"")]
    Cells {
        /// The number of cells found.
        found: usize,
        /// The number of cells expected.
        expected: usize,
        /// The beginning of the row.
        text: String,
    },
    /// A line is longer than 64 KiB.
    #[error("the line is longer than 64 KiB: \"{0}\"")]
    LongLine(String),
    /// A CSV header names a column twice.
    #[error("the header names the column {0} twice")]
    ColumnTwice(&'static str),
    /// A CSV header lacks a column.
    #[error("the header has no column {0}")]
    NoColumn(&'static str),
    /// More different servers than a trace may have.
    #[error("more than {0} different servers")]
    Servers(usize),
    /// A native record whose check does not match.
    #[error("the record is damaged (its check does not match)")]
    Damaged,
    /// A native record that this version cannot understand.
    #[error("the record holds an unknown {field} {value}")]
    Unknown {
        /// The name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
    /// A native header that cannot be understood.
    #[error("the header of the trace is damaged: {0}")]
    Header(String),
    /// A native trace of a later version.
    #[error("the trace is of version \"{0}\"; this program reads version 1")]
    Version(String),
    /// None of the known formats.
    #[error(
        "neither an ffclock trace, CSV with a header, RADclock stamps, ntpd rawstats nor chrony measurements; it begins with \"{0}\""
    )]
    Format(String),
    /// There is nothing in the file.
    #[error("the file is empty")]
    Empty,
    /// What decides the format of a file holds remarks alone.
    #[error("the first 64 KiB of the file hold nothing but remarks")]
    RemarksOnly,
}

/// Why a cell does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CellFault {
    /// A number was expected.
    #[error("{0}")]
    Decimal(DecimalFault),
    /// This was expected.
    #[error("not {0}")]
    Not(&'static str),
}

impl From<DecimalFault> for CellFault {
    fn from(fault: DecimalFault) -> Self {
        CellFault::Decimal(fault)
    }
}

/// The longest part of an offending text in a message [characters].
const SHOWN: usize = 40;

/// The beginning of `text`, safe to print.
pub(crate) fn shortened(text: &[u8]) -> String {
    let head = text.get(..SHOWN * 4).unwrap_or(text);
    let decoded = String::from_utf8_lossy(head);
    let trimmed = decoded.trim();
    let mut shown: String = trimmed.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if trimmed.chars().count() > SHOWN || text.len() > head.len() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_text_is_short_and_printable() {
        assert_eq!(shortened(b"  12x \r\n"), "12x");
        assert_eq!(shortened(b"a\x1b[2J\xff"), "a\\u{1b}[2J\u{fffd}");
        assert_eq!(shortened(&[b'7'; 1000]), format!("{}...", "7".repeat(40)));
    }

    #[test]
    fn messages_name_the_place_and_the_text() {
        let fault = Fault::Cell { column: "Tb", why: DecimalFault::NotANumber.into(), text: "12x".into() };
        let error = TraceError::Row { place: TracePlace::Line(7), fault };
        assert_eq!(error.to_string(), "line 7: Tb: not a decimal number: \"12x\"");
        assert!(error.is_one_row());
        assert!(!TraceError::File(Fault::Empty).is_one_row());
    }
}
