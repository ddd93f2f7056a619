//! A clock that follows: inputs, state, outputs.

mod messages;

use crate::cadence::{Cadence, interval_of, times};
use crate::event::{PtpEvents, increase};
use crate::foreign::ForeignMasters;
use crate::link::{LinkRequests, LinkResponder};
use crate::negotiation::Negotiation;
use crate::requests::{DelayRequests, Due};
use crate::syncs::SyncMatcher;
use crate::tlv::{UnicastService, UnicastWord};
use crate::transmit::{Outbox, TicketKind};
use crate::{
    Audience, DelayMechanism, Delivery, FollowerConfig, Master, NetworkAddress, Passage, PortIdentity, PtpBody,
    PtpEvent, PtpMessage, PtpRejection, PtpStatistics, PtpTicket, PtpTimestamp, PtpTransmit,
};
use ffclock_units::{LeapTable, Moment, Mono, ServerQuality, Span, Stamp};

/// A master whose time cannot be right, or that gives none while there is another one, is passed over for so long.
const PASSED_OVER: Span = Span::from_secs(60);
/// It is waited for so long, and for this number of its intervals: those of its Syncs, and those of our requests to it.
const FRUITLESS: Span = Span::from_secs(16);
const FRUITLESS_INTERVALS: i64 = 8;

/// An ordinary clock that follows the best master of its domain (IEEE 1588-2019, 9.2, without the states of a master)
/// and measures; it never sets a clock.
///
/// After each call of a `handle_` function, fetch all of [`poll_transmit`](Follower::poll_transmit) and
/// [`poll_event`](Follower::poll_event), then call [`handle_timeout`](Follower::handle_timeout) when
/// [`poll_timeout`](Follower::poll_timeout) is reached. All `now` must come from one clock that does not step back.
/// ```
/// use ffclock_ptp::{ClockIdentity, DelayMechanism, Follower, FollowerConfig, PortIdentity};
/// use ffclock_units::{Moment, Period, Span};
///
/// let period = Period::from_hertz(1e9).expect("a period");
/// let own = PortIdentity { clock: ClockIdentity::from_mac([2, 0, 0, 0, 0, 1]), port: 1 };
/// let config = FollowerConfig { mechanism: DelayMechanism::PeerToPeer, ..FollowerConfig::of(period) };
/// let now = Moment::from_origin(Span::from_secs(100));
/// let mut follower = Follower::new(config, own, now);
/// assert_eq!(follower.poll_timeout(), Some(now));
/// follower.handle_timeout(now, 0x5eed);
/// let request = follower.poll_transmit().expect("the link is measured from the beginning");
/// assert_eq!(request.octets.as_slice().len(), 54);
/// ```
#[derive(Debug)]
pub struct Follower {
    config: FollowerConfig,
    own: PortIdentity,
    leaps: LeapTable,
    masters: ForeignMasters,
    followed: Option<Master>,
    /// Whether TAI - UTC of the present master was compared with ours.
    is_offset_checked: bool,
    syncs: SyncMatcher,
    /// When the present master was chosen, or gave a time that can be used.
    given: Moment<Mono>,
    /// The Syncs of the present master; none before the first.
    sync_cadence: Option<Cadence>,
    /// How the message at hand came, and where the last Sync came from.
    passage: Option<Passage>,
    master_address: Option<NetworkAddress>,
    requests: DelayRequests,
    link: Option<LinkRequests>,
    responder: LinkResponder<Stamp>,
    negotiation: Option<Negotiation>,
    signals: u16,
    outbox: Outbox,
    events: PtpEvents,
}

