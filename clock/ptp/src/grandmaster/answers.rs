//! What a grandmaster answers.

use super::clients::Client;
use super::{Grandmaster, GroupService};
use crate::cadence::interval_of;
use crate::config::STEPS_REMOVED_MAX;
use crate::message::LOG_INTERVAL_NONE;
use crate::tlv::{Tlvs, UnicastService, UnicastTerms, UnicastWord};
use crate::transmit::{Ends, TicketKind};
use crate::{
    Announcement, Audience, Channel, ClockClass, Correction, Master, Passage, PortIdentity, PtpBody, PtpEvent,
    PtpFlags, PtpMessage, PtpRejection, PtpTimestamp, PtpTransmit,
};
use ffclock_units::{Moment, Mono, Tai};

/// Words of negotiation in one message that are answered: one for each service.
const WORDS_MAX: usize = 3;

impl Grandmaster {
    pub(super) fn take_in(
        &mut self,
        bytes: &[u8],
        (arrived, passage): (Moment<Tai>, Passage),
        now: Moment<Mono>,
    ) -> Result<(), PtpRejection> {
        let (message, tlvs) = PtpMessage::decode(bytes)?;
        if message.sdo != 0 {
            return Err(PtpRejection::Profile);
        }
        if message.domain != self.config.domain {
            return Err(PtpRejection::Domain);
        }
        if message.source.clock == self.own.clock {
            return Err(PtpRejection::OwnMessage);
        }
        if let Some(broken) = tlvs.clone().find_map(Result::err) {
            return Err(broken.into());
        }
        match message.body {
            PtpBody::DelayReq(_) => self.answer_delay(&message, arrived, passage),
            // What is sent to us alone may come from any network, and no clock of this one hears it.
            PtpBody::Announce(_) | PtpBody::PdelayReq(_) if passage.to.is_some() => Err(PtpRejection::NotToGroup),
            PtpBody::PdelayReq(_) => {
                let (time, rest) = PtpTimestamp::of(arrived).ok_or(PtpRejection::Timestamp)?;
                let rest = rest.as_span().ok_or(PtpRejection::Timestamp)?;
                let (number, plain) = self.responder.answer(&message, (arrived, now), self.own)?;
                let body = PtpBody::PdelayResp(time, message.source);
                let response = PtpMessage { body, correction: Correction::of(-rest), ..plain };
                let ticket = TicketKind::LinkResponse(number);
                self.outbox.push(PtpTransmit::event(&response, Audience::Neighbour, ticket));
                Ok(())
            }
            PtpBody::Announce(announcement) => self.take_announce((&message, announcement), now),
            PtpBody::Signaling(target) => {
                let client = Client { passage, port: message.source };
                self.negotiate((client, target), tlvs, now)
            }
            _ => Err(PtpRejection::NotForUs),
        }
    }

    /// Delay_Resp (11.3.2): the arrival as it was, and the request's correction, less what the timestamp cannot hold.
    fn answer_delay(
        &mut self,
        request: &PtpMessage,
        arrived: Moment<Tai>,
        passage: Passage,
    ) -> Result<(), PtpRejection> {
        if !self.is_serving() {
            return Err(PtpRejection::NotForUs);
        }
        let is_group = self.config.group == GroupService::Multicast && passage.to.is_none();
        let client = Client { passage, port: request.source };
        let is_granted = self.clients.find(client, UnicastService::DelayResp).is_some();
        if !is_granted && self.config.group == GroupService::UnicastOnly {
            return Err(PtpRejection::NotAsked);
        }
        let (ends, log_interval) = if is_group && !request.flags.has(PtpFlags::UNICAST) {
            (Audience::Everyone.into(), self.config.log_delay_interval)
        } else {
            (client.ends(), LOG_INTERVAL_NONE)
        };
        let (time, rest) = PtpTimestamp::of(arrived).ok_or(PtpRejection::Timestamp)?;
        let spans = request.correction.as_span().zip(rest.as_span());
        let (before, rest) = spans.ok_or(PtpRejection::Correction)?;
        let plain = self.plain(PtpBody::DelayResp(time, request.source), ends.audience);
        let correction = Correction::of(before - rest);
        let message = PtpMessage { sequence: request.sequence, correction, log_interval, ..plain };
        self.outbox.push(PtpTransmit::general(&message, ends));
        Ok(())
    }

