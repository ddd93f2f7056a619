//! Four members go over a window once: forwards as a filter, backwards with what the future says.

use super::adjoint::{Adjoint, STATES, Update, Vector, dot, row, times};
use super::node::Node;
use super::site::{Action, QueueingBelief, Site};
use crate::bank::Family;
use crate::bank::density::Tabulated;
use crate::bank::group::{FREQUENCY, Group, RATE, Rotation, THETA, floor_of};
use crate::bank::lanes::Lanes;
use crate::bank::measurement::Measurement;
use crate::bank::model::Model;
use crate::bank::revision::BurstVariance;
use crate::tuning::smooth::{BLOCK, CHANGED_VARIANCE, LEAST_PREDICTED_VARIANCE, REMEMBERED_VARIANCE, SCORE_MEMORY};
use alloc::vec::Vec;
use ffclock_units::Direction;

/// The densities of a window, block after block, each for both ways.
pub type Tables = Vec<[Tabulated; 2]>;

/// What packets are made of on the way forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteEvidence {
    /// Each packet is weighed as it comes, and its factor is kept.
    Weighed,
    /// The factors that are known.
    Known,
    /// The factors that are known; the packets are weighed for the score only.
    Scored,
}

/// A node after the filter has passed it.
#[derive(Clone, Debug)]
pub struct Step {
    after: Group,
    updates: [Option<Update>; 2],
    log: Lanes,
}

/// A belief about each packet of each node.
pub type Beliefs = Vec<[QueueingBelief; 2]>;

/// The final estimates of four members at a node.
#[derive(Clone, Copy, Debug)]
pub struct MemberState {
    pub theta: Lanes,
    pub variance: Lanes,
    pub rate: Lanes,
    pub score: Lanes,
}

/// Four members and their window.
pub struct Pass<'a> {
    pub nodes: &'a [Node],
    /// The number of the first of them in the segment.
    pub first: usize,
    pub model: &'a Model,
    pub family: Family,
    pub tables: &'a Tables,
}

