//! One configured server: its socket, its conversation and its estimator, and nothing that another server could disturb.

use crate::config::{ServerConfig, StampChoice};
use crate::control::report::SourceReport;
use crate::journal::{Entry, Journal, Weight};
use crate::resolve::{Resolver, literal};
use crate::wording;
use ffclock_estimator::{Classic, Estimator, RateMemory};
use ffclock_source::{Event, Nonce, Reachability, Source, Ticket};
use ffclock_sys::{Mapper, SendId, SocketEvent, StampMode, StampedSocket};
use ffclock_trace::{Recorder, ServerIndex, TraceRow};
use ffclock_units::{
    CounterEpoch, Estimate, Exchange, LeapAnnouncement, LeapTable, Moment, Mono, Period, ServerIdentity, ServerQuality,
    Span, Stamp, Status,
};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A reply of this length is complete; what is longer is seen to be too long.
const BUFFER_BYTES: usize = 1024;

/// What all servers share while something happens.
pub(crate) struct Context {
    /// Turns the kernel's stamps into counter readings.
    pub(crate) mapper: Mapper,
    /// Where to tell what happened.
    pub(crate) journal: Journal,
    /// When it happens.
    pub(crate) now: Moment<Mono>,
}

/// What every server's clock rests on.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    pub(crate) nominal: Period,
    pub(crate) stamps: StampChoice,
    pub(crate) leaps: LeapTable,
    pub(crate) remembered: Option<RateMemory>,
}

/// A request whose stamp has not been told to the source.
struct InFlight {
    id: SendId,
    ticket: Ticket,
    user_stamp: Stamp,
}

struct Link {
    socket: StampedSocket,
    address: SocketAddr,
    in_flight: Option<InFlight>,
}

/// What the last exchange said.
#[derive(Clone, Copy, Default)]
struct LastExchange {
    server: Option<ServerQuality>,
    round_trip: Option<Span>,
}

/// One server.
pub(crate) struct Peer {
    name: String,
    config: ServerConfig,
    ground: Ground,
    source: Source,
    estimator: Classic,
    link: Option<Link>,
    addresses: Vec<SocketAddr>,
    next_look_up: Option<Moment<Mono>>,
    recorder: Option<Recorder>,
    epoch: CounterEpoch,
    last: LastExchange,
    announced: Option<LeapAnnouncement>,
}

/// A name that could not be resolved, or whose addresses do not answer, is looked up again after this time at the earliest.
const LOOK_UP_AGAIN: Span = Span::from_secs(30);

