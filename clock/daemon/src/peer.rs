//! One configured server: its link, its conversation and its estimator, and nothing that another server could disturb.
//!
//! Packets are taken over in two steps, [`Peer::receive`] and [`Peer::digest`], so that in between the keeper can check
//! whether the counter's run was broken while they were stamped.

mod feed;
mod guard;
mod leaps;
mod link;
mod loops;
mod outcome_log;
mod ptp;
mod reference;
mod report;
mod stamping;
mod succession;
mod usefulness;

use crate::calibrator::Calibrator;
use crate::config::{DeviceStamps, ServerConfig, StampChoice};
use crate::establish::{Established, Establisher, EstablishmentOrder};
use crate::journal::{Entry, Weight};
use crate::resolve::{Resolver, literal};
use crate::slowdowns::Slowdowns;
pub(crate) use feed::Counterpart;
use feed::{Feed, Note};
use ffclock_estimator::{Chosen, Ensemble, Estimator, Learned, ProvenInterval, Verdict};
use ffclock_nts::mac::SymmetricKey;
use ffclock_source::{Event, Nonce, PollPlace, Reachability, Source};
use ffclock_sys::{BestStamp, SocketEvent, StampQuality, Stamper};
use ffclock_trace::{Recorder, ServerIndex, TraceRow};
use ffclock_units::{
    Counter, CounterEpoch, Estimate, Exchange, LeapTable, Moment, Mono, Period, RateMemory, Server, ServerIdentity,
    ServerQuality, Span, Stamp, Status, Utc,
};
use guard::{OpenedDatagram, PacketGuard};
use link::{BUFFER_BYTES, Link};
use outcome_log::Reported;
use ptp::Ptp;
use reference::Reference;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use succession::{Basis, Tally};
use usefulness::Fruitless;

/// What all servers share during one turn of the event loop.
pub(crate) struct Context {
    /// The published clock, which gives pulses the numbers of their seconds where no others do.
    pub(crate) published: Option<Estimate>,
    /// The clock of several servers that are no pulses, which gives these their numbers.
    pub(crate) numbers: Option<Estimate>,
    /// The counter's rate, as servers know it that are or were believed.
    pub(crate) rate: Option<RateMemory>,
    /// What servers said of how often they may be asked.
    pub(crate) slowdowns: Slowdowns,
    /// Stamps the packets of all servers.
    pub(crate) stamper: Stamper,
    /// Knows the host's own delays, if they were measured.
    pub(crate) calibrator: Calibrator,
    /// Logs events.
    pub(crate) journal: crate::journal::Journal,
    /// The clock that all servers make together, where there are several.
    pub(crate) ensemble: Option<Ensemble>,
    /// Whether an exchange of this turn showed a change that the clock has yet to learn.
    pub(crate) is_upset: bool,
    /// The time of this turn.
    pub(crate) now: Moment<Mono>,
}

/// The basis of every server's clock.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    pub(crate) nominal: Period,
    pub(crate) epoch: CounterEpoch,
    pub(crate) stamps: StampChoice,
    pub(crate) device_stamps: DeviceStamps,
    pub(crate) leaps: LeapTable,
}

/// How to begin an epoch of the counter.
pub(crate) struct Beginning {
    pub(crate) environment: Environment,
    /// What remains known of the counter's rate.
    pub(crate) remembered: Option<RateMemory>,
    pub(crate) pace: Pace,
}

/// When to ask after a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At once.
    AtOnce,
    /// After a poll interval: a counter that breaks repeatedly must not cause a flood of requests.
    Poll,
}

/// The server's values in the last exchange.
#[derive(Clone, Copy, Default)]
struct LastExchange {
    /// When one was last of use.
    at: Option<Moment<Mono>>,
    server: Option<ServerQuality>,
    round_trip: Option<Span>,
}

/// One server.
pub(crate) struct Peer {
    name: String,
    config: ServerConfig,
    environment: Environment,
    source: Source,
    /// What gives its exchanges, unless it is a server of NTP.
    feed: Option<Box<dyn Feed>>,
    /// What holds by its feed and is not in the log yet.
    unlogged_state: Option<Note>,
    guard: PacketGuard,
    estimator: Chosen,
    basis: Basis,
    tally: Tally,
    link: Option<Link>,
    addresses: Vec<SocketAddr>,
    /// The earliest time for the next look-up.
    next_look_up: Option<Moment<Mono>>,
    /// When the name of a server that answers was last looked up.
    looked_up: Moment<Mono>,
    recorder: Option<Recorder>,
    /// Rows that are not written yet: a slow disk must not delay the clock.
    unwritten: Vec<TraceRow>,
    /// The number of the request that the events belong to.
    request: u64,
    last: LastExchange,
    fruitless: Fruitless,
    reported: Reported,
}

