//! The place of a server's requests among those of the others.

use ffclock_units::{Moment, Mono, Span};

/// The place of a server among those that a host asks, so that their exchanges spread evenly over the poll.
///
/// The n-th of N servers has its requests where the monotonic clock is (2n + 1) / 2N of a poll after a multiple of it.
/// So servers of one poll are an N-th of it apart, and those whose polls differ by a power of two never meet either: an
/// even number of halves is no odd one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollPlace {
    number: u32,
    of: u32,
}

/// A request is delayed by at most this part of the poll for the sake of its place: it gets there in a few polls.
const LONGEST_DELAY: i128 = 4;
/// A request is in its place within this part of the distance of two servers: a host that wakes up late is no reason to
/// wait.
const NEAR: i128 = 4;

impl PollPlace {
    /// That of the only server: any time is right.
    pub const ALONE: PollPlace = PollPlace { number: 0, of: 1 };

    /// That of the server with this number, counted from 0, among `of` servers.
    pub const fn new(number: u32, of: u32) -> Self {
        PollPlace { number, of }
    }

    /// The time for a request that is due at `due`: its place, or as much nearer to it as may be waited. Never earlier.
    pub(crate) fn from(self, due: Moment<Mono>, poll: Span) -> Moment<Mono> {
        let (of, poll) = (i128::from(self.of), poll.units());
        if of <= 1 || poll <= 0 {
            return due;
        }
        let place = poll * (2 * i128::from(self.number) + 1) / (2 * of);
        let late = (due.since_origin().units() - place).rem_euclid(poll);
        if late <= poll / (NEAR * of) { due } else { due + Span::from_units((poll - late).min(poll / LONGEST_DELAY)) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn secs(moment: Moment<Mono>) -> f64 {
        moment.since_origin().as_seconds()
    }

    /// Requests every `poll`, each a millisecond late, from `begin` on.
    fn requests(place: PollPlace, begin: f64, poll: Span) -> Vec<f64> {
        let mut due = Moment::from_origin(Span::from_seconds(begin));
        let mut next = || {
            let left = place.from(due, poll);
            assert!(left >= due && left <= due + Span::from_units(poll.units() / 4));
            due = left + Span::from_millis(1) + poll;
            secs(left)
        };
        (0..40).map(|_| next()).collect()
    }

    #[test]
    fn requests_come_to_their_places_within_a_few_polls_and_stay() {
        let poll = Span::from_secs(16);
        for of in 2..=16 {
            for number in 0..of {
                let left = requests(PollPlace::new(number, of), 1234.5, poll);
                let place = 16.0 * (f64::from(number) + 0.5) / f64::from(of);
                for at in &left[5..] {
                    let off = (at - place + 8.0).rem_euclid(16.0) - 8.0;
                    assert!((-1e-6..16.0 / (4.0 * f64::from(of)) + 1e-6).contains(&off), "{number} of {of}: {off}");
                }
            }
        }
    }

    #[test]
    fn polls_that_are_octaves_apart_do_not_meet() {
        let slow = requests(PollPlace::new(1, 3), 5.0, Span::from_secs(64));
        let fast = requests(PollPlace::new(0, 3), 5.0, Span::from_secs(16));
        let apart = |at: f64| ((at - fast.last().unwrap() + 8.0).rem_euclid(16.0) - 8.0).abs();
        assert!(slow[6..].iter().all(|at| apart(*at) > 1.2), "{slow:?} {fast:?}");
    }

    #[test]
    fn the_only_server_is_asked_when_it_is_due() {
        let due = Moment::from_origin(Span::from_millis(12_345));
        assert_eq!(PollPlace::ALONE.from(due, Span::from_secs(16)), due);
        assert_eq!(PollPlace::new(0, 0).from(due, Span::from_secs(16)), due);
    }
}
