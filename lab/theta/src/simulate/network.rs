//! How long messages take: links, load, and processing at the receiver.

use super::law::Sampler;
use super::links::Links;
use super::load::HostLoads;
use super::{PreparedScenario, SimulationError};
use crate::faults::FaultPlan;
use ffclock_sim::Random;

/// One end of a link.
#[derive(Clone, Copy)]
pub(super) struct LinkEnd {
    pub(super) identity: u32,
    pub(super) host: u32,
}

/// Draws delays in the order in which it is asked.
pub(super) struct SimulatedNetwork<'a> {
    links: &'a Links,
    self_reception: &'a Sampler,
    service: &'a Sampler,
    load: HostLoads,
    is_idle: bool,
    /// For hosts that are slow.
    plan: &'a FaultPlan,
    random: Random,
}

impl<'a> SimulatedNetwork<'a> {
    pub(super) fn new(scenario: &'a PreparedScenario, seed: u64) -> Result<Self, SimulationError> {
        let load = scenario.load(seed)?;
        Ok(SimulatedNetwork {
            links: &scenario.links,
            self_reception: &scenario.self_reception,
            service: &scenario.service,
            is_idle: load.is_idle(),
            load,
            plan: &scenario.plan,
            random: Random::named(seed, "delays"),
        })
    }

    /// The delay of a message from a machine to itself.
    pub(super) fn self_delay(&mut self) -> u64 {
        self.self_reception.draw(&mut self.random)
    }

    /// The delay of a message that is sent at a time: the wait for load at both hosts, and the link.
    pub(super) fn delay(&mut self, from: LinkEnd, to: LinkEnd, at: u64) -> u64 {
        let delay = if from.identity == to.identity {
            self.self_delay()
        } else {
            self.links.draw(from.identity, to.identity, &mut self.random)
        };
        if self.is_idle {
            return delay;
        }
        let (sender, receiver) = (from.host as usize, to.host as usize);
        let leaves = at + self.load.network_wait(sender, at, &mut self.random);
        let comes = leaves + delay + self.load.network_wait(receiver, leaves, &mut self.random);
        self.load.noticed(receiver, comes) - at
    }

    /// How long a host takes to process a message from a time on.
    #[inline]
    pub(super) fn service(&mut self, host: usize, begins: u64) -> u64 {
        let mut service = self.service.draw(&mut self.random);
        if !self.is_idle {
            service += self.load.processor_wait(host, begins, &mut self.random);
        }
        if !self.plan.slow[host].is_empty() {
            service = (service as f64 * self.plan.slowness(host, begins)) as u64;
        }
        service
    }
}
