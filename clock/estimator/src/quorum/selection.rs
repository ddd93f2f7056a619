//! The selected server: the one with the smallest maximum error among those that a majority agrees with, with
//! hysteresis so that two equals do not alternate. Its clock is published where there is no common one
//! ([`crate::Ensemble`]). While no majority agrees, the last clock is carried on.

use super::{Voter, growth_beside};
use crate::ProvenInterval;
use crate::tuning::quorum::MARGIN_SHIFT;
use ffclock_units::{Bound, Estimate, StandardUncertainty, Status};

/// One server's clock at the present moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerClock {
    /// The number of the server.
    pub server: usize,
    /// Its estimate, carried to the present counter reading.
    pub now: Estimate,
    /// The interval that its exchanges claim for the true time at that reading.
    pub claimed: ProvenInterval,
    /// Whether trusted servers decide before all others, and this is one of them.
    pub is_trusted: bool,
    /// Whether it comes before others that are believed.
    pub is_preferred: bool,
}

impl ServerClock {
    /// Whether its interval carries information.
    pub fn has_vote(&self) -> bool {
        self.now.status != Status::Unsynchronised && self.now.bound < Bound::UNKNOWN
    }

    /// Its part in the vote.
    pub fn voter(&self) -> Voter {
        let ServerClock { now, claimed, is_trusted, .. } = *self;
        Voter { interval: claimed, period: now.period, growth: now.bound_growth, is_trusted }
    }
}

/// The clock while the servers disagree: it runs on its oscillator from the last time that a majority agreed, and its
/// bound covers every server's interval, now and as these move away; so does the bound of the difference clock. One
/// server that is right is enough for both to hold. Which of them is right is unknown, so the uncertainty is the bound,
/// and no part of it is known to be common to two readings.
pub fn without_majority(agreed: &Estimate, candidates: &[ServerClock]) -> Estimate {
    let mut held = Estimate { status: Status::Holdover, ..*agreed };
    for ServerClock { now, claimed, .. } in candidates {
        let apart = Bound::of(now.time - agreed.time);
        let claim = Bound::of(claimed.earliest - agreed.time).max(Bound::of(claimed.latest - agreed.time));
        held.bound = held.bound.max(apart + now.bound).max(claim);
        held.bound_growth = held.bound_growth.max(growth_beside(agreed.period, now.period, now.bound_growth));
        let difference = growth_beside(agreed.difference_period, now.difference_period, now.difference_bound);
        held.difference_bound = held.difference_bound.max(difference);
        held.difference_uncertainty = held.difference_bound;
    }
    Estimate {
        uncertainty: StandardUncertainty::of(held.bound.as_span()),
        noise: StandardUncertainty::of(held.bound.as_span()),
        uncertainty_growth: held.bound_growth,
        ..held
    }
}

/// The server to select among those that may be followed, given the one that is selected now.
///
/// A synchronised clock comes before one in holdover, and among these a preferred one before others; among equals the
/// holder keeps its place unless a challenger's bound is smaller by a quarter. A holder that has vanished is replaced
/// at once.
pub fn select(candidates: &[ServerClock], holder: Option<usize>) -> Option<usize> {
    let rank =
        |candidate: &&ServerClock| (core::cmp::Reverse(standing(candidate)), candidate.now.bound, candidate.server);
    let best = candidates.iter().min_by_key(rank)?;
    let held = candidates.iter().find(|candidate| Some(candidate.server) == holder);
    match held {
        Some(held) if standing(held) == standing(best) && !clearly_smaller(best.now.bound, held.now.bound) => holder,
        _ => Some(best.server),
    }
}

/// What counts before the bound.
fn standing(candidate: &ServerClock) -> (u8, bool) {
    (class(candidate.now.status), candidate.is_preferred)
}

/// Warming up counts with synchronised: its bound already says how little it knows.
fn class(status: Status) -> u8 {
    match status {
        Status::Unsynchronised | Status::Holdover => 0,
        Status::WarmingUp | Status::Synchronised => 1,
    }
}

fn clearly_smaller(challenger: Bound, held: Bound) -> bool {
    let held = held.as_span().units();
    challenger.as_span().units() < held - (held >> MARGIN_SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Counter, GrowthRate, Moment, Period, Rate, Span};

    fn candidate(server: usize, micros: i64, status: Status) -> ServerClock {
        of(server, estimate(0, micros, status))
    }

    fn of(server: usize, now: Estimate) -> ServerClock {
        let claimed = ProvenInterval::around(now.time, now.bound);
        ServerClock { server, now, claimed, is_trusted: false, is_preferred: false }
    }

    /// An estimate at the counter's 0, `offset` from the origin and with a bound of `bound` [us].
    fn estimate(offset: i64, bound: i64, status: Status) -> Estimate {
        let period = Period::from_hertz(1e9).unwrap();
        let bound_growth = GrowthRate::of(Rate::from_ppm(1.0));
        Estimate {
            counter: Counter::from_raw(0),
            time: Moment::from_origin(Span::from_micros(offset)),
            period,
            uncertainty: StandardUncertainty::ZERO,
            noise: StandardUncertainty::ZERO,
            uncertainty_growth: bound_growth,
            bound: Bound::of(Span::from_micros(bound)),
            bound_growth,
            difference_period: period,
            difference_bound: bound_growth,
            difference_uncertainty: bound_growth,
            status,
        }
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
    fn a_preferred_server_comes_first_as_long_as_it_answers() {
        let preferred = |status| ServerClock { is_preferred: true, ..candidate(0, 900, status) };
        let best = candidate(1, 10, Status::Synchronised);
        assert_eq!(select(&[preferred(Status::Synchronised), best], Some(1)), Some(0));
        assert_eq!(select(&[preferred(Status::Holdover), best], Some(0)), Some(1));
        let rival = ServerClock { is_preferred: true, ..best };
        assert_eq!(select(&[preferred(Status::Synchronised), rival], Some(0)), Some(1));
    }

    #[test]
    fn a_server_that_never_answers_is_not_kept() {
        // Lesson of the original: a preferred server stuck at one that never answers.
        let lost = [candidate(0, 10, Status::Holdover), candidate(1, 900, Status::Synchronised)];
        assert_eq!(select(&lost, Some(0)), Some(1));
        assert_eq!(select(&[], Some(3)), None);
    }

    #[test]
    fn without_a_majority_the_bound_covers_every_server_from_now_on() {
        let agreed = estimate(0, 10, Status::Synchronised);
        let mut fast = estimate(50_000, 5, Status::Synchronised);
        fast.period = fast.period.stretched(Rate::from_ppm(20.0));
        let servers = [candidate(0, 30, Status::Synchronised), of(1, fast)];
        let held = without_majority(&agreed, &servers);
        assert_eq!((held.status, held.time), (Status::Holdover, agreed.time));
        for ticks in [0, 20_000_000_000_i64] {
            let later = Counter::from_raw(0) + ffclock_units::Ticks::from_raw(ticks);
            let held = held.carried_to(later);
            let held = ProvenInterval::around(held.time, held.bound);
            for server in &servers {
                let own = server.now.carried_to(later);
                let own = ProvenInterval::around(own.time, own.bound);
                assert!(held.contains(own.earliest) && held.contains(own.latest), "{held:?} {own:?}");
            }
        }
        assert!(held.difference_bound >= GrowthRate::of(Rate::from_ppm(1.0)));
        assert_eq!((held.uncertainty.as_span(), held.noise.as_span()), (held.bound.as_span(), held.bound.as_span()));
        assert_eq!(without_majority(&agreed, &[]).bound, agreed.bound);
    }
}