impl Peer {
    /// A server that has no address yet, for stamps of the counter's `epoch`.
    pub(crate) fn new(
        config: ServerConfig,
        ground: Ground,
        recorder: Option<Recorder>,
        (epoch, now): (CounterEpoch, Moment<Mono>),
    ) -> Self {
        let pivot = Moment::from_origin(ffclock_sys::system_utc_now().since_origin());
        let source = Source::new(config.source.clone(), ground.leaps, pivot, now);
        let estimator = Classic::new(config.estimator.clone(), ground.nominal, ground.remembered);
        let name = display_name(&config);
        Peer {
            name,
            config,
            ground,
            source,
            estimator,
            link: None,
            addresses: Vec::new(),
            next_look_up: None,
            recorder,
            epoch,
            last: LastExchange::default(),
            announced: None,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The descriptor to wait for, once there is an address.
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.link.as_ref().map(|link| link.socket.as_fd())
    }

    /// When to call [`Peer::timeout`] next.
    pub(crate) fn next_timeout(&self) -> Option<Moment<Mono>> {
        let request = self.link.as_ref().map(|_| self.source.poll_timeout());
        request.into_iter().chain(self.next_look_up).min()
    }

    /// Time has passed: asks the server if it is time to. Returns whether the estimate changed.
    pub(crate) fn timeout(&mut self, context: &mut Context) -> bool {
        if self.link.is_none() || self.source.poll_timeout() > context.now {
            return false;
        }
        // Replies that came while the daemon was held up count before the request is given up.
        let changed = self.readable(context);
        match ffclock_sys::random_nonce() {
            Ok(bits) => self.source.handle_timeout(context.now, Nonce::from_random(bits)),
            Err(error) => {
                // A request without a secret would let anybody answer it: rather start again later.
                self.link = None;
                self.next_look_up = Some(context.now + LOOK_UP_AGAIN);
                self.tell(context, Weight::Warning, "no random numbers: nothing is asked", &error.to_string());
                return changed;
            }
        }
        self.transmit(context);
        self.take_events(context) || changed
    }

    /// Finds the server's addresses: at once where the name is one, otherwise through the resolver.
    pub(crate) fn look_up(&mut self, resolver: &Resolver, context: &mut Context) {
        let address = &self.config.address;
        if let Some(literal) = literal(address.address.as_str(), address.port) {
            self.next_look_up = None;
            self.resolved(vec![literal], context);
            return;
        }
        self.next_look_up = Some(context.now + LOOK_UP_AGAIN);
        if let Err(error) = resolver.start(&self.name, address.address.as_str(), address.port) {
            self.tell(context, Weight::Warning, "cannot look the name up", &error.to_string());
        }
    }

    /// Whether it is time to call [`Peer::look_up`]: the name has no address yet, or none that answers.
    pub(crate) fn wants_look_up(&mut self, now: Moment<Mono>) -> bool {
        let needed = self.source.take_resolve_wish() || self.link.is_none();
        let due = self.next_look_up.is_none_or(|earliest| now >= earliest);
        if due && !needed {
            self.next_look_up = None;
        }
        due && needed
    }

    /// The socket has something: sent stamps, replies or errors. Returns whether the estimate changed.
    pub(crate) fn readable(&mut self, context: &mut Context) -> bool {
        let mut buffer = [0; BUFFER_BYTES];
        while let Some(link) = &mut self.link {
            match link.socket.next_event(&mut buffer, &mut context.mapper) {
                Ok(Some(SocketEvent::Transmitted(sent))) => {
                    if let Some(request) = link.in_flight.take_if(|request| request.id == sent.id) {
                        self.source.handle_sent(request.ticket, sent.stamp.unwrap_or(request.user_stamp));
                    }
                }
                Ok(Some(SocketEvent::Received(received))) => {
                    self.redeem_with_user_stamp();
                    self.source.handle_packet(&buffer[..received.length], received.best(), context.now);
                }
                Ok(Some(SocketEvent::Unreachable(error))) => {
                    self.tell(context, Weight::Detail, "packets do not arrive", &error.kind.to_string());
                }
                Ok(None) => break,
                Err(error) => {
                    self.tell(context, Weight::Warning, "cannot receive", &error.to_string());
                    break;
                }
            }
        }
        self.take_events(context)
    }

    /// The name now has these addresses; an address in use that is among them stays.
    pub(crate) fn resolved(&mut self, addresses: Vec<SocketAddr>, context: &mut Context) {
        let in_use = self.link.as_ref().map(|link| link.address);
        self.addresses = addresses;
        let answering = self.source.reachability() == Reachability::Reachable;
        if answering && in_use.is_some_and(|address| self.addresses.contains(&address)) {
            return;
        }
        self.connect_next(context);
    }

    /// The estimate in the light of what the source knows: a server that does not answer leaves the clock running free.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let mut estimate = self.estimator.estimate()?;
        if self.source.reachability() != Reachability::Reachable && estimate.status != Status::Unsynchronised {
            estimate.status = Status::FreeRunning;
        }
        Some(estimate)
    }

    /// Who the server follows, as it last said.
    pub(crate) fn server_identity(&self) -> Option<ServerIdentity> {
        self.last.server.map(|server| server.identity)
    }

