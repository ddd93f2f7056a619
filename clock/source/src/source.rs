//! The conversation itself: inputs, state, outputs.

use crate::event::EventQueue;
use crate::interleaved::{Answered, Interleaving, LONGEST_POLL};
use crate::leap::{LeapWatch, is_ambiguous};
use crate::reach::Reach;
use crate::reply::{ServerClaim, Unusable, examine, not_in_loop};
use crate::request::{AcceptedReply, Expired, Requests};
use crate::schedule::Schedule;
use crate::statistics::increase;
use crate::{Event, Nonce, PollPlace, Reachability, Rejection, SourceConfig, Statistics, Ticket, Transmit};
use alloc::vec::Vec;
use ffclock_units::{LeapAnnouncement, LeapTable, Moment, Mono, Server, Span, Stamp};
use ffclock_wire::{KissCode, Mode, Packet};

/// The conversation with one NTP server.
///
/// After each call of a `handle_` function, fetch all of [`poll_transmit`](Source::poll_transmit) and
/// [`poll_event`](Source::poll_event), then call [`handle_timeout`](Source::handle_timeout) when
/// [`poll_timeout`](Source::poll_timeout) is reached. All `now` must come from one clock that does not step back.
/// ```
/// use ffclock_source::{Nonce, Source, SourceConfig};
/// use ffclock_units::{LeapTable, Moment, Span};
///
/// let now = Moment::from_origin(Span::from_secs(100));
/// let pivot = Moment::from_origin(Span::from_secs(1_800_000_000));
/// let mut source = Source::new(SourceConfig::default(), LeapTable::built_in(), pivot, now);
/// assert_eq!(source.poll_timeout(), now);
/// source.handle_timeout(now, Nonce::from_random(0x5eed));
/// let request = source.poll_transmit().expect("the first request leaves at once");
/// assert_eq!(request.bytes.len(), 48);
/// assert!(source.poll_timeout() > now);
/// ```
#[derive(Debug)]
pub struct Source {
    config: SourceConfig,
    leaps: LeapTable,
    own_references: Vec<u32>,
    begin: Moment<Mono>,
    pivot_at_begin: Moment<Server>,
    requests: Requests,
    schedule: Schedule,
    reach: Reach,
    leap_watch: LeapWatch,
    interleaving: Interleaving,
    outbox: Option<Transmit>,
    events: EventQueue,
    statistics: Statistics,
}

impl Source {
    /// A conversation that begins at `now`. `pivot` is the server's time at `now`, right within 68 years: it selects
    /// the era of the packets' times. The later of the system clock and the program's build date is good enough.
    pub fn new(config: SourceConfig, leaps: LeapTable, pivot: Moment<Server>, now: Moment<Mono>) -> Self {
        let config = config.within_ranges();
        Source {
            schedule: Schedule::new(&config, now),
            config,
            leaps,
            own_references: Vec::new(),
            begin: now,
            pivot_at_begin: pivot,
            requests: Requests::new(),
            reach: Reach::default(),
            leap_watch: LeapWatch::default(),
            interleaving: Interleaving::default(),
            outbox: None,
            events: EventQueue::new(),
            statistics: Statistics::default(),
        }
    }

    /// Time has passed. `nonce` is used if a request is due; a call too early does nothing. Afterwards
    /// [`poll_timeout`](Source::poll_timeout) is later than `now`.
    pub fn handle_timeout(&mut self, now: Moment<Mono>, nonce: Nonce) {
        self.expire(now);
        if self.poll_timeout() > now {
            return;
        }
        if self.schedule.denied_until().is_some() {
            self.schedule.deny(now);
            self.reach.wish_resolve();
            return;
        }
        let deadline = now + self.config.reply_timeout;
        let reference = if self.may_interleave(nonce) { self.interleaving.name_reply() } else { None };
        self.outbox = Some(self.requests.open(nonce, deadline, (self.config.wire_version(), reference)));
        self.schedule.note_request(now);
        increase(&mut self.statistics.sent);
    }

    /// Whether the next request may be an interleaved one.
    fn may_interleave(&self, nonce: Nonce) -> bool {
        self.config.interleaved && nonce.is_double() && self.poll_interval() <= LONGEST_POLL
    }

