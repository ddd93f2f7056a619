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
    /// Of delays in nanoseconds, positive in the order of causes; `None` of none.
    pub fn of(delays_ns: &[f64]) -> Option<Self> {
        /// Of n delays drawn again with repetition, the k nearest are all missed with probability (1 - k/n)^n, about
        /// e^-k (the bootstrap in closed form). So the nearest one drawn is at most the fourth nearest in 98 % of all
        /// draws.
        const RANK: usize = 3;
        let delays = Sorted::of(delays_ns.iter().copied());
        let side = if delays.quantile(0.5)? < 0.0 { -1.0 } else { 1.0 };
        let mut distances: Vec<f64> = delays_ns.iter().map(|delay| side * delay).collect();
        distances.sort_by(f64::total_cmp);
        let (ns, fourth) = (*distances.first()?, *distances.get(RANK).or(distances.last())?);
        let nearest = SampledNs { ns, interval_ns: (ns, fourth) };
        let mut found = BoundaryDistances { side, count: distances.len(), nearest, sorted: Sorted::of(distances) };
        if ns < 0.0 {
            found.nearest = found.at_share(STRADDLING);
        }
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

    /// How far 99 % of the delays reach beyond the nearest, and the 95 % interval by the ranks between which that lies.
    pub fn reach(&self) -> SampledNs {
        let SampledNs { ns, interval_ns: (low, high) } = self.at_share(REACH);
        let nearest = self.nearest.ns;
        SampledNs { ns: ns - nearest, interval_ns: (low - nearest, high - nearest) }
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

    #[test]
    fn figures_with_common_intervals_are_not_distinguished() {
        let figure = |ns, low, high| SampledNs { ns, interval_ns: (low, high) };
        assert_eq!(figure(1.0, 0.0, 2.0).compare(figure(3.0, 2.5, 4.0)), Some(Ordering::Less));
        assert_eq!(figure(3.0, 2.5, 4.0).compare(figure(1.0, 0.0, 2.0)), Some(Ordering::Greater));
        assert_eq!(figure(1.0, 0.0, 2.6).compare(figure(3.0, 2.5, 4.0)), None);
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
