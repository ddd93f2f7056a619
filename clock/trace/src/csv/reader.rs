//! Reads the rows of a CSV trace.

use super::columns::{COUNT, Column, Columns};
use crate::error::{CellFault, Fault, TraceError, TracePlace, shortened};
use crate::fields::{Cell, FourStamps, Scale};
use crate::lines::LineReader;
use crate::reader::LineParser;
use crate::servers::Servers;
use crate::{ServerIndex, TraceHeader, TraceRow, Truth};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Exchange, Leap, Moment, Server, ServerIdentity, ServerQuality, Span, Ticks,
};
use std::io::BufRead;

/// The cells of one line, by the number of the column; missing ones are empty.
type Cells<'a> = [&'a [u8]; COUNT];

/// Turns the lines after the header into rows.
pub(crate) struct CsvParser {
    columns: Columns,
    scale: Scale,
    servers: Servers,
    rows: u64,
}

impl CsvParser {
    /// Reads the `#` lines and the header at the front.
    pub(crate) fn new(lines: &mut LineReader<impl BufRead>) -> Result<(Self, TraceHeader), TraceError> {
        let mut header = TraceHeader::default();
        while lines.advance()? {
            let place = lines.place();
            let in_header = |fault| TraceError::Row { place, fault };
            let line = lines.line();
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            match line.strip_prefix(b"#") {
                Some(comment) => take_comment(&mut header, comment, place)?,
                None if line.is_empty() => {}
                None => {
                    let columns = Columns::of_header(line).map_err(in_header)?;
                    header.truth = columns.has(Column::TrueReceive);
                    return Ok((
                        CsvParser { columns, scale: Scale::default(), servers: Servers::default(), rows: 0 },
                        header,
                    ));
                }
            }
        }
        Err(TraceError::File(Fault::Empty))
    }

    fn cell<'a>(&self, cells: &Cells<'a>, column: Column) -> Cell<'a> {
        Cell { column: column.name(), text: cells[column as usize] }
    }

    /// The time in a column, in the unit of that column.
    #[inline]
    fn time(&self, cells: &Cells<'_>, column: Column) -> Result<Span, Fault> {
        let cell = self.cell(cells, column);
        if self.columns.nanoseconds[column as usize] { cell.nanoseconds() } else { cell.seconds() }
    }

    #[inline]
    fn server_time(&self, cells: &Cells<'_>, column: Column) -> Result<Moment<Server>, Fault> {
        self.time(cells, column).map(Moment::from_origin)
    }

    fn counter(&self, cells: &Cells<'_>, column: Column) -> Result<Counter, Fault> {
        self.cell(cells, column).whole().map(Counter::from_raw)
    }

    /// The exchange, or `None` where nothing came back: Tb, Te and Tf all empty.
    fn exchange(&self, cells: &Cells<'_>) -> Result<Option<Exchange>, Fault> {
        let came_back = [Column::ServerIn, Column::ServerOut, Column::Received];
        if came_back.iter().all(|column| cells[*column as usize].is_empty()) {
            return Ok(None);
        }
        let stamps = FourStamps {
            sent: self.counter(cells, Column::Sent)?,
            server_in: self.server_time(cells, Column::ServerIn)?,
            server_out: self.server_time(cells, Column::ServerOut)?,
            received: self.counter(cells, Column::Received)?,
        };
        let mut exchange = self.scale.exchange(&stamps, self.quality(cells)?);
        exchange.sent.width = self.width(cells, Column::SentWidth)?;
        exchange.received.width = self.width(cells, Column::ReceivedWidth)?;
        Ok(Some(exchange))
    }

    fn width(&self, cells: &Cells<'_>, column: Column) -> Result<Ticks, Fault> {
        self.optional(cells, column, Cell::small).map(|width| Ticks::from_raw(width.unwrap_or(0) as i64))
    }

    fn quality(&self, cells: &Cells<'_>) -> Result<ServerQuality, Fault> {
        let stratum = self.optional(cells, Column::Stratum, Cell::stratum)?.unwrap_or(0);
        let reference_id = self.optional(cells, Column::ReferenceId, Cell::reference_id)?.unwrap_or(0);
        let leap = self.optional(cells, Column::Leap, leap)?.unwrap_or_default();
        let mut root_distance = self.optional(cells, Column::RootDistance, Cell::bound)?.unwrap_or(Bound::ZERO);
        root_distance += self.optional(cells, Column::RootDelay, Cell::bound)?.unwrap_or(Bound::ZERO).halved();
        root_distance += self.optional(cells, Column::RootDispersion, Cell::bound)?.unwrap_or(Bound::ZERO);
        Ok(ServerQuality { identity: ServerIdentity { stratum, reference_id }, leap, root_distance })
    }

    #[inline]
    fn optional<'a, T>(
        &self,
        cells: &Cells<'a>,
        column: Column,
        read: impl FnOnce(Cell<'a>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        let cell = self.cell(cells, column);
        if cell.text.is_empty() { Ok(None) } else { read(cell).map(Some) }
    }

    fn truth(&self, cells: &Cells<'_>) -> Result<Option<Truth>, Fault> {
        let present = |column: Column| !cells[column as usize].is_empty();
        if !present(Column::TrueReceive) {
            return Ok(None);
        }
        let received = self.scale.tai(self.time(cells, Column::TrueReceive)?);
        let sent = match present(Column::TrueSend) {
            true => Some(self.scale.tai(self.time(cells, Column::TrueSend)?)),
            false => None,
        };
        Ok(Some(Truth { sent, received }))
    }
}

