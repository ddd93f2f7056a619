//! Where queueing densities are tabulated, and how they are integrated against a normal density.
//!
//! A queueing time q, in microseconds, is found in the table through the bits of `q + 1`: sixteen cells to each
//! doubling, 1/16 us wide next to zero, where the edge of the density decides, and 3 to 6 % wide far out, up to one
//! second. No logarithm is needed.

use crate::tuning::bank::{FINENESS, OCTAVES, STEP_BITS};
use core::f64::consts::PI;

/// How many cells the grid has; it has one point more.
pub const CELLS: usize = OCTAVES << STEP_BITS;

const PART_BITS: u32 = 52 - STEP_BITS;
const ONE_BITS: u64 = 0x3ff0_0000_0000_0000;

/// Where a queueing time lies in the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellPlace {
    pub cell: usize,
    /// How far into the cell, from 0 to 1.
    pub part: f64,
}

/// The queueing time of a point of the grid, us.
pub fn point(index: usize) -> f64 {
    let octave = (1u64 << (index >> STEP_BITS).min(62)) as f64;
    let step = (index & ((1 << STEP_BITS) - 1)) as f64 / (1u64 << STEP_BITS) as f64;
    octave * (1.0 + step) - 1.0
}

/// The place of a queueing time; `None` for what is negative or beyond a second.
#[inline]
pub fn place(queueing: f64) -> Option<CellPlace> {
    let bits = (queueing + 1.0).to_bits();
    let cell = (bits.wrapping_sub(ONE_BITS) >> PART_BITS) as usize;
    if cell >= CELLS {
        return None;
    }
    let part = f64::from_bits(((bits & ((1 << PART_BITS) - 1)) << STEP_BITS) | ONE_BITS) - 1.0;
    Some(CellPlace { cell, part })
}

/// The cavity of a packet, as in expectation propagation: the normal density of its queueing that a member predicts
/// from everything but the packet, us and us^2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cavity {
    pub mean: f64,
    pub variance: f64,
}

/// How finely to integrate.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    nodes: u32,
    /// How many standard deviations to look at on either side.
    reach: f64,
    /// The products of the equal steps over the whole reach of a normal density of variance one.
    whole: Products,
}

/// A normal density at equal steps is a product of factors that themselves form a product.
#[derive(Clone, Copy, Debug)]
struct Products {
    first: f64,
    factor: f64,
    bend: f64,
}

impl Products {
    /// For a normal density of variance `1 / inverse`, from `deviation` on.
    fn new(deviation: f64, step: f64, inverse: f64) -> Self {
        Products {
            first: libm::exp(-0.5 * deviation * deviation * inverse),
            factor: libm::exp(-(deviation + 0.5 * step) * step * inverse),
            bend: libm::exp(-step * step * inverse),
        }
    }
}

impl Rule {
    /// At least `nodes` over `reach` standard deviations on either side.
    pub fn new(nodes: u32, reach: f64) -> Self {
        let step = 2.0 * reach / f64::from(nodes);
        Rule { nodes, reach, whole: Products::new(0.5 * step - reach, step, 1.0) }
    }
}

/// One node of an integral over q >= 0.
#[derive(Clone, Copy, Debug)]
pub struct GridNode {
    pub place: CellPlace,
    /// q less the mean of the normal density, us.
    pub deviation: f64,
    /// The mass of the normal density that the node stands for.
    pub weight: f64,
}

/// Equal steps from the deviation `first` on.
struct Steps {
    nodes: u32,
    first: f64,
    step: f64,
    scale: f64,
}

impl Cavity {
    /// The same with all times multiplied.
    pub fn scaled(&self, factor: f64) -> Self {
        Cavity { mean: self.mean * factor, variance: self.variance * factor * factor }
    }

    /// Shows the nodes of an integral of the normal density over q >= 0 to `visit`. Equal steps where they are finer
    /// than what a density can do there, the cells of the grid otherwise.
    #[inline(always)]
    pub fn integrate(&self, rule: &Rule, visit: impl FnMut(GridNode)) {
        let deviation = libm::sqrt(self.variance);
        let low = (self.mean - rule.reach * deviation).max(0.0);
        let high = self.mean + rule.reach * deviation;
        if !(high > low && high.is_finite() && deviation > 0.0) {
            return;
        }
        // Finer where the density may fall steeply. Doubled nodes cost less than cells, each of which needs an
        // exponential.
        let nodes = [1, 2, 4].map(|times: u32| rule.nodes.saturating_mul(times));
        let fine = nodes.into_iter().find(|nodes| high - low <= FINENESS * (low + 1.0) * f64::from(*nodes));
        let scale = 1.0 / (libm::sqrt(2.0 * PI) * deviation);
        if let Some(nodes) = fine {
            let step = (high - low) / f64::from(nodes);
            let first = low + 0.5 * step - self.mean;
            let products = if low > 0.0 && nodes == rule.nodes {
                rule.whole
            } else {
                Products::new(first, step, 1.0 / self.variance)
            };
            self.in_steps(Steps { nodes, first, step, scale: step * scale }, products, visit);
        } else {
            self.in_cells(low, high, scale, visit);
        }
    }

    #[inline(always)]
    fn in_steps(&self, steps: Steps, products: Products, mut visit: impl FnMut(GridNode)) {
        let mut deviation = steps.first;
        let mut weight = steps.scale * products.first;
        let mut factor = products.factor;
        for _ in 0..steps.nodes {
            let Some(place) = place(deviation + self.mean) else { return };
            visit(GridNode { place, deviation, weight });
            deviation += steps.step;
            weight *= factor;
            factor *= products.bend;
        }
    }

    fn in_cells(&self, low: f64, high: f64, scale: f64, mut visit: impl FnMut(GridNode)) {
        let first = place(low).map_or(CELLS, |place| place.cell);
        let last = place(high).map_or(CELLS.saturating_sub(1), |place| place.cell);
        for cell in first..=last {
            let (begin, end) = (point(cell).max(low), point(cell.saturating_add(1)).min(high));
            let deviation = 0.5 * (begin + end) - self.mean;
            let mass = (end - begin) * scale * libm::exp(-0.5 * deviation * deviation / self.variance);
            let Some(place) = place(0.5 * (begin + end)) else { return };
            visit(GridNode { place, deviation, weight: mass });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_found_where_it_lies() {
        for index in 0..CELLS {
            let found = place(point(index)).unwrap();
            assert_eq!((found.cell, found.part), (index, 0.0));
            let middle = 0.5 * (point(index) + point(index + 1));
            assert!((place(middle).unwrap().part - 0.5).abs() < 1e-9);
        }
        for outside in [-1e-9, -5.0, point(CELLS), 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(place(outside), None, "{outside}");
        }
    }

    #[test]
    fn both_ways_of_integrating_find_the_mass_of_a_normal_density() {
        for (mean, variance, mass) in
            [(10.0, 1.0, 1.0), (0.0, 1.0, 0.5), (0.0, 1e6, 0.5), (5_000.0, 1e6, 1.0), (-2.0, 1.0, 0.022_750)]
        {
            let mut sum = 0.0;
            Cavity { mean, variance }.integrate(&Rule::new(24, 5.5), |node| sum += node.weight);
            assert!((sum - mass).abs() < 6e-3 * mass, "{mean} {variance}: {sum}");
        }
    }
}
