//! The checks of a reply that are about the packet alone (RFC 5905, section 8 and appendix A, packet()).
//!
//! Whether the reply fits the request, and whether the round trip is longer than what the server says it held the
//! request, is not decided here: the first is the ring's part, the second needs a period and is the estimator's.

use crate::Rejection;
use ffclock_units::{Bound, Moment, Server, ServerIdentity, ServerQuality};
use ffclock_wire::{KissCode, Packet};

/// Servers that are synchronised are at most this far from a primary source.
const STRATUM_MAX: u8 = 15;

/// What a server says in a reply that may be used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) server_in: Moment<Server>,
    pub(crate) server_out: Moment<Server>,
    pub(crate) quality: ServerQuality,
}

/// Why a reply may not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    Kiss(KissCode),
    Rejected(Rejection),
}

/// Reads the claim out of a reply; `pivot` names the era of its times.
pub(crate) fn examine(packet: &Packet, pivot: Moment<Server>, distance_max: Bound) -> Result<Claim, Unusable> {
    // First of all, because a refusal fills no other field and may say "unsynchronised" there.
    if let Some(code) = packet.kiss_code() {
        return Err(Unusable::Kiss(code));
    }
    read_claim(packet, pivot, distance_max).map_err(Unusable::Rejected)
}

fn read_claim(packet: &Packet, pivot: Moment<Server>, distance_max: Bound) -> Result<Claim, Rejection> {
    let leap = packet.leap.announced().ok_or(Rejection::Unsynchronised)?;
    if packet.stratum > STRATUM_MAX {
        return Err(Rejection::Stratum);
    }
    if packet.receive.is_missing() || packet.transmit.is_missing() {
        return Err(Rejection::TimestampMissing);
    }
    let server_in = packet.receive.to_server(pivot);
    // Seen from the first time, so that the two never land in different eras.
    let server_out = packet.transmit.to_server(server_in);
    if server_out < server_in {
        return Err(Rejection::ServerTimesReversed);
    }
    let root_distance = packet.root_distance();
    if root_distance > distance_max {
        return Err(Rejection::RootDistance);
    }
    let identity = ServerIdentity { stratum: packet.stratum, reference_id: packet.reference_id };
    Ok(Claim { server_in, server_out, quality: ServerQuality { identity, leap, root_distance } })
}
