//! What each member of the bank assumes of the oscillator, and the bank's composition. Microseconds and seconds; rates
//! in us/s, that is ppm. Noise is white and random-walk frequency noise as in NIST SP 1065, and temperature cycles.

use super::lanes::{LANES, Lanes};
use crate::LearnedConfig;
use crate::tuning::bank::{
    CYCLE_AMPLITUDE, CYCLE_RATIO, CYCLE_RENEWAL, FREQUENCY_SPREAD, FREQUENCY_WALK, MEMBERS, SHORTEST_CYCLE, USUAL_WALK,
    WALKS,
};
use core::f64::consts::TAU;

/// Groups of members of each family.
pub const GROUPS: usize = MEMBERS / LANES;

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
            if !describe(member, config, lane, &mut model) {
                model.handicap.put(lane, f64::NEG_INFINITY);
            }
        }
        model
    })
}

/// Writes what a member believes into its lane; the result says whether it takes part.
fn describe(member: usize, config: &LearnedConfig, lane: usize, model: &mut Model) -> bool {
    if let Some(walk) = WALKS.get(member) {
        model.walk.put(lane, walk * walk);
        return config.several_walks || *walk == USUAL_WALK;
    }
    let period = SHORTEST_CYCLE * libm::pow(CYCLE_RATIO, member.saturating_sub(WALKS.len()) as f64);
    model.walk.put(lane, USUAL_WALK * USUAL_WALK);
    model.cycle_walk.put(lane, CYCLE_AMPLITUDE * CYCLE_AMPLITUDE / (CYCLE_RENEWAL * period));
    model.amplitude.put(lane, CYCLE_AMPLITUDE * CYCLE_AMPLITUDE);
    model.log_frequency.put(lane, libm::log(TAU / period));
    model.frequency_spread.put(lane, FREQUENCY_SPREAD * FREQUENCY_SPREAD);
    model.frequency_walk.put(lane, FREQUENCY_WALK);
    config.cycles
}
