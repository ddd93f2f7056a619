//! FreeBSD stamps no packet on its way out and has no error queue: what there is to know comes from the calls
//! themselves.

use super::{ReceivedStamps, SendReport};
use crate::StampMode;
use crate::ffi::Message;
use std::io;
use std::net::UdpSocket;
use std::os::fd::BorrowedFd;

/// FreeBSD numbers no packets.
pub(crate) fn number_packets(_: &UdpSocket, _: StampMode) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// FreeBSD queues no errors: a connected socket gives them to the next call.
pub(crate) fn queue_errors(_: &UdpSocket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No kernel stamp of a reception is read.
pub(crate) fn of_received(_: &Message) -> ReceivedStamps {
    ReceivedStamps::default()
}

/// There is no queue to read from.
pub(crate) fn next_entry(_: BorrowedFd<'_>) -> Option<SendReport> {
    None
}
