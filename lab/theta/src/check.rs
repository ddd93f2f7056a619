//! Checking the algorithm against every fault: exploration of all behaviours to a depth, and random adversaries beyond
//! it.
//!
//! Both execute [`Process`](crate::algorithm::Process), the machine that runs live and in simulation. There is no time
//! here: any message may take any time, and a Byzantine process may send anything to any process at any time, which
//! includes everything that the faults of docs/theta-run.md do.
//!
//! Two explorations. [`explore_deliveries`] makes each delivery a step of its own and leaves out nothing but the names
//! of correct processes. [`explore_switches`] makes each switch a step: the messages that a process needs for its next
//! switch come together, right before it, and all others later. docs/theta-run.md proves that this reaches the same
//! rounds and the same sent messages; a test compares the two.

mod campaign;
mod deliveries;
mod report;
mod simulations;
mod switches;
#[cfg(test)]
mod tests;
mod world;

pub use campaign::{AdversaryCampaign, CampaignOutcome};
pub use deliveries::explore_deliveries;
pub use report::{CheckVerdict, Delivery, Exploration, RunWitness, Violation, WitnessStep};
pub use simulations::{SimulationCampaign, SimulationCampaignOutcome};
pub use switches::explore_switches;
pub use world::{CheckBounds, CheckBoundsError, CheckWorld};

/// The limits of an exploration.
pub struct Effort<'a> {
    /// The largest number of states; beyond it the exploration ends unfinished. This bounds its memory.
    pub states_max: usize,
    /// Receives the number of states seen, from time to time.
    pub watch: &'a mut dyn FnMut(usize),
}

impl Effort<'_> {
    /// The number of states between two calls of `watch`.
    const STRIDE: usize = 1 << 12;

    fn is_exhausted(&mut self, states: usize) -> bool {
        if states.is_multiple_of(Self::STRIDE) {
            (self.watch)(states);
        }
        states > self.states_max
    }
}
