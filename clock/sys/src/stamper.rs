//! When packets passed: by the kernel, by user space, and at the driver.
//!
//! A packet has up to three stamps. User space reads the counter around the system call. The kernel stamps at the
//! boundary to the driver by the system clock, which [`Mapper`] turns into a reading of the counter or discards. Where
//! the host offers it, the counter itself was read at the driver ([`DriverStamps`]), which is found with the help of
//! the kernel's stamp and takes its place. And a network card may stamp by its own clock, on the wire's side of all
//! that the host does ([`Stamper::use_hardware`]).
//!
//! One stamper serves all sockets of a process: what one of them learns of the system clock serves the others. Which of
//! a packet's stamps is the best, and why it is no better one, the socket says ([`BestStamp`](crate::BestStamp)): it
//! knows what was sent to whom.

use crate::hardware::{Card, CardStamp};
use crate::mapper::{Mapper, PairMark};
use crate::{
    CardChange, CardId, CardUse, DeviceSetup, DriverStamps, DriverTally, HardwareUnavailable, PairReader,
    StampDiscarded, StampedPackets, SystemPairs, switch_on_stamps,
};
use ffclock_counter::CounterId;
use ffclock_units::{Counter, Direction, Moment, Period, Span, Stamp, StampLocation, Ticks, Utc};

/// A packet that came unasked reaches the kernel within this time: cards hold packets back for tens of microseconds,
/// and where it takes longer its time is of little use. A stamp that is older is that of another packet.
const LONGEST_TO_KERNEL: Span = Span::from_millis(5);

/// Stamps packets by one counter.
#[derive(Debug)]
pub struct Stamper {
    mapper: Mapper<SystemPairs>,
    driver: Option<DriverStamps>,
    cards: Vec<Card>,
    counter: (CounterId, Period),
    /// The least that reading the counter takes.
    read_cost: Ticks,
}

/// What was read right before a packet was handed over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DepartureStamp {
    /// By user space.
    pub(crate) user: Stamp,
    /// The kernel's stamp lies after this; `None` where the kernel does not stamp.
    pub(crate) mark: Option<PairMark>,
}

/// A packet that was taken over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// The kernel's stamp by the system clock.
    pub(crate) stamped: Option<Moment<Utc>>,
    /// Its length with the IP header.
    pub(crate) ip_length: usize,
    /// What the packet is taken to answer.
    pub(crate) answers: Option<PairMark>,
}

impl Stamper {
    /// Stamps by this counter of the host. `period` is its nominal period.
    pub fn new(counter: CounterId, period: Period) -> Self {
        let mut reader = SystemPairs::new(counter);
        let read_cost = read_cost(&mut reader);
        let mapper = Mapper::new(reader, period);
        Stamper { mapper, driver: None, cards: Vec::new(), counter: (counter, period), read_cost }
    }

    /// Remembers enough to stamp packets that have waited this long to be taken over; 80 ms without this call.
    pub fn remember_for(&mut self, longest_wait: Span) {
        self.mapper.remember_for(longest_wait);
    }

    /// The counter, and its nominal period.
    pub fn counter(&self) -> (CounterId, Period) {
        self.counter
    }

    /// Reads the counter and the system clock together, so that what the system clock shows from here on can be placed.
    pub fn look(&mut self) {
        self.mapper.mark();
    }

    /// What the counter showed when the system clock showed `shown`: for stamps that other programs, or the kernel on
    /// other devices than sockets, took by it. It was before this call.
    ///
    /// # Errors
    /// The system clock was stepped since, or the time is too long ago or in the future.
    pub fn place(&mut self, shown: Moment<Utc>) -> Result<Stamp, StampDiscarded> {
        self.mapper.map_received(shown, None)
    }

    /// Takes stamps of the driver's boundary where they are found, from now on.
    pub fn refine_with(&mut self, driver: DriverStamps) {
        self.driver = Some(driver);
    }

    /// Takes stamps of the network card behind a device, from now on, on sockets that ask for it
    /// ([`StampedSocket::use_hardware`](crate::StampedSocket::use_hardware)) and have such packets.
    ///
    /// # Errors
    /// The card gives none; the message names the remedy.
    pub fn use_hardware(
        &mut self,
        (device, packets): (&str, StampedPackets),
        setup: DeviceSetup,
    ) -> Result<CardUse, HardwareUnavailable> {
        let id = switch_on_stamps(device, packets, setup)?;
        let card = Card::open(id, self.counter)?;
        // One that is known keeps its line, unless it was removed and is another one now.
        self.cards.retain(|known| known.id() != id || !known.is_gone());
        if !self.cards.iter().any(|known| known.id() == id) {
            self.cards.push(card);
        }
        Ok(CardUse { card: id, packets })
    }

    /// What was done to the clocks of cards since the last call.
    pub fn take_card_changes(&mut self) -> Vec<CardChange> {
        self.cards.iter_mut().flat_map(Card::take_changes).collect()
    }

    /// How often such a stamp was found; `None` where none are taken.
    pub fn driver_tally(&self) -> Option<DriverTally> {
        self.driver.as_ref().map(DriverStamps::tally)
    }

    /// A packet is handed over right after this. Its own stamp of user space is the last thing that is read: the packet
    /// leaves later, and what passes until then counts as part of its way.
    pub(crate) fn depart_for_kernel(&mut self, card: Option<CardUse>) -> DepartureStamp {
        if let Some(used) = card {
            let now = self.mapper.read_counter();
            self.card(used.card).into_iter().for_each(|card| card.look(now));
        }
        if let Some(driver) = &mut self.driver {
            // Room for the passage of this packet.
            driver.drain(self.mapper.read_counter());
        }
        let mark = Some(self.mapper.mark());
        DepartureStamp { user: self.now(), mark }
    }

