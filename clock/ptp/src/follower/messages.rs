//! What each kind of message does to a follower.

use super::Follower;
use crate::cadence::{Cadence, interval_of};
use crate::link::MeasuredLink;
use crate::message::LOG_INTERVAL_NONE;
use crate::requests::AnsweredDelay;
use crate::syncs::MatchedSync;
use crate::tlv::{Tlvs, UnicastService, UnicastWord};
use crate::transmit::TicketKind;
use crate::{
    Announcement, ArbitraryTimescale, Audience, Delivery, ERA, LinkDelay, Master, PERIOD_TOLERANCE, PortIdentity,
    PtpBody, PtpEvent, PtpFlags, PtpMessage, PtpObservation, PtpRejection, PtpTimestamp, PtpTransmit,
};
use ffclock_units::{Direction, Moment, Mono, Server, Span, Stamp, Tai};

const SECONDS_PER_DAY: i64 = 86_400;

/// What the times of a master mean, and whether it is sure of them: of a message that was under way when this changed
/// no one knows.
fn meaning(master: &Master) -> u16 {
    master.announcement.flags.0 & (PtpFlags::PTP_TIMESCALE.0 | PtpFlags::UNCERTAIN.0)
}

impl Follower {
    pub(super) fn take_in(&mut self, bytes: &[u8], received: Stamp, now: Moment<Mono>) -> Result<(), PtpRejection> {
        let (message, tlvs) = PtpMessage::decode(bytes)?;
        self.check_header(&message)?;
        self.check_passage(&message)?;
        if let Some(broken) = tlvs.clone().find_map(Result::err) {
            return Err(broken.into());
        }
        match message.body {
            PtpBody::Announce(_) => self.take_announce(&message, tlvs, (received, now)),
            PtpBody::Sync(origin) => {
                self.check_master(&message)?;
                self.master_address = self.passage.map(|passage| passage.from).or(self.master_address);
                let matched = self.syncs.sync((&message, origin), received, now)?;
                self.note_sync(&message, now);
                self.take_sync(matched, now)
            }
            PtpBody::FollowUp(origin) => {
                self.check_master(&message)?;
                let matched = self.syncs.follow_up((&message, origin), now)?;
                self.take_sync(matched, now)
            }
            PtpBody::DelayResp(arrived, requester) => self.take_delay_resp((&message, arrived), requester),
            PtpBody::PdelayReq(_) => self.answer_neighbour(&message, (received, now)),
            PtpBody::PdelayResp(arrived, requester) => {
                self.check_requester(requester)?;
                let link = self.link.as_mut().ok_or(PtpRejection::NotForUs)?;
                let delay = link.response((&message, arrived), received)?;
                self.take_link_delay(delay)
            }
            PtpBody::PdelayRespFollowUp(left, requester) => {
                self.check_requester(requester)?;
                let link = self.link.as_mut().ok_or(PtpRejection::NotForUs)?;
                let delay = link.follow_up(&message, left)?;
                self.take_link_delay(delay)
            }
            PtpBody::Signaling(target) => self.take_signal(target, tlvs, now),
            PtpBody::DelayReq(_) | PtpBody::Management => Err(PtpRejection::NotForUs),
        }
    }

    fn check_header(&self, message: &PtpMessage) -> Result<(), PtpRejection> {
        if message.sdo != 0 {
            Err(PtpRejection::Profile)
        } else if message.domain != self.config.domain {
            Err(PtpRejection::Domain)
        } else if message.source.clock == self.own.clock {
            Err(PtpRejection::OwnMessage)
        } else {
            Ok(())
        }
    }

    /// By multicast nothing but the answer to a request comes to us alone: what does may come from any network.
    fn check_passage(&self, message: &PtpMessage) -> Result<(), PtpRejection> {
        let is_to_us = self.passage.is_some_and(|passage| passage.to.is_some());
        let is_answer = matches!(message.body, PtpBody::DelayResp(..));
        let is_stray = is_to_us && !is_answer && !matches!(self.config.delivery, Delivery::Unicast(_));
        if is_stray { Err(PtpRejection::NotToGroup) } else { Ok(()) }
    }