/// A name that could not be resolved, or whose addresses do not answer, is looked up again after this time at the
/// earliest.
const LOOK_UP_AGAIN: Span = Span::from_secs(30);
/// Where no address can be used at all (the network is not there yet), they are tried again after this time.
const CONNECT_AGAIN: Span = Span::from_secs(4);
/// The most packets taken from a socket at once: a flood on it must not keep the daemon from everything else.
const MOST_EVENTS: usize = 64;
/// A system clock that shows an earlier time was never set: this program is not that old (2026-01-01).
pub(crate) const EARLIEST_PRESENT: Moment<Server> = Moment::from_origin(Span::from_secs(1_767_225_600));

impl Peer {
    /// A server that has no address yet.
    pub(crate) fn new(
        config: ServerConfig,
        environment: Environment,
        remembered: Option<RateMemory>,
        now: Moment<Mono>,
    ) -> Self {
        let present: Moment<Server> = Moment::from_origin(ffclock_sys::system_utc_now().since_origin());
        let source = Source::new(config.source.clone(), environment.leaps, present.max(EARLIEST_PRESENT), now);
        Peer {
            name: config.name(),
            source,
            feed: feed::of(&config, &environment, now),
            unlogged_state: None,
            guard: if config.protection.nts { PacketGuard::Nts(Box::default()) } else { PacketGuard::Plain },
            estimator: config.estimator.build(environment.nominal, remembered),
            basis: Basis { options: config.estimator.clone(), counterpart: None },
            config,
            environment,
            tally: Tally::default(),
            link: None,
            addresses: Vec::new(),
            next_look_up: None,
            looked_up: now,
            recorder: None,
            unwritten: Vec::new(),
            request: 0,
            last: LastExchange::default(),
            fruitless: Fruitless::default(),
            reported: Reported::default(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Records from now on; a previous recording ends. Its last rows are to be written first ([`Peer::flush_record`]).
    pub(crate) fn record_into(&mut self, recorder: Option<Recorder>) {
        self.recorder = recorder;
        self.unwritten.clear();
    }

    /// The descriptors to wait for, once there is an address.
    pub(crate) fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2] {
        match &self.feed {
            Some(feed) => feed.descriptors(),
            None => [self.link.as_ref().map(Link::descriptor), None],
        }
    }

    /// The time of the next action even if no packet comes.
    pub(crate) fn next_timeout(&self) -> Option<Moment<Mono>> {
        match &self.feed {
            Some(feed) => Some(feed.next()),
            None if self.link.is_some() => Some(self.source.poll_timeout()),
            // Its pool says when it gets an address.
            None if self.config.pool().is_some() => None,
            None => self.next_look_up,
        }
    }

    /// Whether a request is due, or a reply overdue.
    pub(crate) fn is_due(&self, now: Moment<Mono>) -> bool {
        match &self.feed {
            Some(feed) => feed.next() <= now,
            None => self.link.is_some() && self.source.poll_timeout() <= now,
        }
    }

    /// Takes over what the socket has: sent stamps, replies, errors. Nothing is computed from it before
    /// [`Peer::digest`].
    pub(crate) fn receive(&mut self, context: &mut Context) {
        if let Some(feed) = &mut self.feed {
            return feed.collect(context);
        }
        let mut buffer = [0; BUFFER_BYTES];
        let (mut has_come, mut has_waited) = (false, false);
        for _ in 0..MOST_EVENTS {
            let Some(link) = &mut self.link else { return };
            match link.next_event(&mut buffer, &mut context.stamper) {
                Ok(Some(SocketEvent::Transmitted(sent))) => {
                    let redeemed = link.redeem(&sent);
                    self.pass_to_source(redeemed, context);
                }
                Ok(Some(SocketEvent::Received(received))) => {
                    has_come = true;
                    self.note_shortfall(received.best.shortfall, context);
                    let bytes = buffer.get(..received.length).unwrap_or(&buffer);
                    self.take_packet(bytes, received.best.stamp, context);
                }
                Ok(Some(SocketEvent::Unreachable(error))) => {
                    self.log(context, Weight::Detail, "packets do not arrive", &error.kind.to_string());
                }
                Ok(None) if has_come && !has_waited && link.awaits_hardware() => {
                    has_waited = true;
                    link.wait_for_hardware();
                }
                Ok(None) => {
                    // A stamp comes before the reply. Only an empty queue of stamps shows for certain that there is
                    // none.
                    let redeemed = has_come.then(|| link.redeem_without_the_rest()).flatten();
                    self.pass_to_source(redeemed, context);
                    return;
                }
                Err(error) => {
                    self.log(context, Weight::Warning, "cannot receive", &error.to_string());
                    return;
                }
            }
        }
    }

    /// Hands the protected part of a packet to the source. Its stamp is that of the packet.
    fn take_packet(&mut self, datagram: &[u8], stamp: Stamp, context: &mut Context) {
        match self.guard.open(datagram) {
            OpenedDatagram::Authentic(bytes) => self.source.handle_packet(bytes, stamp, context.now),
            OpenedDatagram::Refused => self.source.refuse_unauthentic(),
            OpenedDatagram::KeysRefused => {
                self.source.refuse_unauthentic();
                self.log(context, Weight::Notice, "the server cannot open our cookie: keys are established again", "");
            }
        }
    }

    /// Whether an address is of use only with keys that belong to it.
    pub(crate) fn is_nts(&self) -> bool {
        self.config.protection.nts
    }

    /// Authenticates packets with a symmetric key from now on, or asks nothing as long as it cannot be used.
    pub(crate) fn use_key(&mut self, key: Result<SymmetricKey, String>, context: &mut Context) {
        self.guard = match key {
            Ok(key) => PacketGuard::Key(key),
            Err(why) => {
                self.log(context, Weight::Warning, "the symmetric key cannot be used: nothing is asked", &why);
                PacketGuard::NoKey
            }
        };
    }

    /// Establishes keys; certificates are judged at `judged_at`, or nothing is done, for this reason.
    pub(crate) fn establish(
        &mut self,
        establisher: &mut Establisher,
        judged_at: Result<Moment<Utc>, &str>,
        context: &mut Context,
    ) {
        let judged_at = match judged_at {
            Ok(judged_at) => judged_at,
            Err(why) => {
                self.next_look_up = Some(context.now + CONNECT_AGAIN);
                return self.log(context, Weight::Warning, "no keys can be established yet", why);
            }
        };
        self.next_look_up = Some(context.now + self.guard.begin_establishment());
        // The establishment looks the name up, too.
        self.looked_up = context.now;
        let silent = self.address().filter(|_| self.is_unreachable());
        let order = EstablishmentOrder::of(&self.name, &self.config, judged_at).beside(silent);
        if let Err(error) = establisher.start(order) {
            self.log(context, Weight::Warning, "cannot establish keys", &error.to_string());
        }
    }

    /// An establishment has ended.
    pub(crate) fn established(&mut self, outcome: Result<Established, String>, context: &mut Context) {
        let established = match outcome {
            Ok(established) => established,
            Err(why) => return self.log(context, Weight::Warning, "no keys could be established", &why),
        };
        let end = established.certificate_end.map(|end| format!(", certificate until {end}")).unwrap_or_default();
        let detail = format!("{} cookies{end}", established.session.cookies());
        self.log(context, Weight::Notice, "keys were established", &detail);
        let address = established.address;
        self.guard.use_keys(established);
        self.resolved(vec![address], context);
    }

    /// Computes with the received packets. Returns whether the estimate changed.
    pub(crate) fn digest(&mut self, number: usize, context: &mut Context) -> bool {
        let mut changed = self.digest_feed(number, context);
        while let Some(event) = self.source.poll_event() {
            changed |= self.take_event(number, &event, context);
        }
        changed
    }

    /// Computes with what a feed gave.
    fn digest_feed(&mut self, number: usize, context: &mut Context) -> bool {
        let Some(feed) = &mut self.feed else { return false };
        let (exchanges, notes) = (feed.take_exchanges(), feed.take_notes());
        let is_numbered = feed.is_numbered();
        let mut changed = !exchanges.is_empty();
        self.log_unlogged_state(context);
        for note in notes {
            changed |= note.weight != Weight::Detail;
            if note.is_state {
                self.unlogged_state = Some(note);
                self.log_unlogged_state(context);
            } else {
                let Note { weight, kind, part, ref detail, .. } = note;
                context.journal.log_part(&Entry { weight, source: Some(&self.name), kind, detail }, part);
            }
        }
        for exchange in &exchanges {
            self.request += 1;
            if is_numbered {
                self.leave_false_numbers(exchange, context);
            }
            self.take_exchange(number, (self.request, exchange), context);
        }
        changed
    }

    /// Logs the state that waits, as soon as it may be logged.
    fn log_unlogged_state(&mut self, context: &mut Context) {
        let Some(note) = self.unlogged_state.take() else { return };
        let entry = Entry { weight: note.weight, source: Some(&self.name), kind: note.kind, detail: &note.detail };
        if !context.journal.log_state(&entry) {
            self.unlogged_state = Some(note);
        }
    }

    /// Sends a request if one is due; gives up one that was not answered. Returns whether the estimate changed.
    pub(crate) fn ask(&mut self, number: usize, context: &mut Context) -> bool {
        if self.feed.is_some() {
            // It was read before this.
            return false;
        }
        match random_pair() {
            Ok([first, second]) => self.source.handle_timeout(context.now, Nonce::from_two_random(first, second)),
            Err(error) => {
                // Any host could answer a request without a secret: try again later instead.
                self.link = None;
                self.next_look_up = Some(context.now + LOOK_UP_AGAIN);
                self.log(context, Weight::Warning, "no random numbers: nothing is asked", &error.to_string());
                return false;
            }
        }
        // The request that was given up is the one before the request that is about to be sent.
        let changed = self.digest(number, context);
        self.request = self.source.statistics().sent;
        self.transmit(context);
        changed
    }

    /// Finds the server's addresses: at once if the name is an address, otherwise through the resolver.
    pub(crate) fn look_up(&mut self, resolver: &mut Resolver, context: &mut Context) {
        let address = &self.config.address;
        if let Some(literal) = literal(address.address.as_str(), address.port) {
            self.resolved(vec![literal], context);
            return;
        }
        self.next_look_up = Some(context.now + LOOK_UP_AGAIN);
        self.looked_up = context.now;
        if let Err(error) = resolver.start(&self.name, address.address.as_str(), address.port) {
            self.log(context, Weight::Warning, "cannot look the name up", &error.to_string());
        }
    }

    /// Whether it is time to call [`Peer::look_up`]: the name has no address yet, or none that answers, or was last
    /// looked up long ago.
    pub(crate) fn wants_look_up(&mut self, now: Moment<Mono>) -> bool {
        // The source expresses this wish once, so it is asked only when the wish can be granted.
        let due = self.next_look_up.is_none_or(|earliest| now >= earliest);
        let is_old = now - self.looked_up >= self.config.look_up.look_up_every && !self.is_literal();
        let is_needed = self.link.is_none() || is_old || self.guard.wants_keys();
        due && (is_needed || self.fruitless.take_look_up_wish() || self.source.take_resolve_wish())
    }

    /// Whether its name is looked up for it alone: not with its pool's, nor when keys are established.
    pub(crate) fn is_found_by_name(&self) -> bool {
        self.config.pool().is_none() && !self.is_nts() && self.feed.is_none()
    }

    /// Whether the server has an address in place of a name.
    fn is_literal(&self) -> bool {
        literal(self.config.address.address.as_str(), self.config.address.port).is_some()
    }

    /// The name now has these addresses; an address in use that is among them stays as long as it answers.
    pub(crate) fn resolved(&mut self, addresses: Vec<SocketAddr>, context: &mut Context) {
        let in_use = self.link.as_ref().map(Link::address);
        let family = self.config.look_up.family;
        self.addresses = addresses.into_iter().filter(|address| family.admits(address)).collect();
        if self.addresses.is_empty() {
            let detail = format!("family = \"{family}\"");
            return self.log(context, Weight::Warning, "the name has no address of the wanted family", &detail);
        }
        if !(self.answers() && in_use.is_some_and(|address| self.addresses.contains(&address))) {
            self.connect_next(context);
        }
    }

    /// The estimate, qualified by the state of the source: a server that does not answer leaves the clock in holdover.
    pub(crate) fn estimate(&self) -> Option<Estimate> {
        let mut estimate = self.estimator.estimate()?;
        if !self.answers() && estimate.status != Status::Unsynchronised {
            estimate.status = Status::Holdover;
        }
        Some(estimate)
    }

    /// Its own learned estimator, if it has one.
    pub(crate) fn learned(&self) -> Option<&Learned> {
        self.estimator.learned()
    }

    /// The interval that its exchanges prove for the true time at `counter`.
    pub(crate) fn proven(&self, counter: Counter) -> Option<ProvenInterval> {
        self.estimator.proven(counter)
    }

    /// The interval that its exchanges claim for the true time at `counter`.
    pub(crate) fn claimed(&self, counter: Counter) -> Option<ProvenInterval> {
        self.estimator.claimed(counter)
    }

    /// The interval that it votes with at `counter`, where `clocks` servers have an estimate.
    pub(crate) fn ballot(&self, counter: Counter, clocks: usize) -> Option<ProvenInterval> {
        self.estimator.ballot(counter, clocks)
    }

    /// The address in use.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.link.as_ref().map(Link::address)
    }

    /// Who is at the other end at present, or was last.
    pub(crate) fn counterpart(&self) -> Option<Counterpart> {
        match &self.feed {
            Some(feed) => feed.counterpart(),
            None => self.address().map(Counterpart::Address),
        }
    }

    /// The port that the last request left from.
    #[cfg(test)]
    pub(crate) fn local_port(&self) -> Option<u16> {
        self.link.as_ref()?.local_port()
    }

    /// Asks it at this poll, or at the configured one.
    pub(crate) fn choose_poll(&mut self, wanted: Option<Span>) {
        self.source.choose_poll(wanted);
    }

    /// The time between two requests.
    pub(crate) fn poll_interval(&self) -> Span {
        self.feed.as_ref().map_or_else(|| self.source.poll_interval(), |feed| feed.poll())
    }

    /// Its place among the servers that are asked in turn.
    pub(crate) fn set_place(&mut self, place: PollPlace) {
        self.source.set_place(place);
    }

    /// Whether it answers, or gives time.
    fn reachability(&self) -> Reachability {
        self.feed.as_ref().map_or_else(|| self.source.reachability(), |feed| feed.standing())
    }

    /// Whether it may still answer: it did not refuse.
    pub(crate) fn may_answer(&self) -> bool {
        self.reachability() != Reachability::Denied
    }

    /// The reference that the server follows, by its last reply.
    pub(crate) fn server_identity(&self) -> Option<ServerIdentity> {
        self.last.server.map(|server| server.identity)
    }

    /// When it last gave an exchange that was of use in this epoch of the counter.
    pub(crate) fn heard_at(&self) -> Option<Moment<Mono>> {
        self.last.at
    }

    /// Whether it has stopped answering, has never begun to, or says nothing that is of use.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.reachability() == Reachability::Unreachable || self.is_fruitless()
    }

