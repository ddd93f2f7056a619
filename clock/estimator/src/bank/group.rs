//! Four Kalman filters side by side: members of the bank, their states and covariances carried forward and updated.
//!
//! A state is the height theta of the true time over the frame's line, us; the rate r, ppm; the two quadratures of a
//! temperature cycle, ppm, and the logarithm of its angular frequency, which is tracked; and the floors of the two
//! directions, us. A measurement is one-sided, so the update matches the moments of its true likelihood:
//! assumed-density filtering (P. Maybeck, Stochastic Models, Estimation, and Control 2, 1982; T. Minka, thesis, MIT,
//! 2001). F, Q and H are those of docs/algorithm/learned.md.

use super::FloorWalk;
use super::covariance::Covariance;
use super::density::{Evidence, Tabulated};
use super::grid::Cavity;
use super::lanes::{LANES, Lanes};
use super::measurement::{MICRO, Measurement};
use super::model::Model;
use super::revision::BurstVariance;
use crate::frame::{Point, Slope};
use crate::tuning::bank::{
    FLOOR_WALK, LEAST_FIRST_TRIP, LEAST_FIRST_VARIANCE, LEAST_PREDICTED_VARIANCE, PHASE_WALK, PRIOR_RATE_PART,
};
use alloc::vec;
use alloc::vec::Vec;
use ffclock_units::Direction;

/// The parts of a state. After those of the oscillator come the floors, two for each server.
pub const THETA: usize = 0;
pub const RATE: usize = 1;
pub const CYCLE: usize = 2;
pub const QUADRATURE: usize = 3;
pub const FREQUENCY: usize = 4;
const OSCILLATOR: usize = 5;

/// The most servers that one bank reads.
pub const MOST_SERVERS: usize = 16;

/// How many parts a state with this many servers has.
pub const fn states(servers: usize) -> usize {
    OSCILLATOR + 2 * servers
}

/// Which parts of the state are the floors of the ways to and from a server.
pub const fn floors_of(server: usize) -> [usize; 2] {
    [OSCILLATOR + 2 * server, OSCILLATOR + 2 * server + 1]
}

/// Which part of the state is the floor of packets that go this way to or from a server.
pub fn floor_of(server: usize, way: Direction) -> usize {
    floors_of(server)[way.index()]
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
    /// Whose exchange it is.
    pub server: usize,
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
    pub fn at(server: usize, point: &Point, half_asymmetry: f64, prior: Slope) -> Self {
        let spread = PRIOR_RATE_PART * prior.error / MICRO;
        let trip = (point.net / MICRO).max(LEAST_FIRST_TRIP);
        Begin {
            server,
            theta: point.height() / MICRO - half_asymmetry,
            rate: prior.rate / MICRO,
            rate_variance: spread * spread,
            floors: [0.5 * trip + half_asymmetry, 0.5 * trip - half_asymmetry],
            variance: 0.25 * trip * trip + LEAST_FIRST_VARIANCE,
        }
    }
}

/// What is known of the rate, theta and the floors by other means than a member's own updates.
#[derive(Clone, Debug)]
pub struct AdoptedState {
    pub x: [f64; states(MOST_SERVERS)],
    pub p: [[f64; states(MOST_SERVERS)]; states(MOST_SERVERS)],
    /// Over how long the rate is the mean, s.
    pub elapsed: f64,
}

impl AdoptedState {
    /// Nothing yet.
    pub fn new(elapsed: f64) -> Self {
        AdoptedState { x: [0.0; states(MOST_SERVERS)], p: [[0.0; states(MOST_SERVERS)]; states(MOST_SERVERS)], elapsed }
    }

    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let sum = self.x.iter().chain(self.p.iter().flatten()).sum::<f64>();
        sum.is_finite() && self.p[THETA][THETA] > 0.0
    }
}

/// A packet's place in the state.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub server: usize,
    pub way: Direction,
    pub measurement: &'a Measurement,
}