impl Follower {
    /// A clock of this port that begins to listen at `now`.
    pub fn new(config: FollowerConfig, own: PortIdentity, now: Moment<Mono>) -> Self {
        let config = config.within_ranges();
        let delay_interval = interval_of(config.log_delay_interval);
        let is_peer = config.mechanism == DelayMechanism::PeerToPeer;
        let is_unicast = matches!(config.delivery, Delivery::Unicast(_));
        let link = || LinkRequests::new((delay_interval, config.reply_timeout), config.correction_max, now);
        let negotiation = || {
            let logs = [config.log_announce_interval, config.log_sync_interval, config.log_delay_interval];
            let mut negotiation = Negotiation::new(logs, config.grant_seconds);
            negotiation.want(UnicastService::Announce, now);
            negotiation
        };
        Follower {
            own,
            leaps: LeapTable::built_in(),
            masters: ForeignMasters::new(config.announce_timeout, interval_of(config.log_announce_interval)),
            followed: None,
            is_offset_checked: false,
            syncs: SyncMatcher::new(config.reply_timeout),
            given: now,
            sync_cadence: None,
            passage: None,
            master_address: None,
            requests: DelayRequests::new(delay_interval, config.reply_timeout),
            link: is_peer.then(link),
            responder: LinkResponder::new(),
            negotiation: is_unicast.then(negotiation),
            signals: 0,
            outbox: Outbox::default(),
            events: PtpEvents::default(),
            config,
        }
    }

