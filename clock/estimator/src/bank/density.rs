//! Queueing densities: mixtures of gamma densities whose weights are learned from the exchanges.
//!
//! An exchange is kept as its likelihoods under every component, each integrated over what was known of the packet's
//! queueing before the packet itself was used. The weights come from expectation maximisation
//! over the ring of these (A. Dempster, N. Laird and D. Rubin, J. Royal Statistical Society B 39, 1977).
//! There are two kinds of mixture. Steep shapes alone, mostly exponentials, put a floor where the density rises and
//! nowhere else. Mixtures with humps fit routed paths, but a hump can take the place of a floor, so the two directions
//! share one.

use super::grid::{CELLS, Cavity, CellPlace, GridNode, Rule, place, point};
use crate::tuning::bank::{
    BROAD, EXPONENTIALS, FINER, GARBAGE, LADDERS, LEARNING_NODES, LEARNING_REACH, LEAST_VARIANCE_LEFT, NARROW_PRIOR,
    NEGLIGIBLE, PSEUDO_COUNTS, SHAPES, SOFT, STEEP, STEEP_PRIOR, WEIGHING_NODES, WEIGHING_REACH,
};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// Sums over components are kept in this many lanes.
const WIDTH: usize = 8;

const _: () = assert!(STEEP.is_multiple_of(WIDTH) && BROAD.is_multiple_of(WIDTH) && SHAPES.is_multiple_of(WIDTH));

/// The density of a gamma law at `q`, per us.
fn gamma(q: f64, shape: f64, mean: f64) -> f64 {
    let rate = shape / mean;
    if q <= 0.0 {
        return if shape > 1.0 { 0.0 } else { rate };
    }
    libm::exp(shape * libm::log(rate) + (shape - 1.0) * libm::log(q) - rate * q - libm::lgamma(shape))
}

/// Every component at every point of the grid; a row holds the components of one point. Those of short paths are the
/// same with all times divided by the fineness; a copy shares the rows.
#[derive(Clone, Debug)]
pub struct Components {
    rows: Arc<[[f32; SHAPES]]>,
    /// How many units of the grid are in a microsecond: a power of two, so that it costs no digit.
    fineness: f64,
    rule: Rule,
}

/// The likelihoods of a packet under every component, per us.
pub type Likelihoods = [f32; SHAPES];

impl Components {
    pub fn new() -> Self {
        let row = |index: usize| {
            let mut row = [0.0; SHAPES];
            let rungs = LADDERS.iter().flat_map(|ladder| {
                let ratio = libm::log(ladder.last / ladder.first) / (ladder.rungs.saturating_sub(1)) as f64;
                (0..ladder.rungs).map(move |rung| (ladder.shape, ladder.first * libm::exp(ratio * rung as f64)))
            });
            for (cell, (shape, mean)) in row.iter_mut().zip(rungs) {
                let density = gamma(point(index), shape, mean);
                *cell = if density < NEGLIGIBLE { 0.0 } else { density as f32 };
            }
            row
        };
        let rows = (0..=CELLS).map(row).collect();
        Components { rows, fineness: 1.0, rule: Rule::new(LEARNING_NODES, LEARNING_REACH) }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.rows)
    }

    /// For a path whose floors add up to `trip`, us: finer than these if packets may queue less there. A sum far below
    /// zero is no short path: it shows stamps that scatter that much.
    pub fn finer_for(&self, trip: f64) -> Option<Self> {
        let finest = FINER.iter().filter(|finer| trip.abs() <= finer.longest_trip).map(|finer| finer.fineness);
        let fineness = finest.fold(self.fineness, f64::max);
        (fineness > self.fineness).then(|| self.with(fineness))
    }

    /// Whether they are for short paths only.
    pub fn are_finer(&self) -> bool {
        self.fineness > 1.0
    }

    /// How many of them a mixture of all has.
    pub fn count(&self) -> usize {
        if self.are_finer() { SHAPES } else { BROAD }
    }

    /// For paths of any length.
    pub fn coarsest(&self) -> Self {
        self.with(1.0)
    }

    fn with(&self, fineness: f64) -> Self {
        Components { rows: Arc::clone(&self.rows), fineness, ..*self }
    }

    /// The likelihoods of a packet before which `cavity` was known; those of components beyond the count are 0.
    pub fn likelihoods(&self, cavity: &Cavity) -> Likelihoods {
        let (mut sums, count) = ([0.0; SHAPES], self.count());
        cavity.scaled(self.fineness).integrate(
            &self.rule,
            |GridNode { place: CellPlace { cell, part }, weight, .. }| {
                debug_assert!(cell < CELLS);
                let Some([low, high, ..]) = self.rows.get(cell..) else { return };
                let (weight, part) = (weight as f32, part as f32);
                for ((sum, &low), &high) in sums.iter_mut().take(count).zip(low).zip(high) {
                    *sum += weight * (low + part * (high - low));
                }
            },
        );
        sums.map(|sum| sum * self.fineness as f32)
    }
}

