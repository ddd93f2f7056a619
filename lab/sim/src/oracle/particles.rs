//! The causal oracle: the mean of the phase given all packets so far and the true laws.
//!
//! A Rao-Blackwellised particle filter (A. Doucet, N. de Freitas, K. Murphy, S. Russell, "Rao-Blackwellised particle
//! filtering for dynamic Bayesian networks", 2000). Each particle is a path of the phase as the counter shows it. Given
//! that path everything else is exact: the rate and the parts of its noise by a Kalman filter, whose covariance is the
//! same for all particles, and the spells of congestion by a hidden Markov filter of each particle's own. The error of
//! the method falls with the root of the number of particles.
//!
//! A path fixes a constant such as the skew so well that particles with a wrong one at the start could never correct
//! it. So the filter begins with what expectation propagation makes of the first exchanges (see `causal.rs`).
//!
//! Particles move by the oscillator's law and are weighed by the packets. Where that leaves too few of them, as after
//! an outage, they are drawn from what the packets say and weighed by the oscillator's law.

use super::dynamics::{Dynamics, Matrix, Normal, StateTransition, dot};
use super::evidence::{ExchangeEvidence, ObservedExchange, Sketch};
use super::knowledge::WayLaws;
use crate::random::Random;

/// An oscillator without noise still needs a variance to divide by [us^2].
const LEAST_VARIANCE: f64 = 1e-18;
/// With fewer effective particles than this share they are drawn again: by the packets, and from among themselves.
const POOR: f64 = 0.1;
const UNEVEN: f64 = 0.5;

pub(super) struct Particles<'a> {
    dynamics: &'a Dynamics,
    ways: &'a [WayLaws; 2],
    seen: Vec<f64>,
    /// Part by part, of each particle.
    means: Vec<Vec<f64>>,
    covariance: Matrix,
    /// The phase that the counter showed at the last exchange, of each particle.
    shown: Vec<f64>,
    weights: Vec<f64>,
    /// Of each way the probabilities of its states, particle by particle.
    states: [Vec<f64>; 2],
    random: Random,
    last: f64,
}

/// Where the particles go, with the likelihood of each up to a common factor.
struct ParticleMove {
    shown: Vec<f64>,
    likelihoods: Vec<f64>,
    states: [Vec<f64>; 2],
}

/// The phase that the oscillator's law expects.
struct Forecast {
    means: Vec<f64>,
    variance: f64,
}

/// The laws of a world: of its oscillator, and of the two ways.
#[derive(Clone, Copy)]
pub(super) struct Laws<'a> {
    pub(super) dynamics: &'a Dynamics,
    pub(super) ways: &'a [WayLaws; 2],
}

/// The delays of an exchange if a particle is right.
struct Guess {
    particle: usize,
    delays: [f64; 2],
}

impl<'a> Particles<'a> {
    /// Particles with the distribution of `state`.
    pub(super) fn new(laws: Laws<'a>, state: &Normal, count: usize, random: Random) -> Self {
        let Laws { dynamics, ways } = laws;
        let usual = |way: &WayLaws| way.usual().into_iter().cycle().take(count * way.states()).collect();
        let seen = dynamics.seen();
        let with_shown = state.covariance.times(&seen);
        let (expected, variance) = (dot(&seen, &state.mean), dot(&seen, &with_shown).max(LEAST_VARIANCE));
        let mut particles = Particles {
            means: state.mean.iter().map(|mean| vec![*mean; count]).collect(),
            covariance: state.covariance.clone(),
            shown: vec![expected; count],
            weights: vec![1.0 / count as f64; count],
            states: ways.each_ref().map(usual),
            random,
            last: state.at,
            seen,
            dynamics,
            ways,
        };
        let deviation = libm::sqrt(variance);
        let shown = (0..count).map(|_| expected + deviation * particles.random.normal()).collect();
        let begin = ParticleMove { shown, likelihoods: vec![1.0; count], states: particles.states.clone() };
        particles.settle(begin, &Forecast { means: vec![expected; count], variance });
        particles
    }

    /// Mean and covariance of the state at the last exchange.
    pub(super) fn state(&self) -> Normal {
        let mean: Vec<f64> = self.means.iter().map(|part| dot(part, &self.weights)).collect();
        let mut covariance = self.covariance.clone();
        for particle in 0..self.weights.len() {
            let off: Vec<f64> = self.means.iter().zip(&mean).map(|(part, mean)| part[particle] - mean).collect();
            covariance.add_outer(&off, self.weights[particle]);
        }
        Normal { at: self.last, mean, covariance }
    }

    /// The mean phase at `at`, not before the last exchange.
    pub(super) fn phase(&self, at: f64) -> f64 {
        let mut mean: Vec<f64> = self.means.iter().map(|part| dot(part, &self.weights)).collect();
        self.dynamics.step((at - self.last).max(0.0)).advance(&mut mean);
        dot(&self.seen, &mean)
    }

