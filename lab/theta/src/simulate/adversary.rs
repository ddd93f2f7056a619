//! The chance in faults: what links do to messages, and what faulty processes send.

use crate::faults::{FaultPlan, LinkPassage, Misbehaviour, lies};
use ffclock_sim::Random;

/// Decides about faults in the order in which it is asked.
pub(super) struct Adversary<'a> {
    plan: &'a FaultPlan,
    chance: Random,
    /// What two-faced processes have agreed on.
    conspiracy: u64,
}

impl<'a> Adversary<'a> {
    pub(super) fn new(plan: &'a FaultPlan, seed: u64) -> Self {
        Adversary { plan, chance: Random::named(seed, "chance"), conspiracy: Random::named(seed, "conspiracy").bits() }
    }

    /// Whether all links are sound.
    pub(super) fn leaves_links_alone(&self) -> bool {
        self.plan.links.is_empty()
    }

    pub(super) fn pass(&mut self, ends: [u32; 2], at: u64) -> LinkPassage {
        self.plan.pass(ends, at, &mut self.chance)
    }

    pub(super) fn misbehaviour(&self, process: u32, at: u64) -> Option<Misbehaviour> {
        self.plan.misbehaviour(process as usize, at)
    }

    /// A round that a process replays when it sends `round`.
    pub(super) fn replayed(&mut self, round: u64) -> u64 {
        1 + self.chance.bits() % round
    }

    /// What a two-faced process sends to a machine instead of `round`: offsets to add to it.
    pub(super) fn lies(&self, machine: u32, round: u64) -> &'static [u64] {
        lies(self.conspiracy, machine, round)
    }
}
