//! Which stamp of a packet serves, and why no better one does.
//!
//! The kernel's stamp is closest to the wire and serves unless something speaks against it. It is by a clock that may
//! not be the one we read (a simulator stands between, or a fault is injected), so the order of events is asked: of a
//! request and its answer neither stamp serves where that of the request proved wrong, nor that of an answer which
//! would have come before the request was made. A little of such an error would go unnoticed, and the round trip would
//! seem shorter than it can be. The stamp of user space only lengthens it, which an estimator takes for queueing.
//!
//! The stamp of a network card is closer still, and comes before that of the kernel. It is by the card's own clock,
//! which may be broken or another one's, so the same is asked of it; where it does not serve, that of the kernel does.

use crate::ledger::{Outstanding, SendId};
use crate::mapper::PairMark;
use crate::stamper::DepartureStamp;
use crate::{CardUse, StampMode};
use ffclock_units::{Stamp, StampLocation, StampShift};

/// Why the stamp of the kernel, or of a network card, is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampDiscarded {
    /// There was none.
    #[error("the kernel gave no stamp")]
    Missing,
    /// The network card gave none.
    #[error("the network card gave no stamp")]
    CardMissing,
    /// The stamp of the card was seen before, on another packet.
    #[error("the stamp of the network card is that of another packet")]
    Repeated,
    /// The stamp is of another card than the packets of this socket pass.
    #[error("the stamp is of another network card")]
    OtherCard,
    /// The clock of the card was stepped around the time of the stamp.
    #[error("the clock of the network card was stepped")]
    CardStepped,
    /// The clock of the card cannot be read.
    #[error("the clock of the network card cannot be read")]
    CardUnreadable,
    /// The system clock was set around the time of the stamp.
    #[error("the system clock was set")]
    ClockStepped,
    /// The stamp is later than a reading that was taken after it.
    #[error("the stamp lies in the future")]
    AfterReading,
    /// The stamp is earlier than a reading that was taken before it.
    #[error("the stamp is older than the packet")]
    BeforeReading,
    /// The kernel saw the packet, which came unasked, much later than the network card says.
    #[error("the stamp is much older than the kernel's")]
    LongBefore,
    /// The stamp is older than all marks that are remembered.
    #[error("the stamp is too old")]
    TooOld,
    /// The stamp of the request that the packet answers contradicted the order of events.
    #[error("the stamp of the request contradicts the order of events")]
    RequestContradicted,
    /// The stamp is earlier than the request that the packet answers.
    #[error("the stamp is older than the request")]
    BeforeRequest,
}

/// The best stamp of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BestStamp {
    /// Moved by the host's own delays, where they are known.
    pub stamp: Stamp,
    /// Why a better stamp, which was asked for, does not serve; `None` where the best one does.
    pub shortfall: Option<StampDiscarded>,
}

/// How the stamps of each location are moved by what is known of the host's own delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StampShifts {
    /// Of user space.
    pub user: StampShift,
    /// Of the kernel.
    pub kernel: StampShift,
}

impl StampShifts {
    fn of(&self, stamp: &Stamp) -> StampShift {
        match stamp.location {
            StampLocation::Kernel => self.kernel,
            // At the wire itself there is nothing to take off.
            StampLocation::Hardware => StampShift::default(),
            StampLocation::User | StampLocation::Unknown => self.user,
        }
    }
}

/// Where a socket's packets are stamped, beside what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampQuality {
    /// As asked for.
    AsWanted,
    /// In user space, since the kernel refuses.
    Refused,
    /// In user space, since the kernel's stamps do not serve, for this reason at the latest.
    Missing(StampDiscarded),
    /// In the kernel, since the network card gives no stamps.
    NoCard,
    /// In the kernel, since the stamps of the network card do not serve, for this reason at the latest.
    CardMissing(StampDiscarded),
}

/// One stamp is missing now and then, for instance when the system clock is set; this many exchanges in a row are
/// reported.
const EXCHANGES_MISSED: u32 = 8;

/// The judge of one socket's stamps.
#[derive(Debug)]
pub(crate) struct Judge {
    wanted: StampMode,
    granted: StampMode,
    shifts: StampShifts,
    /// The latest packet sent, where all packets go to one peer: those of the peer are answers.
    latest: Option<SentRequest>,
    /// Exchanges in a row without the kernel's stamps, where it agreed to stamp.
    missed: u32,
    shortfall: StampDiscarded,
}