/// The row H of a packet: theta, the rate and one floor.
#[derive(Clone, Copy, Debug)]
struct PacketRow {
    theta: Lanes,
    rate: Lanes,
    floor: usize,
}

impl Packet<'_> {
    fn row(&self) -> PacketRow {
        let sign = match self.way {
            Direction::Outgoing => 1.0,
            Direction::Incoming => -1.0,
        };
        let Packet { server, way, measurement } = *self;
        PacketRow { theta: Lanes::all(sign), rate: Lanes::all(-sign * measurement.trip), floor: floor_of(server, way) }
    }
}

/// Which parts of the state a packet is evidence for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evident {
    /// Theta, the oscillator and the floors of its own server.
    All,
    /// The floors of its own server: a server that is not believed says nothing of the time.
    OwnFloors,
    /// Where the floors of its own server begin: it joins a clock that runs.
    Joins,
}

/// Four members.
#[derive(Debug)]
pub struct Group {
    pub x: Vec<Lanes>,
    pub p: Covariance,
    pub score: Lanes,
}

/// A copy reuses the memory that is there.
impl Clone for Group {
    fn clone(&self) -> Self {
        Group { x: self.x.clone(), p: self.p.clone(), score: self.score }
    }

    fn clone_from(&mut self, source: &Self) {
        self.x.clone_from(&source.x);
        self.p.clone_from(&source.p);
        self.score = source.score;
    }
}

/// How a cycle turns within an interval.
pub struct Rotation {
    pub cosine: Lanes,
    pub sine: Lanes,
    /// What the two quadratures add to theta: sin(a)/W and (1 - cos a)/W.
    pub along: Lanes,
    pub across: Lanes,
    /// The column of F for the logarithm of the frequency: what its change adds to theta and to the quadratures.
    pub theta: Lanes,
    pub cycle: Lanes,
    pub quadrature: Lanes,
}

impl Rotation {
    pub fn of(x: &[Lanes], interval: f64) -> Self {
        let (c1, c2, log) = (x[CYCLE], x[QUADRATURE], x[FREQUENCY]);
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

    /// The rows of F other than the identity's, times a column of P: those of theta and of the two quadratures.
    #[inline(always)]
    fn moved(&self, [theta, rate, c1, c2, frequency]: [Lanes; OSCILLATOR], dt: Lanes) -> [Lanes; 3] {
        [
            theta + dt * rate + self.along * c1 + self.across * c2 + self.theta * frequency,
            self.cosine * c1 + self.sine * c2 + self.cycle * frequency,
            self.cosine * c2 - self.sine * c1 + self.quadrature * frequency,
        ]
    }
}

impl Group {
    /// Members that know of the first exchange of one of `servers` and nothing else: symmetric floors are all that is
    /// known of asymmetry, so the floors' errors are one and the same.
    pub fn begin(begin: &Begin, model: &Model, servers: usize) -> Self {
        let parts = states(servers);
        let mut group = Group { x: vec![Lanes::ZERO; parts], p: Covariance::zero(parts), score: Lanes::ZERO };
        group.restart(begin, model);
        group
    }

    /// Forgets everything; what is known then is `begin`.
    pub fn restart(&mut self, begin: &Begin, model: &Model) {
        self.x.fill(Lanes::ZERO);
        self.p.rows_mut().for_each(|row| row.fill(Lanes::ZERO));
        self.score = Lanes::ZERO;
        self.x[RATE] = Lanes::all(begin.rate);
        self.p[RATE][RATE] = Lanes::all(begin.rate_variance);
        (self.x[CYCLE], self.x[QUADRATURE], self.x[FREQUENCY]) = (Lanes::ZERO, Lanes::ZERO, model.log_frequency);
        (self.p[CYCLE][CYCLE], self.p[QUADRATURE][QUADRATURE]) = (model.amplitude, model.amplitude);
        self.p[FREQUENCY][FREQUENCY] = model.frequency_spread;
        self.begin_time(begin);
    }

