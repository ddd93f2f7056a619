//! Four members of the bank: their states and covariances, carried forward and updated side by side.
//!
//! A state is the height theta of the true time over the frame's line, us; the rate r, ppm; the two quadratures of a
//! temperature cycle, ppm, and the logarithm of its angular frequency, which is tracked; and the floors of the two
//! directions, us. A measurement is one-sided, so the update matches the moments of its true likelihood:
//! assumed-density filtering (P. Maybeck, Stochastic Models, Estimation, and Control 2, 1982; T. Minka, thesis, MIT,
//! 2001). F, Q and H are those of docs/algorithm/learned.md.

use super::density::{Evidence, Tabulated};
use super::grid::Cavity;
use super::lanes::{LANES, Lanes};
use super::measurement::{MICRO, Measurement};
use super::model::Model;
use crate::frame::{Point, Slope};
use crate::tuning::bank::{
    FLOOR_WALK, LEAST_FIRST_TRIP, LEAST_FIRST_VARIANCE, LEAST_PREDICTED_VARIANCE, PHASE_WALK, PRIOR_RATE_PART,
};
use ffclock_units::Direction;

/// The parts of a state; a forward packet is outgoing, a backward one incoming.
pub const THETA: usize = 0;
pub const RATE: usize = 1;
pub const CYCLE: usize = 2;
pub const QUADRATURE: usize = 3;
pub const FREQUENCY: usize = 4;
pub const FLOORS: [usize; 2] = [5, 6];
pub const STATES: usize = 7;

/// Which part of the state is the floor of packets that go this way.
pub fn floor_of(way: Direction) -> usize {
    let [forward, backward] = FLOORS;
    match way {
        Direction::Outgoing => forward,
        Direction::Incoming => backward,
    }
}

/// Each member's predictive density of a packet's queueing, and the packet's log-likelihood.
#[derive(Clone, Copy, Debug)]
pub struct GroupPrediction {
    pub mean: Lanes,
    pub variance: Lanes,
    pub log: Lanes,
}

/// Where the members of a group begin.
#[derive(Clone, Copy, Debug)]
pub struct Begin {
    pub theta: f64,
    pub rate: f64,
    pub rate_variance: f64,
    pub floors: [f64; 2],
    /// The variance of theta and of the common part of the floors.
    pub variance: f64,
}

impl Begin {
    /// Where a clock begins that knows one exchange and `prior` of the rate. Symmetric floors, but for the configured
    /// asymmetry, of which `half_asymmetry` is half, us, are all that is known of asymmetry.
    pub fn at(point: &Point, half_asymmetry: f64, prior: Slope) -> Self {
        let spread = PRIOR_RATE_PART * prior.error / MICRO;
        let trip = (point.net / MICRO).max(LEAST_FIRST_TRIP);
        Begin {
            theta: point.height() / MICRO - half_asymmetry,
            rate: prior.rate / MICRO,
            rate_variance: spread * spread,
            floors: [0.5 * trip + half_asymmetry, 0.5 * trip - half_asymmetry],
            variance: 0.25 * trip * trip + LEAST_FIRST_VARIANCE,
        }
    }
}

/// Four members.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub x: [Lanes; STATES],
    pub p: [[Lanes; STATES]; STATES],
    pub score: Lanes,
}

/// How a cycle turns within an interval.
pub struct Rotation {
    pub cosine: Lanes,
    pub sine: Lanes,
    /// What the two quadratures add to theta.
    pub along: Lanes,
    pub across: Lanes,
    /// What a change of the logarithm of the frequency adds to theta and to the quadratures.
    pub theta: Lanes,
    pub cycle: Lanes,
    pub quadrature: Lanes,
}

