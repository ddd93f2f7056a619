//! Whose messages are taken: the networks and the rate limit of the whole server, for all that is answered.
//!
//! Announce messages pass: a network that is not served may have a better master, and two masters in one domain are
//! worse than one. What they can do is bounded by the table of foreign masters. Frames come from no network: all on
//! the link are served, each device at a rate of its own.

use super::sockets::PtpSender;
use crate::limit::{Chance, LimitTime, RateTable};
use crate::policy::Policy;
use ffclock_units::{Moment, Mono};
use std::io;
use std::net::{IpAddr, Ipv6Addr};

/// Kinds of messages (IEEE 1588-2019, table 36).
const DELAY_REQ: u8 = 1;
const PDELAY_REQ: u8 = 2;
const ANNOUNCE: u8 = 11;
const SIGNALING: u8 = 12;

/// How many messages had which outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AdmissionCounts {
    /// From networks that are not served.
    pub(super) denied: u64,
    /// Beyond the rate.
    pub(super) limited: u64,
    /// Beyond the rate, and answered nevertheless.
    pub(super) leaked: u64,
}

/// The judgement of one port.
pub(super) struct Admission {
    table: RateTable,
    chance: Chance,
    counts: AdmissionCounts,
}

impl Admission {
    /// # Errors
    /// There are no random numbers.
    pub(super) fn new(table_bytes: usize) -> io::Result<Self> {
        Ok(Admission { table: RateTable::new(table_bytes), chance: Chance::new()?, counts: AdmissionCounts::default() })
    }

    /// Whether a message is handed to the grandmaster.
    pub(super) fn admits(&mut self, (octets, from): (&[u8], PtpSender), now: Moment<Mono>, policy: &Policy) -> bool {
        if !matches!(kind(octets), Some(DELAY_REQ | PDELAY_REQ | SIGNALING)) {
            return true;
        }
        if matches!(from, PtpSender::Host(ip) if !policy.access.is_served(ip)) {
            self.counts.denied += 1;
            return false;
        }
        if self.table.admit(network_of(from), LimitTime::from_seconds(now.since_origin().as_seconds()), &policy.limit) {
            return true;
        }
        let is_leaked = self.chance.one_in(policy.leak);
        *(if is_leaked { &mut self.counts.leaked } else { &mut self.counts.limited }) += 1;
        is_leaked
    }

    pub(super) fn counts(&self) -> AdmissionCounts {
        self.counts
    }

    pub(super) fn is_announce(octets: &[u8]) -> bool {
        kind(octets) == Some(ANNOUNCE)
    }

    /// Whether it counts when the message came.
    pub(super) fn is_timed(octets: &[u8]) -> bool {
        matches!(kind(octets), Some(DELAY_REQ | PDELAY_REQ))
    }
}

/// Where the rate of a sender is counted. Networks of IPv6 are counted by their first half.
fn network_of(from: PtpSender) -> IpAddr {
    match from {
        PtpSender::Host(ip) => ip,
        PtpSender::Device([a, b, c, d, e, f]) => {
            Ipv6Addr::from([0, 0, a, b, c, d, e, f, 0, 0, 0, 0, 0, 0, 0, 0]).into()
        }
    }
}

fn kind(octets: &[u8]) -> Option<u8> {
    octets.first().map(|first| first & 0x0f)
}
