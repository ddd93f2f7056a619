//! A clock that others follow.

mod answers;
mod claim;
mod clients;
mod steady;

use crate::cadence::{interval_of, times};
use crate::event::{PtpEvents, increase};
use crate::follower::flags_to;
use crate::foreign::{ForeignMasters, better};
use crate::link::LinkResponder;
use crate::message::LOG_INTERVAL_NONE;
use crate::tlv::UnicastService;
use crate::transmit::{Ends, Outbox, TicketKind};
use crate::{
    Announcement, Audience, Correction, Master, Passage, PortIdentity, PtpBody, PtpEvent, PtpFlags, PtpMessage,
    PtpStatistics, PtpTicket, PtpTimestamp, PtpTransmit,
};
use clients::{Clients, following};
use ffclock_units::{Moment, Mono, Span, Tai};
use steady::SteadyQuality;

pub use claim::{GrandmasterClaim, GrandmasterLimits};

/// The configuration of a grandmaster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrandmasterConfig {
    /// The domain.
    pub domain: u8,
    /// Priority 1 and priority 2 (7.6.2.3).
    pub priorities: (u8, u8),
    /// The time between two Announce messages, and the shortest that a client may ask for; log2 of seconds, -7 to 6.
    pub log_announce_interval: i8,
    /// The same of Sync.
    pub log_sync_interval: i8,
    /// How often a follower may ask for the delay, and the shortest interval that a client may ask for.
    pub log_delay_interval: i8,
    /// Announce intervals after which another master is gone; 2 to 255.
    pub announce_timeout: u32,
    /// Whom it serves.
    pub group: GroupService,
    /// Unicast grants at a time, three for each client; 0 refuses all.
    pub grants_max: usize,
    /// The longest unicast grant [s].
    pub grant_seconds_max: u32,
}

/// Whom a grandmaster serves without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupService {
    /// All clocks of the network, as long as no better master speaks.
    Multicast,
    /// None: only clients that negotiate are served, whatever other masters say (as in G.8275.2).
    UnicastOnly,
}

impl Default for GrandmasterConfig {
    /// The standard's own profile (annex I), with 512 grants.
    fn default() -> Self {
        GrandmasterConfig {
            domain: 0,
            priorities: (128, 128),
            log_announce_interval: 1,
            log_sync_interval: 0,
            log_delay_interval: 0,
            announce_timeout: 3,
            group: GroupService::Multicast,
            grants_max: 512,
            grant_seconds_max: 1000,
        }
    }
}

/// A grandmaster of one port, in two steps: each Sync is followed by the time at which it left.
///
/// It is driven as a [`Follower`](crate::Follower) is. Times are those that the caller's clock gives: of a message that
/// arrived, the latest at which it can have, and of one that has left, the earliest, so that the bound of a follower
/// holds. While the claim is [`GrandmasterClaim::NONE`] or a better master speaks, it is
/// silent.
///
/// Two of them on one network are never both silent because of each other. One that serves gives way only when it hears
/// a better one, which therefore speaks. What it compares is what it said last, for as long as another may remember
/// that, and not what its clock has come to be worth since: two that hear each other at the same time both compare the
/// same two announcements, and one of these is better.
#[derive(Debug)]
pub struct Grandmaster {
    config: GrandmasterConfig,
    own: PortIdentity,
    claim: GrandmasterClaim,
    steady: SteadyQuality,
    /// What was announced last to all clocks, and when.
    said: Option<(Announcement, Moment<Mono>)>,
    masters: ForeignMasters,
    yielded_to: Option<Master>,
    announce: Row,
    sync: Row,
    clients: Clients,
    responder: LinkResponder<Moment<Tai>>,
    outbox: Outbox,
    events: PtpEvents,
    signals: u16,
}

/// What is better is announced once it has been so for this number of intervals: a minute by default, as long as it is
/// between most measurements.
const HELD_INTERVALS: i64 = 30;

/// Messages of one kind to all clocks.
#[derive(Clone, Copy, Debug)]
struct Row {
    due: Moment<Mono>,
    sequence: u16,
}

impl Row {
    /// The number of the message that is due, if one is.
    fn take(&mut self, now: Moment<Mono>, log_interval: i8) -> Option<u16> {
        if self.due > now {
            return None;
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.due = following(self.due, interval_of(log_interval), now);
        Some(sequence)
    }
}

impl Grandmaster {
    /// A grandmaster of this port. It says nothing before its first claim.
    pub fn new(config: GrandmasterConfig, own: PortIdentity, now: Moment<Mono>) -> Self {
        let row = Row { due: now, sequence: 0 };
        Grandmaster {
            own,
            claim: GrandmasterClaim::NONE,
            steady: SteadyQuality::default(),
            said: None,
            masters: ForeignMasters::new(
                config.announce_timeout.clamp(2, 255),
                interval_of(config.log_announce_interval),
            ),
            yielded_to: None,
            announce: row,
            sync: row,
            clients: Clients::new(config.grants_max),
            responder: LinkResponder::new(),
            outbox: Outbox::default(),
            events: PtpEvents::default(),
            signals: 0,
            config,
        }
    }