impl LineParser for CsvParser {
    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRow>, Fault> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let row = self.rows;
        self.rows += 1;
        let cells = split(line, &self.columns)?;
        let sequence = self.optional(&cells, Column::Sequence, Cell::whole)?.unwrap_or(row);
        let epoch = self.optional(&cells, Column::Epoch, Cell::whole)?.unwrap_or(0);
        let server = self.servers.index_of(cells[Column::Server as usize])?;
        Ok(Some(TraceRow {
            sequence,
            epoch: CounterEpoch::from_raw(epoch),
            exchange: self.exchange(&cells)?,
            truth: self.truth(&cells)?,
            server,
        }))
    }

    fn server_name(&self, server: ServerIndex) -> Option<&str> {
        self.servers.name(server).filter(|name| !name.is_empty())
    }

    fn notes(&self) -> Vec<String> {
        self.columns.ignored.iter().map(|name| format!("the column \"{name}\" is not known and was ignored")).collect()
    }
}

/// A `#` line: `key=value` belongs to the header, everything else is a remark.
fn take_comment(header: &mut TraceHeader, comment: &[u8], place: TracePlace) -> Result<(), TraceError> {
    let text = String::from_utf8_lossy(comment.trim_ascii());
    let is_setting = text.split_once('=').is_some_and(|(key, _)| !key.trim().contains(char::is_whitespace));
    if is_setting {
        header.read_line(&text).map_err(|fault| TraceError::Row { place, fault })?;
    }
    Ok(())
}

fn leap(cell: Cell<'_>) -> Result<Leap, Fault> {
    match cell.text {
        b"0" | b"none" => Ok(Leap::None),
        b"1" | b"insert" => Ok(Leap::Insert),
        b"2" | b"delete" => Ok(Leap::Delete),
        _ => Err(cell.fault(CellFault::Not("none, insert or delete"))),
    }
}

/// The cells of a line. A cell may be in quotes; the quotes are removed, and commas inside belong to the cell.
#[inline]
fn split<'a>(line: &'a [u8], columns: &Columns) -> Result<Cells<'a>, Fault> {
    let mut cells: Cells<'a> = [&[]; COUNT];
    let mut rest = Some(line);
    let mut found = 0;
    for place in &columns.places {
        let Some(text) = rest else { break };
        let (cell, after) = next_cell(text);
        if let Some(column) = place {
            cells[*column as usize] = cell;
        }
        rest = after;
        found += 1;
    }
    let surplus = rest.map_or(0, |text| 1 + text.iter().filter(|byte| **byte == b',').count());
    if found != columns.places.len() || surplus > 0 {
        return Err(Fault::Cells { found: found + surplus, expected: columns.places.len(), text: shortened(line) });
    }
    Ok(cells)
}

#[inline]
fn next_cell(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    if text.first() == Some(&b'"') {
        return quoted_cell(text);
    }
    match find_comma(text) {
        Some(comma) => {
            let (cell, rest) = text.split_at(comma);
            (trimmed(cell), rest.get(1..))
        }
        None => (trimmed(text), None),
    }
}

/// The place of the first comma, searched for in eight bytes at once.
#[inline]
fn find_comma(text: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const COMMAS: u64 = ONES * b',' as u64;
    let (chunks, tail) = text.as_chunks::<8>();
    for (number, chunk) in chunks.iter().enumerate() {
        let zero_at_comma = u64::from_le_bytes(*chunk) ^ COMMAS;
        let found = zero_at_comma.wrapping_sub(ONES) & !zero_at_comma & (ONES << 7);
        if found != 0 {
            return Some(number * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    tail.iter().position(|byte| *byte == b',').map(|place| chunks.len() * 8 + place)
}

#[cold]
fn quoted_cell(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let inside = text.get(1..).unwrap_or(&[]);
    let end = inside.iter().position(|byte| *byte == b'"').unwrap_or(inside.len());
    let (cell, rest) = inside.split_at(end);
    let comma = rest.iter().position(|byte| *byte == b',');
    (cell.trim_ascii(), comma.and_then(|comma| rest.get(comma + 1..)))
}

/// The cell without blanks around it; the usual cell has none.
#[inline]
fn trimmed(cell: &[u8]) -> &[u8] {
    match (cell.first(), cell.last()) {
        (Some(first), Some(last)) if *first <= b' ' || *last <= b' ' => cell.trim_ascii(),
        _ => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn eight_at_once_find_the_same_comma(text in proptest::collection::vec(prop_oneof![0x2au8..0x30, any::<u8>()], 0..40)) {
            prop_assert_eq!(find_comma(&text), text.iter().position(|byte| *byte == b','));
        }
    }
}
