//! Requests: their nonces, and the last few of them.

use crate::Rejection;
use crate::reply::ServerClaim;
use alloc::collections::VecDeque;
use ffclock_units::{Moment, Mono, Stamp};
use ffclock_wire::{HEADER_BYTES, NtpTimestamp, Packet, Version};

/// The random numbers that identify the reply to a request. They must come from a generator that an attacker cannot
/// predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce {
    transmit: NtpTimestamp,
    /// The receive field of an interleaved request, which an interleaved reply repeats; missing if there is none.
    receive: NtpTimestamp,
}

impl Nonce {
    /// From 64 random bits. Zero becomes one, because a transmit field of zero means a missing time. A request with
    /// this nonce is a basic one.
    pub const fn from_random(bits: u64) -> Self {
        let transmit = NtpTimestamp::from_raw(if bits == 0 { 1 } else { bits });
        Nonce { transmit, receive: NtpTimestamp::MISSING }
    }

    /// From two times 64 random bits, for a request that may be interleaved. Its two fields must differ, or the reply
    /// would not show its mode (RFC 9769, section 2): two equal numbers make a basic request.
    pub const fn from_two_random(first: u64, second: u64) -> Self {
        let basic = Nonce::from_random(first);
        let receive = if second == basic.transmit.raw() { 0 } else { second };
        Nonce { receive: NtpTimestamp::from_raw(receive), ..basic }
    }

    /// Whether it is enough for an interleaved request.
    pub(crate) const fn is_double(self) -> bool {
        !self.receive.is_missing()
    }
}

/// What the times of a reply mean, as its origin shows (RFC 9769, section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// When the request arrived, and when this reply left.
    Basic,
    /// When the request arrived, and when the reply before this one left.
    Interleaved,
}

/// The right to state, once, when a request left. It can be neither copied nor made:
/// ```compile_fail
/// fn twice(ticket: ffclock_source::Ticket) -> (ffclock_source::Ticket, ffclock_source::Ticket) {
///     (ticket.clone(), ticket)
/// }
/// ```
#[must_use = "without its ticket the request's stamp cannot be returned, and the exchange will not complete"]
#[derive(Debug)]
pub struct Ticket {
    number: u64,
    nonce: Nonce,
}

/// A request to send now.
#[derive(Debug)]
pub struct Transmit {
    /// The whole datagram.
    pub bytes: [u8; HEADER_BYTES],
    /// To be returned with the stamp of the request; to be dropped if there is no stamp.
    pub ticket: Ticket,
}

/// A good reply, and the stamp of its arrival.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AcceptedReply {
    pub(crate) claim: ServerClaim,
    pub(crate) received: Stamp,
}

#[derive(Clone, Copy, Debug)]
enum RequestPhase {
    /// Waits for the reply.
    Waiting,
    /// Has its reply and waits for its sent stamp.
    Answered(AcceptedReply),
    /// Finished: it became an exchange, or the reply was not usable.
    Settled,
    /// Given up at its deadline.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    number: u64,
    nonce: Nonce,
    /// Whether the reply may be interleaved.
    is_interleaved: bool,
    deadline: Moment<Mono>,
    sent: Option<Stamp>,
    phase: RequestPhase,
}

impl OpenRequest {
    /// The mode of a reply with this origin; `None` if it is no reply to this request.
    fn mode_of_reply(&self, origin: NtpTimestamp) -> Option<ReplyMode> {
        if origin == self.nonce.transmit {
            Some(ReplyMode::Basic)
        } else if self.is_interleaved && origin == self.nonce.receive {
            Some(ReplyMode::Interleaved)
        } else {
            None
        }
    }
}

/// How a request ended that was open at its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    Unanswered,
    WithoutStamp,
}

/// The last few requests, the newest at the back. Only the newest can be open; the others are kept to classify packets
/// that arrive too late.
#[derive(Debug)]
pub(crate) struct Requests {
    ring: VecDeque<OpenRequest>,
    next_number: u64,
}

impl Requests {
    const KEPT: usize = 4;

    pub(crate) fn new() -> Self {
        Requests { ring: VecDeque::with_capacity(Self::KEPT), next_number: 0 }
    }

    /// Forgets all requests. The numbering continues, so that earlier tickets match nothing.
    pub(crate) fn clear(&mut self) {
        self.ring.clear();
    }