impl Rotation {
    pub fn of(x: &[Lanes; STATES], interval: f64) -> Self {
        let [.., c1, c2, log, _, _] = *x;
        let frequency = log.map(libm::exp);
        let angle = frequency * Lanes::all(interval);
        let (cosine, sine) = (angle.map(libm::cos), angle.map(libm::sin));
        let inverse = frequency.map(|frequency| 1.0 / frequency);
        let (along, across) = (sine * inverse, (Lanes::all(1.0) - cosine) * inverse);
        Rotation {
            theta: c1 * (angle * cosine - sine) * inverse + c2 * (angle * sine * inverse - across),
            cycle: (c2 * cosine - c1 * sine) * angle,
            quadrature: -(c1 * cosine + c2 * sine) * angle,
            cosine,
            sine,
            along,
            across,
        }
    }
}

impl Group {
    /// Members that know of the first exchange and nothing else: symmetric floors are all that is known of asymmetry,
    /// so the floors' errors are one and the same.
    pub fn begin(begin: &Begin, model: &Model) -> Self {
        let mut group = Group { x: [Lanes::ZERO; STATES], p: [[Lanes::ZERO; STATES]; STATES], score: Lanes::ZERO };
        group.x[THETA] = Lanes::all(begin.theta);
        group.x[RATE] = Lanes::all(begin.rate);
        group.p[RATE][RATE] = Lanes::all(begin.rate_variance);
        group.begin_cycle(model);
        group.begin_time(begin);
        group
    }

    fn begin_cycle(&mut self, model: &Model) {
        (self.x[CYCLE], self.x[QUADRATURE], self.x[FREQUENCY]) = (Lanes::ZERO, Lanes::ZERO, model.log_frequency);
        (self.p[CYCLE][CYCLE], self.p[QUADRATURE][QUADRATURE]) = (model.amplitude, model.amplitude);
        self.p[FREQUENCY][FREQUENCY] = model.frequency_spread;
    }

    /// Forgets the time and the floors, and keeps what is known of the oscillator.
    pub fn begin_time(&mut self, begin: &Begin) {
        let [forward, backward] = FLOORS;
        for part in [THETA, forward, backward] {
            self.cut(part);
        }
        let variance = Lanes::all(begin.variance);
        self.x[THETA] = Lanes::all(begin.theta);
        self.p[THETA][THETA] = variance;
        for (part, floor) in FLOORS.into_iter().zip(begin.floors) {
            self.x[part] = Lanes::all(floor);
            for other in FLOORS {
                self.p[part][other] = variance;
            }
        }
    }

    /// Makes a part of the state independent of all others.
    pub fn cut(&mut self, part: usize) {
        for other in 0..STATES {
            self.p[part][other] = Lanes::ZERO;
            self.p[other][part] = Lanes::ZERO;
        }
    }

    /// Carries the members `interval` seconds forward: x <- f(x), P <- F P F' + Q.
    pub fn predict(&mut self, interval: f64, model: &Model, floor_noise: f64) {
        debug_assert!(interval >= 0.0, "time goes forward: {interval}");
        let rotation = Rotation::of(&self.x, interval);
        let dt = Lanes::all(interval);
        let [theta, rate, c1, c2, ..] = self.x;
        self.x[THETA] = theta + dt * rate + rotation.along * c1 + rotation.across * c2;
        self.x[CYCLE] = rotation.cosine * c1 + rotation.sine * c2;
        self.x[QUADRATURE] = rotation.cosine * c2 - rotation.sine * c1;
        for column in 0..STATES {
            let [a, b, c, d, e, ..]: [Lanes; STATES] = core::array::from_fn(|row| self.p[row][column]);
            let moved = Self::moved([a, b, c, d, e], dt, &rotation);
            [self.p[THETA][column], self.p[CYCLE][column], self.p[QUADRATURE][column]] = moved;
        }
        for row in &mut self.p {
            let [a, b, c, d, e, ..] = *row;
            [row[THETA], row[CYCLE], row[QUADRATURE]] = Self::moved([a, b, c, d, e], dt, &rotation);
        }
        self.add_noise(interval, model, floor_noise);
        self.symmetrise();
    }

