//! A world: one host, one path, one server, in virtual time, with the clocks that are judged.
//!
//! Time goes on from event to event, and every part is looked at in the order of time. The conversation is held by the
//! real [`Source`], with the calls that the daemon makes: after each input its outputs are drained, and it is called
//! again at the deadline it names.

use crate::account::{ClockAccount, ReadingTime};
use crate::agenda::Agenda;
use crate::clock::{self, ReadingClaims, Timekeeper};
use crate::counter::SimulatedCounter;
use crate::host::SimulatedHost;
use crate::oracle::{self, ORACLES, OracleWitness, TimeOrigin, TrueStamps};
use crate::oscillator::Oscillator;
use crate::path::Path;
use crate::random::Random;
use crate::result::RunResult;
use crate::scenario::{Asleep, Scenario, SuspendSpec};
use crate::server::{Server, label};
use ffclock_estimator::LearnedConfig;
use ffclock_source::{Event as SourceEvent, Nonce, Source, SourceConfig, Ticket};
use ffclock_trace::{ServerIndex, TraceHeader, TraceRow, Truth};
use ffclock_units::{ClockError, Counter, CounterEpoch, Direction, LeapTable, Moment, Mono, Span, Stamp, Tai, Ticks};

/// Every world begins at 2026-12-31 00:00:00 UTC: a leap second may come after a day.
const BEGIN_TAI_S: i64 = 1_798_675_200 + 37;
/// The mean number of readings per poll, and the limits of the mean interval between them.
const READINGS_PER_POLL: f64 = 4.0;
const READING_INTERVAL_S: [f64; 2] = [4.0, 64.0];
type Bytes = [u8; ffclock_wire::HEADER_BYTES];

/// Takes the rows of a trace as they come.
pub type RowSink<'a> = &'a mut dyn FnMut(&TraceRow);

/// What one clock showed when the clocks were read.
#[derive(Clone, Copy, Debug)]
pub struct ShownReading<'a> {
    /// The name of the clock.
    pub clock: &'a str,
    /// Since the world began.
    pub at: Span,
    /// The counter at that time.
    pub counter: Counter,
    /// Clock minus true time.
    pub error: ClockError,
    /// What the clock said of its errors.
    pub claims: Option<ReadingClaims>,
}

/// Takes what the clocks showed as they are read.
pub type SampleSink<'a> = &'a mut dyn FnMut(&ShownReading<'_>);

/// Where a run leaves what it lives through.
#[derive(Default)]
pub struct Sinks<'a> {
    /// The rows of a trace.
    pub rows: Option<RowSink<'a>>,
    /// The readings of the clocks.
    pub samples: Option<SampleSink<'a>>,
}

/// Who takes part in a run.
#[derive(Clone, Copy, Debug)]
pub struct Cast<'a> {
    /// Some of the clocks of [`CLOCKS`](crate::CLOCKS), and oracles of [`ORACLES`].
    pub clocks: &'a [&'a str],
    /// The options of the learned estimator, to measure what its parts are worth.
    pub learned: &'a LearnedConfig,
}

/// What happens.
enum Happening {
    /// The source named this time.
    Timeout,
    /// The host stamps a request.
    Depart(Bytes, Ticket),
    AtServer(Bytes),
    AtHost(Bytes),
    /// The host stamps a reply that arrived at this time.
    Stamped(Bytes, Span),
    /// The clocks are read.
    Reading,
    /// The host wakes.
    Wake(Asleep),
}

/// A clock with its account.
struct AccountedClock {
    clock: Box<dyn Timekeeper>,
    account: ClockAccount,
}

struct World<'a> {
    scenario: &'a Scenario,
    agenda: Agenda<Happening>,
    counter: SimulatedCounter,
    stamp_width: Ticks,
    host: SimulatedHost,
    path: Path,
    server: Server,
    source: Source,
    announced_timeout: Option<Span>,
    nonces: Random,
    readings: Random,
    clocks: Vec<AccountedClock>,
    sent: Option<(Counter, Span)>,
    epoch: u64,
    /// Requests of conversations that a suspend ended.
    asked: u64,
    sequence: u64,
    exchanges: u64,
    sinks: Sinks<'a>,
    witness: Option<OracleWitness<'a>>,
}

