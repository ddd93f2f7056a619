//! The masters that are heard, in a table of fixed size (IEEE 1588-2019, 9.3.2.4), and the best of them.

use crate::cadence::{Cadence, times};
use crate::{Master, PortIdentity, PtpRejection};
use alloc::vec::Vec;
use ffclock_units::{Moment, Mono, Span};

/// Announce messages within this number of their intervals qualify a master (FOREIGN_MASTER_TIME_WINDOW, 9.3.2.4.4):
/// two of them.
const WINDOW_INTERVALS: i64 = 4;

/// One master.
#[derive(Clone, Copy, Debug)]
struct ForeignMaster {
    master: Master,
    cadence: Cadence,
    is_qualified: bool,
    /// It has its place since it came first, and not since it is better than others.
    came_first: bool,
    /// Not followed until it announces after this.
    passed_over: Option<Moment<Mono>>,
}

/// The table. Once it is full, those that were heard once give way to better ones alone, the worst first. Half of the
/// places are for those that came first, which keep theirs for as long as they may repeat themselves: so a flood of
/// senders that claim to be the best does not push out a master between its first two messages. A master that has
/// qualified is pushed out only where no place is left to one that was heard once, by a better one; and the one that is
/// followed never.
#[derive(Debug)]
pub(crate) struct ForeignMasters {
    table: Vec<ForeignMaster>,
    /// Intervals without an Announce message after which a master is gone.
    timeout: i64,
    /// The interval that is configured here.
    usual: Span,
}

impl ForeignMasters {
    /// The standard asks for five at least (9.3.2.4.5).
    pub(crate) const CAPACITY: usize = 16;
    /// Places of those that were heard once and came first.
    const FIRST_COME: usize = Self::CAPACITY / 2;

    pub(crate) fn new(timeout: u32, usual: Span) -> Self {
        ForeignMasters { table: Vec::with_capacity(Self::CAPACITY), timeout: i64::from(timeout), usual }
    }

    /// Takes what was announced at `now`, with `interval` to the next message, as the message says
    /// ([`Cadence`] has what that is worth).
    ///
    /// Returns whether another one lost its place for it.
    ///
    /// # Errors
    /// The table is full, and this one is not better than those that may lose their places.
    pub(crate) fn hear(
        &mut self,
        master: Master,
        (now, interval): (Moment<Mono>, Span),
        followed: Option<PortIdentity>,
    ) -> Result<Admitted, PtpRejection> {
        let Some(known) = self.table.iter_mut().find(|known| known.master.port == master.port) else {
            let newcomer = ForeignMaster {
                master,
                cadence: Cadence::begin(self.usual, interval, now),
                is_qualified: false,
                came_first: false,
                passed_over: None,
            };
            return self.admit(newcomer, followed);
        };
        let window = times(interval.max(known.cadence.interval()), WINDOW_INTERVALS);
        known.is_qualified |= now - known.cadence.last() <= window;
        known.passed_over = known.passed_over.filter(|until| now < *until);
        known.master = master;
        known.cadence.note(interval, now);
        Ok(Admitted::Place)
    }

    fn admit(&mut self, newcomer: ForeignMaster, followed: Option<PortIdentity>) -> Result<Admitted, PtpRejection> {
        if self.table.len() < Self::CAPACITY {
            let first = self.table.iter().filter(|known| known.came_first && !known.is_qualified).count();
            self.table.push(ForeignMaster { came_first: first < Self::FIRST_COME, ..newcomer });
            return Ok(Admitted::Place);
        }
        let has_unqualified = self.table.iter().any(|known| !known.is_qualified);
        let may_lose = |known: &&mut ForeignMaster| {
            let is_spared = has_unqualified && (known.is_qualified || known.came_first);
            !is_spared && Some(known.master.port) != followed
        };
        let worst = self.table.iter_mut().filter(may_lose).max_by(|one, other| better(&one.master, &other.master));
        let place = worst.filter(|worst| better(&newcomer.master, &worst.master).is_lt());
        *place.ok_or(PtpRejection::TooManyMasters)? = newcomer;
        Ok(Admitted::PlaceOfAnother)
    }

    /// Forgets what was heard of this port. Whether anything was.
    pub(crate) fn forget(&mut self, port: PortIdentity) -> bool {
        let before = self.table.len();
        self.table.retain(|known| known.master.port != port);
        self.table.len() < before
    }

    /// Whether there is another one than `followed`, passed over or not.
    pub(crate) fn has_another(&self, followed: PortIdentity) -> bool {
        self.table.iter().any(|known| known.is_qualified && known.master.port != followed)
    }

    /// Does not follow this port until `until`. If that leaves none to follow, of the others the one that was passed
    /// over longest ago is tried again at once: it may be well by now.
    pub(crate) fn pass_over(&mut self, port: PortIdentity, until: Moment<Mono>) {
        let known = self.table.iter_mut().find(|known| known.master.port == port);
        known.into_iter().for_each(|known| known.passed_over = Some(until));
        if self.best().is_none() {
            let others = self.table.iter_mut().filter(|known| known.is_qualified && known.master.port != port);
            others.min_by_key(|known| known.passed_over).into_iter().for_each(|known| known.passed_over = None);
        }
    }

    /// Forgets the masters that have been silent for too long. Whether `followed` is one of them.
    pub(crate) fn expire(&mut self, now: Moment<Mono>, followed: Option<PortIdentity>) -> bool {
        let timeout = self.timeout;
        let is_gone = |known: &ForeignMaster| known.end(timeout) <= now;
        let lost = self.table.iter().any(|known| is_gone(known) && Some(known.master.port) == followed);
        self.table.retain(|known| !is_gone(known));
        lost
    }

    /// When the next master will have been silent for too long.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.table.iter().map(|known| known.end(self.timeout)).min()
    }

    /// The best of those that have qualified and are not passed over.
    pub(crate) fn best(&self) -> Option<Master> {
        let eligible = self.table.iter().filter(|known| known.is_eligible());
        eligible.map(|known| known.master).min_by(better)
    }
}

/// What an announcement got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admitted {
    /// A place of its own.
    Place,
    /// The place of a worse one.
    PlaceOfAnother,
}

impl Admitted {
    /// What is to be counted.
    pub(crate) fn displaced(self) -> Option<PtpRejection> {
        (self == Admitted::PlaceOfAnother).then_some(PtpRejection::Displaced)
    }
}

impl ForeignMaster {
    const fn is_eligible(&self) -> bool {
        self.is_qualified && self.passed_over.is_none()
    }

    fn end(&self, timeout: i64) -> Moment<Mono> {
        self.cadence.last() + times(self.cadence.interval(), timeout)
    }
}

/// `Less` if the first is better.
pub(crate) fn better(one: &Master, other: &Master) -> core::cmp::Ordering {
    one.announcement.compare(one.port, (&other.announcement, other.port))
}
