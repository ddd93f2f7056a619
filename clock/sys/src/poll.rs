//! Waiting, with `poll(2)` of libc.

use crate::{ffi, mono_now};
use core::marker::PhantomData;
use ffclock_units::{Moment, Mono, Span};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A descriptor to wait for, and after [`poll`] what was found. Errors (an entry in a socket's error queue among them)
/// are always waited for.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'fd> {
    entry: libc::pollfd,
    fd: PhantomData<BorrowedFd<'fd>>,
}

impl<'fd> Interest<'fd> {
    /// Waits until there is something to read, or an error.
    pub fn readable(fd: BorrowedFd<'fd>) -> Self {
        Self::of(fd, libc::POLLIN)
    }

    /// Waits until something can be written, or an error.
    pub fn writable(fd: BorrowedFd<'fd>) -> Self {
        Self::of(fd, libc::POLLOUT)
    }

    fn of(fd: BorrowedFd<'fd>, events: libc::c_short) -> Self {
        Interest { entry: libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 }, fd: PhantomData }
    }

    /// Whether there is anything to do: data, room or an error.
    pub fn is_ready(&self) -> bool {
        self.entry.revents != 0
    }

    /// Whether there is something to read (the end of a stream counts).
    pub fn is_readable(&self) -> bool {
        self.entry.revents & (libc::POLLIN | libc::POLLHUP) != 0
    }

    /// Whether something can be written.
    pub fn is_writable(&self) -> bool {
        self.entry.revents & libc::POLLOUT != 0
    }

    /// Whether there is an error, or an entry in the error queue.
    pub fn has_error(&self) -> bool {
        self.entry.revents & (libc::POLLERR | libc::POLLNVAL) != 0
    }
}

/// Waits until one of `interests` is ready or `deadline` has passed (`None`: without end), and says how many are ready.
/// A signal ends the wait early with 0.
///
/// poll(2) counts milliseconds; the deadline is rounded up, so the wait never ends early for that reason, and up to 1
/// ms late.
///
/// # Errors
/// As poll(2), except for the interruption by a signal.
pub fn poll(interests: &mut [Interest<'_>], deadline: Option<Moment<Mono>>) -> io::Result<usize> {
    let timeout = deadline.map_or(-1, |deadline| milliseconds_up(deadline - mono_now()));
    let mut entries: Vec<libc::pollfd> = interests.iter().map(|interest| interest.entry).collect();
    let ready = match ffi::poll(&mut entries, timeout) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            entries.iter_mut().for_each(|entry| entry.revents = 0);
            0
        }
        result => result?,
    };
    for (interest, entry) in interests.iter_mut().zip(entries) {
        interest.entry = entry;
    }
    Ok(ready)
}

fn milliseconds_up(span: Span) -> libc::c_int {
    let milliseconds = (span.as_nanos() + 999_999).div_euclid(1_000_000);
    milliseconds.clamp(0, libc::c_int::MAX.into()) as libc::c_int
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn waits_are_rounded_up_and_never_negative() {
        assert_eq!(milliseconds_up(Span::from_micros(1)), 1);
        assert_eq!(milliseconds_up(Span::from_millis(2)), 2);
        assert_eq!(milliseconds_up(-Span::from_secs(1)), 0);
        assert_eq!(milliseconds_up(Span::MAX), libc::c_int::MAX);
    }

    #[test]
    fn the_deadline_passes_and_not_early() {
        let deadline = mono_now() + Span::from_millis(3);
        assert_eq!(poll(&mut [], Some(deadline)).unwrap(), 0);
        assert!(mono_now() >= deadline);
        assert_eq!(poll(&mut [], Some(deadline)).unwrap(), 0, "a deadline in the past does not wait");
    }

    #[test]
    fn what_is_ready_is_marked() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        let mut interests =
            [Interest::readable(near.as_fd()), Interest::readable(far.as_fd()), Interest::writable(far.as_fd())];
        assert_eq!(poll(&mut interests, None).unwrap(), 2);
        let ready = interests.map(|interest| (interest.is_readable(), interest.is_writable(), interest.has_error()));
        assert_eq!(ready, [(false, false, false), (true, false, false), (false, true, false)]);
    }
}
