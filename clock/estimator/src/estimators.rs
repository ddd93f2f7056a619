//! Estimators: the guard with one filter behind it, or two.
//!
//! An estimator runs each exchange past the guard and hands what is let in to its filters; what it publishes is a
//! filter's time with the guard's bounds. Guard and filters know nothing of one another but what is passed here.

mod classic;
mod ensemble;
mod guarded;
mod learned;
mod prior;

pub use classic::Classic;
pub use ensemble::{Ensemble, EnsembleMember, MOST_SERVERS};
pub use learned::Learned;

use crate::{Outcome, Summary};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Moment, RateMemory, Span, Tai};

/// An algorithm that turns exchanges into an estimate.
pub trait Estimator {
    /// Takes one exchange, in the order in which the replies arrived, and says how it was used.
    fn update(&mut self, exchange: &Exchange) -> Outcome;

    /// The present estimate; `None` until an exchange was accepted.
    fn estimate(&self) -> Option<Estimate>;

    /// The interval that the exchanges prove to hold the true time at `counter`, whatever any filter believes; `None`
    /// until an exchange was accepted. It grows with the distance from the last exchange that was used.
    fn proven(&self, counter: Counter) -> Option<ProvenInterval>;

    /// The interval that the server's exchanges claim for the true time at `counter`: the proven one or, while the
    /// server contradicts its own past in one exchange after another, what these say. `None` as for `proven`. A vote
    /// among several servers takes this one.
    fn claimed(&self, counter: Counter) -> Option<ProvenInterval>;

    /// The interval that the server votes with at `counter`, where `clocks` servers have an estimate. One that
    /// contradicts itself is judged by its past where there is no other, and by what it says now where others can
    /// contradict it.
    fn ballot(&self, counter: Counter, clocks: usize) -> Option<ProvenInterval> {
        if clocks < 2 { self.proven(counter) } else { self.claimed(counter) }
    }

    /// Figures for people and metrics.
    fn summary(&self) -> Summary;

    /// What is worth keeping across a restart of the program; `None` until the rate was measured.
    fn memory(&self) -> Option<RateMemory>;

    /// Forgets everything but the rate, which becomes a remembered one: the counter's epoch ended, or the server is
    /// another.
    fn restart(&mut self);
}

/// A closed interval of true time, rounded outwards: `earliest <= true time <= latest`.
///
/// It holds as long as the server's root distance and the assumptions about the oscillator do;
/// docs/algorithm/classic.md has the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProvenInterval {
    /// The true time is not before this.
    pub earliest: Moment<Tai>,
    /// The true time is not after this.
    pub latest: Moment<Tai>,
}

impl ProvenInterval {
    /// All times within `bound` of `time`.
    pub fn around(time: Moment<Tai>, bound: Bound) -> Self {
        let reach = bound.as_span();
        ProvenInterval { earliest: time - reach, latest: time + reach }
    }

    /// Whether it can be this time.
    pub fn contains(&self, time: Moment<Tai>) -> bool {
        self.earliest <= time && time <= self.latest
    }

    /// How far the true time is from `time` at most.
    pub fn farthest_from(&self, time: Moment<Tai>) -> Span {
        (self.latest - time).max(time - self.earliest)
    }

    /// What both allow; `None` where they contradict each other.
    pub fn meet(&self, other: &ProvenInterval) -> Option<ProvenInterval> {
        let (earliest, latest) = (self.earliest.max(other.earliest), self.latest.min(other.latest));
        (earliest <= latest).then_some(ProvenInterval { earliest, latest })
    }

    /// How far the two are apart; zero where they meet.
    pub fn gap(&self, other: &ProvenInterval) -> Span {
        (other.earliest - self.latest).max(self.earliest - other.latest).max(Span::ZERO)
    }
}
