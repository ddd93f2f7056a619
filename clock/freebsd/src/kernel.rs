//! The three system calls of FreeBSD's feed-forward clock, which its C library has. The only file here that may hold unsafe code.

use crate::{KernelEstimate, RawEstimate, steady};
use core::ffi::CStr;
use core::ops::RangeInclusive;
use ffclock_units::Counter;
use std::ffi::CString;
use std::io;

unsafe extern "C" {
    fn ffclock_getcounter(ffcount: *mut u64) -> core::ffi::c_int;
    fn ffclock_getestimate(estimate: *mut RawEstimate) -> core::ffi::c_int;
    fn ffclock_setestimate(estimate: *mut RawEstimate) -> core::ffi::c_int;
    fn sysctlbyname(
        name: *const core::ffi::c_char,
        old: *mut core::ffi::c_void,
        old_length: *mut usize,
        new: *const core::ffi::c_void,
        new_length: usize,
    ) -> core::ffi::c_int;
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

/// Reads the kernel's cumulative counter, which a second reading confirms that follows it by as many ticks as `apart` has ([`steady`]).
///
/// # Errors
/// The kernel has no feed-forward clock, or no counter yet, or its readings do not follow each other.
pub fn read_counter(apart: &RangeInclusive<i64>) -> io::Result<Counter> {
    steady(read_once, apart)?.ok_or_else(|| io::Error::other("the kernel's counter does not run steadily"))
}

/// The estimate that the kernel's clock was given last. It takes effect with the kernel's next tick, so the clock may still show the one
/// before.
///
/// # Errors
/// The kernel has no feed-forward clock.
pub fn estimate() -> io::Result<RawEstimate> {
    let mut raw = RawEstimate::default();
    // SAFETY: the call writes one structure of this layout, which outlives it.
    checked(unsafe { ffclock_getestimate(&raw mut raw) })?;
    Ok(raw)
}

/// Gives the kernel's feed-forward clock an estimate. This is no setting of the system clock: that one goes on by itself unless the
/// administrator has chosen the feed-forward clock for it (`sysctl kern.sysclock.active`).
///
/// # Errors
/// Not permitted, or the kernel has no feed-forward clock.
pub fn set_estimate(estimate: &KernelEstimate) -> io::Result<()> {
    let mut raw = *estimate.raw();
    // SAFETY: the call reads one structure of this layout, which outlives it.
    checked(unsafe { ffclock_setestimate(&raw mut raw) })
}

/// The value of a sysctl, at most as many bytes as `room` has; how many it is.
fn setting(name: &CStr, room: &mut [u8]) -> io::Result<usize> {
    let mut length = room.len();
    let place = room.as_mut_ptr().cast();
    // SAFETY: the name is a C string; the call writes at most `length` bytes to `room` and how many it wrote to `length`, all of which
    // outlive it; nothing new is given.
    checked(unsafe { sysctlbyname(name.as_ptr(), place, &raw mut length, core::ptr::null(), 0) })?;
    Ok(length.min(room.len()))
}

/// The text of a sysctl(8) setting.
///
/// # Errors
/// There is none of this name, or it is longer than a kilobyte.
pub fn text(name: &CStr) -> io::Result<String> {
    let mut room = [0; 1024];
    let length = setting(name, &mut room)?;
    let bytes = room.get(..length).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
    Ok(String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned())
}

/// The number of a sysctl(8) setting, of 32 or 64 bits, not negative.
///
/// # Errors
/// There is none of this name, or it is no such number.
pub fn number(name: &CStr) -> io::Result<u64> {
    let mut room = [0; 8];
    match setting(name, &mut room)? {
        4 => Ok(u32::from_ne_bytes([room[0], room[1], room[2], room[3]]).into()),
        8 => Ok(u64::from_ne_bytes(room)),
        length => Err(io::Error::other(format!("{} is no number but {length} bytes", name.to_string_lossy()))),
    }
}

/// The hardware counter under the kernel's clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timecounter {
    /// Its name, as in `kern.timecounter.choice`.
    pub name: String,
    /// The nominal frequency [Hz].
    pub hertz: u64,
    /// The bits that it has.
    pub mask: u64,
}

/// The timecounter in use.
///
/// # Errors
/// The kernel does not tell.
pub fn timecounter() -> io::Result<Timecounter> {
    let name = text(c"kern.timecounter.hardware")?;
    let of = |what: &str| number(&CString::new(format!("kern.timecounter.tc.{name}.{what}"))?);
    Ok(Timecounter { hertz: of("frequency")?, mask: of("mask")?, name })
}
