//! One clock from several servers: simulated worlds in which some of them lie.

mod common;

use common::{DAY, HOUR, World};
use ffclock_estimator::{ClassicConfig, Ensemble, Estimator, Learned, LearnedConfig, ProvenInterval, beliefs};
use ffclock_units::{Estimate, Exchange, Period};

/// A server and the path to it. Times in seconds.
#[derive(Clone)]
struct Server {
    floors: (f64, f64),
    queueing: f64,
    root_distance: f64,
    /// Server time minus true time, by true time.
    lie: fn(f64) -> f64,
}

impl Server {
    fn near() -> Self {
        Server { floors: (140e-6, 140e-6), queueing: 4e-6, root_distance: 20e-6, lie: |_| 0.0 }
    }

    fn with(floor: f64, queueing: f64) -> Self {
        Server { floors: (floor, floor), queueing, ..Self::near() }
    }

    fn lying(self, lie: fn(f64) -> f64) -> Self {
        Server { lie, ..self }
    }
}

/// A host that asks several servers in turn, and its clock.
struct Host {
    world: World,
    servers: Vec<Server>,
    own: Vec<Learned>,
    ensemble: Ensemble,
    /// (time, error, bound) of each reading, s.
    readings: Vec<(f64, f64, f64)>,
    steps: Vec<(f64, f64)>,
}

impl Host {
    fn new(seed: u64, servers: Vec<Server>) -> Self {
        let world = World::lan(seed);
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
        let own = servers.iter().map(|_| Learned::new(config.clone(), classic.clone(), nominal, None)).collect();
        let ensemble = Ensemble::new(config, &classic, nominal, servers.len());
        Host { world, servers, own, ensemble, readings: Vec::new(), steps: Vec::new() }
    }

    fn exchange(&mut self, server: usize) -> Exchange {
        let Server { floors, queueing, root_distance, lie } = self.servers[server].clone();
        (self.world.forward_floor, self.world.backward_floor) = floors;
        (self.world.queueing, self.world.root_distance) = (queueing, root_distance);
        self.world.lie = lie(self.world.time());
        self.world.identity = 0x4750_5300 + server as u32;
        self.world.exchange()
    }

    fn estimate(&self) -> Option<Estimate> {
        self.ensemble.estimate(|server| self.own.get(server))
    }

    fn read(&mut self) {
        let Some(estimate) = self.estimate() else { return };
        let (counter, time) = (self.world.counter(), self.world.time());
        let now = estimate.at(counter);
        let error = (now.time - self.world.moment(time)).as_seconds();
        self.readings.push((time, error, now.bound.as_seconds()));
    }

    /// One exchange with a server, a vote, and readings before and after.
    fn poll(&mut self, server: usize) {
        let exchange = self.exchange(server);
        self.read();
        self.own[server].update(&exchange);
        self.ensemble.update(server, &exchange, &self.own[server]);
        self.vote();
        self.read();
    }

    fn vote(&mut self) {
        let counter = self.world.counter();
        let voters: Vec<(usize, ProvenInterval)> =
            self.own.iter().enumerate().filter_map(|(server, own)| Some((server, own.proven(counter)?))).collect();
        let intervals: Vec<ProvenInterval> = voters.iter().map(|(_, interval)| *interval).collect();
        let Some(verdict) = beliefs(&intervals, 0) else { return };
        let mut believed = vec![true; self.own.len()];
        for ((server, _), belief) in voters.iter().zip(verdict) {
            believed[*server] = belief == ffclock_estimator::Belief::Truechimer;
        }
        let before = self.estimate();
        self.ensemble.believe(believed);
        let step = before
            .zip(self.estimate())
            .map_or(0.0, |(before, after)| (after.at(counter).time - before.at(counter).time).as_seconds());
        self.steps.push((self.world.time(), step));
    }

    /// Asks each server every `poll` seconds, in turn, until `until`.
    fn run(&mut self, poll: f64, until: f64) {
        let apart = poll / self.servers.len() as f64;
        let mut server = 0;
        while self.world.time() + apart < until {
            let jitter = (self.world.random.uniform() - 0.5) * 0.02 * poll;
            self.world.advance(self.world.time() + apart + jitter);
            self.poll(server);
            server = (server + 1) % self.servers.len();
        }
    }

