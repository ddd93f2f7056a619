//! The three system calls of FreeBSD's feed-forward clock, which its C library has. The only file here that may hold
//! unsafe code.

use crate::{KernelEstimate, RawEstimate, steady};
use core::ops::RangeInclusive;
use ffclock_units::Counter;
use std::io;

unsafe extern "C" {
    fn ffclock_getcounter(ffcount: *mut u64) -> core::ffi::c_int;
    fn ffclock_getestimate(estimate: *mut RawEstimate) -> core::ffi::c_int;
    fn ffclock_setestimate(estimate: *mut RawEstimate) -> core::ffi::c_int;
}

fn checked(result: core::ffi::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(explained(io::Error::last_os_error())) }
}

/// EPERM, EAGAIN and ENOSYS of FreeBSD.
fn explained(error: io::Error) -> io::Error {
    let remedy = match error.raw_os_error() {
        Some(1) => " (only root may drive the kernel's clock)",
        Some(35) => " (the kernel has not chosen its counter yet: try again)",
        Some(78) => " (build the kernel with options FFCLOCK)",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{error}{remedy}"))
}

fn read_once() -> io::Result<Counter> {
    let mut count = 0;
    // SAFETY: the call writes one 64-bit word, which outlives it.
    checked(unsafe { ffclock_getcounter(&raw mut count) })?;
    Ok(Counter::from_raw(count))
}

/// Reads the kernel's cumulative counter, which a second reading confirms that follows it by as many ticks as `apart`
/// has ([`steady`]).
///
/// # Errors
/// The kernel has no feed-forward clock, or no counter yet, or its readings do not follow each other.
pub fn read_counter(apart: &RangeInclusive<i64>) -> io::Result<Counter> {
    steady(read_once, apart)?.ok_or_else(|| io::Error::other("the kernel's counter does not run steadily"))
}

/// The estimate that the kernel's clock was given last. It takes effect with the kernel's next tick, so the clock may
/// still show the one before.
///
/// # Errors
/// The kernel has no feed-forward clock.
pub fn estimate() -> io::Result<RawEstimate> {
    let mut raw = RawEstimate::default();
    // SAFETY: the call writes one structure of this layout, which outlives it.
    checked(unsafe { ffclock_getestimate(&raw mut raw) })?;
    Ok(raw)
}

/// Gives the kernel's feed-forward clock an estimate. This is no setting of the system clock: that one goes on by
/// itself unless the administrator has chosen the feed-forward clock for it (`sysctl kern.sysclock.active`).
///
/// # Errors
/// Not permitted, or the kernel has no feed-forward clock.
pub fn set_estimate(estimate: &KernelEstimate) -> io::Result<()> {
    let mut raw = *estimate.raw();
    // SAFETY: the call reads one structure of this layout, which outlives it.
    checked(unsafe { ffclock_setestimate(&raw mut raw) })
}
