//! The calls that only an instrument makes, each behind a safe function. The one file of this crate with unsafe code.
//!
//! The daemon reads clocks through libc's own functions. An instrument that says what a forced system call costs has to
//! force one.

use crate::probe::hardware::StampAbility;
use crate::ways::PosixClock;
use ffclock_units::Span;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

const ZERO: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

#[inline(always)]
fn nanos(time: libc::timespec) -> u64 {
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// A clock through the C library, which asks the vDSO where the kernel has one for it; ns since its origin.
#[inline(always)]
pub(crate) fn read_clock(clock: PosixClock) -> Option<u64> {
    read_clock_id(clock.id())
}

#[inline(always)]
fn read_clock_id(id: libc::clockid_t) -> Option<u64> {
    let mut now = ZERO;
    // SAFETY: `now` is a timespec that outlives the call.
    let result = unsafe { libc::clock_gettime(id, &raw mut now) };
    (result == 0).then(|| nanos(now))
}

/// A clock through a system call that goes round the vDSO.
#[inline(always)]
pub(crate) fn read_clock_by_system_call(clock: PosixClock) -> Option<u64> {
    let mut now = ZERO;
    // SAFETY: the call takes the number of a clock and writes a timespec, which outlives the call.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock.id(), &raw mut now) };
    (result == 0).then(|| nanos(now))
}

/// The cheapest system call that the C library does not keep the answer of: what entering the kernel costs.
#[inline(always)]
pub(crate) fn empty_system_call() -> Option<u64> {
    // SAFETY: getppid takes nothing, touches nothing and cannot fail.
    u64::try_from(unsafe { libc::syscall(libc::SYS_getppid) }).ok()
}

/// A PTP hardware clock as a clock of POSIX; ns since its origin.
#[inline(always)]
pub(crate) fn read_device_clock(device: &File) -> Option<u64> {
    // FD_TO_CLOCKID of the kernel's documentation (Documentation/driver-api/ptp.rst): the inverted descriptor, and 3.
    read_clock_id((!device.as_raw_fd() << 3) | 3)
}

/// Waits until the socket has something (an entry in its error queue counts) or `longest` has passed; poll(2) counts milliseconds, this
/// one nanoseconds.
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

/// Moves the calling thread, and threads that it starts later, into a new network namespace that has only an idle loopback.
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

/// What a network device says of the stamps that it can take itself.
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

/// A descriptor of another process, as a descriptor of ours for the same file (`pidfd_getfd`, Linux 5.6). Needs the right to trace that
/// process; it is neither stopped nor changed.
pub(crate) fn descriptor_of(pid: u32, descriptor: i32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers only.
    let process = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    let process = checked(process as libc::c_int)?;
    // SAFETY: the kernel gave us this descriptor a moment ago, and nobody else knows it.
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

/// `struct pps_ktime` of <linux/pps.h>.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PpsTime {
    sec: i64,
    nsec: i32,
    flags: u32,
}

/// `struct pps_fdata` of <linux/pps.h>; the kernel's compiler puts the same four bytes before `timeout`.
#[repr(C)]
#[derive(Default)]
struct PpsData {
    assert_sequence: u32,
    clear_sequence: u32,
    assert_time: PpsTime,
    clear_time: PpsTime,
    current_mode: i32,
    padding: u32,
    timeout: PpsTime,
}

/// `PPS_FETCH` of <linux/pps.h>: `_IOWR('p', 0xa4, struct pps_fdata *)`.
const PPS_FETCH: u32 = 0xc008_70a4;

/// The latest pulse of a PPS device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    /// Its number.
    pub(crate) sequence: u32,
    /// CLOCK_REALTIME at its leading edge, ns.
    pub(crate) realtime: i128,
}

/// The latest pulse, without waiting for the next.
pub(crate) fn latest_pulse(device: &File) -> io::Result<Pulse> {
    let mut data = PpsData::default();
    // SAFETY: PPS_FETCH reads and writes one pps_fdata, which outlives the call. On a descriptor of something else it is
    // refused with ENOTTY.
    checked(unsafe { libc::ioctl(device.as_raw_fd(), PPS_FETCH as _, &raw mut data) })?;
    let realtime = i128::from(data.assert_time.sec) * 1_000_000_000 + i128::from(data.assert_time.nsec);
    Ok(Pulse { sequence: data.assert_sequence, realtime })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_a_clock_lead_to_the_same_clock() {
        for clock in PosixClock::ALL {
            let (Some(first), Some(second), Some(third)) =
                (read_clock(clock), read_clock_by_system_call(clock), read_clock(clock))
            else {
                panic!("{clock:?} cannot be read");
            };
            assert!(first <= second && second <= third, "{clock:?}: {first} {second} {third}");
        }
    }

    #[test]
    fn a_socket_of_a_process_tells_its_options() {
        use std::os::fd::AsFd;
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let own = match descriptor_of(std::process::id(), socket.as_raw_fd()) {
            Ok(own) => own,
            Err(error) => return println!("SKIP: pidfd_getfd: {error}"),
        };
        assert_eq!(socket_option(own.as_fd(), libc::SO_TYPE).unwrap(), libc::SOCK_DGRAM as u32);
        assert!(socket_option(File::open("/dev/null").unwrap().as_fd(), libc::SO_TYPE).is_err());
        assert!(descriptor_of(std::process::id(), -1).is_err());
    }

    #[test]
    fn what_is_no_device_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(read_device_clock(&file), None);
        assert!(latest_pulse(&file).is_err());
        assert_eq!(size_of::<PpsData>(), 64);
    }
}
