//! The smoother oracle: the mean of the phase given all packets, past and future, and the true laws.
//!
//! Expectation propagation (T. P. Minka, "Expectation propagation for approximate Bayesian inference", 2001). Each
//! packet is stood for by a normal likelihood of its own. With these the problem is linear and normal, and solved
//! exactly, forward by a Kalman filter and backward by the recursion of A. E. Bryson and M. Frazier (1963; G. J.
//! Bierman, "Fixed interval smoothing with discrete measurements", 1973), which inverts no matrix. Then each stand-in
//! is replaced, so that together with all others it gives the mean and variance that the packet's true likelihood
//! gives, and so on until nothing moves. For normal noise this is the Rauch-Tung-Striebel smoother.
//!
//! Spells of congestion are hidden Markov chains and are smoothed forward and backward between the passes.

use super::density::{DelayLaw, NODES, node};
use super::dynamics::{Dynamics, Matrix, Normal, dot};
use super::knowledge::WayLaws;
use std::rc::Rc;

/// The number of passes in which all stand-ins are replaced.
const PASSES: usize = 6;
/// How far a stand-in moves towards its new choice.
const DAMPING: f64 = 0.8;
/// What is integrated over, in deviations, and in how many parts at least.
const REACH: f64 = 6.0;
const PARTS: usize = 48;

/// One packet: the phase at its stamp differs from `edge` by its delay beyond the floor, upwards for a request and
/// downwards for a reply.
#[derive(Clone, Debug)]
pub(super) struct PhaseEdge {
    /// Of which way.
    pub(super) way: usize,
    /// The phase without any delay [us].
    pub(super) edge: f64,
}

/// A moment that matters: a packet's stamp, or a look at the clock.
#[derive(Clone, Debug)]
pub(super) struct PhaseNode {
    /// True time [s].
    pub(super) at: f64,
    pub(super) packet: Option<PhaseEdge>,
}

/// A normal likelihood of the phase, relative to the packet's edge: precision, and precision times mean. Flat: zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StandIn {
    precision: f64,
    pull: f64,
}

/// What the forward pass leaves for the backward one.
struct ForwardStep {
    expected: f64,
    variance: f64,
    /// The covariance of the state with what is seen.
    with_seen: Vec<f64>,
}

/// Mean and variance of the phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PhaseBelief {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

struct Propagation<'a> {
    setting: Setting<'a>,
    nodes: &'a [PhaseNode],
    seen: Vec<f64>,
    stand_ins: Vec<StandIn>,
    /// The probabilities of the states of the way, for each packet, by all other packets.
    states: Vec<Vec<f64>>,
    /// The logarithm of what each packet says of each state.
    said: Vec<Vec<f64>>,
    laws: Vec<Vec<Rc<DelayLaw>>>,
}

/// The world as an oracle knows it, and what it knew before the first of the nodes.
#[derive(Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) dynamics: &'a Dynamics,
    pub(super) ways: &'a [WayLaws; 2],
    pub(super) prior: &'a Normal,
}

/// The smoothed phase at each of `looks` [s] given all packets; both in order of time.
pub(super) fn smooth(setting: Setting, packets: &[PhaseNode], looks: &[f64]) -> Vec<PhaseBelief> {
    let chosen = Propagation::settled(setting, packets);
    let looks = looks.iter().map(|at| (PhaseNode { at: *at, packet: None }, StandIn::default()));
    let mut all: Vec<_> = packets.iter().cloned().zip(chosen.stand_ins).chain(looks).collect();
    all.sort_by(|one, other| one.0.at.total_cmp(&other.0.at));
    let (nodes, stand_ins): (Vec<PhaseNode>, Vec<StandIn>) = all.into_iter().unzip();
    let seen = setting.dynamics.seen();
    let line = LinearProblem { setting, nodes: &nodes, stand_ins: &stand_ins, seen: &seen };
    let looked = nodes.iter().map(|node| node.packet.is_none());
    line.smoothed().into_iter().zip(looked).filter_map(|(belief, looked)| looked.then_some(belief)).collect()
}

