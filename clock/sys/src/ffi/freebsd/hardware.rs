//! FreeBSD has no calls for stamps of network cards that this crate uses: no device gives any.

use std::io;
use std::os::fd::BorrowedFd;

pub(crate) struct StampAbilities {
    pub(crate) modes: u32,
    pub(crate) clock: Option<u32>,
    pub(crate) receive_filters: u32,
}

#[derive(Debug)]
pub(crate) struct StampSettings {
    pub(crate) transmit: i32,
    pub(crate) filter: i32,
}

impl StampSettings {
    pub(crate) fn of(transmit: i32, filter: i32) -> Self {
        StampSettings { transmit, filter }
    }
}

pub(crate) struct CardReading {
    pub(crate) before: i64,
    pub(crate) shown: i64,
    pub(crate) after: i64,
}

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn stamp_abilities(_: &str) -> io::Result<StampAbilities> {
    unsupported()
}

pub(crate) fn stamp_settings(_: &str) -> io::Result<StampSettings> {
    unsupported()
}

pub(crate) fn set_stamps(_: &str, _: StampSettings) -> io::Result<StampSettings> {
    unsupported()
}

pub(crate) fn device_address(_: &str) -> io::Result<Option<[u8; 6]>> {
    unsupported()
}

pub(crate) fn network_devices() -> Vec<(u32, String)> {
    Vec::new()
}

pub(crate) fn read_precise(_: BorrowedFd<'_>) -> io::Result<CardReading> {
    unsupported()
}

pub(crate) fn read_extended(_: BorrowedFd<'_>, _: libc::clockid_t, _: usize) -> io::Result<Vec<CardReading>> {
    unsupported()
}

pub(crate) fn read_plain(_: BorrowedFd<'_>, _: usize) -> io::Result<Vec<CardReading>> {
    unsupported()
}
