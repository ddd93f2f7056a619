//! What is known of an oscillator before it is measured: its noise laws as a linear system with normal noise, stepped
//! exactly.
//!
//! The state is the phase error [us], the rate [ppm] that walks, the processes whose sum is flicker frequency noise
//! [ppm], the two parts of each temperature wave [ppm], and the processes of flicker phase noise [us]. These are the
//! laws by which `noise.rs` makes the noise, with the same constants. The skew is unknown; ageing and steps of
//! temperature are known to the oracle and taken out before.

use crate::noise::{Forgetting, flicker_frequency_parts, flicker_phase_parts, walk_size};
use crate::scenario::OscillatorSpec;

/// Seconds to microseconds, and fractions to ppm.
pub(crate) const MICRO: f64 = 1e6;
/// What is known of the skew before the first packet: its deviation [ppm].
const SKEW_PPM: f64 = 100.0;

/// What is known of the phase before the first packet, beside that packet: its deviation [us].
const PHASE_SPREAD: f64 = 1e5;

/// One part of the state. Deviations in us and ppm.
#[derive(Clone, Copy, Debug, PartialEq)]
enum StatePart {
    Phase,
    Rate {
        size: f64,
    },
    Flicker {
        constant: f64,
        deviation: f64,
    },
    /// The part of a wave in phase with its rate at the beginning; the next part of the state is the other.
    Wave {
        angular: f64,
        peak: f64,
    },
    Quadrature {
        peak: f64,
    },
    FlickerPhase {
        constant: f64,
        deviation: f64,
    },
}

/// The system of one oscillator.
#[derive(Clone, Debug)]
pub(crate) struct Dynamics {
    parts: Vec<StatePart>,
    white: f64,
}

/// A symmetric matrix over the state, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) size: usize,
    pub(crate) cells: Vec<f64>,
}

impl Matrix {
    pub(super) fn zero(size: usize) -> Self {
        Matrix { size, cells: vec![0.0; size * size] }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.cells.chunks(self.size)
    }

    /// The product with a vector.
    pub(crate) fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.rows().map(|row| dot(row, vector)).collect()
    }

    /// Adds `factor` times the outer product of a vector with itself.
    pub(crate) fn add_outer(&mut self, vector: &[f64], factor: f64) {
        for (row, one) in self.cells.chunks_mut(self.size).zip(vector) {
            row.iter_mut().zip(vector).for_each(|(cell, other)| *cell += factor * one * other);
        }
    }

    fn transpose(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                self.cells.swap(row * self.size + column, column * self.size + row);
            }
        }
    }

    /// Applies `apply` to both sides: A P A'.
    fn both_sides(&mut self, apply: impl Fn(&mut [f64])) {
        self.cells.chunks_mut(self.size).for_each(&apply);
        self.transpose();
        self.cells.chunks_mut(self.size).for_each(&apply);
    }
}

/// A state that is known up to a normal error.
#[derive(Clone, Debug)]
pub(crate) struct Normal {
    /// When [s].
    pub(crate) at: f64,
    pub(crate) mean: Vec<f64>,
    pub(crate) covariance: Matrix,
}

impl Normal {
    /// Takes it to a later time.
    pub(crate) fn advance(&mut self, dynamics: &Dynamics, at: f64) {
        let step = dynamics.step((at - self.at).max(0.0));
        step.advance(&mut self.mean);
        step.spread(&mut self.covariance);
        self.at = at;
    }

    /// The counter stopped or restarted: the phase is somewhere near `phase`, all else remains.
    pub(super) fn lose_phase(&mut self, phase: f64) {
        let size = self.covariance.size;
        for index in 0..size {
            self.covariance.cells[index] = 0.0;
            self.covariance.cells[index * size] = 0.0;
        }
        self.covariance.cells[0] = PHASE_SPREAD * PHASE_SPREAD;
        self.mean[0] = phase;
    }
}

pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// The system over one interval.
#[derive(Clone, Debug)]
pub(super) struct StateTransition {
    /// What each part adds to the phase; of the phase itself, 1.
    pub(super) gains: Vec<f64>,
    /// What is left of each part. For the parts of a wave, the cosine of its turn.
    pub(super) kept: Vec<f64>,
    /// The sine of a wave's turn, at its first part; zero elsewhere.
    pub(super) turns: Vec<f64>,
    /// New variance of each part, and its covariance with the phase.
    noise: Vec<(f64, f64)>,
}

impl Dynamics {
    pub(crate) fn of(spec: &OscillatorSpec) -> Self {
        let size = walk_size(spec.walk_frequency_at_10000_s, 1e4) * MICRO;
        let flicker = flicker_frequency_parts(spec.flicker_frequency)
            .map(|(constant, deviation)| StatePart::Flicker { constant, deviation: deviation * MICRO });
        let waves = spec.wave.iter().flat_map(|wave| {
            let angular = 2.0 * core::f64::consts::PI / wave.period.seconds();
            let peak = wave.peak.fraction() * MICRO;
            [StatePart::Wave { angular, peak }, StatePart::Quadrature { peak }]
        });
        let flicker_phase = flicker_phase_parts(spec.flicker_phase_at_1_s)
            .map(|(constant, deviation)| StatePart::FlickerPhase { constant, deviation: deviation * MICRO });
        let parts =
            [StatePart::Phase, StatePart::Rate { size }].into_iter().chain(flicker).chain(waves).chain(flicker_phase);
        Dynamics { parts: parts.collect(), white: spec.white_frequency_at_1_s * MICRO }
    }

