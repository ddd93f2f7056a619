//! The mean of all members at each node, weighted by how well each predicted the packets around it.
//!
//! The filter that ran over the recording in order is the witness. It can be improved on, but a member that lies beyond
//! what that filter held possible, block after block, has diverged between floors and queueing and is left out
//! there. Where no member is left, the filter's estimate is used.

use super::node::Node;
use super::pass::MemberState;
use crate::bank::lanes::{LANES, Lanes};
use crate::tuning::smooth::{BLOCK, COMMON, LEAST_CAUSAL_UNCERTAINTY, LOST};
use alloc::vec::Vec;

/// What is known of a node in the end.
#[derive(Clone, Copy, Debug)]
pub struct Marginal {
    /// The height of the true time over the frame's line, us.
    pub theta: f64,
    /// The standard uncertainty of theta, us.
    pub uncertainty: f64,
    /// Relative to the nominal rate, ppm.
    pub rate: f64,
}

/// The mean at each node.
pub fn blend(nodes: &[Node], states: &[Vec<MemberState>]) -> Vec<Marginal> {
    debug_assert!(states.iter().all(|states| states.len() == nodes.len()), "a state at each node");
    let mut marginals = Vec::with_capacity(nodes.len());
    for (block, nodes) in nodes.chunks(BLOCK).enumerate() {
        let begin = block.saturating_mul(BLOCK);
        let groups: Vec<&[MemberState]> = states.iter().filter_map(|states| states.get(begin..)).collect();
        let trusted: Vec<[bool; LANES]> = groups.iter().map(|group| trust(nodes, group)).collect();
        for (index, node) in nodes.iter().enumerate() {
            let mut sums = Sums::default();
            let here = groups.iter().zip(&trusted).filter_map(|(group, trusted)| Some((group.get(index)?, trusted)));
            let voices = || here.clone().flat_map(|(states, trusted)| voices(states, trusted));
            let best = voices().fold(f64::NEG_INFINITY, |best, voice| best.max(voice.score));
            voices().for_each(|voice| sums.add(libm::exp(voice.score - best), &voice, node));
            marginals.push(sums.marginal(node));
        }
    }
    marginals
}

/// Which members of a group have stayed within what the causal filter held possible.
fn trust(nodes: &[Node], group: &[MemberState]) -> [bool; LANES] {
    let mut squares = Lanes::ZERO;
    let mut count = 0.0;
    for (node, states) in nodes.iter().zip(group) {
        let scale = 1.0 / node.causal.uncertainty.max(LEAST_CAUSAL_UNCERTAINTY);
        let off = (states.theta - Lanes::all(node.causal.theta)) * Lanes::all(scale);
        squares += off * off;
        count += 1.0;
    }
    squares.0.map(|square| square <= LOST * LOST * count)
}

/// What one member says of a node.
struct MemberVoice {
    theta: f64,
    variance: f64,
    rate: f64,
    score: f64,
}

fn voices<'a>(states: &'a MemberState, trusted: &'a [bool; LANES]) -> impl Iterator<Item = MemberVoice> + 'a {
    let voice = |lane: usize| MemberVoice {
        theta: states.theta.of(lane),
        variance: states.variance.of(lane),
        rate: states.rate.of(lane),
        score: states.score.of(lane),
    };
    let all = trusted.iter().enumerate().filter(|(_, trusted)| **trusted).map(move |(lane, _)| voice(lane));
    all.filter(|voice| (voice.theta + voice.variance + voice.rate + voice.score).is_finite())
}

/// Weighted sums; times are relative to the causal filter's.
#[derive(Default)]
struct Sums {
    weight: f64,
    theta: f64,
    square: f64,
    rate: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, voice: &MemberVoice, node: &Node) {
        let off = voice.theta - node.causal.theta;
        self.weight += weight;
        self.theta += weight * off;
        self.square += weight * (off * off + voice.variance);
        self.rate += weight * voice.rate;
    }

    fn marginal(&self, node: &Node) -> Marginal {
        let causal = node.causal;
        let (off, rate) = (self.theta / self.weight, self.rate / self.weight);
        let common = COMMON * causal.uncertainty;
        let variance = self.square / self.weight - off * off + common * common;
        // What is proven outweighs what is likely.
        if self.weight > 0.0 && variance >= 0.0 && off.abs() <= causal.bound {
            Marginal { theta: causal.theta + off, uncertainty: libm::sqrt(variance), rate }
        } else {
            Marginal { theta: causal.theta, uncertainty: causal.uncertainty, rate: causal.rate }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::node::{Causal, Changes};
    use super::*;
    use ffclock_units::Counter;

    #[test]
    fn a_member_is_lost_beyond_three_uncertainties_of_the_filter() {
        let causal = Causal { theta: 10.0, uncertainty: 2.0, bound: 100.0, rate: 0.0 };
        let (counter, measurements, changes) = (Counter::from_raw(0), None, Changes::default());
        let node = Node { counter, x: 0.0, interval: 16.0, measurements, causal, changes };
        let theta = Lanes([10.0, 15.9, 4.1, 16.1]);
        let states = MemberState { theta, variance: Lanes::all(1.0), rate: Lanes::ZERO, score: Lanes::ZERO };
        assert_eq!(trust(&[node; 4], &[states; 4]), [true, true, true, false]);
    }
}
