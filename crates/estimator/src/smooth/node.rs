//! What is kept of a recording: an exchange becomes a node, and a stretch without a new beginning a segment.

use super::MICRO;
use super::pass::BLOCK;
use crate::classic::frame::Frame;
use crate::learned::bank::Densities;
use crate::learned::density::Tabulated;
use crate::learned::group::{Begin, Sight};
use crate::learned::recent::{Change, Revision};
use alloc::vec::Vec;
use ffclock_units::{Counter, Estimate, Period};

/// The clock as it was published right after an exchange, us over the frame's line.
#[derive(Clone, Copy, Debug)]
pub struct Causal {
    pub theta: f64,
    pub uncertainty: f64,
    pub bound: f64,
    /// ppm.
    pub rate: f64,
}

impl Causal {
    pub fn new(estimate: &Estimate, counter: Counter, (frame, nominal): (&Frame, Period)) -> Self {
        let age = estimate.period * (counter - estimate.counter);
        Causal {
            theta: frame.height(counter, estimate.time + age) / MICRO,
            uncertainty: estimate.uncertainty.grown(age, estimate.uncertainty_growth).as_seconds() / MICRO,
            bound: estimate.bound.grown(age, estimate.bound_growth).as_seconds() / MICRO,
            rate: estimate.period.relative_to(nominal).as_ppm(),
        }
    }
}

/// What is believed to have happened between the node before and this one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Upset {
    /// The floors that moved, for each way.
    pub floors: [Option<Change>; 2],
    /// The variances that theta and the rate gained, us^2 and ppm^2.
    pub jolt: Option<[f64; 2]>,
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
    pub sights: Option<[Sight; 2]>,
    pub causal: Causal,
    pub upset: Upset,
}

/// A stretch in which the time is continuous.
#[derive(Clone, Debug)]
pub struct Segment {
    pub epoch: usize,
    pub frame: Frame,
    pub begin: Begin,
    pub nodes: Vec<Node>,
    /// What the causal filter had learned of queueing by the end of each block, by family and way.
    pub learned: Vec<[[Tabulated; 2]; 2]>,
}

impl Segment {
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
            Revision::Jolt { since, .. } => *since,
        };
        let used = self.nodes.iter_mut().rev().filter(|node| node.sights.is_some());
        let Some(node) = used.take(since).last() else { return };
        match revision {
            Revision::Floor(change) => node.upset.floors[change.way.index()] = Some(*change),
            Revision::Jolt { variances, .. } => node.upset.jolt = Some(*variances),
        }
    }
}