    /// Takes over what is known by other means, and keeps the score. The sum of the rate and of the cycle is known,
    /// and nothing of how they share it.
    pub fn adopt(&mut self, belief: &AdoptedState, model: &Model) {
        for ((x, row), (value, cells)) in self.x.iter_mut().zip(self.p.rows_mut()).zip(belief.x.iter().zip(&belief.p)) {
            *x = Lanes::all(*value);
            row.iter_mut().zip(cells).for_each(|(cell, value)| *cell = Lanes::all(*value));
        }
        self.x[FREQUENCY] = model.log_frequency;
        self.p[FREQUENCY][FREQUENCY] = model.frequency_spread;
        for part in [CYCLE, QUADRATURE] {
            self.p[part][part] = model.amplitude;
        }
        self.p[RATE][RATE] += model.amplitude;
        (self.p[RATE][CYCLE], self.p[CYCLE][RATE]) = (-model.amplitude, -model.amplitude);
        self.add_noise(belief.elapsed, model);
    }

    /// Forgets the time and a server's floors, and keeps what is known of the oscillator.
    pub fn begin_time(&mut self, begin: &Begin) {
        let floors = floors_of(begin.server);
        self.p.cut(THETA);
        floors.iter().for_each(|part| self.p.cut(*part));
        let variance = Lanes::all(begin.variance);
        self.x[THETA] = Lanes::all(begin.theta);
        self.p[THETA][THETA] = variance;
        for (part, floor) in floors.into_iter().zip(begin.floors) {
            self.x[part] = Lanes::all(floor);
            for other in floors {
                self.p[part][other] = variance;
            }
        }
    }

    /// A server joins a clock that runs: its floors begin as if its first exchange had not queued at all, and each may
    /// be half a round trip shorter. Nothing is assumed of their asymmetry.
    pub fn begin_server(&mut self, server: usize, measurements: &[Measurement; 2]) {
        let [forward, backward] = measurements;
        let trip = (forward.delay + backward.delay).max(LEAST_FIRST_TRIP);
        self.begin_floors(server, measurements, 0.25 * trip * trip + LEAST_FIRST_VARIANCE);
    }

    /// The floors of a server begin where packets like these would not have queued at all, give or take `variance`,
    /// us^2, for each way.
    pub fn begin_floors(&mut self, server: usize, measurements: &[Measurement; 2], variance: f64) {
        let floors = floors_of(server);
        floors.iter().for_each(|part| self.p.cut(*part));
        for (way, measurement) in Direction::BOTH.into_iter().zip(measurements) {
            let PacketRow { theta, rate, floor } = Packet { server, way, measurement }.row();
            self.x[floor] = Lanes::all(measurement.delay) - (theta * self.x[THETA] + rate * self.x[RATE]);
            // The error of the floor is minus the error of what was subtracted, plus that of the queueing.
            for part in (0..self.x.len()).filter(|part| *part != floor) {
                let shared = -(theta * self.p[part][THETA] + rate * self.p[part][RATE]);
                (self.p[part][floor], self.p[floor][part]) = (shared, shared);
            }
            let own = -(theta * self.p[floor][THETA] + rate * self.p[floor][RATE]);
            self.p[floor][floor] = own + Lanes::all(variance);
        }
    }

    /// The same members for another list of servers. `origins` has the present number of each, or `None` of a new one,
    /// whose floors are zero until it joins.
    pub fn renumbered(&self, origins: &[Option<usize>]) -> Self {
        let parts = states(origins.len());
        let origin = |part: usize| match part.checked_sub(OSCILLATOR) {
            None => Some(part),
            Some(floor) => origins[floor / 2].map(|server| floors_of(server)[floor % 2]),
        };
        let mut group = Group { x: vec![Lanes::ZERO; parts], p: Covariance::zero(parts), score: self.score };
        for (part, from) in (0..parts).filter_map(|part| Some((part, origin(part)?))) {
            group.x[part] = self.x[from];
            for (other, beside) in (0..parts).filter_map(|other| Some((other, origin(other)?))) {
                group.p[part][other] = self.p[from][beside];
            }
        }
        group
    }

