//! A small deterministic world: an oscillator with a random walk, a path with one-sided queueing, a server that may
//! lie.

#![allow(dead_code, reason = "each test file uses a part of the world; one uses all of it")]

pub mod host;

use ffclock_estimator::{Classic, ClassicConfig, Estimator, Event, Learned, LearnedConfig, Outcome, Verdict};
use ffclock_units::{
    Bound, Counter, Exchange, Leap, Moment, Period, RateMemory, ServerIdentity, ServerQuality, Span, Stamp,
    StampLocation, Status, Tai, Ticks,
};

/// A xorshift generator: the same numbers on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// In (0, 1).
    pub fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.uniform())
    }

    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// Everything that happens outside the estimator. Times in seconds since the start, rates in s/s.
pub struct World {
    pub random: Random,
    pub hertz: f64,
    /// The constant part of the counter's rate, relative to `hertz`.
    pub skew: f64,
    /// The random walk of the rate per square root of a second. It is drawn back within hours.
    pub walk: f64,
    /// Amplitude and period of a temperature wave.
    pub wave: (f64, f64),
    pub forward_floor: f64,
    pub backward_floor: f64,
    /// The mean queueing of an ordinary packet, and of one in a hundred.
    pub queueing: f64,
    pub tail: f64,
    /// The mean of what congestion adds to every packet of one way: forward, backward.
    pub congestion: (f64, f64),
    /// The mean lateness of the stamps that a busy host takes.
    pub lateness: f64,
    /// Server time minus true time.
    pub lie: f64,
    pub root_distance: f64,
    pub identity: u32,
    pub residence: f64,
    pub width_ticks: i64,
    /// The counter's reading and the server's time at the start.
    pub first_reading: u64,
    pub epoch: Span,
    walked: f64,
    phase: f64,
    time: f64,
}

impl World {
    /// World 1 of the design: a quiet LAN, the counter 50 ppm fast, an ordinary crystal.
    pub fn lan(seed: u64) -> Self {
        World {
            random: Random::new(seed),
            hertz: 1e9,
            skew: 50e-6,
            walk: 4.3e-10,
            wave: (0.0, 1_000.0),
            forward_floor: 140e-6,
            backward_floor: 140e-6,
            queueing: 4e-6,
            tail: 50e-6,
            congestion: (0.0, 0.0),
            lateness: 0.0,
            lie: 0.0,
            root_distance: 20e-6,
            identity: 0x4750_5300,
            residence: 20e-6,
            width_ticks: 40,
            first_reading: 123_456_789_012,
            epoch: Span::from_secs(1_700_000_000),
            walked: 0.0,
            phase: 0.0,
            time: 0.0,
        }
    }

    /// A path of several hops through the Internet.
    pub fn far(seed: u64) -> Self {
        let floors = (19e-3, 18.7e-3);
        World { forward_floor: floors.0, backward_floor: floors.1, queueing: 150e-6, tail: 3e-3, ..Self::lan(seed) }
    }

    /// A world of any kind, drawn by the seed, and the time between polls, s. The server lies within its claim.
    pub fn any(seed: u64) -> (Self, f64) {
        let mut world = if seed.is_multiple_of(2) { World::lan(seed) } else { World::far(seed) };
        let mut draw = || world.random.uniform();
        let (a, b, c, d, e) = (draw(), draw(), draw(), draw(), draw());
        world.skew = (a - 0.5) * 400e-6;
        world.forward_floor *= 0.2 + b;
        world.queueing *= 10.0 * c * c;
        world.wave = (0.3e-6 * d, 300.0 + 3_000.0 * e);
        world.width_ticks = 1 + (50_000.0 * e * e) as i64;
        world.root_distance = 1e-3 * d * d;
        world.lie = world.root_distance * (2.0 * b - 1.0);
        (world, [0.25, 1.0, 16.0, 64.0, 333.0][seed as usize % 5])
    }

    pub fn time(&self) -> f64 {
        self.time
    }

    /// Lets true time pass until `time`.
    pub fn advance(&mut self, time: f64) {
        let dt = (time - self.time).max(0.0);
        let before = self.walked;
        self.walked += self.random.normal() * self.walk * libm::sqrt(dt) - self.walked * (dt / 20_000.0).min(1.0);
        let (amplitude, period) = self.wave;
        let turn = std::f64::consts::TAU / period;
        let wave = amplitude / turn * (libm::cos(turn * self.time) - libm::cos(turn * time));
        self.phase += (self.skew + 0.5 * (before + self.walked)) * dt + wave;
        self.time = time;
    }

