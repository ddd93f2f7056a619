//! The bank: multiple-model adaptive estimation.
//!
//! Members of two families run side by side, each a filter with another model of the oscillator and of queueing. Each
//! is scored by its discounted log-likelihood of the packets, and the estimate is their weighted mean (D. Magill, IEEE
//! Trans. Automatic Control 10, 1965; with mixing members H. Blom and Y. Bar-Shalom, 33, 1988: here scores forget
//! instead). A library: the learned filter and the smoother use it. docs/algorithm/learned.md has the equations.

pub mod density;
pub mod grid;
pub mod group;
pub mod lanes;
pub mod measurement;
pub mod model;
pub mod revision;

use crate::tuning::bank::{FAR_BEHIND, HOPELESS, HUMP_FLOOR_NOISE, RESEEDED, SCORE_MEMORY};
use density::Tabulated;
use ffclock_units::Direction;
use grid::Cavity;
use group::{Begin, FLOORS, Group, GroupPrediction, THETA};
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
    /// The floors of both ways, us.
    pub floors: [f64; 2],
}

impl Blend {
    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let [forward, backward] = self.floors;
        let sum = self.theta + self.variance + self.deviation_later + self.rate + forward + backward;
        sum.is_finite() && self.variance >= 0.0
    }
}

/// The bank's state.
#[derive(Clone, Debug)]
pub struct Bank {
    pub groups: Groups,
}

/// The densities that each family uses, for each way.
pub type Densities<'a> = [[&'a Tabulated; 2]; 2];

/// The best member's predictive densities of the queueing of the two packets of an exchange, and the packets'
/// log-likelihoods.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    pub cavities: [Cavity; 2],
    pub logs: [f64; 2],
}

impl Bank {
    pub fn begin(begin: &Begin, set: &ModelSet) -> Self {
        let family = set.models.map(|model| Group::begin(begin, &model));
        Bank { groups: [family, family] }
    }

    /// Forgets times and floors.
    pub fn begin_time(&mut self, begin: &Begin) {
        self.for_groups(|group| group.begin_time(begin));
    }

    pub fn for_groups(&mut self, each: impl FnMut(&mut Group)) {
        self.groups.iter_mut().flatten().for_each(each);
    }

    /// Carries all members `interval` seconds forward, to the next exchange.
    pub fn predict(&mut self, interval: f64, densities: Densities<'_>, set: &ModelSet) {
        for ((members, family), [density, _]) in self.groups.iter_mut().zip(Family::BOTH).zip(densities) {
            let floor_noise = family.floor_noise(density);
            for (group, model) in members.iter_mut().zip(&set.models) {
                group.predict(interval, model, floor_noise);
            }
        }
    }

    /// Updates all members with the two packets of an exchange. Returns what each family's best member predicted of
    /// them.
    pub fn observe(
        &mut self,
        measurements: &[Measurement; 2],
        densities: Densities<'_>,
        set: &ModelSet,
    ) -> [Prediction; 2] {
        let leaders = Family::BOTH.map(|family| self.best_of(family, set));
        let mut predictions = [Prediction { cavities: [Cavity { mean: 0.0, variance: 1.0 }; 2], logs: [0.0; 2] }; 2];
        for way in Direction::BOTH {
            let index = way.index();
            let parts =
                self.groups.iter_mut().zip(densities).zip(leaders.iter().zip(&mut predictions)).zip(set.families);
            for (((family, densities), (leader, predictions)), takes_part) in parts {
                if !takes_part {
                    continue;
                }
                let predicted: [GroupPrediction; GROUPS] = family.each_mut().map(|group| {
                    let predicted = group.observe(way, &measurements[index], densities[index]);
                    group.score += predicted.log;
                    predicted
                });
                debug_assert!(leader.group < GROUPS);
                let predicted = predicted.get(leader.group).copied().unwrap_or(predicted[0]);
                let (mean, variance) = (predicted.mean.of(leader.lane), predicted.variance.of(leader.lane));
                predictions.cavities[index] = Cavity { mean, variance };
                predictions.logs[index] = predicted.log.of(leader.lane);
            }
        }
        self.for_groups(|group| group.score = group.score * Lanes::all(SCORE_MEMORY));
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
        let Some(seed) = self.state(&best).map(|group| group.seed(best.lane, best.score - RESEEDED)) else { return };
        for family in &mut self.groups {
            for (group, model) in family.iter_mut().zip(&set.models) {
                for lane in 0..LANES {
                    let sound = group.score.of(lane) >= best.score - HOPELESS && group.p[THETA][THETA].of(lane) > 0.0;
                    if !sound {
                        group.reseed(lane, &seed, model);
                    }
                }
            }
        }
    }

    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let sum = self.groups.iter().flatten().fold(Lanes::ZERO, |sum, group| {
            group.x.iter().chain(group.p.iter().flatten()).fold(sum + group.score, |sum, part| sum + *part)
        });
        sum.0.iter().all(|sum| sum.is_finite())
    }

    /// The mean of the members, weighted by their scores; `interval` until the next exchange and `later` seconds until
    /// the later deviation.
    pub fn blend(&self, set: &ModelSet, interval: f64, later: f64) -> Blend {
        debug_assert!(set.families.contains(&true), "a bank has a family");
        let best = self.best(set);
        let mut sums = Sums::default();
        let families = self.groups.iter().zip(set.families).filter(|(_, takes_part)| *takes_part);
        for (group, model) in families.flat_map(|(family, _)| family.iter().zip(&set.models)) {
            let weights = (group.score + model.handicap).map(|score| {
                let behind = best.score - score;
                if behind < FAR_BEHIND { libm::exp(-behind) } else { 0.0 }
            });
            if weights == Lanes::ZERO {
                continue;
            }
            let (rates, variances) = (group.mean_rate(interval), group.variance_after(later, model));
            for (lane, weight) in weights.0.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0) {
                sums.add(weight, group, lane, [rates.of(lane), variances.of(lane)]);
            }
        }
        sums.blend()
    }
}

/// Weighted sums over members.
#[derive(Default)]
struct Sums {
    weight: f64,
    theta: f64,
    square: f64,
    variance: f64,
    later: f64,
    rate: f64,
    floors: [f64; 2],
    /// The theta of the first member, so that squares stay small.
    origin: Option<f64>,
}

impl Sums {
    fn add(&mut self, weight: f64, group: &Group, lane: usize, [rate, later]: [f64; 2]) {
        let theta = group.x[THETA].of(lane);
        let theta = theta - *self.origin.get_or_insert(theta);
        self.weight += weight;
        self.theta += weight * theta;
        self.square += weight * theta * theta;
        self.variance += weight * group.p[THETA][THETA].of(lane);
        self.later += weight * libm::sqrt(later.max(0.0));
        self.rate += weight * rate;
        for (sum, part) in self.floors.iter_mut().zip(FLOORS) {
            *sum += weight * group.x[part].of(lane);
        }
    }

    fn blend(&self) -> Blend {
        let theta = self.theta / self.weight;
        let spread = (self.square / self.weight - theta * theta).max(0.0);
        Blend {
            theta: theta + self.origin.unwrap_or(0.0),
            variance: self.variance / self.weight + spread,
            deviation_later: self.later / self.weight,
            rate: self.rate / self.weight,
            floors: self.floors.map(|floor| floor / self.weight),
        }
    }
}
