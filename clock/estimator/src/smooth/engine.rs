//! The work: windows of a segment, families, rounds.

use super::blend::{Marginal, blend};
use super::learn::{Teacher, Witness};
use super::node::{Node, Segment};
use super::pass::{Beliefs, MemberState, Pass, SiteEvidence, Tables};
use super::site::Site;
use crate::LearnedConfig;
use crate::bank::Family;
use crate::bank::density::Tabulated;
use crate::bank::group::{FREQUENCY, Group};
use crate::bank::lanes::{LANES, Lanes};
use crate::bank::model::{GROUPS, Model, models};
use crate::tuning::smooth::{AHEAD, BLOCK, FIRST_ROUNDS, FREQUENCY_REACH, PART, ROUNDS, WINDOW};
use alloc::vec;
use alloc::vec::Vec;

/// Everything that does not depend on the recording.
#[derive(Clone, Debug)]
pub struct Engine {
    models: [Model; GROUPS],
    families: [bool; 2],
    teacher: Teacher,
}

/// The members of both families at a node.
type Starts = [[Group; GROUPS]; 2];

/// Some nodes of a segment, the number of the first of them there, and what the causal filter had learned by then.
struct Window<'a> {
    nodes: &'a [Node],
    first: usize,
    learned: &'a [[[Tabulated; 2]; 2]],
}

impl<'a> Window<'a> {
    /// The window that begins at a node, and how many of its nodes are smoothed in it; the others are its future.
    fn at(segment: &'a Segment, begin: usize) -> (Self, usize) {
        let core = begin.saturating_add(WINDOW).min(segment.nodes.len());
        let end = core.saturating_add(AHEAD).min(segment.nodes.len());
        debug_assert!(begin < core && core <= end);
        let nodes = segment.nodes.get(begin..end).unwrap_or(&[]);
        let blocks = begin / BLOCK..end.div_ceil(BLOCK).min(segment.learned.len());
        let learned = segment.learned.get(blocks).unwrap_or(&[]);
        (Window { nodes, first: begin, learned }, core.saturating_sub(begin))
    }
}

/// The work on one family in a window.
struct Work<'a> {
    engine: &'a Engine,
    nodes: &'a [Node],
    first: usize,
    has_packets: Vec<bool>,
    family: Family,
    starts: [Group; GROUPS],
    tables: Tables,
    sites: [Vec<[Site; 2]>; GROUPS],
}

/// The member that predicted the packets best.
struct Best {
    group: usize,
    lane: usize,
    log: f64,
}

impl Engine {
    pub fn new(config: &LearnedConfig) -> Self {
        let families = [config.edges || !config.humps, config.humps];
        Engine { models: models(config), families, teacher: Teacher::new(config) }
    }

    /// Smooths a segment; reports to `progress` how many more nodes are done.
    pub fn smooth(&self, segment: &Segment, progress: &mut dyn FnMut(usize)) -> Vec<Marginal> {
        let family = || core::array::from_fn(|group| Group::begin(&segment.begin, &self.models[group], 1));
        let mut starts: Starts = [family(), family()];
        let mut begin = 0;
        let mut all = Vec::with_capacity(segment.nodes.len());
        while begin < segment.nodes.len() {
            let (window, length) = Window::at(segment, begin);
            let marginals = self.window(&window, &mut starts, length);
            debug_assert!(marginals.len() >= length && length > 0);
            all.extend_from_slice(marginals.get(..length).unwrap_or(&marginals));
            progress(length);
            begin += length;
        }
        all
    }

    /// Smooths a window, and leaves in `starts` the members as they are after its first `length` nodes.
    fn window(&self, window: &Window<'_>, starts: &mut Starts, length: usize) -> Vec<Marginal> {
        let mut states: Vec<Vec<MemberState>> = Vec::new();
        for (family, starts) in Family::BOTH.into_iter().zip(starts) {
            if self.families[family.index()] {
                let mut work = Work::new(self, window, family, starts);
                work.learn();
                states.extend(work.conclude(starts, length));
            }
        }
        blend(window.nodes, &states)
    }
}

