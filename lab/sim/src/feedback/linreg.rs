//! The servo `linreg` of linuxptp: regression of the master's time against the uncorrected local time, over as many
//! points as have predicted best.
//!
//! Sources: linuxptp, manual page ptp4l(8) (`clock_servo linreg`: adaptive, for any kind of stamps, nothing to
//! configure) and the facts of its linreg.c (M. Lichvar, 2014): regressions over the newest 4, 8, 16, 32 and 64
//! points; of each size a moving average of its prediction's error, over the first ten as a mean and then with a weight
//! of 0.02; a larger size is taken if its error is below 1.05 times that of the one taken so far. Points count by the
//! weight that the processing of stamps gives them, in the regressions and in the later averages. The frequency is the
//! slope, and the intercept is corrected within one update, of 32 points within two and of 64 within three.

use super::pi::FIRST_STEP_S;
use super::{Correction, OffsetServo, SteeringTime, SystemClock};
use std::collections::VecDeque;

/// Points of the smallest and of the largest regression, powers of two.
const LEAST_POWER: usize = 2;
const SIZES: usize = 5;
const POINTS_MAX: usize = 1 << (LEAST_POWER + SIZES - 1);
/// Predictions whose errors are averaged before a size can be chosen, and the weight of each later one.
const FIRST_PREDICTIONS: u32 = 10;
const ERROR_WEIGHT: f64 = 0.02;
/// Errors that differ by less are alike: then the larger size is taken.
const ALIKE: f64 = 1.05;

/// A line through the newest points, and how well lines of this size have predicted.
#[derive(Clone, Copy, Debug, Default)]
struct Prediction {
    line: Option<Line>,
    /// Moving average of the sizes of its errors [s].
    error: f64,
    errors: u32,
}

/// A measurement: uncorrected local time and the master's time since the first one [s].
#[derive(Clone, Copy, Debug)]
struct Point {
    raw_time: f64,
    master: f64,
    weight: f64,
}

/// The master's time as a function of the uncorrected local time.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Where it begins [s].
    raw_time: f64,
    /// The master's time there [s].
    master: f64,
    slope: f64,
}

impl Line {
    fn through<'a>(points: impl Iterator<Item = &'a Point> + Clone, newest: Point) -> Self {
        let total: f64 = points.clone().map(|one| one.weight).sum();
        let mean =
            |of: fn(&Point) -> f64| points.clone().map(|one| one.weight * (of(one) - of(&newest))).sum::<f64>() / total;
        // Relative to the newest point, where floats are fine enough.
        let (x_mean, y_mean) = (mean(|one| one.raw_time), mean(|one| one.master));
        let deviations = points
            .map(|one| (one.weight, one.raw_time - newest.raw_time - x_mean, one.master - newest.master - y_mean));
        let (covariance, variance) =
            deviations.fold((0.0, 0.0), |(both, square), (w, x, y)| (both + w * x * y, square + w * x * x));
        let slope = covariance / variance;
        Line { raw_time: newest.raw_time, master: newest.master + y_mean - slope * x_mean, slope }
    }

    fn at(&self, raw_time: f64) -> f64 {
        self.master + self.slope * (raw_time - self.raw_time)
    }
}

impl Prediction {
    /// What came in place of what the line predicted.
    fn judge(&mut self, newest: Point) {
        let Some(line) = self.line else { return };
        let error = (line.at(newest.raw_time) - newest.master).abs();
        if self.errors < FIRST_PREDICTIONS {
            self.errors += 1;
            self.error += (error - self.error) / f64::from(self.errors);
        } else {
            self.error += ERROR_WEIGHT * newest.weight * (error - self.error);
        }
    }
}

/// The servo.
#[derive(Clone, Debug)]
pub(crate) struct Linreg {
    /// The expected time between two updates [s].
    interval: f64,
    /// From the oldest to the newest.
    points: VecDeque<Point>,
    sizes: [Prediction; SIZES],
    is_first: bool,
    rate_ratio: f64,
    /// Of the clock before the first update.
    frequency: f64,
    /// With offsets it gives the master's time.
    shown: Option<Shown>,
}

/// What the clock showed at the last update, since the first one.
#[derive(Clone, Copy, Debug)]
struct Shown {
    raw_time: f64,
    time: f64,
    frequency: f64,
}

impl Linreg {
    /// For updates at this interval [s].
    pub(crate) fn new(interval: f64) -> Self {
        Linreg {
            interval,
            points: VecDeque::with_capacity(POINTS_MAX),
            sizes: [Prediction::default(); SIZES],
            is_first: true,
            rate_ratio: 1.0,
            frequency: 0.0,
            shown: None,
        }
    }

    /// The same with the frequency that an earlier run left in the kernel, where one did.
    pub(crate) fn started(self, frequency: Option<f64>) -> Self {
        Linreg { frequency: frequency.unwrap_or_default(), ..self }
    }

    /// The clock's own time at an update, by its frequency since the last one.
    fn local_time(&self, raw_time: f64) -> f64 {
        self.shown.map_or(raw_time, |last| last.time + (1.0 + last.frequency) * (raw_time - last.raw_time))
    }

