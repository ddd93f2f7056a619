//! A world: one host, one server or several, each with its path, in virtual time, with the clocks that are judged.
//!
//! Time goes on from event to event, and every part is looked at in the order of time. Each conversation is held by the
//! real [`Source`], with the calls that the daemon makes: after each input its outputs are drained, and it is called
//! again at the deadline it names.

mod governor;
mod server_link;

use crate::account::{ClockAccount, ReadingTime};
use crate::agenda::Agenda;
use crate::belief::BeliefAccount;
use crate::clock::{self, Maker, Read, ReadingClaims};
use crate::counter::SimulatedCounter;
use crate::host::SimulatedHost;
use crate::oracle::{self, ORACLES, OracleWitness, TimeOrigin, TrueStamps};
use crate::oscillator::Oscillator;
use crate::path::Path;
use crate::random::Random;
use crate::result::{ClockResult, RunResult, ServerResult};
use crate::scenario::{Asleep, Length, Scenario, SuspendSpec};
use crate::several::{Contact, Contender, ServerChange};
use crate::signals::SignalWorld;
use ffclock_estimator::LearnedConfig;
use ffclock_source::{Event as SourceEvent, Nonce, Source, Ticket};
use ffclock_trace::{ServerIndex, TraceHeader, TraceRow, Truth};
use ffclock_units::{
    ClockError, Counter, CounterEpoch, Direction, Exchange, LeapTable, Moment, Mono, Span, Stamp, Tai, Ticks,
};
use governor::PollGovernor;
use server_link::ServerLink;

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

impl<'a> ShownReading<'a> {
    /// What the clock of this name showed then.
    pub(crate) fn of(clock: &'a str, look: ReadingTime, read: Read) -> Self {
        let error = ClockError::new(read.time - look.truth);
        ShownReading { clock, at: look.at, counter: look.counter, error, claims: read.claims }
    }

    /// The true time then.
    pub fn truth(&self) -> Moment<Tai> {
        begin() + self.at
    }
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
    /// Some of the clocks of [`clocks_in`](crate::clocks_in), and in a world of one server oracles of [`ORACLES`].
    pub clocks: &'a [&'a str],
    /// The options of the learned estimator, to measure what its parts are worth.
    pub learned: &'a LearnedConfig,
}

/// What happens.
enum Happening {
    /// With the server of this number, or with a packet to or from it.
    With(usize, Errand),
    /// The clocks are read.
    Reading,
    /// The host wakes.
    Wake(Asleep),
}

enum Errand {
    /// It is configured.
    Join,
    /// It is not asked any more.
    Leave,
    /// The source named this time.
    Timeout,
    /// The host stamps a request.
    Depart(Bytes, Ticket),
    AtServer(Bytes),
    AtHost(Bytes),
    /// The host stamps a reply that arrived at this time.
    Stamped(Bytes, Span),
}

/// What is left when a world has ended.
pub(crate) struct RunOutcome {
    pub(crate) clocks: Vec<ClockResult>,
    pub(crate) servers: Vec<ServerResult>,
    pub(crate) requests: u64,
    pub(crate) exchanges: u64,
    /// Forward minimum delay minus backward minimum delay.
    pub(crate) asymmetry: Span,
}

/// When an event of a source came, and when the packet that caused it was on the wire.
#[derive(Clone, Copy)]
struct Landing {
    now: Span,
    arrived: Option<Span>,
}

/// A clock with its accounts.
struct AccountedClock {
    clock: Box<dyn Contender>,
    account: ClockAccount,
    beliefs: BeliefAccount,
}