    fn check_master(&self, message: &PtpMessage) -> Result<(), PtpRejection> {
        if message.flags.has(PtpFlags::ALTERNATE_MASTER) {
            return Err(PtpRejection::AlternateMaster);
        }
        let is_master = self.followed.is_some_and(|master| master.port == message.source);
        if is_master { Ok(()) } else { Err(PtpRejection::NotMaster) }
    }

    fn check_requester(&self, requester: PortIdentity) -> Result<(), PtpRejection> {
        if requester == self.own { Ok(()) } else { Err(PtpRejection::ResponseToOther) }
    }

    /// Which announcements count at all (9.3.2.5).
    fn check_announcement(
        &self,
        (message, announcement): (&PtpMessage, &Announcement),
        mut tlvs: Tlvs<'_>,
    ) -> Result<(), PtpRejection> {
        if message.flags.has(PtpFlags::ALTERNATE_MASTER) {
            Err(PtpRejection::AlternateMaster)
        } else if announcement.steps_removed > self.config.steps_removed_max {
            Err(PtpRejection::StepsRemoved)
        } else if announcement.quality.class > self.config.clock_class_max {
            Err(PtpRejection::ClockClass)
        } else if announcement.grandmaster == self.own.clock {
            Err(PtpRejection::OwnMessage)
        } else if self.config.grandmaster.is_some_and(|only| only != announcement.grandmaster) {
            Err(PtpRejection::NotAccepted)
        } else if tlvs.any(|tlv| tlv.is_ok_and(|tlv| tlv.has_passed(self.own.clock))) {
            Err(PtpRejection::PathLoop)
        } else {
            Ok(())
        }
    }

    fn take_announce(
        &mut self,
        message: &PtpMessage,
        tlvs: Tlvs<'_>,
        (received, now): (Stamp, Moment<Mono>),
    ) -> Result<(), PtpRejection> {
        let PtpBody::Announce(announcement) = message.body else { return Err(PtpRejection::NotForUs) };
        if let Err(reason) = self.check_announcement((message, &announcement), tlvs) {
            let is_unwanted = [PtpRejection::NotAccepted, PtpRejection::ClockClass, PtpRejection::StepsRemoved];
            if is_unwanted.contains(&reason) && self.masters.forget(message.source) {
                // What it was is no longer true: its Syncs are not to be used until its silence is noticed.
                self.elect(now);
            }
            return Err(reason);
        }
        let interval = self.stated_interval(message, UnicastService::Announce);
        let master = Master { port: message.source, announcement };
        let before = self.followed;
        let admitted = self.masters.hear(master, (now, interval), before.map(|master| master.port))?;
        admitted.displaced().into_iter().for_each(|reason| self.events.reject(reason));
        self.elect(now);
        let same = self.followed.filter(|master| before.is_some_and(|before| before.port == master.port));
        if let Some(master) = same.filter(|_| before != same) {
            if before.is_some_and(|before| meaning(&before) != meaning(&master)) {
                self.syncs.clear();
                self.requests.forget();
            }
            self.events.push(PtpEvent::MasterChanged(master, received.counter));
        }
        Ok(())
    }

    /// How long it is to the next message of this kind, as the master says. Over unicast they come as often as was
    /// granted, whatever ptp4l writes into them.
    fn stated_interval(&self, message: &PtpMessage, service: UnicastService) -> Span {
        let usual = match service {
            UnicastService::Announce => self.config.log_announce_interval,
            UnicastService::Sync => self.config.log_sync_interval,
            UnicastService::DelayResp => self.config.log_delay_interval,
        };
        interval_of(match &self.negotiation {
            Some(negotiation) => negotiation.log_interval(service),
            None if message.log_interval == LOG_INTERVAL_NONE => usual,
            None => message.log_interval,
        })
    }

