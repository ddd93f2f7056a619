//! The calls that ask for the discipline of `CLOCK_REALTIME` and change it. Through the C library's own functions, so
//! that a stand-in for the kernel's clock takes their place.

use super::super::checked;
use std::io;

/// A timex that asks for nothing and changes nothing.
pub(crate) fn empty_timex() -> libc::timex {
    // SAFETY: a timex is made of integers, for which zero is a value.
    unsafe { core::mem::zeroed() }
}

/// Carries out `change.modes`, and leaves in `change` what holds then.
pub(crate) fn adjust_realtime(change: &mut libc::timex) -> io::Result<()> {
    // SAFETY: the kernel reads and writes one timex, which outlives the call.
    checked(unsafe { libc::clock_adjtime(libc::CLOCK_REALTIME, &raw mut *change) }).map(drop)
}