/// A density on the grid.
#[derive(Clone, Debug)]
pub struct Tabulated {
    /// The density at the beginning of each cell and its change across the cell, per us.
    cells: Box<[[f64; 2]; CELLS]>,
    /// How many units of the grid are in a microsecond.
    fineness: f64,
    rule: Rule,
    /// The queueing that one packet in ten does not exceed, us.
    pub first_decile: f64,
    /// The median queueing, us.
    pub median: f64,
    /// The queueing that one packet in ten exceeds, us.
    pub ninth_decile: f64,
}

/// What a packet says to a model, by the matching of moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The mean queueing less the predicted mean, us.
    pub shift: f64,
    /// The variance of the queueing that is left, us^2.
    pub variance: f64,
    /// The logarithm of the packet's likelihood.
    pub log: f64,
}

impl Tabulated {
    /// Nothing yet: no density anywhere, and quantiles of 1 us.
    pub fn new() -> Self {
        let rule = Rule::new(WEIGHING_NODES, WEIGHING_REACH);
        let cells = Box::new([[0.0; 2]; CELLS]);
        Tabulated { cells, fineness: 1.0, rule, first_decile: 1.0, median: 1.0, ninth_decile: 1.0 }
    }

    #[inline(always)]
    fn at(&self, place: CellPlace) -> f64 {
        debug_assert!(place.cell < CELLS);
        self.cells.get(place.cell).map_or(0.0, |[begin, change]| begin + change * place.part)
    }

    /// The logarithm of the density at `queueing`, with the garbage.
    pub fn log_at(&self, queueing: f64) -> f64 {
        libm::log(place(queueing * self.fineness).map_or(0.0, |place| self.at(place)) + GARBAGE)
    }

    /// Weighs what is predicted with the density.
    pub fn weigh(&self, cavity: &Cavity) -> Evidence {
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        cavity.scaled(self.fineness).integrate(&self.rule, |node| {
            let part = node.weight * self.at(node.place);
            let moved = part * node.deviation;
            mass += part;
            first += moved;
            second += moved * node.deviation;
        });
        let total = mass + GARBAGE;
        let (first, second) = (first / self.fineness, second / (self.fineness * self.fineness));
        let shift = first / total;
        let variance = (second + GARBAGE * cavity.variance) / total - shift * shift;
        Evidence { shift, variance: variance.max(LEAST_VARIANCE_LEFT * cavity.variance), log: libm::log(total) }
    }

    fn fill(&mut self, fineness: f64, densities: impl Iterator<Item = f64> + Clone) {
        self.fineness = fineness;
        let ends = densities.clone().skip(1);
        for ((cell, begin), end) in self.cells.iter_mut().zip(densities).zip(ends) {
            *cell = [begin, end - begin];
        }
        self.first_decile = self.quantile(0.1);
        self.median = self.quantile(0.5);
        self.ninth_decile = self.quantile(0.9);
    }

    fn masses(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.cells.iter().enumerate().map(|(index, [begin, change])| {
            let (low, high) = (point(index) / self.fineness, point(index.saturating_add(1)) / self.fineness);
            (high, (high - low) * (begin + 0.5 * change))
        })
    }

    fn quantile(&self, part: f64) -> f64 {
        let total: f64 = self.masses().map(|(_, mass)| mass).sum();
        let mut sum = 0.0;
        let above = self.masses().find(|(_, mass)| {
            sum += mass;
            sum >= part * total
        });
        debug_assert!(above.is_some(), "a density has quantiles: {total}");
        above.map_or(1.0, |(end, _)| end)
    }
}

/// The prior weights of a mixture of the first `count` components. If there are others than steep ones, half of it lies
/// on these; if there are narrow ones, half of the other half lies on those.
fn prior(count: usize) -> impl Iterator<Item = f32> {
    let steep = if count > STEEP { STEEP_PRIOR } else { 1.0 };
    let narrow = if count > BROAD { (1.0 - steep) * NARROW_PRIOR } else { 0.0 };
    let parts = [
        (EXPONENTIALS, steep * (1.0 - SOFT)),
        (STEEP - EXPONENTIALS, steep * SOFT),
        (BROAD - STEEP, 1.0 - steep - narrow),
        (SHAPES - BROAD, narrow),
    ];
    parts.into_iter().flat_map(|(members, part)| core::iter::repeat_n(part * (1.0 / members as f32), members))
}

/// A mixture that learns its weights.
#[derive(Clone, Debug)]
pub struct Mixture {
    /// How many components of the table it uses.
    count: usize,
    weights: Vec<f32>,
    prior: Vec<f32>,
    sums: Vec<f32>,
    ring: Vec<f32>,
    next: usize,
    filled: usize,
    table: Tabulated,
}

