//! PPS devices (linux/pps.h) and shared memory of System V.

use crate::ffi::checked;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct pps_ktime`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PulseTime {
    pub(crate) seconds: i64,
    pub(crate) nanos: i32,
    flags: u32,
}

/// `struct pps_kinfo`, each pair for the rising edge (assert) and the falling one (clear), and the timeout of
/// `struct pps_fdata`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PulseRecord {
    pub(crate) sequences: [u32; 2],
    pub(crate) times: [PulseTime; 2],
    mode: i32,
    filler: i32,
    timeout: PulseTime,
}

/// `PPS_FETCH` and `PPS_GETCAP`: the kernel's header gives them the size of a pointer.
const FETCH: u32 = 0xc000_70a4 | (size_of::<usize>() as u32) << 16;
const CAPABILITIES: u32 = 0x8000_70a3 | (size_of::<usize>() as u32) << 16;

/// The latest pulses of a PPS device; does not wait for one.
pub(crate) fn latest_pulses(fd: BorrowedFd<'_>) -> io::Result<PulseRecord> {
    let mut record = PulseRecord::default();
    // SAFETY: the call reads and writes one pps_fdata, which outlives it.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), FETCH as _, &raw mut record) })?;
    Ok(record)
}

/// What a PPS device can do: flags `PPS_CAPTUREASSERT` (1), `PPS_CAPTURECLEAR` (2) and others.
pub(crate) fn pulse_abilities(fd: BorrowedFd<'_>) -> io::Result<i32> {
    let mut flags: libc::c_int = 0;
    // SAFETY: the call writes one int, which outlives it.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), CAPABILITIES as _, &raw mut flags) })?;
    Ok(flags)
}

/// Who may write a segment of shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRights {
    pub(crate) owner: libc::uid_t,
    pub(crate) creator: libc::uid_t,
    pub(crate) mode: u32,
    pub(crate) bytes: usize,
}

/// A segment of shared memory of this number of words, attached for reading alone; detached when dropped.
#[derive(Debug)]
pub(crate) struct Segment<const COUNT: usize> {
    words: NonNull<[AtomicU32; COUNT]>,
}

// SAFETY: the memory belongs to the process, not to a thread, and is used through atomic words only.
unsafe impl<const COUNT: usize> Send for Segment<COUNT> {}

/// The number of the segment that has this key.
pub(crate) fn find_segment(key: i32) -> io::Result<i32> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::shmget(key, 0, 0) })
}

/// Who may write a segment, and how large it is.
pub(crate) fn segment_rights(number: i32) -> io::Result<SegmentRights> {
    // SAFETY: a shmid_ds is made of integers, for which zero is a value.
    let mut state: libc::shmid_ds = unsafe { core::mem::zeroed() };
    // SAFETY: the call writes one shmid_ds, which outlives it.
    checked(unsafe { libc::shmctl(number, libc::IPC_STAT, &raw mut state) })?;
    let access = state.shm_perm;
    Ok(SegmentRights {
        owner: access.uid,
        creator: access.cuid,
        mode: u32::from(access.mode) & 0o777,
        bytes: state.shm_segsz,
    })
}

impl<const COUNT: usize> Segment<COUNT> {
    /// Attaches the segment of this number for reading.
    pub(crate) fn attach(number: i32) -> io::Result<Self> {
        if segment_rights(number)?.bytes < COUNT * size_of::<u32>() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the kernel chooses a free place, so no memory in use is touched.
        let start = unsafe { libc::shmat(number, core::ptr::null(), libc::SHM_RDONLY) };
        if start.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        NonNull::new(start.cast()).map(|words| Segment { words }).ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
    }

    /// The words: for loading only. The memory is attached for reading, so a store ends the process.
    pub(crate) fn words(&self) -> &[AtomicU32; COUNT] {
        // SAFETY: the segment is at least of this size, which never changes, aligned to a page, and in place until
        // `self` is dropped; other processes change it at any time, which atomics allow.
        unsafe { self.words.as_ref() }
    }
}

impl<const COUNT: usize> Drop for Segment<COUNT> {
    fn drop(&mut self) {
        // SAFETY: this is the memory attached in `attach`, and no reference into it outlives `self`.
        unsafe { libc::shmdt(self.words.as_ptr().cast()) };
    }
}

/// A segment made for a test, with the words to write; removed when dropped.
#[cfg(test)]
pub(crate) fn make_segment(key: i32, bytes: usize, mode: i32) -> io::Result<i32> {
    // SAFETY: the call takes no pointers.
    checked(unsafe { libc::shmget(key, bytes, libc::IPC_CREAT | libc::IPC_EXCL | mode) })
}

#[cfg(test)]
pub(crate) fn remove_segment(number: i32) {
    // SAFETY: the command takes no memory.
    unsafe { libc::shmctl(number, libc::IPC_RMID, core::ptr::null_mut()) };
}