struct World<'a, 'b> {
    scenario: &'a Scenario,
    agenda: Agenda<Happening>,
    counter: SimulatedCounter,
    stamp_width: Ticks,
    host: SimulatedHost,
    links: Vec<ServerLink>,
    /// Parts of ways that several servers share.
    shared: Vec<Path>,
    nonces: Random,
    readings: Random,
    clocks: Vec<AccountedClock>,
    /// What chooses the polls, where they are not fixed.
    governor: Option<PollGovernor>,
    epoch: u64,
    sequence: u64,
    sinks: Sinks<'b>,
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
        self.execute_with(&clock::names_in(self.scenario), sink)
    }

    /// The same with some of the clocks of [`CLOCKS`](crate::CLOCKS) and some of the oracles of [`ORACLES`], which come
    /// last and cost many times what the clocks do.
    pub fn execute_with<'b>(&'b self, clocks: &[&str], sink: Option<RowSink<'b>>) -> RunResult {
        let cast = Cast { clocks, learned: &LearnedConfig::default() };
        self.execute_as(&cast, Sinks { rows: sink, samples: None })
    }

    /// The same with this cast, and with every reading handed out, too.
    pub fn execute_as<'b>(&'b self, cast: &Cast<'_>, sinks: Sinks<'b>) -> RunResult {
        let scenario = self.scenario.drawn(self.seed);
        let outcome = match SignalWorld::of(&scenario, self.seed, cast) {
            Some(world) => world.live(sinks),
            None => self.converse(&scenario, cast, sinks),
        };
        let RunOutcome { clocks, servers, requests, exchanges, asymmetry } = outcome;
        let checks: Vec<_> = crate::check::all(self.scenario).flatten().map(|check| check.judge(&clocks)).collect();
        RunResult {
            scenario: self.name.to_owned(),
            tags: self.scenario.tags.clone(),
            seed: self.seed,
            without: cast.learned.left_out().into_iter().map(str::to_owned).collect(),
            duration_s: scenario.duration.seconds(),
            asymmetry_s: asymmetry.as_seconds(),
            servers,
            requests,
            exchanges,
            passed: checks.iter().all(|check| check.passed),
            oracle_ratios: oracle::ratios(&clocks),
            clocks,
            past: None,
            checks,
        }
    }

    /// A world in which servers are asked.
    fn converse(&self, scenario: &Scenario, cast: &Cast<'_>, sinks: Sinks<'_>) -> RunOutcome {
        let Cast { clocks, learned } = *cast;
        let mut world = World::new(scenario, self.seed, sinks);
        let oracles: Vec<&str> = ORACLES.into_iter().filter(|name| clocks.contains(name)).collect();
        if !oracles.is_empty() && scenario.servers.is_empty() {
            let origin = TimeOrigin { counter: SimulatedCounter::BEGIN, time: begin() };
            world.witness = Some(OracleWitness::new(scenario, origin));
        }
        let maker = Maker { scenario, learned };
        world.clocks = clocks.iter().filter_map(|name| world.judged(name, &maker)).collect();
        world.live();
        let (servers, asymmetry) = (world.server_results(), world.whole_asymmetry());
        let (requests, exchanges) = world.traffic();
        let mut clocks: Vec<ClockResult> = world.clocks.into_iter().map(AccountedClock::result).collect();
        clocks.extend(world.witness.map(|witness| witness.judge(&oracles, self.seed)).unwrap_or_default());
        RunOutcome { clocks, servers, requests, exchanges, asymmetry }
    }

    /// What a trace of this run says about itself.
    pub fn trace_header(&self) -> TraceHeader {
        let kind = self.scenario.counter;
        let mut metadata =
            vec![("scenario".to_owned(), self.name.to_owned()), ("seed".to_owned(), self.seed.to_string())];
        let servers = self.scenario.servers.iter().map(|entry| entry.name.clone());
        let servers = servers.chain(self.scenario.servers.is_empty().then(|| "simulated".to_owned()));
        metadata.extend(servers.enumerate().map(|(index, name)| (format!("server.{index}"), name)));
        TraceHeader {
            counter: Some(kind.name().to_owned()),
            nominal: Some(kind.nominal()),
            remembered: None,
            created: Some(LeapTable::built_in().utc_from_tai(begin())),
            truth: true,
            metadata,
        }
    }
}

/// The true time at which every world begins.
pub(crate) fn begin() -> Moment<Tai> {
    Moment::from_origin(Span::from_secs(BEGIN_TAI_S))
}

/// How long until the clocks are read again: at times of chance, so that the readings do not keep step with what the
/// clocks hear.
pub(crate) fn reading_interval(scenario: &Scenario, readings: &mut Random) -> Span {
    let [shortest, longest] = READING_INTERVAL_S;
    let usual = || (scenario.poll.seconds() / READINGS_PER_POLL).clamp(shortest, longest);
    let mean = scenario.reading.map_or_else(usual, Length::seconds);
    Span::from_seconds(mean * (0.5 + readings.uniform()))
}

fn mono(now: Span) -> Moment<Mono> {
    Moment::from_origin(now)
}

impl AccountedClock {
    /// The server's side of it happened at `now`.
    fn hear(&mut self, (server, contact): (usize, Contact), now: Span) {
        self.clock.hear(server, contact);
        self.note_step(now);
    }

    fn note_step(&mut self, now: Span) {
        if let Some(step) = self.clock.take_step() {
            self.beliefs.note_step(step, now);
        }
    }

    fn result(self) -> ClockResult {
        let restarts = self.clock.restarts();
        ClockResult { beliefs: self.beliefs.result(), restarts, ..self.account.result() }
    }
}