    /// The rows of F other than the identity's, times a column of P: those of theta and of the two quadratures.
    #[inline(always)]
    fn moved([theta, rate, c1, c2, frequency]: [Lanes; 5], dt: Lanes, rotation: &Rotation) -> [Lanes; 3] {
        [
            theta + dt * rate + rotation.along * c1 + rotation.across * c2 + rotation.theta * frequency,
            rotation.cosine * c1 + rotation.sine * c2 + rotation.cycle * frequency,
            rotation.cosine * c2 - rotation.sine * c1 + rotation.quadrature * frequency,
        ]
    }

    /// Adds Q to P.
    fn add_noise(&mut self, interval: f64, model: &Model, floor_noise: f64) {
        let dt = Lanes::all(interval);
        let cycle = model.cycle_walk * dt;
        self.p[THETA][THETA] += self.theta_noise(interval, model);
        let cross = model.walk * dt * dt * Lanes::all(0.5);
        self.p[THETA][RATE] += cross;
        self.p[RATE][THETA] += cross;
        self.p[RATE][RATE] += model.walk * dt;
        self.p[CYCLE][CYCLE] += cycle;
        self.p[QUADRATURE][QUADRATURE] += cycle;
        self.p[FREQUENCY][FREQUENCY] += model.frequency_walk * dt;
        for part in FLOORS {
            for other in FLOORS {
                self.p[part][other] += Lanes::all(FLOOR_WALK) * dt + Lanes::all(floor_noise);
            }
        }
    }

    pub fn symmetrise(&mut self) {
        for row in 1..STATES {
            for column in 0..row {
                self.p[row][column] = self.p[column][row];
            }
        }
    }

    /// Updates the members with a packet: m = z - H x and v = H P H' + noise predict its queueing, and the state takes
    /// over the mean and the variance that the density leaves of them.
    pub fn observe(&mut self, way: Direction, measurement: &Measurement, density: &Tabulated) -> GroupPrediction {
        let (sign, trip) = match way {
            Direction::Outgoing => (Lanes::all(1.0), Lanes::all(measurement.trip)),
            Direction::Incoming => (Lanes::all(-1.0), Lanes::ZERO),
        };
        let floor = floor_of(way);
        let gain: [Lanes; STATES] =
            core::array::from_fn(|row| sign * self.p[row][THETA] - trip * self.p[row][RATE] + self.p[row][floor]);
        let spread = sign * gain[THETA] - trip * gain[RATE] + gain[floor];
        let variance = spread.map(|spread| spread.max(LEAST_PREDICTED_VARIANCE) + measurement.noise);
        let mean = Lanes::all(measurement.delay) - (sign * self.x[THETA] - trip * self.x[RATE] + self.x[floor]);
        let evidence: [Evidence; LANES] =
            core::array::from_fn(|lane| density.weigh(&Cavity { mean: mean.of(lane), variance: variance.of(lane) }));
        let log = Lanes(evidence.map(|evidence| evidence.log));
        let step = Lanes(evidence.map(|evidence| -evidence.shift)).zip(variance, |shift, variance| shift / variance);
        let left = Lanes(evidence.map(|evidence| evidence.variance));
        let shrink = left.zip(variance, |left, variance| (left - variance) / (variance * variance));
        for (row, x) in self.x.iter_mut().enumerate() {
            *x += gain[row] * step;
            let scaled = gain[row] * shrink;
            for (cell, gain) in self.p[row].iter_mut().zip(&gain) {
                *cell += scaled * *gain;
            }
        }
        self.symmetrise();
        GroupPrediction { mean, variance, log }
    }

    /// The variance of the difference of the floors.
    pub fn asymmetry_variance(&self) -> Lanes {
        let [forward, backward] = FLOORS;
        self.p[forward][forward] - self.p[forward][backward] - self.p[backward][forward] + self.p[backward][backward]
    }

    /// The difference of the floors is known with this variance only, us^2; their sum and both delays stay as they are
    /// known.
    pub fn open_asymmetry(&mut self, variance: f64) {
        let [forward, backward] = FLOORS;
        let open = [(THETA, -0.5), (forward, 0.5), (backward, -0.5)];
        for (row, a) in open {
            for (column, b) in open {
                self.p[row][column] += Lanes::all(a * b * variance);
            }
        }
    }

