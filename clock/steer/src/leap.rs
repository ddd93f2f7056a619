//! What the kernel's clock should show around a leap second.

use ffclock_service::words;
use ffclock_sys::KernelFlags;
use ffclock_units::{LeapStep, Moment, Span, Tai, Utc};

/// How a leap second comes into the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeapMode {
    /// The kernel inserts it or leaves it out.
    Kernel,
    /// It is spread from noon to noon of UTC.
    Smear,
    /// It is slewed once it has happened.
    Slew,
}

words!(LeapMode { Kernel: "kernel", Smear: "smear", Slew: "slew" });

/// What belongs to one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    /// What the kernel's clock should show.
    pub target: Moment<Utc>,
    /// The announcement for the kernel.
    pub flags: KernelFlags,
    /// TAI - UTC [s].
    pub tai_offset_s: i32,
    /// Whether the leap second is so close that the kernel may be on the other side of it: nothing can be compared.
    pub is_near: bool,
}

/// The kernel acts at the end of the day of UTC in which it gets the flag.
const ANNOUNCED_S: i64 = 43_200;
/// A smear begins and ends this long before and after the leap.
const HALF_SMEAR_S: i64 = 43_200;
/// The kernel is expected to be on the same side outside of this [s].
const NEAR_S: i64 = 3;

impl Calendar {
    /// At this moment, which the page shows on both scales.
    pub fn at((utc, tai): (Moment<Utc>, Moment<Tai>), leap: LeapStep, mode: LeapMode) -> Self {
        let second = tai.whole_seconds();
        let change = leap.after.saturating_sub(leap.before);
        let ahead = leap.at.saturating_sub(second);
        let is_leap = change == 1 || change == -1;
        let is_announced = mode == LeapMode::Kernel && (1..=ANNOUNCED_S).contains(&ahead);
        Calendar {
            target: if mode == LeapMode::Smear && is_leap { smeared(utc, tai, leap) } else { utc },
            flags: match change {
                1 if is_announced => KernelFlags::INSERT,
                -1 if is_announced => KernelFlags::DELETE,
                _ => KernelFlags::none(),
            },
            tai_offset_s: if ahead > 0 { leap.before } else { leap.after },
            is_near: mode == LeapMode::Kernel && is_leap && ahead.saturating_abs() <= NEAR_S,
        }
    }
}

/// The label of a moment in a linear smear from noon to noon: as ffclock-serve serves it.
fn smeared(utc: Moment<Utc>, tai: Moment<Tai>, leap: LeapStep) -> Moment<Utc> {
    let change = i64::from(leap.after) - i64::from(leap.before);
    let begin = leap.at.saturating_sub(HALF_SMEAR_S).saturating_add(i64::from(change < 0));
    let end = leap.at.saturating_add(HALF_SMEAR_S).saturating_add(i64::from(change > 0));
    if !(begin..end).contains(&tai.whole_seconds()) {
        return utc;
    }
    let passed = tai.since_origin() - Span::from_secs(begin);
    let part = passed.units() * i128::from(change) / i128::from(end - begin);
    Moment::from_origin(tai.since_origin() - Span::from_secs(leap.before.into()) - Span::from_units(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{LeapAnnouncement, LeapTable};

    /// Midnight after the leap second.
    const MIDNIGHT: i64 = 1_900_022_400;

    fn calendar(mode: LeapMode, change: i8, from_leap_ms: i64) -> Calendar {
        let table = LeapTable::with(LeapAnnouncement { utc_second: MIDNIGHT, change });
        let leap = table.step_around(table.tai_from_utc(Moment::from_origin(Span::from_secs(MIDNIGHT - 1000))));
        let tai = Moment::from_origin(Span::from_secs(leap.at) + Span::from_millis(from_leap_ms));
        Calendar::at((table.utc_from_tai(tai), tai), leap, mode)
    }

    const HOUR: i64 = 3_600_000;

    #[test]
    fn the_kernel_gets_its_flag_on_the_last_day_and_loses_it_afterwards() {
        for (change, flag) in [(1, KernelFlags::INSERT), (-1, KernelFlags::DELETE)] {
            let flags = |ms| calendar(LeapMode::Kernel, change, ms).flags;
            assert_eq!([flags(-13 * HOUR), flags(-11 * HOUR), flags(-1)], [KernelFlags::none(), flag, flag]);
            assert_eq!([flags(0), flags(HOUR)], [KernelFlags::none(); 2]);
            for mode in [LeapMode::Smear, LeapMode::Slew] {
                assert_eq!(calendar(mode, change, -HOUR).flags, KernelFlags::none());
            }
        }
    }

    #[test]
    fn nothing_is_compared_close_to_the_leap() {
        let is_near = |mode, ms| calendar(mode, 1, ms).is_near;
        assert_eq!(
            [-5000, -2000, 0, 2000, 5000].map(|ms| is_near(LeapMode::Kernel, ms)),
            [false, true, true, true, false]
        );
        assert!(!is_near(LeapMode::Slew, 500) && !is_near(LeapMode::Smear, 500), "the kernel does nothing by itself");
        let tai = |ms| calendar(LeapMode::Kernel, 1, ms).tai_offset_s;
        assert_eq!([tai(-1), tai(0)], [37, 38]);
    }

    #[test]
    fn a_smear_goes_from_noon_to_noon_without_a_step() {
        for change in [1, -1] {
            let shown = |ms| calendar(LeapMode::Smear, change, ms).target.since_origin().as_seconds();
            let mut last = shown(-13 * HOUR);
            for minute in -13 * 60..=13 * 60 {
                let next = shown(minute * 60_000 + 60_000);
                assert!((next - last - 60.0).abs() < 1e-3, "{minute}: {next} after {last}");
                last = next;
            }
            let plain = calendar(LeapMode::Slew, change, 13 * HOUR).target;
            assert_eq!(calendar(LeapMode::Smear, change, 13 * HOUR).target, plain);
        }
    }
}