    pub fn counter(&self) -> Counter {
        let ticks = (self.time + self.phase) * self.hertz;
        Counter::from_raw(self.first_reading.wrapping_add(ticks as u64))
    }

    fn stamp(&mut self) -> Stamp {
        let off = (self.random.uniform() - 0.5) * self.width_ticks as f64;
        let counter = self.counter() + Ticks::from_raw(off as i64);
        Stamp { counter, width: Ticks::from_raw(self.width_ticks + 2), location: StampLocation::Unknown }
    }

    pub fn moment(&self, time: f64) -> Moment<Tai> {
        Moment::from_origin(self.epoch + Span::from_seconds(time))
    }

    fn late(&mut self, mean: f64) -> f64 {
        if mean > 0.0 { self.random.exponential(mean) } else { 0.0 }
    }

    fn queue(&mut self) -> f64 {
        let rare = self.random.uniform() < 0.01;
        self.random.exponential(self.queueing) + if rare { self.random.exponential(self.tail) } else { 0.0 }
    }

    /// One exchange that begins now; time passes meanwhile.
    pub fn exchange(&mut self) -> Exchange {
        let sent = self.stamp();
        let (forward, backward) = (self.late(self.congestion.0), self.late(self.congestion.1));
        let (slow_send, slow_receive) = (self.late(self.lateness), self.late(self.lateness));
        let at_server = self.time + self.forward_floor + self.queue() + forward + slow_send;
        let leaves = at_server + self.residence * (0.5 + self.random.uniform());
        let back = leaves + self.backward_floor + self.queue() + backward + slow_receive;
        self.advance(back);
        let identity = ServerIdentity { stratum: 1, reference_id: self.identity };
        Exchange {
            sent,
            server_in: self.moment(at_server + self.lie),
            server_out: self.moment(leaves + self.lie),
            received: self.stamp(),
            server: ServerQuality {
                identity,
                leap: Leap::None,
                root_distance: Bound::from_seconds(self.root_distance),
            },
        }
    }
}

/// How the clock did, read just before and just after every exchange.
#[derive(Default)]
pub struct Report {
    /// (time, clock error) in s.
    pub errors: Vec<(f64, f64)>,
    pub bounds: Vec<f64>,
    /// Readings whose error exceeded the bound.
    pub escaped: usize,
    /// Readings whose error, less half the asymmetry, exceeded the noise.
    pub unlikely: usize,
    /// (time, error less half the asymmetry at the start, noise) of every reading, s.
    pub judged: Vec<(f64, f64, f64)>,
    pub outcomes: Vec<(f64, Outcome)>,
    pub statuses: Vec<(f64, Status)>,
    pub local_rates: usize,
}

impl Report {
    /// Errors from `from` on, sorted.
    pub fn sorted(&self, from: f64, to: f64) -> Vec<f64> {
        let inside = self.errors.iter().filter(|(time, _)| (from..to).contains(time));
        let mut errors: Vec<f64> = inside.map(|(_, error)| *error).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    pub fn quantile(&self, from: f64, quantile: f64) -> f64 {
        let sorted = self.sorted(from, f64::INFINITY);
        sorted[((sorted.len() - 1) as f64 * quantile) as usize]
    }

    pub fn iqr(&self, from: f64) -> f64 {
        self.quantile(from, 0.75) - self.quantile(from, 0.25)
    }

    /// The part of the readings in [from, to) whose error is within twice the noise, and how much wider the
    /// noise is than the 68th percentile of the errors.
    pub fn calibration(&self, from: f64, to: f64) -> (f64, f64) {
        let judged: Vec<_> = self.judged.iter().filter(|(time, ..)| (from..to).contains(time)).collect();
        let within = judged.iter().filter(|(_, error, likely)| error.abs() <= 2.0 * likely).count();
        let mut ratios: Vec<f64> = judged.iter().map(|(_, error, likely)| error.abs() / likely).collect();
        ratios.sort_by(f64::total_cmp);
        let typical = ratios.get(ratios.len() * 68 / 100).copied().unwrap_or(f64::NAN);
        (within as f64 / judged.len() as f64, 1.0 / typical)
    }

    /// The largest error in [from, to).
    pub fn worst(&self, from: f64, to: f64) -> f64 {
        self.sorted(from, to).into_iter().map(f64::abs).fold(0.0, f64::max)
    }

    pub fn count(&self, event: Event) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| outcome.events.contains(event)).count()
    }

    pub fn verdicts(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|(_, outcome)| outcome.verdict == verdict).count()
    }

    pub fn first(&self, event: Event) -> Option<f64> {
        self.outcomes.iter().find(|(_, outcome)| outcome.events.contains(event)).map(|(time, _)| *time)
    }
}

