//! A server's word about leap seconds.

use super::Peer;
use crate::leaps::Vote;
use ffclock_units::LeapTable;

impl Peer {
    /// Its word about leap seconds. A reference gives none, and a server gives none while it is silent or is another
    /// than the one whose time is known.
    pub(crate) fn leap_vote(&self) -> Option<Vote> {
        let is_known = self.was_heard() && self.basis.counterpart == self.counterpart();
        let own = || Some(Vote { announced: self.source.announced() });
        self.feed.as_ref().map_or_else(own, |feed| feed.leap_vote()).filter(|_| self.answers() && is_known)
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
