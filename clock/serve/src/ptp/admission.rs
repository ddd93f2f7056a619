//! Whose messages are taken: the networks and the rate limit of the whole server, for all that is answered.
//!
//! Announce messages pass: a network that is not served may have a better master, and two masters in one domain are
//! worse than none. What they can do is bounded by the table of foreign masters.

use crate::limit::{Chance, LimitTime, RateTable};
use crate::policy::Policy;
use ffclock_units::{Moment, Mono};
use std::io;
use std::net::IpAddr;

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
    pub(super) fn admits(&mut self, (octets, from): (&[u8], IpAddr), now: Moment<Mono>, policy: &Policy) -> bool {
        if !matches!(kind(octets), Some(DELAY_REQ | PDELAY_REQ | SIGNALING)) {
            return true;
        }
        if !policy.access.is_served(from) {
            self.counts.denied += 1;
            return false;
        }
        if self.table.admit(from, LimitTime::from_seconds(now.since_origin().as_seconds()), &policy.limit) {
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

fn kind(octets: &[u8]) -> Option<u8> {
    octets.first().map(|first| first & 0x0f)
}
