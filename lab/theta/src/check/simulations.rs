//! Simulated runs of many seeds, each held to the rules of the algorithm by the analysis of what happened.

use crate::analysis::{Options, ThetaReport};
use crate::simulate::{CollectedEvents, Simulation, SimulationError, Spec};
use serde::Serialize;
use std::path::Path;

/// Examples of broken rules that are kept.
const EXAMPLES_MAX: usize = 4;

/// What is run.
#[derive(Clone, Debug)]
pub struct SimulationCampaign {
    /// The scenario.
    pub spec: Spec,
    /// The seed. Run i uses seed + i, so that any run can be repeated alone.
    pub seed: u64,
}

/// What the simulated runs showed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SimulationCampaignOutcome {
    /// Runs made.
    pub runs: u64,
    /// Messages in all of them.
    pub messages: u64,
    /// Switches that were checked.
    pub switches: u64,
    /// Runs in which a correct process stood still.
    pub stopped: u64,
    /// Runs that break the rules of the algorithm.
    pub broken: u64,
    /// The seed of the first bad run, and what it broke (nothing if it stopped).
    pub first_bad: Option<(u64, Vec<String>)>,
}

impl SimulationCampaignOutcome {
    /// Whether all went well.
    pub fn is_clean(&self) -> bool {
        self.stopped == 0 && self.broken == 0
    }
}

impl SimulationCampaign {
    /// Makes the `number`-th run and adds it to `outcome`.
    ///
    /// # Errors
    /// [`SimulationError`] for an impossible scenario.
    pub fn run(&self, number: u64, outcome: &mut SimulationCampaignOutcome) -> Result<(), SimulationError> {
        let seed = self.seed.wrapping_add(number);
        let simulation = Simulation::new(&self.spec, Path::new("."), seed)?;
        let mut events = CollectedEvents::default();
        let ended = simulation.run(&mut events, &mut |_| ())?;
        let run = simulation.description();
        let tally = events.analysed(&run, Options::default());
        let tally = tally.map_err(|error| SimulationError::Sense(error.to_string()))?;
        let report = ThetaReport::new(&run, &tally, &[]);
        let is_broken = !report.conformance.kept || !report.whole;
        outcome.runs += 1;
        outcome.messages += ended.perceived;
        outcome.switches += report.conformance.switches;
        outcome.stopped += u64::from(!ended.unfinished.is_empty());
        outcome.broken += u64::from(is_broken);
        if (is_broken || !ended.unfinished.is_empty()) && outcome.first_bad.is_none() {
            let said = report.conformance.examples.into_iter().chain(report.remarks).take(EXAMPLES_MAX);
            outcome.first_bad = Some((seed, said.collect()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign(scenario: &str, runs: u64) -> SimulationCampaignOutcome {
        let campaign = SimulationCampaign { spec: Spec::parse(scenario).unwrap(), seed: 0 };
        let mut outcome = SimulationCampaignOutcome::default();
        (0..runs).for_each(|number| campaign.run(number, &mut outcome).unwrap());
        outcome
    }

    /// The defaults at all sizes of the paper and beyond it.
    #[test]
    fn default_simulations_keep_the_rules() {
        for (processes, tolerated) in [(4u64, 1), (7, 2), (7, 1), (10, 1)] {
            let outcome = campaign(&format!("n = {processes}\nf = {tolerated}\nrounds = 5"), 500);
            assert!(outcome.is_clean(), "n = {processes}, f = {tolerated}: {:?}", outcome.first_bad);
            assert!(outcome.switches >= 500 * 4 * processes, "{outcome:?}");
        }
    }

    /// Without the messages of those it needs, a run stops, and the campaign says in which seed.
    #[test]
    fn a_run_that_stops_is_counted() {
        let cut = "rounds = 20\n[[fault]]\nkind = \"link-loss\"\nprobability = 1.0";
        let outcome = campaign(cut, 3);
        assert!(!outcome.is_clean() && outcome.stopped == 3, "{outcome:?}");
        assert_eq!(outcome.first_bad.map(|(seed, _)| seed), Some(0));
    }
}
