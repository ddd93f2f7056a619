//! What a grandmaster may say of itself, from its status and its bound.

use crate::{
    Announcement, ClockAccuracy, ClockClass, ClockIdentity, ClockQuality, PtpFlags, ScaledVariance, TimeSource,
};
use ffclock_units::{Bound, LeapStep, Span, Status, TaiReading};

/// A leap second is announced for so long before it [s]: the last day before the change.
const LEAP_ANNOUNCED: i64 = 86_400;

/// Up to which bound a class is claimed. G.8275 and the standard's table 4 have the classes; how good a clock of each
/// class is, the operator of a network says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrandmasterLimits {
    /// The largest bound of a synchronised clock that claims class 6.
    pub locked_max: Bound,
    /// The largest bound of a clock in holdover that claims class 7.
    pub holdover_max: Bound,
    /// The class beyond both: 52, or 187 for a clock that another may outrank by its priority.
    pub degraded: ClockClass,
    /// Where the time comes from while the clock is synchronised.
    pub time_source: TimeSource,
}

impl Default for GrandmasterLimits {
    /// 100 us and 1 ms, time from NTP; what followers may expect of a class is for the operator to say.
    fn default() -> Self {
        GrandmasterLimits {
            locked_max: Bound::of(Span::from_micros(100)),
            holdover_max: Bound::of(Span::from_millis(1)),
            degraded: ClockClass::DEGRADED_FOLLOWER,
            time_source: TimeSource::NTP,
        }
    }
}

/// What a grandmaster announces of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrandmasterClaim {
    /// Class, accuracy and variance.
    pub quality: ClockQuality,
    /// Timescale, leap seconds and traceability.
    pub flags: PtpFlags,
    /// TAI - UTC [s].
    pub utc_offset: i16,
    /// Where the time comes from.
    pub time_source: TimeSource,
}

impl GrandmasterClaim {
    /// The claim of a clock whose time is unknown. With it a grandmaster is silent.
    pub const NONE: GrandmasterClaim = GrandmasterClaim {
        quality: ClockQuality {
            class: ClockClass::DEFAULT,
            accuracy: ClockAccuracy::UNKNOWN,
            variance: ScaledVariance::UNKNOWN,
        },
        flags: PtpFlags(0),
        utc_offset: 0,
        time_source: TimeSource::OSCILLATOR,
    };

    /// The claim of a clock with this reading. The reading should be of the latest moment until which the claim will
    /// be believed: its bound is what the accuracy is made of, rounded up to the next code of the table. `step` is the
    /// leap second around it.
    pub fn of(reading: &TaiReading, limits: &GrandmasterLimits, step: LeapStep) -> Self {
        let TaiReading { time, uncertainty, bound, status, .. } = *reading;
        let class = match status {
            Status::Unsynchronised => return GrandmasterClaim::NONE,
            Status::Synchronised if bound <= limits.locked_max => ClockClass::PRIMARY,
            Status::Holdover if bound <= limits.holdover_max => ClockClass::HOLDOVER,
            Status::Synchronised | Status::Holdover | Status::WarmingUp => limits.degraded,
        };
        let second = time.whole_seconds();
        let offset = if second < step.at { step.before } else { step.after };
        let leap = match step.at - second {
            1..=LEAP_ANNOUNCED if step.after > step.before => PtpFlags::LEAP_61,
            1..=LEAP_ANNOUNCED if step.after < step.before => PtpFlags::LEAP_59,
            _ => PtpFlags(0),
        };
        let traceable = PtpFlags::TIME_TRACEABLE.and(PtpFlags::FREQUENCY_TRACEABLE);
        let traceable = if class.is_traceable() { traceable } else { PtpFlags(0) };
        let accuracy = ClockAccuracy::of(bound);
        GrandmasterClaim {
            quality: ClockQuality { class, accuracy, variance: ScaledVariance::of(uncertainty).coarse() },
            flags: PtpFlags::PTP_TIMESCALE.and(PtpFlags::UTC_OFFSET_VALID).and(leap).and(traceable),
            utc_offset: i16::try_from(offset).unwrap_or_default(),
            time_source: if status == Status::Synchronised { limits.time_source } else { TimeSource::OSCILLATOR },
        }
    }

