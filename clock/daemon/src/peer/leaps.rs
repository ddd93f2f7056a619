//! A server's word about leap seconds.

use super::Peer;
use crate::leaps::Vote;
use ffclock_units::LeapTable;

impl Peer {
    /// Its word about leap seconds, the last one if it is silent. A reference gives none, and a server gives none while
    /// it is another than the one whose time is known.
    pub(crate) fn leap_vote(&self) -> Option<Vote> {
        let is_known = self.was_heard() && self.basis.counterpart == self.counterpart();
        let own = || Some(Vote::of(self.source.announced()));
        let vote = self.feed.as_ref().map_or_else(own, |feed| feed.leap_vote()).filter(|_| is_known)?;
        Some(Vote { is_silent: !self.answers(), ..vote })
    }

    /// Whether it may give a word about leap seconds at all.
    pub(crate) fn knows_leaps(&self) -> bool {
        self.config.reference.is_none()
    }

    /// Sets the leap seconds that hold from now on.
    pub(crate) fn set_leaps(&mut self, leaps: LeapTable) {
        self.environment.leaps = leaps;
        self.source.set_leaps(leaps);
        if let Some(feed) = &mut self.feed {
            feed.set_leaps(leaps);
        }
    }
}
