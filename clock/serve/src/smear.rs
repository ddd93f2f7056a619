//! A leap second spread from noon to noon of UTC: the label that is served, and which leap seconds are served so.
//!
//! A smear must begin at noon, or its time jumps. So a leap second that becomes known later is announced, and the
//! second repeats or is left out, as if there were no smear. A server that starts within the 24 hours goes on with the
//! smear that it finds: its clients had that time before.

use crate::options::Smear;
use ffclock_units::{LeapStep, Moment, Span, Tai};

/// A smear begins and ends this long before and after the leap, in seconds of UTC.
const HALF_SMEAR: i64 = 43_200;

/// Decides which leap second is smeared.
#[derive(Debug, Default)]
pub(crate) struct SmearWatch {
    has_looked: bool,
}

impl SmearWatch {
    /// Looks at the next leap second, or the last one: its second of TAI if it is known early enough to be smeared. To
    /// be asked all the time.
    pub(crate) fn look(&mut self, now: Moment<Tai>, leap: LeapStep) -> Option<i64> {
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        (is_first || now.whole_seconds() < noons(leap).0).then_some(leap.at)
    }
}

/// Noon before, and noon after: the second inserted or left out lies between them.
fn noons(leap: LeapStep) -> (i64, i64) {
    let change = leap.after - leap.before;
    (leap.at - HALF_SMEAR + i64::from(change < 0), leap.at + HALF_SMEAR + i64::from(change > 0))
}

/// The label of a moment in the smear around a leap second; `None` outside.
pub(crate) fn smeared(now: Moment<Tai>, leap: LeapStep) -> Option<Span> {
    let units = smear_units(now, leap, Smear::Linear24h);
    let is_within = units != 0;
    let before = Span::from_secs(i64::from(leap.before));
    is_within.then(|| now.since_origin() - before - Span::from_units(units))
}

/// How much of the leap is smeared already, in 2^-64 s: from nothing at noon before it to all of it at noon after it,
/// linear in between. 0 outside these 24 hours.
pub(crate) fn smear_units(now: Moment<Tai>, leap: LeapStep, smear: Smear) -> i128 {
    let change = leap.after - leap.before;
    let (begin, end) = noons(leap);
    let second = now.whole_seconds();
    if smear == Smear::Off || !(-1..=1).contains(&change) || second < begin || second >= end {
        return 0;
    }
    let passed = now.since_origin() - Span::from_secs(begin);
    passed.units() * i128::from(change) / i128::from(end - begin)
}

/// The reference identifier of ntpd while it smears: 254 and the offset, 2 bits of seconds and 22 of the fraction.
pub(crate) fn smear_reference(units: i128) -> u32 {
    let rounded = units + (1 << 41);
    0xfe00_0000 | (rounded >> 42) as u32 & 0x00ff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAP: LeapStep = LeapStep { before: 37, after: 38, at: 2_000_000_037 };

    fn tai(seconds: i64, millis: i64) -> Moment<Tai> {
        Moment::from_origin(Span::from_secs(seconds) + Span::from_millis(millis))
    }

    #[test]
    fn a_leap_second_is_smeared_that_is_known_before_noon_or_from_the_start() {
        let past = LeapStep { at: LEAP.at - 100_000_000, ..LEAP };
        let noon = LEAP.at - HALF_SMEAR;
        let look = |times: &[(i64, LeapStep)]| {
            let mut watch = SmearWatch::default();
            times.iter().map(|(now, leap)| watch.look(tai(*now, 0), *leap)).collect::<Vec<_>>()
        };
        assert_eq!(look(&[(noon - 90_000, past), (noon - 1, LEAP)])[1], Some(LEAP.at));
        assert_eq!(look(&[(noon - 90_000, past), (noon, LEAP), (LEAP.at, LEAP)])[1..], [None, None], "it is late");
        assert_eq!(look(&[(noon + 500, LEAP)]), [Some(LEAP.at)], "the smear has begun without us");
        let delete = LeapStep { after: 36, ..LEAP };
        assert_eq!(look(&[(noon - 9, past), (noon, delete), (noon + 1, delete)])[1..], [Some(LEAP.at), None]);
    }

    /// The served labels run from noon to noon without a jump, and are UTC at both ends.
    #[test]
    fn a_smear_is_continuous_and_ends_in_utc() {
        for after in [38, 36] {
            let leap = LeapStep { after, ..LEAP };
            let utc = |now: Moment<Tai>| {
                let offset = if now.whole_seconds() < leap.at { leap.before } else { leap.after };
                now.since_origin() - Span::from_secs(offset.into())
            };
            let label = |now| smeared(now, leap).unwrap_or_else(|| utc(now));
            let mut last = label(tai(leap.at - 50_000, 0));
            for second in leap.at - 49_999..leap.at + 50_000 {
                let here = label(tai(second, 0));
                let step = (here - last).as_seconds();
                assert!((step - 1.0).abs() < 1.3e-5, "{after} {second} {step}");
                last = here;
            }
            assert_eq!(last, utc(tai(leap.at + 49_999, 0)));
            let half = smear_units(tai(leap.at, 500 * i64::from(after > 37)), leap, Smear::Linear24h);
            assert!((half.unsigned_abs() as f64 / 2_f64.powi(64) - 0.5).abs() < 1.2e-5, "half of it at midnight");
        }
    }

    /// ntpd: 254, then two bits of seconds and 22 bits of the fraction.
    #[test]
    fn the_offset_of_the_smear_is_in_the_reference() {
        assert_eq!(smear_reference(1 << 63), 0xfe20_0000);
        assert_eq!(smear_reference(-(1 << 63)), 0xfee0_0000);
    }
}