    fn note_sync(&mut self, sync: &PtpMessage, now: Moment<Mono>) {
        let stated = self.stated_interval(sync, UnicastService::Sync);
        let usual = interval_of(self.config.log_sync_interval);
        match &mut self.sync_cadence {
            Some(cadence) => cadence.note(stated, now),
            first => *first = Some(Cadence::begin(usual, stated, now)),
        }
    }

    fn take_sync(&mut self, matched: Option<MatchedSync>, now: Moment<Mono>) -> Result<(), PtpRejection> {
        let Some(MatchedSync { origin, corrections: [one, more], received }) = matched else { return Ok(()) };
        // The master is there, whatever its Sync is worth.
        if self.may_ask() {
            self.requests.begin(now);
        }
        let held = self.believed(one)? + self.believed(more)?;
        let time = self.time(origin);
        if let (Err(PtpRejection::ImplausibleTime), Some(master)) = (&time, self.followed) {
            self.pass_over(master, now);
        }
        let theirs = time? + held;
        self.check_offset(theirs);
        let observation = PtpObservation { direction: Direction::Incoming, ours: received, theirs };
        self.given = now;
        self.events.push(PtpEvent::Observation(observation));
        Ok(())
    }

    fn take_delay_resp(
        &mut self,
        (message, arrived): (&PtpMessage, PtpTimestamp),
        requester: PortIdentity,
    ) -> Result<(), PtpRejection> {
        self.check_requester(requester)?;
        self.check_master(message)?;
        let answered = self.requests.answer(message, arrived)?;
        self.take_answered(answered);
        Ok(())
    }

    pub(super) fn take_answered(&mut self, answered: Option<AnsweredDelay>) {
        let Some(AnsweredDelay { sent, arrived, correction }) = answered else { return };
        let theirs = self.believed(correction).and_then(|held| Ok(self.time(arrived)? - held));
        let taken = theirs.map(|theirs| {
            let observation = PtpObservation { direction: Direction::Outgoing, ours: sent, theirs };
            self.events.push(PtpEvent::Observation(observation));
        });
        self.report(taken);
    }

    /// A time of the master on our scale.
    fn time(&self, timestamp: PtpTimestamp) -> Result<Moment<Tai>, PtpRejection> {
        let time = self.time_on_its_scale(timestamp)?;
        let earliest = self.config.earliest;
        if (earliest..earliest + ERA).contains(&time) { Ok(time) } else { Err(PtpRejection::ImplausibleTime) }
    }

    fn time_on_its_scale(&self, timestamp: PtpTimestamp) -> Result<Moment<Tai>, PtpRejection> {
        let Some(Master { announcement, .. }) = self.followed else { return Err(PtpRejection::NotMaster) };
        if announcement.flags.has(PtpFlags::UNCERTAIN) {
            return Err(PtpRejection::Uncertain);
        }
        let stamp = timestamp.since_origin().filter(|_| timestamp != PtpTimestamp::ZERO);
        let since_origin = stamp.ok_or(PtpRejection::Timestamp)?;
        if announcement.is_tai() {
            return Ok(Moment::from_origin(since_origin));
        }
        if self.config.arbitrary == ArbitraryTimescale::Refuse {
            return Err(PtpRejection::ArbitraryTimescale);
        }
        let utc = Moment::<Server>::from_origin(since_origin);
        let is_leap_day = announcement.flags.0 & (PtpFlags::LEAP_59.0 | PtpFlags::LEAP_61.0) != 0
            || self
                .leaps
                .announced()
                .is_some_and(|leap| (leap.utc_second - utc.whole_seconds()).abs() < SECONDS_PER_DAY);
        let second = utc.whole_seconds().rem_euclid(SECONDS_PER_DAY);
        if is_leap_day && !(2..SECONDS_PER_DAY - 2).contains(&second) {
            return Err(PtpRejection::NearLeap);
        }
        Ok(self.leaps.tai_from_server(utc))
    }

