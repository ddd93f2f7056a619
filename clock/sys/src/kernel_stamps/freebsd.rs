//! FreeBSD stamps no packet on its way out and has no error queue: what there is to know comes from the calls
//! themselves.

use super::Entry;
use crate::ffi::Message;
use ffclock_units::{Moment, Utc};
use std::io;
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

/// Not to be had.
pub(crate) fn number_packets(_: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not to be had: a connected socket gives the errors to the next call.
pub(crate) fn queue_errors(_: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Never.
pub(crate) fn of_received(_: &Message) -> Option<Moment<Utc>> {
    None
}

/// Nothing.
pub(crate) fn next_entry(_: BorrowedFd<'_>) -> Option<Entry> {
    None
}
