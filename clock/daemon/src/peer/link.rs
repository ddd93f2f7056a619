//! The path to one address of a server: a socket, and the request in flight.

use crate::config::StampChoice;
use ffclock_source::Ticket;
use ffclock_sys::{
    SendId, SocketEvent, StampDiscarded, StampMode, StampQuality, StampShifts, StampedSocket, Stamper, Transmitted,
};
use ffclock_units::{Exchange, Stamp};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// A complete reply has this length; a longer one is recognised as too long.
pub(super) const BUFFER_BYTES: usize = 2048;

/// A request whose stamp has not been handed to the source.
struct InFlight {
    id: SendId,
    ticket: Ticket,
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
    /// No socket can be made, or there is no route.
    pub(super) fn open(address: SocketAddr, stamps: StampChoice) -> io::Result<Self> {
        let mode = if stamps.is_in_kernel() { StampMode::Kernel } else { StampMode::User };
        Ok(Link { socket: StampedSocket::connect(address, mode)?, address, in_flight: None })
    }

    /// Takes the host's own delays off the stamps from now on.
    pub(super) fn calibrate(&mut self, shifts: StampShifts) {
        self.socket.shift(shifts);
    }

    /// Sends from another port from now on, which the kernel chooses at random. A request in flight is not answered any
    /// more.
    ///
    /// # Errors
    /// No socket can be made, or there is no route: the link stays as it is.
    pub(super) fn change_port(&mut self) -> io::Result<()> {
        self.socket.change_port()?;
        self.in_flight = None;
        Ok(())
    }

    /// The local address, if the kernel reports it.
    pub(super) fn local_address(&self) -> Option<std::net::IpAddr> {
        self.socket.local_address().ok().map(|address| address.ip())
    }

    /// The port that it sends from.
    #[cfg(test)]
    pub(super) fn local_port(&self) -> Option<u16> {
        self.socket.local_address().ok().map(|address| address.port())
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where packets are stamped, beside the configured location.
    pub(super) fn quality(&self) -> StampQuality {
        self.socket.quality()
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a request as this datagram. If the kernel stamps, its stamp comes later, by [`Link::redeem`]; otherwise it
    /// is returned at once.
    ///
    /// # Errors
    /// The kernel refuses the packet; the request counts as lost.
    pub(super) fn send(
        &mut self,
        (datagram, ticket): (&[u8], Ticket),
        stamper: &mut Stamper,
    ) -> io::Result<Option<(Ticket, Stamp)>> {
        let sent = self.socket.send(datagram, stamper)?;
        if let Some(best) = sent.best {
            return Ok(Some((ticket, best.stamp)));
        }
        self.in_flight = Some(InFlight { id: sent.id, ticket });
        Ok(None)
    }

    /// The next event of the socket.
    ///
    /// # Errors
    /// The socket itself fails.
    pub(super) fn next_event(&mut self, buffer: &mut [u8], stamper: &mut Stamper) -> io::Result<Option<SocketEvent>> {
        self.socket.next_event(buffer, stamper)
    }

    /// The stamp of a request, once the kernel's has come or proved useless.
    pub(super) fn redeem(&mut self, sent: &Transmitted) -> Option<(Ticket, Stamp)> {
        let request = self.in_flight.take_if(|request| request.id == sent.id)?;
        Some((request.ticket, sent.best.stamp))
    }

    /// The stamp of a request for which the kernel gave none.
    pub(super) fn redeem_without_the_kernel(&mut self) -> Option<(Ticket, Stamp)> {
        let request = self.in_flight.take()?;
        self.socket.give_up(request.id).map(|best| (request.ticket, best.stamp))
    }

    /// Records how an exchange was stamped. Returns the reason if, with it, the kernel's stamps count as missing.
    pub(super) fn note(&mut self, exchange: &Exchange) -> Option<StampDiscarded> {
        self.socket.note_exchange(&exchange.sent, &exchange.received)
    }
}