impl<'a> Work<'a> {
    fn new(engine: &'a Engine, window: &Window<'a>, family: Family, starts: &[Group; GROUPS]) -> Self {
        let nodes = window.nodes;
        Work {
            engine,
            nodes,
            first: window.first,
            has_packets: nodes.iter().map(|node| node.measurements.is_some()).collect(),
            family,
            starts: starts.clone(),
            tables: window.learned.iter().map(|families| families[family.index()].clone()).collect(),
            sites: core::array::from_fn(|_| vec![[Site::NONE; 2]; nodes.len()]),
        }
    }

    fn learn(&mut self) {
        for _ in 0..FIRST_ROUNDS {
            let (beliefs, best) = self.go_forward();
            self.teach(&beliefs, &best);
        }
        for _ in 0..ROUNDS {
            let (beliefs, best) = self.go_both_ways();
            self.teach(&beliefs, &best);
            self.refine(&beliefs);
        }
    }

    fn teach(&mut self, beliefs: &[Beliefs], best: &Best) {
        if let Some(beliefs) = beliefs.get(best.group) {
            let witness = Witness { beliefs, lane: best.lane, has_packets: &self.has_packets };
            self.tables = self.engine.teacher.learn(self.family, &witness);
        }
    }

    /// Weighs the packets as they come.
    fn go_forward(&mut self) -> (Vec<Beliefs>, Best) {
        let mut best = Best { group: 0, lane: 0, log: f64::NEG_INFINITY };
        let mut all = Vec::with_capacity(GROUPS);
        for (group, ((model, start), sites)) in
            self.engine.models.iter().zip(&self.starts).zip(&mut self.sites).enumerate()
        {
            let pass = Pass { nodes: self.nodes, first: self.first, model, family: self.family, tables: &self.tables };
            let (steps, beliefs) = pass.forward(start, sites, SiteEvidence::Weighed);
            best.consider(group, steps.iter().fold(model.handicap, |sum, step| sum + step.log()));
            all.push(beliefs);
        }
        (all, best)
    }

    /// Compares each packet with all the others.
    fn go_both_ways(&mut self) -> (Vec<Beliefs>, Best) {
        let mut best = Best { group: 0, lane: 0, log: f64::NEG_INFINITY };
        let mut all = Vec::with_capacity(GROUPS);
        let parts = self.engine.models.iter().zip(&mut self.starts).zip(&mut self.sites);
        for (group, ((model, start), sites)) in parts.enumerate() {
            let pass = Pass { nodes: self.nodes, first: self.first, model, family: self.family, tables: &self.tables };
            let (steps, _) = pass.forward(start, sites, SiteEvidence::Scored);
            best.consider(group, steps.iter().fold(model.handicap, |sum, step| sum + step.log()));
            let (beliefs, frequency) = pass.beliefs(start, &steps);
            all.push(beliefs);
            start.x[FREQUENCY] = frequency.zip(model.log_frequency, |found, usual| {
                if found.is_finite() { found.clamp(usual - FREQUENCY_REACH, usual + FREQUENCY_REACH) } else { usual }
            });
        }
        for (beliefs, sites) in all.iter_mut().zip(&self.sites) {
            take_out(beliefs, sites);
        }
        (all, best)
    }

    /// Makes the factors of the packets again, from beliefs without them.
    fn refine(&mut self, all: &[Beliefs]) {
        for (beliefs, sites) in all.iter().zip(&mut self.sites) {
            for (index, (beliefs, sites)) in beliefs.iter().zip(sites).enumerate() {
                let Some(tables) = self.tables.get(index / BLOCK) else { continue };
                if !self.has_packets.get(index).is_some_and(|has_packets| *has_packets) {
                    continue;
                }
                for ((belief, site), table) in beliefs.iter().zip(sites).zip(tables) {
                    let is_proper = belief.variance.0.map(|variance| variance > 0.0);
                    let fresh = Site::of(&belief.weigh(table).action, belief);
                    site.approach(&fresh, PART, &is_proper);
                }
            }
        }
    }