/// A packet sent that an answer may follow.
#[derive(Clone, Copy, Debug)]
struct SentRequest {
    id: SendId,
    departure: DepartureStamp,
    /// The kernel's stamp of it contradicts the order of events.
    is_contradicted: bool,
    /// The network card's does.
    is_card_contradicted: bool,
    /// The network card's stamp of it.
    by_card: Option<Stamp>,
}

/// The stamps of a packet beside that of user space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BetterStamps {
    pub(crate) kernel: Result<Stamp, StampDiscarded>,
    /// `None` where no network card is asked.
    pub(crate) card: Option<Result<Stamp, StampDiscarded>>,
}

impl BetterStamps {
    pub(crate) fn of_kernel(kernel: Result<Stamp, StampDiscarded>) -> Self {
        BetterStamps { kernel, card: None }
    }
}

impl Judge {
    pub(crate) fn new(wanted: StampMode, granted: StampMode) -> Self {
        let (latest, missed, shortfall) = (None, 0, StampDiscarded::Missing);
        Judge { wanted, granted, shifts: StampShifts::default(), latest, missed, shortfall }
    }

    /// What the kernel agreed to; the hardware only while a network card is used.
    pub(crate) fn granted(&self) -> StampMode {
        self.granted
    }

    /// What was asked for.
    pub(crate) fn wanted(&self) -> StampMode {
        self.wanted
    }

    /// A network card is used from now on, or none any more.
    pub(crate) fn use_card(&mut self, card: Option<CardUse>) {
        if self.granted != StampMode::User && self.wanted == StampMode::Hardware {
            self.granted = if card.is_some() { StampMode::Hardware } else { StampMode::Kernel };
            self.missed = 0;
        }
    }

    /// Whether the network card's stamps come as a rule, so that a late one is worth waiting for.
    pub(crate) fn expects_card(&self) -> bool {
        self.granted == StampMode::Hardware && self.missed < EXCHANGES_MISSED
    }

    /// Moves stamps by `shifts` from now on.
    pub(crate) fn shift(&mut self, shifts: StampShifts) {
        self.shifts = shifts;
    }

    /// The mark that the answer to the latest packet lies after.
    pub(crate) fn latest_mark(&self) -> Option<PairMark> {
        self.latest.as_ref().and_then(|request| request.departure.mark)
    }

    /// A packet was sent to the one peer of the socket: what comes next is taken to answer it.
    pub(crate) fn ask(&mut self, id: SendId, departure: DepartureStamp) -> Option<BestStamp> {
        let (is_contradicted, is_card_contradicted) = (false, false);
        self.latest = Some(SentRequest { id, departure, is_contradicted, is_card_contradicted, by_card: None });
        self.send(&departure)
    }

    /// A packet was sent. The stamp is here at once where user space alone stamps.
    pub(crate) fn send(&mut self, departure: &DepartureStamp) -> Option<BestStamp> {
        (self.granted == StampMode::User).then(|| self.sent_by_user(departure.user, StampDiscarded::Missing))
    }