/// One run to be made.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The name of the scenario, for the result.
    pub name: &'a str,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Where all chance comes from.
    pub seed: u64,
}

impl Run<'_> {
    /// Lives through the scenario with all clocks; hands each row of the trace to `sink`.
    pub fn execute<'b>(&'b self, sink: Option<RowSink<'b>>) -> RunResult {
        self.execute_with(&clock::NAMES, sink)
    }

    /// The same with some of the clocks of [`CLOCKS`](crate::CLOCKS) and some of the oracles of [`ORACLES`], which come
    /// last and cost many times what the clocks do.
    pub fn execute_with<'b>(&'b self, clocks: &[&str], sink: Option<RowSink<'b>>) -> RunResult {
        let cast = Cast { clocks, learned: &LearnedConfig::default() };
        self.execute_as(&cast, Sinks { rows: sink, samples: None })
    }

    /// The same with this cast, and with every reading handed out, too.
    pub fn execute_as<'b>(&'b self, cast: &Cast<'_>, sinks: Sinks<'b>) -> RunResult {
        let Cast { clocks, learned } = *cast;
        let mut world = World::new(self.scenario, self.seed, sinks);
        let oracles: Vec<&str> = ORACLES.into_iter().filter(|name| clocks.contains(name)).collect();
        if !oracles.is_empty() {
            world.witness =
                Some(OracleWitness::new(self.scenario, TimeOrigin { counter: SimulatedCounter::BEGIN, time: begin() }));
        }
        let asymmetry = world.path.asymmetry() + world.host.asymmetry();
        let nominal = self.scenario.counter.nominal();
        let judged = |name: &&str| {
            let clock = clock::make(name, nominal, learned)?;
            Some(AccountedClock { clock, account: ClockAccount::new(name, self.scenario, asymmetry) })
        };
        world.clocks = clocks.iter().filter_map(judged).collect();
        world.live();
        let (requests, exchanges) = (world.asked + world.source.statistics().sent, world.exchanges);
        let mut clocks: Vec<_> = world.clocks.into_iter().map(|judged| judged.account.result()).collect();
        clocks.extend(world.witness.map(|witness| witness.judge(&oracles, self.seed)).unwrap_or_default());
        let checks: Vec<_> = crate::check::all(self.scenario).flatten().map(|check| check.judge(&clocks)).collect();
        RunResult {
            scenario: self.name.to_owned(),
            tags: self.scenario.tags.clone(),
            seed: self.seed,
            without: learned.left_out().into_iter().map(str::to_owned).collect(),
            duration_s: self.scenario.duration.seconds(),
            asymmetry_s: asymmetry.as_seconds(),
            requests,
            exchanges,
            passed: checks.iter().all(|check| check.passed),
            oracle_ratios: oracle::ratios(&clocks),
            clocks,
            checks,
        }
    }

    /// What a trace of this run says about itself.
    pub fn trace_header(&self) -> TraceHeader {
        let kind = self.scenario.counter;
        let metadata =
            [("scenario", self.name.to_owned()), ("seed", self.seed.to_string()), ("server.0", "simulated".into())];
        TraceHeader {
            counter: Some(kind.name().to_owned()),
            nominal: Some(kind.nominal()),
            created: Some(LeapTable::built_in().utc_from_tai(begin())),
            truth: true,
            metadata: metadata.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        }
    }
}

fn begin() -> Moment<Tai> {
    Moment::from_origin(Span::from_secs(BEGIN_TAI_S))
}

/// A conversation with the server that begins at `now`.
fn conversation(scenario: &Scenario, now: Span) -> Source {
    let config = SourceConfig { poll: scenario.poll.0, burst_count: scenario.burst, ..SourceConfig::default() };
    let pivot = label(LeapTable::built_in().utc_from_tai(begin() + now));
    Source::new(config, LeapTable::built_in(), pivot, mono(now))
}

