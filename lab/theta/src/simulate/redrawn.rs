//! A run with the sizes of another one, and with that one's delays drawn again: each link keeps its law, and nothing
//! else of them.

use super::engine::SimulationEngine;
use super::law::Sampler;
use super::links::Links;
use super::{LoadSpec, Observer, PreparedScenario, ReceiverSpec, SimulationError, SimulationOutcome};
use crate::algorithm::{AlgorithmForm, Quorum};
use crate::faults::FaultPlan;
use crate::length::LENGTH_MAX_PS;
use crate::record::{ProcessId, RunDescription};

/// The delays of a run by sender and receiver, in picoseconds, from broadcast to perception.
#[derive(Clone, Debug)]
pub struct LinkDelays {
    processes: usize,
    by_link: Vec<Vec<u64>>,
}

impl LinkDelays {
    /// None yet.
    pub fn new(processes: u32) -> Self {
        let processes = processes as usize;
        LinkDelays { processes, by_link: vec![Vec::new(); processes * processes] }
    }

    /// A message took this long. Processes that the run does not have are ignored.
    pub fn add(&mut self, sender: ProcessId, receiver: ProcessId, delay_ps: u64) {
        let (sender, receiver) = (sender.index(), receiver.index());
        if sender.max(receiver) < self.processes {
            self.by_link[sender * self.processes + receiver].push(delay_ps.min(LENGTH_MAX_PS));
        }
    }

    /// The law of each link between different processes, and the one of messages to oneself.
    fn into_laws(self) -> Option<(Links, Sampler)> {
        let processes = self.processes;
        let (mut links, mut own) = (Vec::new(), Vec::new());
        for (number, mut delays) in self.by_link.into_iter().enumerate() {
            if number / processes == number % processes {
                own.extend(delays);
            } else {
                delays.sort_unstable();
                links.push((number, delays));
            }
        }
        let mut all: Vec<u64> = links.iter().flat_map(|(_, delays)| delays).copied().collect();
        all.sort_unstable();
        own.sort_unstable();
        if all.is_empty() || own.is_empty() {
            return None;
        }
        Some((Links::drawn_again(processes, all, links), Sampler::Empirical(own.into())))
    }
}

/// A run that can be repeated with other seeds.
pub struct RedrawnRun {
    scenario: PreparedScenario,
}

impl RedrawnRun {
    /// `rounds` rounds of the algorithm with the sizes and the delay D of `run`.
    ///
    /// # Errors
    /// A reason, where the run has no messages of either kind.
    pub fn new(run: &RunDescription, form: AlgorithmForm, delays: LinkDelays, rounds: u64) -> Result<Self, String> {
        let quorum = Quorum::new(run.processes, run.tolerated).map_err(|error| error.to_string())?;
        let (links, self_reception) =
            delays.into_laws().ok_or("the log has no messages whose delays could be drawn again")?;
        let scenario = PreparedScenario {
            quorum,
            form,
            delay: run.delay_ps,
            rounds,
            start_spread: links.typical(),
            gap: 0,
            hosts: run.processes,
            links,
            self_reception,
            // The delays hold the processing.
            service: Sampler::Constant(0),
            plan: FaultPlan::new(&[], run.processes, run.processes)?,
            load: LoadSpec::default(),
            receiver: ReceiverSpec::default(),
        };
        Ok(RedrawnRun { scenario })
    }

    /// Runs with the delays of `seed`.
    ///
    /// # Errors
    /// [`SimulationError::TooManyMessages`].
    pub fn run(&self, seed: u64, observer: &mut impl Observer) -> Result<SimulationOutcome, SimulationError> {
        SimulationEngine::new(&self.scenario, seed, observer)?.run(&mut |_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::Random;

    #[test]
    fn each_of_many_links_keeps_its_law() {
        let processes = 17;
        let delay_ps = |sender: u32, receiver: u32| u64::from(1 + sender * processes + receiver) * 1000;
        let links = || (0..processes).flat_map(|sender| (0..processes).map(move |receiver| (sender, receiver)));
        let mut delays = LinkDelays::new(processes);
        for (sender, receiver) in links() {
            delays.add(ProcessId(sender), ProcessId(receiver), delay_ps(sender, receiver));
        }
        let (laws, _) = delays.into_laws().unwrap();
        let mut random = Random::named(1, "links");
        for (sender, receiver) in links().filter(|(sender, receiver)| sender != receiver) {
            let drawn = laws.draw(sender, receiver, &mut random);
            assert_eq!(drawn, delay_ps(sender, receiver), "from {sender} to {receiver}");
        }
    }
}
