//! What an earlier run has left: the rate of the oscillator in a drift file, a memory or the kernel, and a system clock
//! that runs by it.

use super::SystemClock;
use crate::counter::SimulatedCounter;
use crate::scenario::{Scenario, StartSpec};
use crate::world::begin;
use ffclock_units::{Counter, Moment, Period, Rate, RateMemory, Tai};

/// How well an earlier run knew the rate [ppm], as the drift files and memories of the live laboratory say.
const RATE_ERROR_PPM: f64 = 0.1;

/// Where clocks begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockStart {
    nominal: Period,
    spec: Option<StartSpec>,
}

impl ClockStart {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        ClockStart { nominal: scenario.counter.nominal(), spec: scenario.start }
    }

    /// Clocks without a past.
    #[cfg(test)]
    pub(crate) fn none(nominal: Period) -> Self {
        ClockStart { nominal, spec: None }
    }

    /// The correction of the frequency with which the oscillator would keep time, where it is known.
    pub(crate) fn frequency(&self) -> Option<f64> {
        self.spec.map(|spec| 1.0 / (1.0 + spec.rate.fraction()) - 1.0)
    }

    /// The system clock at the beginning of the world with the counter there, where it is not set by the first
    /// measurement.
    pub(crate) fn clock(&self) -> Option<(SystemClock, (Counter, Moment<Tai>))> {
        let (spec, frequency) = (self.spec?, self.frequency()?);
        let (counter, time) = (SimulatedCounter::BEGIN, begin() + spec.ahead.0);
        let mut clock = SystemClock::new(self.nominal, counter, time);
        clock.set_frequency(counter, frequency);
        Some((clock, (counter, time)))
    }

    /// What an estimator remembers.
    pub(crate) fn memory(&self) -> Option<RateMemory> {
        let period = self.nominal.stretched(Rate::from_fraction(self.frequency()?));
        Some(RateMemory { period, bound: Rate::from_ppm(RATE_ERROR_PPM), wander: None })
    }
}