    pub(super) fn size(&self) -> usize {
        self.parts.len()
    }

    /// Which parts of the state are seen in a counter reading: the phase, and flicker phase noise.
    pub(crate) fn seen(&self) -> Vec<f64> {
        let is_seen = |part: &StatePart| matches!(part, StatePart::Phase | StatePart::FlickerPhase { .. });
        self.parts.iter().map(|part| f64::from(u8::from(is_seen(part)))).collect()
    }

    /// What is known before the first packet, at `at` [s] and with the phase near `phase` [us].
    pub(crate) fn prior(&self, at: f64, phase: f64) -> Normal {
        let mut covariance = Matrix::zero(self.size());
        for (index, part) in self.parts.iter().enumerate() {
            let deviation = match *part {
                StatePart::Phase => PHASE_SPREAD,
                StatePart::Rate { .. } => SKEW_PPM,
                StatePart::Flicker { deviation, .. } | StatePart::FlickerPhase { deviation, .. } => deviation,
                StatePart::Wave { peak, .. } | StatePart::Quadrature { peak } => peak / core::f64::consts::SQRT_2,
            };
            covariance.cells[index * (self.size() + 1)] = deviation * deviation;
        }
        let mut mean = vec![0.0; self.size()];
        mean[0] = phase;
        Normal { at, mean, covariance }
    }

    /// The system over `interval` [s].
    pub(super) fn step(&self, interval: f64) -> StateTransition {
        let size = self.size();
        let (mut gains, mut kept, mut turns, mut noise) =
            (vec![0.0; size], vec![1.0; size], vec![0.0; size], vec![(0.0, 0.0); size]);
        let mut phase_variance = self.white * self.white * interval;
        for (index, part) in self.parts.iter().enumerate() {
            match *part {
                StatePart::Phase => gains[index] = 1.0,
                StatePart::Rate { size } => {
                    let variance = size * size * interval;
                    gains[index] = interval;
                    noise[index] = (variance, 0.5 * variance * interval);
                    phase_variance += variance * interval * interval / 3.0;
                }
                StatePart::Flicker { constant, deviation } => {
                    let (over, variance) = (Forgetting::over(interval / constant), deviation * deviation);
                    gains[index] = constant * over.gone;
                    kept[index] = over.kept;
                    noise[index] = (variance * over.end_variance, variance * constant * over.covariance);
                    phase_variance += variance * constant * constant * over.integral_variance;
                }
                StatePart::Wave { angular, .. } => {
                    let (sine, cosine) = libm::sincos(angular * interval);
                    (gains[index], gains[index + 1]) = (sine / angular, (1.0 - cosine) / angular);
                    (kept[index], kept[index + 1], turns[index]) = (cosine, cosine, sine);
                }
                StatePart::Quadrature { .. } => {}
                StatePart::FlickerPhase { constant, deviation } => {
                    let over = Forgetting::over(interval / constant);
                    kept[index] = over.kept;
                    noise[index] = (deviation * deviation * over.end_variance, 0.0);
                }
            }
        }
        noise[0] = (phase_variance, 0.0);
        StateTransition { gains, kept, turns, noise }
    }
}

impl StateTransition {
    /// Takes a state over the interval.
    pub(super) fn advance(&self, state: &mut [f64]) {
        let phase = dot(&self.gains, state);
        let mut index = 1;
        while index < state.len() {
            let turn = self.turns[index];
            if turn != 0.0 {
                let (one, other) = (state[index], state[index + 1]);
                state[index] = self.kept[index] * one + turn * other;
                state[index + 1] = self.kept[index] * other - turn * one;
                index += 2;
            } else {
                state[index] *= self.kept[index];
                index += 1;
            }
        }
        state[0] = phase;
    }

    /// The transpose of [`StateTransition::advance`].
    pub(super) fn retreat(&self, adjoint: &mut [f64]) {
        let phase = adjoint[0];
        let mut index = 1;
        while index < adjoint.len() {
            let turn = self.turns[index];
            if turn != 0.0 {
                let (one, other) = (adjoint[index], adjoint[index + 1]);
                adjoint[index] = self.kept[index] * one - turn * other + self.gains[index] * phase;
                adjoint[index + 1] = turn * one + self.kept[index] * other + self.gains[index + 1] * phase;
                index += 2;
            } else {
                adjoint[index] = self.kept[index] * adjoint[index] + self.gains[index] * phase;
                index += 1;
            }
        }
    }

    /// Takes the covariance of a state over the interval.
    pub(super) fn spread(&self, covariance: &mut Matrix) {
        covariance.both_sides(|row| self.advance(row));
        let size = covariance.size;
        for (index, (variance, with_phase)) in self.noise.iter().enumerate() {
            covariance.cells[index * (size + 1)] += variance;
            covariance.cells[index] += with_phase;
            covariance.cells[index * size] += with_phase;
        }
    }

    /// Takes the weight of an adjoint, the matrix that goes with it, back over the interval.
    pub(super) fn retreat_weight(&self, weight: &mut Matrix) {
        weight.both_sides(|row| self.retreat(row));
    }
}
