//! What an Announce message says, which of two is better, and what that is worth as a server's claim.

use crate::{ClockAccuracy, ClockClass, ClockIdentity, ClockQuality, PortIdentity, PtpFlags, ScaledVariance};
use core::cmp::Ordering;
use ffclock_units::{Bound, Leap, ServerIdentity, ServerQuality, Span};

/// Where a grandmaster has its time from (IEEE 1588-2019, 7.6.2.8, table 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeSource(pub u8);

impl TimeSource {
    /// A clock of its own that is set by atoms.
    pub const ATOMIC: TimeSource = TimeSource(0x10);
    /// Satellites.
    pub const GNSS: TimeSource = TimeSource(0x20);
    /// Another domain or network of PTP.
    pub const PTP: TimeSource = TimeSource(0x40);
    /// NTP.
    pub const NTP: TimeSource = TimeSource(0x50);
    /// An oscillator of its own, which runs free.
    pub const OSCILLATOR: TimeSource = TimeSource(0xa0);
}

/// What an Announce message says about the grandmaster and the way to it (IEEE 1588-2019, 13.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// TAI - UTC [s], right if the flag says so.
    pub utc_offset: i16,
    /// Set by an administrator: the smallest wins, before all else.
    pub priority_1: u8,
    /// What the grandmaster claims of its clock.
    pub quality: ClockQuality,
    /// Set by an administrator: the smallest wins among clocks of one quality.
    pub priority_2: u8,
    /// The clock that all the others follow.
    pub grandmaster: ClockIdentity,
    /// Boundary clocks between it and the sender.
    pub steps_removed: u16,
    /// Where the grandmaster has its time from.
    pub time_source: TimeSource,
    /// Leap seconds, timescale and traceability; no flag of the second octet is left out.
    pub flags: PtpFlags,
}

/// The flags that belong to what is announced, and not to the message.
const OWN_FLAGS: u16 = 0x00ff;
/// The largest stratum of a synchronised server.
const STRATUM_MAX: u16 = 15;

impl Announcement {
    pub(crate) fn from_octets(octets: [u8; 20], flags: PtpFlags) -> Self {
        let [a, b, _, priority_1, class, accuracy, c, d, priority_2, rest @ ..] = octets;
        let [e, f, g, h, i, j, k, l, m, n, time_source] = rest;
        let variance = ScaledVariance(u16::from_be_bytes([c, d]));
        Announcement {
            utc_offset: i16::from_be_bytes([a, b]),
            priority_1,
            quality: ClockQuality { class: ClockClass(class), accuracy: ClockAccuracy(accuracy), variance },
            priority_2,
            grandmaster: ClockIdentity::from_octets([e, f, g, h, i, j, k, l]),
            steps_removed: u16::from_be_bytes([m, n]),
            time_source: TimeSource(time_source),
            flags: PtpFlags(flags.0 & OWN_FLAGS),
        }
    }

    pub(crate) fn octets(&self) -> [u8; 20] {
        let ([a, b], [c, d]) = (self.utc_offset.to_be_bytes(), self.quality.variance.0.to_be_bytes());
        let ([m, n], [e, f, g, h, i, j, k, l]) = (self.steps_removed.to_be_bytes(), self.grandmaster.octets());
        let (class, accuracy) = (self.quality.class.0, self.quality.accuracy.0);
        let source = self.time_source.0;
        [a, b, 0, self.priority_1, class, accuracy, c, d, self.priority_2, e, f, g, h, i, j, k, l, m, n, source]
    }

    /// Whether the times are TAI; otherwise they are of an arbitrary scale (7.2.1).
    pub const fn is_tai(&self) -> bool {
        self.flags.has(PtpFlags::PTP_TIMESCALE)
    }

    /// The leap second at the end of this day, in the terms of our records.
    pub const fn leap(&self) -> Leap {
        match (self.flags.has(PtpFlags::LEAP_61), self.flags.has(PtpFlags::LEAP_59)) {
            (true, false) => Leap::Insert,
            (false, true) => Leap::Delete,
            _ => Leap::None,
        }
    }

    /// Whether this one, of `own`, is better than the other: then it is `Less`. The data set comparison for a clock
    /// with one port (9.3.4): of two grandmasters the better claim counts, of one grandmaster the shorter way, and at
    /// last the smaller identity.
    pub fn compare(&self, own: PortIdentity, (other, of_other): (&Self, PortIdentity)) -> Ordering {
        if self.grandmaster == other.grandmaster {
            return (self.steps_removed, own).cmp(&(other.steps_removed, of_other));
        }
        let rank = |one: &Self| {
            let ClockQuality { class, accuracy, variance } = one.quality;
            (one.priority_1, class, accuracy, variance, one.priority_2, one.grandmaster)
        };
        rank(self).cmp(&rank(other))
    }
}

/// A master, and what it announced last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Master {
    /// The port that announces and sends Sync.
    pub port: PortIdentity,
    /// What it says.
    pub announcement: Announcement,
}

/// What is assumed where masters claim nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimRules {
    /// The largest error of a grandmaster that claims none.
    pub accuracy_unclaimed: Bound,
    /// The largest error that each boundary clock adds.
    pub step_error: Bound,
}

