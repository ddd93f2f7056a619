//! What is to be sent, and the ticket that brings its stamp back.

use crate::octets::PtpOctets;
use crate::{NetworkAddress, PtpBody, PtpMessage};
use alloc::collections::VecDeque;

/// Which of the two ports a message is sent from and to (annexes C and D); over Ethernet there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Port 319: the moment at which it passes is of importance.
    Event,
    /// Port 320.
    General,
}

/// For whom a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All clocks: 224.0.1.129, ff0e::181, 01-1b-19-00-00-00.
    Everyone,
    /// The neighbour on the link: 224.0.0.107, ff02::6b, 01-80-c2-00-00-0e.
    Neighbour,
    /// One clock.
    One(NetworkAddress),
}

/// The two ends of the way of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) audience: Audience,
    /// The address of ours that it leaves from; `None` where any will do.
    pub(crate) from: Option<NetworkAddress>,
}

impl From<Audience> for Ends {
    fn from(audience: Audience) -> Self {
        Ends { audience, from: None }
    }
}

/// Brings the stamp of one message back. It cannot be copied, so a stamp cannot end up with another message.
#[derive(Debug, PartialEq, Eq)]
pub struct PtpTicket(pub(crate) TicketKind);

/// What a stamp is for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TicketKind {
    DelayReq(u16),
    LinkRequest(u16),
    LinkResponse(u32),
    Sync(u16, Ends),
}

/// A message to send.
#[derive(Debug, PartialEq, Eq)]
pub struct PtpTransmit {
    /// The whole message.
    pub octets: PtpOctets,
    /// From and to which port.
    pub channel: Channel,
    /// For whom.
    pub audience: Audience,
    /// The address of ours that it is to leave from, which is that which was asked; `None` where any will do.
    pub from: Option<NetworkAddress>,
    /// To be handed back with the stamp of the message; `None` where no stamp is needed.
    pub ticket: Option<PtpTicket>,
}

impl PtpTransmit {
    /// A message of which no stamp is needed.
    pub(crate) fn general(message: &PtpMessage, ends: impl Into<Ends>) -> Self {
        debug_assert!(message.body.kind() >= 8, "the others are events");
        let Ends { audience, from } = ends.into();
        PtpTransmit { octets: message.encode(), channel: Channel::General, audience, from, ticket: None }
    }

    /// A message whose stamp comes back with a ticket.
    pub(crate) fn event(message: &PtpMessage, ends: impl Into<Ends>, ticket: TicketKind) -> Self {
        debug_assert!(!matches!(message.body, PtpBody::Announce(_)), "an Announce has no stamp");
        let (Ends { audience, from }, ticket) = (ends.into(), Some(PtpTicket(ticket)));
        PtpTransmit { octets: message.encode(), channel: Channel::Event, audience, from, ticket }
    }
}

/// Messages that wait to be fetched. A caller that drains after each call never fills it.
#[derive(Debug, Default)]
pub(crate) struct Outbox(VecDeque<PtpTransmit>);

impl Outbox {
    pub(crate) const CAPACITY: usize = 64;

    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= Self::CAPACITY
    }

    /// Drops the message if nothing fetches.
    pub(crate) fn push(&mut self, transmit: PtpTransmit) {
        if !self.is_full() {
            self.0.push_back(transmit);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<PtpTransmit> {
        self.0.pop_front()
    }
}
