//! Readings of a card's clock together with the raw counter.
//!
//! The kernel reads the clock between, or together with, readings of a clock of its own, by the best way that it and
//! the driver have. The kernel's clock is then read as the counter shows it, right before the call and right after it:
//! between two readings so close to each other it runs evenly, whatever its rate.

use crate::ffi::hardware::{CardReading, read_extended, read_plain, read_precise};
use ffclock_counter::{Bracketed, ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_phc::PhcReading;
use ffclock_units::{Counter, Moment, Period, Span, Ticks};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Readings of one series: their noise averages out, and each costs an access to the card.
const SERIES: usize = 5;
/// Brackets tried around the kernel's clock.
const TRIES: usize = 3;
/// The kernel's clocks are shown in whole nanoseconds.
const RESOLUTION: Span = Span::from_nanos(1);
/// A system clock that runs further from the nominal period was set meanwhile: it is slewed by 500 ppm at most.
const SLEW: f64 = 600e-6;

/// The ways to read, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Both clocks latched at one moment (`PTP_SYS_OFFSET_PRECISE`).
    Precise,
    /// Between readings of `CLOCK_MONOTONIC_RAW` (`PTP_SYS_OFFSET_EXTENDED`, since Linux 6.12).
    ExtendedRaw,
    /// Between readings of the system clock (`PTP_SYS_OFFSET_EXTENDED`).
    Extended,
    /// The same, with more of the driver in between (`PTP_SYS_OFFSET`).
    Plain,
}

const WAYS: [Way; 4] = [Way::Precise, Way::ExtendedRaw, Way::Extended, Way::Plain];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Precise => "PTP_SYS_OFFSET_PRECISE",
            Way::ExtendedRaw => "PTP_SYS_OFFSET_EXTENDED with CLOCK_MONOTONIC_RAW",
            Way::Extended => "PTP_SYS_OFFSET_EXTENDED with the system clock",
            Way::Plain => "PTP_SYS_OFFSET",
        }
    }

    fn clock(self) -> HostClock {
        match self {
            Way::Precise | Way::ExtendedRaw => HostClock::MonotonicRaw,
            Way::Extended | Way::Plain => HostClock::Realtime,
        }
    }
}

