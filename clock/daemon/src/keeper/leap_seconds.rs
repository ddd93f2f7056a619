//! Which leap seconds hold by the servers' words, and what the log says about them.

use super::Keeper;
use crate::journal::{Entry, Weight};
use crate::leaps::{self, Vote};
use crate::peer::Peer;
use ffclock_units::{LeapAnnouncement, Moment, Span, Utc};

impl Keeper<'_> {
    /// Takes over what the servers decide about leap seconds at `now`.
    pub(super) fn adopt_leaps(&mut self, now: Moment<Utc>) {
        let votes = self.leap_votes();
        if votes.is_empty() {
            return;
        }
        let decision = leaps::decide(self.leaps, now, &votes);
        let journal = &mut self.context.journal;
        if decision.is_disputed {
            journal.notice("servers do not agree about a leap second", "");
        }
        if decision.is_one_too_many {
            journal.warn("a second leap second in one run cannot be taken in: restart ffclockd before it", "");
        }
        if decision.table == self.leaps {
            return;
        }
        self.leaps = decision.table;
        for peer in &mut self.peers {
            peer.set_leaps(decision.table);
        }
    }

    /// The words of those that decide. A server that is not believed about the time is not believed about leap seconds.
    /// A reference, which gives no word, is not against one either; but while a trusted server is silent others decide
    /// nothing in its place.
    fn leap_votes(&self) -> Vec<Vote> {
        let believed = self.peers.iter().enumerate().filter(|(server, _)| self.election.is_truechimer(*server));
        let voters: Vec<&Peer> = believed.map(|(_, peer)| peer).filter(|peer| peer.knows_leaps()).collect();
        let trust = voters.iter().any(|peer| peer.config().vote.trust);
        let deciding = voters.iter().filter(|peer| peer.config().vote.trust || !trust);
        deciding.filter_map(|peer| peer.leap_vote()).collect()
    }

    /// Logs which leap second is announced, if that has changed. If the journal holds the entry back because it wrote
    /// one of the kind a moment ago, a later publication logs it, so that the newest entry in the log is always true.
    pub(super) fn log_leap(&mut self) {
        let announced = self.leaps.announced();
        if announced == self.logged_leap {
            return;
        }
        let detail = announced.map_or_else(String::new, in_words);
        let entry = if announced.is_some() {
            let kind = "a leap second is announced";
            Entry { weight: Weight::Notice, source: None, kind, detail: &detail }
        } else {
            let kind = "the announcement of a leap second was withdrawn";
            Entry { weight: Weight::Notice, source: None, kind, detail: &detail }
        };
        if self.context.journal.log_state(&entry) {
            self.logged_leap = announced;
        }
    }
}

fn in_words(leap: LeapAnnouncement) -> String {
    let (year, month, day) = Moment::<Utc>::from_origin(Span::from_secs(leap.utc_second)).civil_date();
    format!("{:+} s before {year:04}-{month:02}-{day:02} 00:00:00 UTC", leap.change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_second_has_a_date() {
        let leap = LeapAnnouncement { utc_second: 1_483_228_800, change: 1 };
        assert_eq!(in_words(leap), "+1 s before 2017-01-01 00:00:00 UTC");
    }
}