impl Master {
    /// The claim in the terms of our records, as the estimator and the quorum know it.
    ///
    /// The stratum is 1 for a grandmaster that is traceable to a primary reference, 2 for any other, and 1 more for
    /// each boundary clock. The reference identifier folds grandmaster and parent, because another way to the same
    /// grandmaster has other errors.
    pub fn server_quality(&self, rules: &ClaimRules) -> ServerQuality {
        let Announcement { quality, steps_removed, grandmaster, .. } = self.announcement;
        let first = if quality.class.is_traceable() { 1 } else { 2 };
        let stratum = u8::try_from(steps_removed.saturating_add(first).min(STRATUM_MAX)).unwrap_or(u8::MAX);
        let reference_id = grandmaster.folded().rotate_left(16) ^ self.port.clock.folded();
        // A code that is no limit, such as that of more than 10 s, is no absence of a claim.
        let accuracy = match quality.accuracy {
            ClockAccuracy::UNKNOWN => rules.accuracy_unclaimed,
            claimed => claimed.as_bound().unwrap_or(Bound::UNKNOWN),
        };
        let steps = rules.step_error.as_span().units().saturating_mul(i128::from(steps_removed));
        let root_distance = accuracy + Bound::of(Span::from_units(steps));
        let identity = ServerIdentity { stratum, reference_id };
        ServerQuality { identity, leap: self.announcement.leap(), root_distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(last: u8) -> PortIdentity {
        PortIdentity { clock: ClockIdentity::from_octets([0, 0, 0, 0, 0, 0, 0, last]), port: 1 }
    }

    fn announcement() -> Announcement {
        let quality = ClockQuality {
            class: ClockClass::PRIMARY,
            accuracy: ClockAccuracy(0x21),
            variance: ScaledVariance(0x4e5d),
        };
        Announcement {
            utc_offset: 37,
            priority_1: 128,
            quality,
            priority_2: 128,
            grandmaster: port(50).clock,
            steps_removed: 0,
            time_source: TimeSource::GNSS,
            flags: PtpFlags::PTP_TIMESCALE,
        }
    }

    /// IEEE 1588-2019, 9.3.4, figure 34: priority 1, class, accuracy, variance, priority 2, identity, in this order.
    #[test]
    fn the_first_difference_decides() {
        let fields: [fn(&mut Announcement, i8); 6] = [
            |other, step| other.priority_1 = 128_u8.saturating_add_signed(step),
            |other, step| other.quality.class = ClockClass(6_u8.saturating_add_signed(step)),
            |other, step| other.quality.accuracy = ClockAccuracy(0x21_u8.saturating_add_signed(step)),
            |other, step| other.quality.variance = ScaledVariance(0x4e5d_u16.saturating_add_signed(step.into())),
            |other, step| other.priority_2 = 128_u8.saturating_add_signed(step),
            |other, step| other.grandmaster = port(50_u8.saturating_add_signed(step)).clock,
        ];
        let best = announcement();
        for place in 0..fields.len() {
            let mut worse = best;
            fields[place](&mut worse, 1);
            // What comes later in the order does not count, even if all of it is better.
            fields[place + 1..].iter().for_each(|improve| improve(&mut worse, -1));
            assert_eq!(best.compare(port(50), (&worse, port(1))), Ordering::Less, "{place}");
            assert_eq!(worse.compare(port(1), (&best, port(50))), Ordering::Greater, "{place}");
        }
    }

    /// IEEE 1588-2019, 9.3.4, figure 35: of one grandmaster the shorter way, then the smaller identity of the sender.
    #[test]
    fn of_one_grandmaster_the_shorter_way_is_better() {
        let (near, far) = (announcement(), Announcement { steps_removed: 1, priority_1: 0, ..announcement() });
        assert_eq!(near.compare(port(9), (&far, port(1))), Ordering::Less);
        assert_eq!(near.compare(port(9), (&near, port(1))), Ordering::Greater);
        assert_eq!(near.compare(port(9), (&near, port(9))), Ordering::Equal);
    }

    #[test]
    fn a_claim_has_the_accuracy_and_the_steps() {
        let rules = ClaimRules { accuracy_unclaimed: Bound::UNKNOWN, step_error: Bound::of(Span::from_micros(1)) };
        let mut master = Master { port: port(50), announcement: announcement() };
        let claim = master.server_quality(&rules);
        assert_eq!(claim.identity.stratum, 1);
        assert!(claim.root_distance.as_span() - Span::from_nanos(100) < Span::from_units(9));
        master.announcement.steps_removed = 3;
        let further = master.server_quality(&rules);
        assert_eq!(further.identity.stratum, 4);
        assert!(further.root_distance >= claim.root_distance + Bound::of(Span::from_nanos(2_999)));
        master.announcement.steps_removed = 0;
        master.announcement.quality.accuracy = ClockAccuracy::UNKNOWN;
        assert_eq!(master.server_quality(&rules).root_distance, Bound::UNKNOWN);
        let assumed = ClaimRules { accuracy_unclaimed: Bound::of(Span::from_micros(10)), ..rules };
        assert_eq!(master.server_quality(&assumed).root_distance, assumed.accuracy_unclaimed);
        for disowned in [ClockAccuracy::BEYOND, ClockAccuracy(0), ClockAccuracy(0x32), ClockAccuracy(0x80)] {
            master.announcement.quality.accuracy = disowned;
            assert_eq!(master.server_quality(&assumed).root_distance, Bound::UNKNOWN, "{disowned:?}");
        }
        let other_way = Master { port: port(7), ..master };
        assert_ne!(other_way.server_quality(&rules).identity, master.server_quality(&rules).identity);
    }
}
