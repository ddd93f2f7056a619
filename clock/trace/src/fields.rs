//! The cells that several text formats share, and the exchange that is made of them.

use crate::decimal;
use crate::error::{CellFault, Fault, shortened};
use crate::servers::Servers;
use crate::{ServerIndex, TraceRow};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Exchange, Leap, LeapTable, Moment, Server, ServerQuality, Span, Stamp, StampLocation,
    Tai, Ticks,
};

/// One cell: the name of its column, and its text.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) column: &'static str,
    pub(crate) text: &'a [u8],
}

impl Cell<'_> {
    #[cold]
    pub(crate) fn fault(self, why: CellFault) -> Fault {
        if self.text.is_empty() {
            return Fault::Missing(self.column);
        }
        Fault::Cell { column: self.column, why, text: shortened(self.text) }
    }

    #[inline]
    pub(crate) fn whole(self) -> Result<u64, Fault> {
        decimal::whole(self.text).map_err(|why| self.fault(why.into()))
    }

    /// A whole number below 2^32.
    pub(crate) fn small(self) -> Result<u32, Fault> {
        let value = self.whole()?;
        u32::try_from(value).map_err(|_| self.fault(CellFault::Decimal(decimal::DecimalFault::TooLong)))
    }

    #[inline]
    pub(crate) fn seconds(self) -> Result<Span, Fault> {
        decimal::seconds(self.text).map_err(|why| self.fault(why.into()))
    }

    #[inline]
    pub(crate) fn nanoseconds(self) -> Result<Span, Fault> {
        decimal::nanoseconds(self.text).map_err(|why| self.fault(why.into()))
    }

    pub(crate) fn scientific_seconds(self) -> Result<Span, Fault> {
        decimal::scientific_seconds(self.text).map_err(|why| self.fault(why.into()))
    }

    /// The size of an error, in seconds; never negative.
    pub(crate) fn bound(self) -> Result<Bound, Fault> {
        let span = self.scientific_seconds()?;
        if span.is_negative() { Err(self.fault(CellFault::Not("a size"))) } else { Ok(Bound::of(span)) }
    }

    /// A stratum, 0 to 16.
    pub(crate) fn stratum(self) -> Result<u8, Fault> {
        match self.whole()? {
            stratum @ 0..=16 => Ok(stratum as u8),
            _ => Err(self.fault(CellFault::Not("a stratum, 0 to 16"))),
        }
    }

    /// Eight hexadecimal digits, an IPv4 address, or up to four characters with or without dots around them.
    pub(crate) fn reference_id(self) -> Result<u32, Fault> {
        reference_id(self.text).ok_or_else(|| self.fault(CellFault::Not("a reference identifier")))
    }
}

fn reference_id(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?;
    if text.len() == 8 {
        return u32::from_str_radix(text, 16).ok();
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Some(address.to_bits());
    }
    let name = text.trim_matches('.').as_bytes();
    if name.len() > 4 || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut bytes = [0; 4];
    for (byte, character) in bytes.iter_mut().zip(name) {
        *byte = *character;
    }
    Some(u32::from_be_bytes(bytes))
}

/// The four stamps of a text row, without widths and places, which texts do not have.
pub(crate) struct FourStamps {
    pub(crate) sent: Counter,
    pub(crate) server_in: Moment<Server>,
    pub(crate) server_out: Moment<Server>,
    pub(crate) received: Counter,
}

/// The state of a format that numbers neither its rows nor its servers.
#[derive(Default)]
pub(crate) struct Imported {
    servers: Servers,
    rows: u64,
}

impl Imported {
    /// The number of the row that begins now. Bad rows are numbered, too.
    pub(crate) fn begin(&mut self) -> u64 {
        let sequence = self.rows;
        self.rows += 1;
        sequence
    }

    /// The row numbered `sequence`, of the server called `server`.
    pub(crate) fn row(&mut self, sequence: u64, server: &[u8], exchange: Option<Exchange>) -> Result<TraceRow, Fault> {
        let server = self.servers.index_of(server)?;
        Ok(TraceRow { sequence, epoch: CounterEpoch::default(), exchange, truth: None, server })
    }

    /// The name of a server; `None` for an empty one.
    pub(crate) fn server_name(&self, server: ServerIndex) -> Option<&str> {
        self.servers.name(server).filter(|name| !name.is_empty())
    }
}

/// The conversion of a text trace's server times to TAI, the same for all rows.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scale {
    leaps: LeapTable,
}

impl Scale {
    /// The TAI of a server's, or a reference's, UTC.
    #[inline]
    pub(crate) fn tai(&self, utc: Span) -> Moment<Tai> {
        self.leaps.tai_from_server(Moment::from_origin(utc))
    }

    /// An exchange of stamps of unknown width and place.
    #[inline]
    pub(crate) fn exchange(&self, stamps: &FourStamps, server: ServerQuality) -> Exchange {
        Exchange {
            sent: bare_stamp(stamps.sent),
            server_in: self.leaps.tai_from_server(stamps.server_in),
            server_out: self.leaps.tai_from_server(stamps.server_out),
            received: bare_stamp(stamps.received),
            server,
        }
    }

    /// The reading of a counter of 1 ns ticks that is the host's system clock, without its leap seconds; `None` before
    /// 1970.
    pub(crate) fn system_clock_counter(&self, utc: Span) -> Option<Counter> {
        u64::try_from(self.tai(utc).since_origin().as_nanos()).ok().map(Counter::from_raw)
    }
}

const fn bare_stamp(counter: Counter) -> Stamp {
    Stamp { counter, width: Ticks::ZERO, location: StampLocation::Unknown }
}

/// The leap indicator as NTP numbers it; `None` for 3, a server that is not synchronised.
pub(crate) fn leap_of(indicator: u64) -> Option<Leap> {
    match indicator {
        0 => Some(Leap::None),
        1 => Some(Leap::Insert),
        2 => Some(Leap::Delete),
        _ => None,
    }
}

/// The blank-separated cells of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_identifiers_come_in_four_shapes() {
        for (text, id) in
            [(".GPS.", 0x4750_5300), ("NIST", 0x4e49_5354), ("192.0.2.1", 0xc000_0201), ("CB00717B", 0xcb00_717b)]
        {
            assert_eq!(reference_id(text.as_bytes()), Some(id), "{text}");
        }
        assert_eq!(reference_id(b"longer"), None);
        assert_eq!(reference_id(b"\xff"), None);
    }

    #[test]
    fn the_system_clock_as_a_counter_runs_through_a_leap_second() {
        let scale = Scale::default();
        let before = scale.system_clock_counter(Span::from_secs(1_483_228_799)).unwrap();
        let after = scale.system_clock_counter(Span::from_secs(1_483_228_800)).unwrap();
        assert_eq!(after - before, Ticks::from_raw(2_000_000_000));
        assert_eq!(scale.system_clock_counter(Span::from_secs(-1000)), None);
    }

    #[test]
    fn an_empty_cell_is_missing_not_malformed() {
        let empty = Cell { column: "Tb", text: b"" };
        assert_eq!(empty.seconds(), Err(Fault::Missing("Tb")));
        assert!(matches!(Cell { column: "x", text: b"-1" }.bound(), Err(Fault::Cell { .. })));
        assert!(matches!(Cell { column: "x", text: b"17" }.stratum(), Err(Fault::Cell { .. })));
    }
}
