//! Notice that the system clock was set.
//!
//! A timer on `CLOCK_REALTIME` with `TFD_TIMER_CANCEL_ON_SET` (timerfd_create(2)) is cancelled by every step of that
//! clock from any source: clock_settime, adjtimex with ADJ_SETOFFSET, a leap second, the end of a suspend. Slewing
//! does not cancel it. The kernel steps the clock first and cancels the timers some microseconds later.

use crate::ffi;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Notices steps of the system clock. Its descriptor becomes readable at a step.
#[derive(Debug)]
pub struct CancelOnSetTimer {
    timer: OwnedFd,
}

impl CancelOnSetTimer {
    /// Watches from now on.
    ///
    /// # Errors
    /// Where the kernel gives no such timer.
    pub fn new() -> io::Result<Self> {
        Ok(CancelOnSetTimer { timer: ffi::timer_cancelled_on_set()? })
    }

    /// Whether the clock was set since the last call. The kernel rearms the timer by itself when its cancellation is
    /// read.
    ///
    /// # Errors
    /// Whatever keeps the timer from being read.
    pub fn was_set(&mut self) -> io::Result<bool> {
        match ffi::read(self.timer.as_fd(), &mut [0; 8]) {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ECANCELED) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for CancelOnSetTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interest, mono_now, poll};
    use ffclock_units::Span;

    #[test]
    fn nothing_is_reported_while_the_clock_is_not_set() {
        let mut timer = CancelOnSetTimer::new().unwrap();
        let mut interests = [Interest::readable(timer.as_fd())];
        assert_eq!(poll(&mut interests, Some(mono_now() + Span::from_millis(5))).unwrap(), 0);
        assert!(!interests[0].is_ready());
        assert!(!timer.was_set().unwrap());
    }
}
