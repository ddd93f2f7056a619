//! The `rawstats` of ntpd and NTPsec: the four stamps of each reply, all of them on the NTP scale.

use super::date::second_of_mjd;
use crate::error::{CellFault, Fault, shortened};
use crate::fields::{Cell, FourStamps, Imported, Scale, leap_of, words};
use crate::reader::LineParser;
use crate::{ServerIndex, TraceRow};
use ffclock_units::{Bound, Exchange, Moment, ServerIdentity, ServerQuality, Span};

/// The columns of the longest form (NTPsec); the first `STAMPS` are always there.
const NAMES: [&str; 20] = [
    "day",
    "second",
    "source",
    "destination address",
    "origin",
    "receive",
    "transmit",
    "destination",
    "leap",
    "version",
    "mode",
    "stratum",
    "poll",
    "precision",
    "root delay",
    "root dispersion",
    "reference id",
    "lost",
    "dropped",
    "flags",
];
const STAMPS: usize = 8;

/// Seconds between the NTP epoch and the one of 1970.
const NTP_TO_1970: i64 = 2_208_988_800;
/// The length of an NTP era in seconds.
const ERA: i64 = 1 << 32;
/// The mode of a server's reply.
const MODE_SERVER: u64 = 4;

/// Turns rawstats lines into rows.
#[derive(Default)]
pub(crate) struct RawstatsParser {
    scale: Scale,
    imported: Imported,
    passed_over: u64,
}

/// The cells of one line.
struct RawstatsLine<'a> {
    cells: [&'a [u8]; NAMES.len()],
    found: usize,
}

impl<'a> RawstatsLine<'a> {
    fn new(line: &'a [u8]) -> Result<Self, Fault> {
        let mut cells: [&[u8]; NAMES.len()] = [&[]; NAMES.len()];
        let found = cells.iter_mut().zip(words(line)).map(|(cell, word)| *cell = word).count();
        if found < STAMPS {
            return Err(Fault::Cells { found, expected: STAMPS, text: shortened(line) });
        }
        Ok(RawstatsLine { cells, found })
    }

    fn cell(&self, index: usize) -> Cell<'a> {
        Cell { column: NAMES[index], text: self.cells[index] }
    }

    /// Whether the line is of a reference clock, or of a packet that is no server's reply.
    fn is_no_reply(&self) -> Result<bool, Fault> {
        let source = self.cells[2];
        let other_mode = !self.cells[10].is_empty() && self.cell(10).whole()? != MODE_SERVER;
        Ok(source.starts_with(b"127.127.") || source.contains(&b'(') || other_mode)
    }

    /// Whether the daemon itself rejected the packet. The flags are the twentieth column, which only NTPsec writes.
    fn is_refused(&self) -> bool {
        self.found == NAMES.len() && self.cells[19].iter().any(|byte| *byte != b'0')
    }

    /// The POSIX second at which the line was written; it selects the era of the stamps.
    fn written(&self) -> Result<i64, Fault> {
        let day = self.cell(0).small()? as i64;
        Ok(second_of_mjd(day) + self.cell(1).seconds()?.units().wrapping_shr(64) as i64)
    }

    /// A stamp as POSIX time, in the era that brings it nearest to `written`; `None` where it is missing (0).
    fn stamp(&self, index: usize, written: i64) -> Result<Option<Span>, Fault> {
        let stamp = self.cell(index).seconds()?;
        if stamp == Span::ZERO {
            return Ok(None);
        }
        let second = (stamp.units() >> 64) as i64;
        let eras = (written + NTP_TO_1970 - second + ERA / 2).div_euclid(ERA);
        Ok(Some(stamp + Span::from_secs(eras * ERA - NTP_TO_1970)))
    }

    /// The server's quality; `None` when the server is not synchronised.
    fn quality(&self) -> Result<Option<ServerQuality>, Fault> {
        if self.found <= 16 {
            return Ok(Some(ServerQuality::default()));
        }
        let Some(leap) = leap_of(self.cell(8).whole()?) else { return Ok(None) };
        let stratum = self.cell(11).stratum()?;
        let reference_id = self.cell(16).reference_id()?;
        let root_distance = self.cell(14).bound()?.halved() + self.cell(15).bound()? + self.precision()?;
        Ok(Some(ServerQuality { identity: ServerIdentity { stratum, reference_id }, leap, root_distance }))
    }

    /// The server's precision, given as a power of two.
    fn precision(&self) -> Result<Bound, Fault> {
        let cell = self.cell(13);
        let (negative, digits) = match cell.text {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        match crate::decimal::whole(digits) {
            Ok(power @ 0..=64) if negative => Ok(Bound::of(Span::from_units(1 << (64 - power)))),
            Ok(power @ 0..=32) => Ok(Bound::of(Span::from_units(1 << (64 + power)))),
            _ => Err(cell.fault(CellFault::Not("a power of two, -64 to 32"))),
        }
    }
}

impl RawstatsParser {
    fn exchange(&self, line: &RawstatsLine<'_>) -> Result<Option<Exchange>, Fault> {
        let written = line.written()?;
        let stamps =
            [line.stamp(4, written)?, line.stamp(5, written)?, line.stamp(6, written)?, line.stamp(7, written)?];
        let quality = line.quality()?;
        let ([Some(origin), Some(receive), Some(transmit), Some(destination)], Some(quality)) = (stamps, quality)
        else {
            return Ok(None);
        };
        if line.is_refused() {
            return Ok(None);
        }
        let before_1970 = |index: usize| line.cell(index).fault(CellFault::Not("a time after 1970"));
        let stamps = FourStamps {
            sent: self.scale.system_clock_counter(origin).ok_or_else(|| before_1970(4))?,
            server_in: Moment::from_origin(receive),
            server_out: Moment::from_origin(transmit),
            received: self.scale.system_clock_counter(destination).ok_or_else(|| before_1970(7))?,
        };
        Ok(Some(self.scale.exchange(&stamps, quality)))
    }
}

impl LineParser for RawstatsParser {
    fn parse(&mut self, line: &[u8]) -> Result<Option<TraceRow>, Fault> {
        if line.starts_with(b"#") {
            return Ok(None);
        }
        let line = RawstatsLine::new(line)?;
        if line.is_no_reply()? {
            self.passed_over += 1;
            return Ok(None);
        }
        let sequence = self.imported.begin();
        let exchange = self.exchange(&line)?;
        self.imported.row(sequence, line.cells[2], exchange).map(Some)
    }

    fn server_name(&self, server: ServerIndex) -> Option<&str> {
        self.imported.server_name(server)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec!["the client's stamps are those of its system clock, which ntpd steers".to_owned()];
        if self.passed_over > 0 {
            notes.push(format!("{} lines of reference clocks or other modes were passed over", self.passed_over));
        }
        notes
    }
}