    /// The members' final estimates.
    fn conclude(&mut self, starts: &mut [Group; GROUPS], length: usize) -> Vec<Vec<MemberState>> {
        let mut all = Vec::with_capacity(GROUPS);
        let parts = self.engine.models.iter().zip(&self.starts).zip(&mut self.sites);
        for (((model, start), sites), next) in parts.zip(starts) {
            let pass = Pass { nodes: self.nodes, first: self.first, model, family: self.family, tables: &self.tables };
            let (steps, _) = pass.forward(start, sites, SiteEvidence::Scored);
            all.push(pass.member_states(start, &steps));
            if let Some(step) = length.checked_sub(1).and_then(|last| steps.get(last)) {
                next.clone_from(step.after());
            }
        }
        all
    }
}

/// Takes the packets' own evidence out of what is believed of them; a variance of zero marks a belief without rest.
fn take_out(beliefs: &mut Beliefs, sites: &[[Site; 2]]) {
    for (beliefs, sites) in beliefs.iter_mut().zip(sites) {
        for (belief, site) in beliefs.iter_mut().zip(sites) {
            let (rest, is_proper) = belief.without(site);
            *belief = rest;
            for (lane, is_proper) in is_proper.into_iter().enumerate() {
                if !is_proper {
                    belief.variance.put(lane, 0.0);
                }
            }
        }
    }
}

impl Best {
    fn consider(&mut self, group: usize, logs: Lanes) {
        for lane in 0..LANES {
            if logs.of(lane) > self.log {
                *self = Best { group, lane, log: logs.of(lane) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::smooth::node::{Causal, Changes};
    use crate::{ClassicConfig, Estimator, Learned};
    use ffclock_units::{
        Bound, Counter, Exchange, Leap, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp, StampLocation,
        Ticks,
    };

    fn exchange() -> Exchange {
        let stamp = |counter| Stamp {
            counter: Counter::from_raw(counter),
            width: Ticks::from_raw(10),
            location: StampLocation::Unknown,
        };
        let server = ServerQuality {
            identity: ServerIdentity { stratum: 1, reference_id: 1 },
            leap: Leap::None,
            root_distance: Bound::of(Span::from_micros(10)),
        };
        let at = |micros| Moment::from_origin(Span::from_secs(1_700_000_000) + Span::from_micros(micros));
        Exchange { sent: stamp(1_000_000), server_in: at(100), server_out: at(120), received: stamp(1_220_000), server }
    }

    /// A long segment of nodes that say nothing.
    fn segment(count: usize) -> Segment {
        let nominal = Period::from_hertz(1e9).unwrap();
        let mut learned = Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, None);
        learned.update(&exchange());
        let frame = Frame::at(nominal, &exchange());
        let begin = learned.beginning(&frame.place(&exchange()));
        let mut segment = Segment::new(0, frame, begin);
        let causal = Causal { theta: 0.0, uncertainty: 1.0, bound: 1.0, rate: 0.0 };
        for index in 0..count {
            let x = index as f64;
            let counter = Counter::from_raw(index as u64);
            segment.nodes.push(Node {
                counter,
                x,
                interval: 1.0,
                measurements: None,
                causal,
                changes: Changes::default(),
            });
            if index % BLOCK == 0 {
                segment.note_densities(learned.densities());
            }
        }
        segment
    }

    #[test]
    fn a_window_has_8192_nodes_and_1024_of_the_future_with_the_densities_of_their_blocks() {
        let segment = segment(3 * 8192 + 100);
        assert_eq!(segment.learned.len(), 3 * 8192 / 256 + 1);
        let blocks = |begin: usize| {
            let (window, length) = Window::at(&segment, begin);
            (window.nodes.len(), window.learned.len(), length)
        };
        assert_eq!(blocks(0), (8192 + 1024, 36, 8192));
        assert_eq!(blocks(8192), (8192 + 1024, 36, 8192));
        assert_eq!(blocks(2 * 8192), (8192 + 100, 33, 8192));
        assert_eq!(blocks(3 * 8192), (100, 1, 100));
    }
}
