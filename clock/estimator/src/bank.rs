//! The bank: multiple-model adaptive estimation.
//!
//! Members of two families run side by side, each a filter with another model of the oscillator and of queueing. Each
//! is scored by its discounted log-likelihood of the packets, and the estimate is their weighted mean (D. Magill, IEEE
//! Trans. Automatic Control 10, 1965; with mixing members H. Blom and Y. Bar-Shalom, 33, 1988: here scores forget
//! instead). A library: the learned filter and the smoother use it. docs/algorithm/learned.md has the equations.

pub mod covariance;
pub mod density;
pub mod grid;
pub mod group;
pub mod lanes;
pub mod measurement;
pub mod model;
pub mod revision;

use crate::tuning::bank::{FAR_BEHIND, HUMP_FLOOR_NOISE, RESEED_BEHIND, RESEEDED, SCORE_MEMORY};
use alloc::vec::Vec;
use density::Tabulated;
use ffclock_units::Direction;
use grid::Cavity;
use group::{AdoptedState, Begin, Evident, Group, GroupPrediction, Packet, Seed, THETA, floors_of, states};
use lanes::{LANES, Lanes};
use measurement::Measurement;
use model::{GROUPS, Model};

/// The two ways of describing queueing that run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Steep shapes only, each direction its own.
    Edges,
    /// All shapes, both directions alike.
    Humps,
}

impl Family {
    pub const BOTH: [Family; 2] = [Family::Edges, Family::Humps];

    pub fn index(self) -> usize {
        match self {
            Family::Edges => 0,
            Family::Humps => 1,
        }
    }

    /// The variance that both floors gain together at each exchange, us^2. A density without an edge holds its floor by
    /// its shape alone, which is never better known than this; a floor that believed more would call packets before it
    /// garbage and stay wrong.
    pub fn floor_noise(self, density: &Tabulated) -> f64 {
        let deviation = match self {
            Family::Edges => 0.0,
            Family::Humps => HUMP_FLOOR_NOISE * density.median,
        };
        deviation * deviation
    }
}

/// All groups, family after family.
pub type Groups = [[Group; GROUPS]; 2];

/// What is fixed about the bank.
#[derive(Clone, Debug)]
pub struct ModelSet {
    /// How many servers have floors.
    pub servers: usize,
    pub models: [Model; GROUPS],
    /// Which families take part.
    pub families: [bool; 2],
}

/// One member of the bank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    pub family: Family,
    pub group: usize,
    pub lane: usize,
    pub score: f64,
}

/// The weighted mean of the bank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blend {
    /// The height of the true time, us.
    pub theta: f64,
    /// Its variance, us^2.
    pub variance: f64,
    /// The standard deviation a while later, us.
    pub deviation_later: f64,
    /// The mean rate over the next interval, ppm.
    pub rate: f64,
    /// The variance of the rate now, ppm^2.
    pub rate_variance: f64,
}

impl Blend {
    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let sum = self.theta + self.variance + self.deviation_later + self.rate + self.rate_variance;
        sum.is_finite() && self.variance >= 0.0
    }
}

/// What the weighted mean of the bank says of one server's floors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloorBlend {
    /// The floors of both ways, us.
    pub floors: [f64; 2],
    /// Half the difference of the floors: how far the server's own time is ahead of theta if its path is symmetric, us.
    pub ahead: f64,
    /// The variance of this, us^2.
    pub variance: f64,
}

/// The bank's state.
#[derive(Clone, Debug)]
pub struct Bank {
    pub groups: Groups,
    /// Room for the member that others begin from.
    seed: Seed,
}

/// The densities that each family uses, for each way.
pub type Densities<'a> = [[&'a Tabulated; 2]; 2];

/// An exchange as the bank sees it.
#[derive(Clone, Copy, Debug)]
pub struct BankExchange {
    pub server: usize,
    /// Since the exchange before, s.
    pub interval: f64,
    pub measurements: [Measurement; 2],
    pub evident: Evident,
    /// Rare packets hold the floors of its server.
    pub holds_floors: bool,
    /// How its server's floors have moved since its exchange before, beyond what every floor does.
    pub walk: FloorWalk,
}

