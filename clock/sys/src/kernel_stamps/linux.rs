//! Stamps of the kernel and ICMP messages, as Linux gives them: control messages beside packets, and the error queue of
//! the socket (Documentation/networking/timestamping.rst).

use super::{ReceivedStamps, SendReport};
use crate::StampMode;
use crate::cmsg::{self, QueuedError};
use crate::ffi::{self, Message};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

const STAMPS: u32 = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;
/// Those of the network card beside them.
const HARDWARE: u32 = libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | libc::SOF_TIMESTAMPING_OPT_TX_SWHW
    | libc::SOF_TIMESTAMPING_OPT_PKTINFO;
const ORIGIN_STAMP: u8 = 4;
/// Taken when the packet passed to the driver (`SCM_TSTAMP_SND`), not when it was queued.
const AT_DRIVER: u32 = 0;

/// Asks for stamps and numbers; the numbers begin at 0, also where they were counted before.
pub(crate) fn number_packets(socket: &UdpSocket, mode: StampMode) -> io::Result<()> {
    let stamps = if mode == StampMode::Hardware { STAMPS | HARDWARE } else { STAMPS };
    for flags in [stamps, stamps | libc::SOF_TIMESTAMPING_OPT_ID] {
        ffi::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int)?;
    }
    Ok(())
}

/// Asks for stamps of what is received, and of those packets to be sent that ask for one themselves
/// ([`crate::cmsg::ask_for_departure`]). These alone are numbered; the numbers begin at 0.
pub(crate) fn number_chosen_packets(socket: BorrowedFd<'_>) -> io::Result<()> {
    let chosen = STAMPS & !libc::SOF_TIMESTAMPING_TX_SOFTWARE;
    for flags in [chosen, chosen | libc::SOF_TIMESTAMPING_OPT_ID] {
        ffi::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags as libc::c_int)?;
    }
    Ok(())
}

/// Makes ICMP messages arrive through the error queue.
pub(crate) fn queue_errors(socket: &UdpSocket) -> io::Result<()> {
    let (level, option) = match socket.local_addr()? {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVERR),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    ffi::set_option(socket.as_fd(), level, option, 1)
}

/// When the kernel, and perhaps the network card, saw a packet that was received.
pub(crate) fn of_received(message: &Message) -> ReceivedStamps {
    let extras = extras(message);
    ReceivedStamps { stamped: extras.stamped, by_card: extras.by_card, to: extras.to }
}

/// The next thing in the error queue that can be understood.
pub(crate) fn next_entry(socket: BorrowedFd<'_>) -> Option<SendReport> {
    loop {
        // Empty, or missing: a stand-in for the kernel may have no error queue. A broken socket shows when it is read.
        let message = ffi::receive_message(socket, &mut [], libc::MSG_ERRQUEUE).ok()?;
        let extras = extras(&message);
        match extras.error {
            Some(QueuedError { origin: ORIGIN_STAMP, info: AT_DRIVER, data, .. }) => {
                return Some(SendReport::Sent { number: data, stamped: extras.stamped, by_card: extras.by_card });
            }
            None | Some(QueuedError { origin: ORIGIN_STAMP, .. }) => {}
            Some(error) => return Some(SendReport::Unreachable { errno: error.errno, reporter: error.offender }),
        }
    }
}

fn extras(message: &Message) -> cmsg::Extras {
    cmsg::parse(message.control.0.get(..message.control_length).unwrap_or(&[]))
}
