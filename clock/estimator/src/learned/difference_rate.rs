//! The rate of the difference clock: the mean slope of the absolute clock over the recent past.
//!
//! Intervals are shorter than the time over which an oscillator wanders, so their rate should be recent, but not follow
//! every exchange. With an uncertainty u of the absolute clock, a slope over T is off by sqrt(2) u/T, and a rate that
//! walks by q in a second has moved by q sqrt(T/3): the sum of squares is least at T^3 = 12 u^2/q^2.

use crate::bank::Blend;
use crate::tuning::learned::{DIFFERENCE_WALK, LONGEST_AVERAGE, SHORTEST_AVERAGE};

/// A rate that is averaged over the recent past.
#[derive(Clone, Copy, Debug)]
pub struct DifferenceRate {
    /// Relative to the nominal one, ppm.
    pub rate: f64,
    /// For how long the absolute clock has been continuous, s.
    age: f64,
    /// What the clock has stepped since the last exchange, us.
    step: f64,
}

impl DifferenceRate {
    pub fn begin(rate: f64) -> Self {
        DifferenceRate { rate, age: 0.0, step: 0.0 }
    }

    /// The clock is about to step by `step`, us, which is no slope.
    pub fn exclude(&mut self, step: f64) {
        self.step += step;
    }

    /// The clock went on for `interval` seconds and is now at `blend.theta` over the line through its last time. While
    /// it is young the filter's rate is better than its slope.
    pub fn pass(&mut self, interval: f64, blend: &Blend) {
        let moved = blend.theta - self.step;
        self.step = 0.0;
        if interval <= 0.0 {
            return;
        }
        self.age += interval;
        let memory = memory(blend);
        self.rate = if self.age < memory {
            blend.rate
        } else {
            self.rate + (moved / interval - self.rate) * -libm::expm1(-interval / memory)
        };
    }

    /// The standard uncertainty of the rate, ppm: that of a slope over the averaging time, how far a usual rate walks
    /// away from its exponential mean, and how much further than that the filter's own rate shows it to be, for
    /// instance where the temperature drifts one way for hours. The filter's own rate, which serves while the clock is
    /// young, is as uncertain as the time `later` seconds on says.
    pub fn deviation(&self, blend: &Blend, later: f64) -> f64 {
        let memory = memory(blend);
        let moved = (blend.deviation_later * blend.deviation_later - blend.variance).max(0.0);
        let own = moved / (later * later);
        if self.age < memory {
            return libm::sqrt(own);
        }
        let walked = DIFFERENCE_WALK * DIFFERENCE_WALK * memory / 2.0;
        let usual = 2.0 * blend.variance.max(0.0) / (memory * memory) + walked;
        let apart = blend.rate - self.rate;
        libm::sqrt(usual + (apart * apart - own - usual).max(0.0))
    }
}

/// The time to average over, s.
fn memory(blend: &Blend) -> f64 {
    libm::cbrt(12.0 * blend.variance / (DIFFERENCE_WALK * DIFFERENCE_WALK)).clamp(SHORTEST_AVERAGE, LONGEST_AVERAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blend(theta: f64, rate: f64) -> Blend {
        Blend { theta, variance: 0.25, deviation_later: 1.0, rate }
    }

    #[test]
    fn no_more_than_a_day_is_averaged_over() {
        let mut clock = DifferenceRate::begin(0.0);
        let uncertain = Blend { variance: 1e12, ..blend(16.0, 0.0) };
        for step in 1..6_000 {
            clock.pass(16.0, &uncertain);
            assert_eq!(clock.rate > 0.0, 16 * step >= 86_400, "{step}");
        }
    }

    #[test]
    fn a_step_is_no_slope() {
        let mut clock = DifferenceRate::begin(50.0);
        for step in 0..1_000 {
            clock.exclude(if step == 500 { 1e6 } else { 0.0 });
            clock.pass(16.0, &blend(50.0 * 16.0 + if step == 500 { 1e6 } else { 0.0 }, 50.0));
            assert!((clock.rate - 50.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_uncertainty_is_that_of_two_ends_and_of_the_walk_between_them() {
        let mut clock = DifferenceRate::begin(0.0);
        let young = clock.deviation(&blend(0.0, 0.0), 100.0);
        assert!((young - libm::sqrt(0.75) / 100.0).abs() < 1e-12, "{young}");
        (0..500).for_each(|_| clock.pass(16.0, &blend(0.0, 0.0)));
        let settled = clock.deviation(&blend(0.0, 0.0), 100.0);
        let expected = libm::hypot(libm::sqrt(2.0) * 0.5 / 1_000.0, DIFFERENCE_WALK * libm::sqrt(1_000.0 / 2.0));
        assert!((settled - expected).abs() < 1e-12, "{settled}");
    }

    /// The filter's own rate is known to 0.01 ppm or so here.
    #[test]
    fn a_rate_that_drifts_away_from_its_mean_is_that_uncertain() {
        let mut clock = DifferenceRate::begin(0.0);
        let drifting = |step: i32| blend(0.01 * f64::from(step) * 16.0, 0.01 * f64::from(step));
        (0..500).for_each(|step| clock.pass(16.0, &drifting(step)));
        let last = drifting(499);
        let lag = last.rate - clock.rate;
        assert!(lag > 0.5 && (clock.deviation(&last, 100.0) - lag).abs() < 1e-3, "{lag}");
        let near = Blend { rate: clock.rate + 0.008, ..last };
        let still = Blend { rate: clock.rate, ..last };
        assert_eq!(clock.deviation(&near, 100.0), clock.deviation(&still, 100.0));
    }

    #[test]
    fn the_noise_of_single_slopes_is_averaged_and_a_new_rate_is_reached() {
        let mut clock = DifferenceRate::begin(0.0);
        for step in 0..1_000 {
            let noise = if step % 2 == 0 { 1.0 } else { -1.0 };
            clock.pass(16.0, &blend(0.01 * 16.0 + noise, 0.01));
        }
        assert!((clock.rate - 0.01).abs() < 2e-3, "{}", clock.rate);
    }
}
