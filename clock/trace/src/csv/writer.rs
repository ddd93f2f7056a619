//! Writes a trace as CSV.

use super::columns::Column;
use crate::decimal::write_seconds;
use crate::{ServerIndex, TraceHeader, TraceRow};
use ffclock_units::{Exchange, Leap, LeapTable, Moment, Span, Tai};
use std::io::{self, Write};

/// Writes rows that [`TraceReader`](crate::TraceReader) reads back: times with 12 decimals, in UTC. A CSV trace carries
/// everything except the place where a stamp was taken.
pub struct CsvWriter<W: Write> {
    output: W,
    truth: bool,
    leaps: LeapTable,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header: the trace's header in `#` lines, then the names of the columns.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn new(mut output: W, header: &TraceHeader) -> io::Result<Self> {
        for line in header.lines().lines().filter(|line| !line.starts_with("truth=")) {
            writeln!(output, "# {line}")?;
        }
        let names: Vec<&str> = columns(header).map(Column::name).collect();
        writeln!(output, "{}", names.join(","))?;
        Ok(CsvWriter { output, truth: header.truth, leaps: LeapTable::built_in() })
    }

    /// Writes one row.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn append(&mut self, row: &TraceRow) -> io::Result<()> {
        let ServerIndex(server) = row.server;
        write!(self.output, "{},{},{},", row.sequence, server, row.epoch.raw())?;
        match &row.exchange {
            Some(exchange) => self.write_exchange(exchange)?,
            None => self.output.write_all(b",,,,,,,,,")?,
        }
        if self.truth {
            self.output.write_all(b",")?;
            self.write_optional(row.truth.and_then(|truth| truth.sent))?;
            self.output.write_all(b",")?;
            self.write_optional(row.truth.map(|truth| truth.received))?;
        }
        self.output.write_all(b"\n")
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn write_exchange(&mut self, exchange: &Exchange) -> io::Result<()> {
        let server = &exchange.server;
        write!(self.output, "{},", exchange.sent.counter.raw())?;
        self.write_time(exchange.server_in)?;
        self.output.write_all(b",")?;
        self.write_time(exchange.server_out)?;
        let widths = (exchange.sent.width.raw(), exchange.received.width.raw());
        write!(self.output, ",{},{},{},", exchange.received.counter.raw(), widths.0, widths.1)?;
        let leap = match server.leap {
            Leap::None => "none",
            Leap::Insert => "insert",
            Leap::Delete => "delete",
        };
        write!(self.output, "{},{:08x},{leap},", server.identity.stratum, server.identity.reference_id)?;
        let half_a_picosecond = Span::from_units((1 << 63) / 1_000_000_000_000);
        write_seconds(&mut self.output, server.root_distance.as_span() + half_a_picosecond)
    }

    fn write_optional(&mut self, moment: Option<Moment<Tai>>) -> io::Result<()> {
        moment.map_or(Ok(()), |moment| self.write_time(moment))
    }

    fn write_time(&mut self, moment: Moment<Tai>) -> io::Result<()> {
        write_seconds(&mut self.output, self.leaps.utc_from_tai(moment).since_origin())
    }
}

/// The columns that the writer fills, in their order.
fn columns(header: &TraceHeader) -> impl Iterator<Item = Column> {
    let truth = header.truth;
    Column::ALL.into_iter().filter(move |column| match column {
        Column::RootDelay | Column::RootDispersion => false,
        Column::TrueSend | Column::TrueReceive => truth,
        _ => true,
    })
}