impl Mixture {
    /// A mixture of the first `count` components that learns from the last `rows` packets.
    pub fn new(count: usize, rows: usize, components: &Components) -> Self {
        let prior: Vec<f32> = prior(count).collect();
        let mut mixture = Mixture {
            count,
            weights: prior.clone(),
            sums: prior.clone(),
            prior,
            ring: vec![0.0; count.saturating_mul(rows)],
            next: 0,
            filled: 0,
            table: Tabulated::new(),
        };
        mixture.tabulate(components);
        mixture
    }

    /// Uses the first `count` components from the restart on that follows; of more components it remembers fewer
    /// packets.
    pub fn allow(&mut self, count: usize) {
        debug_assert!(count <= SHAPES && count.is_multiple_of(WIDTH));
        self.count = count;
        self.prior.iter_mut().zip(prior(count)).for_each(|(cell, prior)| *cell = prior);
    }

    pub fn bytes(&self) -> usize {
        let floats = self.ring.capacity() + self.weights.capacity() + self.prior.capacity() + self.sums.capacity();
        floats * size_of::<f32>() + size_of_val(&*self.table.cells)
    }

    pub fn table(&self) -> &Tabulated {
        &self.table
    }

    /// Forgets every packet.
    pub fn restart(&mut self, components: &Components) {
        (self.next, self.filled) = (0, 0);
        self.weights.copy_from_slice(&self.prior);
        self.tabulate(components);
    }

    /// Forgets every packet, and keeps what was learned.
    pub fn forget(&mut self) {
        (self.next, self.filled) = (0, 0);
    }

    /// Forgets every packet, and takes over what another mixture learned of its components.
    pub fn take_over(&mut self, other: &Mixture, components: &Components) {
        self.allow(other.count);
        self.forget();
        for (weight, learned) in self.weights.iter_mut().zip(&other.weights) {
            *weight = *learned;
        }
        self.tabulate(components);
    }

    /// Keeps a packet to learn from.
    pub fn keep(&mut self, likelihoods: &Likelihoods) {
        let begin = self.next.saturating_mul(self.count);
        debug_assert!(begin.saturating_add(self.count) <= self.ring.len());
        let Some(row) = self.ring.get_mut(begin..begin.saturating_add(self.count)) else { return };
        for (cell, likelihood) in row.iter_mut().zip(likelihoods) {
            *cell = if f64::from(*likelihood) < NEGLIGIBLE { 0.0 } else { *likelihood };
        }
        self.next = self.next.saturating_add(1);
        self.filled = self.filled.max(self.next);
        if self.next.saturating_add(1).saturating_mul(self.count) > self.ring.len() {
            self.next = 0;
        }
    }

    /// Runs `iterations` of expectation maximisation over the ring, and tabulates the density.
    pub fn learn(&mut self, iterations: u32, components: &Components) {
        for _ in 0..iterations {
            self.iterate();
        }
        self.tabulate(components);
    }

    #[inline(never)]
    fn iterate(&mut self) {
        self.sums.fill(0.0);
        let filled = self.filled.saturating_mul(self.count);
        debug_assert!(self.count > 0 && filled <= self.ring.len(), "{filled} of {}", self.ring.len());
        let (sums, weights) = (self.sums.as_chunks_mut::<WIDTH>().0, self.weights.as_chunks::<WIDTH>().0);
        for row in self.ring.get(..filled).unwrap_or(&[]).chunks_exact(self.count.max(1)) {
            let row = row.as_chunks::<WIDTH>().0;
            let share = 1.0 / (dot(row, weights) + GARBAGE as f32);
            for (sum, row) in sums.iter_mut().zip(row) {
                *sum = core::array::from_fn(|lane| sum[lane] + row[lane] * share);
            }
        }
        let mut total = 0.0;
        for ((weight, sum), prior) in self.weights.iter_mut().zip(&self.sums).zip(&self.prior) {
            *weight = *weight * sum + PSEUDO_COUNTS * prior;
            total += *weight;
        }
        debug_assert!(total > 0.0 && total.is_finite(), "{total}");
        self.weights.iter_mut().for_each(|weight| *weight /= total);
    }

    fn tabulate(&mut self, components: &Components) {
        let weights = self.weights.get(..self.count).unwrap_or(&self.weights).as_chunks::<WIDTH>().0;
        let at = |row: &[f32; SHAPES]| components.fineness * f64::from(dot(row.as_chunks::<WIDTH>().0, weights));
        self.table.fill(components.fineness, components.rows.iter().map(at));
    }
}

