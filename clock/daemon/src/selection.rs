//! Which server's clock is published: the one with the smallest maximum error, with hysteresis so that two equals do not alternate.

use ffclock_units::{Bound, Status};

/// One server's clock at the present moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Which server.
    pub(crate) server: usize,
    /// The largest possible error now.
    pub(crate) bound: Bound,
    /// How far it may be trusted.
    pub(crate) status: Status,
}

/// A challenger must be better by this share of the holder's bound: 1/4.
const MARGIN_SHIFT: u32 = 2;

/// The server to publish, given the one that is published now.
///
/// A synchronised clock comes before one that runs free; among equals the holder keeps its place unless a challenger's bound is smaller
/// by a quarter. A holder that has vanished is replaced at once.
pub(crate) fn select(candidates: &[Candidate], holder: Option<usize>) -> Option<usize> {
    let usable = candidates.iter().filter(|candidate| candidate.status != Status::Unsynchronised);
    let best = usable
        .min_by_key(|candidate| (std::cmp::Reverse(class(candidate.status)), candidate.bound, candidate.server))?;
    let held = candidates.iter().find(|candidate| Some(candidate.server) == holder);
    match held {
        Some(held) if class(held.status) == class(best.status) && !clearly_smaller(best.bound, held.bound) => holder,
        _ => Some(best.server),
    }
}

/// Warming up counts with synchronised: its bound already says how little it knows.
fn class(status: Status) -> u8 {
    match status {
        Status::Unsynchronised => 0,
        Status::Holdover => 1,
        Status::WarmingUp | Status::Synchronised => 2,
    }
}

fn clearly_smaller(challenger: Bound, held: Bound) -> bool {
    let held = held.as_span().units();
    challenger.as_span().units() < held - (held >> MARGIN_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    fn candidate(server: usize, micros: i64, status: Status) -> Candidate {
        Candidate { server, bound: Bound::of(Span::from_micros(micros)), status }
    }

    #[test]
    fn the_smallest_bound_wins() {
        let three = [
            candidate(0, 90, Status::Synchronised),
            candidate(1, 40, Status::Synchronised),
            candidate(2, 60, Status::WarmingUp),
        ];
        assert_eq!(select(&three, None), Some(1));
    }

    #[test]
    fn equals_do_not_alternate() {
        let two = [candidate(0, 100, Status::Synchronised), candidate(1, 80, Status::Synchronised)];
        assert_eq!(select(&two, Some(0)), Some(0));
        assert_eq!(select(&two, Some(1)), Some(1));
        let better = [candidate(0, 100, Status::Synchronised), candidate(1, 70, Status::Synchronised)];
        assert_eq!(select(&better, Some(0)), Some(1));
    }

    #[test]
    fn a_server_that_never_answers_is_not_kept() {
        // Lesson of the original: a preferred server stuck at one that never answers.
        let two = [candidate(0, 10, Status::Unsynchronised), candidate(1, 900, Status::Synchronised)];
        assert_eq!(select(&two, Some(0)), Some(1));
        let lost = [candidate(0, 10, Status::Holdover), candidate(1, 900, Status::Synchronised)];
        assert_eq!(select(&lost, Some(0)), Some(1));
        assert_eq!(select(&[candidate(0, 10, Status::Unsynchronised)], Some(0)), None);
        assert_eq!(select(&[], Some(3)), None);
    }
}
