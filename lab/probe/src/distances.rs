//! Delays as distances from the boundary to the driver, on the side of it where most of them lie.

use ffclock_statistics::Sorted;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// The share of delays that lie before the edge of their distribution.
pub const EDGE: f64 = 0.1;
/// The share of delays within the reach of a site.
const REACH: f64 = 0.99;
/// Where delays lie on both sides of the boundary, this share of them comes before what counts as the nearest.
const STRADDLING: f64 = 0.01;
/// Two-sided 95 % of a normal distribution, in standard deviations.
const WIDTH_95: f64 = 1.96;

/// A run is cut into this number of blocks of consecutive packets.
const BLOCKS: usize = 10;
/// In shorter blocks one packet alone decides the 99th percentile.
const BLOCK_LEAST: usize = 100;
/// Student's t, two-sided 95 %, of one block less.
const T_95: f64 = 2.262;

/// The delays of a site, the nearest to the boundary first.
///
/// Most sites lie before the boundary in the order of causes. Their delays are positive, and the smallest belongs to
/// the packet that waited least. The socket's transmit stamp is taken behind the boundary. Its delays are negative, and
/// the smallest belongs to the packet that waited *most*. The sign of the median decides.
///
/// A delay of the other sign is no packet that waited less: nothing waits less than not at all. It is the error of a
/// stamp, and the nearest of many would be the largest error. Then a low percentile counts as the nearest.
#[derive(Clone, Debug)]
pub struct BoundaryDistances {
    /// 1 before the boundary, -1 behind it.
    side: f64,
    count: usize,
    /// The nearest distance [ns].
    nearest: SampledNs,
    /// Distances to the boundary [ns].
    sorted: Sorted,
    /// How far another block of the run may lie from all of it, as the logarithm of a ratio; 0 of too few packets.
    wander: f64,
    /// The same for the median and for the distance between the quartiles [ns].
    middle_wander_ns: (f64, f64),
}

/// A figure from a sample of delays [ns], and the interval in which it could have come out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledNs {
    /// The figure.
    pub ns: f64,
    /// Its interval, ascending.
    pub interval_ns: (f64, f64),
}

impl SampledNs {
    /// How far the interval lies below the figure and above it [ns].
    pub fn sides_ns(self) -> (f64, f64) {
        (self.ns - self.interval_ns.0, self.interval_ns.1 - self.ns)
    }

    /// From one end of the interval to the other [ns].
    pub fn width_ns(self) -> f64 {
        self.interval_ns.1 - self.interval_ns.0
    }