    /// A leap second that this server announces.
    pub(crate) fn announced(&self) -> Option<LeapAnnouncement> {
        self.announced
    }

    /// The leap seconds to go by from now on.
    pub(crate) fn set_leaps(&mut self, leaps: LeapTable) {
        self.ground.leaps = leaps;
        self.source.set_leaps(leaps);
    }

    /// What is worth remembering of the counter's rate.
    pub(crate) fn memory(&self) -> Option<RateMemory> {
        self.estimator.memory()
    }

    /// The counter began a new epoch: everything that rests on its readings is void.
    pub(crate) fn restart(&mut self, epoch: CounterEpoch, now: Moment<Mono>) {
        self.epoch = epoch;
        self.estimator.restart();
        self.last = LastExchange::default();
        if let Some(link) = &mut self.link {
            link.in_flight = None;
        }
        self.source.retarget(now);
    }

    /// Takes over a changed configuration of the same server. The estimator's options take effect with its next start, so that a
    /// reload never costs what is known.
    pub(crate) fn reconfigure(&mut self, config: ServerConfig) {
        self.source.reconfigure(config.source.clone());
        self.config = config;
    }

    /// Writes out what was recorded.
    pub(crate) fn flush_record(&mut self, context: &mut Context) {
        if let Some(Err(error)) = self.recorder.as_mut().map(Recorder::flush) {
            self.stop_recording(context, &error.to_string());
        }
    }

    fn connect_next(&mut self, context: &mut Context) {
        let in_use = self.link.as_ref().map(|link| link.address);
        let position = in_use.and_then(|address| self.addresses.iter().position(|other| *other == address));
        let Some(&address) = self.addresses.get(position.map_or(0, |at| (at + 1) % self.addresses.len())) else {
            return;
        };
        if in_use == Some(address) {
            return;
        }
        let mode = match self.ground.stamps {
            StampChoice::Kernel => StampMode::Kernel,
            StampChoice::User => StampMode::User,
        };
        match StampedSocket::connect(address, mode) {
            Ok(socket) => {
                self.tell(context, Weight::Notice, "asking", &address.to_string());
                if in_use.is_some() {
                    // Another address is another server until it shows the contrary; the counter's rate stays known.
                    self.estimator.restart();
                }
                self.link = Some(Link { socket, address, in_flight: None });
                self.source.retarget(context.now);
            }
            Err(error) => self.tell(context, Weight::Warning, "cannot use the address", &format!("{address}: {error}")),
        }
    }

    fn transmit(&mut self, context: &mut Context) {
        while let Some(transmit) = self.source.poll_transmit() {
            let Some(link) = &mut self.link else { return };
            match link.socket.send(&transmit.bytes, &mut context.mapper) {
                Ok(sent) => {
                    link.in_flight = Some(InFlight { id: sent.id, ticket: transmit.ticket, user_stamp: sent.user });
                }
                Err(error) => self.tell(context, Weight::Warning, "cannot send", &error.to_string()),
            }
        }
        if self.ground.stamps == StampChoice::User {
            self.redeem_with_user_stamp();
        }
    }

    /// The kernel gave no stamp for the request that is being answered: the one from user space is earlier, so it only lengthens the
    /// round trip, which the estimator takes for queueing.
    fn redeem_with_user_stamp(&mut self) {
        if let Some(request) = self.link.as_mut().and_then(|link| link.in_flight.take()) {
            self.source.handle_sent(request.ticket, request.user_stamp);
        }
    }

