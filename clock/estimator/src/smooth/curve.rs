//! The smoothed clock: its times at the exchanges, and between them.

use super::MICRO;
use super::blend::Marginal;
use super::node::Segment;
use crate::tuning::smooth::{CURVE_PHASE_WALK, CURVE_WALK, LEAST_UNCERTAINTY};
use alloc::vec::Vec;
use core::ops::Range;
use ffclock_units::{Counter, Moment, Period, Rate, Span, StandardUncertainty, Tai};

/// The time at a counter reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmoothedTime {
    /// The counter reading.
    pub counter: Counter,
    /// The time there.
    pub time: Moment<Tai>,
    /// The standard uncertainty of `time`.
    pub uncertainty: StandardUncertainty,
    /// The length of a tick there.
    pub period: Period,
}

/// A recording in retrospect.
#[derive(Clone, Debug)]
pub struct Smoothed {
    nominal: Period,
    times: Vec<SmoothedTime>,
    pieces: Vec<Piece>,
}

/// A stretch in which the time is continuous.
#[derive(Clone, Debug)]
struct Piece {
    epoch: usize,
    range: Range<usize>,
}

impl Smoothed {
    pub(super) fn new(nominal: Period) -> Self {
        Smoothed { nominal, times: Vec::new(), pieces: Vec::new() }
    }

    /// Takes what is known of a segment.
    pub(super) fn take(&mut self, segment: &Segment, marginals: &[Marginal]) {
        let begin = self.times.len();
        let nominal = self.nominal;
        self.times.extend(segment.nodes.iter().zip(marginals).map(|(node, marginal)| SmoothedTime {
            counter: node.counter,
            time: segment.frame.moment(node.counter, marginal.theta * MICRO),
            uncertainty: StandardUncertainty::from_seconds(marginal.uncertainty * MICRO + LEAST_UNCERTAINTY),
            period: nominal.stretched(Rate::from_fraction(marginal.rate * MICRO)),
        }));
        self.pieces.push(Piece { epoch: segment.epoch, range: begin..self.times.len() });
    }

    /// The times at the exchanges that were kept, in their order.
    pub fn times(&self) -> &[SmoothedTime] {
        &self.times
    }

    /// The time at a counter reading of the epoch with this number, counted by calls of
    /// [`Smoother::restart`](super::Smoother::restart) from 0; `None` outside what was recorded.
    pub fn at(&self, epoch: usize, counter: Counter) -> Option<SmoothedTime> {
        let pieces = self.pieces.iter().filter(|piece| piece.epoch == epoch);
        let times = pieces.filter_map(|piece| self.times.get(piece.range.clone()));
        let holds = |times: &&[SmoothedTime]| {
            let ends = times.first().zip(times.last());
            ends.is_some_and(|(first, last)| !is_before(counter, first.counter) && !is_before(last.counter, counter))
        };
        let times = times.rev().find(holds)?;
        let next = times.partition_point(|time| !is_before(counter, time.counter));
        let before = times.get(next.checked_sub(1)?)?;
        Some(times.get(next).map_or(*before, |after| between(before, after, counter)))
    }
}

fn is_before(one: Counter, other: Counter) -> bool {
    (one - other).raw() < 0
}

/// The cubic that has both times and both periods.
fn between(before: &SmoothedTime, after: &SmoothedTime, counter: Counter) -> SmoothedTime {
    let (whole, part) = (after.counter - before.counter, counter - before.counter);
    let share = part.as_f64() / whole.as_f64();
    let rest = 1.0 - share;
    let straight = (after.time - before.time).as_seconds();
    // How far either end's tangent runs off the straight line to the other end.
    let [first, last] = [before, after].map(|end| (end.period * whole).as_seconds() - straight);
    let bend = share * rest * (rest * first - share * last);
    let line = Span::from_seconds(straight * share);
    let uncertainty = before.uncertainty.as_seconds() * rest + after.uncertainty.as_seconds() * share;
    let walked = CURVE_WALK * CURVE_WALK * libm::pow(straight * share * rest, 3.0) / 3.0;
    let unseen = walked + CURVE_PHASE_WALK * CURVE_PHASE_WALK * straight * share * rest;
    SmoothedTime {
        counter,
        time: before.time + line + Span::from_seconds(bend),
        uncertainty: StandardUncertainty::from_seconds(uncertainty + libm::sqrt(unseen.max(0.0)) * MICRO),
        period: if share < 0.5 { before.period } else { after.period },
    }
}