    /// As [`depart_for_kernel`](Self::depart_for_kernel), where the kernel does not stamp.
    pub(crate) fn depart(&mut self) -> DepartureStamp {
        DepartureStamp { user: self.now(), mark: None }
    }

    /// The stamp of user space for a packet that was taken over right before this: it came earlier, and the rest counts
    /// as part of its way. So the round trip of two stamps of user space contains the true one.
    pub(crate) fn arrive(&mut self) -> Stamp {
        self.now()
    }

    /// The kernel's stamp of a packet sent, or the better one of the driver. Called after the kernel's has come.
    ///
    /// # Errors
    /// The stamp did not come, or cannot be trusted.
    pub(crate) fn sent(
        &mut self,
        stamped: Option<Moment<Utc>>,
        departure: &DepartureStamp,
    ) -> Result<Stamp, StampDiscarded> {
        let (stamped, mark) = stamped.zip(departure.mark).ok_or(StampDiscarded::Missing)?;
        let stamp = self.mapper.map_sent(stamped, mark)?;
        Ok(self.refine(Direction::Outgoing, stamp, None))
    }

    /// The kernel's stamp of a packet received, or the better one of the driver. Called after the packet was taken
    /// over.
    ///
    /// # Errors
    /// There is none, or it cannot be trusted.
    pub(crate) fn received(&mut self, arrival: &Arrival) -> Result<Stamp, StampDiscarded> {
        let stamped = arrival.stamped.ok_or(StampDiscarded::Missing)?;
        let stamp = self.mapper.map_received(stamped, arrival.answers)?;
        Ok(self.refine(Direction::Incoming, stamp, Some(arrival.ip_length)))
    }

    /// The stamp of the network card on a packet that was sent. It was earlier than this call, and later than the stamp
    /// of user space and, if that came, that of the kernel: otherwise it is of another packet or by another clock.
    ///
    /// # Errors
    /// It cannot be trusted.
    pub(crate) fn sent_by_card(
        &mut self,
        (used, stamp): (CardUse, &CardStamp),
        departure: &DepartureStamp,
        kernel: Option<Stamp>,
    ) -> Result<Stamp, StampDiscarded> {
        let now = self.mapper.read_counter();
        let card = self.card(used.card).ok_or(StampDiscarded::CardUnreadable)?;
        let placed = card.place(stamp, now)?;
        if !card.is_unbroken_since(departure.user.counter) {
            return Err(StampDiscarded::CardStepped);
        }
        if earliest(&placed).is_after(now) {
            return Err(StampDiscarded::AfterReading);
        }
        let after = |limit: &Stamp| !earliest(limit).is_after(latest(&placed));
        if after(&departure.user) && kernel.as_ref().is_none_or(after) {
            Ok(placed)
        } else {
            Err(StampDiscarded::BeforeReading)
        }
    }

    /// The stamp of the network card on a packet that was received. It was earlier than the stamp of the kernel or,
    /// where there is none, that of user space. Of packets that come unasked, nothing else is known to be before it, so
    /// it may not be much earlier than the kernel's either.
    ///
    /// # Errors
    /// It cannot be trusted.
    pub(crate) fn received_by_card(
        &mut self,
        (used, stamp): (CardUse, &CardStamp),
        later: &Stamp,
    ) -> Result<Stamp, StampDiscarded> {
        let now = self.mapper.read_counter();
        let card = self.card(used.card).ok_or(StampDiscarded::CardUnreadable)?;
        let placed = card.place_received((stamp, used.packets), now)?;
        if !card.is_unbroken_since(placed.counter) {
            return Err(StampDiscarded::CardStepped);
        }
        if earliest(&placed).is_after(latest(later)) {
            return Err(StampDiscarded::AfterReading);
        }
        let is_unasked = used.packets != StampedPackets::Ntp && later.location == StampLocation::Kernel;
        let within = self.counter.1.ticks_in(LONGEST_TO_KERNEL);
        if is_unasked && earliest(later).is_after(latest(&placed) + within) {
            return Err(StampDiscarded::LongBefore);
        }
        Ok(placed)
    }

    fn card(&mut self, id: CardId) -> Option<&mut Card> {
        self.cards.iter_mut().find(|card| card.id() == id)
    }

    /// A reading in user space; its width is what reading takes at least.
    fn now(&mut self) -> Stamp {
        Stamp { counter: self.mapper.read_counter(), width: self.read_cost, location: StampLocation::User }
    }

    fn refine(&mut self, direction: Direction, stamp: Stamp, ip_length: Option<usize>) -> Stamp {
        let found = self.driver.as_mut().and_then(|driver| driver.refine(direction, stamp, ip_length));
        found.map_or(stamp, |counter| Stamp { counter, width: self.read_cost, ..stamp })
    }
}

fn earliest(stamp: &Stamp) -> Counter {
    stamp.counter - stamp.width.halved()
}

fn latest(stamp: &Stamp) -> Counter {
    stamp.counter + stamp.width.halved()
}

/// The least that reading the counter takes.
fn read_cost(reader: &mut impl PairReader) -> Ticks {
    let mut last = reader.read_counter();
    let mut least = Ticks::from_raw(i64::MAX);
    for _ in 0..64 {
        let next = reader.read_counter();
        least = least.min(next - last);
        last = next;
    }
    least.max(Ticks::from_raw(1))
}
