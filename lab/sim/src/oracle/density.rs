//! Densities of delays, tabulated, and the densities of their sums. Microseconds.
//!
//! The cells of a table begin at the smallest delay and widen with the distance from it, 32 to an octave: queueing has
//! a sharp edge and a long tail. A node's index is read off the bits of the float, so that a look costs no logarithm.

/// The first cells are 2^-6 us over 32 wide.
const ORIGIN: f64 = 1.0 / 64.0;
/// Mantissa bits that are not part of the index: 32 cells to an octave.
const SHIFT: u32 = 52 - 5;
/// From 2^-6 us to 2^25 us.
const OCTAVES: usize = 31;
/// Nodes of a table.
pub(super) const NODES: usize = OCTAVES * 32 + 1;
/// How far a normal law reaches, in deviations.
const NORMAL_REACH: f64 = 6.0;
/// A delay that no law explains costs this much: the density of anything at all [1/us].
pub(super) const GARBAGE: f64 = 1e-13;

/// A law of nature for one delay, its scale in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Nature {
    Gamma {
        shape: f64,
        scale: f64,
    },
    Weibull {
        shape: f64,
        scale: f64,
    },
    /// Lomax: a power law from zero on.
    Pareto {
        exponent: f64,
        scale: f64,
    },
    Uniform {
        width: f64,
    },
    /// Normal around zero; the only one that can be negative.
    Normal {
        deviation: f64,
    },
}

impl Nature {
    fn density(self, q: f64) -> f64 {
        match self {
            Nature::Gamma { shape, scale } => {
                let u = q / scale;
                libm::exp((shape - 1.0) * libm::log(u) - u - libm::lgamma(shape)) / scale
            }
            Nature::Weibull { shape, scale } => {
                let u = q / scale;
                shape / scale * libm::pow(u, shape - 1.0) * libm::exp(-libm::pow(u, shape))
            }
            Nature::Pareto { exponent, scale } => exponent / scale * libm::pow(1.0 + q / scale, -exponent - 1.0),
            Nature::Uniform { width } => f64::from(u8::from(q < width)) / width,
            Nature::Normal { deviation } => {
                let u = q / deviation - NORMAL_REACH;
                libm::exp(-0.5 * u * u) / (deviation * libm::sqrt(2.0 * core::f64::consts::PI))
            }
        }
    }

    /// What the first cell holds, where a density may be infinite: all of these laws begin as a power.
    fn first_cell(self, width: f64) -> f64 {
        match self {
            Nature::Gamma { shape, scale } => libm::exp(shape * libm::log(width / scale) - libm::lgamma(shape + 1.0)),
            Nature::Weibull { shape, scale } => -libm::expm1(-libm::pow(width / scale, shape)),
            _ => self.density(0.5 * width) * width,
        }
    }

    fn start(self) -> f64 {
        match self {
            Nature::Normal { deviation } => -NORMAL_REACH * deviation,
            _ => 0.0,
        }
    }
}

/// Where a node lies, above the start of its table.
pub(super) fn node(index: usize) -> f64 {
    f64::from_bits(((ORIGIN.to_bits() >> SHIFT) + index as u64) << SHIFT) - ORIGIN
}

/// The cell that `above` the start lies in, and how far through it.
fn cell(above: f64) -> (usize, f64) {
    let bits = (above + ORIGIN).to_bits();
    let index = (bits >> SHIFT) - (ORIGIN.to_bits() >> SHIFT);
    let through = (bits & ((1 << SHIFT) - 1)) as f64 * (1.0 / (1u64 << SHIFT) as f64);
    (index as usize, through)
}

/// A tabulated density.
#[derive(Clone, Debug)]
pub(super) struct DensityTable {
    /// The smallest delay that it holds possible.
    pub(super) start: f64,
    values: Vec<f64>,
    /// The probability of each cell.
    masses: Vec<f64>,
}

impl DensityTable {
    pub(super) fn of(nature: Nature) -> Self {
        let first = node(1);
        let mut values: Vec<f64> = (0..NODES).map(|index| nature.density(node(index))).collect();
        let exact = nature.first_cell(first);
        values[0] = (2.0 * exact / first - values[1]).max(0.0);
        DensityTable::from_values(nature.start(), values)
    }

