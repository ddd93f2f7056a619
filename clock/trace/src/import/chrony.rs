//! The `measurements.log` of chrony: the offset and the delay of each exchange, from which an exchange is rebuilt.

use super::date::second_of_date;
use crate::error::{CellFault, Fault, shortened};
use crate::fields::{Cell, FourStamps, Imported, Scale, words};
use crate::reader::LineParser;
use crate::{ServerIndex, TraceRow};
use ffclock_units::{Exchange, Leap, Moment, ServerIdentity, ServerQuality, Span};

const NAMES: [&str; 17] = [
    "date",
    "time",
    "address",
    "leap",
    "stratum",
    "tests 1-3",
    "tests 5-7",
    "tests A-D",
    "local poll",
    "remote poll",
    "score",
    "offset",
    "peer delay",
    "peer dispersion",
    "root delay",
    "root dispersion",
    "reference id",
];

/// Turns measurement lines into rows.
#[derive(Default)]
pub(crate) struct ChronyParser {
    scale: Scale,
    imported: Imported,
}

struct ChronyLine<'a>([&'a [u8]; NAMES.len()]);

impl<'a> ChronyLine<'a> {
    fn new(line: &'a [u8]) -> Result<Self, Fault> {
        let mut cells: [&[u8]; NAMES.len()] = [&[]; NAMES.len()];
        let found = cells.iter_mut().zip(words(line)).map(|(cell, word)| *cell = word).count();
        if found < NAMES.len() {
            return Err(Fault::Cells { found, expected: NAMES.len(), text: shortened(line) });
        }
        Ok(ChronyLine(cells))
    }

    fn cell(&self, index: usize) -> Cell<'a> {
        Cell { column: NAMES[index], text: self.0[index] }
    }

    /// The local time in the middle of the exchange, rounded down to a whole second.
    fn local(&self) -> Result<Span, Fault> {
        let date = numbers(self.0[0], b'-').and_then(|[year, month, day]| second_of_date(year, month, day));
        let date = date.ok_or_else(|| self.cell(0).fault(CellFault::Not("a date such as 2016-11-09")))?;
        let time =
            numbers(self.0[1], b':').filter(|[hour, minute, second]| *hour < 24 && *minute < 60 && *second <= 60);
        let [hour, minute, second] =
            time.ok_or_else(|| self.cell(1).fault(CellFault::Not("a time of day such as 05:40:50")))?;
        Ok(Span::from_secs(date + (hour * 3600 + minute * 60 + second) as i64))
    }

    /// The server's quality; `None` when the server is not synchronised.
    fn quality(&self) -> Result<Option<ServerQuality>, Fault> {
        let leap = match self.0[3] {
            b"N" => Leap::None,
            b"+" => Leap::Insert,
            b"-" => Leap::Delete,
            b"?" => return Ok(None),
            _ => return Err(self.cell(3).fault(CellFault::Not("N, +, - or ?"))),
        };
        let identity = ServerIdentity { stratum: self.cell(4).stratum()?, reference_id: self.cell(16).reference_id()? };
        let root_distance = self.cell(14).bound()?.halved() + self.cell(15).bound()?;
        Ok(Some(ServerQuality { identity, leap, root_distance }))
    }

    /// Whether chrony accepted the reply itself. Tests A to D judge the path, which our own filter does.
    fn is_valid(&self) -> bool {
        [5, 6].iter().all(|index| self.0[*index].iter().all(|test| *test == b'1'))
    }
}

/// Three whole numbers with `separator` between them.
fn numbers(text: &[u8], separator: u8) -> Option<[u64; 3]> {
    let mut parts = text.split(|byte| *byte == separator).map(|part| crate::decimal::whole(part).ok());
    let numbers = [parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then_some(numbers)
}

impl ChronyParser {
    /// The exchange with this offset and delay: the reply half the delay after the middle, the server without a delay
    /// of its own.
    fn exchange(&self, line: &ChronyLine<'_>) -> Result<Option<Exchange>, Fault> {
        let middle = line.local()?;
        let server = Moment::from_origin(middle + line.cell(11).scientific_seconds()?);
        let half = line.cell(12).scientific_seconds()?.halved();
        let Some(quality) = line.quality()?.filter(|_| line.is_valid()) else { return Ok(None) };
        let counter = |time: Span| {
            let before_1970 = || line.cell(0).fault(CellFault::Not("a date after 1970"));
            self.scale.system_clock_counter(time).ok_or_else(before_1970)
        };
        let stamps = FourStamps {
            sent: counter(middle - half)?,
            server_in: server,
            server_out: server,
            received: counter(middle + half)?,
        };
        Ok(Some(self.scale.exchange(&stamps, quality)))
    }
}

impl LineParser for ChronyParser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRow>, Fault> {
        if line.starts_with(b"=") || line.starts_with(b"Date (UTC)") {
            return Ok(None);
        }
        let sequence = self.imported.begin();
        let line = ChronyLine::new(line)?;
        let exchange = self.exchange(&line)?;
        self.imported.row(sequence, line.0[2], exchange).map(Some)
    }

    fn server_name(&self, server: ServerIndex) -> Option<&str> {
        self.imported.server_name(server)
    }

    fn notes(&self) -> Vec<String> {
        let loss =
            "rebuilt from offsets and delays of four digits, on a system clock that chrony steers, to the second";
        vec![loss.to_owned()]
    }
}