fn mono(now: Span) -> Moment<Mono> {
    Moment::from_origin(now)
}

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, seed: u64, sinks: Sinks<'a>) -> Self {
        let kind = scenario.counter;
        let latency = kind.nominal().ticks_in(Span::from_seconds(kind.read_latency()));
        World {
            agenda: Agenda::new(),
            counter: SimulatedCounter::new(kind, Oscillator::new(&scenario.oscillator, seed)),
            stamp_width: latency + Ticks::from_raw(2),
            host: SimulatedHost::new(&scenario.host, kind.read_latency(), seed),
            path: Path::new(&scenario.path, seed),
            server: Server::new(&scenario.server, begin(), seed),
            source: conversation(scenario, Span::ZERO),
            announced_timeout: None,
            nonces: Random::named(seed, "nonces"),
            readings: Random::named(seed, "readings"),
            clocks: Vec::new(),
            sent: None,
            epoch: 0,
            asked: 0,
            sequence: 0,
            exchanges: 0,
            witness: None,
            scenario,
            sinks,
        }
    }

    fn live(&mut self) {
        self.plan_timeout();
        self.plan_reading(Span::ZERO);
        for suspend in &self.scenario.host.suspend {
            self.agenda.enter(suspend.until.0, Happening::Wake(suspend.counter));
        }
        while let Some((now, happening)) = self.agenda.next() {
            if now >= self.scenario.duration.0 {
                return;
            }
            match self.asleep_until(now) {
                Some(wake) => self.sleep_through(wake, now, happening),
                None => self.happen(now, happening),
            }
        }
    }

    fn asleep_until(&self, now: Span) -> Option<Span> {
        let within = |suspend: &&SuspendSpec| (suspend.at.0..suspend.until.0).contains(&now);
        self.scenario.host.suspend.iter().find(within).map(|suspend| suspend.until.0)
    }

    /// What concerns the host does not happen; what waits for the time waits on.
    fn sleep_through(&mut self, wake: Span, now: Span, happening: Happening) {
        match happening {
            Happening::AtServer(_) | Happening::Wake(_) => self.happen(now, happening),
            Happening::Reading => self.plan_reading(wake),
            Happening::Timeout | Happening::Depart(..) | Happening::AtHost(_) | Happening::Stamped(..) => {}
        }
    }

    /// As the daemon does when it sees that the host was suspended: a new epoch, a new conversation with its burst.
    fn wake(&mut self, now: Span, asleep: Asleep) {
        self.counter.wake(now, asleep);
        self.epoch += 1;
        self.asked += self.source.statistics().sent;
        self.source = conversation(self.scenario, now);
        (self.sent, self.announced_timeout) = (None, None);
        for judged in &mut self.clocks {
            judged.clock.broke();
            judged.account.broke();
        }
        if let Some(witness) = &mut self.witness {
            witness.counter_broke();
        }
        self.plan_timeout();
    }

    fn happen(&mut self, now: Span, happening: Happening) {
        match happening {
            Happening::Timeout => self.timeout(now),
            Happening::Depart(bytes, ticket) => self.depart(now, bytes, ticket),
            Happening::AtServer(bytes) => {
                if let Some(reply) = self.server.answer(&bytes, now) {
                    let arrivals = self.path.travel(Direction::Incoming, reply.leaves);
                    arrivals.into_iter().flatten().for_each(|at| self.agenda.enter(at, Happening::AtHost(reply.bytes)));
                }
            }
            Happening::AtHost(bytes) => {
                let stamped = now + self.host.delay(Direction::Incoming, now);
                self.agenda.enter(stamped, Happening::Stamped(bytes, now));
            }
            Happening::Stamped(bytes, arrived) => {
                let stamp = self.stamp(now);
                self.source.handle_packet(&bytes, stamp, mono(now));
                self.drain(now, Some(arrived));
            }
            Happening::Reading => self.read(now),
            Happening::Wake(asleep) => self.wake(now, asleep),
        }
    }

    fn timeout(&mut self, now: Span) {
        // A deadline that was moved since.
        if self.announced_timeout != Some(now) {
            return;
        }
        self.announced_timeout = None;
        if self.source.poll_timeout() <= mono(now) {
            let nonce = Nonce::from_random(self.nonces.bits());
            self.source.handle_timeout(mono(now), nonce);
        }
        self.drain(now, None);
    }

    fn depart(&mut self, now: Span, bytes: Bytes, ticket: Ticket) {
        let stamp = self.stamp(now);
        let leaves = now + self.host.delay(Direction::Outgoing, now);
        self.sent = Some((stamp.counter, leaves));
        for judged in &mut self.clocks {
            judged.clock.sent(stamp.counter);
        }
        let arrivals = self.path.travel(Direction::Outgoing, leaves);
        arrivals.into_iter().flatten().for_each(|at| self.agenda.enter(at, Happening::AtServer(bytes)));
        self.source.handle_sent(ticket, stamp);
        self.drain(now, None);
    }

    fn stamp(&mut self, now: Span) -> Stamp {
        Stamp { counter: self.counter.read(now), width: self.stamp_width, location: self.host.stamp_location() }
    }

    /// Fetches what the source has to send and to say, and plans its next deadline. `arrived` is when the packet that
    /// caused it was on the wire.
    fn drain(&mut self, now: Span, arrived: Option<Span>) {
        while let Some(transmit) = self.source.poll_transmit() {
            self.agenda.enter(now, Happening::Depart(transmit.bytes, transmit.ticket));
        }
        while let Some(event) = self.source.poll_event() {
            self.hear(now, arrived, event);
        }
        self.plan_timeout();
    }

    fn hear(&mut self, now: Span, arrived: Option<Span>, event: SourceEvent) {
        match event {
            SourceEvent::Exchange(exchange) => {
                self.exchanges += 1;
                let sent = self.sent.filter(|sent| sent.0 == exchange.sent.counter).map(|sent| begin() + sent.1);
                let truth = arrived.map(|arrived| Truth { sent, received: begin() + arrived });
                for judged in &mut self.clocks {
                    judged.clock.exchange(&exchange);
                }
                if let Some(witness) = &mut self.witness {
                    let trip = self.scenario.counter.nominal() * (exchange.received.counter - exchange.sent.counter);
                    witness.exchange(&exchange, TrueStamps { sent: now - trip, received: now });
                }
                self.record(TraceRow { exchange: Some(exchange), truth, ..self.empty_row() });
            }
            SourceEvent::Lost => {
                let counter = self.counter.read(now);
                for judged in &mut self.clocks {
                    judged.clock.lost(counter);
                }
                self.record(self.empty_row());
            }
            // As the daemon does: the table holds the announced second from now on.
            SourceEvent::LeapAnnounced(leap) => self.source.set_leaps(LeapTable::with(leap)),
            _ => {}
        }
    }

    fn empty_row(&self) -> TraceRow {
        let epoch = CounterEpoch::from_raw(self.epoch);
        TraceRow { sequence: self.sequence, epoch, exchange: None, truth: None, server: ServerIndex(0) }
    }

    fn record(&mut self, row: TraceRow) {
        self.sequence += 1;
        if let Some(sink) = &mut self.sinks.rows {
            sink(&row);
        }
    }

    fn plan_timeout(&mut self) {
        let at = self.source.poll_timeout().since_origin();
        if self.announced_timeout != Some(at) {
            self.announced_timeout = Some(at);
            self.agenda.enter(at, Happening::Timeout);
        }
    }

    fn plan_reading(&mut self, now: Span) {
        let [shortest, longest] = READING_INTERVAL_S;
        let mean = (self.scenario.poll.seconds() / READINGS_PER_POLL).clamp(shortest, longest);
        // At times of chance, so that the readings do not keep step with the exchanges.
        let interval = mean * (0.5 + self.readings.uniform());
        self.agenda.enter(now + Span::from_seconds(interval), Happening::Reading);
    }

    fn read(&mut self, now: Span) {
        let counter = self.counter.read(now);
        let look = ReadingTime { at: now, truth: begin() + now, counter };
        for judged in &mut self.clocks {
            let read = judged.clock.read(counter);
            if let (Some(sink), Some(read)) = (&mut self.sinks.samples, read) {
                let error = ClockError::new(read.time - look.truth);
                sink(&ShownReading { clock: judged.account.name(), at: now, counter, error, claims: read.claims });
            }
            judged.account.note(look, read);
        }
        if let Some(witness) = &mut self.witness {
            witness.look(look);
        }
        self.plan_reading(now);
    }
}