    /// Whether it answers at present, and what it says is of use.
    pub(crate) fn answers(&self) -> bool {
        self.reachability() == Reachability::Reachable && !self.is_fruitless()
    }

    /// Whether it has answered in this epoch of the counter.
    pub(crate) fn was_heard(&self) -> bool {
        self.last.server.is_some()
    }

    /// Whether its seconds are numbered by another clock.
    pub(crate) fn is_numbered(&self) -> bool {
        self.feed.as_ref().is_some_and(|feed| feed.is_numbered())
    }

    /// The knowledge of the counter's rate that is worth storing.
    pub(crate) fn memory(&self) -> Option<RateMemory> {
        self.estimator.memory()
    }

    /// The counter began a new epoch: everything that rests on earlier readings is void, except what remains of the
    /// rate. Requests in flight are forgotten, and so are received packets that were not yet digested.
    pub(crate) fn begin_epoch(&mut self, beginning: &Beginning, context: &mut Context) {
        self.environment = beginning.environment.clone();
        self.replace_estimator(self.config.estimator.build(self.environment.nominal, beginning.remembered));
        (self.last, self.fruitless) = (LastExchange::default(), Fruitless::default());
        if let Some(feed) = &mut self.feed {
            feed.begin_epoch(beginning, context.now);
        }
        let pause = match beginning.pace {
            Pace::AtOnce => Span::ZERO,
            Pace::Poll => self.source.poll_interval(),
        };
        self.source.retarget(context.now + pause);
        while self.source.poll_event().is_some() {}
        // After a suspend the host may well have another address. Where there is no route yet, the old socket stays in
        // use.
        if let Some(Ok(link)) = self.link.as_ref().map(|link| Link::open(link.address(), self.environment.stamps)) {
            self.link = Some(link);
        }
        self.calibrate(context);
    }

