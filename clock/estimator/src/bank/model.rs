//! What one member of the bank believes about the oscillator, and the bank's composition. Microseconds and seconds; rates in us/s, that is ppm.

use super::lanes::{LANES, Lanes};
use crate::LearnedConfig;
use core::f64::consts::TAU;

/// Members of each family.
pub const MEMBERS: usize = 16;

/// Groups of members of each family.
pub const GROUPS: usize = MEMBERS / LANES;

/// How far the rate walks in a second, ppm: from an oven to a draught.
const WALKS: [f64; 6] = [3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2];

/// The walk of a member with a cycle, and of the only one when there are no others.
pub const USUAL_WALK: f64 = 3e-4;

/// The shortest cycle, s, and the ratio of each to the next.
const SHORTEST_CYCLE: f64 = 128.0;
const CYCLE_RATIO: f64 = 1.6;

/// The amplitude that a cycle is expected to have, ppm.
const AMPLITUDE: f64 = 0.03;

/// The standard deviation of a cycle's period when nothing is known but its place in the bank, as a fraction.
const FREQUENCY_SPREAD: f64 = 0.06;

/// How far a cycle's frequency moves: the variance of its logarithm per second.
const FREQUENCY_WALK: f64 = 1e-8 / 16.0;

/// The beliefs of a group of members.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// The variance that the rate gains in a second.
    pub walk: Lanes,
    /// The variance that either part of the cycle gains in a second.
    pub cycle_walk: Lanes,
    /// The variance of either part of a cycle of which nothing is known; zero without a cycle.
    pub amplitude: Lanes,
    /// The logarithm of the cycle's angular frequency.
    pub log_frequency: Lanes,
    /// The variance of that logarithm when nothing else is known.
    pub frequency_spread: Lanes,
    /// The variance that the logarithm gains in a second.
    pub frequency_walk: Lanes,
    /// Added to a score: nothing, or minus infinity for a member that takes no part.
    pub handicap: Lanes,
}

/// The members of a family.
pub fn models(config: &LearnedConfig) -> [Model; GROUPS] {
    core::array::from_fn(|group| {
        let mut model = Model {
            walk: Lanes::ZERO,
            cycle_walk: Lanes::ZERO,
            amplitude: Lanes::ZERO,
            log_frequency: Lanes::ZERO,
            frequency_spread: Lanes::ZERO,
            frequency_walk: Lanes::ZERO,
            handicap: Lanes::ZERO,
        };
        for lane in 0..LANES {
            let member = group.saturating_mul(LANES).saturating_add(lane);
            if !describe(member, config, &mut Member { lane, model: &mut model }) {
                model.handicap.put(lane, f64::NEG_INFINITY);
            }
        }
        model
    })
}

/// Where one member of a group is written.
struct Member<'a> {
    lane: usize,
    model: &'a mut Model,
}

fn describe(member: usize, config: &LearnedConfig, into: &mut Member<'_>) -> bool {
    let (lane, model) = (into.lane, &mut *into.model);
    if let Some(walk) = WALKS.get(member) {
        model.walk.put(lane, walk * walk);
        return config.several_walks || *walk == USUAL_WALK;
    }
    let period = SHORTEST_CYCLE * libm::pow(CYCLE_RATIO, member.saturating_sub(WALKS.len()) as f64);
    model.walk.put(lane, USUAL_WALK * USUAL_WALK);
    model.cycle_walk.put(lane, AMPLITUDE * AMPLITUDE / (30.0 * period));
    model.amplitude.put(lane, AMPLITUDE * AMPLITUDE);
    model.log_frequency.put(lane, libm::log(TAU / period));
    model.frequency_spread.put(lane, FREQUENCY_SPREAD * FREQUENCY_SPREAD);
    model.frequency_walk.put(lane, FREQUENCY_WALK);
    config.cycles
}