    /// Carries the members `interval` seconds forward: x <- f(x), P <- F P F' + Q.
    pub fn predict(&mut self, interval: f64, model: &Model) {
        debug_assert!(interval >= 0.0, "time goes forward: {interval}");
        let rotation = Rotation::of(&self.x, interval);
        let dt = Lanes::all(interval);
        let (theta, rate, c1, c2) = (self.x[THETA], self.x[RATE], self.x[CYCLE], self.x[QUADRATURE]);
        self.x[THETA] = theta + dt * rate + rotation.along * c1 + rotation.across * c2;
        self.x[CYCLE] = rotation.cosine * c1 + rotation.sine * c2;
        self.x[QUADRATURE] = rotation.cosine * c2 - rotation.sine * c1;
        for column in 0..self.x.len() {
            let moved = rotation.moved(core::array::from_fn(|row| self.p[row][column]), dt);
            [self.p[THETA][column], self.p[CYCLE][column], self.p[QUADRATURE][column]] = moved;
        }
        for row in self.p.rows_mut() {
            [row[THETA], row[CYCLE], row[QUADRATURE]] = rotation.moved(core::array::from_fn(|part| row[part]), dt);
        }
        self.add_noise(interval, model);
        self.p.symmetrise();
    }

    /// Adds Q to P.
    fn add_noise(&mut self, interval: f64, model: &Model) {
        let dt = Lanes::all(interval);
        let (theta, cycle) = (self.theta_noise(interval, model), model.cycle_walk * dt);
        self.p[THETA][THETA] += theta;
        let cross = model.walk * dt * dt * Lanes::all(0.5);
        self.p[THETA][RATE] += cross;
        self.p[RATE][THETA] += cross;
        self.p[RATE][RATE] += model.walk * dt;
        self.p[CYCLE][CYCLE] += cycle;
        self.p[QUADRATURE][QUADRATURE] += cycle;
        self.p[FREQUENCY][FREQUENCY] += model.frequency_walk * dt;
    }

    /// Both floors of a server walk together for `interval` seconds, and gain `more` variance together, us^2.
    pub fn loosen_floors(&mut self, server: usize, interval: f64, more: f64) {
        let floors = floors_of(server);
        for part in floors {
            for other in floors {
                self.p[part][other] += Lanes::all(FLOOR_WALK * interval + more);
            }
        }
    }

    /// The floors of a server walk.
    pub fn walk_floors(&mut self, server: usize, FloorWalk { variance, correlation }: FloorWalk) {
        let floors = floors_of(server);
        for row in floors {
            for column in floors {
                let part = if row == column { 1.0 } else { correlation };
                self.p[row][column] += Lanes::all(part * variance);
            }
        }
    }

    /// Moves theta by `by`, us, and the floors of all servers so that no packet is predicted otherwise. Theta gains
    /// the variance of the move.
    pub fn shift_times(&mut self, by: f64, gained: BurstVariance) {
        let BurstVariance { theta, rate } = gained;
        let side = |part: usize| match part.checked_sub(OSCILLATOR) {
            None => f64::from(u8::from(part == THETA)),
            Some(floor) if floor % 2 == 0 => -1.0,
            Some(_) => 1.0,
        };
        for (part, x) in self.x.iter_mut().enumerate() {
            *x += Lanes::all(side(part) * by);
        }
        for (row, cells) in self.p.rows_mut().enumerate() {
            for (column, cell) in cells.iter_mut().enumerate() {
                *cell += Lanes::all(side(row) * side(column) * theta);
            }
        }
        self.p[RATE][RATE] += Lanes::all(rate);
    }

