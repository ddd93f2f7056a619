//! The rate of the difference clock: the mean slope of the absolute clock over the recent past, and the filter's own
//! rate as far as that shows the mean to lag.
//!
//! Intervals are shorter than the time over which an oscillator wanders, so their rate should be recent, but not follow
//! every exchange. With an uncertainty u of the absolute clock, a slope over T is off by sqrt(2) u/T, and a rate that
//! walks by q in a second has moved by q sqrt(T/3): the sum of squares is least at T^3 = 12 u^2/q^2. Where the rate
//! drifts one way for hours, a mean over T lags. The distance d of the filter's rate from the mean then has a larger
//! square than the variance n^2 of both explains, and the rest of it is the lag: the part 1 - n^2/d^2 of d (a
//! shrinkage by the method of moments, positive part: 0 for d <= n).

use crate::bank::Blend;
use crate::tuning::learned::{DIFFERENCE_WALK, LONGEST_AVERAGE, SHORTEST_AVERAGE};

/// A rate that is averaged over the recent past.
#[derive(Clone, Copy, Debug)]
pub struct DifferenceRate {
    /// Relative to the nominal one, ppm.
    mean: f64,
    /// For how long the absolute clock has been continuous, s.
    age: f64,
    /// What the clock has stepped since the last exchange, us.
    step: f64,
}

/// A rate and its standard uncertainty, ppm.
#[derive(Clone, Copy, Debug)]
pub struct UncertainRate {
    pub rate: f64,
    pub deviation: f64,
}

impl DifferenceRate {
    pub fn begin(rate: f64) -> Self {
        DifferenceRate { mean: rate, age: 0.0, step: 0.0 }
    }

    /// The same mean for a clock that was not continuous; while it is young the filter's rate takes its place.
    pub fn begin_again(&self) -> Self {
        Self::begin(self.mean)
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
        self.mean = if self.age < memory {
            blend.rate
        } else {
            self.mean + (moved / interval - self.mean) * -libm::expm1(-interval / memory)
        };
    }

    /// What the difference clock runs at. The mean is as uncertain as a slope over the averaging time, and as a usual
    /// rate walks away from its exponential mean. While the clock is young the filter's own rate serves, as uncertain
    /// as the time `later` seconds on says.
    pub fn published(&self, blend: &Blend, later: f64) -> UncertainRate {
        let memory = memory(blend);
        if self.age < memory {
            let moved = (blend.deviation_later * blend.deviation_later - blend.variance).max(0.0);
            return UncertainRate { rate: self.mean, deviation: libm::sqrt(moved) / later };
        }
        let walked = DIFFERENCE_WALK * DIFFERENCE_WALK * memory / 2.0;
        let usual = 2.0 * blend.variance.max(0.0) / (memory * memory) + walked;
        self.shrunk(blend, usual)
    }

    /// The mean, whose variance is `usual`, moved by what it lags behind the filter's rate. The errors of both are
    /// taken as alike, which is never too little.
    fn shrunk(&self, blend: &Blend, usual: f64) -> UncertainRate {
        let own = blend.rate_variance.max(0.0);
        let apart = blend.rate - self.mean;
        let lag = (apart * apart - usual - own).max(0.0);
        if lag == 0.0 {
            return UncertainRate { rate: self.mean, deviation: libm::sqrt(usual) };
        }
        let part = lag / (apart * apart);
        let deviation = (1.0 - part) * libm::sqrt(usual + lag) + part * libm::sqrt(own);
        UncertainRate { rate: self.mean + part * apart, deviation }
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
        Blend { theta, variance: 0.25, deviation_later: 1.0, rate, rate_variance: 1e-4 }
    }

    #[test]
    fn no_more_than_a_day_is_averaged_over() {
        let mut clock = DifferenceRate::begin(0.0);
        let uncertain = Blend { variance: 1e12, ..blend(16.0, 0.0) };
        for step in 1..6_000 {
            clock.pass(16.0, &uncertain);
            assert_eq!(clock.mean > 0.0, 16 * step >= 86_400, "{step}");
        }
    }

    #[test]
    fn a_step_is_no_slope() {
        let mut clock = DifferenceRate::begin(50.0);
        for step in 0..1_000 {
            clock.exclude(if step == 500 { 1e6 } else { 0.0 });
            clock.pass(16.0, &blend(50.0 * 16.0 + if step == 500 { 1e6 } else { 0.0 }, 50.0));
            assert!((clock.mean - 50.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_uncertainty_is_that_of_two_ends_and_of_the_walk_between_them() {
        let mut clock = DifferenceRate::begin(0.0);
        let young = clock.published(&blend(0.0, 0.0), 100.0).deviation;
        assert!((young - libm::sqrt(0.75) / 100.0).abs() < 1e-12, "{young}");
        (0..500).for_each(|_| clock.pass(16.0, &blend(0.0, 0.0)));
        let settled = clock.published(&blend(0.0, 0.0), 100.0).deviation;
        let expected = libm::hypot(libm::sqrt(2.0) * 0.5 / 1_000.0, DIFFERENCE_WALK * libm::sqrt(1_000.0 / 2.0));
        assert!((settled - expected).abs() < 1e-12, "{settled}");
    }

    /// The filter's own rate is known to 0.01 ppm here.
    #[test]
    fn a_mean_that_lags_behind_a_drifting_rate_gives_way_to_it() {
        let mut clock = DifferenceRate::begin(0.0);
        let drifting = |step: i32| blend(0.01 * f64::from(step) * 16.0, 0.01 * f64::from(step));
        (0..500).for_each(|step| clock.pass(16.0, &drifting(step)));
        let last = drifting(499);
        assert!(last.rate - clock.mean > 0.5, "{}", clock.mean);
        let UncertainRate { rate, deviation } = clock.published(&last, 100.0);
        assert!((rate - last.rate).abs() < 1e-3 && (deviation - 0.01).abs() < 1e-3, "{rate} {deviation}");
    }

    /// The variance of mean and filter together is n^2.
    #[test]
    fn the_mean_moves_by_what_chance_does_not_explain() {
        let mut clock = DifferenceRate::begin(0.0);
        (0..500).for_each(|_| clock.pass(16.0, &blend(0.0, 0.0)));
        let usual = clock.published(&blend(0.0, 0.0), 100.0).deviation;
        let chance = libm::hypot(usual, 0.01);
        for (times, part) in [(0.0, 0.0), (0.99, 0.0), (2.0_f64.sqrt(), 0.5), (2.0, 0.75), (-2.0, 0.75)] {
            let apart = times * chance;
            let UncertainRate { rate, deviation } = clock.published(&blend(0.0, apart), 100.0);
            assert!((rate - part * apart).abs() < 1e-12, "{times} {rate}");
            let lag = libm::sqrt(part) * apart;
            let expected = (1.0 - part) * libm::hypot(usual, lag) + part * 0.01;
            assert!((deviation - expected).abs() < 1e-12, "{times} {deviation}");
        }
    }

    #[test]
    fn the_noise_of_single_slopes_is_averaged_and_a_new_rate_is_reached() {
        let mut clock = DifferenceRate::begin(0.0);
        for step in 0..1_000 {
            let noise = if step % 2 == 0 { 1.0 } else { -1.0 };
            clock.pass(16.0, &blend(0.01 * 16.0 + noise, 0.01));
        }
        assert!((clock.mean - 0.01).abs() < 2e-3, "{}", clock.mean);
    }
}
