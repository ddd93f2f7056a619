//! Stamps that a network card takes by its own clock (a PTP hardware clock), as readings of the raw counter.
//!
//! The clock of a card is never set and never steered: it is opened for reading alone. Around the packets it is read
//! together with the counter ([`CardReader`]), and its line over the counter is estimated ([`ffclock_phc::PhcLine`]). A
//! card must have its stamps switched on, which is a setting of the device that all programs share; it is changed only
//! where the caller says so ([`DeviceSetup`]).
//!
//! Cards stamp the beginning of a frame, and so does PTP mean it (IEEE 1588-2019, 7.3.4.1). NTP means by the time of
//! reception the end of a packet, which is when a host without such a card sees it, and servers with hardware stamps
//! (chronyd) answer by that: so the time that the frame takes on the wire is added to stamps of reception there
//! ([`StampedPackets`]).
//!
//! A card may be broken in ways of its own, or a stamp of another one's clock. So each stamp is compared with the order
//! of events before it is used: see [`crate::best`] and `Stamper::sent_by_card`.

mod filter;
mod reader;

use crate::StampDiscarded;
use crate::ffi::hardware as ffi;
use ffclock_counter::CounterId;
use ffclock_phc::{PhcChange, PhcLine, PhcReading, Unplaced};
use ffclock_units::{Counter, Moment, Period, Phc, Span, Stamp, StampLocation, Ticks};
pub use filter::switch_on_stamps;
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

impl fmt::Display for CardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptp{}", self.0)
    }
}

/// The packets of a socket that a card stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampedPackets {
    /// Of NTP: each packet received answers one that was sent, and its time is that of its end.
    Ntp,
    /// Of PTP over UDP, which come unasked; their time is that of their beginning, here and below.
    PtpOverUdp,
    /// Of PTP in frames of Ethernet.
    PtpInFrames,
}

/// A card in use for some packets, which the stamper knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardUse {
    pub(crate) card: CardId,
    pub(crate) packets: StampedPackets,
}

impl CardUse {
    /// The clock of the card.
    pub fn card(self) -> CardId {
        self.card
    }

    #[cfg(test)]
    pub(crate) fn numbered(number: u32, packets: StampedPackets) -> Self {
        CardUse { card: CardId(number), packets }
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
    /// It cannot stamp these packets of PTP when they are received, or not beside those that another program wants
    /// stamped.
    #[error("{0} cannot stamp packets of PTP that it receives beside those that it stamps now")]
    NoFilter(String),
    /// Its stamps are off, or they are of PTP alone.
    #[error(
        "the stamps of {0} are off, or of packets of PTP alone: set device_stamps = \"switch-on\" (needs CAP_NET_ADMIN), \
         or switch them on before (servers of NTP need the filter \"all\")"
    )]
    Off(String),
    /// Its stamps are off, or not of these packets of PTP.
    #[error(
        "the stamps of {0} are off, or not of these packets of PTP: set device_stamps = \"switch-on\" (needs \
         CAP_NET_ADMIN), or switch them on before (the filter \"ptpv2-event\" or \"all\")"
    )]
    OffForPtp(String),
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

impl fmt::Display for CardChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            PhcChange::Stepped(by) => write!(f, "{} was stepped by {:+.3e} s", self.card, by.as_seconds()),
            PhcChange::Steered(by) => write!(f, "{} was steered by {:+.1} ppb", self.card, by.as_ppb()),
        }
    }
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
    /// The card with this clock, its stamps being on.
    pub(crate) fn open(id: CardId, (counter, period): (CounterId, Period)) -> Result<Self, HardwareUnavailable> {
        let mut reader =
            CardReader::open(id.0, counter, period).map_err(|error| HardwareUnavailable::Clock(id, error))?;
        let first = reader.read().map_err(|error| HardwareUnavailable::Clock(id, error))?;
        let stamps_by_it = |name: &str| ffi::stamp_abilities(name).is_ok_and(|found| found.clock == Some(id.0));
        let devices = ffi::network_devices().into_iter().filter(|(_, name)| stamps_by_it(name));
        let devices = devices.map(|(number, name)| CardDevice { number, byte: time_of_byte(&name) }).collect();
        let line = PhcLine::new(period);
        let mut card = Card { id, reader, line, period, devices, read_at: None, is_gone: false, changes: Vec::new() };
        // The line has to begin before the first packet that comes unasked.
        card.add(&first);
        Ok(card)
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
        self.add(&readings.unwrap_or_default());
    }

    fn add(&mut self, readings: &[PhcReading]) {
        for reading in readings {
            let change = self.line.add(reading).map(|change| CardChange { card: self.id, change });
            self.changes.extend(change.filter(|_| self.changes.len() < MOST_CHANGES));
            self.read_at = Some(reading.counter);
        }
    }

    /// What was noticed since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<CardChange> {
        std::mem::take(&mut self.changes)
    }

    /// The stamp of a packet received as a reading of the counter, which was earlier than `now`: the end of a frame of
    /// NTP, the beginning of one of PTP.
    pub(crate) fn place_received(
        &mut self,
        (stamp, packets): (&CardStamp, StampedPackets),
        now: Counter,
    ) -> Result<Stamp, StampDiscarded> {
        let on_wire = match stamp.passage {
            None => Span::ZERO,
            Some(passage) => {
                let device = self.devices.iter().find(|device| device.number == passage.device);
                device.ok_or(StampDiscarded::OtherCard)?.time_on_wire(passage.frame_bytes)
            }
        };
        let begin = self.place(stamp, now)?;
        let moved = if packets == StampedPackets::Ntp { self.period.ticks_in(on_wire) } else { Ticks::ZERO };
        Ok(Stamp { counter: begin.counter + moved, ..begin })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_takes_its_time_on_the_wire() {
        let gigabit = CardDevice { number: 1, byte: Span::from_nanos(8) };
        assert_eq!(gigabit.time_on_wire(90).as_nanos(), 752);
        assert_eq!(CardDevice { byte: time_of_byte("no-such-device"), ..gigabit }.time_on_wire(90), Span::ZERO);
        assert!(gigabit.time_on_wire(u32::MAX) < Span::from_millis(1));
    }
}
