//! Which stamp of a packet serves, and why no better one does.
//!
//! The kernel's stamp is closest to the wire and serves unless something speaks against it. It is by a clock that may
//! not be the one we read (a simulator stands between, or a fault is injected), so the order of events is asked: of a
//! request and its answer neither stamp serves where that of the request proved wrong, nor that of an answer which
//! would have come before the request was made. A little of such an error would go unnoticed, and the round trip would
//! seem shorter than it can be. The stamp of user space only lengthens it, which an estimator takes for queueing.

use crate::StampMode;
use crate::ledger::{Outstanding, SendId};
use crate::mapper::PairMark;
use crate::stamper::DepartureStamp;
use ffclock_units::{Stamp, StampLocation, StampShift};

/// Why the kernel's stamp of a packet is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampDiscarded {
    /// The kernel gave none.
    #[error("the kernel gave no stamp")]
    Missing,
    /// The system clock was set around the time of the stamp.
    #[error("the system clock was set")]
    ClockStepped,
    /// The stamp is later than a reading that was taken after it.
    #[error("the stamp lies in the future")]
    AfterReading,
    /// The stamp is earlier than a reading that was taken before it.
    #[error("the stamp is older than the packet")]
    BeforeReading,
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
    /// Why the kernel's stamp does not serve; `None` where it does.
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
        if stamp.location == StampLocation::Kernel { self.kernel } else { self.user }
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
}

impl Judge {
    pub(crate) fn new(wanted: StampMode, granted: StampMode) -> Self {
        let (latest, missed, shortfall) = (None, 0, StampDiscarded::Missing);
        Judge { wanted, granted, shifts: StampShifts::default(), latest, missed, shortfall }
    }

    /// What the kernel agreed to.
    pub(crate) fn granted(&self) -> StampMode {
        self.granted
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
        self.latest = Some(SentRequest { id, departure, is_contradicted: false });
        self.send(&departure)
    }

    /// A packet was sent. The stamp is here at once where user space alone stamps.
    pub(crate) fn send(&mut self, departure: &DepartureStamp) -> Option<BestStamp> {
        (self.granted == StampMode::User).then(|| self.sent_by_user(departure, StampDiscarded::Missing))
    }

    /// The kernel's stamp of a packet sent has come, or proved useless.
    pub(crate) fn sent(&mut self, packet: &Outstanding, kernel: Result<Stamp, StampDiscarded>) -> BestStamp {
        if let Some(latest) = self.latest.as_mut().filter(|latest| latest.id == packet.id) {
            latest.is_contradicted =
                matches!(kernel, Err(StampDiscarded::BeforeReading | StampDiscarded::AfterReading));
        }
        match kernel {
            Ok(stamp) => BestStamp { stamp: self.shifts.of(&stamp).sent(stamp), shortfall: None },
            Err(reason) => self.sent_by_user(&packet.departure, reason),
        }
    }

    /// The kernel gives no stamp of the latest packet sent.
    pub(crate) fn give_up(&mut self, id: SendId) -> Option<BestStamp> {
        let departure = self.latest.as_ref().filter(|latest| latest.id == id)?.departure;
        Some(self.sent_by_user(&departure, StampDiscarded::Missing))
    }

    /// A packet was received.
    pub(crate) fn received(&mut self, user: Stamp, kernel: Result<Stamp, StampDiscarded>) -> BestStamp {
        match kernel.and_then(|stamp| self.in_order(stamp)) {
            Ok(stamp) => BestStamp { stamp: self.shifts.of(&stamp).received(stamp), shortfall: None },
            Err(reason) => {
                self.shortfall = reason;
                BestStamp { stamp: self.shifts.user.received(user), shortfall: Some(reason) }
            }
        }
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

    fn sent_by_user(&mut self, departure: &DepartureStamp, reason: StampDiscarded) -> BestStamp {
        self.shortfall = reason;
        BestStamp { stamp: self.shifts.user.sent(departure.user), shortfall: Some(reason) }
    }

    /// Takes note of an exchange that was made with these stamps. The reason where, with it, the kernel's stamps count
    /// as missing.
    pub(crate) fn note_exchange(&mut self, stamps: [&Stamp; 2]) -> Option<StampDiscarded> {
        // Where the kernel refused, nothing is missing.
        let is_missed = stamps.iter().any(|stamp| stamp.location != StampLocation::Kernel);
        let counts = self.granted == StampMode::Kernel && is_missed;
        self.missed = if counts { self.missed.saturating_add(1) } else { 0 };
        (self.missed == EXCHANGES_MISSED).then_some(self.shortfall)
    }

    /// Where packets are stamped.
    pub(crate) fn quality(&self) -> StampQuality {
        match (self.wanted, self.granted) {
            (StampMode::Kernel, StampMode::User) => StampQuality::Refused,
            (StampMode::Kernel, StampMode::Kernel) if self.missed >= EXCHANGES_MISSED => {
                StampQuality::Missing(self.shortfall)
            }
            _ => StampQuality::AsWanted,
        }
    }
}

#[cfg(test)]
mod tests;
