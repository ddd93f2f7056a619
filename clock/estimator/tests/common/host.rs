//! A host that asks several servers, some of which may lie.

use super::World;
use ffclock_estimator::{
    Belief, ClassicConfig, Ensemble, Estimator, Learned, LearnedConfig, Unheard, VotedBounds, Voter, VotingRules, vote,
};
use ffclock_units::{Counter, Estimate, Exchange, Period};
use std::rc::Rc;

/// A server and the path to it. Times in seconds.
#[derive(Clone)]
pub struct Server {
    pub floors: (f64, f64),
    pub queueing: f64,
    pub root_distance: f64,
    /// Server time minus true time, by true time.
    pub lie: Rc<dyn Fn(f64) -> f64>,
}

impl Server {
    pub fn near() -> Self {
        Server { floors: (140e-6, 140e-6), queueing: 4e-6, root_distance: 20e-6, lie: Rc::new(|_| 0.0) }
    }

    pub fn with(floor: f64, queueing: f64) -> Self {
        Server { floors: (floor, floor), queueing, ..Self::near() }
    }

    pub fn lying(self, lie: impl Fn(f64) -> f64 + 'static) -> Self {
        Server { lie: Rc::new(lie), ..self }
    }
}

/// A reading of the clock. s.
pub struct Reading {
    pub time: f64,
    pub error: f64,
    pub bound: f64,
    pub strict: f64,
}

/// A host that asks several servers in turn, and its clock.
pub struct Host {
    pub world: World,
    pub servers: Vec<Server>,
    pub own: Vec<Learned>,
    pub ensemble: Ensemble,
    pub readings: Vec<Reading>,
    /// (time, step of the clock) at each vote, s.
    pub steps: Vec<(f64, f64)>,
}

impl Host {
    pub fn new(seed: u64, servers: Vec<Server>) -> Self {
        let world = World::lan(seed);
        let nominal = Period::from_hertz(world.hertz).expect("a counter has a frequency");
        let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
        let own = servers.iter().map(|_| Learned::new(config.clone(), classic.clone(), nominal, None)).collect();
        let ensemble = Ensemble::new(config, &classic, nominal, servers.len());
        Host { world, servers, own, ensemble, readings: Vec::new(), steps: Vec::new() }
    }

    pub fn exchange(&mut self, server: usize) -> Exchange {
        let Server { floors, queueing, root_distance, lie } = self.servers[server].clone();
        (self.world.forward_floor, self.world.backward_floor) = floors;
        (self.world.queueing, self.world.root_distance) = (queueing, root_distance);
        self.world.lie = lie(self.world.time());
        self.world.identity = 0x4750_5300 + server as u32;
        self.world.exchange()
    }

    /// What the vote says now of the ensemble's clock, carried to this moment.
    pub fn published(&self) -> Option<(Estimate, VotedBounds)> {
        let counter = self.world.counter();
        let voters = self.voters(counter);
        let result = vote(&voters, Unheard::default(), &VotingRules::default())?;
        let now = self.ensemble.estimate()?.carried_to(counter);
        Some((now, result.bounds(&now, &voters)))
    }

    /// The same as the daemon publishes it: by the servers that are not suspect alone, if some are.
    pub fn published_without_suspects(&self) -> Option<(Estimate, VotedBounds)> {
        let counter = self.world.counter();
        let all = self.voters(counter);
        let result = vote(&all, Unheard::default(), &VotingRules::default())?;
        let now = self.ensemble.estimate()?.carried_to(counter);
        let suspects: Vec<bool> = self.ensemble.members().iter().map(|member| member.is_suspect).collect();
        let has_all = all.len() == self.own.len();
        let published = if has_all { result.bounds_beside(&suspects, &now, &all) } else { result.bounds(&now, &all) };
        Some((now, published))
    }

    pub fn voters(&self, counter: Counter) -> Vec<Voter> {
        let voter = |own: &Learned| {
            let Estimate { period, bound_growth: growth, .. } = own.estimate()?;
            Some(Voter { interval: own.claimed(counter)?, period, growth, is_trusted: false })
        };
        self.own.iter().filter_map(voter).collect()
    }

    pub fn read(&mut self) {
        let Some((now, bounds)) = self.published() else { return };
        let time = self.world.time();
        let error = (now.time - self.world.moment(time)).as_seconds();
        self.readings.push(Reading {
            time,
            error,
            bound: bounds.believed.bound.as_seconds(),
            strict: bounds.strict.bound.as_seconds(),
        });
    }

    /// One exchange with a server, a vote, and readings before and after.
    pub fn poll(&mut self, server: usize) {
        let exchange = self.exchange(server);
        self.read();
        self.own[server].update(&exchange);
        self.ensemble.update(server, &exchange, &self.own[server]);
        self.believe();
        self.read();
    }

    /// Lets the servers vote. All have answered by the time this matters.
    pub fn believe(&mut self) {
        let counter = self.world.counter();
        let voters = self.voters(counter);
        let Some(result) = vote(&voters, Unheard::default(), &VotingRules::default()) else { return };
        if voters.len() < self.own.len() {
            return;
        }
        let time = |host: &Self| host.ensemble.estimate().map(|estimate| estimate.at(counter).time);
        let before = time(self);
        self.ensemble.believe(result.beliefs.iter().map(|belief| *belief == Belief::Truechimer));
        let step = before.zip(time(self)).map_or(0.0, |(before, after)| (after - before).as_seconds());
        self.steps.push((self.world.time(), step));
    }

    /// Asks each server every `poll` seconds, in turn, until `until`.
    pub fn run(&mut self, poll: f64, until: f64) {
        let apart = poll / self.servers.len() as f64;
        let mut server = 0;
        while self.world.time() + apart < until {
            let jitter = (self.world.random.uniform() - 0.5) * 0.02 * poll;
            self.world.advance(self.world.time() + apart + jitter);
            self.poll(server);
            server = (server + 1) % self.servers.len();
        }
    }

    pub fn errors(&self, from: f64) -> Vec<f64> {
        let mut errors: Vec<f64> =
            self.readings.iter().filter(|reading| reading.time >= from).map(|reading| reading.error).collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    pub fn iqr(&self, from: f64) -> f64 {
        let errors = self.errors(from);
        errors[errors.len() * 3 / 4] - errors[errors.len() / 4]
    }

    pub fn worst(&self, from: f64) -> f64 {
        self.errors(from).into_iter().map(f64::abs).fold(0.0, f64::max)
    }

    /// Readings outside of either bound.
    pub fn escaped(&self) -> usize {
        let heard = self.readings.iter().filter(|reading| reading.time > 120.0);
        heard.filter(|reading| reading.error.abs() > reading.bound.min(reading.strict)).count()
    }

    pub fn largest_step(&self, from: f64) -> f64 {
        self.steps.iter().filter(|(time, _)| *time >= from).map(|(_, step)| step.abs()).fold(0.0, f64::max)
    }
}