    fn from_values(start: f64, mut values: Vec<f64>) -> Self {
        let mass =
            |values: &[f64], index: usize| 0.5 * (values[index] + values[index + 1]) * (node(index + 1) - node(index));
        let whole: f64 = (0..NODES - 1).map(|index| mass(&values, index)).sum();
        values.iter_mut().for_each(|value| *value /= whole);
        let masses = (0..NODES - 1).map(|index| mass(&values, index)).collect();
        DensityTable { start, values, masses }
    }

    /// The density at a delay.
    pub(super) fn at(&self, delay: f64) -> f64 {
        let above = delay - self.start;
        // Not a number is no delay either.
        if above.is_nan() || above < 0.0 {
            return 0.0;
        }
        let (index, through) = cell(above);
        match self.values.get(index..index + 2) {
            Some(ends) => ends[0] + (ends[1] - ends[0]) * through,
            None => 0.0,
        }
    }

    /// The density of the sum of two delays. Each half of the integral begins where its first factor may be infinite,
    /// and takes that factor cell by cell as a probability.
    fn plus(&self, other: &DensityTable) -> DensityTable {
        let half = |narrow: &DensityTable, wide: &DensityTable, q: f64| {
            let mut sum = 0.0;
            for (index, mass) in narrow.masses.iter().enumerate() {
                let (begin, end) = (node(index), node(index + 1).min(0.5 * q));
                if begin >= end {
                    break;
                }
                let part = (end - begin) / (node(index + 1) - begin);
                sum += mass * part * wide.at(wide.start + q - 0.5 * (begin + end));
            }
            sum
        };
        let value = |index: usize| {
            // The sum at its very start is that of the first cell.
            let q = node(index).max(0.5 * node(1));
            half(self, other, q) + half(other, self, q)
        };
        DensityTable::from_values(self.start + other.start, (0..NODES).map(value).collect())
    }

    fn mix(&mut self, own: f64, other: &DensityTable, share: f64) {
        let values = self.values.iter().zip(&other.values).map(|(mine, theirs)| own * mine + share * theirs).collect();
        *self = DensityTable::from_values(self.start, values);
    }
}

/// A part of a law: a delay of exactly `start`, or with a density from there on.
#[derive(Clone, Debug)]
struct Component {
    share: f64,
    start: f64,
    table: Option<DensityTable>,
}

/// The law of a delay.
#[derive(Clone, Debug)]
pub(super) struct DelayLaw(Vec<Component>);

impl DelayLaw {
    /// Exactly `delay`.
    pub(super) fn fixed(delay: f64) -> Self {
        DelayLaw(vec![Component { share: 1.0, start: delay, table: None }])
    }

    pub(super) fn of(nature: Nature) -> Self {
        DelayLaw(vec![Component { share: 1.0, start: nature.start(), table: Some(DensityTable::of(nature)) }])
    }

    /// This delay for a share of the packets, none for the others.
    pub(super) fn for_share(mut self, share: f64) -> Self {
        if share < 1.0 {
            self.0.iter_mut().for_each(|component| component.share *= share);
            self.0.push(Component { share: 1.0 - share, start: 0.0, table: None });
        }
        self
    }

    /// The sum of two independent delays.
    pub(super) fn plus(&self, other: &DelayLaw) -> DelayLaw {
        let mut sum = DelayLaw(Vec::new());
        for mine in &self.0 {
            for theirs in &other.0 {
                sum.admit(mine.plus(theirs));
            }
        }
        sum
    }

    fn admit(&mut self, new: Component) {
        let like = |old: &&mut Component| old.start == new.start && old.table.is_some() == new.table.is_some();
        let Some(old) = self.0.iter_mut().find(like) else {
            self.0.push(new);
            return;
        };
        let whole = old.share + new.share;
        if let (Some(mine), Some(theirs)) = (&mut old.table, &new.table) {
            mine.mix(old.share / whole, theirs, new.share / whole);
        }
        old.share = whole;
    }