    fn take_announce(
        &mut self,
        (message, announcement): (&PtpMessage, Announcement),
        now: Moment<Mono>,
    ) -> Result<(), PtpRejection> {
        if self.config.group == GroupService::UnicastOnly || announcement.grandmaster == self.own.clock {
            return Err(PtpRejection::NotForUs);
        }
        if message.flags.has(PtpFlags::ALTERNATE_MASTER) {
            return Err(PtpRejection::AlternateMaster);
        }
        if announcement.steps_removed > STEPS_REMOVED_MAX {
            return Err(PtpRejection::StepsRemoved);
        }
        if announcement.quality.class == ClockClass::NEVER_MASTER {
            return Err(PtpRejection::ClockClass);
        }
        let says_interval = message.log_interval != LOG_INTERVAL_NONE;
        let log = if says_interval { message.log_interval } else { self.config.log_announce_interval };
        let master = Master { port: message.source, announcement };
        let yielded_to = self.yielded_to.map(|master| master.port);
        let admitted = self.masters.hear(master, (now, interval_of(log)), yielded_to)?;
        admitted.displaced().into_iter().for_each(|reason| self.events.reject(reason));
        self.elect(now);
        Ok(())
    }

    fn negotiate(
        &mut self,
        (client, target): (Client, PortIdentity),
        tlvs: Tlvs<'_>,
        now: Moment<Mono>,
    ) -> Result<(), PtpRejection> {
        if !target.reaches(self.own) {
            return Err(PtpRejection::NotForUs);
        }
        let Ends { audience, from } = client.ends();
        let mut answer = self.plain(PtpBody::Signaling(client.port), audience).encode();
        let length_before = answer.as_slice().len();
        for word in tlvs.flatten().filter_map(|tlv| UnicastWord::read(&tlv)).take(WORDS_MAX) {
            match word {
                UnicastWord::Request(service, terms) => self.grant(client, (service, terms), now).write(&mut answer),
                UnicastWord::Cancel(service) => {
                    if self.clients.cancel(client, service) {
                        self.events.push(PtpEvent::Cancelled(service));
                    }
                    UnicastWord::AcknowledgeCancel(service).write(&mut answer);
                }
                UnicastWord::AcknowledgeCancel(_) => {}
                UnicastWord::Grant(..) => self.events.reject(PtpRejection::NotAsked),
            }
        }
        if answer.as_slice().len() > length_before {
            answer.set_sequence(self.signals);
            self.signals = self.signals.wrapping_add(1);
            self.outbox.push(PtpTransmit { octets: answer, channel: Channel::General, audience, from, ticket: None });
        }
        Ok(())
    }

    /// The answer to a request; 0 s refuses (16.1.4.2.4).
    fn grant(
        &mut self,
        client: Client,
        (service, terms): (UnicastService, UnicastTerms),
        now: Moment<Mono>,
    ) -> UnicastWord {
        let shortest = match service {
            UnicastService::Announce => self.config.log_announce_interval,
            UnicastService::Sync => self.config.log_sync_interval,
            UnicastService::DelayResp => self.config.log_delay_interval,
        };
        let seconds = terms.seconds.min(self.config.grant_seconds_max);
        let wanted = UnicastTerms { seconds, ..terms };
        let is_possible = self.is_serving() && (shortest..=6).contains(&terms.log_interval) && seconds > 0;
        let refused = UnicastWord::Grant(service, UnicastTerms { seconds: 0, ..terms });
        if !is_possible {
            self.events.push(PtpEvent::Denied(service));
            return refused;
        }
        match self.clients.grant(client, (service, wanted), now) {
            Ok(()) => {
                self.events.push(PtpEvent::Granted(service, wanted));
                UnicastWord::Grant(service, wanted)
            }
            Err(reason) => {
                self.events.reject(reason);
                refused
            }
        }
    }
}
