//! Noise of oscillators, generated at any sequence of times.
//!
//! Each process is a Gaussian Markov process and is stepped exactly over whatever interval lies between two looks at
//! it, so neither a grid nor a filter length has a say in the result. Flicker noise is a sum of Ornstein-Uhlenbeck
//! processes whose time constants are a factor of four apart; within the range that they cover, its spectrum follows
//! 1/f to a per cent. Levels are Allan deviations, as data sheets give them: D. W. Allan, "Statistics of atomic
//! frequency standards", 1966; W. J. Riley, NIST SP 1065, table 4 and section 5.

use crate::random::Random;

/// Between the time constants of neighbours.
const RATIO: f64 = 4.0;
/// The fastest and the number of the processes that make flicker frequency noise: 0.25 s to 4.2e6 s.
const FREQUENCY_FASTEST_S: f64 = 0.25;
const FREQUENCY_PROCESSES: usize = 13;
/// The same for flicker phase noise: 1 ms to 6.7e4 s.
const PHASE_FASTEST_S: f64 = 1e-3;
const PHASE_PROCESSES: usize = 14;
/// Below this many time constants differences of exponentials lose their digits and the first term of their series is
/// exact enough.
const SHORT: f64 = 1e-3;

/// White frequency noise: the phase walks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WhiteFrequency {
    /// Allan deviation at 1 s.
    pub(crate) at_1_s: f64,
}

impl WhiteFrequency {
    /// How much the phase changes over `interval` [s].
    pub(crate) fn step(&self, interval: f64, random: &mut Random) -> f64 {
        if self.at_1_s == 0.0 { 0.0 } else { self.at_1_s * libm::sqrt(interval) * random.normal() }
    }
}

/// Random-walk frequency noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkFrequency {
    /// Size of the walk [s/s per square root of a second].
    size: f64,
    rate: f64,
}

impl WalkFrequency {
    /// With the Allan deviation `level` at `interval` [s]: sigma^2 = size^2 interval / 3.
    pub(crate) fn new(level: f64, interval: f64) -> Self {
        WalkFrequency { size: walk_size(level, interval), rate: 0.0 }
    }

    /// How much the phase changes over `interval` [s].
    pub(crate) fn step(&mut self, interval: f64, random: &mut Random) -> f64 {
        if self.size == 0.0 {
            return 0.0;
        }
        let (first, second) = (random.normal(), random.normal());
        let root = libm::sqrt(interval);
        let phase = self.rate * interval + self.size * interval * root * (0.5 * first + second / libm::sqrt(12.0));
        self.rate += self.size * root * first;
        phase
    }
}

/// The size of the walk [s/s per square root of a second] that has the Allan deviation `level` at `interval` [s].
pub(crate) fn walk_size(level: f64, interval: f64) -> f64 {
    level * libm::sqrt(3.0 / interval)
}

/// How an Ornstein-Uhlenbeck process moves over an interval, for a deviation of 1 and in units of its time constant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forgetting {
    /// What is left of the value.
    pub(crate) kept: f64,
    /// What the value contributes to the integral.
    pub(crate) gone: f64,
    /// The variance that is new in the value.
    pub(crate) end_variance: f64,
    /// The variance that is new in the integral.
    pub(crate) integral_variance: f64,
    /// Their covariance.
    pub(crate) covariance: f64,
}

impl Forgetting {
    /// Over `u` time constants (D. T. Gillespie, "Exact numerical simulation of the Ornstein-Uhlenbeck process and its
    /// integral", 1996).
    pub(crate) fn over(u: f64) -> Self {
        let gone = -libm::expm1(-u);
        let kept = 1.0 - gone;
        let integral_variance =
            if u < SHORT { 2.0 / 3.0 * u * u * u } else { 2.0 * u - 3.0 + 4.0 * kept - kept * kept };
        Forgetting { kept, gone, end_variance: gone * (1.0 + kept), integral_variance, covariance: gone * gone }
    }
}

/// An Ornstein-Uhlenbeck process: it forgets with a time constant.
#[derive(Clone, Copy, Debug)]
struct Forgetful {
    constant: f64,
    deviation: f64,
    value: f64,
}

impl Forgetful {
    fn new(constant: f64, deviation: f64, random: &mut Random) -> Self {
        Forgetful { constant, deviation, value: deviation * random.normal() }
    }

    fn step(&mut self, interval: f64, random: &mut Random) {
        let kept = libm::exp(-interval / self.constant);
        let fresh = -libm::expm1(-2.0 * interval / self.constant);
        self.value = self.value * kept + self.deviation * libm::sqrt(fresh) * random.normal();
    }

