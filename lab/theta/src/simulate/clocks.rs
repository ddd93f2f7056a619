//! Counters and clocks of the hosts, with the truth known.
//!
//! A counter ticks evenly, at a rate of its own. The clock knows the rate and where the counter stood, with an error:
//! a slow wave that stays within the clock's bound and never changes faster than its drift. Faults of clocks add what
//! the bound does not cover.

use super::spec::ClockSpec;
use crate::faults::ClockFault;
use crate::length::picoseconds;
use crate::record::{ClockSample, HostId};
use ffclock_sim::Random;
use ffclock_units::{Counter, Period, Rate};
use std::f64::consts::TAU;

/// The clocks of all hosts.
pub(super) struct SimulatedClocks {
    hosts: Vec<SimulatedClock>,
    bound: u64,
    drift: Rate,
    period: u64,
}

struct SimulatedClock {
    /// Ticks per picosecond, in 2^-64.
    rate: u64,
    start: u64,
    amplitude: f64,
    /// Radians per picosecond.
    frequency: f64,
    phase: f64,
    faults: Vec<ClockFault>,
}

/// The promise of every clock without a fault.
struct Promise {
    hertz: f64,
    /// Of the counter's rate, as a fraction.
    skew: f64,
    /// In picoseconds.
    bound: f64,
    /// Seconds a second.
    drift: f64,
}

/// The share of its bound and its drift that a clock uses.
const USED: f64 = 0.9;

impl SimulatedClocks {
    pub(super) fn new(spec: &ClockSpec, faults: &[Vec<ClockFault>], seed: u64) -> Result<Self, String> {
        if !(1e3..=1e11).contains(&spec.hertz) {
            return Err(format!("clock.hertz = {} must lie between 1000 and 1e11", spec.hertz));
        }
        let length =
            |name: &str, value| picoseconds(value).ok_or_else(|| format!("{name} must lie between 0 s and 1000 s"));
        let fraction = |name: &str, value: f64| match (0.0..=0.01).contains(&value) {
            true => Ok(value),
            false => Err(format!("{name} must lie between 0 and 10000 ppm")),
        };
        let bound = length("clock.bound", spec.bound)?;
        let drift = fraction("clock.drift", spec.drift.fraction())?;
        let skew = fraction("clock.skew", spec.skew.fraction())?;
        let period = Some(length("clock.period", spec.period)?).filter(|&period| period > 0);
        let mut random = Random::named(seed, "clocks");
        let promise = Promise { hertz: spec.hertz, skew, bound: bound as f64, drift };
        let mut host = |faults: &Vec<ClockFault>| SimulatedClock::draw(&promise, faults, &mut random);
        Ok(SimulatedClocks {
            hosts: faults.iter().map(&mut host).collect(),
            bound,
            drift: Rate::from_fraction(drift),
            period: period.ok_or("clock.period must lie above 0 s")?,
        })
    }

    /// The counter of a host at a time in picoseconds.
    pub(super) fn counter(&self, host: usize, at: u64) -> Counter {
        self.hosts[host].counter(at)
    }

    /// How far rows in the order of true time may be out of the order of the clocks, in picoseconds.
    pub(super) fn disorder(&self, end: u64) -> u64 {
        let worst = self.hosts.iter().flat_map(|host| host.faults.iter().map(|fault| fault.worst(end))).sum::<f64>();
        let tick = self.hosts.iter().map(|host| u64::MAX / host.rate).max().unwrap_or(0);
        2 * (self.bound + worst as u64 + tick + 1)
    }