    /// Updates the members with a packet: m = z - H x and v = H P H' + noise predict its queueing, and the state takes
    /// over the mean and the variance that the density leaves of them.
    pub fn observe(&mut self, packet: &Packet<'_>, density: &Tabulated, evident: Evident) -> GroupPrediction {
        let PacketRow { theta, rate, floor } = packet.row();
        let mut gain = [Lanes::ZERO; states(MOST_SERVERS)];
        for (gain, row) in gain.iter_mut().zip(self.p.rows()) {
            *gain = theta * row[THETA] + rate * row[RATE] + row[floor];
        }
        let spread = theta * gain[THETA] + rate * gain[RATE] + gain[floor];
        let Measurement { delay, noise, .. } = *packet.measurement;
        let variance = spread.map(|spread| spread.max(LEAST_PREDICTED_VARIANCE) + noise);
        let mean = Lanes::all(delay) - (theta * self.x[THETA] + rate * self.x[RATE] + self.x[floor]);
        let evidence: [Evidence; LANES] =
            core::array::from_fn(|lane| density.weigh(&Cavity { mean: mean.of(lane), variance: variance.of(lane) }));
        let log = Lanes(evidence.map(|evidence| evidence.log));
        let step = Lanes(evidence.map(|evidence| -evidence.shift)).zip(variance, |shift, variance| shift / variance);
        let left = Lanes(evidence.map(|evidence| evidence.variance));
        let shrink = left.zip(variance, |left, variance| (left - variance) / (variance * variance));
        let gain = &gain[..self.x.len()];
        match evident {
            Evident::All => self.update(gain, step, shrink),
            Evident::OwnFloors => self.update_floors(floors_of(packet.server), gain, [step, shrink]),
            Evident::Joins => {}
        }
        GroupPrediction { mean, variance, log }
    }

    /// x <- x + gain step, P <- P + gain gain' shrink.
    pub fn update(&mut self, gain: &[Lanes], step: Lanes, shrink: Lanes) {
        for (x, gain) in self.x.iter_mut().zip(gain) {
            *x += *gain * step;
        }
        self.p.add_square(gain, shrink);
    }

    /// The same for two parts of the state only, which keeps the others and their covariances as they are: the update
    /// with considered parameters (S. F. Schmidt, Application of state-space methods to navigation problems, Advances
    /// in Control Systems 3, 1966). Where a packet leaves more unknown than there was, the floors alone gain it: with
    /// larger covariances beside variances that stay, P would be that of no density, and grow without end.
    fn update_floors(&mut self, floors: [usize; 2], gain: &[Lanes], [step, shrink]: [Lanes; 2]) {
        let shrink_beside = shrink.map(|shrink| shrink.min(0.0));
        for part in floors {
            self.x[part] += gain[part] * step;
            for (other, beside) in gain.iter().enumerate() {
                // A cell between the two floors is updated once.
                let is_floor = floors.contains(&other);
                if is_floor && other < part {
                    continue;
                }
                let shrink = if is_floor { shrink } else { shrink_beside };
                self.p[part][other] += gain[part] * shrink * *beside;
                self.p[other][part] = self.p[part][other];
            }
        }
    }

    /// The variance of the difference of a server's floors.
    pub fn asymmetry_variance(&self, server: usize) -> Lanes {
        let [forward, backward] = floors_of(server);
        self.p[forward][forward] - self.p[forward][backward] - self.p[backward][forward] + self.p[backward][backward]
    }

    /// Adds `variance` to the difference of a server's floors, us^2. Theta moves against it, so that the sum of the
    /// floors and both predicted delays stay as well known as they are.
    pub fn open_asymmetry(&mut self, server: usize, variance: f64) {
        let [forward, backward] = floors_of(server);
        let open = [(THETA, -0.5), (forward, 0.5), (backward, -0.5)];
        for (row, a) in open {
            for (column, b) in open {
                self.p[row][column] += Lanes::all(a * b * variance);
            }
        }
    }

