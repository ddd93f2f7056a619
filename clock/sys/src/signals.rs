//! Signals, as something that a loop around `poll` can wait for: the handler notes the signal and writes to a pipe.

use crate::ffi;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

/// A signal that a daemon acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: read the configuration again.
    Hangup,
    /// SIGTERM: end.
    Terminate,
    /// SIGINT: end.
    Interrupt,
}

const SIGNALS: [(Signal, libc::c_int); 3] =
    [(Signal::Terminate, libc::SIGTERM), (Signal::Interrupt, libc::SIGINT), (Signal::Hangup, libc::SIGHUP)];

/// A bit for each signal that has arrived, at the place of its number.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
/// The end of the pipe that the handler writes to.
static WRITE_END: AtomicI32 = AtomicI32::new(-1);
/// The pipe, made once: a handler may run at any time, so neither end is ever closed.
static PIPE: Mutex<Option<(OwnedFd, OwnedFd)>> = Mutex::new(None);

extern "C" fn note(signal: libc::c_int) {
    ARRIVED.fetch_or(1 << signal, Ordering::SeqCst);
    ffi::write_from_handler(WRITE_END.load(Ordering::SeqCst));
}

/// The signals of this process. Its descriptor becomes readable when one arrives; `poll` also ends early.
#[derive(Debug)]
pub struct Signals {
    read_end: OwnedFd,
}

impl Signals {
    /// Takes over SIGHUP, SIGTERM and SIGINT for the whole process.
    ///
    /// # Errors
    /// When there is no pipe to be had.
    pub fn install() -> io::Result<Self> {
        let mut pipe = PIPE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (read_end, write_end) = match pipe.take() {
            Some(ends) => ends,
            None => ffi::pipe()?,
        };
        WRITE_END.store(write_end.as_raw_fd(), Ordering::SeqCst);
        let ours = read_end.try_clone();
        *pipe = Some((read_end, write_end));
        let signals = Signals { read_end: ours? };
        for (_, number) in SIGNALS {
            ffi::handle_signal(number, note)?;
        }
        Ok(signals)
    }

    /// The next signal that arrived, those that end the process first; `None` when all are dealt with. A signal that
    /// arrived several times is reported once.
    pub fn take(&mut self) -> Option<Signal> {
        // Emptied first: what arrives from here on makes the pipe readable again.
        while matches!(ffi::read(self.read_end.as_fd(), &mut [0; 64]), Ok(count) if count > 0) {}
        SIGNALS.into_iter().find_map(|(signal, number)| {
            let bit = 1 << number;
            (ARRIVED.fetch_and(!bit, Ordering::SeqCst) & bit != 0).then_some(signal)
        })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.read_end.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interest, mono_now, poll};
    use ffclock_units::Span;
    use std::process::Command;

    #[test]
    fn signals_wake_the_loop_and_are_reported_once() {
        let mut signals = Signals::install().unwrap();
        assert_eq!(signals.take(), None);
        for name in ["-HUP", "-HUP", "-TERM"] {
            let ourselves = std::process::id().to_string();
            assert!(Command::new("kill").args([name, &ourselves]).status().unwrap().success());
        }
        let deadline = mono_now() + Span::from_secs(5);
        let mut seen = Vec::new();
        while seen.len() < 2 && mono_now() < deadline {
            poll(&mut [Interest::readable(signals.as_fd())], Some(deadline)).unwrap();
            seen.extend(std::iter::from_fn(|| signals.take()));
        }
        seen.sort_by_key(|signal| *signal == Signal::Hangup);
        assert_eq!(seen, [Signal::Terminate, Signal::Hangup]);
        assert_eq!(signals.take(), None);
    }
}