    /// The density at a delay. Parts without a density have none; the caller adds something continuous first.
    pub(super) fn at(&self, delay: f64) -> f64 {
        let tables = self.0.iter().filter_map(|component| Some((component.share, component.table.as_ref()?)));
        GARBAGE + tables.map(|(share, table)| share * table.at(delay)).sum::<f64>()
    }

    /// Where its densities begin.
    pub(super) fn starts(&self) -> impl Iterator<Item = f64> + '_ {
        self.0.iter().filter(|component| component.table.is_some()).map(|component| component.start)
    }

    /// Whether it has a density everywhere.
    pub(super) fn is_continuous(&self) -> bool {
        self.0.iter().all(|component| component.table.is_some())
    }
}

impl Component {
    fn plus(&self, other: &Component) -> Component {
        let (share, start) = (self.share * other.share, self.start + other.start);
        let moved = |table: &DensityTable, by: f64| Some(DensityTable { start: table.start + by, ..table.clone() });
        let table = match (&self.table, &other.table) {
            (Some(mine), Some(theirs)) => Some(mine.plus(theirs)),
            (Some(mine), None) => moved(mine, other.start),
            (None, Some(theirs)) => moved(theirs, self.start),
            (None, None) => None,
        };
        Component { share, start, table }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exponential(mean: f64) -> DelayLaw {
        DelayLaw::of(Nature::Gamma { shape: 1.0, scale: mean })
    }

    fn assert_near(delay: &DelayLaw, exact: impl Fn(f64) -> f64) {
        for q in [0.003, 0.1, 1.0, 3.7, 10.0, 40.0, 100.0] {
            let (seen, exact) = (delay.at(q), exact(q));
            // Cells are a thirty-second wide, and chords lie above a curve that bends upwards.
            let allowed = if q < 50.0 { 0.01 } else { 0.04 };
            assert!((seen / exact - 1.0).abs() < allowed, "at {q} us: {seen:e}, exactly {exact:e}");
        }
    }

    #[test]
    fn tables_follow_their_laws() {
        assert_near(&exponential(4.0), |q| (-q / 4.0).exp() / 4.0);
        let weibull = Nature::Weibull { shape: 0.6, scale: 100.0 };
        assert_near(&DelayLaw::of(weibull), |q| weibull.density(q));
        assert!(exponential(4.0).at(-1e-9) <= GARBAGE && exponential(4.0).at(f64::NAN) <= GARBAGE);
        assert!(exponential(4.0).at(1e12) <= GARBAGE);
    }

    #[test]
    fn sums_have_their_densities() {
        // Two exponentials of one mean make a gamma law; of two means, a difference of exponentials.
        assert_near(&exponential(4.0).plus(&exponential(4.0)), |q| q / 16.0 * (-q / 4.0).exp());
        let unlike = |q: f64| ((-q / 20.0).exp() - (-q / 4.0).exp()) / 16.0;
        assert_near(&exponential(4.0).plus(&exponential(20.0)), unlike);
        // A share of the packets has more.
        let some = exponential(4.0).plus(&exponential(20.0).for_share(0.25));
        assert_near(&some, |q| 0.75 * (-q / 4.0).exp() / 4.0 + 0.25 * unlike(q));
    }

    #[test]
    fn a_second_route_is_a_second_edge() {
        let flapping = exponential(4.0).plus(&DelayLaw::fixed(120.0).for_share(0.5));
        assert_eq!(flapping.starts().count(), 2);
        assert!(flapping.is_continuous() && !DelayLaw::fixed(1.0).is_continuous());
        let edge = flapping.at(120.001) - flapping.at(119.999);
        assert!((edge - 0.125).abs() < 1e-3, "{edge}");
    }

    #[test]
    fn a_normal_law_lies_around_zero() {
        let normal = DelayLaw::of(Nature::Normal { deviation: 2.0 });
        for q in [-5.0, -2.0, 0.0, 3.0] {
            let exact = (-q * q / 8.0_f64).exp() / (2.0 * (2.0 * core::f64::consts::PI).sqrt());
            assert!((normal.at(q) / exact - 1.0).abs() < 0.02, "{q}");
        }
    }
}
