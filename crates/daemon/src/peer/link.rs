//! The way to one address of a server: a socket, and the request that is on its way.

use crate::config::StampChoice;
use ffclock_source::{Ticket, Transmit};
use ffclock_sys::{Mapper, SendId, SocketEvent, StampMode, StampedSocket};
use ffclock_units::Stamp;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A reply of this length is complete; what is longer is seen to be too long.
pub(super) const BUFFER_BYTES: usize = 1024;

/// A request whose stamp has not been told to the source.
struct InFlight {
    id: SendId,
    ticket: Ticket,
    user_stamp: Stamp,
}

/// A connected socket.
pub(super) struct Link {
    socket: StampedSocket,
    address: SocketAddr,
    in_flight: Option<InFlight>,
}

impl Link {
    /// A link to `address`.
    ///
    /// # Errors
    /// There is no socket to be had, or no route.
    pub(super) fn open(address: SocketAddr, stamps: StampChoice) -> io::Result<Self> {
        let mode = match stamps {
            StampChoice::Kernel => StampMode::Kernel,
            StampChoice::User => StampMode::User,
        };
        Ok(Link { socket: StampedSocket::connect(address, mode)?, address, in_flight: None })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Who stamps: what was asked for, or user space where the kernel refuses.
    pub(super) fn mode(&self) -> StampMode {
        self.socket.mode()
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a request. Where the kernel stamps, its stamp comes later, by [`Link::redeem`]; otherwise it is here at once.
    ///
    /// # Errors
    /// The kernel does not take it; it counts as lost then.
    pub(super) fn send(&mut self, transmit: Transmit, mapper: &mut Mapper) -> io::Result<Option<(Ticket, Stamp)>> {
        let sent = self.socket.send(&transmit.bytes, mapper)?;
        if self.mode() == StampMode::User {
            return Ok(Some((transmit.ticket, sent.user)));
        }
        self.in_flight = Some(InFlight { id: sent.id, ticket: transmit.ticket, user_stamp: sent.user });
        Ok(None)
    }

    /// The next thing that happened on the socket.
    ///
    /// # Errors
    /// The socket itself fails.
    pub(super) fn next_event(&mut self, buffer: &mut [u8], mapper: &mut Mapper) -> io::Result<Option<SocketEvent>> {
        self.socket.next_event(buffer, mapper)
    }

    /// The stamp of a request, now that the kernel's has come or proved useless.
    pub(super) fn redeem(&mut self, sent: &ffclock_sys::Transmitted) -> Option<(Ticket, Stamp)> {
        let request = self.in_flight.take_if(|request| request.id == sent.id)?;
        Some((request.ticket, sent.stamp.unwrap_or(request.user_stamp)))
    }

    /// The stamp of a request for which the kernel gave none: the one of user space is earlier, so it only lengthens the round trip,
    /// which the estimator takes for queueing.
    pub(super) fn redeem_with_user_stamp(&mut self) -> Option<(Ticket, Stamp)> {
        self.in_flight.take().map(|request| (request.ticket, request.user_stamp))
    }
}