    /// Takes in an exchange.
    pub(super) fn observe(&mut self, observed: ObservedExchange) {
        let interval = (observed.at - self.last).max(0.0);
        let evidence = ExchangeEvidence::of(observed, self.ways);
        let forecast = self.forecast(&self.dynamics.step(interval));
        self.follow_spells(interval);
        let rate_share = if interval > 0.0 { observed.trip / interval } else { 0.0 };
        let moved = self.moved(&evidence, &forecast, rate_share);
        let worth = |of: &Self, one: &ParticleMove| effective(&weighed(&of.weights, &one.likelihoods));
        let is_enough = worth(self, &moved) >= POOR * self.weights.len() as f64;
        let drawn = if is_enough { None } else { self.drawn(&evidence, &forecast, rate_share) };
        let chosen = drawn.filter(|drawn| worth(self, drawn) > worth(self, &moved)).unwrap_or(moved);
        self.settle(chosen, &forecast);
        self.last = observed.at;
    }

    /// Takes the linear part over an interval.
    fn forecast(&mut self, step: &StateTransition) -> Forecast {
        step.spread(&mut self.covariance);
        advance_all(step, &mut self.means);
        let mut means = vec![0.0; self.shown.len()];
        for (part, seen) in self.means.iter().zip(&self.seen).filter(|(_, seen)| **seen != 0.0) {
            means.iter_mut().zip(part).for_each(|(sum, mean)| *sum += seen * mean);
        }
        let variance = dot(&self.seen, &self.covariance.times(&self.seen)).max(LEAST_VARIANCE);
        Forecast { means, variance }
    }

    fn follow_spells(&mut self, interval: f64) {
        for (way, states) in self.ways.iter().zip(&mut self.states) {
            let count = way.states();
            if count == 1 {
                continue;
            }
            let transition = way.transition(interval);
            for one in states.chunks_mut(count) {
                let next: Vec<f64> = (0..count)
                    .map(|to| (0..count).map(|from| one[from] * transition[from * count + to]).sum())
                    .collect();
                one.copy_from_slice(&next);
            }
        }
    }

    /// The density of the delays for one particle. Its probabilities of the spells are left in `states`.
    fn weigh(&self, evidence: &ExchangeEvidence, guess: &Guess, states: &mut [Vec<f64>; 2]) -> f64 {
        let Guess { particle, delays } = *guess;
        let mut product = 1.0;
        for (way, states) in states.iter_mut().enumerate() {
            let laws = &evidence.laws[way];
            if let [law] = &laws[..] {
                product *= law.at(delays[way]);
                continue;
            }
            let place = particle * laws.len();
            let mine = &mut states[place..place + laws.len()];
            mine.copy_from_slice(&self.states[way][place..place + laws.len()]);
            mine.iter_mut().zip(laws).for_each(|(share, law)| *share *= law.at(delays[way]));
            let sum: f64 = mine.iter().sum();
            mine.iter_mut().for_each(|share| *share /= sum);
            product *= sum;
        }
        product
    }

    /// Particles moved by the oscillator's law and weighed by the packets.
    fn moved(&mut self, evidence: &ExchangeEvidence, forecast: &Forecast, rate_share: f64) -> ParticleMove {
        let deviation = libm::sqrt(forecast.variance);
        let shown: Vec<f64> = forecast.means.iter().map(|mean| mean + deviation * self.random.normal()).collect();
        let mut states = self.states.clone();
        let likelihood = |particle: usize| {
            let now = shown[particle];
            let before = now - rate_share * (now - self.shown[particle]);
            self.weigh(evidence, &Guess { particle, delays: evidence.delays(now, before) }, &mut states)
        };
        let likelihoods = (0..shown.len()).map(likelihood).collect();
        ParticleMove { shown, likelihoods, states }
    }