    /// What the clock claims from `now` on: what is worse at once, and what is better once it has been so for
    /// 30 announcements. A larger error is announced before the next Sync.
    ///
    /// A clock that loses its time says so in a last Announce, of class 248 and unknown accuracy, so that followers
    /// need not wait for its silence to choose another master; then it is silent.
    pub fn set_claim(&mut self, claim: GrandmasterClaim, now: Moment<Mono>) {
        let was_serving = self.is_serving();
        if claim.is_known() {
            let hold = times(interval_of(self.config.log_announce_interval), HELD_INTERVALS);
            let before = self.claim;
            self.claim = claim.of_quality(self.steady.take(claim.quality, now, hold));
            if !before.is_known() || self.claim.quality.accuracy > before.quality.accuracy {
                self.announce.due = self.announce.due.min(now);
                self.clients.hasten(UnicastService::Announce, now);
            }
        } else {
            self.claim = claim;
            self.steady = SteadyQuality::default();
            if was_serving {
                self.take_leave();
            }
            self.said = None;
            self.clients.clear();
        }
        if !was_serving || !claim.is_known() {
            self.elect(now);
        }
    }

    /// Priority 1 and priority 2 from the next claim on.
    pub const fn set_priorities(&mut self, priorities: (u8, u8)) {
        self.config.priorities = priorities;
    }

    /// The last Announce, to all who are served. Where more clients are than fit into the outbox, the others wait for
    /// their timeout.
    fn take_leave(&mut self) {
        if self.config.group == GroupService::Multicast {
            let sequence = self.announce.sequence;
            self.announce.sequence = sequence.wrapping_add(1);
            self.send_announce((sequence, self.config.log_announce_interval), Audience::Everyone);
        }
        while let Some(grant) = self.clients.take_announced().filter(|_| !self.outbox.is_full()) {
            self.send_announce((grant.sequence, grant.log_interval), grant.client.ends());
        }
    }

