//! The calls that only an instrument makes, each behind a safe function. The one file of this crate with unsafe code.
//!
//! The daemon reads clocks through libc's own functions. An instrument that says what a forced system call costs has to
//! force one.

use crate::posix_clock::PosixClock;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

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
    // SAFETY: PPS_FETCH reads and writes one pps_fdata, which outlives the call. On a descriptor of something else it
    // is refused with ENOTTY.
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
    fn what_is_no_device_is_refused() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(read_device_clock(&file), None);
        assert!(latest_pulse(&file).is_err());
        assert_eq!(size_of::<PpsData>(), 64);
    }
}