    /// Compares the master's TAI - UTC with ours, once for each master.
    fn check_offset(&mut self, time: Moment<Tai>) {
        let Some(Master { announcement, .. }) = self.followed else { return };
        let says_offset = announcement.is_tai() && announcement.flags.has(PtpFlags::UTC_OFFSET_VALID);
        if self.is_offset_checked || !says_offset {
            return;
        }
        self.is_offset_checked = true;
        let ours = time.whole_seconds() - self.leaps.utc_from_tai(time).whole_seconds();
        if i64::from(announcement.utc_offset) != ours {
            self.events.push(PtpEvent::UtcOffsetDiffers(announcement.utc_offset, ours));
        }
    }

    fn answer_neighbour(&mut self, request: &PtpMessage, received: (Stamp, Moment<Mono>)) -> Result<(), PtpRejection> {
        if self.link.is_none() {
            return Err(PtpRejection::NotForUs);
        }
        let (number, response) = self.responder.answer(request, received, self.own)?;
        let ticket = TicketKind::LinkResponse(number);
        self.outbox.push(PtpTransmit::event(&response, Audience::Neighbour, ticket));
        Ok(())
    }

    pub(super) fn take_link_delay(&mut self, measured: Option<MeasuredLink>) -> Result<(), PtpRejection> {
        let Some(delay) = measured else { return Ok(()) };
        if !delay.received.counter.is_after(delay.sent.counter) {
            return Err(PtpRejection::StampsReversed);
        }
        let trip = self.config.period * (delay.received.counter - delay.sent.counter);
        let width = self.config.period * (delay.received.width.abs() + delay.sent.width.abs());
        let tolerance = Span::from_units(trip.units() / PERIOD_TOLERANCE) + width;
        if trip + tolerance < delay.turnaround {
            return Err(PtpRejection::NegativeDelay);
        }
        let stated = self.time_of_arrival(&delay);
        let MeasuredLink { neighbour, sent, received, turnaround, .. } = delay;
        let arrived = stated.ok();
        self.events.push(PtpEvent::LinkDelay(LinkDelay { neighbour, sent, received, turnaround, arrived }));
        // While there is no master, nothing is missed.
        if self.followed.is_some() { stated.map(drop) } else { Ok(()) }
    }

    /// When a request reached the master that is followed, where that is the neighbour. What it says is rounded down to
    /// the nanosecond, and the correction of the response has the rest with a negative sign (11.4.2); a positive one is
    /// of switches that held up the response, and says nothing of the request.
    fn time_of_arrival(&self, delay: &MeasuredLink) -> Result<Moment<Tai>, PtpRejection> {
        let is_master = self.followed.is_some_and(|master| master.port == delay.neighbour);
        if !is_master || delay.arrived == PtpTimestamp::ZERO {
            return Err(PtpRejection::NeighbourTime);
        }
        Ok(self.time(delay.arrived)? - delay.correction.min(Span::ZERO))
    }

    fn take_signal(&mut self, target: PortIdentity, tlvs: Tlvs<'_>, now: Moment<Mono>) -> Result<(), PtpRejection> {
        if self.negotiation.is_none() || !target.reaches(self.own) {
            return Err(PtpRejection::NotForUs);
        }
        for word in tlvs.flatten().filter_map(|tlv| UnicastWord::read(&tlv)) {
            let Some(negotiation) = self.negotiation.as_mut() else { continue };
            match negotiation.hear(word, now) {
                Err(reason) => self.events.reject(reason),
                Ok((answer, event)) => {
                    if let Some(PtpEvent::Granted(UnicastService::DelayResp, _)) = event {
                        self.requests.set_interval(interval_of(negotiation.log_interval(UnicastService::DelayResp)));
                    }
                    event.into_iter().for_each(|event| self.events.push(event));
                    self.signal(answer.as_slice());
                }
            }
        }
        if !self.may_ask() {
            self.requests.stop();
        }
        Ok(())
    }
}