    fn admit(&mut self, newest: Point) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(newest);
        for (power, size) in self.sizes.iter_mut().enumerate() {
            let count = 1 << (LEAST_POWER + power);
            if count <= self.points.len() {
                size.judge(newest);
                size.line = Some(Line::through(self.points.iter().rev().take(count), newest));
            }
        }
    }

    /// The chosen size, as its place in the list.
    fn choose(&self) -> Option<usize> {
        let is_better =
            |size: &Prediction, best: &Prediction| size.errors >= FIRST_PREDICTIONS && size.error < ALIKE * best.error;
        let drawn = self.sizes.iter().enumerate().filter(|(_, size)| size.line.is_some());
        drawn.reduce(|best, next| if is_better(next.1, best.1) { next } else { best }).map(|(place, _)| place)
    }
}

impl OffsetServo for Linreg {
    fn steer(&mut self, offset: f64, now: SteeringTime, clock: &mut SystemClock) -> Correction {
        let local = self.local_time(now.raw_time);
        self.admit(Point { raw_time: now.raw_time, master: local - offset, weight: now.weight });
        let chosen = self.choose().and_then(|place| Some((place, self.sizes.get(place)?.line?)));
        let Some((place, line)) = chosen else {
            let frequency = self.shown.map_or(self.frequency, |last| last.frequency);
            self.shown = Some(Shown { raw_time: now.raw_time, time: local, frequency });
            return Correction::Frequency;
        };
        let mut time = local;
        let is_far = (line.at(now.raw_time) - local).abs() > FIRST_STEP_S;
        let mut correction = Correction::Frequency;
        if core::mem::take(&mut self.is_first) && is_far {
            correction = Correction::Step;
            clock.step(now.counter, -offset);
            time -= offset;
        }
        let power = LEAST_POWER + place;
        let updates = if power <= 4 { 1.0 } else { (power / 2) as f64 };
        let behind = line.at(now.raw_time) - time;
        let frequency = clock.set_frequency(now.counter, line.slope - 1.0 + behind / self.interval / updates);
        self.rate_ratio = line.slope / (1.0 + frequency);
        self.shown = Some(Shown { raw_time: now.raw_time, time, frequency });
        correction
    }

    fn rate_ratio(&self) -> f64 {
        self.rate_ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use ffclock_units::{Counter, Moment, Period, Span};

    /// A clock steered from offsets of a master whose counter runs `rate` fast, with noise of this deviation [s].
    struct Bench {
        servo: Linreg,
        clock: SystemClock,
        random: Random,
        rate: f64,
    }

    impl Bench {
        fn new(rate: f64) -> Self {
            let nominal = Period::from_hertz(1e9).unwrap();
            let clock = SystemClock::new(nominal, Counter::from_raw(0), Moment::from_origin(Span::ZERO));
            Bench { servo: Linreg::new(1.0), clock, random: Random::new(1), rate }
        }

        /// Clock minus master at this second [s], by which the servo then steers.
        fn update(&mut self, second: u32, noise: f64) -> f64 {
            let raw_time = f64::from(second) * (1.0 + self.rate);
            let counter = Counter::from_raw((raw_time * 1e9) as u64);
            let error = (self.clock.read(counter).since_origin() - Span::from_secs(second.into())).as_seconds();
            let offset = error + noise * self.random.normal();
            self.servo.steer(offset, SteeringTime { counter, raw_time, weight: 1.0 }, &mut self.clock);
            error
        }
    }

    #[test]
    fn without_noise_four_points_set_the_rate_and_the_next_update_finds_the_clock_on_time() {
        let mut bench = Bench::new(50e-6);
        let errors: Vec<f64> = (1..8).map(|second| bench.update(second, 0.0)).collect();
        assert!((errors[3] - 200e-6).abs() < 1e-8, "it runs freely before the fourth: {errors:?}");
        assert!(bench.servo.sizes[1].line.is_none() && bench.servo.choose() == Some(0));
        let settled: Vec<f64> = (8..20).map(|second| bench.update(second, 0.0).abs()).collect();
        assert!(settled[4..].iter().all(|error| *error < 3e-9), "{settled:?}");
        assert!((bench.servo.sizes[0].line.unwrap().slope - 1.0 / (1.0 + 50e-6)).abs() < 1e-9);
    }

    #[test]
    fn white_noise_chooses_the_most_points_and_a_wandering_rate_the_fewest() {
        let mut steady = Bench::new(0.0);
        let errors: Vec<f64> = (1..2000).map(|second| steady.update(second, 1e-6)).collect();
        assert_eq!(steady.servo.choose(), Some(SIZES - 1));
        let late = &errors[1000..];
        let deviation = (late.iter().map(|error| error * error).sum::<f64>() / late.len() as f64).sqrt();
        // The end of a line through n points has a deviation of 2 / sqrt(n) of one of them: 0.25 of 64.
        assert!((0.2e-6..0.5e-6).contains(&deviation), "{deviation}");
        let mut points = Linreg::new(1.0);
        let mut clock = Bench::new(0.0).clock;
        for second in 1..500_u32 {
            let raw_time = f64::from(second);
            let counter = Counter::from_raw(u64::from(second) * 1_000_000_000);
            // The master's time bends within some points.
            let master = raw_time + 1e-5 * (raw_time / 3.0).sin();
            let offset = points.local_time(raw_time) - master;
            points.steer(offset, SteeringTime { counter, raw_time, weight: 1.0 }, &mut clock);
        }
        assert_eq!(points.choose(), Some(0));
    }
}