    /// Particles drawn from the likelihood of the packets and weighed by the oscillator's law; `None` if no phase
    /// explains the packets.
    fn drawn(&mut self, evidence: &ExchangeEvidence, forecast: &Forecast, rate_share: f64) -> Option<ParticleMove> {
        // The request's phase differs from the reply's by what the rate makes of the trip; its mean will do to draw
        // from.
        let count = self.shown.len();
        let shift = rate_share * (dot(&forecast.means, &self.weights) - dot(&self.shown, &self.weights));
        let shifted = ObservedExchange { lower: evidence.observed.lower + shift, ..evidence.observed };
        let common = ExchangeEvidence { observed: shifted, laws: evidence.laws.clone() };
        let usual = self.ways.each_ref().map(WayLaws::usual);
        let sketch = Sketch::of(common.places(), |place| common.density(place, &usual))?;
        // Stratified, so that few draws cover the whole.
        let quantile = |index: usize| sketch.quantile((index as f64 + self.random.uniform()) / count as f64);
        let mut places: Vec<(f64, f64)> = (0..count).map(quantile).collect();
        shuffle(&mut places, &mut self.random);
        let mut states = self.states.clone();
        let log = |particle: usize| {
            let (now, proposed) = places[particle];
            let before = now - rate_share * (now - self.shown[particle]);
            let likely =
                libm::log(self.weigh(evidence, &Guess { particle, delays: evidence.delays(now, before) }, &mut states));
            let off = now - forecast.means[particle];
            likely - 0.5 * off * off / forecast.variance - libm::log(proposed)
        };
        let logs: Vec<f64> = (0..count).map(log).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let likelihoods = logs.iter().map(|log| libm::exp(log - most)).collect();
        Some(ParticleMove { shown: places.into_iter().map(|place| place.0).collect(), likelihoods, states })
    }

    /// Takes the particles where they went, the linear part with them.
    fn settle(&mut self, chosen: ParticleMove, forecast: &Forecast) {
        let with_shown = self.covariance.times(&self.seen);
        self.covariance.add_outer(&with_shown, -1.0 / forecast.variance);
        if self.seen[1..].iter().all(|seen| *seen == 0.0) {
            // The phase is exactly what was drawn; rounding must not say otherwise.
            let size = self.covariance.size;
            (0..size).for_each(|index| {
                self.covariance.cells[index] = 0.0;
                self.covariance.cells[index * size] = 0.0;
            });
        }
        for (part, covariance) in self.means.iter_mut().zip(with_shown) {
            let gain = covariance / forecast.variance;
            let news = chosen.shown.iter().zip(&forecast.means);
            part.iter_mut().zip(news).for_each(|(mean, (shown, expected))| *mean += gain * (shown - expected));
        }
        self.weights = weighed(&self.weights, &chosen.likelihoods);
        (self.shown, self.states) = (chosen.shown, chosen.states);
        if effective(&self.weights) < UNEVEN * self.weights.len() as f64 {
            self.resample();
        }
    }

    /// Systematic resampling (J. Carpenter, P. Clifford, P. Fearnhead, 1999).
    fn resample(&mut self) {
        let count = self.weights.len();
        let offset = self.random.uniform();
        let (mut parents, mut sum, mut parent) = (Vec::with_capacity(count), self.weights[0], 0);
        for index in 0..count {
            let share = (index as f64 + offset) / count as f64;
            while sum < share && parent + 1 < count {
                parent += 1;
                sum += self.weights[parent];
            }
            parents.push(parent);
        }
        let gather = |values: &[f64]| parents.iter().map(|parent| values[*parent]).collect();
        self.means.iter_mut().for_each(|part| *part = gather(part));
        self.shown = gather(&self.shown);
        for (way, states) in self.ways.iter().zip(&mut self.states) {
            let width = way.states();
            *states =
                parents.iter().flat_map(|parent| &states[parent * width..(parent + 1) * width]).copied().collect();
        }
        self.weights = vec![1.0 / count as f64; count];
    }
}

/// Takes the state of each particle over an interval.
fn advance_all(step: &StateTransition, means: &mut [Vec<f64>]) {
    let count = means[0].len();
    let mut phase = vec![0.0; count];
    for (part, gain) in means.iter().zip(&step.gains).filter(|(_, gain)| **gain != 0.0) {
        phase.iter_mut().zip(part).for_each(|(sum, mean)| *sum += gain * mean);
    }
    for index in 1..means.len() {
        let (kept, turn) = (step.kept[index], step.turns[index]);
        if turn == 0.0 && step.turns[index - 1] == 0.0 {
            means[index].iter_mut().for_each(|mean| *mean *= kept);
        } else if let [one, other, ..] = &mut means[index..]
            && turn != 0.0
        {
            for (one, other) in one.iter_mut().zip(other) {
                (*one, *other) = (kept * *one + turn * *other, kept * *other - turn * *one);
            }
        }
    }
    means[0] = phase;
}

fn shuffle<T>(values: &mut [T], random: &mut Random) {
    for index in (1..values.len()).rev() {
        values.swap(index, (random.uniform() * (index + 1) as f64) as usize);
    }
}

/// The weights after what speaks for each particle, normalised.
fn weighed(weights: &[f64], likelihoods: &[f64]) -> Vec<f64> {
    let raw: Vec<f64> = weights.iter().zip(likelihoods).map(|(weight, likelihood)| weight * likelihood).collect();
    let sum: f64 = raw.iter().sum();
    if sum > 0.0 { raw.into_iter().map(|weight| weight / sum).collect() } else { weights.to_vec() }
}

/// As many equal weights would say as much.
fn effective(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|weight| weight * weight).sum::<f64>()
}