    /// Takes over a changed configuration of the same server. Other options of the estimator make another estimator,
    /// with the next exchange: the old estimate serves until then, and the new one knows the counter's rate as well.
    pub(crate) fn reconfigure(&mut self, config: ServerConfig, context: &mut Context) {
        let was_slowed = self.source.slowed_to().is_some();
        self.source.reconfigure(config.source.clone());
        if let Some(address) = self.address().filter(|_| was_slowed && self.source.slowed_to().is_none()) {
            context.slowdowns.forget(address);
        }
        if let Some(feed) = &mut self.feed {
            feed.reconfigure(&config);
        }
        self.config = config;
    }

    /// Writes the rows since the last call. It is called as soon as the page holds their estimate, so that a program
    /// that reads the recording meanwhile finds the latest exchange.
    pub(crate) fn write_record(&mut self, context: &mut Context) {
        if !self.unwritten.is_empty() {
            self.flush_record(context);
        }
    }

    /// Writes all rows that are not written yet.
    pub(crate) fn flush_record(&mut self, context: &mut Context) {
        let Some(recorder) = &mut self.recorder else { return };
        let written = self.unwritten.drain(..).try_for_each(|row| recorder.append(&row));
        if let Err(error) = written.and_then(|()| recorder.flush()) {
            self.stop_recording(context, &error.to_string());
        }
    }