/// The state after the last of the packets.
pub(super) fn filter(setting: Setting, packets: &[PhaseNode]) -> Normal {
    let chosen = Propagation::settled(setting, packets);
    chosen.line().forward().1
}

/// A linear problem with normal noise: nodes with their stand-ins.
struct LinearProblem<'a> {
    setting: Setting<'a>,
    nodes: &'a [PhaseNode],
    stand_ins: &'a [StandIn],
    seen: &'a [f64],
}

impl<'a> Propagation<'a> {
    /// With all stand-ins chosen.
    fn settled(setting: Setting<'a>, nodes: &'a [PhaseNode]) -> Self {
        let of = |node: &PhaseNode| node.packet.as_ref().map(|packet| &setting.ways[packet.way]);
        let usual = |node: &PhaseNode| of(node).map_or(Vec::new(), WayLaws::usual);
        let mut propagation = Propagation {
            seen: setting.dynamics.seen(),
            stand_ins: vec![StandIn::default(); nodes.len()],
            states: nodes.iter().map(usual).collect(),
            said: nodes.iter().map(|node| of(node).map_or(Vec::new(), |way| vec![0.0; way.states()])).collect(),
            laws: nodes.iter().map(|node| of(node).map_or(Vec::new(), |way| way.laws(node.at))).collect(),
            setting,
            nodes,
        };
        propagation.begin();
        for _ in 0..PASSES {
            let beliefs = propagation.line().smoothed();
            propagation.choose(&beliefs);
            propagation.smooth_spells();
        }
        propagation
    }