impl<'a, 'b> World<'a, 'b> {
    fn new(scenario: &'a Scenario, seed: u64, sinks: Sinks<'b>) -> Self {
        let kind = scenario.counter;
        let latency = kind.nominal().ticks_in(Span::from_seconds(kind.read_latency()));
        let shared = scenario.shared.iter().enumerate();
        World {
            agenda: Agenda::new(),
            counter: SimulatedCounter::new(kind, Oscillator::new(&scenario.oscillator, seed)),
            stamp_width: latency + Ticks::from_raw(2),
            host: SimulatedHost::new(&scenario.host, kind.read_latency(), seed),
            links: ServerLink::all(scenario, seed),
            shared: shared.map(|(index, spec)| Path::new(&spec.path(), (seed, &format!("shared.{index}")))).collect(),
            nonces: Random::named(seed, "nonces"),
            readings: Random::named(seed, "readings"),
            clocks: Vec::new(),
            governor: PollGovernor::of(scenario),
            epoch: 0,
            sequence: 0,
            witness: None,
            scenario,
            sinks,
        }
    }

    fn judged(&self, name: &str, maker: &Maker) -> Option<AccountedClock> {
        // A clock of several servers has no bias that none could see.
        let alone = self.links.iter().position(|link| link.name == name);
        let bias = alone.map_or(self.whole_asymmetry(), |server| self.asymmetry(server));
        let account = ClockAccount::new(name, self.scenario, bias);
        let beliefs = BeliefAccount::new(self.scenario);
        Some(AccountedClock { clock: maker.make(name)?, account, beliefs })
    }

    /// Forward minimum delay minus backward minimum delay of a server's way, the host's part included.
    fn asymmetry(&self, server: usize) -> Span {
        self.links.get(server).map_or(Span::ZERO, ServerLink::asymmetry) + self.host.asymmetry()
    }

    /// That of the only server; of several there is none.
    fn whole_asymmetry(&self) -> Span {
        if self.scenario.servers.is_empty() { self.asymmetry(0) } else { Span::ZERO }
    }

    /// Requests and exchanges of all servers.
    fn traffic(&self) -> (u64, u64) {
        let sum = |of: fn(&ServerLink) -> u64| self.links.iter().map(of).sum();
        (sum(ServerLink::requests), sum(|link| link.exchanges))
    }

    /// Of several servers, each; of the only one nothing that the whole does not say.
    fn server_results(&self) -> Vec<ServerResult> {
        let links = self.links.iter().enumerate().take_while(|_| !self.scenario.servers.is_empty());
        let result = |(index, link): (usize, &ServerLink)| ServerResult {
            name: link.name.clone(),
            requests: link.requests(),
            exchanges: link.exchanges,
            asymmetry_s: self.asymmetry(index).as_seconds(),
        };
        links.map(result).collect()
    }

