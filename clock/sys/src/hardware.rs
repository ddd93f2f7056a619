//! Stamps that a network card takes by its own clock (a PTP hardware clock), as readings of the raw counter.
//!
//! The clock of a card is never set and never steered: it is opened for reading alone. Around the packets it is read
//! together with the counter ([`CardReader`]), and its line over the counter is estimated ([`ffclock_phc::PhcLine`]). A
//! card must have its stamps switched on, which is a setting of the device that all programs share; it is changed only
//! where the caller says so ([`DeviceSetup`]).
//!
//! Cards stamp the beginning of a frame. NTP means by the time of reception the end of a packet, which is when a host
//! without such a card sees it, and servers with hardware stamps (chronyd) answer by that: so the time that the frame
//! takes on the wire is added to stamps of reception.
//!
//! A card may be broken in ways of its own, or a stamp of another one's clock. So each stamp is compared with the order
//! of events before it is used: see [`crate::best`] and `Stamper::sent_by_card`.

mod reader;

use crate::StampDiscarded;
use crate::ffi::hardware::{self as ffi, StampAbilities, StampSettings};
use ffclock_counter::CounterId;
use ffclock_phc::{PhcChange, PhcLine, Unplaced};
use ffclock_units::{Counter, Moment, Period, Phc, Span, Stamp, StampLocation};
pub(crate) use reader::CardReader;
use std::fmt;
use std::io;

/// What may be done to a network device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceSetup {
    /// Nothing: another program or the operator has switched its stamps on, or they are not used.
    Leave,
    /// Its stamps are switched on where they are off, and stay so. Needs CAP_NET_ADMIN.
    SwitchOn,
}

/// The clock of a card, by its number: N of `/dev/ptpN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CardId(u32);

impl CardId {
    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        CardId(number)
    }
}

impl fmt::Display for CardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptp{}", self.0)
    }
}

/// Why a device gives no hardware stamps.
#[derive(Debug, thiserror::Error)]
pub enum HardwareUnavailable {
    /// The device was asked what it can do, and does not answer.
    #[error("{0} does not say what it can stamp: {1}")]
    Silent(String, io::Error),
    /// It cannot stamp.
    #[error("{0} cannot stamp packets by a clock of its own")]
    NoClock(String),
    /// It cannot stamp packets of NTP when they are received.
    #[error("{0} cannot stamp packets of NTP that it receives, those of PTP at most")]
    PtpAlone(String),
    /// Its stamps are off, or they are of PTP alone.
    #[error(
        "the stamps of {0} are off, or of packets of PTP alone: set device_stamps = \"switch-on\" (needs CAP_NET_ADMIN), \
         or switch them on before (ffclockd needs the filter \"all\")"
    )]
    Off(String),
    /// They could not be switched on.
    #[error("the stamps of {0} cannot be switched on: {1} (needs CAP_NET_ADMIN)")]
    NotSwitched(String, io::Error),
    /// The clock cannot be opened or read.
    #[error("/dev/{0} cannot be read: {1}")]
    Clock(CardId, io::Error),
}

/// What another program did to the clock of a card, or a fault of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CardChange {
    /// The clock.
    pub card: CardId,
    /// What it shows differently.
    pub change: PhcChange,
}

/// What a card says of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CardStamp {
    /// What its clock showed when the packet passed.
    pub(crate) shown: Moment<Phc>,
    /// What else the kernel says of it, where it does.
    pub(crate) passage: Option<CardPassage>,
}

/// Where a packet came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CardPassage {
    /// The number of the device that took the stamp.
    pub(crate) device: u32,
    /// The length of the frame with its header, without its check sequence.
    pub(crate) frame_bytes: u32,
}

/// Between packets that follow each other more closely, the clock is not read again.
const READ_AGAIN: Span = Span::from_millis(1);
/// `HWTSTAMP_TX_ON`, and of the filters those that choose packets of NTP: `HWTSTAMP_FILTER_ALL` and `_NTP_ALL`.
const TRANSMIT_ON: i32 = 1;
const FILTERS: [i32; 2] = [1, 15];

/// One card: its clock, and the line of that clock.
#[derive(Debug)]
pub(crate) struct Card {
    id: CardId,
    reader: CardReader,
    line: PhcLine,
    period: Period,
    /// The devices that stamp by this clock.
    devices: Vec<CardDevice>,
    read_at: Option<Counter>,
    /// The clock could not be read when that was last tried: the card was removed.
    is_gone: bool,
    changes: Vec<CardChange>,
}