/// A walk of both floors of a server.
#[derive(Clone, Copy, Debug)]
pub struct FloorWalk {
    /// The variance that each floor gains before an exchange, us^2.
    pub variance: f64,
    /// The correlation of the two: -1 where the server's time moves, 0 where its path does.
    pub correlation: f64,
}

impl FloorWalk {
    /// The floors stay where they are.
    pub const NONE: FloorWalk = FloorWalk::of_path(0.0);

    /// The server's time moves: one floor gains what the other loses.
    pub const fn of_time(variance: f64) -> Self {
        FloorWalk { variance, correlation: -1.0 }
    }

    /// The path moves, each way on its own.
    pub const fn of_path(variance: f64) -> Self {
        FloorWalk { variance, correlation: 0.0 }
    }
}

/// The best member's predictive densities of the queueing of the two packets of an exchange, and the packets'
/// log-likelihoods.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    pub cavities: [Cavity; 2],
    pub logs: [f64; 2],
}

impl Prediction {
    /// Nothing was predicted.
    const NONE: Prediction = Prediction { cavities: [Cavity { mean: 0.0, variance: 1.0 }; 2], logs: [0.0; 2] };

    /// Notes what `leader`, the best member of its family, predicted of a packet.
    fn note(&mut self, way: Direction, leader: &Member, predicted: &[GroupPrediction; GROUPS]) {
        debug_assert!(leader.group < GROUPS);
        let GroupPrediction { mean, variance, log } = predicted.get(leader.group).copied().unwrap_or(predicted[0]);
        self.cavities[way.index()] = Cavity { mean: mean.of(leader.lane), variance: variance.of(leader.lane) };
        self.logs[way.index()] = log.of(leader.lane);
    }
}

impl Bank {
    pub fn begin(begin: &Begin, set: &ModelSet) -> Self {
        let family = || core::array::from_fn(|group| Group::begin(begin, &set.models[group], set.servers));
        Bank { groups: [family(), family()], seed: Seed::with_parts(states(set.servers)) }
    }

    /// Forgets everything; what is known then is `begin`.
    pub fn restart(&mut self, begin: &Begin, set: &ModelSet) {
        for family in &mut self.groups {
            family.iter_mut().zip(&set.models).for_each(|(group, model)| group.restart(begin, model));
        }
    }

    /// All members take over a belief, and keep their scores.
    pub fn adopt(&mut self, belief: &AdoptedState, set: &ModelSet) {
        for family in &mut self.groups {
            family.iter_mut().zip(&set.models).for_each(|(group, model)| group.adopt(belief, model));
        }
    }

    /// The same bank for another list of servers; see [`Group::renumbered`].
    pub fn renumbered(&self, origins: &[Option<usize>]) -> Self {
        let groups = self.groups.each_ref().map(|family| family.each_ref().map(|group| group.renumbered(origins)));
        Bank { groups, seed: Seed::with_parts(states(origins.len())) }
    }

    pub fn for_groups(&mut self, each: impl FnMut(&mut Group)) {
        self.groups.iter_mut().flatten().for_each(each);
    }

    /// The bytes that its groups occupy beside itself.
    pub fn bytes(&self) -> usize {
        let lanes = |group: &Group| group.x.capacity() + group.p.cells().len();
        let groups: usize = self.groups.iter().flatten().map(lanes).sum();
        groups * size_of::<Lanes>() + self.seed.bytes()
    }

    /// How many numbers of four members [`Bank::save`] writes.
    pub fn saved_length(set: &ModelSet) -> usize {
        let parts = states(set.servers);
        2 * GROUPS * (1 + parts + parts * (parts + 1) / 2)
    }

    /// Writes the state of all members over `saved`.
    pub fn save(&self, saved: &mut Vec<Lanes>) {
        saved.clear();
        for group in self.groups.iter().flatten() {
            saved.extend([group.score].iter().chain(&group.x).chain(group.p.upper()));
        }
    }