    fn take_events(&mut self, context: &mut Context) -> bool {
        let mut changed = false;
        while let Some(event) = self.source.poll_event() {
            match event {
                Event::Exchange(exchange) => changed |= self.take_exchange(&exchange, context),
                Event::Unreachable => {
                    self.tell(context, Weight::Warning, "the server does not answer", "");
                    self.connect_next(context);
                    changed = true;
                }
                Event::Reachable => {
                    self.tell(context, Weight::Notice, "the server answers", "");
                    changed = true;
                }
                Event::Kissed(code) => self.tell(context, Weight::Warning, "the server refuses", &code.to_string()),
                Event::Rejected(reason) => self.tell(context, Weight::Detail, "packet turned away", reason.name()),
                Event::Lost => {
                    self.record(None, context);
                    self.tell(context, Weight::Detail, "no reply", "");
                }
                Event::LeapAnnounced(leap) => self.announced = Some(leap),
                Event::LeapWithdrawn(_) => self.announced = None,
            }
        }
        changed
    }

    /// Every request has its row, the answered ones with their exchange.
    fn record(&mut self, exchange: Option<Exchange>, context: &mut Context) {
        let sequence = self.source.statistics().sent;
        let row = TraceRow { sequence, epoch: self.epoch, exchange, truth: None, server: ServerIndex(0) };
        if let Some(Err(error)) = self.recorder.as_mut().map(|recorder| recorder.append(&row)) {
            self.stop_recording(context, &error.to_string());
        }
    }

    fn take_exchange(&mut self, exchange: &Exchange, context: &mut Context) -> bool {
        self.record(Some(*exchange), context);
        let outcome = self.estimator.update(exchange);
        self.last =
            LastExchange { server: Some(exchange.server), round_trip: outcome.round_trip().or(self.last.round_trip) };
        for text in outcome.events.iter().filter_map(wording::notable) {
            self.tell(context, Weight::Notice, text, "");
        }
        if let Some(text) = wording::unused(outcome.verdict) {
            self.tell(context, Weight::Warning, text, "");
        }
        true
    }

    fn stop_recording(&mut self, context: &mut Context, error: &str) {
        self.recorder = None;
        self.tell(context, Weight::Warning, "recording stopped; what was recorded is kept", error);
    }

    fn tell(&self, context: &mut Context, weight: Weight, kind: &'static str, detail: &str) {
        context.journal.tell(&Entry { weight, source: Some(&self.name), kind, detail });
    }

    fn state_name(&self) -> &'static str {
        match (self.link.is_some(), self.source.reachability()) {
            (false, _) => "resolving",
            (true, Reachability::Untried) => "waiting",
            (true, Reachability::Reachable) => "reachable",
            (true, Reachability::Unreachable) => "unreachable",
            (true, Reachability::Denied) => "refused",
        }
    }

    /// The state for people; what depends on the present moment is left open.
    pub(crate) fn report(&self) -> SourceReport {
        let statistics = self.source.statistics();
        let summary = self.estimator.summary();
        let heard = self.last.server.is_some();
        SourceReport {
            name: self.name.clone(),
            address: self.link.as_ref().map(|link| link.address.to_string()),
            state: self.state_name().to_owned(),
            selected: false,
            poll_s: self.source.poll_interval().as_seconds(),
            stratum: self.last.server.map(|server| server.identity.stratum),
            root_distance_s: self.last.server.map(|server| server.root_distance.as_seconds()),
            sent: statistics.sent,
            exchanges: statistics.accepted,
            used: summary.used,
            lost: statistics.lost,
            rejected: rejections(statistics),
            floor_s: heard.then(|| summary.floor.as_seconds()),
            round_trip_s: self.last.round_trip.map(Span::as_seconds),
            shifts: (summary.shifts_up, summary.shifts_down),
            bound_s: None,
            uncertainty_s: None,
            offset_s: None,
        }
    }
}

fn rejections(statistics: &ffclock_source::Statistics) -> Vec<(String, u64)> {
    let counted = statistics.rejections().filter(|(_, count)| *count > 0);
    counted.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}

/// The name as configured, with the port where it is not the usual one.
fn display_name(config: &ServerConfig) -> String {
    let address = &config.address;
    if address.port == 123 { address.address.to_string() } else { format!("{}:{}", address.address, address.port) }
}