/// The most changes that are kept until they are asked for.
const MOST_CHANGES: usize = 64;

impl Card {
    /// The card of a network device, its stamps being on.
    pub(crate) fn of(
        device: &str,
        setup: DeviceSetup,
        (counter, period): (CounterId, Period),
    ) -> Result<Self, HardwareUnavailable> {
        let id = usable_clock(device, setup)?;
        let mut reader =
            CardReader::open(id.0, counter, period).map_err(|error| HardwareUnavailable::Clock(id, error))?;
        reader.read().map_err(|error| HardwareUnavailable::Clock(id, error))?;
        let stamps_by_it = |name: &str| ffi::stamp_abilities(name).is_ok_and(|found| found.clock == Some(id.0));
        let devices = ffi::network_devices().into_iter().filter(|(_, name)| stamps_by_it(name));
        let devices = devices.map(|(number, name)| CardDevice { number, byte: time_of_byte(&name) }).collect();
        let line = PhcLine::new(period);
        Ok(Card { id, reader, line, period, devices, read_at: None, is_gone: false, changes: Vec::new() })
    }

    pub(crate) fn id(&self) -> CardId {
        self.id
    }

    /// Whether the clock could not be read any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Reads the clock, unless it was read a moment before `now`.
    pub(crate) fn look(&mut self, now: Counter) {
        let is_fresh = |at: Counter| (self.period * (now - at)).abs() < READ_AGAIN;
        if self.read_at.is_some_and(is_fresh) {
            return;
        }
        let readings = self.reader.read();
        self.is_gone = readings.is_err();
        for reading in readings.unwrap_or_default() {
            let change = self.line.add(&reading).map(|change| CardChange { card: self.id, change });
            self.changes.extend(change.filter(|_| self.changes.len() < MOST_CHANGES));
            self.read_at = Some(reading.counter);
        }
    }

    /// What was noticed since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<CardChange> {
        std::mem::take(&mut self.changes)
    }

    /// The stamp of a packet received as a reading of the counter, which was earlier than `now`: the end of the frame.
    pub(crate) fn place_received(&mut self, stamp: &CardStamp, now: Counter) -> Result<Stamp, StampDiscarded> {
        let on_wire = match stamp.passage {
            None => Span::ZERO,
            Some(passage) => {
                let device = self.devices.iter().find(|device| device.number == passage.device);
                device.ok_or(StampDiscarded::OtherCard)?.time_on_wire(passage.frame_bytes)
            }
        };
        let begin = self.place(stamp, now)?;
        Ok(Stamp { counter: begin.counter + self.period.ticks_in(on_wire), ..begin })
    }

    /// The stamp as a reading of the counter, which was earlier than `now`: the beginning of the frame.
    pub(crate) fn place(&mut self, stamp: &CardStamp, now: Counter) -> Result<Stamp, StampDiscarded> {
        self.look(now);
        if self.is_gone {
            return Err(StampDiscarded::CardUnreadable);
        }
        let (counter, width) = self.line.place(stamp.shown).map_err(|refused| match refused {
            Unplaced::ClockStepped => StampDiscarded::CardStepped,
            Unplaced::NoReading => StampDiscarded::CardUnreadable,
            Unplaced::Far => StampDiscarded::TooOld,
        })?;
        Ok(Stamp { counter, width, location: StampLocation::Hardware })
    }

    /// Whether the clock was not stepped since.
    pub(crate) fn is_unbroken_since(&self, counter: Counter) -> bool {
        self.line.is_unbroken_since(counter)
    }
}

/// A device that stamps by the clock of a card.
#[derive(Clone, Copy, Debug)]
struct CardDevice {
    number: u32,
    /// The time that a byte takes on the wire.
    byte: Span,
}

impl CardDevice {
    /// The time that a frame takes from its beginning to its end, with its check sequence of four bytes.
    fn time_on_wire(&self, frame_bytes: u32) -> Span {
        // Longer ones there are not; they would be a fault of the driver.
        let bytes = i128::from(frame_bytes.min(65_536)) + 4;
        Span::from_units(self.byte.units() * bytes)
    }
}

