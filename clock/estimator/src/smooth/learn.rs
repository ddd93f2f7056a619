//! Queueing densities of a recording: each block of it learns from itself and its neighbours, before and after.

use super::pass::{Beliefs, Tables};
use crate::LearnedConfig;
use crate::bank::Family;
use crate::bank::density::{Components, Likelihoods, Mixture};
use crate::bank::grid::Cavity;
use crate::tuning::bank::STEEP;
use crate::tuning::smooth::{BLOCK, SMOOTHING_ITERATIONS};
use alloc::vec::Vec;

/// Makes the densities of a window.
#[derive(Clone, Debug)]
pub struct Teacher {
    components: Components,
    separate: bool,
}

/// The beliefs of one member.
pub struct Witness<'a> {
    pub beliefs: &'a Beliefs,
    pub lane: usize,
    /// Whether a node has packets.
    pub has_packets: &'a [bool],
}

impl Teacher {
    pub fn new(config: &LearnedConfig) -> Self {
        Teacher { components: Components::new(), separate: config.directions }
    }

    /// Learns from what a member believed of each packet without it.
    pub fn learn(&self, family: Family, witness: &Witness<'_>) -> Tables {
        let likelihoods: Vec<Option<[Likelihoods; 2]>> = self.likelihoods(witness);
        let blocks = likelihoods.len().div_ceil(BLOCK);
        (0..blocks).map(|block| self.block(family, neighbourhood(&likelihoods, block))).collect()
    }

    fn likelihoods(&self, witness: &Witness<'_>) -> Vec<Option<[Likelihoods; 2]>> {
        let of = |(beliefs, has_packets): (&[super::site::QueueingBelief; 2], &bool)| {
            let cavity = |way: usize| {
                let belief = &beliefs[way];
                let variance = belief.variance.of(witness.lane) + belief.noise;
                self.components.likelihoods(&Cavity { mean: belief.mean.of(witness.lane), variance })
            };
            has_packets.then(|| [cavity(0), cavity(1)])
        };
        witness.beliefs.iter().zip(witness.has_packets).map(of).collect()
    }

    fn count(&self, family: Family) -> usize {
        match family {
            Family::Edges => STEEP,
            Family::Humps => self.components.count(),
        }
    }

    fn block(&self, family: Family, rows: &[Option<[Likelihoods; 2]>]) -> [crate::bank::density::Tabulated; 2] {
        let taught = |ways: &[usize]| {
            let length = rows.len().saturating_mul(ways.len()).max(1);
            let mut mixture = Mixture::new(self.count(family), length, &self.components);
            for row in rows.iter().flatten() {
                ways.iter().for_each(|way| mixture.keep(&row[*way]));
            }
            mixture.learn(SMOOTHING_ITERATIONS, &self.components);
            mixture.table().clone()
        };
        if family == Family::Edges && self.separate {
            return [taught(&[0]), taught(&[1])];
        }
        let both = taught(&[0, 1]);
        [both.clone(), both]
    }
}

fn neighbourhood<T>(rows: &[T], block: usize) -> &[T] {
    debug_assert!(block < rows.len().div_ceil(BLOCK), "block {block} of {} nodes", rows.len());
    let begin = block.saturating_sub(1).saturating_mul(BLOCK);
    let end = block.saturating_add(2).saturating_mul(BLOCK).min(rows.len());
    rows.get(begin..end).unwrap_or(&[])
}
