//! Servers that are one and the same have one vote: two names of one address, and two that follow one master of PTP.
//!
//! The address of a server of NTP is where our requests go, so the first such server in the configuration has the vote.
//! The identity of a master is only what its messages say, and any host that is heard by multicast can say it. So the
//! server that is harder to forge has the vote, and one that is silent never has that of one that answers.

use super::Keeper;
use crate::config::PtpPlace;
use crate::peer::{Counterpart, Peer};
use std::cmp::Reverse;

/// How a server stands among those that speak in the name of one master. A larger one is harder to forge, or answers,
/// or comes first in the configuration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct NameStanding {
    is_trusted: bool,
    is_unicast: bool,
    answers: bool,
    place: Reverse<usize>,
}

impl NameStanding {
    fn of(place: usize, peer: &Peer) -> Self {
        let config = peer.config();
        NameStanding {
            is_trusted: config.vote.trust,
            is_unicast: matches!(config.ptp_place(), PtpPlace::Master(_)),
            answers: peer.answers(),
            place: Reverse(place),
        }
    }

    /// Whether the other one has the vote of both. A silent one keeps its vote beside one that is easier to forge: what
    /// it proved still holds, and the other one may speak in a name that is not its own.
    fn gives_way_to(self, other: Self) -> bool {
        other > self && (other.answers || !self.answers)
    }
}

impl Keeper<'_> {
    /// The server that has the vote of this one as well.
    pub(super) fn same_as(&self, server: usize) -> Option<&str> {
        let own = self.peers.get(server).filter(|peer| !peer.config().vote.no_select)?;
        let counterpart = own.counterpart()?;
        let voters = self.peers.iter().enumerate().filter(|(_, peer)| !peer.config().vote.no_select);
        let mut same = voters.filter(|(_, peer)| peer.counterpart() == Some(counterpart));
        let first = match counterpart {
            Counterpart::Address(_) => same.find(|(place, _)| *place < server),
            Counterpart::Master(..) => {
                let standing = NameStanding::of(server, own);
                let before = same.filter(|(place, peer)| standing.gives_way_to(NameStanding::of(*place, peer)));
                before.max_by_key(|(place, peer)| NameStanding::of(*place, peer))
            }
        };
        first.map(|(_, peer)| peer.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: bool = true;
    const DEAD: bool = false;

    fn multicast(place: usize, answers: bool) -> NameStanding {
        NameStanding { is_trusted: false, is_unicast: false, answers, place: Reverse(place) }
    }

    fn unicast(place: usize, answers: bool) -> NameStanding {
        NameStanding { is_unicast: true, ..multicast(place, answers) }
    }

    fn trusted(place: usize, answers: bool) -> NameStanding {
        NameStanding { is_trusted: true, ..multicast(place, answers) }
    }

    /// The places of those that have a vote.
    fn voters(servers: &[NameStanding]) -> Vec<usize> {
        let has_vote = |server: &&NameStanding| !servers.iter().any(|other| server.gives_way_to(*other));
        servers.iter().filter(has_vote).map(|server| server.place.0).collect()
    }

    #[test]
    fn a_forger_by_multicast_silences_no_server_that_is_asked_by_unicast_or_trusted() {
        assert_eq!(voters(&[multicast(0, LIVE), unicast(1, LIVE)]), [1]);
        assert_eq!(voters(&[unicast(0, LIVE), multicast(1, LIVE)]), [0]);
        assert_eq!(voters(&[multicast(0, LIVE), trusted(1, LIVE), unicast(2, LIVE)]), [1]);
        assert_eq!(voters(&[multicast(0, LIVE), unicast(1, DEAD)]), [0, 1], "what it proved is not lost");
    }

    #[test]
    fn a_silent_server_never_has_the_vote_of_one_that_answers() {
        assert_eq!(voters(&[multicast(0, DEAD), unicast(1, LIVE)]), [1]);
        assert_eq!(voters(&[multicast(0, DEAD), multicast(1, LIVE)]), [1]);
        assert_eq!(voters(&[unicast(0, DEAD), unicast(1, LIVE), multicast(2, DEAD)]), [1]);
        for one in [multicast(0, DEAD), unicast(0, DEAD), trusted(0, DEAD)] {
            assert!(voters(&[one, multicast(1, LIVE)]).contains(&1));
        }
    }

    #[test]
    fn one_of_several_has_the_vote_and_none_of_them_loses_it_to_nothing() {
        assert_eq!(voters(&[multicast(0, LIVE), multicast(1, LIVE)]), [0]);
        assert_eq!(voters(&[multicast(0, DEAD), unicast(1, DEAD)]), [1], "an outage gives no second vote");
        let kinds = [multicast, unicast, trusted];
        let of = |number: usize, place: usize| kinds[number % 3](place, number / 3 == 0);
        for number in 0..6 * 6 * 6 {
            let servers = [of(number % 6, 0), of(number / 6 % 6, 1), of(number / 36, 2)];
            assert!(!voters(&servers).is_empty(), "{number}");
        }
    }
}
