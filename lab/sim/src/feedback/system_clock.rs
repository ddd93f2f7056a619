//! A system clock that is steered: frequency, slew, step.

use ffclock_units::{Counter, Moment, Period, Span, Tai};

/// The largest correction of the frequency that a kernel takes [s/s] (Linux, MAXFREQ).
const FREQUENCY_MAX: f64 = 500e-6;

/// Runs at the nominal rate of its counter plus corrections.
#[derive(Clone, Debug)]
pub(crate) struct SystemClock {
    nominal: Period,
    counter: Counter,
    time: Moment<Tai>,
    frequency: f64,
    slew: f64,
    slew_end: Counter,
}

impl SystemClock {
    pub(crate) fn new(nominal: Period, counter: Counter, time: Moment<Tai>) -> Self {
        SystemClock { nominal, counter, time, frequency: 0.0, slew: 0.0, slew_end: counter }
    }

    pub(crate) fn read(&self, counter: Counter) -> Moment<Tai> {
        let seconds = |until: Counter| self.nominal * (until - self.counter);
        let passed = seconds(counter);
        let slewed = if counter.is_after(self.slew_end) { seconds(self.slew_end) } else { passed };
        let corrections = self.frequency * passed.as_seconds() + self.slew * slewed.as_seconds();
        self.time + passed + Span::from_seconds(corrections)
    }

    /// Lets the past be, so that what follows changes the future only.
    fn settle(&mut self, counter: Counter) {
        self.time = self.read(counter);
        self.counter = counter;
        if counter.is_after(self.slew_end) {
            self.slew = 0.0;
            self.slew_end = counter;
        }
    }

    /// Sets the correction of the frequency from `counter` on; returns what was taken of it.
    pub(crate) fn set_frequency(&mut self, counter: Counter, frequency: f64) -> f64 {
        self.settle(counter);
        self.frequency = frequency.clamp(-FREQUENCY_MAX, FREQUENCY_MAX);
        self.frequency
    }

    /// Adds `seconds` at once.
    pub(crate) fn step(&mut self, counter: Counter, seconds: f64) {
        self.settle(counter);
        self.slew = 0.0;
        self.slew_end = counter;
        self.time = self.time + Span::from_seconds(seconds);
    }

    /// Runs faster by `rate` for `seconds`, in place of a slew under way.
    pub(crate) fn slew(&mut self, counter: Counter, rate: f64, seconds: f64) {
        self.settle(counter);
        self.slew = rate;
        self.slew_end = counter + self.nominal.ticks_in(Span::from_seconds(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> SystemClock {
        let nominal = Period::from_hertz(1e9).unwrap();
        SystemClock::new(nominal, Counter::from_raw(0), Moment::from_origin(Span::ZERO))
    }

    fn nanos(clock: &SystemClock, second: u64) -> i128 {
        (clock.read(Counter::from_raw(second * 1_000_000_000)).since_origin() - Span::from_secs(second as i64))
            .as_nanos()
    }

    #[test]
    fn corrections_change_the_future_only() {
        let mut clock = clock();
        clock.set_frequency(Counter::from_raw(10_000_000_000), 1e-6);
        assert_eq!([10, 11, 20].map(|second| nanos(&clock, second)), [0, 1000, 10_000]);
        clock.step(Counter::from_raw(20_000_000_000), -1e-5);
        assert_eq!([20, 21].map(|second| nanos(&clock, second)), [0, 1000]);
    }

    #[test]
    fn a_slew_ends() {
        let mut clock = clock();
        clock.slew(Counter::from_raw(0), 1e-4, 5.0);
        assert_eq!([1, 5, 6, 100].map(|second| nanos(&clock, second)), [100_000, 500_000, 500_000, 500_000]);
        clock.set_frequency(Counter::from_raw(100_000_000_000), -1.0);
        assert_eq!(nanos(&clock, 102), 500_000 - 2 * 500_000);
    }
}