    /// Time has passed: sends what is due. Where more is due than fits into the outbox, it stays due, and another call
    /// after [`poll_transmit`](Grandmaster::poll_transmit) goes on.
    pub fn handle_timeout(&mut self, now: Moment<Mono>) {
        if self.masters.expire(now, self.yielded_to.map(|master| master.port)) {
            self.elect(now);
        }
        self.clients.expire(now);
        if !self.is_serving() {
            return;
        }
        if self.config.group == GroupService::Multicast {
            if let Some(sequence) = self.announce.take(now, self.config.log_announce_interval) {
                self.send_announce((sequence, self.config.log_announce_interval), Audience::Everyone);
                self.said = Some((self.announcement(), now));
            }
            if let Some(sequence) = self.sync.take(now, self.config.log_sync_interval) {
                self.send_sync((sequence, self.config.log_sync_interval), Audience::Everyone);
            }
        }
        while !self.outbox.is_full() {
            let Some(grant) = self.clients.next_due(now) else { break };
            let (number, ends) = ((grant.sequence, grant.log_interval), grant.client.ends());
            match grant.service {
                UnicastService::Announce => self.send_announce(number, ends),
                UnicastService::Sync => self.send_sync((number.0, LOG_INTERVAL_NONE), ends),
                UnicastService::DelayResp => debug_assert!(false, "it is never due"),
            }
        }
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<PtpTransmit> {
        let transmit = self.outbox.pop()?;
        increase(&mut self.events.statistics.sent);
        Some(transmit)
    }

    /// The message of `ticket` left at this time.
    pub fn handle_sent(&mut self, ticket: PtpTicket, left: Moment<Tai>) {
        match ticket.0 {
            TicketKind::Sync(sequence, ends) => {
                let Some((time, correction)) = PtpTimestamp::of(left) else { return };
                let (body, log_interval) = (PtpBody::FollowUp(time), self.log_of_sync(ends.audience));
                let plain = self.plain(body, ends.audience);
                let message = PtpMessage { sequence, correction, log_interval, ..plain };
                self.outbox.push(PtpTransmit::general(&message, ends));
            }
            TicketKind::LinkResponse(number) => {
                if let Some(message) = self.link_follow_up(number, left) {
                    self.outbox.push(PtpTransmit::general(&message, Audience::Neighbour));
                }
            }
            TicketKind::DelayReq(_) | TicketKind::LinkRequest(_) => {}
        }
    }

    /// The Pdelay_Resp_Follow_Up to the response that left at this time. Both state their times (11.4.2), so that a
    /// neighbour that follows learns as much as from Delay_Resp.
    fn link_follow_up(&mut self, number: u32, left: Moment<Tai>) -> Option<PtpMessage> {
        let plain = self.responder.follow_up(number, |_| Span::ZERO, self.own)?;
        let PtpBody::PdelayRespFollowUp(_, requester) = plain.body else { return None };
        let (time, rest) = PtpTimestamp::of(left)?;
        let spans = plain.correction.as_span().zip(rest.as_span());
        let correction = spans.map_or(Correction::UNKNOWN, |(before, rest)| Correction::of(before + rest));
        Some(PtpMessage { body: PtpBody::PdelayRespFollowUp(time, requester), correction, ..plain })
    }

    /// A datagram arrived at this time in this way.
    pub fn handle_message(&mut self, bytes: &[u8], arrived: (Moment<Tai>, Passage), now: Moment<Mono>) {
        increase(&mut self.events.statistics.received);
        if let Err(reason) = self.take_in(bytes, arrived, now) {
            self.events.reject(reason);
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<PtpEvent> {
        self.events.pop()
    }

    /// The time for the next call of [`handle_timeout`](Grandmaster::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Moment<Mono>> {
        let is_group = self.config.group == GroupService::Multicast;
        let rows = is_group.then(|| self.announce.due.min(self.sync.due));
        let messages = [rows, self.clients.due()].into_iter().flatten().min();
        // While another master is better, what is due stays due, and only time can end it.
        let messages = messages.filter(|_| self.is_serving());
        [messages, self.masters.deadline(), self.clients.expiry()].into_iter().flatten().min()
    }

    /// Whether it states its time: it has one, and no better master speaks.
    pub fn is_serving(&self) -> bool {
        self.claim.is_known() && self.yielded_to.is_none()
    }

    /// The better master to which it gives way.
    pub fn yielded_to(&self) -> Option<Master> {
        self.yielded_to
    }

    /// What it claims.
    pub fn claim(&self) -> &GrandmasterClaim {
        &self.claim
    }

    /// Unicast grants in force.
    pub fn grants(&self) -> usize {
        self.clients.len()
    }

    /// Counts of messages and events.
    pub fn statistics(&self) -> &PtpStatistics {
        &self.events.statistics
    }

    fn announcement(&self) -> Announcement {
        self.claim.announced(self.own.clock, self.config.priorities)
    }

    /// What others know of us and compare, or would.
    fn known(&self, now: Moment<Mono>) -> Announcement {
        let remembered = times(interval_of(self.config.log_announce_interval), self.config.announce_timeout.into());
        let said = self.said.filter(|(_, at)| now - *at < remembered);
        said.map_or_else(|| self.announcement(), |(announcement, _)| announcement)
    }

    /// Whether another master is better (9.3.3, M1 and P1).
    fn elect(&mut self, now: Moment<Mono>) {
        let own = Master { port: self.own, announcement: self.known(now) };
        let is_group = self.config.group == GroupService::Multicast && self.claim.is_known();
        let other = self.masters.best().filter(|other| is_group && better(other, &own).is_lt());
        match (self.yielded_to, other) {
            (Some(before), Some(other)) if before.port == other.port => {}
            (_, Some(other)) => self.events.push(PtpEvent::Yielded(other)),
            (Some(_), None) if self.claim.is_known() => self.events.push(PtpEvent::Serving),
            (_, None) => {}
        }
        self.yielded_to = other;
    }

    fn plain(&self, body: PtpBody, audience: Audience) -> PtpMessage {
        PtpMessage { flags: flags_to(audience), ..PtpMessage::plain(self.own, self.config.domain, body) }
    }

    const fn log_of_sync(&self, audience: Audience) -> i8 {
        match audience {
            Audience::One(_) => LOG_INTERVAL_NONE,
            Audience::Everyone | Audience::Neighbour => self.config.log_sync_interval,
        }
    }

    fn send_announce(&mut self, (sequence, log_interval): (u16, i8), ends: impl Into<Ends>) {
        let ends = ends.into();
        let plain = self.plain(PtpBody::Announce(self.announcement()), ends.audience);
        let message = PtpMessage { sequence, log_interval, ..plain };
        self.outbox.push(PtpTransmit::general(&message, ends));
    }

    fn send_sync(&mut self, (sequence, log_interval): (u16, i8), ends: impl Into<Ends>) {
        let ends = ends.into();
        let plain = self.plain(PtpBody::Sync(PtpTimestamp::ZERO), ends.audience);
        let flags = plain.flags.and(PtpFlags::TWO_STEP);
        let message = PtpMessage { sequence, log_interval, flags, ..plain };
        self.outbox.push(PtpTransmit::event(&message, ends, TicketKind::Sync(sequence, ends)));
    }
}