    /// The difference of the floors becomes known, us, with a variance in us^2.
    pub fn learn_asymmetry(&mut self, asymmetry: f64, variance: f64) {
        let [forward, backward] = FLOORS;
        let gain: [Lanes; STATES] = core::array::from_fn(|row| self.p[row][forward] - self.p[row][backward]);
        let spread = self.asymmetry_variance() + Lanes::all(variance);
        let missing = Lanes::all(asymmetry) - (self.x[forward] - self.x[backward]);
        let step = missing.zip(spread, |missing, spread| missing / spread);
        let shrink = spread.map(|spread| 1.0 / spread);
        for (row, x) in self.x.iter_mut().enumerate() {
            *x += gain[row] * step;
            let scaled = gain[row] * shrink;
            for (cell, gain) in self.p[row].iter_mut().zip(&gain) {
                *cell -= scaled * *gain;
            }
        }
    }

    /// Moves the origin of theta.
    pub fn follow(&mut self, step: f64) {
        self.x[THETA] -= Lanes::all(step);
    }

    /// The mean rate of each member over the next `interval` seconds, ppm.
    pub fn mean_rate(&self, interval: f64) -> Lanes {
        let rotation = Rotation::of(&self.x, interval);
        let [_, rate, c1, c2, ..] = self.x;
        rate + (rotation.along * c1 + rotation.across * c2) * Lanes::all(1.0 / interval)
    }

    /// The variance of each member's theta `interval` seconds from now, us^2.
    pub fn variance_after(&self, interval: f64, model: &Model) -> Lanes {
        let rotation = Rotation::of(&self.x, interval);
        let dt = Lanes::all(interval);
        let column = |row: usize| {
            let [theta, rate, c1, c2, frequency, ..] = self.p[row];
            theta + dt * rate + rotation.along * c1 + rotation.across * c2 + rotation.theta * frequency
        };
        let [theta, rate, c1, c2, frequency] = [THETA, RATE, CYCLE, QUADRATURE, FREQUENCY].map(column);
        let carried = theta + dt * rate + rotation.along * c1 + rotation.across * c2 + rotation.theta * frequency;
        carried + self.theta_noise(interval, model)
    }

    /// Q of theta: the variance that it gains in `interval` seconds beside what F carries over from the other parts.
    fn theta_noise(&self, interval: f64, model: &Model) -> Lanes {
        let dt = Lanes::all(interval);
        let third = Lanes::all(1.0 / 3.0);
        let reach = self.x[FREQUENCY].map(|log| interval.min(libm::exp(-log)));
        model.walk * dt * dt * dt * third + Lanes::all(PHASE_WALK) * dt + model.cycle_walk * dt * reach * reach * third
    }

    /// Gives one member the time, the rate and the floors of another, and a cycle of which nothing is known.
    pub fn reseed(&mut self, lane: usize, from: &Seed, model: &Model) {
        const KEPT: [usize; 4] = [THETA, RATE, FLOORS[0], FLOORS[1]];
        let mut fresh = *self;
        for part in 0..STATES {
            fresh.cut(part);
        }
        fresh.begin_cycle(model);
        for row in 0..STATES {
            let kept = KEPT.contains(&row);
            let x = if kept { from.x[row] } else { fresh.x[row].of(lane) };
            self.x[row].put(lane, x);
            for column in 0..STATES {
                let kept = kept && KEPT.contains(&column);
                let value = if kept { from.p[row][column] } else { fresh.p[row][column].of(lane) };
                self.p[row][column].put(lane, value);
            }
        }
        self.score.put(lane, from.score);
    }

    /// What another member can begin from.
    pub fn seed(&self, lane: usize, score: f64) -> Seed {
        let mut x = self.x.map(|value| value.of(lane));
        x[RATE] += x[CYCLE];
        Seed { x, p: self.p.map(|row| row.map(|value| value.of(lane))), score }
    }
}

/// One member's state.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    pub x: [f64; STATES],
    pub p: [[f64; STATES]; STATES],
    pub score: f64,
}