    fn live(&mut self) {
        for server in 0..self.links.len() {
            self.enter_server(server);
        }
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

    /// What is planned for a server at the beginning.
    fn enter_server(&mut self, server: usize) {
        let Some(link) = self.links.get(server) else { return };
        if let Some(leaves) = link.leaves {
            self.agenda.enter(leaves, Happening::With(server, Errand::Leave));
        }
        if link.joins > Span::ZERO {
            self.agenda.enter(link.joins, Happening::With(server, Errand::Join));
        } else {
            self.join(server, Span::ZERO);
        }
    }

    fn join(&mut self, server: usize, now: Span) {
        if let Some(link) = self.links.get_mut(server) {
            link.begin(now);
        }
        self.notify_change(server, ServerChange::Joined, now);
        self.plan_timeout(server);
    }

    fn leave(&mut self, server: usize, now: Span) {
        if let Some(link) = self.links.get_mut(server) {
            link.end();
        }
        self.notify_change(server, ServerChange::Left, now);
    }

    fn notify(&mut self, server: usize, contact: Contact, now: Span) {
        self.clocks.iter_mut().for_each(|judged| judged.hear((server, contact), now));
    }

    /// Of the only server everything is known by its exchanges.
    fn notify_change(&mut self, server: usize, change: ServerChange, now: Span) {
        if !self.scenario.servers.is_empty() {
            let counter = self.counter.read(now);
            self.notify(server, Contact::Change(change, counter), now);
        }
        if let Some(governor) = &mut self.governor {
            governor.note(server, change, self.counter.read(now));
            self.choose_polls();
        }
    }

    fn choose_polls(&mut self) {
        let polls = self.governor.as_ref().map(PollGovernor::polls).unwrap_or_default();
        for (server, poll) in polls.into_iter().enumerate() {
            if let Some(link) = self.links.get_mut(server) {
                link.choose_poll(poll);
            }
            self.plan_timeout(server);
        }
    }

    fn asleep_until(&self, now: Span) -> Option<Span> {
        let within = |suspend: &&SuspendSpec| (suspend.at.0..suspend.until.0).contains(&now);
        self.scenario.host.suspend.iter().find(within).map(|suspend| suspend.until.0)
    }

    /// What concerns the host does not happen; what waits for the time waits on.
    fn sleep_through(&mut self, wake: Span, now: Span, happening: Happening) {
        match happening {
            Happening::With(_, Errand::AtServer(_)) | Happening::Wake(_) => self.happen(now, happening),
            Happening::Reading => self.plan_reading(wake),
            Happening::With(_, Errand::Join | Errand::Leave) => self.agenda.enter(wake, happening),
            Happening::With(..) => {}
        }
    }

    /// As the daemon does when it sees that the host was suspended: a new epoch, new conversations with their bursts.
    fn wake(&mut self, now: Span, asleep: Asleep) {
        self.counter.wake(now, asleep);
        self.epoch += 1;
        for judged in &mut self.clocks {
            judged.clock.broke();
            judged.account.broke();
        }
        if let Some(witness) = &mut self.witness {
            witness.counter_broke();
        }
        if let Some(governor) = &mut self.governor {
            governor.broke();
        }
        for server in 0..self.links.len() {
            if let Some(link) = self.links.get_mut(server).filter(|link| link.source.is_some()) {
                link.begin(now);
                self.plan_timeout(server);
            }
        }
        self.choose_polls();
    }

    fn happen(&mut self, now: Span, happening: Happening) {
        match happening {
            Happening::With(server, errand) => self.run_errand(server, errand, now),
            Happening::Reading => self.read(now),
            Happening::Wake(asleep) => self.wake(now, asleep),
        }
    }

    fn run_errand(&mut self, server: usize, errand: Errand, now: Span) {
        match errand {
            Errand::Join => self.join(server, now),
            Errand::Leave => self.leave(server, now),
            Errand::Timeout => self.timeout(server, now),
            Errand::Depart(bytes, ticket) => self.depart(server, (bytes, ticket), now),
            Errand::AtServer(bytes) => self.at_server(server, &bytes, now),
            Errand::AtHost(bytes) => {
                let stamped = now + self.host.delay(Direction::Incoming, now);
                self.agenda.enter(stamped, Happening::With(server, Errand::Stamped(bytes, now)));
            }
            Errand::Stamped(bytes, arrived) => {
                let stamp = self.stamp(now);
                if let Some(source) = self.links.get_mut(server).and_then(|link| link.source.as_mut()) {
                    source.handle_packet(&bytes, stamp, mono(now));
                }
                self.drain(server, now, Some(arrived));
            }
        }
    }

    fn at_server(&mut self, server: usize, request: &Bytes, now: Span) {
        let Some(link) = self.links.get_mut(server) else { return };
        if let Some(reply) = link.server.answer(request, now) {
            let arrivals = link.travel(&mut self.shared, Direction::Incoming, reply.leaves);
            let arrive = |at| self.agenda.enter(at, Happening::With(server, Errand::AtHost(reply.bytes)));
            arrivals.into_iter().flatten().for_each(arrive);
        }
    }

    fn timeout(&mut self, server: usize, now: Span) {
        let Some(link) = self.links.get_mut(server) else { return };
        // A deadline that was moved since.
        if link.announced_timeout != Some(now) {
            return;
        }
        link.announced_timeout = None;
        if let Some(source) = link.source.as_mut().filter(|source| source.poll_timeout() <= mono(now)) {
            let nonce = Nonce::from_random(self.nonces.bits());
            source.handle_timeout(mono(now), nonce);
        }
        self.drain(server, now, None);
    }

    fn depart(&mut self, server: usize, (bytes, ticket): (Bytes, Ticket), now: Span) {
        let stamp = self.stamp(now);
        let leaves = now + self.host.delay(Direction::Outgoing, now);
        let Some(link) = self.links.get_mut(server) else { return };
        link.sent = Some((stamp.counter, leaves));
        let arrivals = link.travel(&mut self.shared, Direction::Outgoing, leaves);
        if let Some(source) = &mut link.source {
            source.handle_sent(ticket, stamp);
        }
        self.notify(server, Contact::Sent(stamp.counter), now);
        let arrive = |at| self.agenda.enter(at, Happening::With(server, Errand::AtServer(bytes)));
        arrivals.into_iter().flatten().for_each(arrive);
        self.drain(server, now, None);
    }

    fn stamp(&mut self, now: Span) -> Stamp {
        Stamp { counter: self.counter.read(now), width: self.stamp_width, location: self.host.stamp_location() }
    }

    /// Fetches what the source has to send and to say, and plans its next deadline. `arrived` is when the packet that
    /// caused it was on the wire.
    fn drain(&mut self, server: usize, now: Span, arrived: Option<Span>) {
        while let Some(transmit) = self.source(server).and_then(Source::poll_transmit) {
            let depart = Errand::Depart(transmit.bytes, transmit.ticket);
            self.agenda.enter(now, Happening::With(server, depart));
        }
        while let Some(event) = self.source(server).and_then(Source::poll_event) {
            self.hear(server, event, Landing { now, arrived });
        }
        self.plan_timeout(server);
    }

    fn source(&mut self, server: usize) -> Option<&mut Source> {
        self.links.get_mut(server)?.source.as_mut()
    }

    fn hear(&mut self, server: usize, event: SourceEvent, landing: Landing) {
        let now = landing.now;
        match event {
            SourceEvent::Exchange(exchange) => self.complete(server, exchange, landing),
            SourceEvent::Lost => {
                let counter = self.counter.read(now);
                self.notify(server, Contact::Lost(counter), now);
                self.record(self.empty_row(server));
            }
            // As the daemon does: the table holds the announced second from now on.
            SourceEvent::LeapAnnounced(leap) => {
                if let Some(source) = self.source(server) {
                    source.set_leaps(LeapTable::with(leap));
                }
            }
            SourceEvent::Reachable => self.notify_change(server, ServerChange::Reachable, now),
            SourceEvent::Unreachable => self.notify_change(server, ServerChange::Unreachable, now),
            _ => {}
        }
    }

    fn complete(&mut self, server: usize, exchange: Exchange, Landing { now, arrived }: Landing) {
        let Some(link) = self.links.get_mut(server) else { return };
        link.exchanges += 1;
        let sent = link.sent.filter(|sent| sent.0 == exchange.sent.counter).map(|sent| begin() + sent.1);
        let truth = arrived.map(|arrived| Truth { sent, received: begin() + arrived });
        self.notify(server, Contact::Exchange(&exchange), now);
        if let Some(governor) = &mut self.governor {
            governor.take(server, &exchange);
            self.choose_polls();
        }
        if let Some(witness) = &mut self.witness {
            let trip = self.scenario.counter.nominal() * (exchange.received.counter - exchange.sent.counter);
            witness.exchange(&exchange, TrueStamps { sent: now - trip, received: now });
        }
        self.record(TraceRow { exchange: Some(exchange), truth, ..self.empty_row(server) });
    }

    fn empty_row(&self, server: usize) -> TraceRow {
        let epoch = CounterEpoch::from_raw(self.epoch);
        let server = ServerIndex(server as u32);
        TraceRow { sequence: self.sequence, epoch, exchange: None, truth: None, server }
    }

    fn record(&mut self, row: TraceRow) {
        self.sequence += 1;
        if let Some(sink) = &mut self.sinks.rows {
            sink(&row);
        }
    }

    fn plan_timeout(&mut self, server: usize) {
        let Some(link) = self.links.get_mut(server) else { return };
        let Some(at) = link.source.as_ref().map(|source| source.poll_timeout().since_origin()) else { return };
        if link.announced_timeout != Some(at) {
            link.announced_timeout = Some(at);
            self.agenda.enter(at, Happening::With(server, Errand::Timeout));
        }
    }

    fn plan_reading(&mut self, now: Span) {
        let interval = reading_interval(self.scenario, &mut self.readings);
        self.agenda.enter(now + interval, Happening::Reading);
    }

    fn read(&mut self, now: Span) {
        let counter = self.counter.read(now);
        let look = ReadingTime { at: now, truth: begin() + now, counter };
        for judged in &mut self.clocks {
            let read = judged.clock.read(counter);
            if let (Some(sink), Some(read)) = (&mut self.sinks.samples, read) {
                sink(&ShownReading::of(judged.account.name(), look, read));
            }
            judged.account.note(look, read);
            judged.note_step(now);
            let is_outside = read.is_some_and(|read| read.is_outside(look.truth));
            judged.beliefs.note((now, is_outside), |server| judged.clock.credence(server));
        }
        if let Some(witness) = &mut self.witness {
            witness.look(look);
        }
        self.plan_reading(now);
    }
}
