//! Calls that FreeBSD has in another form, or lacks.

pub(crate) mod hardware;
pub(crate) mod references;

use super::checked;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Room for packets that wait, up to `kern.ipc.maxsockbuf`.
pub(crate) fn set_receive_buffer(fd: BorrowedFd<'_>, bytes: libc::c_int) -> io::Result<()> {
    super::set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes)
}

/// FreeBSD does not count dropped packets per socket.
pub(crate) fn dropped_packets(_: BorrowedFd<'_>) -> io::Result<u32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The effective user of the process that connected a UNIX socket, as it was then.
pub(crate) fn user_of_peer(fd: BorrowedFd<'_>) -> io::Result<libc::uid_t> {
    let (mut user, mut group) = (libc::uid_t::MAX, libc::gid_t::MAX);
    // SAFETY: the call writes one user and one group, which outlive it.
    checked(unsafe { libc::getpeereid(fd.as_raw_fd(), &raw mut user, &raw mut group) })?;
    Ok(user)
}

/// The number of the calling thread.
pub(crate) fn own_thread() -> libc::pid_t {
    // SAFETY: the call takes no pointers and always succeeds.
    unsafe { libc::pthread_getthreadid_np() }
}

/// Where this thread's errno is.
pub(super) fn errno_place() -> *mut libc::c_int {
    // SAFETY: the call takes no pointers and always succeeds.
    unsafe { libc::__error() }
}

/// FreeBSD gives no notice when the system clock is set.
pub(crate) fn timer_cancelled_on_set() -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no such mounts.
pub(crate) fn mount_privately(_: &core::ffi::CStr) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}
