//! What a master claimed, and when: each message is as wrong as was claimed at its time.
//!
//! Announcements and the messages that carry times come by two sockets and wait there, and a Sync is complete only with
//! its Follow_Up. So the claim that is known when an observation is complete may be a later one than that of its time,
//! and a narrower one.

use alloc::collections::VecDeque;
use ffclock_units::{Counter, ServerQuality};

/// The claims of one master, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct ClaimHistory {
    /// The one before all of `later`; `None` where it is of two grandmasters, or of none yet.
    first: Option<ServerQuality>,
    later: VecDeque<(Counter, ServerQuality)>,
}

impl ClaimHistory {
    /// As many claims are kept apart; older ones become one, which covers all of them.
    const CAPACITY: usize = 16;

    /// Another master begins with this claim.
    pub fn begin(&mut self, claim: ServerQuality) {
        self.first = Some(claim);
        self.later.clear();
    }

    /// An announcement with this claim came when the counter stood at `arrived`, or before.
    pub fn note(&mut self, claim: ServerQuality, arrived: Counter) {
        if self.later.back().map_or(self.first, |(_, last)| Some(*last)) == Some(claim) {
            return;
        }
        if self.later.len() >= Self::CAPACITY {
            let oldest = self.later.pop_front();
            self.first = oldest.and_then(|(_, oldest)| both(self.first?, oldest));
        }
        self.later.push_back((arrived, claim));
    }

    /// The claim that covers a message which passed when the counter stood at `passed`: the one that was known then and
    /// every later one, which may have been on its way already. `None` if they are of more than one grandmaster.
    pub fn since(&self, passed: Counter) -> Option<ServerQuality> {
        let is_known = |(arrived, _): &&(Counter, ServerQuality)| !arrived.is_after(passed);
        let known = self.later.iter().rposition(|entry| is_known(&entry));
        let (begin, rest) = match known {
            Some(place) => (self.later.get(place).map(|(_, claim)| *claim), place + 1),
            None => (self.first, 0),
        };
        self.later.range(rest..).try_fold(begin?, |claim, (_, next)| both(claim, *next))
    }
}

/// The later claim with the larger error; `None` if they are of two grandmasters.
fn both(claim: ServerQuality, later: ServerQuality) -> Option<ServerQuality> {
    let root_distance = claim.root_distance.max(later.root_distance);
    (claim.identity == later.identity).then_some(ServerQuality { root_distance, ..later })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Bound, ServerIdentity, Span};

    fn claim(reference_id: u32, micros: i64) -> ServerQuality {
        let identity = ServerIdentity { stratum: 1, reference_id };
        ServerQuality { identity, root_distance: Bound::of(Span::from_micros(micros)), ..ServerQuality::default() }
    }

    fn at(counter: u64) -> Counter {
        Counter::from_raw(counter)
    }

    #[test]
    fn a_message_is_as_wrong_as_was_claimed_since_it_passed() {
        let mut history = ClaimHistory::default();
        assert_eq!(history.since(at(5)), None);
        history.begin(claim(7, 1));
        assert_eq!(history.since(at(5)), Some(claim(7, 1)));
        history.note(claim(7, 1000), at(100));
        history.note(claim(7, 10), at(200));
        for (passed, micros) in [(5, 1000), (99, 1000), (100, 1000), (199, 1000), (200, 10), (900, 10)] {
            assert_eq!(history.since(at(passed)), Some(claim(7, micros)), "{passed}");
        }
        history.note(claim(8, 10), at(300));
        assert_eq!(history.since(at(299)), None, "another grandmaster behind the same port");
        assert_eq!(history.since(at(300)), Some(claim(8, 10)));
        history.begin(claim(7, 1));
        assert_eq!(history.since(at(5)), Some(claim(7, 1)));
    }

    #[test]
    fn what_is_forgotten_is_covered() {
        let mut history = ClaimHistory::default();
        history.begin(claim(7, 500));
        for number in 1..100_u64 {
            history.note(claim(7, 1 + number as i64 % 2), at(number));
            history.note(claim(7, 1 + number as i64 % 2), at(number));
        }
        assert_eq!(history.later.len(), ClaimHistory::CAPACITY);
        assert_eq!(history.since(at(1)), Some(claim(7, 500)));
        assert_eq!(history.since(at(99)), Some(claim(7, 2)));
    }
}