/// By the known way; where it fails, or none is known yet, by the best that works now. A driver may fail once to latch
/// both clocks.
fn by_first<T>(known: Option<Way>, mut read: impl FnMut(Way) -> io::Result<T>) -> io::Result<(Way, T)> {
    let mut refused = io::ErrorKind::Unsupported.into();
    for way in known.into_iter().chain(WAYS.into_iter().filter(|way| Some(*way) != known)) {
        match read(way) {
            Ok(readings) => return Ok((way, readings)),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Reads one clock.
#[derive(Debug)]
pub(crate) struct CardReader {
    file: File,
    counter: CounterId,
    period: Period,
    /// The best one that worked when the clock was first read.
    way: Option<Way>,
}

impl CardReader {
    /// Opens `/dev/ptpN` for reading alone, so that nothing can be set.
    pub(crate) fn open(number: u32, counter: CounterId, period: Period) -> io::Result<Self> {
        Ok(CardReader { file: File::open(format!("/dev/ptp{number}"))?, counter, period, way: None })
    }

    /// A series of readings; none where the kernel's clock was set meanwhile.
    pub(crate) fn read(&mut self) -> io::Result<Vec<PhcReading>> {
        let (way, readings) = by_first(self.way, |way| self.read_by(way))?;
        self.way = self.way.or(Some(way));
        Ok(readings)
    }

    /// The call by which it is read, in words.
    pub(crate) fn way(&self) -> Option<&'static str> {
        self.way.map(Way::name)
    }

    fn read_by(&self, way: Way) -> io::Result<Vec<PhcReading>> {
        let fd = self.file.as_fd();
        let before = self.beside(way.clock());
        let readings = match way {
            Way::Precise => (0..SERIES).map(|_| read_precise(fd)).collect::<io::Result<Vec<_>>>()?,
            #[cfg(target_os = "linux")]
            Way::ExtendedRaw => read_extended(fd, libc::CLOCK_MONOTONIC_RAW, SERIES)?,
            #[cfg(not(target_os = "linux"))]
            Way::ExtendedRaw => return Err(io::ErrorKind::Unsupported.into()),
            Way::Extended => read_extended(fd, libc::CLOCK_REALTIME, SERIES)?,
            Way::Plain => read_plain(fd, SERIES)?,
        };
        let after = self.beside(way.clock());
        let chart = Chart::between([before, after], self.period);
        Ok(chart.map(|chart| readings.iter().map(|reading| chart.reading(reading)).collect()).unwrap_or_default())
    }

    /// The kernel's clock as the counter shows it.
    fn beside(&self, clock: HostClock) -> Beside {
        let read = || clock.read().map_or(Span::ZERO, ClockReading::since_origin);
        let Bracketed { before, value, after } = read_narrowest(self.counter, TRIES, read);
        Beside { counter: before + (after - before).halved(), width: after - before, clock: value }
    }
}

/// A clock of the kernel showed `clock` within `counter` +- `width` / 2.
#[derive(Clone, Copy, Debug)]
struct Beside {
    counter: Counter,
    width: Ticks,
    clock: Span,
}

/// The counter over a clock of the kernel, for a moment.
#[derive(Clone, Copy, Debug)]
struct Chart {
    begin: Beside,
    /// Ticks for each second of the clock.
    ticks_per_second: f64,
    width: Ticks,
}

impl Chart {
    /// From two readings; `None` where the clock was set between them.
    fn between([begin, end]: [Beside; 2], period: Period) -> Option<Self> {
        let (passed, ticks) = (end.clock - begin.clock, end.counter - begin.counter);
        let unsure = (period * (begin.width + end.width)).halved() + RESOLUTION + RESOLUTION;
        let most = (period * ticks).as_seconds() * SLEW + unsure.as_seconds();
        if passed <= Span::ZERO || (passed - period * ticks).abs().as_seconds() > most {
            return None;
        }
        let width = (begin.width + end.width).halved() + period.ticks_in(RESOLUTION);
        Some(Chart { begin, ticks_per_second: ticks.as_f64() / passed.as_seconds(), width })
    }

    fn counter_at(&self, nanos: i64) -> Counter {
        let since = Span::from_nanos(nanos.into()) - self.begin.clock;
        self.begin.counter + Ticks::from_raw((since.as_seconds() * self.ticks_per_second) as i64)
    }

    fn reading(&self, reading: &CardReading) -> PhcReading {
        let (before, after) = (self.counter_at(reading.before), self.counter_at(reading.after));
        let between = after - before;
        PhcReading {
            counter: before + between.halved(),
            width: between + self.width,
            shown: Moment::from_origin(Span::from_nanos(reading.shown.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(counter: u64, nanos: i128) -> Beside {
        let clock = Span::from_nanos(nanos);
        Beside { counter: Counter::from_raw(counter), width: Ticks::from_raw(20), clock }
    }

    /// A counter of 1 GHz that the kernel takes for one of 100 ppm less.
    fn chart(end: Beside) -> Option<Chart> {
        Chart::between([beside(1_000, 500_000), end], Period::from_hertz(1e9 * (1.0 - 1e-4)).unwrap())
    }

    #[test]
    fn the_card_is_read_where_the_kernels_clock_was() {
        let chart = chart(beside(101_000, 600_000)).unwrap();
        let reading = chart.reading(&CardReading { before: 520_000, shown: 77, after: 520_400 });
        assert_eq!(reading.counter, Counter::from_raw(21_200));
        assert!((420..=425).contains(&reading.width.raw()), "{:?}", reading.width);
        assert_eq!(reading.shown, Moment::from_origin(Span::from_nanos(77)));
        let precise = chart.reading(&CardReading { before: 520_000, shown: 77, after: 520_000 });
        assert!((20..=25).contains(&precise.width.raw()), "{:?}", precise.width);
    }

    #[test]
    fn a_clock_that_was_set_meanwhile_shows_nothing() {
        for nanos in [600_000 + 200, 600_000 - 200, 400_000, 500_000] {
            assert!(chart(beside(101_000, nanos)).is_none(), "{nanos}");
        }
    }

    /// Which way is found, and which were tried, where `works` is all that kernel and driver have.
    fn found(known: Option<Way>, works: &[Way]) -> (Option<Way>, Vec<Way>) {
        let mut tried = Vec::new();
        let found = by_first(known, |way| {
            tried.push(way);
            if works.contains(&way) { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
        });
        (found.ok().map(|(way, ())| way), tried)
    }

    #[test]
    fn the_best_call_that_kernel_and_driver_have_is_used() {
        for (number, best) in WAYS.into_iter().enumerate() {
            assert_eq!(found(None, &WAYS[number..]), (Some(best), WAYS[..=number].to_vec()));
        }
        assert_eq!(found(None, &[]), (None, WAYS.to_vec()));
    }

    #[test]
    fn a_call_that_is_known_comes_first_and_one_that_fails_once_costs_no_reading() {
        let known = Some(Way::Extended);
        assert_eq!(found(known, &WAYS), (known, vec![Way::Extended]));
        let others = [Way::ExtendedRaw, Way::Plain];
        assert_eq!(
            found(known, &others),
            (Some(Way::ExtendedRaw), vec![Way::Extended, Way::Precise, Way::ExtendedRaw])
        );
    }

    #[test]
    fn what_is_no_card_is_refused() {
        let period = Period::from_hertz(1e9).unwrap();
        let file = File::open("/dev/null").unwrap();
        let mut reader = CardReader { file, counter: CounterId::MonotonicRaw, period, way: None };
        assert!(reader.read().is_err() && reader.way().is_none());
        assert!(CardReader::open(u32::MAX, CounterId::MonotonicRaw, period).is_err());
    }
}