    /// Time has passed; a call too early does nothing. `random` spreads the requests of many clocks. Afterwards
    /// [`poll_timeout`](Follower::poll_timeout) is later than `now`.
    pub fn handle_timeout(&mut self, now: Moment<Mono>, random: u64) {
        if self.masters.expire(now, self.followed.map(|master| master.port)) {
            self.elect(now);
        }
        if let Some(master) = self.followed.filter(|_| self.fruitless().is_some_and(|since| since <= now)) {
            self.events.reject(PtpRejection::Fruitless);
            self.pass_over(master, now);
        }
        while let Some(reason) = self.syncs.expire(now) {
            self.events.reject(reason);
        }
        while let Some(due) = self.requests.handle_timeout(now, random) {
            self.do_due(due, DelayMechanism::EndToEnd);
        }
        while let Some(due) = self.link.as_mut().and_then(|link| link.handle_timeout(now)) {
            self.do_due(due, DelayMechanism::PeerToPeer);
        }
        let events = &mut self.events;
        let negotiation = self.negotiation.as_mut();
        let words = negotiation.map(|negotiation| negotiation.handle_timeout(now, |event| events.push(event)));
        self.signal(&words.unwrap_or_default());
        if !self.may_ask() {
            self.requests.stop();
        }
        debug_assert!(self.poll_timeout().is_none_or(|next| next > now), "all that was due is done");
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<PtpTransmit> {
        let transmit = self.outbox.pop()?;
        increase(&mut self.events.statistics.sent);
        Some(transmit)
    }

    /// The message of `ticket` left at `sent`. This call may come before or after the response is handed in, but within
    /// the reply timeout.
    pub fn handle_sent(&mut self, ticket: PtpTicket, sent: Stamp) {
        match ticket.0 {
            TicketKind::DelayReq(sequence) => {
                let answered = self.requests.note_sent(sequence, sent);
                self.take_answered(answered);
            }
            TicketKind::LinkRequest(sequence) => {
                let measured = self.link.as_mut().map(|link| link.note_sent(sequence, sent));
                let taken = measured.unwrap_or(Ok(None)).and_then(|delay| self.take_link_delay(delay));
                self.report(taken);
            }
            TicketKind::LinkResponse(number) => {
                let period = self.config.period;
                let held = |received: Stamp| period * (sent.counter - received.counter);
                if let Some(message) = self.responder.follow_up(number, held, self.own) {
                    self.outbox.push(PtpTransmit::general(&message, Audience::Neighbour));
                }
            }
            TicketKind::Sync(..) => {}
        }
    }

    /// A datagram of this domain's network arrived at `received`.
    pub fn handle_message(&mut self, bytes: &[u8], received: Stamp, now: Moment<Mono>) {
        increase(&mut self.events.statistics.received);
        let taken = self.take_in(bytes, received, now);
        self.report(taken);
        // What the message pushed out of its place.
        while let Some(reason) = self.syncs.expire(now) {
            self.events.reject(reason);
        }
    }

    /// As [`handle_message`](Follower::handle_message), with how the datagram came: [`Delivery::Hybrid`] needs the
    /// sender, and masters that are heard by multicast speak to the group.
    pub fn handle_message_from(&mut self, bytes: &[u8], (received, passage): (Stamp, Passage), now: Moment<Mono>) {
        self.passage = Some(passage);
        self.handle_message(bytes, received, now);
        self.passage = None;
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<PtpEvent> {
        self.events.pop()
    }

    /// The time for the next call of [`handle_timeout`](Follower::handle_timeout); `None` while only a message can
    /// change anything.
    pub fn poll_timeout(&self) -> Option<Moment<Mono>> {
        let deadlines = [
            self.masters.deadline(),
            self.fruitless(),
            self.syncs.deadline(),
            self.requests.deadline(),
            self.link.as_ref().map(LinkRequests::deadline),
            self.negotiation.as_ref().and_then(Negotiation::deadline),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Sets the leap seconds that convert a master's UTC to TAI from now on.
    pub fn set_leaps(&mut self, leaps: LeapTable) {
        self.leaps = leaps;
    }

    /// The master that is followed.
    pub fn master(&self) -> Option<Master> {
        self.followed
    }

    /// What the master that is followed claims, in the terms of our records.
    pub fn claim(&self) -> Option<ServerQuality> {
        self.followed.map(|master| master.server_quality(&self.config.claims))
    }

    /// The time between two Syncs, as the master says as far as it shows it: at most 64 s. The one of the configuration
    /// before the first.
    pub fn sync_interval(&self) -> Span {
        self.sync_cadence.map_or(interval_of(self.config.log_sync_interval), |cadence| cadence.interval())
    }

    /// Counts of messages and events.
    pub fn statistics(&self) -> &PtpStatistics {
        &self.events.statistics
    }

    /// The configuration in use, every value within its range.
    pub fn config(&self) -> &FollowerConfig {
        &self.config
    }

    fn report(&mut self, taken: Result<(), PtpRejection>) {
        if let Err(reason) = taken {
            self.events.reject(reason);
        }
    }

    /// When the master will have given no time that can be used, or no answer to requests, for so long that another one
    /// is tried, if there is one.
    fn fruitless(&self) -> Option<Moment<Mono>> {
        self.followed.filter(|master| self.masters.has_another(master.port))?;
        let end = |since, interval| since + FRUITLESS.max(times(interval, FRUITLESS_INTERVALS));
        let silent = end(self.given, self.sync_interval());
        let unanswered = self.requests.unanswered().map(|since| end(since, self.requests.interval()));
        Some(unanswered.map_or(silent, |unanswered| unanswered.min(silent)))
    }

    /// Follows another master for a while.
    fn pass_over(&mut self, master: Master, now: Moment<Mono>) {
        self.masters.pass_over(master.port, now + PASSED_OVER);
        self.elect(now);
    }

    /// Follows the best master from now on.
    fn elect(&mut self, now: Moment<Mono>) {
        let before = self.followed;
        let best = self.masters.best();
        self.followed = best;
        match (before, best) {
            (None, None) => {}
            (Some(before), None) => {
                self.begin_with_master(now);
                self.events.push(PtpEvent::MasterLost(before.port));
            }
            (Some(before), Some(best)) if before.port == best.port => {}
            (_, Some(best)) => {
                self.begin_with_master(now);
                self.events.push(PtpEvent::MasterChosen(best));
            }
        }
    }

    /// Nothing of the last master belongs to the next one.
    fn begin_with_master(&mut self, now: Moment<Mono>) {
        self.is_offset_checked = false;
        self.given = now;
        self.master_address = None;
        self.syncs.clear();
        self.sync_cadence = None;
        self.requests.restart(interval_of(self.config.log_delay_interval));
        let is_end_to_end = self.config.mechanism == DelayMechanism::EndToEnd;
        let Some(negotiation) = self.negotiation.as_mut() else { return };
        if self.followed.is_none() {
            // A master that has begun again knows nothing of what it granted.
            negotiation.drop_service(UnicastService::Announce);
            negotiation.want(UnicastService::Announce, now);
        }
        for service in [UnicastService::Sync, UnicastService::DelayResp] {
            let is_used = service == UnicastService::Sync || is_end_to_end;
            if self.followed.is_some() && is_used {
                negotiation.want(service, now);
            } else {
                negotiation.drop_service(service);
            }
        }
    }

    /// Whether the master answers Delay_Req: over unicast only where it was granted.
    fn may_ask(&self) -> bool {
        let is_end_to_end = self.config.mechanism == DelayMechanism::EndToEnd;
        let negotiation = self.negotiation.as_ref();
        is_end_to_end && negotiation.is_none_or(|negotiation| negotiation.is_granted(UnicastService::DelayResp))
    }

    fn do_due(&mut self, due: Due, mechanism: DelayMechanism) {
        let sequence = match due {
            Due::Request(sequence) => sequence,
            Due::Failed(reason) => return self.events.reject(reason),
        };
        let (body, ticket, audience) = match mechanism {
            DelayMechanism::EndToEnd => {
                (PtpBody::DelayReq(PtpTimestamp::ZERO), TicketKind::DelayReq(sequence), self.asked())
            }
            DelayMechanism::PeerToPeer => {
                (PtpBody::PdelayReq(PtpTimestamp::ZERO), TicketKind::LinkRequest(sequence), Audience::Neighbour)
            }
        };
        let message = PtpMessage { sequence, flags: flags_to(audience), ..self.plain(body) };
        self.outbox.push(PtpTransmit::event(&message, audience, ticket));
    }

    /// Whom a Delay_Req is for: all clocks, or the one master. Until its address is known, all.
    fn asked(&self) -> Audience {
        match self.config.delivery {
            Delivery::Multicast => Audience::Everyone,
            Delivery::Hybrid => self.master_address.map_or(Audience::Everyone, Audience::One),
            Delivery::Unicast(address) => Audience::One(address),
        }
    }

    fn plain(&self, body: PtpBody) -> PtpMessage {
        PtpMessage::plain(self.own, self.config.domain, body)
    }

    /// Sends these words to the master, if there are any.
    fn signal(&mut self, words: &[UnicastWord]) {
        let (Delivery::Unicast(address), false) = (self.config.delivery, words.is_empty()) else { return };
        let sequence = self.signals;
        self.signals = sequence.wrapping_add(1);
        let audience = Audience::One(address);
        let target = self.followed.map_or(PortIdentity::ANY, |master| master.port);
        let body = PtpBody::Signaling(target);
        let message = PtpMessage { sequence, flags: flags_to(audience), ..self.plain(body) };
        let mut transmit = PtpTransmit::general(&message, audience);
        words.iter().for_each(|word| word.write(&mut transmit.octets));
        self.outbox.push(transmit);
    }

    /// The times of a message whose corrections are at most this are believed.
    fn believed(&self, correction: crate::Correction) -> Result<Span, PtpRejection> {
        let span = correction.as_span().filter(|span| span.abs() <= self.config.correction_max.as_span());
        span.ok_or(PtpRejection::Correction)
    }
}

/// The flag that a message has if it is for one clock.
pub(crate) const fn flags_to(audience: Audience) -> crate::PtpFlags {
    match audience {
        Audience::One(_) => crate::PtpFlags::UNICAST,
        Audience::Everyone | Audience::Neighbour => crate::PtpFlags(0),
    }
}
