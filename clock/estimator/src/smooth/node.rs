//! What is kept of a recording: an exchange becomes a node, and a stretch without a new beginning a segment.

use super::MICRO;
use crate::bank::Densities;
use crate::bank::density::Tabulated;
use crate::bank::group::Begin;
use crate::bank::measurement::Measurement;
use crate::bank::revision::{BurstVariance, Change, Revision};
use crate::frame::Frame;
use crate::tuning::smooth::{BLOCK, NEAR_FLOOR};
use alloc::vec::Vec;
use ffclock_units::{Counter, Direction, Estimate, Period};

/// The clock as it was published right after an exchange, us over the frame's line.
#[derive(Clone, Copy, Debug)]
pub struct Causal {
    pub theta: f64,
    /// Of what exchanges show: the smoother has no more.
    pub uncertainty: f64,
    pub bound: f64,
    /// Relative to the nominal rate, ppm.
    pub rate: f64,
}

impl Causal {
    pub fn new(estimate: &Estimate, counter: Counter, frame: &Frame, nominal: Period) -> Self {
        let at = estimate.at(counter);
        Causal {
            theta: frame.height(counter, at.time) / MICRO,
            uncertainty: at.noise.as_seconds() / MICRO,
            bound: at.bound.as_seconds() / MICRO,
            rate: estimate.period.relative_to(nominal).as_ppm(),
        }
    }
}

/// A floor that moved.
#[derive(Clone, Copy, Debug)]
pub struct FloorMove {
    pub way: Direction,
    /// How far, us.
    pub shift: f64,
    /// The variance of the new floor, us^2.
    pub variance: f64,
    /// The node at which the path was left that has come back now.
    pub back_to: Option<usize>,
}

/// What is believed to have happened between the node before and this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    /// The floors that moved, for each way.
    pub floors: [Option<FloorMove>; 2],
    /// The variances that theta and the rate gained.
    pub burst: Option<BurstVariance>,
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub counter: Counter,
    /// The position in the frame, s.
    pub x: f64,
    /// Since the node before, s.
    pub interval: f64,
    /// The two packets, unless they are not to be believed.
    pub measurements: Option<[Measurement; 2]>,
    pub causal: Causal,
    pub changes: Changes,
}

/// A stretch in which the time is continuous.
#[derive(Clone, Debug)]
pub struct Segment {
    pub epoch: usize,
    pub frame: Frame,
    pub begin: Begin,
    pub nodes: Vec<Node>,
    /// The floors that were left, for each way: relative to the first one, us, and at which node.
    pub left: [Vec<(f64, usize)>; 2],
    /// The total move of each floor, us.
    pub moved: [f64; 2],
    /// What the causal filter had learned of queueing by the end of each block, by family and way.
    pub learned: Vec<[[Tabulated; 2]; 2]>,
}

impl Segment {
    pub fn new(epoch: usize, frame: Frame, begin: Begin) -> Self {
        let (nodes, learned, left) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        Segment { epoch, frame, begin, nodes, left, moved: [0.0; 2], learned }
    }

    /// The last block is what the causal filter knows now.
    pub fn note_densities(&mut self, densities: Densities<'_>) {
        let densities = densities.map(|family| family.map(Tabulated::clone));
        let block = self.nodes.len().saturating_sub(1) / BLOCK;
        match self.learned.get_mut(block) {
            Some(cell) => *cell = densities,
            None => self.learned.push(densities),
        }
    }

    /// Notes a change where it happened: before the last few exchanges that were used.
    pub fn note(&mut self, revision: &Revision) {
        let since = match revision {
            Revision::Floor(change) => change.since,
            Revision::NoiseBurst { since, .. } => *since,
            // A smoother, which sees the whole recording, sees such a floor anyway.
            Revision::UnseenFloor { .. } | Revision::RareFloor(_) | Revision::Departure(_) => return,
        };
        let used = self.nodes.iter().enumerate().rev().filter(|(_, node)| node.measurements.is_some());
        let Some((index, _)) = used.take(since).last() else { return };
        let departure = match revision {
            Revision::Floor(change) => Some(self.depart(change, index)),
            Revision::NoiseBurst { .. }
            | Revision::UnseenFloor { .. }
            | Revision::RareFloor(_)
            | Revision::Departure(_) => None,
        };
        debug_assert!(index < self.nodes.len());
        let Some(node) = self.nodes.get_mut(index) else { return };
        match (revision, departure) {
            (_, Some(departure)) => node.changes.floors[departure.way.index()] = Some(departure),
            (Revision::NoiseBurst { gained, .. }, _) => node.changes.burst = Some(*gained),
            _ => {}
        }
    }

    /// Remembers the floor that is left at a node, and recognises the one that comes back.
    fn depart(&mut self, change: &Change, index: usize) -> FloorMove {
        let way = change.way.index();
        let (left, level) = (self.moved[way], self.moved[way] + change.shift);
        let near = libm::sqrt(change.variance) + NEAR_FLOOR;
        let distance = |known: &&(f64, usize)| (known.0 - level).abs();
        let known = self.left[way].iter().filter(|known| distance(known) < near);
        let back_to = known.min_by(|a, b| distance(a).total_cmp(&distance(b))).map(|known| known.1);
        self.left[way].push((left, index));
        self.moved[way] = level;
        FloorMove { way: change.way, shift: change.shift, variance: change.variance, back_to }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Exchange, Moment, ServerQuality, Span, Stamp, StampLocation, Ticks};

    fn segment() -> Segment {
        let stamp =
            Stamp { counter: Counter::from_raw(0), width: Ticks::from_raw(2), location: StampLocation::Unknown };
        let time = Moment::from_origin(Span::from_secs(1));
        let server = ServerQuality::default();
        let exchange = Exchange { sent: stamp, server_in: time, server_out: time, received: stamp, server };
        let begin = Begin { server: 0, theta: 0.0, rate: 0.0, rate_variance: 1.0, floors: [0.0; 2], variance: 1.0 };
        Segment::new(0, Frame::at(Period::from_hertz(1e9).unwrap(), &exchange), begin)
    }

    /// In addition to the uncertainty of the new floor.
    #[test]
    fn a_floor_within_a_microsecond_of_one_that_was_left_is_that_one() {
        for (miss, back_to) in [(0.9, Some(3)), (1.1, None)] {
            let mut segment = segment();
            let change = |shift: f64| Change { server: 0, way: Direction::Outgoing, since: 4, shift, variance: 0.0 };
            assert_eq!(segment.depart(&change(100.0), 3).back_to, None);
            assert_eq!(segment.depart(&change(miss - 100.0), 7).back_to, back_to, "{miss}");
        }
    }
}