    /// Takes over a state that was saved.
    pub fn restore(&mut self, saved: &[Lanes]) {
        let mut saved = saved.iter().copied();
        self.for_groups(|group| {
            [&mut group.score].into_iter().chain(&mut group.x).zip(saved.by_ref()).for_each(|(to, from)| *to = from);
            group.p.restore(saved.by_ref());
        });
    }

    /// Carries all members forward to an exchange.
    pub fn predict(&mut self, exchange: &BankExchange, densities: Densities<'_>, set: &ModelSet) {
        let BankExchange { server, interval, holds_floors, .. } = *exchange;
        for ((members, family), [density, _]) in self.groups.iter_mut().zip(Family::BOTH).zip(densities) {
            let floor_noise = if holds_floors { 0.0 } else { family.floor_noise(density) };
            for (group, model) in members.iter_mut().zip(&set.models) {
                group.predict(interval, model);
                for other in 0..set.servers {
                    group.loosen_floors(other, interval, if other == server { floor_noise } else { 0.0 });
                }
                if exchange.walk.variance > 0.0 {
                    group.walk_floors(server, exchange.walk);
                }
            }
        }
    }

    /// Updates all members with the two packets of an exchange. Returns what each family's best member predicted of
    /// them.
    pub fn observe(&mut self, exchange: &BankExchange, densities: Densities<'_>, set: &ModelSet) -> [Prediction; 2] {
        let BankExchange { server, measurements, evident, .. } = exchange;
        if *evident == Evident::Joins {
            self.for_groups(|group| group.begin_server(*server, measurements));
            return [Prediction::NONE; 2];
        }
        let leaders = Family::BOTH.map(|family| self.best_of(family, set));
        let mut predictions = [Prediction::NONE; 2];
        for (way, measurement) in Direction::BOTH.into_iter().zip(measurements) {
            let packet = Packet { server: *server, way, measurement };
            for leader in leaders.iter().filter(|leader| set.families[leader.family.index()]) {
                let family = leader.family.index();
                let density = densities[family][way.index()];
                let predicted = self.groups[family].each_mut().map(|group| {
                    let predicted = group.observe(&packet, density, *evident);
                    if *evident == Evident::All {
                        group.score += predicted.log;
                    }
                    predicted
                });
                predictions[family].note(way, leader, &predicted);
            }
        }
        if *evident == Evident::All {
            self.for_groups(|group| group.score = group.score * Lanes::all(SCORE_MEMORY));
        }
        predictions
    }

    fn best_of(&self, family: Family, set: &ModelSet) -> Member {
        let mut best = Member { family, group: 0, lane: 0, score: f64::NEG_INFINITY };
        if !set.families[family.index()] {
            return best;
        }
        for (group, (state, model)) in self.groups[family.index()].iter().zip(&set.models).enumerate() {
            for (lane, score) in (state.score + model.handicap).0.into_iter().enumerate() {
                if score > best.score {
                    best = Member { family, group, lane, score };
                }
            }
        }
        best
    }

    /// The member with the highest score.
    pub fn best(&self, set: &ModelSet) -> Member {
        let [edges, humps] = Family::BOTH.map(|family| self.best_of(family, set));
        if humps.score > edges.score { humps } else { edges }
    }

    /// The state of a member.
    pub fn state(&self, member: &Member) -> Option<&Group> {
        debug_assert!(member.group < GROUPS);
        self.groups[member.family.index()].get(member.group)
    }