    /// Opens a link to the next usable address. The one in use comes last, and its link is opened again as well: the
    /// host may have another address by now, and a connected socket keeps the address that it began with.
    fn connect_next(&mut self, context: &mut Context) {
        let in_use = self.link.as_ref().map(Link::address);
        let position = self.addresses.iter().position(|address| Some(*address) == in_use);
        let mut in_turn = self.addresses.clone();
        in_turn.rotate_left(position.map_or(0, |position| position + 1));
        for address in in_turn {
            match Link::open(address, self.environment.stamps) {
                Ok(link) => return self.use_link(link, context),
                Err(error) => {
                    self.log(context, Weight::Warning, "cannot use the address", &format!("{address}: {error}"))
                }
            }
        }
        self.next_look_up = self.next_look_up.max(Some(context.now + CONNECT_AGAIN));
    }

    fn use_link(&mut self, link: Link, context: &mut Context) {
        let address = link.address();
        if link.quality() == StampQuality::Refused {
            self.log(context, Weight::Warning, "the kernel refuses to stamp packets: user space stamps them", "");
        }
        let before = self.link.replace(link).map(|link| link.address());
        self.calibrate(context);
        if before != Some(address) {
            self.fruitless = self.fruitless.at_another_address();
            self.log(context, Weight::Notice, "asking", &address.to_string());
            self.source.retarget(context.now);
            self.heed_slowdowns(context);
        }
    }

