//! What one exchange says about the phase: the two delays, as a function of where the phase is.

use super::density::{DelayLaw, NODES, node};
use super::knowledge::WayLaws;
use std::rc::Rc;

/// To draw from, one in this many nodes of a table is enough.
const THINNING: usize = 4;

/// One exchange: with the phase x [us], the request was delayed by `x - lower` beyond its floor, the reply by `upper -
/// x`.
#[derive(Clone, Copy, Debug)]
pub(super) struct ObservedExchange {
    /// When the reply was stamped [s].
    pub(super) at: f64,
    /// Since the request was stamped [s].
    pub(super) trip: f64,
    pub(super) lower: f64,
    pub(super) upper: f64,
}

/// The laws that hold for an exchange: of each way, in each state of its spells.
pub(super) struct ExchangeEvidence {
    pub(super) observed: ObservedExchange,
    pub(super) laws: [Vec<Rc<DelayLaw>>; 2],
}

impl ExchangeEvidence {
    pub(super) fn of(observed: ObservedExchange, ways: &[WayLaws; 2]) -> Self {
        let [forward, backward] = ways;
        ExchangeEvidence { observed, laws: [forward.laws(observed.at - observed.trip), backward.laws(observed.at)] }
    }

    /// The delays for a phase at the reply and at the request.
    pub(super) fn delays(&self, at_reply: f64, at_request: f64) -> [f64; 2] {
        [at_request - self.observed.lower, self.observed.upper - at_reply]
    }

    /// The density of both delays for a phase that is the same at both ends, with the probabilities of the states of
    /// each way.
    pub(super) fn density(&self, phase: f64, states: &[Vec<f64>; 2]) -> f64 {
        let delays = self.delays(phase, phase);
        let of = |way: usize| -> f64 {
            self.laws[way].iter().zip(&states[way]).map(|(law, share)| share * law.at(delays[way])).sum()
        };
        of(0) * of(1)
    }

    /// Places that follow the edges and tails of both delays, in rising order; none if no phase explains both.
    pub(super) fn places(&self) -> Vec<f64> {
        let least = |way: usize| self.laws[way].iter().flat_map(|law| law.starts()).fold(f64::INFINITY, f64::min);
        let (begin, end) = (self.observed.lower + least(0), self.observed.upper - least(1));
        let within = |place: &f64| (begin..=end).contains(place);
        let from = |start: f64, sign: f64| (0..NODES).step_by(THINNING).map(move |index| start + sign * node(index));
        let starts = |way: usize| self.laws[way].iter().flat_map(|law| law.starts());
        let forward = starts(0).flat_map(|start| from(self.observed.lower + start, 1.0));
        let backward = starts(1).flat_map(|start| from(self.observed.upper - start, -1.0));
        let mut places: Vec<f64> = forward.chain(backward).filter(within).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }
}

/// A density between places, to draw from.
pub(super) struct Sketch {
    places: Vec<f64>,
    densities: Vec<f64>,
    cumulative: Vec<f64>,
}

impl Sketch {
    /// The density that is proportional to `density` at the places; `None` if that is nowhere above zero.
    pub(super) fn of(places: Vec<f64>, density: impl Fn(f64) -> f64) -> Option<Self> {
        let mut sum = 0.0;
        let (mut densities, mut cumulative) = (Vec::new(), Vec::new());
        for ends in places.windows(2) {
            let middle = density(0.5 * (ends[0] + ends[1]));
            densities.push(middle);
            sum += middle * (ends[1] - ends[0]);
            cumulative.push(sum);
        }
        let is_sound = sum > 0.0 && sum.is_finite();
        densities.iter_mut().chain(&mut cumulative).for_each(|value| *value /= sum);
        is_sound.then_some(Sketch { places, densities, cumulative })
    }

    /// The place below which `share` of the density lies, and the density there.
    pub(super) fn quantile(&self, share: f64) -> (f64, f64) {
        let index = self.cumulative.partition_point(|below| *below < share).min(self.densities.len() - 1);
        let before = if index == 0 { 0.0 } else { self.cumulative[index - 1] };
        let density = self.densities[index];
        let into = if density > 0.0 { (share - before) / density } else { 0.0 };
        (self.places[index] + into.max(0.0), density)
    }
}
