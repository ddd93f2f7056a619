//! The 64-bit timestamp: seconds of an era in the upper half, 2^-32 s in the lower (RFC 5905, section 6).

use ffclock_units::{Moment, Server, Span};

/// From 1900-01-01, where era 0 begins, to 1970-01-01, the origin of [`Server`].
const ORIGIN_SECONDS: i64 = 2_208_988_800;
/// Bits of an era in units of 2^-64 s: 32 for its seconds, 64 for the fraction.
const ERA_BITS: u32 = 96;
/// From steps of 2^-32 s, the unit of a timestamp, to steps of 2^-64 s, the unit of a moment.
const FRACTION_SHIFT: u32 = 32;

/// A timestamp as it stands in a packet, in 2^-32 s since the beginning of an unnamed era. All zeros means "unknown".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct NtpTimestamp(u64);

impl NtpTimestamp {
    /// The value in a packet for an unknown time.
    pub const MISSING: NtpTimestamp = NtpTimestamp(0);

    /// From the 64 bits of the packet.
    pub const fn from_raw(bits: u64) -> Self {
        NtpTimestamp(bits)
    }

    /// The 64 bits of the packet.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether the time is unknown.
    pub const fn is_missing(self) -> bool {
        self.0 == 0
    }

    /// The moment in the era that is nearest to `pivot`: right whenever `pivot` is less than 68 years off.
    ///
    /// A moment exactly half an era away counts as before the pivot.
    pub const fn to_server(self, pivot: Moment<Server>) -> Moment<Server> {
        let wanted = (self.0 as i128) << FRACTION_SHIFT;
        let distance = wanted.wrapping_sub(since_1900(pivot));
        let unused = i128::BITS - ERA_BITS;
        let nearest = (distance << unused) >> unused;
        Moment::from_origin(Span::from_units(pivot.since_origin().units().saturating_add(nearest)))
    }

    /// The timestamp of `moment`, rounded to the nearest 2^-32 s.
    ///
    /// The one value per era that would read as "unknown" becomes its successor.
    pub const fn from_server(moment: Moment<Server>) -> Self {
        let half_step = 1 << (FRACTION_SHIFT - 1);
        let bits = (since_1900(moment).wrapping_add(half_step) >> FRACTION_SHIFT) as u64;
        NtpTimestamp(if bits == 0 { 1 } else { bits })
    }
}

/// In units of 2^-64 s. The addition may wrap: only the remainder by the length of an era is used.
const fn since_1900(moment: Moment<Server>) -> i128 {
    moment.since_origin().units().wrapping_add(Span::from_secs(ORIGIN_SECONDS).units())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(posix_seconds: i64) -> Moment<Server> {
        Moment::from_origin(Span::from_secs(posix_seconds))
    }

    /// Dates and their timestamps from RFC 5905, figure 4 ("Interesting Historic NTP Dates").
    #[test]
    fn dates_of_the_rfc() {
        for (posix, era_seconds) in [
            (-2_208_988_800, 0),              // 1 Jan 1900, first day of era 0
            (0, 2_208_988_800),               // 1 Jan 1970, first day of UNIX
            (63_072_000, 2_272_060_800),      // 1 Jan 1972, first day of UTC
            (946_598_400, 3_155_587_200),     // 31 Dec 1999
            (2_085_978_496, 0),               // 7 Feb 2036 06:28:16, first second of era 1
            (2_085_978_496 + 63_104, 63_104), // 8 Feb 2036 00:00:00
        ] {
            let stamp = NtpTimestamp::from_raw(era_seconds << 32);
            assert_eq!(stamp.to_server(server(posix + 1_000_000)), server(posix));
            assert_eq!(stamp.to_server(server(posix - 1_000_000)), server(posix));
        }
    }

    #[test]
    fn the_turn_of_2036_is_no_special_case() {
        let turn = server(2_085_978_496);
        let before = NtpTimestamp::from_server(turn - Span::from_secs(1));
        let after = NtpTimestamp::from_server(turn + Span::from_secs(1));
        assert_eq!(before.raw() >> 32, u64::from(u32::MAX));
        assert_eq!(after.raw() >> 32, 1);
        assert_eq!(after.to_server(turn) - before.to_server(turn), Span::from_secs(2));
    }

    #[test]
    fn a_known_time_never_reads_as_missing() {
        let turn = server(2_085_978_496);
        assert!(!NtpTimestamp::from_server(turn).is_missing());
        assert!(NtpTimestamp::from_server(turn).to_server(turn) - turn < Span::from_nanos(1));
        assert!(NtpTimestamp::MISSING.is_missing());
    }

    #[test]
    fn half_an_era_away_is_before_the_pivot() {
        let pivot = server(0);
        let half = NtpTimestamp::from_raw((2_208_988_800 << 32) ^ (1 << 63));
        assert_eq!(half.to_server(pivot), server(-(1 << 31)));
    }
}