    /// Steps the process and returns its integral over `interval`, jointly exact: the integral given the end is normal.
    fn integrate(&mut self, interval: f64, random: &mut Random) -> f64 {
        let Forgetting { kept, gone, end_variance, integral_variance, covariance } =
            Forgetting::over(interval / self.constant);
        let end_noise = libm::sqrt(end_variance) * random.normal();
        let shared = covariance / end_variance;
        let rest = (integral_variance - shared * covariance).max(0.0);
        let integral_noise = shared * end_noise + libm::sqrt(rest) * random.normal();
        let integral = self.constant * (self.value * gone + self.deviation * integral_noise);
        self.value = self.value * kept + self.deviation * end_noise;
        integral
    }
}

fn constants(fastest: f64, count: usize) -> impl Iterator<Item = f64> {
    (0..count).map(move |index| fastest * libm::pow(RATIO, index as f64))
}

/// Time constants [s] and deviations [s/s] of the processes that make flicker frequency noise with the Allan deviation
/// `floor`. The sum's spectrum is v/(f ln RATIO), which a floor of sigma^2 = 2 ln 2 h(-1) asks for.
pub(crate) fn flicker_frequency_parts(floor: f64) -> impl Iterator<Item = (f64, f64)> {
    let deviation = floor * libm::sqrt(libm::log(RATIO) / (2.0 * core::f64::consts::LN_2));
    let count = if floor == 0.0 { 0 } else { FREQUENCY_PROCESSES };
    constants(FREQUENCY_FASTEST_S, count).map(move |constant| (constant, deviation))
}

/// Time constants and deviations [s] of those that make flicker phase noise with the Allan deviation `at_1_s` at 1 s:
/// sigma^2 = sum of v (3 - 4a + a^2), a = exp(-1 s / constant).
pub(crate) fn flicker_phase_parts(at_1_s: f64) -> impl Iterator<Item = (f64, f64)> {
    let share = |constant: f64| {
        let kept = libm::exp(-1.0 / constant);
        3.0 - 4.0 * kept + kept * kept
    };
    let shares: f64 = constants(PHASE_FASTEST_S, PHASE_PROCESSES).map(share).sum();
    let deviation = at_1_s / libm::sqrt(shares);
    let count = if at_1_s == 0.0 { 0 } else { PHASE_PROCESSES };
    constants(PHASE_FASTEST_S, count).map(move |constant| (constant, deviation))
}

/// The deviation [s] of white phase noise with the Allan deviation `at_1_s` at 1 s: sigma^2 = 3 x^2 / interval^2.
pub(crate) fn white_phase_deviation(at_1_s: f64) -> f64 {
    at_1_s / libm::sqrt(3.0)
}

/// Flicker frequency noise: the Allan deviation is the same at every interval.
#[derive(Clone, Debug)]
pub(crate) struct FlickerFrequency(Vec<Forgetful>);

impl FlickerFrequency {
    /// With the Allan deviation `floor`.
    pub(crate) fn new(floor: f64, random: &mut Random) -> Self {
        let make = |(constant, deviation)| Forgetful::new(constant, deviation, random);
        FlickerFrequency(flicker_frequency_parts(floor).map(make).collect())
    }

    /// How much the phase changes over `interval` [s].
    pub(crate) fn step(&mut self, interval: f64, random: &mut Random) -> f64 {
        self.0.iter_mut().map(|process| process.integrate(interval, random)).sum()
    }
}

/// Flicker phase noise: the Allan deviation falls nearly as 1 / interval.
#[derive(Clone, Debug)]
pub(crate) struct FlickerPhase(Vec<Forgetful>);

impl FlickerPhase {
    /// With the Allan deviation `at_1_s` at 1 s.
    pub(crate) fn new(at_1_s: f64, random: &mut Random) -> Self {
        let make = |(constant, deviation)| Forgetful::new(constant, deviation, random);
        FlickerPhase(flicker_phase_parts(at_1_s).map(make).collect())
    }

    /// Steps over `interval` [s].
    pub(crate) fn step(&mut self, interval: f64, random: &mut Random) {
        self.0.iter_mut().for_each(|process| process.step(interval, random));
    }

    /// The phase noise now [s].
    pub(crate) fn value(&self) -> f64 {
        self.0.iter().map(|process| process.value).sum()
    }
}

/// White phase noise of one look [s], for an Allan deviation at 1 s.
pub(crate) fn white_phase(at_1_s: f64, random: &mut Random) -> f64 {
    if at_1_s == 0.0 { 0.0 } else { white_phase_deviation(at_1_s) * random.normal() }
}

#[cfg(test)]
mod tests;
