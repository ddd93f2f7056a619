//! A common clock of several servers that begins again, on a host that is busy, beside a server that lies within what
//! the others can prove.

mod common;

use common::host::{Host, Server};
use common::{HOUR, Random};
use ffclock_estimator::{
    Belief, ClassicConfig, Ensemble, Estimator, Event, Learned, LearnedConfig, Unheard, Voter, VotingRules, vote,
};
use ffclock_units::{
    Bound, Counter, Exchange, Leap, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp, StampLocation, Tai,
    Ticks,
};

/// What a host recorded that asked three servers every 250 ms while others kept it busy: for each exchange the server,
/// when it was sent, the ticks until it was received, how uncertain both stamps are, the server's time, and how long it
/// took to answer.
const RECORDED: &str = include_str!("data/liar-within-claims.txt");
const RECORDED_HERTZ: f64 = 2_596_139_808.637_737;

/// The last of the three is ahead by 100 us from its 58th answer on, within what the others claim.
const RECORDED_LIAR: usize = 2;
const LIES_FROM: usize = 58;

fn recorded(line: &str) -> (usize, Exchange) {
    let fields: Vec<i64> = line.split(' ').map(|field| field.parse().expect("a number")).collect();
    let [server, sent, trip, sent_width, received_width, server_in, residence] = fields[..] else {
        panic!("seven fields: {line}")
    };
    let stamp = |ticks: i64, width: i64| Stamp {
        counter: Counter::from_raw(123_456_789_012) + Ticks::from_raw(ticks),
        width: Ticks::from_raw(width),
        location: StampLocation::Unknown,
    };
    let seconds = |parts: i64| Span::from_seconds(parts as f64 / 4_294_967_296.0);
    let server_in: Moment<Tai> = Moment::from_origin(Span::from_secs(1_700_000_000) + seconds(server_in));
    let server = server as usize;
    let claim = if server == RECORDED_LIAR { 61.035e-6 } else { 213.623e-6 };
    let quality = ServerQuality {
        identity: ServerIdentity { stratum: 1, reference_id: 0x4c41_4200 },
        leap: Leap::None,
        root_distance: Bound::from_seconds(claim),
    };
    let exchange = Exchange {
        sent: stamp(sent, sent_width),
        received: stamp(sent + trip, received_width),
        server_in,
        server_out: server_in + seconds(residence),
        server: quality,
    };
    (server, exchange)
}

/// The clock of a recording.
struct Replayed {
    own: Vec<Learned>,
    ensemble: Ensemble,
}

impl Replayed {
    fn new() -> Self {
        let nominal = Period::from_hertz(RECORDED_HERTZ).expect("a counter has a frequency");
        let (config, classic) = (LearnedConfig::default(), ClassicConfig::default());
        let own = (0..3).map(|_| Learned::new(config.clone(), classic.clone(), nominal, None)).collect();
        Replayed { own, ensemble: Ensemble::new(config, &classic, nominal, 3) }
    }

    /// Takes an exchange and lets the servers vote.
    fn take(&mut self, server: usize, exchange: &Exchange) {
        self.own[server].update(exchange);
        self.ensemble.update(server, exchange, &self.own[server]);
        let counter = exchange.received.counter;
        let voter = |own: &Learned| {
            let estimate = own.estimate()?;
            let (period, growth) = (estimate.period, estimate.bound_growth);
            Some(Voter { interval: own.claimed(counter)?, period, growth, is_trusted: false })
        };
        let voters: Vec<Voter> = self.own.iter().filter_map(voter).collect();
        if let Some(result) = vote(&voters, Unheard::default(), &VotingRules::default())
            && voters.len() == 3
        {
            self.ensemble.believe(result.beliefs.iter().map(|belief| *belief == Belief::Truechimer));
        }
    }
}

/// The liar is named with its first false answer, while the packets of the other two are late for seconds. With coarse
/// densities their own clocks lost track of that, the common clock began again and believed the liar once more, and was
/// 82 us off.
#[test]
fn a_liar_that_was_named_has_no_part_while_honest_packets_are_late() {
    let mut clock = Replayed::new();
    let mut answers = 0;
    for line in RECORDED.lines().filter(|line| !line.starts_with('#')) {
        let (server, exchange) = recorded(line);
        clock.take(server, &exchange);
        answers += usize::from(server == RECORDED_LIAR);
        if answers < LIES_FROM {
            continue;
        }
        let members = clock.ensemble.members();
        assert!(members[RECORDED_LIAR].weight == 0.0, "answer {answers}: {members:?}");
        if server == RECORDED_LIAR {
            continue;
        }
        // An honest server's answer is true, and its way back takes some 20 us.
        let now = clock.ensemble.estimate().expect("a clock").carried_to(exchange.received.counter);
        let ahead = (now.time - exchange.server_out).as_seconds();
        assert!((-20e-6..60e-6).contains(&ahead), "answer {answers}: {ahead:e}");
    }
    assert!(answers > LIES_FROM, "the recording has {answers} answers of the liar");
}