impl Pass<'_> {
    /// Forwards from `start`, which holds at the node before the first. Returns the beliefs about the packets before
    /// their own evidence.
    pub fn forward(&self, start: &Group, sites: &mut [[Site; 2]], evidence: SiteEvidence) -> (Vec<Step>, Beliefs) {
        let mut group = start.clone();
        let mut steps = Vec::with_capacity(self.nodes.len());
        let mut beliefs = Vec::with_capacity(self.nodes.len());
        for (index, (node, sites)) in self.nodes.iter().zip(sites).enumerate() {
            self.enter(&mut group, index, node, &steps);
            let mut step = Step { after: group.clone(), updates: [None, None], log: Lanes::ZERO };
            let mut believed = [NOTHING; 2];
            for (way, site) in Direction::BOTH.into_iter().zip(sites) {
                let Some(measurement) = node.measurements.map(|measurements| measurements[way.index()]) else {
                    continue;
                };
                let row = row(way, &measurement);
                let gain = times(step.after.p.rows(), &row);
                let belief = belief_of(&measurement, dot(&row, &step.after.x), dot(&row, &gain));
                let table = self.tables.get(index / BLOCK).map(|tables| &tables[way.index()]);
                let (action, log) = weigh(table, &belief, site, evidence);
                step.after.update(&gain, action.move_by, -action.shrink);
                step.updates[way.index()] = Some(Update { gain, action });
                step.log += log;
                believed[way.index()] = belief;
            }
            step.after.score = (step.after.score + step.log) * Lanes::all(SCORE_MEMORY);
            group.clone_from(&step.after);
            steps.push(step);
            beliefs.push(believed);
        }
        (steps, beliefs)
    }

    /// Carries the members to a node.
    fn enter(&self, group: &mut Group, index: usize, node: &Node, steps: &[Step]) {
        debug_assert!(index / BLOCK < self.tables.len(), "each block has densities");
        if node.interval > 0.0 {
            let tables = self.tables.get(index / BLOCK);
            let floor_noise = tables.map_or(0.0, |[density, _]| self.family.floor_noise(density));
            group.predict(node.interval, self.model);
            group.loosen_floors(0, node.interval, floor_noise);
        }
        for change in node.changes.floors.iter().flatten() {
            let part = floor_of(0, change.way);
            let known = change.back_to.and_then(|left| self.before(left, steps)).map(|before| before.after.x[part]);
            group.p.cut(part);
            group.x[part] = known.unwrap_or(group.x[part] + Lanes::all(change.shift));
            let variance = if known.is_some() { REMEMBERED_VARIANCE } else { change.variance + CHANGED_VARIANCE };
            group.p[part][part] = Lanes::all(variance);
        }
        if let Some(BurstVariance { theta, rate }) = node.changes.burst {
            group.p[THETA][THETA] += Lanes::all(theta);
            group.p[RATE][RATE] += Lanes::all(rate);
        }
    }

    /// The step before the node with this number in the segment, if it lies in this window.
    fn before<'s>(&self, node: usize, steps: &'s [Step]) -> Option<&'s Step> {
        steps.get(node.checked_sub(self.first)?.checked_sub(1)?)
    }

    /// Backwards; shows `visit` each node, the last one first, with what the future says of it.
    fn backward(&self, start: &Group, steps: &[Step], mut visit: impl FnMut(usize, &Node, &Step, &Adjoint)) {
        let mut adjoint = Adjoint::NONE;
        for (index, (node, step)) in self.nodes.iter().zip(steps).enumerate().rev() {
            visit(index, node, step, &adjoint);
            for way in [Direction::Incoming, Direction::Outgoing] {
                if let (Some(measurements), Some(update)) = (node.measurements, &step.updates[way.index()]) {
                    adjoint.before(&row(way, &measurements[way.index()]), update);
                }
            }
            for change in node.changes.floors.iter().flatten() {
                adjoint.forget(floor_of(0, change.way));
            }
            if node.interval > 0.0 {
                let before =
                    index.checked_sub(1).and_then(|before| steps.get(before)).map_or(start, |step| &step.after);
                adjoint.back(node.interval, &Rotation::of(&before.x, node.interval));
            }
        }
    }

    /// The beliefs about the packets with all evidence, their own too, and the logarithm of the cycle's frequency at
    /// the first node.
    pub fn beliefs(&self, start: &Group, steps: &[Step]) -> (Beliefs, Lanes) {
        let mut beliefs: Beliefs = self.nodes.iter().map(|_| [NOTHING; 2]).collect();
        let mut frequency = start.x[FREQUENCY];
        self.backward(start, steps, |index, node, step, adjoint| {
            debug_assert!(index < self.nodes.len());
            let Some(cell) = beliefs.get_mut(index) else { return };
            for (way, measurement) in Direction::BOTH.into_iter().zip(node.measurements.iter().flatten()) {
                let (mean, variance) = adjoint.marginal(&step.after, &row(way, measurement));
                cell[way.index()] = belief_of(measurement, mean, variance);
            }
            if index == 0 {
                frequency = adjoint.marginal(&step.after, &unit(FREQUENCY)).0;
            }
        });
        (beliefs, frequency)
    }

    /// The members' final estimates.
    pub fn member_states(&self, start: &Group, steps: &[Step]) -> Vec<MemberState> {
        let nothing =
            MemberState { theta: Lanes::ZERO, variance: Lanes::all(1.0), rate: Lanes::ZERO, score: Lanes::ZERO };
        let mut states: Vec<MemberState> = self.nodes.iter().map(|_| nothing).collect();
        let mut future = Lanes::ZERO;
        self.backward(start, steps, |index, _, step, adjoint| {
            let (theta, variance) = adjoint.marginal(&step.after, &unit(THETA));
            let mut along = unit(RATE);
            along[crate::bank::group::CYCLE] = Lanes::all(1.0);
            let rate = adjoint.marginal(&step.after, &along).0;
            let score = step.after.score + self.model.handicap + future;
            debug_assert!(index < self.nodes.len());
            if let Some(cell) = states.get_mut(index) {
                *cell = MemberState { theta, variance, rate, score };
            }
            future = (future + step.log) * Lanes::all(SCORE_MEMORY);
        });
        states
    }
}

impl Step {
    /// The members after the node.
    pub fn after(&self) -> &Group {
        &self.after
    }

    /// How likely the node's packets were to each member.
    pub fn log(&self) -> Lanes {
        self.log
    }
}

/// What a packet does to the members by its evidence, and its log-likelihood where it is weighed.
fn weigh(
    table: Option<&Tabulated>,
    belief: &QueueingBelief,
    site: &mut Site,
    evidence: SiteEvidence,
) -> (Action, Lanes) {
    let (Some(table), true) = (table, evidence != SiteEvidence::Known) else {
        return (site.act(belief), Lanes::ZERO);
    };
    let weighed = belief.weigh(table);
    if evidence == SiteEvidence::Weighed {
        *site = Site::of(&weighed.action, belief);
    }
    (site.act(belief), weighed.log)
}

const NOTHING: QueueingBelief = QueueingBelief { mean: Lanes::ZERO, variance: Lanes::all(1.0), noise: 0.0 };

fn unit(part: usize) -> Vector {
    let mut row = [Lanes::ZERO; STATES];
    row[part] = Lanes::all(1.0);
    row
}

/// What is believed about queueing, given a belief about the rest of the delay.
fn belief_of(measurement: &Measurement, mean: Lanes, variance: Lanes) -> QueueingBelief {
    QueueingBelief {
        mean: Lanes::all(measurement.delay) - mean,
        variance: variance.map(|v| v.max(LEAST_PREDICTED_VARIANCE)),
        noise: measurement.noise,
    }
}
