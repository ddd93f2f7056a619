//! FreeBSD has PPS devices of another form, which this crate does not read yet, and shared memory of ntpd's form is not
//! looked for there.

use core::sync::atomic::AtomicU32;
use std::io;
use std::os::fd::BorrowedFd;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PulseTime {
    pub(crate) seconds: i64,
    pub(crate) nanos: i32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PulseRecord {
    pub(crate) sequences: [u32; 2],
    pub(crate) times: [PulseTime; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentRights {
    pub(crate) owner: libc::uid_t,
    pub(crate) creator: libc::uid_t,
    pub(crate) mode: u32,
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn latest_pulses(_: BorrowedFd<'_>) -> io::Result<PulseRecord> {
    unsupported()
}

pub(crate) fn pulse_abilities(_: BorrowedFd<'_>) -> io::Result<i32> {
    unsupported()
}

pub(crate) fn find_segment(_: i32) -> io::Result<i32> {
    unsupported()
}

pub(crate) fn segment_rights(_: i32) -> io::Result<SegmentRights> {
    unsupported()
}

#[derive(Debug)]
pub(crate) struct Segment<const COUNT: usize>([AtomicU32; COUNT]);

impl<const COUNT: usize> Segment<COUNT> {
    pub(crate) fn attach(_: i32) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn words(&self) -> &[AtomicU32; COUNT] {
        &self.0
    }
}