    /// What the server says of how often it may be asked concerns everyone who asks at its address.
    fn pass_slowdown_on(&self, context: &mut Context) {
        if let (Some(address), Some(shortest)) = (self.address(), self.source.slowed_to()) {
            context.slowdowns.note(address, self.guard.proof(), shortest);
        }
    }

    /// Asks no more often than the server at this address accepts, whichever conversation was refused.
    pub(crate) fn heed_slowdowns(&mut self, context: &Context) {
        if let Some(shortest) = self.address().and_then(|address| context.slowdowns.of(address, self.guard.proof())) {
            self.source.heed_slowdown(shortest);
        }
    }

    fn transmit(&mut self, context: &mut Context) {
        while let Some(transmit) = self.source.poll_transmit() {
            let Some(link) = &mut self.link else { return };
            if self.config.look_up.random_port
                && let Err(error) = link.change_port()
            {
                self.log(context, Weight::Warning, "cannot ask from another port", &error.to_string());
            }
            let Some(link) = &mut self.link else { return };
            let datagram = match self.guard.protect(&transmit.bytes, link.address()) {
                Ok(Some(datagram)) => datagram,
                Ok(None) => {
                    self.log(context, Weight::Detail, "nothing is asked without keys", "");
                    continue;
                }
                Err(error) => {
                    self.log(context, Weight::Warning, "no random numbers: nothing is asked", &error.to_string());
                    continue;
                }
            };
            match link.send((&datagram, transmit.ticket), &mut context.stamper) {
                Ok(redeemed) => self.pass_to_source(redeemed, context),
                Err(error) => self.log(context, Weight::Warning, "cannot send", &error.to_string()),
            }
        }
    }

