//! Which densities there are, and when they learn.

use super::lone_packet::LonePacket;
use crate::LearnedConfig;
use crate::bank::density::{Components, Mixture};
use crate::bank::{Densities, Family, Prediction};
use crate::tuning::bank::{BROAD, SHAPES, STEEP};
use crate::tuning::learned::{
    ALIKE, EAGER, EAGER_ITERATIONS, FAR_BEFORE, ITERATIONS, RARE_SHIFT, RELEARNED_SHIFT, RING, ROUND, SAME_FLOOR,
    SOFT_DECILE,
};
use ffclock_units::Direction;

/// The densities of both families.
#[derive(Clone, Debug)]
pub struct Mixtures {
    /// Steep shapes, for each way.
    edges: [Mixture; 2],
    /// All shapes, for both ways.
    humps: Mixture,
    separate: bool,
}

impl Mixtures {
    /// Mixtures that learn from the last `memory` exchanges.
    fn new(memory: usize, config: &LearnedConfig, components: &Components) -> Self {
        let rows = memory.saturating_mul(2);
        let edges = || Mixture::new(STEEP, if config.directions { memory } else { rows }, components);
        Mixtures {
            edges: [edges(), edges()],
            humps: Mixture::new(components.count(), rows, components),
            separate: config.directions,
        }
    }

    pub fn bytes(&self) -> usize {
        let [forward, backward] = &self.edges;
        forward.bytes() + backward.bytes() + self.humps.bytes()
    }

    /// The present densities, for the families in their order.
    pub fn densities(&self) -> Densities<'_> {
        let [forward, backward] = &self.edges;
        let backward = if self.separate { backward } else { forward };
        [[forward.table(), backward.table()], [self.humps.table(), self.humps.table()]]
    }

    fn each(&mut self, act: impl FnMut(&mut Mixture)) {
        let [forward, backward] = &mut self.edges;
        [forward, backward, &mut self.humps].into_iter().for_each(act);
    }

    fn keep(&mut self, predictions: &[Prediction; 2], components: &Components) {
        for way in Direction::BOTH {
            let [edges, humps] = Family::BOTH.map(|family| predictions[family.index()].cavities[way.index()]);
            let [forward, backward] = &mut self.edges;
            let mixture = if self.separate && way == Direction::Incoming { backward } else { forward };
            mixture.keep(&components.likelihoods(&edges));
            self.humps.keep(&components.likelihoods(&humps));
        }
    }

    /// Takes over what others learned, not what they learned it from.
    pub fn take_over(&mut self, others: &Mixtures, components: &Components) {
        let [forward, backward] = &others.edges;
        let mut others = [forward, backward, &others.humps].into_iter();
        self.each(|mixture| others.next().into_iter().for_each(|other| mixture.take_over(other, components)));
    }

    /// Learns from these exchanges and no others.
    pub fn relearn(&mut self, predictions: &[[Prediction; 2]], components: &Components) {
        self.each(Mixture::forget);
        predictions.iter().for_each(|predictions| self.keep(predictions, components));
        self.each(|mixture| mixture.learn(EAGER_ITERATIONS, components));
    }

    /// How likely exchanges are to one family, as a logarithm.
    pub fn likelihood(&self, predictions: &[[Prediction; 2]], family: Family) -> f64 {
        let densities = self.densities()[family.index()];
        let cavities =
            predictions.iter().flat_map(|predictions| predictions[family.index()].cavities.iter().zip(densities));
        cavities.map(|(cavity, density)| density.weigh(cavity).log).sum()
    }
}

/// The densities, and what teaches them.
#[derive(Clone, Debug)]
pub struct Learning {
    components: Components,
    mixtures: Mixtures,
    observation: u64,
    /// Rare packets hold the floors.
    holds_floors: bool,
    /// Where the last lone packet of each way places the floor.
    shown: [Option<ShownFloor>; 2],
}

/// A floor as a lone packet shows it.
#[derive(Clone, Copy, Debug)]
struct ShownFloor {
    /// us.
    floor: f64,
    /// us^2.
    variance: f64,
}

impl Learning {
    pub fn new(config: &LearnedConfig, components: Components) -> Self {
        Learning {
            mixtures: Mixtures::new(RING, config, &components),
            components,
            observation: 0,
            holds_floors: false,
            shown: [None; 2],
        }
    }

    /// Mixtures to try something with, that learn from [`EAGER`] exchanges, of a short path too.
    pub fn scratch(&self, config: &LearnedConfig) -> Mixtures {
        Mixtures::new((EAGER * SHAPES).div_ceil(BROAD), config, &self.components)
    }

    /// The bytes of its mixtures; the components are shared, and the filter that made them counts them.
    pub fn bytes(&self) -> usize {
        self.mixtures.bytes()
    }

