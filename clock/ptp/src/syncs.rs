//! Which Follow_Up belongs to which Sync (IEEE 1588-2019, 9.5.9 and 9.5.10).
//!
//! The two are of one sequence number, and the network may swap them, lose either, or deliver one a minute late.

use crate::recent::Recent;
use crate::{Correction, PtpFlags, PtpMessage, PtpRejection, PtpTimestamp};
use alloc::collections::VecDeque;
use ffclock_units::{Moment, Mono, Span, Stamp};

/// A Sync that has its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MatchedSync {
    pub(crate) origin: PtpTimestamp,
    pub(crate) corrections: [Correction; 2],
    pub(crate) received: Stamp,
}

#[derive(Clone, Copy, Debug)]
struct PendingSync {
    sequence: u16,
    deadline: Moment<Mono>,
    sync: Option<(Stamp, Correction)>,
    follow_up: Option<(PtpTimestamp, Correction)>,
}

/// The Syncs of one master that wait for their Follow_Up, and the Follow_Ups that wait for their Sync.
#[derive(Debug)]
pub(crate) struct SyncMatcher {
    pending: VecDeque<PendingSync>,
    done: Recent,
    timeout: Span,
}

impl SyncMatcher {
    const CAPACITY: usize = 16;

    pub(crate) fn new(timeout: Span) -> Self {
        SyncMatcher { pending: VecDeque::with_capacity(Self::CAPACITY), done: Recent::default(), timeout }
    }

    /// Another master begins.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.done = Recent::default();
    }

    /// A Sync arrived at `received`; `origin` is what it says itself. It is complete if it is of one step, or if its
    /// Follow_Up came before it.
    ///
    /// # Errors
    /// It is a second one of its number; the first one stays.
    pub(crate) fn sync(
        &mut self,
        (message, origin): (&PtpMessage, PtpTimestamp),
        received: Stamp,
        now: Moment<Mono>,
    ) -> Result<Option<MatchedSync>, PtpRejection> {
        let PtpMessage { sequence, correction, .. } = *message;
        if self.done.has(sequence) {
            return Err(PtpRejection::Duplicate);
        }
        if !message.flags.has(PtpFlags::TWO_STEP) {
            self.finish(sequence);
            return Ok(Some(MatchedSync { origin, corrections: [correction, Correction::ZERO], received }));
        }
        let pending = self.open(sequence, now);
        if pending.sync.is_some() {
            return Err(PtpRejection::Duplicate);
        }
        pending.sync = Some((received, correction));
        Ok(self.complete(sequence))
    }

    /// A Follow_Up arrived, which says that the Sync of its number left at `origin`.
    ///
    /// # Errors
    /// It is a second one of its number; the first one stays.
    pub(crate) fn follow_up(
        &mut self,
        (message, origin): (&PtpMessage, PtpTimestamp),
        now: Moment<Mono>,
    ) -> Result<Option<MatchedSync>, PtpRejection> {
        let PtpMessage { sequence, correction, .. } = *message;
        if self.done.has(sequence) {
            return Err(PtpRejection::Duplicate);
        }
        let pending = self.open(sequence, now);
        if pending.follow_up.is_some() {
            return Err(PtpRejection::Duplicate);
        }
        pending.follow_up = Some((origin, correction));
        Ok(self.complete(sequence))
    }

    /// Gives up the oldest one that has waited for too long, and says what was missing. To be called until there is
    /// none.
    pub(crate) fn expire(&mut self, now: Moment<Mono>) -> Option<PtpRejection> {
        let oldest =
            self.pending.front().filter(|oldest| oldest.deadline <= now || self.pending.len() > Self::CAPACITY)?;
        let missing = if oldest.sync.is_some() { PtpRejection::FollowUpMissing } else { PtpRejection::SyncMissing };
        self.pending.pop_front();
        Some(missing)
    }

    /// When the oldest will have waited for too long.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        self.pending.front().map(|oldest| oldest.deadline)
    }

    fn open(&mut self, sequence: u16, now: Moment<Mono>) -> &mut PendingSync {
        let place = self.pending.iter().position(|pending| pending.sequence == sequence);
        let place = place.unwrap_or_else(|| {
            let deadline = now + self.timeout;
            self.pending.push_back(PendingSync { sequence, deadline, sync: None, follow_up: None });
            self.pending.len() - 1
        });
        debug_assert!(self.pending.len() <= Self::CAPACITY + 1, "the caller lets what is too old expire each time");
        &mut self.pending[place]
    }

    fn complete(&mut self, sequence: u16) -> Option<MatchedSync> {
        let place = self.pending.iter().position(|pending| pending.sequence == sequence)?;
        let PendingSync { sync, follow_up, .. } = *self.pending.get(place)?;
        let ((received, held), (origin, more)) = (sync?, follow_up?);
        self.finish(sequence);
        Some(MatchedSync { origin, corrections: [held, more], received })
    }

    fn finish(&mut self, sequence: u16) {
        self.pending.retain(|pending| pending.sequence != sequence);
        self.done.note(sequence);
    }
}
