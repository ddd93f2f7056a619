//! What is configured of a follower.

use crate::{ClaimRules, ClockClass, ClockIdentity, NetworkAddress};
use ffclock_units::{Bound, Moment, Period, Span, Tai};

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// To the group addresses of PTP (annexes C, D and E).
    Multicast,
    /// As by multicast, but for Delay_Req: it goes to the master alone, at the address from which its Syncs come
    /// ([`Follower::handle_message_from`](crate::Follower::handle_message_from)), and so does its answer. linuxptp
    /// calls this `hybrid_e2e`.
    Hybrid,
    /// To one master, which sends what it was asked for (unicast negotiation, 16.1). Only its messages may be handed
    /// in.
    Unicast(NetworkAddress),
}

/// How the way of messages is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayMechanism {
    /// By Delay_Req to the master (11.3).
    EndToEnd,
    /// By Pdelay_Req to the neighbour on the link; switches on the way do the same and correct for it (11.4).
    PeerToPeer,
}

/// What the times of a master are that does not claim the PTP timescale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArbitraryTimescale {
    /// Not known: its messages are rejected.
    Refuse,
    /// UTC as POSIX counts it, as ptp4l serves the system clock with software stamps.
    Utc,
}

/// The configuration of a follower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FollowerConfig {
    /// The domain (7.1).
    pub domain: u8,
    /// How messages travel.
    pub delivery: Delivery,
    /// How their way is measured.
    pub mechanism: DelayMechanism,
    /// What an arbitrary timescale is.
    pub arbitrary: ArbitraryTimescale,
    /// The only grandmaster that may be followed; `None` leaves the choice to the best-master algorithm.
    pub grandmaster: Option<ClockIdentity>,
    /// The largest class of a grandmaster that may be followed. 255 is that of clocks that are never masters.
    pub clock_class_max: ClockClass,
    /// The most boundary clocks between a grandmaster that may be followed and us; at most 254 (9.3.2.5).
    pub steps_removed_max: u16,
    /// No master's time is earlier than this, nor later by [`ERA`] or more.
    pub earliest: Moment<Tai>,
    /// Announce intervals without a message after which a master is gone (announceReceiptTimeout, 7.7.3.1); 2 to 255.
    pub announce_timeout: u32,
    /// The Announce interval to ask for, and to assume where messages do not say it; log2 of seconds, -7 to 6.
    pub log_announce_interval: i8,
    /// The Sync interval to ask for; log2 of seconds, -7 to 6.
    pub log_sync_interval: i8,
    /// The least time between two requests, until the master says another; log2 of seconds, -7 to 6.
    pub log_delay_interval: i8,
    /// For how long to ask for unicast messages [s]; 10 to 1000 (16.1.4.1.5).
    pub grant_seconds: u32,
    /// How long to wait for a Follow_Up or a response; 10 ms to 10 s.
    pub reply_timeout: Span,
    /// The largest correction, of either sign, that is believed.
    pub correction_max: Bound,
    /// What is assumed where masters claim nothing.
    pub claims: ClaimRules,
    /// The counter's period, right within [`PERIOD_TOLERANCE`]: for the time for which we hold a neighbour's request,
    /// and to see delays that cannot be.
    pub period: Period,
}

/// An announcement that has come over more boundary clocks does not qualify (9.3.2.5).
pub(crate) const STEPS_REMOVED_MAX: u16 = 254;

/// How far the nominal period may be off, as one part of this many: 1/4000 is 250 ppm.
pub const PERIOD_TOLERANCE: i128 = 4000;

/// How far a master's time may be from the earliest one: as long as an era of NTP, 136 years.
pub const ERA: Span = Span::from_secs(1 << 32);

impl FollowerConfig {
    /// The defaults of the standard's own profile (annex I), for a counter of this period.
    pub const fn of(period: Period) -> Self {
        FollowerConfig {
            domain: 0,
            delivery: Delivery::Multicast,
            mechanism: DelayMechanism::EndToEnd,
            arbitrary: ArbitraryTimescale::Refuse,
            grandmaster: None,
            clock_class_max: ClockClass(254),
            steps_removed_max: 254,
            earliest: Moment::from_origin(Span::ZERO),
            announce_timeout: 3,
            log_announce_interval: 1,
            log_sync_interval: 0,
            log_delay_interval: 0,
            grant_seconds: 300,
            reply_timeout: Span::from_secs(1),
            correction_max: Bound::of(Span::from_millis(100)),
            claims: ClaimRules { accuracy_unclaimed: Bound::UNKNOWN, step_error: Bound::of(Span::from_micros(1)) },
            period,
        }
    }

    /// This configuration with every value clamped to its range.
    pub(crate) fn within_ranges(mut self) -> Self {
        self.steps_removed_max = self.steps_removed_max.min(STEPS_REMOVED_MAX);
        self.announce_timeout = self.announce_timeout.clamp(2, 255);
        for log in [&mut self.log_announce_interval, &mut self.log_sync_interval, &mut self.log_delay_interval] {
            *log = (*log).clamp(-7, 6);
        }
        self.grant_seconds = self.grant_seconds.clamp(10, 1000);
        self.reply_timeout = self.reply_timeout.clamp(Span::from_millis(10), Span::from_secs(10));
        self
    }
}