    /// Samples of each clock from the origin to `end`: one each period, and one a tick before and one at each moment
    /// at which a fault begins or ends.
    pub(super) fn samples(&self, end: u64) -> impl Iterator<Item = ClockSample> + '_ {
        let last = (end / self.period + 1) * self.period;
        (0..self.hosts.len()).flat_map(move |host| {
            let regular = (0..=last / self.period).map(|index| index * self.period);
            let edges = self.hosts[host].faults.iter().flat_map(|fault| [fault.window.from, fault.window.until]);
            let edges = edges.filter(|&edge| 0 < edge && edge < last);
            let mut times: Vec<u64> =
                edges.flat_map(|edge| self.hosts[host].ticks_around(edge)).chain(regular).collect();
            times.sort_unstable();
            // What falls on the same tick is the same sample, or one from before the tick and the edge in it.
            let mut samples: Vec<ClockSample> = times.into_iter().map(|at| self.sample(host, at)).collect();
            samples.dedup_by_key(|sample| sample.counter.raw());
            samples
        })
    }

    /// The clocks without their errors.
    pub(super) fn truth(&self) -> impl Iterator<Item = ClockSample> + '_ {
        let true_sample = |(host, clock): (usize, &SimulatedClock)| ClockSample {
            bound_ps: 0,
            drift_bound: Rate::from_fraction(0.0),
            ..clock.sample(HostId(host as u32), 0, 0.0)
        };
        self.hosts.iter().enumerate().map(true_sample)
    }

    fn sample(&self, host: usize, at: u64) -> ClockSample {
        let clock = &self.hosts[host];
        let sample = clock.sample(HostId(host as u32), at, clock.error(at));
        ClockSample { bound_ps: self.bound, drift_bound: self.drift, ..sample }
    }
}

impl SimulatedClock {
    fn draw(promise: &Promise, faults: &[ClockFault], random: &mut Random) -> Self {
        let &Promise { hertz, skew, bound, drift } = promise;
        let hertz = hertz * (1.0 + skew * (2.0 * random.uniform() - 1.0));
        let amplitude = USED * bound * random.positive();
        // The steepest slope of the wave is amplitude * frequency.
        let frequency = (USED * drift / amplitude.max(1.0)).min(TAU / 1e12);
        SimulatedClock {
            rate: (hertz * 1e-12 * 2f64.powi(64)) as u64,
            start: random.bits() >> 16,
            amplitude,
            frequency,
            phase: TAU * random.uniform(),
            faults: faults.to_vec(),
        }
    }

    fn counter(&self, at: u64) -> Counter {
        Counter::from_raw(self.start + ((u128::from(at) * u128::from(self.rate)) >> 64) as u64)
    }

    /// When the last tick before a time came, and the first at it or after it.
    fn ticks_around(&self, at: u64) -> [u64; 2] {
        let began = |ticks: u128| ((ticks << 64).div_ceil(u128::from(self.rate))) as u64;
        let ticks = u128::from(self.counter(at).raw() - self.start);
        let after = if began(ticks) < at { ticks + 1 } else { ticks };
        [began(after.saturating_sub(1)), began(after)]
    }

    /// Clock minus truth, in picoseconds.
    fn error(&self, at: u64) -> f64 {
        let wave = self.amplitude * libm::sin(self.phase + self.frequency * at as f64);
        wave + self.faults.iter().map(|fault| fault.error(at)).sum::<f64>()
    }

