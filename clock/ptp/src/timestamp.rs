//! Times in messages, and the corrections that switches add to them.

use ffclock_units::{Moment, Span, Tai};

const NANOS_PER_SECOND: u32 = 1_000_000_000;
const SECONDS_MAX: i64 = (1 << 48) - 1;
/// Steps of a correction in a nanosecond.
const STEPS_PER_NANO: i128 = 1 << 16;

/// A time as it stands in a message: 48 bits of seconds, 32 bits of nanoseconds (IEEE 1588-2019, 5.3.3). On the PTP
/// timescale the seconds count from 1970-01-01 00:00:00 TAI (7.2.3), the origin of [`Tai`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct PtpTimestamp {
    seconds: u64,
    nanoseconds: u32,
}

impl PtpTimestamp {
    /// The value where a message says nothing.
    pub const ZERO: PtpTimestamp = PtpTimestamp { seconds: 0, nanoseconds: 0 };

    pub(crate) fn from_octets([a, b, c, d, e, f, g, h, i, j]: [u8; 10]) -> Self {
        let seconds = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        PtpTimestamp { seconds, nanoseconds: u32::from_be_bytes([g, h, i, j]) }
    }

    pub(crate) fn octets(self) -> [u8; 10] {
        let [_, _, a, b, c, d, e, f] = self.seconds.to_be_bytes();
        let [g, h, i, j] = self.nanoseconds.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j]
    }

    /// The span since the origin of whatever scale the sender uses. `None` if there are a billion nanoseconds or more,
    /// which no clock may say (5.3.3).
    pub fn since_origin(self) -> Option<Span> {
        let seconds = i64::try_from(self.seconds).ok().filter(|_| self.nanoseconds < NANOS_PER_SECOND)?;
        Some(Span::from_secs(seconds) + Span::from_nanos(i128::from(self.nanoseconds)))
    }

    /// The time of `moment`, rounded down to the nanosecond, and the rest, which a correction can carry. `None` before
    /// 1970 and from the year 8921556 on.
    pub fn of(moment: Moment<Tai>) -> Option<(Self, Correction)> {
        let seconds = moment.whole_seconds();
        if !(0..=SECONDS_MAX).contains(&seconds) {
            return None;
        }
        let rest = moment.since_origin() - Span::from_secs(seconds);
        let steps = i128::from(Correction::of(rest).0);
        let nanoseconds = u32::try_from(steps / STEPS_PER_NANO).ok()?.min(NANOS_PER_SECOND - 1);
        let left = i64::try_from(steps - i128::from(nanoseconds) * STEPS_PER_NANO).ok()?;
        Some((PtpTimestamp { seconds: u64::try_from(seconds).ok()?, nanoseconds }, Correction(left)))
    }
}

/// What is to be added to a time because the message was held up on its way: 2^-16 ns (IEEE 1588-2019, 13.3.2.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Correction(i64);

impl Correction {
    /// Nothing to correct.
    pub const ZERO: Correction = Correction(0);
    /// Too large to be said.
    pub const UNKNOWN: Correction = Correction(i64::MAX);

    /// From the 64 bits of a message.
    pub const fn from_raw(steps: i64) -> Self {
        Correction(steps)
    }

    /// The 64 bits of a message.
    pub const fn raw(self) -> i64 {
        self.0
    }

    /// The correction of a span, rounded down to 2^-16 ns; beyond +-39 hours it is [`Correction::UNKNOWN`].
    pub fn of(span: Span) -> Self {
        const PER_SECOND: i128 = NANOS_PER_SECOND as i128 * STEPS_PER_NANO;
        let (seconds, rest) = (span.units() >> 64, span.units() & 0xffff_ffff_ffff_ffff);
        let steps = seconds.saturating_mul(PER_SECOND).saturating_add((rest * PER_SECOND) >> 64);
        i64::try_from(steps).map_or(Correction::UNKNOWN, Correction)
    }

    /// The span, rounded down to 2^-64 s; `None` where the message does not say.
    pub fn as_span(self) -> Option<Span> {
        if self == Correction::UNKNOWN {
            return None;
        }
        let rest = i128::from(self.0) & (STEPS_PER_NANO - 1);
        let fraction = (rest << 48) / i128::from(NANOS_PER_SECOND);
        Some(Span::from_nanos(i128::from(self.0) >> 16) + Span::from_units(fraction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// IEEE 1588-2019, 5.3.2: "2.5 ns is expressed as 0x0000000000028000".
    #[test]
    fn the_example_of_the_standard() {
        let span = Correction::from_raw(0x28000).as_span().unwrap();
        assert!((span + span - Span::from_nanos(5)).abs() <= Span::from_units(2));
        assert_eq!(Correction::UNKNOWN.as_span(), None);
        assert_eq!(Correction::of(Span::from_secs(1_000_000)), Correction::UNKNOWN);
    }

    /// IEEE 1588-2019, 5.3.3: "+2.000000001 seconds is seconds 2, nanoseconds 1".
    #[test]
    fn a_timestamp_has_seconds_and_nanoseconds() {
        let stamp = PtpTimestamp::from_octets([0, 0, 0, 0, 0, 2, 0, 0, 0, 1]);
        assert_eq!(stamp.since_origin(), Some(Span::from_secs(2) + Span::from_nanos(1)));
        let wrong = PtpTimestamp::from_octets([0, 0, 0, 0, 0, 2, 0x3b, 0x9a, 0xca, 0]);
        assert_eq!(wrong.since_origin(), None, "a billion nanoseconds");
        assert_eq!(PtpTimestamp::of(Moment::from_origin(Span::from_nanos(-1))), None);
    }

    proptest! {
        #[test]
        fn a_correction_returns(steps in i64::MIN..i64::MAX) {
            let returned = Correction::of(Correction::from_raw(steps).as_span().unwrap());
            prop_assert!(steps - returned.raw() <= 1 && steps >= returned.raw());
        }

        #[test]
        fn a_time_is_its_timestamp_and_the_rest(units in 0i128..(1 << 100)) {
            let moment = Moment::from_origin(Span::from_units(units));
            let (stamp, rest) = PtpTimestamp::of(moment).unwrap();
            let returned = stamp.since_origin().unwrap() + rest.as_span().unwrap();
            let lost = moment.since_origin() - returned;
            prop_assert!(!lost.is_negative() && lost < Span::from_units(1 << 20), "{lost:?}");
            prop_assert_eq!(PtpTimestamp::from_octets(stamp.octets()), stamp);
        }
    }
}
