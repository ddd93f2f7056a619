//! One clock from several servers: simulated worlds in which some of them lie.

mod common;

use common::{DAY, HOUR, World};
use ffclock_estimator::{
    Belief, ClassicConfig, Ensemble, Estimator, Learned, LearnedConfig, Unheard, VotedBounds, Voter, VotingRules, vote,
};
use ffclock_units::{Counter, Estimate, Exchange, Period};

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

/// A reading of the clock. s.
struct Reading {
    time: f64,
    error: f64,
    bound: f64,
    strict: f64,
}

/// A host that asks several servers in turn, and its clock.
struct Host {
    world: World,
    servers: Vec<Server>,
    own: Vec<Learned>,
    ensemble: Ensemble,
    readings: Vec<Reading>,
    /// (time, step of the clock) at each vote, s.
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

    /// What the vote says now of the ensemble's clock, carried to this moment.
    fn published(&self) -> Option<(Estimate, VotedBounds)> {
        let counter = self.world.counter();
        let voters = self.voters(counter);
        let result = vote(&voters, Unheard::default(), &VotingRules::default())?;
        let now = self.ensemble.estimate()?.carried_to(counter);
        Some((now, result.bounds(&now, &voters)))
    }

    fn voters(&self, counter: Counter) -> Vec<Voter> {
        let voter = |own: &Learned| {
            let Estimate { period, bound_growth: growth, .. } = own.estimate()?;
            Some(Voter { interval: own.proven(counter)?, period, growth, is_trusted: false })
        };
        self.own.iter().filter_map(voter).collect()
    }