    /// The next datagram to send to the server, if one is due.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.outbox.take()
    }

    /// The request of `ticket` left at `sent`. This call may come before or after the reply is handed in, but within
    /// the reply timeout.
    pub fn handle_sent(&mut self, ticket: Ticket, sent: Stamp) {
        self.requests.redeem(ticket, sent);
        self.complete();
    }

    /// A datagram arrived from the server's address at `received`.
    ///
    /// A reply counts until [`handle_timeout`](Source::handle_timeout) has given its request up, so a caller that was
    /// delayed should hand in packets first.
    pub fn handle_packet(&mut self, bytes: &[u8], received: Stamp, now: Moment<Mono>) {
        increase(&mut self.statistics.received);
        if let Err(reason) = self.take_in(bytes, received, now) {
            self.reject(reason);
        }
    }

    /// Counts a packet that was not authentic. Nothing of it is believed, so the open request goes on waiting.
    pub fn refuse_unauthentic(&mut self) {
        increase(&mut self.statistics.received);
        self.reject(Rejection::Unauthentic);
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// The time for the next call of [`handle_timeout`](Source::handle_timeout); it may be in the past.
    pub fn poll_timeout(&self) -> Moment<Mono> {
        let denied = self.schedule.denied_until();
        denied
            .or_else(|| self.requests.deadline())
            .unwrap_or_else(|| self.schedule.next_request(&self.config, &self.reach))
    }

    /// Sets the leap seconds that convert the server's UTC to TAI from now on.
    pub fn set_leaps(&mut self, leaps: LeapTable) {
        self.leaps = leaps;
    }

    /// The leap second that the server announces, until a day after it.
    pub fn announced(&self) -> Option<LeapAnnouncement> {
        self.leap_watch.announced()
    }

    /// Sets the reference identifiers by which servers name this host: one that follows us is no source of time.
    pub fn set_own_references(&mut self, references: Vec<u32>) {
        self.own_references = references;
    }

    /// The server has another address, or is to be tried again after it refused. A new conversation begins, with a
    /// burst. Counts stay, and so does a slowdown that the server asked for; what it announced is forgotten.
    pub fn retarget(&mut self, now: Moment<Mono>) {
        self.requests.clear();
        self.leap_watch = LeapWatch::default();
        self.interleaving = Interleaving::default();
        self.outbox = None;
        self.reach = Reach::default();
        self.schedule.restart(&self.config, now);
    }

    /// Continues with another configuration; a new poll counts from the last request. A changed poll, or range of it,
    /// also lifts a slowdown that the server asked for.
    pub fn reconfigure(&mut self, config: SourceConfig) {
        let config = config.within_ranges();
        let polls = |config: &SourceConfig| [config.poll, config.poll_min, config.poll_max];
        if polls(&config) != polls(&self.config) {
            self.schedule.forget_slowdown();
        }
        self.config = config;
    }

    /// Chooses the time between two requests, from `poll_min` to `poll_max`; it counts from the last request. `None`
    /// returns to the configured `poll`. The chosen one is not followed exactly: one that is longer by less than a
    /// quarter changes nothing, after a failure the next request comes after `poll_min`, and a server that is
    /// unreachable is asked every `poll_max`. A slowdown that the server asked for holds all the same.
    pub fn choose_poll(&mut self, wanted: Option<Span>) {
        self.schedule.choose(wanted, &self.config);
    }

    /// Gives the server its place among those that are asked in turn.
    pub fn set_place(&mut self, place: PollPlace) {
        self.schedule.set_place(place);
    }

    /// Whether the server's name should be resolved again. True once when the server becomes unreachable, once more
    /// each time the same number of further requests has failed, and once for each hour after a refusal of service.
    /// After such a refusal only [`retarget`](Source::retarget) restarts the requests.
    pub fn take_resolve_wish(&mut self) -> bool {
        self.reach.take_resolve_wish()
    }

    /// Whether the server gives usable answers.
    pub fn reachability(&self) -> Reachability {
        self.reach.standing()
    }

    /// The time between two requests outside bursts: as configured or chosen, or longer if the server asked for that.
    pub fn poll_interval(&self) -> Span {
        self.schedule.poll(&self.config, &self.reach)
    }

    /// The shortest time between two requests that the server accepts, if it refused a shorter one.
    pub fn slowed_to(&self) -> Option<Span> {
        self.schedule.slowed_to()
    }

    /// The server is known to refuse a time between two requests that is shorter than this: another conversation with
    /// it learned it. It holds as if the server had said it here, and ends a burst.
    pub fn heed_slowdown(&mut self, shortest: Span) {
        self.schedule.heed_slowdown(shortest);
    }

    /// Whether the server asked for a longer time between two requests.
    pub fn is_slowed(&self) -> bool {
        self.schedule.is_slowed(&self.config, &self.reach)
    }

    /// The configuration in use, every value within its range.
    pub fn config(&self) -> &SourceConfig {
        &self.config
    }

    /// Counts of events.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn take_in(&mut self, bytes: &[u8], received: Stamp, now: Moment<Mono>) -> Result<(), Rejection> {
        let packet = Packet::decode(bytes)?;
        if packet.mode != Mode::Server {
            return Err(Rejection::Mode);
        }
        // This check comes before any content of the packet is believed, a refusal in particular.
        let mode = self.requests.recognise(packet.origin)?;
        let examined = examine((&packet, mode), self.pivot(now), self.config.root_distance_max);
        match examined.and_then(|claim| not_in_loop(claim, &self.own_references)) {
            Ok(claim) => return self.take_in_claim(claim, received),
            Err(Unusable::Kiss(code)) => self.take_in_refusal(code, now),
            Err(Unusable::Rejected(reason)) => {
                self.requests.settle();
                self.release_held();
                self.reject(reason);
                self.note_failure();
            }
        }
        Ok(())
    }

    /// The server's time by our own counting. It does not follow the server's replies: a single wild reply would put
    /// every later reply into the wrong era.
    fn pivot(&self, now: Moment<Mono>) -> Moment<Server> {
        self.pivot_at_begin + (now - self.begin)
    }

    fn take_in_claim(&mut self, claim: ServerClaim, received: Stamp) -> Result<(), Rejection> {
        self.note_success();
        if let Some(news) = self.leap_watch.observe(claim.quality.leap, claim.server_out) {
            self.emit(news);
        }
        if claim.previous_out.is_some() {
            increase(&mut self.statistics.interleaved);
        }
        let previous_out = claim.previous_out.filter(|left| !self.is_near_leap(*left));
        if let Some(earlier) = self.interleaving.note_reply(&claim, previous_out) {
            self.emit_earlier(earlier);
        }
        if self.is_near_leap(claim.server_in) || self.is_near_leap(claim.server_out) {
            self.requests.settle();
            return Err(Rejection::NearLeap);
        }
        self.requests.answer(AcceptedReply { claim, received });
        self.complete();
        Ok(())
    }

    /// While an inserted second repeats a label, an exchange could be off by a whole second without any sign of it.
    fn is_near_leap(&self, time: Moment<Server>) -> bool {
        let leaps = [self.leap_watch.announced(), self.leaps.announced()];
        leaps.into_iter().flatten().any(|leap| is_ambiguous(time, leap))
    }

    fn take_in_refusal(&mut self, code: KissCode, now: Moment<Mono>) {
        self.requests.settle();
        self.release_held();
        increase(&mut self.statistics.kissed);
        self.emit(Event::Kissed(code));
        match code {
            KissCode::DENY | KissCode::RSTR => {
                self.schedule.deny(now);
                if let Some(news) = self.reach.deny() {
                    self.emit(news);
                }
            }
            KissCode::RATE => {
                self.schedule.slow_down(&self.config, &self.reach);
                self.note_failure();
            }
            _ => self.note_failure(),
        }
    }

    /// Makes an exchange of the open request once it has both its stamp and its reply.
    fn complete(&mut self) {
        let Some((sent, reply)) = self.requests.complete() else { return };
        if !reply.received.counter.is_after(sent.counter) {
            self.reject(Rejection::StampsReversed);
            return;
        }
        let answered = Answered { sent, reply };
        if reply.claim.previous_out.is_some() {
            self.interleaving.hold(answered);
        } else {
            increase(&mut self.statistics.accepted);
            self.emit(Event::Exchange(answered.exchange(&self.leaps)));
        }
    }

    /// An exchange that was held is as good as it will get.
    fn release_held(&mut self) {
        if let Some(earlier) = self.interleaving.release() {
            self.emit_earlier(earlier);
        }
    }

    fn emit_earlier(&mut self, earlier: Answered) {
        increase(&mut self.statistics.accepted);
        self.emit(Event::EarlierExchange(earlier.exchange(&self.leaps)));
    }

    fn expire(&mut self, now: Moment<Mono>) {
        match self.requests.expire(now) {
            Some(Expired::Unanswered) => {
                self.release_held();
                increase(&mut self.statistics.lost);
                self.emit(Event::Lost);
                self.note_failure();
            }
            Some(Expired::WithoutStamp) => self.reject(Rejection::StampMissing),
            None => {}
        }
    }

    fn note_success(&mut self) {
        match self.reach.succeed() {
            Reachability::Reachable => return,
            Reachability::Unreachable => self.schedule.begin_burst(self.config.recovery_burst_count),
            Reachability::Untried | Reachability::Denied => {}
        }
        self.emit(Event::Reachable);
    }

    fn note_failure(&mut self) {
        if let Some(news) = self.reach.fail(self.config.unreachable_after) {
            self.emit(news);
        }
    }

    fn reject(&mut self, reason: Rejection) {
        self.statistics.count_rejected(reason);
        self.emit(Event::Rejected(reason));
    }

    fn emit(&mut self, event: Event) {
        if self.events.push(event).is_some() {
            increase(&mut self.statistics.events_dropped);
        }
    }
}
