//! Reads a trace of any known format.

use crate::csv::CsvParser;
use crate::error::{Fault, TraceError};
use crate::import::{ChronyParser, RadclockParser, RawstatsParser};
use crate::input::{self, TraceInput};
use crate::lines::LineReader;
use crate::native::NativeReader;
use crate::sniff::{Format, sniff};
use crate::{ServerIndex, TraceHeader, TracePlace, TraceRow};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Turns one line of a text format into a row.
pub(crate) trait LineParser {
    /// The row in `line`; `None` for a line that is no row. `line` is not empty and has no blanks around it.
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRow>, Fault>;

    /// The name of a server in the rows so far.
    fn server_name(&self, server: ServerIndex) -> Option<&str>;

    /// Remarks for the user about the rows so far.
    fn notes(&self) -> Vec<String>;
}

enum Decoder {
    Native(NativeReader<TraceInput>),
    Text(LineReader<TraceInput>, Box<dyn LineParser>),
}

/// Hands out the rows of a trace, one at a time.
///
/// After an error in one row ([`TraceError::is_one_row`]) reading can continue with the next row; any other error is
/// the last item.
/// ```
/// let text = "Ta,Tb,Te,Tf\n1000,1700000000.5,1700000000.500001,2000\n";
/// let mut reader = ffclock_trace::TraceReader::from_reader(Box::new(text.as_bytes())).unwrap();
/// let row = reader.next().unwrap().unwrap();
/// assert_eq!(row.exchange.unwrap().received.counter.raw(), 2000);
/// assert!(reader.next().is_none());
/// ```
pub struct TraceReader {
    header: TraceHeader,
    format: Format,
    decoder: Decoder,
    finished: bool,
}

impl TraceReader {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// The file cannot be opened, is in none of the formats, or has a damaged or incomplete header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| TraceError::Open { path: path.to_owned(), source })?;
        Self::from_reader(Box::new(file))
    }

    /// Reads from any stream. Up to 64 KiB of it decide the format.
    ///
    /// # Errors
    /// As for [`open`](TraceReader::open).
    pub fn from_reader(stream: Box<dyn Read>) -> Result<Self, TraceError> {
        let (input, head) =
            input::open(stream).map_err(|source| TraceError::Read { place: TracePlace::Header, source })?;
        let format = sniff(&head).map_err(TraceError::File)?;
        let (decoder, header) = decoder(format, input)?;
        Ok(TraceReader { header, format, decoder, finished: false })
    }

    /// The header of the trace.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The format that was found.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The name of a server, where the trace has one. In text formats it is known once a row of that server was read.
    pub fn server_name(&self, server: ServerIndex) -> Option<&str> {
        match &self.decoder {
            Decoder::Native(_) => self.header.metadata(&format!("server.{}", server.0)),
            Decoder::Text(_, parser) => parser.server_name(server),
        }
    }

    /// Remarks for the user about the rows read so far: ignored columns, skipped lines, a record cut short.
    pub fn notes(&self) -> Vec<String> {
        match &self.decoder {
            Decoder::Native(reader) if reader.cut() > 0 => {
                vec![format!("the last record is cut short ({} bytes of it are there) and was left out", reader.cut())]
            }
            Decoder::Native(_) => Vec::new(),
            Decoder::Text(_, parser) => parser.notes(),
        }
    }
}

fn decoder(format: Format, input: TraceInput) -> Result<(Decoder, TraceHeader), TraceError> {
    if format == Format::Native {
        let (reader, header) = NativeReader::new(input)?;
        return Ok((Decoder::Native(reader), header));
    }
    let mut lines = LineReader::new(input);
    let (parser, header): (Box<dyn LineParser>, TraceHeader) = match format {
        Format::Csv => {
            let (parser, header) = CsvParser::new(&mut lines)?;
            (Box::new(parser), header)
        }
        Format::Rawstats => (Box::new(RawstatsParser::default()), TraceHeader::of_system_clock()),
        Format::Chrony => (Box::new(ChronyParser::default()), TraceHeader::of_system_clock()),
        Format::Radclock | Format::Native => (Box::new(RadclockParser::default()), TraceHeader::default()),
    };
    Ok((Decoder::Text(lines, parser), header))
}

/// The next row of a text; `None` at the end.
#[inline]
fn next_line_row(
    lines: &mut LineReader<TraceInput>,
    parser: &mut dyn LineParser,
) -> Result<Option<TraceRow>, TraceError> {
    while lines.advance()? {
        let line = lines.line();
        if line.is_empty() {
            continue;
        }
        match parser.parse(line) {
            Ok(None) => {}
            Ok(row) => return Ok(row),
            Err(fault) => return Err(TraceError::Row { place: lines.place(), fault }),
        }
    }
    Ok(None)
}

impl Iterator for TraceReader {
    type Item = Result<TraceRow, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let item = match &mut self.decoder {
            Decoder::Native(reader) => reader.next_row(),
            Decoder::Text(lines, parser) => next_line_row(lines, parser.as_mut()).transpose(),
        };
        self.finished = match &item {
            Some(Err(error)) => !error.is_one_row(),
            other => other.is_none(),
        };
        item
    }
}