/// The sum of products over as many components as both have.
#[inline(always)]
fn dot(row: &[[f32; WIDTH]], weights: &[[f32; WIDTH]]) -> f32 {
    let mut lanes = [0.0f32; WIDTH];
    for (row, weights) in row.iter().zip(weights) {
        lanes = core::array::from_fn(|lane| lanes[lane] + row[lane] * weights[lane]);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    // Halves onto halves, as registers are added up.
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_is_a_density() {
        let components = Components::new();
        for component in 0..SHAPES {
            let mass: f64 = (0..CELLS)
                .map(|cell| {
                    let ends = [cell, cell + 1].map(|index| f64::from(components.rows[index][component]));
                    0.5 * (ends[0] + ends[1]) * (point(cell + 1) - point(cell))
                })
                .sum();
            assert!((mass - 1.0).abs() < 0.03, "{component}: {mass}");
        }
    }

    #[test]
    fn the_prior_is_shared_among_as_many_components_as_are_allowed() {
        for (count, steep) in [(STEEP, 1.0), (BROAD, STEEP_PRIOR), (SHAPES, STEEP_PRIOR)] {
            let weights: Vec<f32> = prior(count).collect();
            assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{count}");
            assert!((weights[..STEEP].iter().sum::<f32>() - steep).abs() < 1e-5, "{count}");
            assert!(weights[..count].iter().all(|weight| *weight > 0.0) && weights[count..].iter().all(|w| *w == 0.0));
        }
    }

    /// A normal prior N(m, v) against an exponential of rate k in closed form: over all q it is a normal density moved
    /// by k v.
    #[test]
    fn far_from_the_edge_an_exponential_moves_the_mean_by_its_rate() {
        let components = Components::new();
        let mut table = Tabulated::new();
        table.fill(1.0, components.rows.iter().map(|row| f64::from(row[8])));
        let mean = 0.7 * libm::exp(libm::log(60e3 / 0.7) / 23.0 * 8.0);
        let cavity = Cavity { mean: 30.0, variance: 4.0 };
        let evidence = table.weigh(&cavity);
        assert!((evidence.shift + 4.0 / mean).abs() < 5e-3, "{evidence:?}");
        assert!((evidence.variance - 4.0).abs() < 0.02, "{evidence:?}");
    }

    #[test]
    fn what_nothing_explains_changes_nothing() {
        let mixture = Mixture::new(STEEP, 10, &Components::new());
        let cavity = Cavity { mean: -50.0, variance: 1.0 };
        let evidence = mixture.table().weigh(&cavity);
        assert_eq!((evidence.shift, evidence.variance), (0.0, 1.0));
        assert!((evidence.log - libm::log(GARBAGE)).abs() < 1e-9);
    }

    fn learned(scale: f64, components: &Components) -> Mixture {
        let mut mixture = Mixture::new(STEEP, 500, components);
        for step in 0..500 {
            let mean = -5.0 * scale * libm::log((f64::from(step) + 0.5) / 500.0);
            mixture.keep(&components.likelihoods(&Cavity { mean, variance: 0.01 * scale * scale }));
        }
        mixture.learn(40, components);
        mixture
    }

    #[test]
    fn a_mixture_learns_the_scale_of_what_it_sees() {
        let mixture = learned(1.0, &Components::new());
        assert!((mixture.table().median / (5.0 * libm::log(2.0)) - 1.0).abs() < 0.15, "{}", mixture.table().median);
        assert!((mixture.table().ninth_decile / (5.0 * libm::log(10.0)) - 1.0).abs() < 0.15);
    }

    #[test]
    fn short_paths_have_the_same_densities_with_all_times_divided() {
        let coarse = Components::new();
        let Some(fine) = coarse.finer_for(0.5) else { panic!("half a microsecond is a short path") };
        let scale = 1.0 / fine.fineness;
        let (of_long, of_short) = (learned(1.0, &coarse), learned(scale, &fine));
        assert!((of_short.table().median / (scale * of_long.table().median) - 1.0).abs() < 1e-3);
        let cavity = Cavity { mean: 3.0, variance: 2.0 };
        let (long, short) = (of_long.table().weigh(&cavity), of_short.table().weigh(&cavity.scaled(scale)));
        assert!((short.shift / (scale * long.shift) - 1.0).abs() < 1e-3, "{short:?}, {long:?}");
        assert!((short.variance / (scale * scale * long.variance) - 1.0).abs() < 1e-3, "{short:?}, {long:?}");
        assert!((short.log - long.log - libm::log(fine.fineness)).abs() < 1e-3, "{short:?}, {long:?}");
        let apart = of_short.table().log_at(3.0 * scale) - of_long.table().log_at(3.0);
        assert!((apart - libm::log(fine.fineness)).abs() < 1e-3, "{apart}");
        assert!(fine.finer_for(0.5).is_none() && coarse.finer_for(200.0).is_none());
        assert!(coarse.finer_for(-200.0).is_none() && coarse.finer_for(f64::NAN).is_none());
    }
}
