//! Which densities there are, and when they learn.

use super::bank::{Densities, Family, Told};
use super::density::{Components, Mixture, SHAPES, STEEP};
use super::grid::Cavity;
use super::group::Way;
use crate::LearnedConfig;

/// How many exchanges are learned from.
const MEMORY: usize = 400;

/// Every one of the first exchanges is learned from at once.
const EAGER: u64 = 40;
const EAGER_ITERATIONS: u32 = 4;

/// Afterwards one round of learning every so many exchanges.
const ROUND: u64 = 16;
const ITERATIONS: u32 = 2;

/// The densities of both families.
#[derive(Clone, Debug)]
pub struct Learning {
    components: Components,
    /// Steep shapes, for each way.
    edges: [Mixture; 2],
    /// All shapes, for both ways.
    humps: Mixture,
    separate: bool,
    taken: u64,
}

impl Learning {
    pub fn new(config: &LearnedConfig) -> Self {
        let components = Components::new();
        let rows = MEMORY.saturating_mul(2);
        let edges = || Mixture::new(STEEP, if config.directions { MEMORY } else { rows }, &components);
        Learning {
            edges: [edges(), edges()],
            humps: Mixture::new(SHAPES, rows, &components),
            components,
            separate: config.directions,
            taken: 0,
        }
    }

    pub fn bytes(&self) -> usize {
        let [forward, backward] = &self.edges;
        self.components.bytes() + forward.bytes() + backward.bytes() + self.humps.bytes()
    }

    /// Forgets all exchanges and begins with the prior.
    pub fn restart(&mut self) {
        let [forward, backward] = &mut self.edges;
        for mixture in [forward, backward, &mut self.humps] {
            mixture.restart(&self.components);
        }
        self.taken = 0;
    }

    /// Whether the densities rest on too few exchanges to be more than what was assumed.
    pub fn is_young(&self) -> bool {
        self.taken < EAGER
    }

    /// The present densities, for the families in their order.
    pub fn densities(&self) -> Densities<'_> {
        let [forward, backward] = &self.edges;
        let backward = if self.separate { backward } else { forward };
        [[forward.table(), backward.table()], [self.humps.table(), self.humps.table()]]
    }

    /// Learns from an exchange: from what was known of it before it was used.
    pub fn take(&mut self, told: &[Told; 2]) {
        for way in Way::BOTH {
            let [edges, humps] = Family::BOTH.map(|family| told[family.index()].cavities[way.index()]);
            self.keep(way, &edges, &humps);
        }
        self.taken = self.taken.saturating_add(1);
        if self.taken <= EAGER {
            self.learn(EAGER_ITERATIONS);
        } else if self.taken.is_multiple_of(ROUND) {
            self.learn(ITERATIONS);
        }
    }

    fn keep(&mut self, way: Way, edges: &Cavity, humps: &Cavity) {
        let likelihoods = self.components.likelihoods(edges);
        let [forward, backward] = &mut self.edges;
        if self.separate && way == Way::Backward { backward } else { forward }.keep(&likelihoods);
        self.humps.keep(&self.components.likelihoods(humps));
    }

    fn learn(&mut self, iterations: u32) {
        let [forward, backward] = &mut self.edges;
        for mixture in [forward, backward, &mut self.humps] {
            mixture.learn(iterations, &self.components);
        }
    }
}
