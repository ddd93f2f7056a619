//! The discipline of `CLOCK_REALTIME` (adjtimex(2)): what it is, and how it is changed.
//!
//! This is the one place of the project from which a clock is changed. Only ffclock-steer uses it, which reads the page
//! like any program; no room that keeps time knows it.

use crate::ffi;
use core::fmt;
use ffclock_units::{Rate, Span};
use std::io;

/// A frequency as the kernel has it, in steps of 2^-16 ppm: how much faster its clock runs than without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct KernelFrequency(i64);

impl KernelFrequency {
    /// The largest that the kernel takes, 500 ppm; the smallest is its negative.
    pub const MAX: KernelFrequency = KernelFrequency(500 << 16);
    /// As the kernel was made.
    pub const ZERO: KernelFrequency = KernelFrequency(0);

    /// The nearest that the kernel takes. What is no number is none.
    pub fn nearest(rate: Rate) -> Self {
        let most = Self::MAX.0 as f64;
        let steps = (rate.as_ppm() * 65536.0).round();
        KernelFrequency(if steps.is_nan() { 0 } else { steps.clamp(-most, most) as i64 })
    }

    /// The number of steps.
    pub const fn steps(self) -> i64 {
        self.0
    }

    /// As a rate.
    pub fn as_rate(self) -> Rate {
        Rate::from_ppm(self.0 as f64 / 65536.0)
    }
}

impl fmt::Display for KernelFrequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+.3} ppm", self.as_rate().as_ppm())
    }
}

/// The flags of the discipline (`STA_*` of adjtimex(2)).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelFlags(i32);

impl KernelFlags {
    /// The clock is not synchronised.
    pub const UNSYNCHRONISED: KernelFlags = KernelFlags(libc::STA_UNSYNC);
    /// A second is inserted at the end of this day of UTC.
    pub const INSERT: KernelFlags = KernelFlags(libc::STA_INS);
    /// A second is left out at the end of this day of UTC.
    pub const DELETE: KernelFlags = KernelFlags(libc::STA_DEL);
    /// All that makes the kernel change its clock by itself, or that announces it.
    pub const STEERING: KernelFlags = KernelFlags(
        libc::STA_PLL
            | libc::STA_FLL
            | libc::STA_FREQHOLD
            | libc::STA_PPSFREQ
            | libc::STA_PPSTIME
            | libc::STA_INS
            | libc::STA_DEL,
    );
    /// The kernel's own loop, which takes offsets.
    const LOOP: KernelFlags = KernelFlags(libc::STA_PLL);

    /// None.
    pub const fn none() -> Self {
        KernelFlags(0)
    }

    /// Those of both.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        KernelFlags(self.0 | other.0)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        KernelFlags(self.0 & other.0)
    }

    /// Whether all of the others are among these.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl fmt::Debug for KernelFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// What the kernel says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClockState {
    /// The frequency.
    pub frequency: KernelFrequency,
    /// Microseconds for each of 100 ticks in a second; 10000 where no program changed it.
    pub tick_us: i64,
    /// The flags.
    pub flags: KernelFlags,
    /// What the kernel's own loop has still to slew, in ns or us; 0 where no program uses it.
    pub offset: i64,
    /// What adjtime(3) has still to slew [us].
    pub slewing_us: i64,
    /// The largest error [us], which the kernel lets grow by 500 us in a second.
    pub max_error_us: i64,
    /// The estimated error [us].
    pub estimated_error_us: i64,
    /// TAI - UTC [s]; 0 where no program has set it.
    pub tai_offset_s: i32,
}

impl KernelClockState {
    /// The tick of a kernel that no program changed [us].
    pub const TICK_US: i64 = 10_000;
    /// Both error figures after the clock was set, and the largest that the kernel holds [us].
    pub const ERROR_LIMIT_US: i64 = 16_000_000;
}

/// What is to be changed; the rest stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KernelClockChange {
    /// The frequency.
    pub frequency: Option<KernelFrequency>,
    /// The flags, all of them.
    pub flags: Option<KernelFlags>,
    /// The largest and the estimated error [us].
    pub errors_us: Option<[i64; 2]>,
    /// TAI - UTC [s].
    pub tai_offset_s: Option<i32>,
}