    /// Whether the time may be stated at all.
    pub const fn is_known(&self) -> bool {
        self.flags.has(PtpFlags::PTP_TIMESCALE)
    }

    /// The same of a clock of this quality.
    pub(crate) const fn of_quality(self, quality: ClockQuality) -> Self {
        let traceable = PtpFlags::TIME_TRACEABLE.and(PtpFlags::FREQUENCY_TRACEABLE);
        let flags = if quality.class.is_traceable() { self.flags } else { self.flags.without(traceable) };
        GrandmasterClaim { quality, flags, ..self }
    }

    /// As `grandmaster` announces it.
    pub(crate) const fn announced(&self, grandmaster: ClockIdentity, priorities: (u8, u8)) -> Announcement {
        Announcement {
            utc_offset: self.utc_offset,
            priority_1: priorities.0,
            quality: self.quality,
            priority_2: priorities.1,
            grandmaster,
            steps_removed: 0,
            time_source: self.time_source,
            flags: self.flags,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{LeapAnnouncement, LeapTable, Moment, StandardUncertainty};

    /// 2026-12-31 12:00:00 UTC.
    const NOON: i64 = 1_798_718_400;

    fn reading(status: Status, bound: Span) -> TaiReading {
        let time = Moment::from_origin(Span::from_secs(NOON + 37));
        let uncertainty = StandardUncertainty::of(Span::from_micros(1));
        TaiReading { time, uncertainty, noise: uncertainty, bound: Bound::of(bound), status }
    }

    fn claim(status: Status, bound: Span) -> GrandmasterClaim {
        let reading = reading(status, bound);
        GrandmasterClaim::of(&reading, &GrandmasterLimits::default(), LeapTable::built_in().step_around(reading.time))
    }

    /// IEEE 1588-2019, 7.6.2.5, table 4; G.8275.1, 6.4: locked, in holdover within the specification, beyond it.
    #[test]
    fn the_class_falls_with_status_and_bound() {
        let (small, large) = (Span::from_micros(40), Span::from_millis(5));
        for (status, bound, class) in [
            (Status::Synchronised, small, ClockClass::PRIMARY),
            (Status::Synchronised, large, ClockClass::DEGRADED_FOLLOWER),
            (Status::Holdover, small, ClockClass::HOLDOVER),
            (Status::Holdover, large, ClockClass::DEGRADED_FOLLOWER),
            (Status::WarmingUp, small, ClockClass::DEGRADED_FOLLOWER),
            (Status::Unsynchronised, small, ClockClass::DEFAULT),
        ] {
            let claim = claim(status, bound);
            assert_eq!(claim.quality.class, class, "{status:?} {bound:?}");
            assert_eq!(claim.is_known(), status != Status::Unsynchronised);
            assert_eq!(claim.flags.has(PtpFlags::TIME_TRACEABLE), class.is_traceable());
        }
    }

    #[test]
    fn the_accuracy_is_never_better_than_the_bound() {
        let claim = claim(Status::Synchronised, Span::from_micros(40));
        assert_eq!(claim.quality.accuracy, ClockAccuracy(0x27), "100 us");
        assert_eq!(claim.utc_offset, 37);
        assert_eq!(claim.time_source, TimeSource::NTP);
    }

    #[test]
    fn a_leap_second_is_announced_on_its_last_day() {
        let leaps = LeapTable::with(LeapAnnouncement { utc_second: NOON + 43_200, change: 1 });
        let claim = |reading: &TaiReading| {
            GrandmasterClaim::of(reading, &GrandmasterLimits::default(), leaps.step_around(reading.time)).flags
        };
        let noon = reading(Status::Synchronised, Span::from_micros(40));
        assert!(claim(&noon).has(PtpFlags::LEAP_61));
        let day_before = TaiReading { time: noon.time - Span::from_secs(86_400), ..noon };
        assert!(!claim(&day_before).has(PtpFlags::LEAP_61));
    }
}
