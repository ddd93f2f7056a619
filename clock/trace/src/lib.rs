//! Recordings of exchanges: our own format, CSV, and the logs of other programs.
//!
//! A trace is a stream of [`TraceRow`]s, oldest first, with a [`TraceHeader`] in front. [`TraceReader`] recognises the
//! format of its input (native, CSV, RADclock stamps, ntpd `rawstats`, chrony measurements; plain, gzip or zstd) and
//! hands out one row at a time, so memory does not grow with the file. [`Recorder`] writes the native format,
//! [`CsvWriter`] the readable one. The formats are described in `docs/trace.md`.
//!
//! This crate never judges an exchange and never reads a clock. Whatever the bytes are, it returns an error that names
//! the line or the record; it does not panic.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod csv;
pub mod decimal;
mod error;
mod fields;
mod header;
mod import;
mod input;
mod lines;
mod native;
mod reader;
mod row;
mod servers;
mod sniff;

pub use csv::CsvWriter;
pub use error::{Fault, TraceError, TracePlace};
pub use header::TraceHeader;
pub use native::Recorder;
pub use reader::TraceReader;
pub use row::{ServerIndex, TraceRow, Truth};
pub use sniff::Format;
