//! UTC in the types that other libraries have for it. All of them count as POSIX does, so nothing of a leap second is
//! lost that was not lost in UTC already: to order events, stay with TAI (`VotedTime::tai`).
//!
//! No clock is read here. None of the types carries a bound. Convert last, and keep the reading beside it.

use ffclock_units::{Moment, Span, Utc};
use std::time::{Duration, SystemTime};

/// UTC to and from the types of others, to the nearest nanosecond.
pub trait CivilTime: Sized {
    /// As the standard library has it; `None` outside of what it holds.
    fn to_system_time(self) -> Option<SystemTime>;
    /// From the standard library's time.
    fn from_system_time(time: SystemTime) -> Self;
    /// As `chrono` has it; `None` outside of the years -262143 to 262142.
    #[cfg(feature = "chrono")]
    fn to_chrono(self) -> Option<chrono::DateTime<chrono::Utc>>;
    /// From `chrono`'s time. Its inserted second is the one after it, as POSIX counts.
    #[cfg(feature = "chrono")]
    fn from_chrono(time: chrono::DateTime<chrono::Utc>) -> Self;
    /// As `jiff` has it; `None` outside of the years -9999 to 9999.
    #[cfg(feature = "jiff")]
    fn to_jiff(self) -> Option<jiff::Timestamp>;
    /// From `jiff`'s time.
    #[cfg(feature = "jiff")]
    fn from_jiff(time: jiff::Timestamp) -> Self;
}

impl CivilTime for Moment<Utc> {
    fn to_system_time(self) -> Option<SystemTime> {
        let (seconds, nanos) = parts(self);
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let second = if seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(whole)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(whole)
        };
        second?.checked_add(Duration::from_nanos(nanos.into()))
    }

    fn from_system_time(time: SystemTime) -> Self {
        let nanos = match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => since.as_nanos().cast_signed(),
            Err(before) => -before.duration().as_nanos().cast_signed(),
        };
        Moment::from_origin(Span::from_nanos(nanos))
    }

    #[cfg(feature = "chrono")]
    fn to_chrono(self) -> Option<chrono::DateTime<chrono::Utc>> {
        let (seconds, nanos) = parts(self);
        chrono::DateTime::from_timestamp(seconds, nanos)
    }

    #[cfg(feature = "chrono")]
    fn from_chrono(time: chrono::DateTime<chrono::Utc>) -> Self {
        let rest = Span::from_nanos(time.timestamp_subsec_nanos().into());
        Moment::from_origin(Span::from_secs(time.timestamp()) + rest)
    }

    #[cfg(feature = "jiff")]
    fn to_jiff(self) -> Option<jiff::Timestamp> {
        jiff::Timestamp::from_nanosecond(self.since_origin().as_nanos()).ok()
    }

    #[cfg(feature = "jiff")]
    fn from_jiff(time: jiff::Timestamp) -> Self {
        Moment::from_origin(Span::from_nanos(time.as_nanosecond()))
    }
}

/// Whole seconds, rounded down, and the nanoseconds after them.
fn parts(moment: Moment<Utc>) -> (i64, u32) {
    const SECOND: i128 = 1_000_000_000;
    let nanos = moment.since_origin().as_nanos();
    // A span holds 2^63 s at most.
    (nanos.div_euclid(SECOND) as i64, nanos.rem_euclid(SECOND) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before the origin and after it, on a whole second and between two.
    const NANOS: [i128; 6] = [0, 1, -1, -1_000_000_000, 1_800_000_000_999_999_999, -62_135_596_799_999_999_999];

    fn utc(nanos: i128) -> Moment<Utc> {
        Moment::from_origin(Span::from_nanos(nanos))
    }

    #[test]
    fn the_standard_time_is_the_same_to_the_nanosecond() {
        for nanos in NANOS {
            let time = utc(nanos).to_system_time().unwrap();
            assert_eq!(Moment::from_system_time(time), utc(nanos), "{nanos}");
        }
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_800_000_000, 999_999_999);
        assert_eq!(utc(1_800_000_000_999_999_999).to_system_time(), Some(time));
        assert_eq!(utc(-1).to_system_time(), Some(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)));
    }

    #[cfg(feature = "chrono")]
    #[test]
    fn chrono_has_the_same_time_to_the_nanosecond() {
        for nanos in NANOS {
            let time = utc(nanos).to_chrono().unwrap();
            assert_eq!(Moment::from_chrono(time), utc(nanos), "{nanos}");
        }
        let text = utc(1_795_253_400_250_000_000).to_chrono().unwrap().to_string();
        assert_eq!(text, "2026-11-21 09:30:00.250 UTC");
        assert_eq!(Moment::from_origin(Span::MAX).to_chrono(), None);
    }

    #[cfg(feature = "jiff")]
    #[test]
    fn jiff_has_the_same_time_to_the_nanosecond() {
        for nanos in NANOS {
            let time = utc(nanos).to_jiff().unwrap();
            assert_eq!(Moment::from_jiff(time), utc(nanos), "{nanos}");
        }
        assert_eq!(utc(1_795_253_400_250_000_000).to_jiff().unwrap().to_string(), "2026-11-21T09:30:00.25Z");
        assert_eq!(Moment::from_origin(Span::MAX).to_jiff(), None);
    }
}
