//! Whether another program steers the kernel's clock as well.
//!
//! Between two of our calls nothing changes the kernel's frequency, tick and flags, the kernel itself least of all. It
//! changes the largest error alone, which grows, and by that it calls its clock unsynchronised after nine hours. So any
//! other difference is another program's: a second daemon, adjtime(3), or an operator who sets the clock.

use core::fmt;
use ffclock_service::words;
use ffclock_sys::{KernelClockState, KernelFlags};

/// What to do where another program steers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnContention {
    /// The clock is left to the other program.
    Withdraw,
    /// The clock is taken back.
    Continue,
}

words!(OnContention { Withdraw: "withdraw", Continue: "continue" });

/// What another program did to the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// It set the clock.
    Set,
    /// It changed the frequency.
    Frequency,
    /// It changed the length of a tick.
    Tick,
    /// It lets the kernel slew an offset.
    Offset,
    /// It changed the flags.
    Flags,
    /// It set the error figures.
    Errors,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Foreign::Set => "it set the clock",
            Foreign::Frequency => "it changed the frequency",
            Foreign::Tick => "it changed the length of a tick",
            Foreign::Offset => "it lets the kernel slew an offset",
            Foreign::Flags => "it changed the flags",
            Foreign::Errors => "it set the error figures",
        })
    }
}

/// What another program did between our last call, which left `ours`, and now.
pub fn foreign(ours: &KernelClockState, now: &KernelClockState) -> Option<Foreign> {
    let limit = KernelClockState::ERROR_LIMIT_US;
    let gained = |flag: KernelFlags| now.flags.has(flag) && !ours.flags.has(flag);
    let is_overgrown = now.max_error_us >= limit;
    let was_set = is_overgrown && now.estimated_error_us >= limit && ours.estimated_error_us < limit;
    let is_unsynchronised_by_kernel = is_overgrown && gained(KernelFlags::UNSYNCHRONISED);
    let differs = |which: KernelFlags| now.flags.common(which) != ours.flags.common(which);
    if was_set {
        Some(Foreign::Set)
    } else if now.frequency != ours.frequency {
        Some(Foreign::Frequency)
    } else if now.tick_us != ours.tick_us {
        Some(Foreign::Tick)
    } else if now.offset != ours.offset || now.slewing_us != ours.slewing_us {
        Some(Foreign::Offset)
    } else if differs(KernelFlags::STEERING) || (differs(KernelFlags::UNSYNCHRONISED) && !is_unsynchronised_by_kernel) {
        Some(Foreign::Flags)
    } else if now.estimated_error_us != ours.estimated_error_us || now.max_error_us < ours.max_error_us {
        Some(Foreign::Errors)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sys::KernelFrequency;
    use ffclock_units::Rate;

    const OURS: KernelClockState = KernelClockState {
        frequency: KernelFrequency::ZERO,
        tick_us: KernelClockState::TICK_US,
        flags: KernelFlags::none(),
        offset: 0,
        slewing_us: 0,
        max_error_us: 50,
        estimated_error_us: 5,
        tai_offset_s: 37,
    };

    #[test]
    fn what_the_kernel_does_by_itself_is_no_other_program() {
        let limit = KernelClockState::ERROR_LIMIT_US;
        for now in [
            OURS,
            KernelClockState { max_error_us: 550, ..OURS },
            KernelClockState { max_error_us: limit, flags: KernelFlags::UNSYNCHRONISED, ..OURS },
            KernelClockState { tai_offset_s: 38, ..OURS },
        ] {
            assert_eq!(foreign(&OURS, &now), None, "{now:?}");
        }
        // A clock that was never called synchronised stays at the limits.
        let never = KernelClockState {
            max_error_us: limit,
            estimated_error_us: limit,
            flags: KernelFlags::UNSYNCHRONISED,
            ..OURS
        };
        assert_eq!(foreign(&never, &never), None);
    }

    #[test]
    fn every_other_change_is() {
        let limit = KernelClockState::ERROR_LIMIT_US;
        let unsynchronised = KernelFlags::UNSYNCHRONISED;
        let cases = [
            (KernelClockState { frequency: KernelFrequency::nearest(Rate::from_ppm(1.0)), ..OURS }, Foreign::Frequency),
            (KernelClockState { tick_us: 10_001, ..OURS }, Foreign::Tick),
            (KernelClockState { offset: 1000, ..OURS }, Foreign::Offset),
            (KernelClockState { slewing_us: -1, ..OURS }, Foreign::Offset),
            (KernelClockState { flags: KernelFlags::INSERT, ..OURS }, Foreign::Flags),
            (KernelClockState { flags: unsynchronised, ..OURS }, Foreign::Flags),
            (KernelClockState { estimated_error_us: 6, ..OURS }, Foreign::Errors),
            (KernelClockState { max_error_us: 49, ..OURS }, Foreign::Errors),
            (
                KernelClockState { max_error_us: limit, estimated_error_us: limit, flags: unsynchronised, ..OURS },
                Foreign::Set,
            ),
        ];
        for (now, what) in cases {
            assert_eq!(foreign(&OURS, &now), Some(what), "{now:?}");
        }
        let ours = KernelClockState { flags: unsynchronised, ..OURS };
        assert_eq!(foreign(&ours, &OURS), Some(Foreign::Flags), "another program calls the clock synchronised");
    }
}
