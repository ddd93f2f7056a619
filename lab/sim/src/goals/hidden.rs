//! Goals about a server that lies within what the others can prove.
//!
//! How soon can anyone know? The others' oracle is the clock that they make without the liar, with its error of
//! standard deviation s: a liar that creeps away at the rate r leaves three of these, the false alarm level of the
//! suspicion, after 3 s / r, and shows it when it is next asked, after at most a poll. The liar's own packets are taken
//! as free of noise, so no clock can be as quick as this.

use super::medians::{MedianKey, ScenarioRuns, median};
use super::several::{beliefs, believed_liars, honest, ours};
use super::{Campaign, Goal, GoalFigure, Limit};
use crate::scenario::{FaultSpec, ServerEntry, Tag};
use crate::{RunResult, Scenario, ServerBelief};

/// The false alarm level of the suspicion [standard deviations].
const ALARM: f64 = 3.0;

/// How a liar leaves the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LiarDeparture {
    /// When [s].
    begin: f64,
    /// How fast [s/s]; infinite for a step.
    rate: f64,
    /// How often it is asked [s].
    poll: f64,
}

impl LiarDeparture {
    /// By its first fault.
    fn of(liar: &ServerEntry, scenario: &Scenario) -> Option<Self> {
        let (begin, rate) = match liar.server.fault.first()? {
            FaultSpec::Wrong(wrong) => (wrong.at, f64::INFINITY),
            FaultSpec::Drift(drift) => (drift.at, drift.rate.fraction()),
            _ => return None,
        };
        let poll = liar.poll.unwrap_or(scenario.poll).seconds();
        Some(LiarDeparture { begin: begin.seconds(), rate, poll })
    }

    /// How long the others' oracle needs, given the standard deviation of its error [s].
    fn oracle_needs(&self, deviation: f64) -> f64 {
        ALARM * deviation / self.rate.abs() + self.poll
    }
}

impl Campaign {
    /// The rows about hidden liars.
    pub(super) fn hidden(&self) -> Vec<Goal> {
        let outside = |name: &str, runs: ScenarioRuns| {
            let each = |run: &RunResult| liar_of(name, run).map(|liar| liar.outside_since as f64);
            runs.0.iter().filter_map(each).reduce(f64::max)
        };
        vec![
            Limit::ratio("a server lies within what the others prove: share of them believed at the end", 0.0)
                .at_most(self.worst_tagged(Tag::HiddenLiar, believed_liars)),
            Limit::ratio("the same: time until it is suspect over what the others' oracle needs, worst scenario", 2.0)
                .at_most(self.worst_tagged(Tag::HiddenLiar, |name, runs| self.time_over_oracle(name, runs))),
            Limit::ratio("the same: readings outside the bound after that, worst run", 0.0)
                .at_most(self.worst_tagged(Tag::HiddenLiar, outside)),
            Limit::ratio("the same: share inside the bound from the beginning on, worst seed", 1.0)
                .at_least(self.least_contained(Tag::HiddenLiar, "containment")),
            Limit::ratio("the same: share inside the strict bound, worst seed", 1.0)
                .at_least(self.least_contained(Tag::HiddenLiar, "strict-containment")),
        ]
    }

    /// The median over the seeds; a liar that is believed at the end is suspect no sooner.
    fn time_over_oracle(&self, name: &str, runs: ScenarioRuns) -> Option<f64> {
        let scenario = Scenario::named(name).ok()?;
        let liar = scenario.servers.iter().find(|entry| entry.lies)?;
        let departure = LiarDeparture::of(liar, &scenario)?;
        let without = self.runs(&honest(name))?;
        let ratio = |run: &RunResult| {
            let alone = without.0.iter().find(|other| other.seed == run.seed)?;
            let needed = departure.oracle_needs(ours("rms").of(alone)?);
            let out = liar_of(name, run)?.out_since_s.unwrap_or(run.duration_s);
            Some((out - departure.begin) / needed)
        };
        median(runs.0.iter().filter_map(ratio))
    }

    pub(super) fn least_contained(&self, tag: Tag, figure: &str) -> Option<GoalFigure> {
        let key: MedianKey = ours(figure);
        let least = |runs: ScenarioRuns| runs.0.iter().filter_map(|run| key.of(run)).reduce(f64::min);
        GoalFigure::smallest(self.tagged(tag).filter_map(|(name, runs)| GoalFigure::of(least(runs), name)))
    }
}

/// What our clock thought of the first liar of the scenario of this name.
fn liar_of<'a>(name: &str, run: &'a RunResult) -> Option<&'a ServerBelief> {
    let scenario = Scenario::named(name).ok()?;
    let liar = scenario.servers.iter().find(|entry| entry.lies)?;
    beliefs(run)?.servers.iter().find(|one| one.name == liar.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oracle_needs_its_noise_over_the_creep_and_a_poll() {
        let departure = |name: &str| {
            let scenario = Scenario::named(name).unwrap();
            let liar = scenario.servers.iter().find(|entry| entry.lies).unwrap();
            LiarDeparture::of(liar, &scenario).unwrap()
        };
        let creeps = departure("hidden-liar-creeps");
        assert_eq!(creeps, LiarDeparture { begin: 7200.0, rate: 1e-7, poll: 16.0 });
        assert!((creeps.oracle_needs(1e-6) - 46.0).abs() < 1e-9);
        assert!((departure("hidden-liar-constant").oracle_needs(1e-6) - 16.0).abs() < 1e-9);
        assert!((departure("hidden-liar-runs").oracle_needs(1e-6) - 16.15).abs() < 1e-9);
    }
}
