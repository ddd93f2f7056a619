//! The kernel's calls for which the standard library has no function, each behind a safe one.

use ffclock_units::Span;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Waits until the socket has something (an entry in its error queue counts) or `longest` has passed. poll(2) counts
/// milliseconds, this call nanoseconds.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, longest: Span) -> io::Result<()> {
    let nanos = longest.as_nanos().clamp(0, 1_000_000_000_000);
    let timeout = libc::timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
    let mut entry = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one entry and one timespec, which both outlive the call; no mask of signals.
    let ready = unsafe { libc::ppoll(&raw mut entry, 1, &raw const timeout, core::ptr::null()) };
    match checked(ready) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Moves the calling thread, and threads that it starts later, into a new network namespace that has only an idle
/// loopback.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// `struct ethtool_ts_info` of <linux/ethtool.h>.
#[repr(C)]
#[derive(Default)]
struct TimestampingInfo {
    command: u32,
    modes: u32,
    clock: i32,
    transmit_types: u32,
    reserved: [u32; 3],
    receive_filters: u32,
    reserved_too: [u32; 3],
}

/// `ETHTOOL_GET_TS_INFO` of <linux/ethtool.h>.
const GET_TS_INFO: u32 = 0x41;

/// What a network device says of the stamps that it can take itself (`ETHTOOL_GET_TS_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampAbility {
    /// Flags SOF_TIMESTAMPING_*.
    pub(crate) modes: u32,
    /// The number of its PTP clock, if it has one.
    pub(crate) clock: Option<u32>,
}

/// Asks a network device which stamps it can take itself.
pub(crate) fn stamp_ability(device: &str) -> io::Result<StampAbility> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("[::1]:0"))?;
    let mut info = TimestampingInfo { command: GET_TS_INFO, ..TimestampingInfo::default() };
    // SAFETY: an ifreq is made of integers and a pointer, for which zero is a value.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    if device.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    // SAFETY: SIOCETHTOOL with this command reads the name and writes one ethtool_ts_info; both outlive the call.
    checked(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(StampAbility { modes: info.modes, clock: u32::try_from(info.clock).ok() })
}

/// A descriptor of another process, as a descriptor of this one for the same file (`pidfd_getfd`, Linux 5.6). It needs
/// the right to trace that process, which is neither stopped nor changed.
pub(crate) fn descriptor_of(pid: u32, descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let process = checked(process as libc::c_int)?;
    // SAFETY: the kernel has just made this descriptor, and nothing else holds it.
    let process = unsafe { OwnedFd::from_raw_fd(process) };
    // SAFETY: the call takes numbers only.
    let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.as_raw_fd(), descriptor, 0) };
    let copy = checked(copy as libc::c_int)?;
    // SAFETY: as above.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

/// A number among the options of a socket (level `SOL_SOCKET`).
pub(crate) fn socket_option(socket: BorrowedFd<'_>, option: libc::c_int) -> io::Result<u32> {
    let mut value = 0_u32;
    let mut size = size_of::<u32>() as libc::socklen_t;
    let place = (&raw mut value).cast();
    // SAFETY: the kernel writes at most `size` bytes to `value`; both outlive the call.
    checked(unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, place, &raw mut size) })?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn the_options_of_a_process_s_socket_are_read() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = match descriptor_of(std::process::id(), socket.as_raw_fd()) {
            Ok(own) => own,
            Err(error) => return println!("SKIP: pidfd_getfd: {error}"),
        };
        assert_eq!(socket_option(own.as_fd(), libc::SO_TYPE).unwrap(), libc::SOCK_DGRAM as u32);
        assert!(socket_option(File::open("/dev/null").unwrap().as_fd(), libc::SO_TYPE).is_err());
        assert!(descriptor_of(std::process::id(), -1).is_err());
    }
}