    fn pass_to_source(&mut self, redeemed: Option<(ffclock_source::Ticket, BestStamp)>, context: &mut Context) {
        if let Some((ticket, best)) = redeemed {
            self.note_shortfall(best.shortfall, context);
            self.source.handle_sent(ticket, best.stamp);
        }
    }

    fn take_event(&mut self, number: usize, event: &Event, context: &mut Context) -> bool {
        let was_fruitless = self.is_fruitless();
        self.note_event(event, context);
        match event {
            Event::Exchange(exchange) => self.take_exchange(number, (self.request, exchange), context),
            Event::EarlierExchange(exchange) => {
                self.take_exchange(number, (self.request.saturating_sub(1), exchange), context);
            }
            Event::Unreachable => {
                self.log(context, Weight::Warning, "the server does not answer", "");
                self.connect_next(context);
            }
            Event::Reachable => self.log(context, Weight::Notice, "the server answers", ""),
            Event::Kissed(code) => {
                self.record(self.request, None);
                self.log(context, Weight::Warning, "the server refuses", &code.to_string());
                if *code == ffclock_wire::KissCode::RATE {
                    self.pass_slowdown_on(context);
                }
            }
            Event::Rejected(reason) => {
                if reason.ends_request() {
                    self.record(self.request, None);
                }
                self.log_rejection(*reason, context);
            }
            Event::Lost => {
                self.record(self.request, None);
                self.guard.note_lost();
                self.log(context, Weight::Detail, "no reply", "");
            }
            // What holds is asked for ([`Peer::leap_vote`]).
            Event::LeapAnnounced(_) | Event::LeapWithdrawn(_) => {}
        }
        let is_exchange = matches!(event, Event::Exchange(_) | Event::EarlierExchange(_));
        let is_news = self.is_fruitless() != was_fruitless;
        is_exchange || is_news || matches!(event, Event::Unreachable | Event::Reachable)
    }

    /// Every request that ended has a row, a well answered one with its exchange; [`Peer::write_record`] writes it.
    fn record(&mut self, sequence: u64, exchange: Option<Exchange>) {
        if self.recorder.is_some() {
            let epoch = self.environment.epoch;
            self.unwritten.push(TraceRow { sequence, epoch, exchange, truth: None, server: ServerIndex(0) });
        }
    }

    fn take_exchange(&mut self, number: usize, (request, exchange): (u64, &Exchange), context: &mut Context) {
        self.record(request, Some(*exchange));
        let outcome = self.update(exchange, context);
        let mut is_upset = outcome.events.is_upset();
        if let (Some(ensemble), Some(own)) = (&mut context.ensemble, self.learned()) {
            is_upset |= ensemble.update(number, exchange, own).events.is_upset();
        }
        // One that is of no use, such as a server with another reference each time, hurries the others no more.
        context.is_upset |= is_upset && !self.is_fruitless();
        self.note_verdict(outcome.verdict, context);
        if matches!(outcome.verdict, Verdict::Used | Verdict::Contradiction) {
            self.last.at = Some(context.now);
        }
        if !matches!(outcome.verdict, Verdict::Rejected(_)) {
            self.last.server = Some(exchange.server);
        }
        self.last.round_trip = outcome.round_trip().or(self.last.round_trip);
        self.note_stamps(exchange, context);
        self.log_outcome(&outcome, context);
    }

    fn stop_recording(&mut self, context: &mut Context, error: &str) {
        self.recorder = None;
        self.log(context, Weight::Warning, "recording stopped; what was recorded is kept", error);
    }

    fn log(&self, context: &mut Context, weight: Weight, kind: &'static str, detail: &str) {
        context.journal.log(&Entry { weight, source: Some(&self.name), kind, detail });
    }
}

/// The secrets of one request.
fn random_pair() -> std::io::Result<[u64; 2]> {
    Ok([ffclock_sys::random_nonce()?, ffclock_sys::random_nonce()?])
}