    fn sample(&self, host: HostId, at: u64, error_ps: f64) -> ClockSample {
        let counter = self.counter(at);
        // When the counter came to show this, which is up to a tick before.
        let ticks = u128::from(counter.raw() - self.start);
        let since = (ticks << 64).div_ceil(u128::from(self.rate));
        let period_s = 2f64.powi(64) / self.rate as f64 * 1e-12;
        ClockSample {
            host,
            counter,
            time_ps: since as i64 + error_ps.round() as i64,
            bound_ps: 0,
            period: Period::from_seconds(period_s).expect("hertz lies between 1000 and 1e11"),
            drift_bound: Rate::from_fraction(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::FaultWindow;
    use ffclock_sim::scenario::{Fraction, Length};
    use ffclock_units::Span;

    fn spec(bound_us: f64) -> ClockSpec {
        ClockSpec {
            bound: Length(Span::from_seconds(bound_us * 1e-6)),
            drift: Fraction(Rate::from_ppm(0.2)),
            ..ClockSpec::default()
        }
    }

    /// The promise of a sample: line and bound hold the truth at every moment.
    #[test]
    fn clocks_keep_their_bounds() {
        let clocks = SimulatedClocks::new(&spec(2.0), &vec![Vec::new(); 5], 1).unwrap();
        let end = 100_000_000_000_000;
        for sample in clocks.samples(end) {
            let at = sample.time_ps.max(0) as u64;
            let ticks = clocks.counter(sample.host.0 as usize, at).raw() as f64 - sample.counter.raw() as f64;
            let says = sample.time_ps as f64 + ticks * sample.period.as_seconds() * 1e12;
            assert!((says - at as f64).abs() <= 2e6 + 500.0, "{sample:?}");
        }
        let errors: Vec<f64> = (0..5).map(|host| clocks.hosts[host].error(7).abs()).collect();
        assert!(errors.iter().any(|&error| error > 1e5), "they do err: {errors:?}");
    }

    #[test]
    fn the_truth_is_true() {
        let clocks = SimulatedClocks::new(&spec(2.0), &vec![Vec::new(); 3], 9).unwrap();
        for (host, sample) in clocks.truth().enumerate() {
            let at = 123_456_789_012_345;
            let ticks = clocks.counter(host, at).raw() - sample.counter.raw();
            let says = sample.time_ps as f64 + ticks as f64 * sample.period.as_seconds() * 1e12;
            assert!((says - at as f64).abs() < 500.0, "{says}");
        }
    }

    #[test]
    fn faults_break_the_bound() {
        let window = FaultWindow { from: 1_000, until: u64::MAX };
        let step = ClockFault { window, step: 5e6, rate: 0.0 };
        let drift = ClockFault { window, step: 0.0, rate: 1e-6 };
        assert_eq!([0, 1_000, 1_000_001_000].map(|at| step.error(at)), [0.0, 5e6, 5e6]);
        assert_eq!(drift.error(1_000_001_000), 1_000.0);
        let clocks = SimulatedClocks::new(&spec(0.0), &[vec![step]], 1).unwrap();
        assert!(clocks.disorder(1_000_000) >= 10_000_000);
        let short = ClockFault { window: FaultWindow { from: 1_000, until: 2_000 }, step: 5e6, rate: 0.0 };
        let clocks = SimulatedClocks::new(&spec(0.0), &[vec![short]], 1).unwrap();
        assert!(clocks.disorder(1_000_000) >= 10_000_000, "also of a step that is over");
    }

    /// A step of 5 ms for 2 ms, far from any regular look at the clock: off by that within, and by nothing a tick
    /// outside.
    #[test]
    fn a_step_is_sampled_at_its_edges() {
        let window = FaultWindow { from: 3_000_000_123, until: 5_000_000_456 };
        let clocks = SimulatedClocks::new(&spec(0.0), &[vec![ClockFault { window, step: 5e9, rate: 0.0 }]], 1).unwrap();
        let samples: Vec<ClockSample> = clocks.samples(10_000_000_000).collect();
        assert_eq!(samples.len(), 2 + 4, "{samples:?}");
        let mut says = crate::analysis::SampledClock::new(&samples).unwrap();
        let mut error = |at: u64| says.time_ps(clocks.counter(0, at)) - at as i64;
        let tick = 400;
        for (at, off) in [
            (1_000_000_000, 0),
            (window.from - tick, 0),
            (window.from + tick, 5_000_000_000),
            (4_000_000_000, 5_000_000_000),
            (window.until - tick, 5_000_000_000),
            (window.until + tick, 0),
            (9_000_000_000, 0),
        ] {
            assert!((error(at) - off).abs() <= 2 * tick as i64, "at {at}: {}", error(at));
        }
    }
}