/// The discipline of this host's clock.
///
/// # Errors
/// The kernel has none.
pub fn kernel_clock_state() -> io::Result<KernelClockState> {
    let mut now = ffi::empty_timex();
    ffi::adjust_realtime(&mut now)?;
    state_of(&now)
}

/// Changes it.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_TIME.
pub fn change_kernel_clock(change: &KernelClockChange) -> io::Result<KernelClockState> {
    let mut now = ffi::empty_timex();
    if let Some(frequency) = change.frequency {
        now.modes |= libc::ADJ_FREQUENCY;
        now.freq = frequency.0 as libc::c_long;
    }
    if let Some(flags) = change.flags {
        now.modes |= libc::ADJ_STATUS;
        now.status = flags.0;
    }
    if let Some([largest, estimated]) = change.errors_us {
        now.modes |= libc::ADJ_MAXERROR | libc::ADJ_ESTERROR;
        (now.maxerror, now.esterror) = (largest as libc::c_long, estimated as libc::c_long);
    }
    if let Some(tai) = change.tai_offset_s {
        now.modes |= libc::ADJ_TAI;
        now.constant = tai.into();
    }
    ffi::adjust_realtime(&mut now)?;
    state_of(&now)
}

/// Steps the clock by this span, in whole microseconds. The kernel then calls it unsynchronised.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_TIME.
pub fn step_kernel_clock(by: Span) -> io::Result<KernelClockState> {
    let micros = i64::try_from(by.as_nanos().div_euclid(1000)).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut now = ffi::empty_timex();
    now.modes = libc::ADJ_SETOFFSET;
    now.time = libc::timeval { tv_sec: micros.div_euclid(1_000_000), tv_usec: micros.rem_euclid(1_000_000) };
    ffi::adjust_realtime(&mut now)?;
    state_of(&now)
}

/// Ends whatever an earlier program left in progress: the kernel's loop with its offset, adjtime(3), another tick. The
/// frequency stays. The clock is called unsynchronised.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_TIME.
pub fn take_kernel_clock() -> io::Result<KernelClockState> {
    // The kernel takes an offset while its loop is on only.
    let mut clear = ffi::empty_timex();
    clear.modes = libc::ADJ_STATUS | libc::ADJ_OFFSET | libc::ADJ_TICK;
    clear.status = KernelFlags::LOOP.with(KernelFlags::UNSYNCHRONISED).with(KernelFlags(libc::STA_FREQHOLD)).0;
    clear.tick = KernelClockState::TICK_US as libc::c_long;
    ffi::adjust_realtime(&mut clear)?;
    let mut slewing = ffi::empty_timex();
    slewing.modes = libc::ADJ_OFFSET_SINGLESHOT;
    ffi::adjust_realtime(&mut slewing)?;
    change_kernel_clock(&KernelClockChange { flags: Some(KernelFlags::UNSYNCHRONISED), ..KernelClockChange::default() })
}

fn state_of(now: &libc::timex) -> io::Result<KernelClockState> {
    let mut slewing = ffi::empty_timex();
    slewing.modes = libc::ADJ_OFFSET_SS_READ;
    ffi::adjust_realtime(&mut slewing)?;
    Ok(KernelClockState {
        frequency: KernelFrequency(now.freq),
        tick_us: now.tick,
        flags: KernelFlags(now.status),
        offset: now.offset,
        slewing_us: slewing.offset,
        max_error_us: now.maxerror,
        estimated_error_us: now.esterror,
        tai_offset_s: now.tai,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_what_the_kernel_takes() {
        let steps = |ppm| KernelFrequency::nearest(Rate::from_ppm(ppm)).steps();
        assert_eq!([steps(0.0), steps(1.0), steps(-1.5)], [0, 65_536, -98_304]);
        assert_eq!([steps(501.0), steps(f64::NEG_INFINITY), steps(f64::NAN)], [32_768_000, -32_768_000, 0]);
        assert_eq!(KernelFrequency::nearest(Rate::from_ppm(-12.5)).to_string(), "-12.500 ppm");
    }

    /// Reading is free for every program, and changes nothing.
    #[test]
    fn the_state_can_be_read() {
        let state = kernel_clock_state().unwrap();
        assert!(state.frequency.steps().abs() <= KernelFrequency::MAX.steps());
        assert!((9_000..=11_000).contains(&state.tick_us), "{state:?}");
    }
}