    /// The Kalman update with a measured difference of a server's floors, us, and its variance, us^2.
    pub fn learn_asymmetry(&mut self, server: usize, asymmetry: f64, variance: f64) {
        let [forward, backward] = floors_of(server);
        let mut gain = [Lanes::ZERO; states(MOST_SERVERS)];
        for (gain, row) in gain.iter_mut().zip(self.p.rows()) {
            *gain = row[forward] - row[backward];
        }
        let spread = self.asymmetry_variance(server) + Lanes::all(variance);
        let missing = Lanes::all(asymmetry) - (self.x[forward] - self.x[backward]);
        let step = missing.zip(spread, |missing, spread| missing / spread);
        let shrink = spread.map(|spread| -1.0 / spread);
        self.update(&gain[..self.x.len()], step, shrink);
    }

    /// Moves the origin of theta.
    pub fn follow(&mut self, step: f64) {
        self.x[THETA] -= Lanes::all(step);
    }

    /// The mean rate of each member over the next `interval` seconds, ppm.
    pub fn mean_rate(&self, interval: f64) -> Lanes {
        let rotation = Rotation::of(&self.x, interval);
        let (rate, c1, c2) = (self.x[RATE], self.x[CYCLE], self.x[QUADRATURE]);
        rate + (rotation.along * c1 + rotation.across * c2) * Lanes::all(1.0 / interval)
    }

    /// The variance of each member's rate now, ppm^2.
    pub fn rate_variance(&self) -> Lanes {
        let common = self.p[RATE][CYCLE];
        self.p[RATE][RATE] + self.p[CYCLE][CYCLE] + common + common
    }

    /// The variance of each member's theta `interval` seconds from now, us^2.
    pub fn variance_after(&self, interval: f64, model: &Model) -> Lanes {
        let rotation = Rotation::of(&self.x, interval);
        let dt = Lanes::all(interval);
        let theta_of = |column: [Lanes; OSCILLATOR]| rotation.moved(column, dt)[THETA];
        let columns = core::array::from_fn(|row| theta_of(core::array::from_fn(|part| self.p[row][part])));
        theta_of(columns) + self.theta_noise(interval, model)
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
        let is_cycle = |part: usize| [CYCLE, QUADRATURE, FREQUENCY].contains(&part);
        for (part, (x, seed)) in self.x.iter_mut().zip(&from.x).enumerate() {
            x.put(lane, if is_cycle(part) { 0.0 } else { *seed });
        }
        self.x[FREQUENCY].put(lane, model.log_frequency.of(lane));
        let seeds = from.p.chunks_exact(from.x.len());
        for (row, (cells, seeds)) in self.p.rows_mut().zip(seeds).enumerate() {
            for (column, (cell, seed)) in cells.iter_mut().zip(seeds).enumerate() {
                cell.put(lane, if is_cycle(row) || is_cycle(column) { 0.0 } else { *seed });
            }
        }
        for part in [CYCLE, QUADRATURE] {
            self.p[part][part].put(lane, model.amplitude.of(lane));
        }
        self.p[FREQUENCY][FREQUENCY].put(lane, model.frequency_spread.of(lane));
        self.score.put(lane, from.score);
    }
}

/// One member's state, which another can begin from.
#[derive(Clone, Debug, Default)]
pub struct Seed {
    x: Vec<f64>,
    /// Row after row.
    p: Vec<f64>,
    score: f64,
}

impl Seed {
    /// Room for a state with this many parts.
    pub fn with_parts(parts: usize) -> Self {
        Seed { x: Vec::with_capacity(parts), p: Vec::with_capacity(parts * parts), score: 0.0 }
    }

    pub fn bytes(&self) -> usize {
        (self.x.capacity() + self.p.capacity()) * size_of::<f64>()
    }

    /// Takes over the state of a member. What its cycle adds to the rate now becomes part of the rate.
    pub fn take(&mut self, group: &Group, lane: usize, score: f64) {
        self.x.clear();
        self.x.extend(group.x.iter().map(|value| value.of(lane)));
        self.x[RATE] += self.x[CYCLE];
        self.p.clear();
        self.p.extend(group.p.cells().iter().map(|value| value.of(lane)));
        self.score = score;
    }
}