/// A host whose packets are all late together now and then, and the last of its three servers.
struct BusyHost {
    host: Host,
    chance: Random,
    /// Until when the packets are late like this, and their mean lateness.
    burst: (f64, f64),
    /// The last server is out: it was named, as a falseticker or as a suspect.
    is_named: bool,
    /// How often the common clock began again with the last server named.
    begun_again: usize,
}

const LIAR: usize = 2;

impl BusyHost {
    fn new(seed: u64, servers: [Server; 3]) -> Self {
        let host = Host::new(seed, servers.to_vec());
        BusyHost { host, chance: Random::new(seed), burst: (0.0, 0.0), is_named: false, begun_again: 0 }
    }

    /// Half of the time nothing is late, otherwise all is, by `late` on average, for up to 40 exchanges.
    fn burst(&mut self, poll: f64, late: f64) {
        let time = self.host.world.time();
        if time > self.burst.0 {
            let is_late = self.chance.uniform() < 0.5;
            let mean = if is_late { self.chance.exponential(late) } else { 0.0 };
            self.burst = (time + 40.0 * poll * self.chance.uniform(), mean);
        }
        self.host.world.lateness = self.burst.1;
    }

    /// Asks each server every `poll` seconds, in turn, until `until`. Who is believed is what the servers vote, or
    /// `believed`. From the time on at which the liar is named every reading has to be within its bound.
    fn run(&mut self, (poll, late): (f64, f64), until: f64, believed: Option<[bool; 3]>) {
        let mut server = 0;
        while self.host.world.time() < until {
            self.host.world.advance(self.host.world.time() + poll / 3.0);
            self.burst(poll, late);
            let exchange = self.host.exchange(server);
            self.check();
            self.host.own[server].update(&exchange);
            let outcome = self.host.ensemble.update(server, &exchange, &self.host.own[server]);
            let began = outcome.events.contains(Event::FilterRestarted);
            self.begun_again += usize::from(began && self.is_named);
            match believed {
                Some(believed) => self.host.ensemble.believe(believed),
                None => self.host.believe(),
            }
            let liar = self.host.ensemble.members()[LIAR];
            self.is_named |= believed.is_none() && (liar.is_suspect || !liar.is_believed);
            self.check();
            server = (server + 1) % 3;
        }
    }

    fn check(&self) {
        if !self.is_named {
            return;
        }
        let (now, bounds) = self.host.published_without_suspects().expect("a majority");
        let time = self.host.world.time();
        let error = (now.time - self.host.world.moment(time)).as_seconds().abs();
        let (bound, strict) = (bounds.believed.bound.as_seconds(), bounds.strict.bound.as_seconds());
        assert!(error <= bound && error <= strict, "at {time}: {error:e} of {bound:e} and {strict:e}");
        let liar = self.host.ensemble.members()[LIAR];
        assert!(liar.weight == 0.0, "at {time}: {liar:?}");
    }
}

/// A server leads the clock away by up to 100 us, for an hour in which the others are not believed, and then jumps by
/// 10 us to 1 ms. It is named; the clock begins again, because the own clocks of the others show that it was led; and
/// the liar, which paths and claims explain where it is, has no part in it for the hours that follow.
#[test]
fn who_led_the_clock_and_was_named_does_not_lead_the_one_that_begins_again() {
    let mut begun_again = 0;
    for seed in 1..=8 {
        let mut chance = Random::new(100 + seed);
        let (lead, jump) = (20e-6 + 80e-6 * chance.uniform(), 10e-6 * 100.0_f64.powf(chance.uniform()));
        let liar = Server::near().lying(move |time| {
            let led = lead * ((time - HOUR) / HOUR).clamp(0.0, 1.0);
            if time > 2.0 * HOUR { led + jump } else { led }
        });
        let mut busy = BusyHost::new(seed, [Server::near(), Server::near(), liar]);
        busy.run((16.0, 10e-6), HOUR, Some([true; 3]));
        busy.run((16.0, 10e-6), 2.0 * HOUR, Some([false, false, true]));
        busy.run((16.0, 10e-6), 4.0 * HOUR, None);
        assert!(busy.is_named, "seed {seed}: {:?}", busy.host.ensemble.members());
        begun_again += busy.begun_again;
    }
    assert!(begun_again > 0, "no clock began again after a liar was named");
}