    fn errors(&self, from: f64) -> Vec<f64> {
        let mut errors: Vec<f64> =
            self.readings.iter().filter(|(time, ..)| *time >= from).map(|(_, error, _)| *error).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    fn iqr(&self, from: f64) -> f64 {
        let errors = self.errors(from);
        errors[errors.len() * 3 / 4] - errors[errors.len() / 4]
    }

    fn worst(&self, from: f64) -> f64 {
        self.errors(from).into_iter().map(f64::abs).fold(0.0, f64::max)
    }

    fn escaped(&self) -> usize {
        self.readings.iter().filter(|(_, error, bound)| error.abs() > *bound).count()
    }
}

#[test]
#[ignore = "prints figures"]
fn figures() {
    for (count, poll, floor, queueing) in [
        (4, 64.0, 1e-3, 50e-6),
        (4, 64.0, 10e-3, 1e-3),
        (3, 16.0, 140e-6, 4e-6),
        (4, 1024.0, 3e-3, 200e-6),
        (2, 64.0, 1e-3, 50e-6),
        (5, 64.0, 5e-3, 500e-6),
    ] {
        for seed in 1..=3 {
            let mut several = Host::new(seed, vec![Server::with(floor, queueing); count]);
            several.run(poll, 2.0 * DAY);
            let mut one = Host::new(seed, vec![Server::with(floor, queueing)]);
            one.run(poll / count as f64, 2.0 * DAY);
            println!(
                "{count} {poll} {queueing}: {:.3} us, one asked as often {:.3} us, ratio {:.2}, escaped {} {}, worst {:.2} {:.2}",
                1e6 * several.iqr(6.0 * HOUR),
                1e6 * one.iqr(6.0 * HOUR),
                several.iqr(6.0 * HOUR) / one.iqr(6.0 * HOUR),
                several.escaped(),
                one.escaped(),
                1e6 * several.worst(6.0 * HOUR),
                1e6 * one.worst(6.0 * HOUR)
            );
        }
    }
}

#[test]
#[ignore = "prints figures"]
fn liars() {
    let honest = |seed: u64| {
        let mut host = Host::new(seed, vec![Server::near(); 3]);
        host.run(16.0, DAY);
        host
    };
    let lies: [(&str, fn(f64) -> f64); 6] = [
        ("step 50 ms", |time| if time > 6.0 * HOUR { 50e-3 } else { 0.0 }),
        ("step 300 us", |time| if time > 6.0 * HOUR { 300e-6 } else { 0.0 }),
        ("step 30 us", |time| if time > 6.0 * HOUR { 30e-6 } else { 0.0 }),
        ("creep 1 ppm", |time| 1e-6 * (time - 6.0 * HOUR).max(0.0)),
        ("creep 0.1 ppm", |time| 1e-7 * (time - 6.0 * HOUR).max(0.0)),
        ("from the start 20 ms", |_| 20e-3),
    ];
    for seed in 1..=2 {
        let host = honest(seed);
        println!(
            "honest: {:.3} worst {:.2} step {:.2}",
            1e6 * host.iqr(6.0 * HOUR),
            1e6 * host.worst(6.0 * HOUR),
            1e6 * host.steps.iter().map(|s| s.1.abs()).fold(0.0, f64::max)
        );
        for (name, lie) in lies {
            for liar in [0, 2] {
                let mut servers = vec![Server::near(); 3];
                servers[liar] = Server::near().lying(lie);
                let mut host = Host::new(seed, servers);
                host.run(16.0, DAY);
                println!(
                    "{name} by {liar}: IQR {:.3} worst {:.2} escaped {} largest step {:.2} {:?}",
                    1e6 * host.iqr(6.0 * HOUR),
                    1e6 * host.worst(6.0 * HOUR),
                    host.escaped(),
                    1e6 * host.steps.iter().filter(|s| s.0 > HOUR).map(|s| s.1.abs()).fold(0.0, f64::max),
                    host.ensemble.members()[liar]
                );
            }
        }
    }
}
