//! The checks of a reply that need the packet alone (RFC 5905, section 8 and appendix A, packet()).
//!
//! Whether the server follows this host ([`not_in_loop`]) depends on our own addresses, too.
//!
//! Two checks are made elsewhere. The ring of requests decides whether the reply belongs to a request. The estimator
//! decides whether the round trip is longer than the time that the server held the request, because that needs a
//! period.

use crate::Rejection;
use crate::request::ReplyMode;
use ffclock_units::{Bound, Moment, Server, ServerIdentity, ServerQuality, Span};
use ffclock_wire::{KissCode, NtpTimestamp, Packet};

/// The largest stratum of a synchronised server.
const STRATUM_MAX: u8 = 15;

/// The content of a usable reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerClaim {
    pub(crate) server_in: Moment<Server>,
    /// Of an interleaved reply, which does not say it, the earliest that it can be: `server_in`.
    pub(crate) server_out: Moment<Server>,
    pub(crate) quality: ServerQuality,
    /// `server_in` as it stands in the packet, by which the next request names this reply.
    pub(crate) reference: NtpTimestamp,
    /// When the reply before this one left, if this one is interleaved.
    pub(crate) previous_out: Option<Moment<Server>>,
}

/// Why a reply is not usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Kiss(KissCode),
    Rejected(Rejection),
}

/// Reads the claim of a reply of this mode; `pivot` selects the era of its times.
pub(crate) fn examine(
    (packet, mode): (&Packet, ReplyMode),
    pivot: Moment<Server>,
    distance_max: Bound,
) -> Result<ServerClaim, Unusable> {
    // This check comes first, because a refusal fills no other field and may have "unsynchronised" there.
    if let Some(code) = packet.kiss_code() {
        return Err(Unusable::Kiss(code));
    }
    let claim = read_claim((packet, mode), pivot).map_err(Unusable::Rejected)?;
    if claim.quality.root_distance > distance_max {
        return Err(Unusable::Rejected(Rejection::RootDistance));
    }
    Ok(claim)
}

/// The claim of a server that does not follow this host, which others name so. A server of stratum 1 follows none, and
/// names the kind of its reference.
pub(crate) fn not_in_loop(claim: ServerClaim, own_references: &[u32]) -> Result<ServerClaim, Unusable> {
    let ServerIdentity { stratum, reference_id } = claim.quality.identity;
    match stratum > 1 && own_references.contains(&reference_id) {
        true => Err(Unusable::Rejected(Rejection::Loop)),
        false => Ok(claim),
    }
}

fn read_claim((packet, mode): (&Packet, ReplyMode), pivot: Moment<Server>) -> Result<ServerClaim, Rejection> {
    let leap = packet.leap.announced().ok_or(Rejection::Unsynchronised)?;
    if packet.stratum > STRATUM_MAX {
        return Err(Rejection::Stratum);
    }
    if packet.receive.is_missing() || packet.transmit.is_missing() {
        return Err(Rejection::TimestampMissing);
    }
    let server_in = packet.receive.to_server(pivot);
    // The first time is the pivot of the second, so that the two never land in different eras.
    let transmit = packet.transmit.to_server(server_in);
    let (server_in, server_out, root_distance) = match mode {
        ReplyMode::Basic => in_order(server_in, transmit, packet)?,
        ReplyMode::Interleaved => (server_in, server_in, packet.root_distance()),
    };
    let identity = ServerIdentity { stratum: packet.stratum, reference_id: packet.reference_id };
    let quality = ServerQuality { identity, leap, root_distance };
    let previous_out = (mode == ReplyMode::Interleaved).then_some(transmit);
    Ok(ServerClaim { server_in, server_out, quality, reference: packet.receive, previous_out })
}

/// The two times in their order, and the server's claim about them.
///
/// Below its precision a server fills its times with random bits (RFC 5905, section 6), so one that answers at once may
/// show them reversed by that much. Both packets then passed within the claim of both times, since the second did not
/// pass before the first; so both get the middle, and the claim grows by the whole reversal.
fn in_order(
    server_in: Moment<Server>,
    server_out: Moment<Server>,
    packet: &Packet,
) -> Result<(Moment<Server>, Moment<Server>, Bound), Rejection> {
    let claim = packet.root_distance();
    let reversal = server_in - server_out;
    if reversal <= Span::ZERO {
        return Ok((server_in, server_out, claim));
    }
    if reversal > packet.precision.as_bound().as_span() {
        return Err(Rejection::ServerTimesReversed);
    }
    let middle = server_in.midpoint(server_out);
    Ok((middle, middle, claim + Bound::of(reversal)))
}