    /// The better stamps of a packet sent have come, or proved useless.
    pub(crate) fn sent(&mut self, packet: &Outstanding, better: &BetterStamps) -> BestStamp {
        let contradicts = |stamp: &Result<Stamp, StampDiscarded>| {
            matches!(
                stamp,
                Err(StampDiscarded::BeforeReading | StampDiscarded::AfterReading | StampDiscarded::Repeated)
            )
        };
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.id == packet.id) {
            latest.is_contradicted = contradicts(&better.kernel);
            latest.is_card_contradicted = better.card.as_ref().is_some_and(contradicts);
            latest.by_card = better.card.and_then(Result::ok);
        }
        self.choose(better, |judge, stamp| judge.shifts.of(&stamp).sent(stamp), packet.departure.user)
    }

    /// No better stamp of the latest packet sent is waited for than `kernel`, if that has come.
    pub(crate) fn give_up(&mut self, id: SendId, kernel: Option<Result<Stamp, StampDiscarded>>) -> Option<BestStamp> {
        let departure = self.latest.as_ref().filter(|latest| latest.id == id)?.departure;
        Some(self.give_up_sent(departure.user, kernel))
    }

    /// No better stamp of a packet sent is waited for than `kernel`, if that has come.
    pub(crate) fn give_up_sent(&mut self, user: Stamp, kernel: Option<Result<Stamp, StampDiscarded>>) -> BestStamp {
        let card = (self.granted == StampMode::Hardware).then_some(Err(StampDiscarded::CardMissing));
        let better = BetterStamps { kernel: kernel.unwrap_or(Err(StampDiscarded::Missing)), card };
        self.choose(&better, |judge, stamp| judge.shifts.of(&stamp).sent(stamp), user)
    }

    /// A packet was received.
    pub(crate) fn received(&mut self, user: Stamp, better: &BetterStamps) -> BestStamp {
        let kernel = better.kernel.and_then(|stamp| self.in_order(stamp));
        let card = better.card.map(|card| card.and_then(|stamp| self.in_order_by_card(stamp)));
        self.choose(&BetterStamps { kernel, card }, |judge, stamp| judge.shifts.of(&stamp).received(stamp), user)
    }

    /// The best of them, moved by `shifted`; why it is no better one is kept.
    fn choose(&mut self, better: &BetterStamps, shifted: impl Fn(&Self, Stamp) -> Stamp, user: Stamp) -> BestStamp {
        let (stamp, shortfall) = match (better.card, better.kernel) {
            (Some(Ok(stamp)), _) | (None, Ok(stamp)) => (stamp, None),
            (Some(Err(reason)), Ok(stamp)) => (stamp, Some(reason)),
            (_, Err(reason)) => (user, Some(reason)),
        };
        self.shortfall = shortfall.unwrap_or(self.shortfall);
        BestStamp { stamp: shifted(self, stamp), shortfall }
    }

    /// Packets take time: an answer passes the card after its request.
    fn in_order_by_card(&self, stamp: Stamp) -> Result<Stamp, StampDiscarded> {
        let Some(request) = &self.latest else { return Ok(stamp) };
        if request.is_card_contradicted {
            return Err(StampDiscarded::RequestContradicted);
        }
        let after = request.by_card.map_or(request.departure.user.counter, |sent| sent.counter);
        if after.is_after(stamp.counter) { Err(StampDiscarded::BeforeRequest) } else { Ok(stamp) }
    }

    fn in_order(&self, stamp: Stamp) -> Result<Stamp, StampDiscarded> {
        let Some(request) = &self.latest else { return Ok(stamp) };
        if request.is_contradicted {
            return Err(StampDiscarded::RequestContradicted);
        }
        if request.departure.user.counter.is_after(stamp.counter) {
            return Err(StampDiscarded::BeforeRequest);
        }
        Ok(stamp)
    }

    /// The stamp of user space serves, for this reason.
    pub(crate) fn sent_by_user(&mut self, user: Stamp, reason: StampDiscarded) -> BestStamp {
        self.shortfall = reason;
        BestStamp { stamp: self.shifts.user.sent(user), shortfall: Some(reason) }
    }

    /// The location of the stamps that were granted.
    fn location(&self) -> StampLocation {
        match self.granted {
            StampMode::Hardware => StampLocation::Hardware,
            StampMode::Kernel => StampLocation::Kernel,
            StampMode::User => StampLocation::User,
        }
    }

    /// Takes note of an exchange that was made with these stamps. The reason where, with it, the stamps that were
    /// granted count as missing.
    pub(crate) fn note_exchange(&mut self, stamps: [&Stamp; 2]) -> Option<StampDiscarded> {
        // Where the kernel refused, nothing is missing.
        let is_missed = stamps.iter().any(|stamp| stamp.location != self.location());
        let counts = self.granted != StampMode::User && is_missed;
        self.missed = if counts { self.missed.saturating_add(1) } else { 0 };
        (self.missed == EXCHANGES_MISSED).then_some(self.shortfall)
    }

    /// Where packets are stamped.
    pub(crate) fn quality(&self) -> StampQuality {
        match (self.wanted, self.granted) {
            (StampMode::Kernel | StampMode::Hardware, StampMode::User) => StampQuality::Refused,
            (_, StampMode::Kernel) if self.missed >= EXCHANGES_MISSED => StampQuality::Missing(self.shortfall),
            (_, StampMode::Hardware) if self.missed >= EXCHANGES_MISSED => StampQuality::CardMissing(self.shortfall),
            (StampMode::Hardware, StampMode::Kernel) => StampQuality::NoCard,
            _ => StampQuality::AsWanted,
        }
    }
}

#[cfg(test)]
mod tests;