    /// Which of the two is larger; `None` where their intervals overlap.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        if self.interval_ns.1 < other.interval_ns.0 {
            Some(Ordering::Less)
        } else if self.interval_ns.0 > other.interval_ns.1 {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

impl BoundaryDistances {
    /// Of delays in nanoseconds, positive in the order of causes, in the order of the packets; `None` of none.
    pub fn of(delays_ns: &[f64]) -> Option<Self> {
        /// Of n delays drawn again with repetition, the k nearest are all missed with probability (1 - k/n)^n, about
        /// e^-k (the bootstrap in closed form). So the nearest one drawn is at most the fourth nearest in 98 % of all
        /// draws.
        const RANK: usize = 3;
        let delays = Sorted::of(delays_ns.iter().copied());
        let side = if delays.quantile(0.5)? < 0.0 { -1.0 } else { 1.0 };
        let in_order: Vec<f64> = delays_ns.iter().map(|delay| side * delay).collect();
        let mut distances = in_order.clone();
        distances.sort_by(f64::total_cmp);
        let (ns, fourth) = (*distances.first()?, *distances.get(RANK).or(distances.last())?);
        let nearest = SampledNs { ns, interval_ns: (ns, fourth) };
        let mut found = BoundaryDistances {
            side,
            count: distances.len(),
            nearest,
            sorted: Sorted::of(distances),
            wander: 0.0,
            middle_wander_ns: (
                between_blocks(&in_order, |block| block.quantile(0.5)),
                between_blocks(&in_order, |block| Some(block.quantile(0.75)? - block.quantile(0.25)?)),
            ),
        };
        if ns < 0.0 {
            found.nearest = found.at_share(STRADDLING);
        }
        found.wander = wander(&in_order, found.nearest.ns);
        Some(found)
    }

    /// The delay of the packet that waited least, and its 98 % interval. Where delays have both signs, their 1st
    /// percentile from the other side, and its 95 % interval.
    pub fn nearest(&self) -> SampledNs {
        let (low, high) = self.nearest.interval_ns;
        let (low, high) = (self.side * low, self.side * high);
        SampledNs { ns: self.side * self.nearest.ns, interval_ns: (low.min(high), low.max(high)) }
    }

    /// Where the delays begin in bulk [ns]. A clock follows it; one packet alone may be nearer.
    pub fn edge_ns(&self) -> f64 {
        self.side * self.distance(EDGE)
    }

    /// Half of the 95 % interval of [`edge_ns`](Self::edge_ns), by the ranks between which it lies [ns].
    pub fn edge_half_width_ns(&self) -> f64 {
        self.at_share(EDGE).width_ns() / 2.0
    }

    /// How far 99 % of the delays reach beyond the nearest, and a 95 % interval in which that of another run lies while
    /// the rest of the host does what it did. The ranks of the percentile say what chance does to packets that are
    /// independent. They are not: a host changes from second to second, so that blocks of one run differ by more, and
    /// runs do as blocks do. The wider of both intervals counts. What changes in the course of minutes it cannot hold
    /// (advice.rs).
    pub fn reach(&self) -> SampledNs {
        let SampledNs { ns, interval_ns: (low, high) } = self.at_share(REACH);
        let nearest = self.nearest.ns;
        let (ns, (low, high)) = (ns - nearest, (low - nearest, high - nearest));
        let factor = self.wander.exp();
        SampledNs { ns, interval_ns: (low.min(ns / factor), high.max(ns * factor)) }
    }

    /// The median of the delays, with its interval: as that of [`reach`](Self::reach), by ranks and by blocks.
    pub fn median(&self) -> SampledNs {
        let SampledNs { ns, interval_ns } = self.at_share(0.5);
        let (low, high) = widened(ns, interval_ns, self.middle_wander_ns.0);
        let ends = (self.side * low, self.side * high);
        SampledNs { ns: self.side * ns, interval_ns: (ends.0.min(ends.1), ends.0.max(ends.1)) }
    }

    /// The distance between the quartiles, with its interval. The ranks of two quartiles vary together, with a
    /// correlation of one third: p^2 over p (1 - p), p = 1/4 (covariance of two quantiles of one sample).
    pub fn iqr(&self) -> SampledNs {
        let (low, high) = (self.at_share(0.25), self.at_share(0.75));
        let ns = high.ns - low.ns;
        let together = |a: f64, b: f64| (a * a + b * b - a * b * 2.0 / 3.0).sqrt();
        let ((low_down, low_up), (high_down, high_up)) = (low.sides_ns(), high.sides_ns());
        let ranks = (ns - together(low_up, high_down), ns + together(low_down, high_up));
        let (least, most) = widened(ns, ranks, self.middle_wander_ns.1);
        SampledNs { ns, interval_ns: (least.max(0.0), most) }
    }

    /// A distance that this share of delays does not exceed, and its 95 % interval by the ranks between which it lies.
    fn at_share(&self, share: f64) -> SampledNs {
        let around = self.rank_deviation(share);
        let interval_ns = (self.distance(share - around), self.distance(share + around));
        SampledNs { ns: self.distance(share), interval_ns }
    }

    /// The rank of a percentile varies as a binomial does (its normal form).
    fn rank_deviation(&self, share: f64) -> f64 {
        WIDTH_95 * (share * (1.0 - share) / self.count as f64).sqrt()
    }

    fn distance(&self, share: f64) -> f64 {
        let found = self.sorted.quantile(share.clamp(0.0, 1.0));
        debug_assert!(found.is_some(), "there are delays");
        found.unwrap_or(0.0)
    }
}

/// The wider of two intervals: this one, and a figure with `around` on both sides.
fn widened(ns: f64, (low, high): (f64, f64), around: f64) -> (f64, f64) {
    (low.min(ns - around), high.max(ns + around))
}

/// How far the reach of one more block may lie from that of the run. Of the logarithms, since reaches are positive and
/// differ by factors.
fn wander(in_order: &[f64], nearest: f64) -> f64 {
    between_blocks(in_order, |block| block.quantile(REACH).map(|ns| (ns - nearest).max(1.0).ln()))
}

/// How far a figure of one more block may lie from that of the run, by what blocks of the run differ: the prediction
/// interval of a normal distribution. 0 of too few packets.
fn between_blocks(in_order: &[f64], figure: impl Fn(&Sorted) -> Option<f64>) -> f64 {
    let length = in_order.len() / BLOCKS;
    if length < BLOCK_LEAST {
        return 0.0;
    }
    let of_block = |block: &[f64]| figure(&Sorted::of(block.iter().copied()));
    let figures: Vec<f64> = in_order.chunks_exact(length).take(BLOCKS).filter_map(of_block).collect();
    let mean = figures.iter().sum::<f64>() / BLOCKS as f64;
    let variance = figures.iter().map(|figure| (figure - mean).powi(2)).sum::<f64>() / (BLOCKS - 1) as f64;
    T_95 * (variance * (1.0 + 1.0 / BLOCKS as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distances(delays: impl IntoIterator<Item = f64>) -> BoundaryDistances {
        BoundaryDistances::of(&delays.into_iter().collect::<Vec<_>>()).expect("there are delays")
    }

    #[test]
    fn one_late_stamp_behind_the_boundary_is_no_edge() {
        let steady = (0..3000).map(|number| -1_000.0 - f64::from(number % 100));
        let late = distances(steady.clone().chain([-38_000.0]));
        assert_eq!(late.nearest(), SampledNs { ns: -1_000.0, interval_ns: (-1_000.0, -1_000.0) });
        let reach = late.reach();
        assert!((98.0..=99.0).contains(&reach.ns) && reach.interval_ns.1 <= 99.0, "{reach:?}");
        assert!((-1_010.0..=-1_009.0).contains(&late.edge_ns()), "{}", late.edge_ns());
    }

    /// Delays of both signs: one mapped stamp of 3000 that is wrong by most of a microsecond moves nothing.
    #[test]
    fn a_wrong_stamp_beyond_the_boundary_is_not_the_nearest() {
        let steady = |side: f64| (0..3000).map(move |number| side * (80.0 + f64::from(number % 1000) - 100.0));
        for side in [1.0, -1.0] {
            let (clean, wrong) = (distances(steady(side)), distances(steady(side).chain([side * -760.0])));
            let (clean_ns, wrong_ns) = (side * clean.nearest().ns, side * wrong.nearest().ns);
            assert!((-11.0..=-9.0).contains(&clean_ns), "{clean_ns}");
            assert!((clean_ns - wrong_ns).abs() <= 1.0, "{clean_ns} and {wrong_ns}");
            let (low, high) = wrong.nearest().interval_ns;
            assert!(low <= wrong.nearest().ns && wrong.nearest().ns <= high && high - low < 10.0, "{low} {high}");
            assert!((wrong.reach().ns - clean.reach().ns).abs() <= 1.0);
        }
        // All on one side: the smallest decides, whatever it is.
        let one_side = distances((0..3000).map(|number| 80.0 + f64::from(number % 1000)).chain([3.0]));
        assert_eq!(one_side.nearest().ns, 3.0);
    }

    /// Ranks alone, blocks that differ, and delays behind the boundary.
    #[test]
    fn middles_have_their_intervals() {
        let steady = distances((0..900).map(|number| f64::from(number % 100)));
        let (median, iqr) = (steady.median(), steady.iqr());
        assert!((49.0..=50.0).contains(&median.ns) && (49.0..=51.0).contains(&iqr.ns), "{median:?} {iqr:?}");
        let holds = |one: SampledNs| one.interval_ns.0 < one.ns - 2.0 && one.interval_ns.1 > one.ns + 2.0;
        assert!(holds(median) && holds(iqr) && median.width_ns() < 10.0 && iqr.width_ns() < 20.0);
        let behind = distances((0..900).map(|number| -f64::from(number % 100) - 1.0));
        assert!(behind.median().ns == -median.ns - 1.0 && holds(behind.median()) && behind.iqr() == iqr);
        // Every other block of 300 lies 200 ns further away and is three times as wide.
        let far = |block: i32| block % 2;
        let changing =
            (0..3000).map(|number| f64::from(200 * far(number / 300) + (1 + 2 * far(number / 300)) * (number % 100)));
        let changing = distances(changing);
        let (median, iqr) = (changing.median(), changing.iqr());
        assert!(median.width_ns() > 500.0 && iqr.width_ns() > 200.0 && iqr.interval_ns.0 >= 0.0, "{median:?} {iqr:?}");
    }

    #[test]
    fn figures_with_common_intervals_are_not_distinguished() {
        let figure = |ns, low, high| SampledNs { ns, interval_ns: (low, high) };
        assert_eq!(figure(1.0, 0.0, 2.0).compare(figure(3.0, 2.5, 4.0)), Some(Ordering::Less));
        assert_eq!(figure(3.0, 2.5, 4.0).compare(figure(1.0, 0.0, 2.0)), Some(Ordering::Greater));
        assert_eq!(figure(1.0, 0.0, 2.6).compare(figure(3.0, 2.5, 4.0)), None);
    }

    /// Hosts whose delays stretch and shrink every half second, as real ones do. The median of ten runs of three
    /// seconds lies in 95 % of their intervals, of a hundred such hosts together. The ranks alone miss it.
    #[test]
    fn the_interval_of_a_reach_holds_for_another_run() {
        // A random number from its place, between 0 and 1 (SplitMix64).
        let random = |place: u64| {
            let mut bits = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let run = |host: u64, run: u64| {
            let delay = |packet: u64| {
                let stretched = 1.0 + random((host << 40) | (run << 20) | (packet / 500));
                100.0 + stretched * (500.0 - 150.0 * random(!((host << 40) | (run << 20) | packet)).ln())
            };
            distances((0..3000).map(delay))
        };
        let (mut within, mut by_ranks) = (0, 0);
        for host in 0..100 {
            let runs: Vec<BoundaryDistances> = (0..10).map(|number| run(host, number)).collect();
            let middle = Sorted::of(runs.iter().map(|run| run.reach().ns)).quantile(0.5).expect("there are runs");
            let holds = |(low, high): (f64, f64)| (low..=high).contains(&middle);
            within += runs.iter().filter(|run| holds(run.reach().interval_ns)).count();
            let ranks = |run: &BoundaryDistances| BoundaryDistances { wander: 0.0, ..run.clone() }.reach().interval_ns;
            by_ranks += runs.iter().filter(|run| holds(ranks(run))).count();
        }
        assert!(within >= 950 && by_ranks < 900, "{within} of 1000, {by_ranks} by ranks alone");
    }

    /// The same delays on the other side of the boundary: the same distances, the other sign.
    #[test]
    fn both_sides_are_alike() {
        let delays = [300.0, 200.0, 900.0, 250.0, 400.0, 260.0, 5_000.0];
        let (before, behind) = (distances(delays), distances(delays.map(|delay| -delay)));
        assert_eq!(before.reach(), behind.reach());
        assert_eq!(before.edge_ns(), -behind.edge_ns());
        assert_eq!(before.edge_half_width_ns(), behind.edge_half_width_ns());
        assert_eq!(before.nearest(), SampledNs { ns: 200.0, interval_ns: (200.0, 300.0) });
        assert_eq!(behind.nearest(), SampledNs { ns: -200.0, interval_ns: (-300.0, -200.0) });
        assert!(BoundaryDistances::of(&[]).is_none());
    }
}