    fn read(&mut self) {
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
    fn poll(&mut self, server: usize) {
        let exchange = self.exchange(server);
        self.read();
        self.own[server].update(&exchange);
        self.ensemble.update(server, &exchange, &self.own[server]);
        self.believe();
        self.read();
    }

    /// Lets the servers vote. All have answered by the time this matters.
    fn believe(&mut self) {
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
            self.readings.iter().filter(|reading| reading.time >= from).map(|reading| reading.error).collect();
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

    /// Readings outside of either bound.
    fn escaped(&self) -> usize {
        let heard = self.readings.iter().filter(|reading| reading.time > 120.0);
        heard.filter(|reading| reading.error.abs() > reading.bound.min(reading.strict)).count()
    }

    fn largest_step(&self, from: f64) -> f64 {
        self.steps.iter().filter(|(time, _)| *time >= from).map(|(_, step)| step.abs()).fold(0.0, f64::max)
    }
}

/// As good as one server that is asked as often as all of them together, on three paths.
#[test]
fn several_servers_are_worth_as_much_as_one_that_is_asked_as_often() {
    for (count, poll, floor, queueing) in [(3, 16.0, 140e-6, 4e-6), (4, 64.0, 1e-3, 50e-6), (2, 64.0, 10e-3, 1e-3)] {
        let server = Server::with(floor, queueing);
        let mut several = Host::new(1, vec![server.clone(); count]);
        several.run(poll, DAY);
        let mut one = Host::new(1, vec![server]);
        one.run(poll / count as f64, DAY);
        let (several_iqr, one_iqr) = (several.iqr(4.0 * HOUR), one.iqr(4.0 * HOUR));
        assert!(several_iqr < 1.25 * one_iqr, "{count} servers: {several_iqr:e}, one: {one_iqr:e}");
        assert_eq!((several.escaped(), one.escaped()), (0, 0));
    }
}

const LIE: f64 = 6.0 * HOUR;

/// Whatever a minority does from some moment on: it steps within and beyond the others' intervals, and it creeps away.
#[test]
fn a_liar_moves_the_clock_by_next_to_nothing() {
    let mut honest = Host::new(1, vec![Server::near(); 3]);
    honest.run(16.0, 12.0 * HOUR);
    let expected = 1.5 * honest.worst(LIE) + 10e-6;
    let lies: [fn(f64) -> f64; 4] = [
        |time| if time > LIE { 50e-3 } else { 0.0 },
        |time| if time > LIE { 300e-6 } else { 0.0 },
        |time| 1e-6 * (time - LIE).max(0.0),
        |time| 1e-7 * (time - LIE).max(0.0),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        for liar in [0, 2] {
            let mut servers = vec![Server::near(); 3];
            servers[liar] = Server::near().lying(lie);
            let mut host = Host::new(1, servers);
            host.run(16.0, 12.0 * HOUR);
            let member = host.ensemble.members()[liar];
            assert!(host.worst(HOUR) < expected, "lie {number} by {liar}: {:e} of {expected:e}", host.worst(HOUR));
            assert!(!member.is_believed || member.is_suspect, "lie {number} by {liar}: {member:?}");
            assert_eq!(host.escaped(), 0, "lie {number} by {liar}");
            assert!(host.largest_step(HOUR) < 10e-6, "lie {number} by {liar}: {:e}", host.largest_step(HOUR));
        }
    }
}

/// The first to answer lies from the start: the clock begins with its time, and leaves it with the vote.
#[test]
fn a_liar_that_answers_first_is_left_with_the_vote() {
    let mut servers = vec![Server::near(); 3];
    servers[0] = Server::near().lying(|_| 20e-3);
    let mut host = Host::new(2, servers);
    host.run(16.0, 6.0 * HOUR);
    assert!(host.worst(HOUR) < 5e-6, "{:e}", host.worst(HOUR));
    let ahead = host.ensemble.members()[0].ahead.expect("its floors are known");
    assert!((ahead - 20e-3).abs() < 5e-6, "{ahead}");
    assert_eq!(host.escaped(), 0);
}

/// Servers whose own times differ, as asymmetric paths make them: one leaves, another comes.
#[test]
fn the_clock_does_not_step_when_a_server_leaves_or_comes() {
    let skewed = |by: f64| Server { floors: (140e-6 + by, 140e-6 - by), ..Server::near() };
    let mut host = Host::new(3, vec![skewed(0.0), skewed(3e-6), skewed(-4e-6)]);
    host.run(16.0, 3.0 * HOUR);
    let before = host.ensemble.estimate().expect("a clock");
    host.ensemble.renumber(&[Some(1), Some(2), None]);
    host.own.rotate_left(1);
    host.servers.rotate_left(1);
    let after = host.ensemble.estimate().expect("the clock goes on");
    let step = (after.time - before.time).as_seconds();
    assert!(step.abs() < 5e-6, "{step:e}");
    assert!(host.ensemble.members()[2].ahead.is_none() && host.ensemble.members()[0].weight > 0.4);
    host.run(16.0, 6.0 * HOUR);
    assert!(host.ensemble.members().iter().all(|member| member.weight > 0.2), "{:?}", host.ensemble.members());
    assert!(host.worst(4.0 * HOUR) < 8e-6, "{:e}", host.worst(4.0 * HOUR));
    assert_eq!(host.escaped(), 0);
}

/// Sixteen servers, in whichever order they are asked: the same clock but for rounding and the luck of the order.
#[test]
fn sixteen_servers_make_one_clock_within_its_memory() {
    let servers: Vec<Server> = (0..16)
        .map(|number| Server::with(140e-6 * f64::from(1 + number % 4), 4e-6 * f64::from(1 + number % 3)))
        .collect();
    let mut host = Host::new(4, servers);
    host.run(64.0, 2.0 * HOUR);
    assert!(host.ensemble.bytes() <= 16 * (2 << 20), "{} bytes", host.ensemble.bytes());
    assert!(host.worst(0.5 * HOUR) < 3e-6, "{:e}", host.worst(0.5 * HOUR));
    assert_eq!(host.escaped(), 0);
}

/// A second and a third server are asked beside the one that has been asked for hours.
#[test]
fn servers_join_the_clock_of_one() {
    let mut host = Host::new(5, vec![Server::near()]);
    host.run(16.0, 3.0 * HOUR);
    let before = host.own[0].estimate().expect("a clock");
    let ensemble = Ensemble::of(&host.own[0], 1, 3);
    let step = (ensemble.estimate().expect("the same clock").time - before.time).as_seconds();
    assert_eq!(step, 0.0);
    let mut joined = Host::new(5, vec![Server::near(); 3]);
    std::mem::swap(&mut joined.world, &mut host.world);
    joined.own.swap(1, 0);
    joined.own[1] = host.own.remove(0);
    joined.ensemble = ensemble;
    joined.run(16.0, 6.0 * HOUR);
    let members = joined.ensemble.members();
    assert!(members.iter().all(|member| (0.3..0.4).contains(&member.weight)), "{members:?}");
    assert!(joined.worst(0.0) < 5e-6, "{:e}", joined.worst(0.0));
    assert_eq!(joined.escaped(), 0);
}
