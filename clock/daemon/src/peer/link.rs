//! The path to one address of a server: a socket, and the request in flight.

use crate::config::StampChoice;
use ffclock_source::Ticket;
use ffclock_sys::{
    BestStamp, CardUse, SendId, SocketEvent, StampDiscarded, StampMode, StampQuality, StampShifts, StampedSocket,
    Stamper, Transmitted,
};
use ffclock_units::Exchange;
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
        let mode = match stamps {
            StampChoice::User => StampMode::User,
            StampChoice::Kernel | StampChoice::Trace | StampChoice::Module => StampMode::Kernel,
            StampChoice::Hardware => StampMode::Hardware,
        };
        Ok(Link { socket: StampedSocket::connect(address, mode)?, address, in_flight: None })
    }

    /// Takes the host's own delays off the stamps from now on.
    pub(super) fn calibrate(&mut self, shifts: StampShifts) {
        self.socket.shift(shifts);
    }

    /// Takes the stamps of this network card from now on.
    pub(super) fn use_hardware(&mut self, card: Option<CardUse>) {
        self.socket.use_hardware(card);
    }

    /// Whether a network card is asked for stamps.
    pub(super) fn is_in_hardware(&self) -> bool {
        self.socket.mode() == StampMode::Hardware
    }

    /// Whether the network card's stamp of the request in flight is worth waiting for.
    pub(super) fn awaits_hardware(&self) -> bool {
        self.in_flight.as_ref().is_some_and(|request| self.socket.awaits_hardware(request.id))
    }

    /// Waits for it, for a millisecond at most.
    pub(super) fn wait_for_hardware(&self) {
        // Without it the kernel's stamp serves, as it does if this fails.
        drop(self.socket.wait_for_stamp());
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
    ) -> io::Result<Option<(Ticket, BestStamp)>> {
        let sent = self.socket.send(datagram, stamper)?;
        if let Some(best) = sent.best {
            return Ok(Some((ticket, best)));
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
    pub(super) fn redeem(&mut self, sent: &Transmitted) -> Option<(Ticket, BestStamp)> {
        let request = self.in_flight.take_if(|request| request.id == sent.id)?;
        Some((request.ticket, sent.best))
    }

    /// The stamp of a request for which no better one is waited for.
    pub(super) fn redeem_without_the_rest(&mut self) -> Option<(Ticket, BestStamp)> {
        let request = self.in_flight.take()?;
        self.socket.give_up(request.id).map(|best| (request.ticket, best))
    }

    /// Records how an exchange was stamped. Returns the reason if, with it, the kernel's stamps count as missing.
    pub(super) fn note(&mut self, exchange: &Exchange) -> Option<StampDiscarded> {
        self.socket.note_exchange(&exchange.sent, &exchange.received)
    }
}
