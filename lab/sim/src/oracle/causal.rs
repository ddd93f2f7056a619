//! The causal oracle from its first packet on: expectation propagation over the first exchanges, then particles.

use super::dynamics::{Dynamics, Normal, dot};
use super::evidence::ObservedExchange;
use super::knowledge::WayLaws;
use super::nodes;
use super::particles::{Laws, Particles};
use super::propagation::{PhaseNode, Setting, filter};
use crate::random::Random;

/// With this many exchanges the skew is known well enough for particles.
const YOUNG: usize = 40;
/// Particles. With 400 or 5000 the spread of the errors is the same to two per cent.
const PARTICLES: usize = 800;

/// From the first exchange after a break of the counter on.
struct Young {
    prior: Normal,
    packets: Vec<PhaseNode>,
    state: Normal,
}

pub(super) struct CausalOracle<'a> {
    dynamics: &'a Dynamics,
    ways: &'a [WayLaws; 2],
    random: Random,
    /// What remains known after a break.
    remembered: Option<Normal>,
    young: Option<Young>,
    particles: Option<Particles<'a>>,
}

impl<'a> CausalOracle<'a> {
    pub(super) fn new(dynamics: &'a Dynamics, ways: &'a [WayLaws; 2], random: Random) -> Self {
        CausalOracle { dynamics, ways, random, remembered: None, young: None, particles: None }
    }

    /// Takes in an exchange.
    pub(super) fn observe(&mut self, observed: ObservedExchange) {
        match &mut self.particles {
            Some(particles) => particles.observe(observed),
            None => self.grow(observed),
        }
    }

    fn grow(&mut self, observed: ObservedExchange) {
        let [sent, received] = nodes(observed);
        let mut young = self.young.take().unwrap_or_else(|| {
            let prior = self.prior(sent.at, observed.lower);
            Young { state: prior.clone(), prior, packets: Vec::new() }
        });
        young.packets.extend([sent, received]);
        let setting = Setting { dynamics: self.dynamics, ways: self.ways, prior: &young.prior };
        young.state = filter(setting, &young.packets);
        if young.packets.len() >= 2 * YOUNG {
            let laws = Laws { dynamics: self.dynamics, ways: self.ways };
            self.particles = Some(Particles::new(laws, &young.state, PARTICLES, self.random.clone()));
        } else {
            self.young = Some(young);
        }
    }

    fn prior(&mut self, at: f64, phase: f64) -> Normal {
        match self.remembered.take() {
            Some(mut state) => {
                state.advance(self.dynamics, at);
                state.lose_phase(phase);
                state
            }
            None => self.dynamics.prior(at, phase),
        }
    }

    /// The mean phase at `at`, not before the last exchange; `None` before the first.
    pub(super) fn phase(&self, at: f64) -> Option<f64> {
        let young = || {
            let mut state = self.young.as_ref()?.state.clone();
            state.advance(self.dynamics, at);
            Some(dot(&self.dynamics.seen(), &state.mean))
        };
        self.particles.as_ref().map(|particles| particles.phase(at)).or_else(young)
    }

    /// The counter stopped or restarted.
    pub(super) fn lose_phase(&mut self) {
        let known = self.particles.take().map(|particles| particles.state());
        let young = self.young.take().map(|young| young.state);
        self.remembered = known.or(young).or(self.remembered.take());
    }
}
