//! The account of whom a clock of several servers believed.

use crate::result::{BeliefResult, ServerBelief};
use crate::scenario::Scenario;
use crate::several::{Credence, SetStep};
use ffclock_units::Span;

/// What a clock thought of one server, in readings.
#[derive(Clone, Debug, Default)]
struct Votes {
    name: String,
    believed: u64,
    suspect: u64,
    undecided: u64,
    disbelieved: u64,
    /// Since when it has not been believed, and the readings since then that were outside the clock's bound.
    out_since: Option<Span>,
    outside_since: u64,
}

/// Over the whole time of the statistics.
#[derive(Clone, Debug)]
pub(crate) struct BeliefAccount {
    from: Span,
    readings: u64,
    servers: Vec<Votes>,
    changes: u64,
    largest: Span,
    largest_over_uncertainty: f64,
}

impl BeliefAccount {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let votes = |name: &str| Votes { name: name.to_owned(), ..Votes::default() };
        BeliefAccount {
            from: scenario.from.0,
            readings: 0,
            servers: scenario.servers.iter().map(|entry| votes(&entry.name)).collect(),
            changes: 0,
            largest: Span::ZERO,
            largest_over_uncertainty: 0.0,
        }
    }

    /// A clock was read that thinks this of each server, or that cannot choose. `is_outside`: its bound did not hold
    /// the truth.
    pub(crate) fn note(&mut self, (now, is_outside): (Span, bool), credence: impl Fn(usize) -> Option<Credence>) {
        for (index, votes) in self.servers.iter_mut().enumerate() {
            let Some(credence) = credence(index) else { return };
            votes.out_since = match credence {
                Credence::Believed => None,
                _ => votes.out_since.or(Some(now)),
            };
            votes.outside_since = match votes.out_since {
                None => 0,
                Some(_) => votes.outside_since + u64::from(is_outside),
            };
            if now >= self.from {
                votes.count(credence);
            }
        }
        self.readings += u64::from(now >= self.from);
    }

    /// The set of believed servers changed.
    pub(crate) fn note_step(&mut self, step: SetStep, now: Span) {
        if now >= self.from {
            self.changes += 1;
            self.largest = self.largest.max(step.size);
            self.largest_over_uncertainty = self.largest_over_uncertainty.max(step.over_uncertainty);
        }
    }

    /// `None` of a clock that cannot choose.
    pub(crate) fn result(self) -> Option<BeliefResult> {
        if self.readings == 0 || self.servers.is_empty() {
            return None;
        }
        let share = |count: u64| count as f64 / self.readings as f64;
        let server = |votes: Votes| ServerBelief {
            believed: share(votes.believed),
            suspect: share(votes.suspect),
            undecided: share(votes.undecided),
            disbelieved: share(votes.disbelieved),
            out_since_s: votes.out_since.map(Span::as_seconds),
            outside_since: votes.outside_since,
            name: votes.name,
        };
        Some(BeliefResult {
            servers: self.servers.into_iter().map(server).collect(),
            changes: self.changes,
            largest_step_s: self.largest.as_seconds(),
            largest_step_over_uncertainty: self.largest_over_uncertainty,
        })
    }
}

impl Votes {
    fn count(&mut self, credence: Credence) {
        match credence {
            Credence::Unknown => {}
            Credence::Believed => self.believed += 1,
            Credence::Suspect => self.suspect += 1,
            Credence::Undecided => self.undecided += 1,
            Credence::Disbelieved => self.disbelieved += 1,
        }
    }
}