/// A world, an estimator and what was seen of it.
pub struct Lab<E = Classic> {
    pub world: World,
    pub classic: E,
    pub report: Report,
    /// Half the asymmetry at the start: no estimator can see it, s.
    pub bias: f64,
    /// Readings are checked against the bound.
    pub strict: bool,
}

impl Lab<Learned> {
    pub fn learned(world: World) -> Self {
        Self::learned_with(world, LearnedConfig::default())
    }

    pub fn learned_with(world: World, config: LearnedConfig) -> Self {
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        Self::of(world, Learned::new(config, ClassicConfig::default(), nominal, None))
    }
}

impl Lab {
    pub fn new(world: World) -> Self {
        Self::with(world, ClassicConfig::default(), None)
    }

    pub fn with(world: World, config: ClassicConfig, remembered: Option<RateMemory>) -> Self {
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        Self::of(world, Classic::new(config, nominal, remembered))
    }
}

impl<E: Estimator> Lab<E> {
    pub fn of(world: World, estimator: E) -> Self {
        Lab {
            classic: estimator,
            bias: 0.5 * (world.forward_floor - world.backward_floor),
            world,
            report: Report::default(),
            strict: true,
        }
    }

    /// Reads the clock now.
    pub fn read(&mut self) {
        let Some(estimate) = self.classic.estimate() else { return };
        let age = estimate.period * (self.world.counter() - estimate.counter);
        let error = (estimate.time + age - self.world.moment(self.world.time())).as_seconds();
        let bound = estimate.bound.grown(age, estimate.bound_growth).as_seconds();
        let likely = estimate.noise.grown(age, estimate.uncertainty_growth).as_seconds();
        let asymmetry = self.world.forward_floor - self.world.backward_floor;
        self.report.judged.push((self.world.time(), error - self.bias, likely));
        self.report.escaped += usize::from(error.abs() > bound);
        self.report.unlikely += usize::from((error - 0.5 * asymmetry).abs() > likely);
        assert!(!self.strict || error.abs() <= bound, "at {}: error {error:e}, bound {bound:e}", self.world.time());
        assert!(estimate.noise <= estimate.uncertainty && estimate.uncertainty.as_span() <= estimate.bound.as_span());
        let truth = self.world.moment(self.world.time());
        let proven = self.classic.proven(self.world.counter());
        let holds = proven.is_some_and(|proven| proven.earliest <= truth && truth <= proven.latest);
        assert!(!self.strict || holds, "at {}: {truth:?} in {proven:?}", self.world.time());
        self.report.errors.push((self.world.time(), error));
        self.report.bounds.push(bound);
        self.report.statuses.push((self.world.time(), estimate.status));
        self.report.local_rates += usize::from(self.classic.summary().local_rate.is_some());
    }

    /// One exchange, and readings before and after it is known.
    pub fn poll(&mut self) -> Outcome {
        let exchange = self.world.exchange();
        self.read();
        let outcome = self.classic.update(&exchange);
        self.read();
        self.report.outcomes.push((self.world.time(), outcome));
        outcome
    }

    /// Polls every `poll` seconds until `until`; `script` may change the world before each.
    pub fn run(&mut self, poll: f64, until: f64, mut script: impl FnMut(&mut World)) {
        while self.world.time() + poll < until {
            let jitter = (self.world.random.uniform() - 0.5) * 0.02 * poll;
            self.world.advance(self.world.time() + poll + jitter);
            script(&mut self.world);
            self.poll();
        }
    }
}

pub const HOUR: f64 = 3_600.0;
pub const DAY: f64 = 86_400.0;
