//! The way to one address of a server: a socket, and the request that is on its way.

use crate::calibrator::Shifts;
use crate::config::StampChoice;
use ffclock_source::{Ticket, Transmit};
use ffclock_sys::{Mapper, Received, SendId, SocketEvent, StampDiscarded, StampMode, StampedSocket, Transmitted};
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
    /// When the latest request was handed over, by the stamp of user space.
    asked_at: Option<Stamp>,
    /// Whether the kernel's stamp of that request contradicts the order of events.
    is_contradicted: bool,
    /// What the host's own delays make of stamps.
    shifts: Shifts,
}

impl Link {
    /// A link to `address`.
    ///
    /// # Errors
    /// There is no socket to be had, or no route.
    pub(super) fn open(address: SocketAddr, stamps: StampChoice) -> io::Result<Self> {
        let mode = if stamps.is_in_kernel() { StampMode::Kernel } else { StampMode::User };
        Ok(Link {
            socket: StampedSocket::connect(address, mode)?,
            address,
            in_flight: None,
            asked_at: None,
            is_contradicted: false,
            shifts: Shifts::default(),
        })
    }

    /// Takes the host's own delays off the stamps from now on.
    pub(super) fn calibrate(&mut self, shifts: Shifts) {
        self.shifts = shifts;
    }

    /// Our own address, where the kernel tells.
    pub(super) fn local_address(&self) -> Option<std::net::IpAddr> {
        self.socket.local_address().ok().map(|address| address.ip())
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
        (self.asked_at, self.is_contradicted) = (Some(sent.user), false);
        if self.mode() == StampMode::User {
            return Ok(Some((transmit.ticket, self.shifts.sent(sent.user))));
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
    pub(super) fn redeem(&mut self, sent: &Transmitted) -> Option<(Ticket, Stamp)> {
        let request = self.in_flight.take_if(|request| request.id == sent.id)?;
        self.is_contradicted = matches!(sent.stamp, Err(StampDiscarded::BeforeReading | StampDiscarded::AfterReading));
        Some((request.ticket, self.shifts.sent(sent.stamp.unwrap_or(request.user_stamp))))
    }

    /// When a packet came. The kernel's stamp goes by a clock that may not be the one we read (a simulator stands between, or a fault
    /// is injected). It is not used when the one of the request proved wrong, or when it says that the reply came before the request
    /// was made: a little of that error would go unnoticed, and the round trip would seem shorter than it can be.
    pub(super) fn stamp_of(&self, received: &Received) -> Stamp {
        let too_early = |stamp: &Stamp| self.asked_at.is_some_and(|asked| !stamp.counter.is_after(asked.counter));
        let stamp = match received.kernel {
            Ok(stamp) if !self.is_contradicted && !too_early(&stamp) => stamp,
            _ => received.user,
        };
        self.shifts.received(stamp)
    }

    /// The stamp of a request for which the kernel gave none: the one of user space is earlier, so it only lengthens the round trip,
    /// which the estimator takes for queueing.
    pub(super) fn redeem_with_user_stamp(&mut self) -> Option<(Ticket, Stamp)> {
        self.in_flight.take().map(|request| (request.ticket, self.shifts.sent(request.user_stamp)))
    }
}