    fn line(&self) -> LinearProblem<'_> {
        LinearProblem { setting: self.setting, nodes: self.nodes, stand_ins: &self.stand_ins, seen: &self.seen }
    }

    /// The first choice of the stand-ins, each after those before it.
    fn begin(&mut self) {
        let mut state = self.setting.prior.clone();
        for index in 0..self.nodes.len() {
            let Some(packet) = self.nodes[index].packet.clone() else { continue };
            state.advance(self.setting.dynamics, self.nodes[index].at);
            let with_seen = state.covariance.times(&self.seen);
            let mean = dot(&self.seen, &state.mean) - packet.edge;
            self.choose_one(index, PhaseBelief { mean, variance: dot(&self.seen, &with_seen) }, 1.0);
            self.line().correct(&mut state, index, &with_seen);
        }
    }

    /// Replaces all stand-ins, each given the others.
    fn choose(&mut self, beliefs: &[PhaseBelief]) {
        for (index, belief) in beliefs.iter().enumerate() {
            let Some(packet) = &self.nodes[index].packet else { continue };
            let stand_in = self.stand_ins[index];
            let precision = 1.0 / belief.variance - stand_in.precision;
            if precision > 0.0 && precision.is_finite() {
                let pull = (belief.mean - packet.edge) / belief.variance - stand_in.pull;
                let others = PhaseBelief { mean: pull / precision, variance: 1.0 / precision };
                self.choose_one(index, others, DAMPING);
            }
        }
    }

    /// `others` is relative to the packet's edge.
    fn choose_one(&mut self, index: usize, others: PhaseBelief, damping: f64) {
        let Some(packet) = &self.nodes[index].packet else { return };
        let sign = if packet.way == 0 { 1.0 } else { -1.0 };
        let delay = PhaseBelief { mean: sign * others.mean, variance: others.variance };
        let moments: Vec<[f64; 3]> = self.laws[index].iter().map(|law| moments(law, delay)).collect();
        self.said[index] = moments.iter().map(|moments| libm::log(moments[0])).collect();
        let mut sums = [0.0; 3];
        for (share, moments) in self.states[index].iter().zip(&moments) {
            sums.iter_mut().zip(moments).for_each(|(sum, moment)| *sum += share * moment);
        }
        let shift = sums[1] / sums[0];
        let variance = (sums[2] / sums[0] - shift * shift).max(1e-9 * delay.variance);
        let mean = sign * (delay.mean + shift);
        let precision = (1.0 / variance - 1.0 / others.variance).max(0.0);
        let pull = mean / variance - others.mean / others.variance;
        let wanted = if precision > 0.0 { StandIn { precision, pull } } else { StandIn::default() };
        let old = self.stand_ins[index];
        if wanted.precision.is_finite() && wanted.pull.is_finite() {
            self.stand_ins[index] = StandIn {
                precision: old.precision + damping * (wanted.precision - old.precision),
                pull: old.pull + damping * (wanted.pull - old.pull),
            };
        }
    }

    /// What all packets of a way say of the state at each, that packet left out.
    fn smooth_spells(&mut self) {
        for way in 0..self.setting.ways.len() {
            if self.setting.ways[way].states() > 1 {
                let of_way = |node: &PhaseNode| node.packet.as_ref().is_some_and(|packet| packet.way == way);
                let mine: Vec<usize> = (0..self.nodes.len()).filter(|index| of_way(&self.nodes[*index])).collect();
                self.smooth_spells_of(way, &mine);
            }
        }
    }

    fn smooth_spells_of(&mut self, way: usize, mine: &[usize]) {
        let count = self.setting.ways[way].states();
        let normal = |mut shares: Vec<f64>| {
            let sum: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= sum);
            shares
        };
        let likely = |index: usize, shares: &[f64]| {
            let most = self.said[index].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            normal(shares.iter().zip(&self.said[index]).map(|(share, log)| share * libm::exp(log - most)).collect())
        };
        let between =
            |pair: &[usize]| self.setting.ways[way].transition(self.nodes[pair[1]].at - self.nodes[pair[0]].at);
        let mut forward = vec![self.setting.ways[way].usual()];
        for pair in mine.windows(2) {
            let (move_on, was) = (between(pair), likely(pair[0], &forward[forward.len() - 1]));
            let next = (0..count).map(|to| (0..count).map(|from| was[from] * move_on[from * count + to]).sum());
            forward.push(normal(next.collect()));
        }
        let mut backward = vec![vec![1.0; count]];
        for pair in mine.windows(2).rev() {
            let (move_on, will) = (between(pair), likely(pair[1], &backward[backward.len() - 1]));
            let before = (0..count).map(|from| (0..count).map(|to| move_on[from * count + to] * will[to]).sum());
            backward.push(normal(before.collect()));
        }
        let both = forward.iter().zip(backward.iter().rev());
        let shares: Vec<Vec<f64>> =
            both.map(|(past, future)| normal(past.iter().zip(future).map(|(a, b)| a * b).collect())).collect();
        for (index, shares) in mine.iter().zip(shares) {
            self.states[*index] = shares;
        }
    }
}

/// The adjoint variable of the backward recursion, and its covariance.
struct AdjointState {
    vector: Vec<f64>,
    weight: Matrix,
}

