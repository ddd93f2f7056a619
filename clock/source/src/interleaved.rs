//! The interleaved mode (RFC 9769, section 2): what a reply leaves for the next one.
//!
//! A server can write into a reply only a time read before the reply left. Its kernel stamps the reply when it leaves,
//! so an interleaved reply carries, in place of its own, the kernel's stamp of the reply before it. The exchange of an
//! interleaved reply is therefore held until the next reply completes it: each exchange has the four times of one
//! request and one reply, as in the basic mode, in the same order and under the same proofs, only one poll later. If
//! the next reply does not complete it, it is released with the earliest time at which its reply can have left, the
//! time at which its request arrived: that is true too, and no exchange is lost.
//! `docs/decisions/0013-interleaved-mode.md` says why no other form was chosen.
//!
//! Dialogues with an interleaving server are in `tests/conversation/interleaving.rs`.

use crate::reply::ServerClaim;
use crate::request::AcceptedReply;
use ffclock_units::{Exchange, LeapTable, Moment, Server, Span, Stamp};
use ffclock_wire::NtpTimestamp;

/// Requests that name the same reply; after that a server would have to remember too long (RFC 9769, section 2: a
/// client limits them).
const TRIES: u32 = 4;

/// An exchange is completed one poll late. With a longer poll than this the clock would lose more by the age of the
/// exchange than it gains by the server's better time.
pub(crate) const LONGEST_POLL: Span = Span::from_secs(64);

/// A request with its reply, before it is an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) sent: Stamp,
    pub(crate) reply: AcceptedReply,
}

impl Answered {
    /// The exchange, the server's times being converted by `leaps`.
    pub(crate) fn exchange(self, leaps: &LeapTable) -> Exchange {
        let AcceptedReply { claim, received } = self.reply;
        Exchange {
            sent: self.sent,
            server_in: leaps.tai_from_server(claim.server_in),
            server_out: leaps.tai_from_server(claim.server_out),
            received,
            server: claim.quality,
        }
    }

    /// With the time at which its reply left, unless that cannot be true: a reply leaves after its request arrived, and
    /// before the `next` one did, which was sent after it.
    fn left_at(mut self, server_out: Moment<Server>, next: Moment<Server>) -> Self {
        let claim = &mut self.reply.claim;
        if server_out >= claim.server_in && server_out <= next {
            claim.server_out = server_out;
        }
        self
    }
}

/// What the last replies leave for the next request and the next reply.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interleaving {
    /// Names the last reply.
    reference: Option<NtpTimestamp>,
    /// How many requests have named it.
    tries: u32,
    /// Waits for the time at which its reply left.
    held: Option<Answered>,
}

impl Interleaving {
    /// What the next request names the last reply by; `None` if there is no reply to be named.
    pub(crate) fn name_reply(&mut self) -> Option<NtpTimestamp> {
        self.tries = self.tries.saturating_add(1);
        self.reference.filter(|_| self.tries <= TRIES)
    }

    /// A usable reply has come, and says when the one before it left. Returns the exchange that was held, which it
    /// completes or at least ends.
    pub(crate) fn note_reply(&mut self, claim: &ServerClaim, previous_out: Option<Moment<Server>>) -> Option<Answered> {
        (self.reference, self.tries) = (Some(claim.reference), 0);
        let held = self.held.take()?;
        Some(previous_out.map_or(held, |server_out| held.left_at(server_out, claim.server_in)))
    }

    /// Holds the exchange of an interleaved reply.
    pub(crate) fn hold(&mut self, answered: Answered) {
        debug_assert!(self.held.is_none(), "the reply to the next request ends what is held");
        self.held = Some(answered);
    }

    /// No usable reply came: what is held will not be completed.
    pub(crate) fn release(&mut self) -> Option<Answered> {
        self.held.take()
    }
}