    /// Forgets all exchanges and begins with the prior, for a path of any length.
    pub fn restart(&mut self) {
        self.components = self.components.coarsest();
        self.begin();
    }

    /// Where a round trip, us, is so short that packets may queue less than any component says, learning begins again
    /// with finer ones.
    pub fn refine(&mut self, trip: f64) {
        if let Some(finer) = self.components.finer_for(trip) {
            self.components = finer;
            self.begin();
        }
    }

    /// Begins again with the components for paths of any length where it has finer ones.
    pub fn coarsen(&mut self) {
        if self.components.are_finer() {
            self.restart();
        }
    }

    fn begin(&mut self) {
        self.holds_floors = false;
        self.shown = [None; 2];
        self.forget(STEEP);
    }

    /// Begins again with a prior of this many components for each way.
    fn forget(&mut self, shapes: usize) {
        let components = &self.components;
        self.mixtures.edges.iter_mut().for_each(|mixture| mixture.allow(shapes));
        self.mixtures.humps.allow(components.count());
        self.mixtures.each(|mixture| mixture.restart(components));
        self.observation = 0;
    }

    /// Whether a lone packet shows a floor that is met rarely: steep shapes place the floor of a hump more than their
    /// first decile too high, or a lone packet before showed the same floor, or rare packets hold the floors already.
    /// Until they do, not where both ways wait alike, however often. `floor` is the one that was believed, us.
    pub fn shows_rare_floor(&mut self, lone: &LonePacket, floor: f64) -> bool {
        if !self.holds_floors && self.both_wait_alike(lone) {
            return false;
        }
        let shown = ShownFloor { floor: floor + lone.shift, variance: lone.variance };
        let before = self.shown[lone.way.index()].replace(shown);
        let is_same = before.is_some_and(|before| {
            let apart = before.floor - shown.floor;
            apart * apart <= SAME_FLOOR * (before.variance + shown.variance)
        });
        let density = self.densities()[0][lone.way.index()];
        let is_soft = density.first_decile > SOFT_DECILE * density.median;
        self.holds_floors || (is_soft && (is_same || lone.shift.abs() > RARE_SHIFT * density.first_decile))
    }

    /// Whether a lone packet did not wait for what all others of both ways wait for: it came early beside how they
    /// scatter, and they scatter alike. Such a wait is no queue but, for example, a processor that has to wake. One
    /// packet without it would tear the floors apart; the humps place the time better.
    fn both_wait_alike(&self, lone: &LonePacket) -> bool {
        let [ours, theirs] = [lone.way, lone.way.other()].map(|way| self.densities()[0][way.index()].median);
        let are_alike = theirs < ALIKE * ours && ours < ALIKE * theirs;
        are_alike && lone.shift.abs() > FAR_BEFORE * ours
    }

    /// From here on rare packets hold the floors, so that humps of all shapes may be learned for each way. A floor that
    /// moved far makes what was learned of the hump void.
    pub fn hold_floors(&mut self, lone: &LonePacket) {
        let is_far = lone.shift.abs() > RELEARNED_SHIFT * self.first_decile(lone.way);
        if is_far || !self.holds_floors {
            self.holds_floors = true;
            self.forget(self.components.count());
        }
    }

    /// Whether rare packets hold the floors.
    pub fn holds_floors(&self) -> bool {
        self.holds_floors
    }

    fn first_decile(&self, way: Direction) -> f64 {
        let [edges, _] = self.densities();
        edges[way.index()].first_decile
    }

    /// Whether the densities rest on too few exchanges to be more than what was assumed.
    pub fn is_young(&self) -> bool {
        self.observation < EAGER as u64
    }

    /// What the densities are made of.
    pub fn components(&self) -> &Components {
        &self.components
    }

    /// The mixtures that learn.
    pub fn mixtures(&self) -> &Mixtures {
        &self.mixtures
    }

    /// The present densities, for the families in their order.
    pub fn densities(&self) -> Densities<'_> {
        self.mixtures.densities()
    }

    /// Learns from an exchange: from what was known of it before it was used.
    pub fn take(&mut self, predictions: &[Prediction; 2]) {
        self.mixtures.keep(predictions, &self.components);
        self.observation = self.observation.saturating_add(1);
        if self.observation <= EAGER as u64 {
            self.learn(EAGER_ITERATIONS);
        } else if self.observation.is_multiple_of(ROUND) {
            self.learn(ITERATIONS);
        }
    }

    /// Puts exchanges in place of all that were learned from, and begins from what `others` learned.
    pub fn replace(&mut self, others: &Mixtures, predictions: &[[Prediction; 2]]) {
        self.mixtures.take_over(others, &self.components);
        self.mixtures.relearn(predictions, &self.components);
    }

    fn learn(&mut self, iterations: u32) {
        let components = &self.components;
        self.mixtures.each(|mixture| mixture.learn(iterations, components));
    }
}