    /// Begins hopeless members again from the best.
    pub fn reseed(&mut self, set: &ModelSet) {
        let best = self.best(set);
        debug_assert!(best.group < GROUPS);
        let Bank { groups, seed } = self;
        let Some(group) = groups[best.family.index()].get(best.group) else { return };
        seed.take(group, best.lane, best.score - RESEEDED);
        for family in groups {
            for (group, model) in family.iter_mut().zip(&set.models) {
                for lane in 0..LANES {
                    let sound =
                        group.score.of(lane) >= best.score - RESEED_BEHIND && group.p[THETA][THETA].of(lane) > 0.0;
                    if !sound {
                        group.reseed(lane, seed, model);
                    }
                }
            }
        }
    }

    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let sum = self.groups.iter().flatten().fold(Lanes::ZERO, |sum, group| {
            group.x.iter().chain(group.p.cells()).fold(sum + group.score, |sum, part| sum + *part)
        });
        sum.0.iter().all(|sum| sum.is_finite())
    }

    /// The groups that take part, each with its model and the weights of its members: likelihoods relative to the
    /// best.
    fn weighted<'a>(&'a self, set: &'a ModelSet) -> impl Iterator<Item = (&'a Group, &'a Model, Lanes)> {
        debug_assert!(set.families.contains(&true), "a bank has a family");
        let best = self.best(set).score;
        let families = self.groups.iter().zip(set.families).filter(|(_, takes_part)| *takes_part);
        let groups = families.flat_map(|(family, _)| family.iter().zip(&set.models));
        let weighted = groups.map(move |(group, model)| {
            let weights = (group.score + model.handicap).map(|score| {
                let behind = best - score;
                if behind < FAR_BEHIND { libm::exp(-behind) } else { 0.0 }
            });
            (group, model, weights)
        });
        weighted.filter(|(.., weights)| *weights != Lanes::ZERO)
    }

    /// The mean of the members, weighted by their scores; `interval` until the next exchange and `later` seconds until
    /// the later deviation.
    pub fn blend(&self, set: &ModelSet, interval: f64, later: f64) -> Blend {
        let (mut theta, mut slope) = (Moments::default(), Moments::default());
        let (mut deviation_later, mut rate) = (0.0, 0.0);
        for (group, model, weights) in self.weighted(set) {
            let (rates, variances) = (group.mean_rate(interval), group.variance_after(later, model));
            let rate_variances = group.rate_variance();
            for (lane, weight) in heavy(weights) {
                theta.add(weight, group.x[THETA].of(lane), group.p[THETA][THETA].of(lane));
                deviation_later += weight * libm::sqrt(variances.of(lane).max(0.0));
                rate += weight * rates.of(lane);
                slope.add(weight, rates.of(lane), rate_variances.of(lane));
            }
        }
        let Moments { weight, .. } = theta;
        let (mean, variance) = theta.mean_and_variance();
        let (_, rate_variance) = slope.mean_and_variance();
        Blend { theta: mean, variance, deviation_later: deviation_later / weight, rate: rate / weight, rate_variance }
    }

    /// The same mean of a server's floors.
    pub fn floors(&self, set: &ModelSet, server: usize) -> FloorBlend {
        let parts = floors_of(server);
        let (mut ahead, mut floors) = (Moments::default(), [0.0; 2]);
        for (group, _, weights) in self.weighted(set) {
            let variance = group.asymmetry_variance(server);
            for (lane, weight) in heavy(weights) {
                let here = parts.map(|part| group.x[part].of(lane));
                ahead.add(weight, 0.5 * (here[0] - here[1]), 0.25 * variance.of(lane));
                floors = core::array::from_fn(|way| floors[way] + weight * here[way]);
            }
        }
        let floors = floors.map(|floor| floor / ahead.weight);
        let (ahead, variance) = ahead.mean_and_variance();
        FloorBlend { floors, ahead, variance }
    }
}

/// The members that have a weight.
fn heavy(weights: Lanes) -> impl Iterator<Item = (usize, f64)> {
    weights.0.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0)
}

/// Sums over weighted members for the mean and the variance of their mixture.
#[derive(Clone, Copy, Default)]
struct Moments {
    weight: f64,
    sum: f64,
    square: f64,
    variance: f64,
    /// The value of the first member, so that squares stay small.
    origin: Option<f64>,
}

impl Moments {
    fn add(&mut self, weight: f64, value: f64, variance: f64) {
        let value = value - *self.origin.get_or_insert(value);
        self.weight += weight;
        self.sum += weight * value;
        self.square += weight * value * value;
        self.variance += weight * variance;
    }

    fn mean_and_variance(&self) -> (f64, f64) {
        let mean = self.sum / self.weight;
        let spread = (self.square / self.weight - mean * mean).max(0.0);
        (mean + self.origin.unwrap_or(0.0), self.variance / self.weight + spread)
    }
}
