//! The chance in faults: what links do to messages, and what faulty processes send.

use crate::faults::{FaultPlan, LinkEffect, Misbehaviour, lies};
use ffclock_sim::Random;

/// Decides about faults in the order in which it is asked.
pub(super) struct Adversary<'a> {
    plan: &'a FaultPlan,
    chance: Random,
    /// What two-faced processes have agreed on.
    conspiracy: u64,
}

/// A message that a link takes.
#[derive(Clone, Copy)]
pub(super) struct Sending {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) at: u64,
    /// How long the link takes without a fault.
    pub(super) delay: u64,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageFate {
    pub(super) arrival: u64,
    pub(super) copies: u64,
}

impl<'a> Adversary<'a> {
    pub(super) fn new(plan: &'a FaultPlan, seed: u64) -> Self {
        Adversary { plan, chance: Random::named(seed, "chance"), conspiracy: Random::named(seed, "conspiracy").bits() }
    }

    /// Whether all links are sound.
    pub(super) fn leaves_links_alone(&self) -> bool {
        self.plan.links.is_empty()
    }

    pub(super) fn pass(&mut self, sending: Sending) -> MessageFate {
        let Sending { from, to, at, delay } = sending;
        let mut passage = MessageFate { arrival: at + delay, copies: 1 };
        for fault in self.plan.links.iter().filter(|fault| fault.concerns(from, to, at)) {
            if !self.chance.chance(fault.probability) {
                continue;
            }
            match fault.effect {
                LinkEffect::Lose => passage.copies = 0,
                LinkEffect::Duplicate => passage.copies *= 2,
                LinkEffect::Hold(hold) => passage.arrival += hold,
                LinkEffect::HoldToEnd => passage.arrival = passage.arrival.max(fault.window.until + delay),
            }
        }
        passage
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
