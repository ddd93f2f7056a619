//! CSV with a header that names the columns.

mod columns;
mod reader;
mod writer;

pub(crate) use reader::CsvParser;
pub use writer::CsvWriter;
