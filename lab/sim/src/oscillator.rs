//! Oscillators: what a counter counts.
//!
//! An oscillator has a phase error x(t), the time that it has shown minus the true time, since the beginning of the
//! world. It is made of a constant skew, ageing, noise (see `noise.rs`), temperature waves and steps. It is looked at
//! in the order of time only.

use crate::noise::{FlickerFrequency, FlickerPhase, WalkFrequency, WhiteFrequency, white_phase};
use crate::random::Random;
use crate::scenario::{OscillatorSpec, StepSpec, WaveSpec};
use ffclock_units::Span;

const DAY_S: f64 = 86_400.0;
const TWO_PI: f64 = 2.0 * core::f64::consts::PI;

/// An oscillator at the time of the last look.
#[derive(Clone, Debug)]
pub struct Oscillator {
    random: Random,
    now: Span,
    walked: f64,
    white: WhiteFrequency,
    walk: WalkFrequency,
    flicker: FlickerFrequency,
    flicker_phase: FlickerPhase,
    white_phase: f64,
    steady: Steady,
}

/// The part that is a function of time and needs no history.
#[derive(Clone, Debug)]
struct Steady {
    skew: f64,
    ageing: f64,
    waves: Vec<(WaveSpec, f64)>,
    steps: Vec<StepSpec>,
}

impl Steady {
    /// The phase error at `t` seconds.
    fn phase(&self, t: f64) -> f64 {
        let waves: f64 = self.waves.iter().map(|(wave, start)| wave_phase(wave, *start, t)).sum();
        let steps: f64 = self.steps.iter().map(|step| step_phase(step, t)).sum();
        self.skew * t + 0.5 * self.ageing / DAY_S * t * t + waves + steps
    }
}

/// The phase error at `t` [s] that follows from the specification alone: ageing and steps of temperature.
pub(crate) fn announced_phase(spec: &OscillatorSpec, t: f64) -> f64 {
    let steps = spec.step.clone();
    Steady { skew: 0.0, ageing: spec.ageing_per_day.fraction(), waves: Vec::new(), steps }.phase(t)
}

/// The integral of `peak sin(2 pi t / period + start)`.
fn wave_phase(wave: &WaveSpec, start: f64, t: f64) -> f64 {
    let angular = TWO_PI / wave.period.seconds();
    wave.peak.fraction() / angular * (libm::cos(start) - libm::cos(angular * t + start))
}

/// The integral of a rate that moves to `change` with a thermal time constant, and back when the load ends.
fn step_phase(step: &StepSpec, t: f64) -> f64 {
    let constant = step.settling.seconds();
    let risen = |since: f64| if since <= 0.0 { 0.0 } else { since + constant * libm::expm1(-since / constant) };
    let back = step.until.map_or(0.0, |until| risen(t - until.seconds()));
    step.change.fraction() * (risen(t - step.at.seconds()) - back)
}

impl Oscillator {
    /// An oscillator at the beginning of its world.
    pub fn new(spec: &OscillatorSpec, seed: u64) -> Self {
        let mut random = Random::named(seed, "oscillator");
        let waves = spec.wave.iter().map(|wave| (*wave, TWO_PI * random.uniform())).collect();
        let steady = Steady {
            skew: spec.skew.fraction(),
            ageing: spec.ageing_per_day.fraction(),
            waves,
            steps: spec.step.clone(),
        };
        Oscillator {
            flicker: FlickerFrequency::new(spec.flicker_frequency, &mut random),
            flicker_phase: FlickerPhase::new(spec.flicker_phase_at_1_s, &mut random),
            white: WhiteFrequency { at_1_s: spec.white_frequency_at_1_s },
            walk: WalkFrequency::new(spec.walk_frequency_at_10000_s, 1e4),
            white_phase: spec.white_phase_at_1_s,
            random,
            now: Span::ZERO,
            walked: 0.0,
            steady,
        }
    }

    /// The time shown minus the true time [s] at the true time `at`, which is not before the last look.
    pub fn phase(&mut self, at: Span) -> f64 {
        let interval = (at - self.now).as_seconds();
        if interval > 0.0 {
            self.walked += self.white.step(interval, &mut self.random)
                + self.walk.step(interval, &mut self.random)
                + self.flicker.step(interval, &mut self.random);
            self.flicker_phase.step(interval, &mut self.random);
            self.now = at;
        }
        let noise = self.flicker_phase.value() + white_phase(self.white_phase, &mut self.random);
        self.steady.phase(at.as_seconds()) + self.walked + noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Fraction, Length};

    fn length(seconds: i64) -> Length {
        Length(Span::from_secs(seconds))
    }

    fn ppm(ppm: f64) -> Fraction {
        Fraction(ffclock_units::Rate::from_ppm(ppm))
    }

    fn silent() -> OscillatorSpec {
        OscillatorSpec { skew: ppm(0.0), ..OscillatorSpec::silent() }
    }

    fn rate_at(oscillator: &mut Oscillator, second: i64) -> f64 {
        let before = oscillator.phase(Span::from_secs(second));
        (oscillator.phase(Span::from_secs(second + 1)) - before) * 1e6
    }

    #[test]
    fn skew_and_ageing_add_up() {
        let spec = OscillatorSpec { skew: ppm(50.0), ageing_per_day: ppm(2.0), ..silent() };
        let mut oscillator = Oscillator::new(&spec, 1);
        assert!((rate_at(&mut oscillator, 0) - 50.0).abs() < 1e-3);
        assert!((rate_at(&mut oscillator, 86_400) - 52.0).abs() < 1e-3);
    }

    #[test]
    fn a_step_settles_and_goes_back() {
        let step = StepSpec { at: length(1000), until: Some(length(5000)), change: ppm(0.5), settling: length(60) };
        let mut oscillator = Oscillator::new(&OscillatorSpec { step: vec![step], ..silent() }, 1);
        assert!(rate_at(&mut oscillator, 900).abs() < 1e-9);
        assert!((rate_at(&mut oscillator, 1060) - 0.5 * (1.0 - (-1.0_f64).exp())).abs() < 3e-3);
        assert!((rate_at(&mut oscillator, 4000) - 0.5).abs() < 1e-6);
        assert!(rate_at(&mut oscillator, 7000).abs() < 1e-6);
    }

    #[test]
    fn a_wave_has_its_peak_and_its_period() {
        let wave = WaveSpec { peak: ppm(0.1), period: length(1000) };
        let mut oscillator = Oscillator::new(&OscillatorSpec { wave: vec![wave], ..silent() }, 1);
        let rates: Vec<f64> = (0..2000).map(|second| rate_at(&mut oscillator, second)).collect();
        let highest = rates.iter().copied().fold(f64::MIN, f64::max);
        assert!((highest - 0.1).abs() < 1e-4);
        assert!(rates[..1000].iter().zip(&rates[1000..]).all(|(one, next)| (one - next).abs() < 1e-6));
    }
}