    /// Makes the next request, to be answered by `deadline`. With a `reference`, the receive field of the last reply,
    /// it is an interleaved one, which `nonce` must be enough for.
    pub(crate) fn open(
        &mut self,
        nonce: Nonce,
        deadline: Moment<Mono>,
        (version, reference): (Version, Option<NtpTimestamp>),
    ) -> Transmit {
        debug_assert!(reference.is_none() || nonce.is_double(), "an interleaved request has two random fields");
        debug_assert!(self.deadline().is_none(), "only one request is open");
        let number = self.next_number;
        self.next_number = number.saturating_add(1);
        if self.ring.len() >= Self::KEPT {
            self.ring.pop_front();
        }
        let basic = Packet::request(version, nonce.transmit);
        let (is_interleaved, packet) = match reference {
            Some(origin) => (true, Packet { origin, receive: nonce.receive, ..basic }),
            None => (false, basic),
        };
        let phase = RequestPhase::Waiting;
        self.ring.push_back(OpenRequest { number, nonce, is_interleaved, deadline, sent: None, phase });
        Transmit { bytes: packet.encode(), ticket: Ticket { number, nonce } }
    }

    /// The deadline of the open request; `None` when none is open.
    pub(crate) fn deadline(&self) -> Option<Moment<Mono>> {
        let newest = self.ring.back()?;
        matches!(newest.phase, RequestPhase::Waiting | RequestPhase::Answered(_)).then_some(newest.deadline)
    }

    /// Gives up the open request if its deadline has passed.
    pub(crate) fn expire(&mut self, now: Moment<Mono>) -> Option<Expired> {
        let newest = self.ring.back_mut().filter(|newest| newest.deadline <= now)?;
        let (phase, expired) = match newest.phase {
            RequestPhase::Waiting => (RequestPhase::Lost, Expired::Unanswered),
            RequestPhase::Answered(_) => (RequestPhase::Settled, Expired::WithoutStamp),
            RequestPhase::Settled | RequestPhase::Lost => return None,
        };
        newest.phase = phase;
        Some(expired)
    }

    /// Whether a reply with this origin answers the open request, and in which mode.
    ///
    /// # Errors
    /// The kind of reply that it is otherwise.
    pub(crate) fn recognise(&self, origin: NtpTimestamp) -> Result<ReplyMode, Rejection> {
        let mut asked = self.ring.iter().rev().filter_map(|request| Some((request, request.mode_of_reply(origin)?)));
        let (request, mode) = asked.next().ok_or(Rejection::WrongOrigin)?;
        let mut later = self.ring.iter().filter(|other| other.number > request.number);
        let is_overtaken = later.any(|other| matches!(other.phase, RequestPhase::Answered(_) | RequestPhase::Settled));
        Err(match (request.phase, is_overtaken) {
            (RequestPhase::Waiting, _) => {
                let newest = self.ring.back().map(|newest| newest.number);
                debug_assert!(newest == Some(request.number), "what is done with the answer is done to the newest");
                return Ok(mode);
            }
            (RequestPhase::Answered(_) | RequestPhase::Settled, false) => Rejection::Duplicate,
            (RequestPhase::Answered(_) | RequestPhase::Settled, true) => Rejection::Replayed,
            (RequestPhase::Lost, false) => Rejection::Late,
            (RequestPhase::Lost, true) => Rejection::OutOfOrder,
        })
    }

    /// The reply to the open request has arrived.
    pub(crate) fn answer(&mut self, answer: AcceptedReply) {
        self.set_newest(RequestPhase::Answered(answer));
    }

    /// The open request is finished.
    pub(crate) fn settle(&mut self) {
        self.set_newest(RequestPhase::Settled);
    }

    fn set_newest(&mut self, phase: RequestPhase) {
        debug_assert!(self.deadline().is_some(), "a request is open");
        if let Some(newest) = self.ring.back_mut() {
            newest.phase = phase;
        }
    }

    /// Stores the stamp of a request. A request that is no longer kept needs no stamp.
    pub(crate) fn redeem(&mut self, ticket: Ticket, sent: Stamp) {
        let of_ticket = |request: &&mut OpenRequest| request.number == ticket.number && request.nonce == ticket.nonce;
        if let Some(request) = self.ring.iter_mut().rev().find(of_ticket) {
            debug_assert!(request.sent.is_none(), "a ticket cannot be copied");
            request.sent = Some(sent);
        }
    }

    /// Finishes the open request and returns its sent stamp and answer, if it has both.
    pub(crate) fn complete(&mut self) -> Option<(Stamp, AcceptedReply)> {
        let newest = self.ring.back_mut()?;
        let (RequestPhase::Answered(answer), Some(sent)) = (newest.phase, newest.sent) else { return None };
        newest.phase = RequestPhase::Settled;
        Some((sent, answer))
    }
}