/// By the speed of a device in Mbit/s; no time where it is not known.
fn time_of_byte(device: &str) -> Span {
    let speed = std::fs::read_to_string(format!("/sys/class/net/{device}/speed"));
    let megabits = speed.ok().and_then(|text| text.trim().parse::<f64>().ok()).filter(|speed| *speed > 0.0);
    megabits.map_or(Span::ZERO, |megabits| Span::from_seconds(8.0 / (megabits * 1e6)))
}

/// The clock of a device that stamps packets of NTP in both directions, after it was made to if that is permitted.
fn usable_clock(device: &str, setup: DeviceSetup) -> Result<CardId, HardwareUnavailable> {
    let name = || device.to_owned();
    let abilities = ffi::stamp_abilities(device).map_err(|error| HardwareUnavailable::Silent(name(), error))?;
    let clock = clock_of(&abilities).ok_or_else(|| HardwareUnavailable::NoClock(name()))?;
    let present = ffi::stamp_settings(device);
    if present.as_ref().is_ok_and(is_on) {
        return Ok(clock);
    }
    let filter = widest_filter(abilities.receive_filters).ok_or_else(|| HardwareUnavailable::PtpAlone(name()))?;
    if setup == DeviceSetup::Leave {
        // A driver need not say what its settings are; whether stamps come will show.
        return if present.is_ok() { Err(HardwareUnavailable::Off(name())) } else { Ok(clock) };
    }
    ffi::set_stamps(device, StampSettings::of(TRANSMIT_ON, filter))
        .map_err(|error| HardwareUnavailable::NotSwitched(name(), error))?;
    Ok(clock)
}

fn clock_of(abilities: &StampAbilities) -> Option<CardId> {
    /// `SOF_TIMESTAMPING_TX_HARDWARE | _RX_HARDWARE | _RAW_HARDWARE`.
    const BOTH_WAYS: u32 = 1 | 1 << 2 | 1 << 6;
    abilities.clock.filter(|_| abilities.modes & BOTH_WAYS == BOTH_WAYS).map(CardId)
}

fn is_on(settings: &StampSettings) -> bool {
    settings.transmit == TRANSMIT_ON && FILTERS.contains(&settings.filter)
}

fn widest_filter(filters: u32) -> Option<i32> {
    FILTERS.into_iter().find(|filter| filters & 1 << filter != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_and_both_ways_make_a_card() {
        let able = StampAbilities { modes: 0x7f, clock: Some(2), receive_filters: 3 };
        assert_eq!(clock_of(&able), Some(CardId(2)));
        assert_eq!(clock_of(&StampAbilities { clock: None, ..able }), None);
        assert_eq!(clock_of(&StampAbilities { modes: 0x18, ..able }), None);
    }

    #[test]
    fn a_filter_for_packets_of_ptp_is_not_enough() {
        assert!(is_on(&StampSettings::of(1, 1)) && is_on(&StampSettings::of(1, 15)));
        for settings in [StampSettings::of(0, 1), StampSettings::of(1, 0), StampSettings::of(1, 12)] {
            assert!(!is_on(&settings), "{settings:?}");
        }
        assert_eq!(widest_filter(1 << 1 | 1 << 15), Some(1));
        assert_eq!(widest_filter(1 << 15 | 1 << 12), Some(15));
        assert_eq!(widest_filter(1 | 1 << 12), None);
    }

    #[test]
    fn a_frame_takes_its_time_on_the_wire() {
        let gigabit = CardDevice { number: 1, byte: Span::from_nanos(8) };
        assert_eq!(gigabit.time_on_wire(90).as_nanos(), 752);
        assert_eq!(CardDevice { byte: time_of_byte("no-such-device"), ..gigabit }.time_on_wire(90), Span::ZERO);
        assert!(gigabit.time_on_wire(u32::MAX) < Span::from_millis(1));
    }

    #[test]
    fn the_loopback_is_no_card() {
        let counter = (CounterId::MonotonicRaw, Period::from_hertz(1e9).unwrap());
        for setup in [DeviceSetup::Leave, DeviceSetup::SwitchOn] {
            let error = Card::of("lo", setup, counter).unwrap_err();
            assert!(matches!(error, HardwareUnavailable::NoClock(_)), "{error}");
        }
        let error = Card::of("no-such-device", DeviceSetup::Leave, counter).unwrap_err();
        assert!(matches!(error, HardwareUnavailable::Silent(..)), "{error}");
    }
}