impl LinearProblem<'_> {
    /// The Kalman update with a stand-in.
    fn correct(&self, state: &mut Normal, index: usize, with_seen: &[f64]) {
        let (Some(packet), stand_in) = (&self.nodes[index].packet, self.stand_ins[index]) else { return };
        if stand_in.precision > 0.0 {
            let news = packet.edge + stand_in.pull / stand_in.precision - dot(self.seen, &state.mean);
            let spread = dot(self.seen, with_seen) + 1.0 / stand_in.precision;
            state.mean.iter_mut().zip(with_seen).for_each(|(part, covariance)| *part += covariance * news / spread);
            state.covariance.add_outer(with_seen, -1.0 / spread);
        }
    }

    /// The Kalman filter, and the state after the last node.
    fn forward(&self) -> (Vec<ForwardStep>, Normal) {
        let mut state = self.setting.prior.clone();
        let mut passed = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            state.advance(self.setting.dynamics, node.at);
            let with_seen = state.covariance.times(self.seen);
            let (expected, variance) = (dot(self.seen, &state.mean), dot(self.seen, &with_seen));
            self.correct(&mut state, index, &with_seen);
            passed.push(ForwardStep { expected, variance, with_seen });
        }
        (passed, state)
    }

    /// Forward and backward.
    fn smoothed(&self) -> Vec<PhaseBelief> {
        let (passed, _) = self.forward();
        let size = self.setting.dynamics.size();
        let mut adjoint = AdjointState { vector: vec![0.0; size], weight: Matrix::zero(size) };
        let mut beliefs = Vec::with_capacity(passed.len());
        for (index, seen) in passed.iter().enumerate().rev() {
            self.absorb(&mut adjoint, index, seen);
            let mean = seen.expected - dot(&seen.with_seen, &adjoint.vector);
            let variance = seen.variance - dot(&seen.with_seen, &adjoint.weight.times(&seen.with_seen));
            beliefs.push(PhaseBelief { mean, variance });
            if let Some(before) = index.checked_sub(1) {
                let step = self.setting.dynamics.step(self.nodes[index].at - self.nodes[before].at);
                step.retreat(&mut adjoint.vector);
                step.retreat_weight(&mut adjoint.weight);
            }
        }
        beliefs.reverse();
        beliefs
    }

    /// Takes the adjoint back over a packet (Bierman, equations 2.9 and 2.10).
    fn absorb(&self, adjoint: &mut AdjointState, index: usize, passed: &ForwardStep) {
        let (Some(packet), stand_in) = (&self.nodes[index].packet, self.stand_ins[index]) else { return };
        if stand_in.precision <= 0.0 {
            return;
        }
        let spread = passed.variance + 1.0 / stand_in.precision;
        let news = packet.edge + stand_in.pull / stand_in.precision - passed.expected;
        let gain: Vec<f64> = passed.with_seen.iter().map(|covariance| covariance / spread).collect();
        let AdjointState { vector, weight } = adjoint;
        let pushed = dot(&gain, vector) + news / spread;
        vector.iter_mut().zip(self.seen).for_each(|(part, seen)| *part -= seen * pushed);
        let weighed = weight.times(&gain);
        let both = dot(&gain, &weighed) + 1.0 / spread;
        let size = weight.size;
        for row in 0..size {
            for column in 0..size {
                let (here, there) = (self.seen[row], self.seen[column]);
                weight.cells[row * size + column] +=
                    here * there * both - here * weighed[column] - there * weighed[row];
            }
        }
    }
}

/// The integrals of law times normal density, of 1, of the distance from the mean, and of its square.
fn moments(law: &DelayLaw, delay: PhaseBelief) -> [f64; 3] {
    let deviation = libm::sqrt(delay.variance);
    let (begin, end) = (delay.mean - REACH * deviation, delay.mean + REACH * deviation);
    let within = |place: &f64| *place > begin && *place < end;
    let mut places: Vec<f64> = vec![begin, end];
    for start in law.starts() {
        // From an edge on, the cells of the table; nothing changes fast far behind it.
        places.extend((0..NODES).map(|index| start + node(index)).take_while(|place| *place < end).filter(within));
    }
    let stride = (end - begin) / PARTS as f64;
    places.extend((1..PARTS).map(|part| begin + stride * part as f64));
    places.sort_by(f64::total_cmp);
    let scale = 1.0 / (deviation * libm::sqrt(2.0 * core::f64::consts::PI));
    let mut sums = [0.0; 3];
    for ends in places.windows(2) {
        let (middle, width) = (0.5 * (ends[0] + ends[1]), ends[1] - ends[0]);
        let off = middle - delay.mean;
        let density = law.at(middle) * width * scale * libm::exp(-0.5 * off * off / delay.variance);
        sums[0] += density;
        sums[1] += density * off;
        sums[2] += density * off * off;
    }
    sums
}
