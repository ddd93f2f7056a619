//! UDP sockets whose packets are stamped, on the way out and on the way in.
//!
//! A packet sent is stamped in user space at once, and by the kernel a little later: that stamp comes through the error
//! queue of the socket and is told as [`SocketEvent::Transmitted`] with the number of the packet. It may never come;
//! the stamp of user space is good in any case, only wider of the truth. A packet received comes with both.
//!
//! An ICMP message about a packet (nobody listens there) is an event as well and ends nothing.

use crate::address::RawAddress;
use crate::ffi::{self, Message};
use crate::kernel_stamps::{self, Entry};
use crate::ledger::{Ledger, SendId};
use crate::{Mapper, Mark, PairReader, StampDiscarded};
use ffclock_units::{Direction, Moment, Stamp, Utc};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// Who stamps the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMode {
    /// The kernel, at the boundary to the driver; and user space as a second best.
    Kernel,
    /// User space alone.
    User,
}

/// A packet was handed to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Names the packet; the kernel's stamp comes under this name.
    pub id: SendId,
    /// Read right before the packet was handed over: it left later.
    pub user: Stamp,
}

/// The stamp of a packet sent has come from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// The packet.
    pub id: SendId,
    /// When it passed to the driver.
    pub stamp: Result<Stamp, StampDiscarded>,
}

/// A packet has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many bytes of the buffer it fills.
    pub length: usize,
    /// Whether it was longer than the buffer.
    pub is_truncated: bool,
    /// Who sent it.
    pub from: SocketAddr,
    /// Read right after the packet was taken over: it came earlier.
    pub user: Stamp,
    /// When the kernel saw it first.
    pub kernel: Result<Stamp, StampDiscarded>,
}

impl Received {
    /// The kernel's stamp, or that of user space where there is none.
    pub fn best(&self) -> Stamp {
        self.kernel.unwrap_or(self.user)
    }
}

/// The network reports that packets do not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerError {
    /// What is wrong, such as `ConnectionRefused`.
    pub kind: io::ErrorKind,
    /// The host that says so, where it is known.
    pub reporter: Option<SocketAddr>,
}

/// What a socket has to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A packet has come; it is in the buffer.
    Received(Received),
    /// A stamp has come.
    Transmitted(Transmitted),
    /// Packets do not arrive.
    Unreachable(PeerError),
}

/// A UDP socket that never blocks.
#[derive(Debug)]
pub struct StampedSocket {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    mode: StampMode,
    ledger: Ledger,
    /// Whether the kernel's count began anew at some time, so that a stamp may belong to a packet of before.
    is_renumbered: bool,
    /// Made before the latest packet was sent.
    last_sent: Option<Mark>,
    /// Whether ICMP messages come through the error queue, so that the errors of calls tell nothing new.
    queues_errors: bool,
    /// An error that a call returned.
    pending: Option<PeerError>,
}

impl StampedSocket {
    /// A socket that talks to `peer` only, from a port that the kernel chooses. [`mode`](Self::mode) says whether the
    /// kernel agreed to stamp.
    ///
    /// # Errors
    /// When there is no socket to be had or no route to the peer.
    pub fn connect(peer: SocketAddr, mode: StampMode) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(peer)?;
        Self::of(socket, Some(peer), mode)
    }

    /// A socket that talks to everybody from `address`.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub fn bind(address: SocketAddr, mode: StampMode) -> io::Result<Self> {
        Self::of(UdpSocket::bind(address)?, None, mode)
    }

    fn of(socket: UdpSocket, peer: Option<SocketAddr>, wanted: StampMode) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let queues_errors = kernel_stamps::queue_errors(&socket).is_ok();
        let is_granted = wanted == StampMode::Kernel && kernel_stamps::number_packets(&socket).is_ok();
        let mode = if is_granted { StampMode::Kernel } else { StampMode::User };
        Ok(StampedSocket {
            socket,
            peer,
            mode,
            ledger: Ledger::default(),
            is_renumbered: false,
            last_sent: None,
            queues_errors,
            pending: None,
        })
    }

    /// Who stamps: what was asked for, or user space where the kernel cannot.
    pub fn mode(&self) -> StampMode {
        self.mode
    }

    /// Our own address.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The address that the socket is connected to.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Asks for room for `bytes` of packets that wait to be taken over and of stamps, beyond the host's limit where that is permitted. How many
    /// bytes there are then, as the kernel counts them: its own share included, twice what was asked for.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn enlarge_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
        ffi::set_receive_buffer(self.socket.as_fd(), wanted)?;
        let granted = ffi::option(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(granted).unwrap_or(0))
    }

    /// How many packets to this socket the kernel has thrown away because its buffer was full, modulo 2^32.
    ///
    /// # Errors
    /// When the kernel does not tell (before Linux 4.12).
    pub fn dropped(&self) -> io::Result<u32> {
        ffi::dropped_packets(self.socket.as_fd())
    }

    /// Sends a packet to the peer of a connected socket.
    ///
    /// # Errors
    /// When the kernel does not take the packet. An error that is about earlier packets is told by
    /// [`next_event`](Self::next_event) instead.
    pub fn send<R: PairReader>(&mut self, bytes: &[u8], mapper: &mut Mapper<R>) -> io::Result<Sent> {
        self.hand_over(bytes, None, mapper)
    }

    /// Sends a packet to `to` from a socket that is not connected.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to<R: PairReader>(&mut self, bytes: &[u8], to: SocketAddr, mapper: &mut Mapper<R>) -> io::Result<Sent> {
        self.hand_over(bytes, Some(&RawAddress::encode(to)), mapper)
    }

    /// The next thing that happened, stamps of packets sent before packets received; `None` when there is nothing more.
    /// A packet is put into `buffer`.
    ///
    /// # Errors
    /// When the socket itself fails.
    pub fn next_event<R: PairReader>(
        &mut self,
        buffer: &mut [u8],
        mapper: &mut Mapper<R>,
    ) -> io::Result<Option<SocketEvent>> {
        loop {
            let told = self.pending.take().map(SocketEvent::Unreachable).or_else(|| self.next_queued(mapper));
            if told.is_some() {
                return Ok(told);
            }
            match ffi::receive_message(self.socket.as_fd(), buffer, 0) {
                Ok(message) => {
                    let user = mapper.user_stamp();
                    if let Some(received) = self.received(&message, user, mapper) {
                        return Ok(Some(SocketEvent::Received(received)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => self.note(error)?,
            }
        }
    }

    fn hand_over<R: PairReader>(
        &mut self,
        bytes: &[u8],
        to: Option<&RawAddress>,
        mapper: &mut Mapper<R>,
    ) -> io::Result<Sent> {
        // The kernel reports an ICMP message about an earlier packet in place of sending this one, so it is tried
        // again.
        let mut tries = 3;
        if self.mode == StampMode::Kernel {
            mapper.prepare_to_send();
        }
        loop {
            let before = (self.mode == StampMode::Kernel).then(|| mapper.mark());
            let user = mapper.user_stamp();
            let error = match ffi::send_message(self.socket.as_fd(), bytes, to) {
                Ok(_) => return Ok(self.sent(before, user)),
                Err(error) => error,
            };
            if self.mode == StampMode::Kernel {
                // Whether the kernel counted the packet depends on its version, so its count begins anew.
                self.restart_numbers()?;
            }
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            self.note(error)?;
        }
    }

    fn sent(&mut self, before: Option<Mark>, user: Stamp) -> Sent {
        self.last_sent = before;
        let id = match before {
            Some(before) => self.ledger.expect(before),
            None => self.ledger.number(),
        };
        Sent { id, user }
    }

    fn restart_numbers(&mut self) -> io::Result<()> {
        self.ledger.restart_keys();
        self.is_renumbered = true;
        kernel_stamps::number_packets(&self.socket)
    }

    /// Keeps an error that is about the network for the next event; others are returned.
    fn note(&mut self, error: io::Error) -> io::Result<()> {
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok(());
        }
        let kind = unreachable_kind(&error).ok_or(error)?;
        if !self.queues_errors {
            self.pending = Some(PeerError { kind, reporter: None });
        }
        Ok(())
    }

    fn received<R: PairReader>(&mut self, message: &Message, user: Stamp, mapper: &mut Mapper<R>) -> Option<Received> {
        let from = message.address.decode().or(self.peer)?;
        let kernel = match self.mode {
            StampMode::User => Err(StampDiscarded::Missing),
            StampMode::Kernel => self.map_received(kernel_stamps::of_received(message), mapper).map(|stamp| {
                let headers = if from.is_ipv4() { 28 } else { 48 };
                mapper.refine(Direction::Incoming, stamp, Some(message.length + headers))
            }),
        };
        let is_truncated = message.flags & libc::MSG_TRUNC != 0;
        Some(Received { length: message.length, is_truncated, from, user, kernel })
    }

    /// From the peer of a connected socket comes, as a rule, the answer to the latest packet; whether it is one, the
    /// protocol knows.
    fn map_received<R: PairReader>(
        &self,
        stamped: Option<Moment<Utc>>,
        mapper: &mut Mapper<R>,
    ) -> Result<Stamp, StampDiscarded> {
        let stamped = stamped.ok_or(StampDiscarded::Missing)?;
        mapper.map_received(stamped, self.last_sent.filter(|_| self.peer.is_some()))
    }

    /// The next thing that the kernel tells of packets sent and that is worth telling.
    fn next_queued<R: PairReader>(&mut self, mapper: &mut Mapper<R>) -> Option<SocketEvent> {
        while let Some(entry) = kernel_stamps::next_entry(self.socket.as_fd()) {
            match entry {
                Entry::Unreachable { errno, reporter } => return Some(unreachable(errno, reporter)),
                Entry::Sent { number, stamped } => {
                    let told = self.transmitted(number, stamped, mapper);
                    if told.is_some() {
                        return told.map(SocketEvent::Transmitted);
                    }
                }
            }
        }
        None
    }

    fn transmitted<R: PairReader>(
        &mut self,
        number: u32,
        stamped: Option<Moment<Utc>>,
        mapper: &mut Mapper<R>,
    ) -> Option<Transmitted> {
        let packet = self.ledger.find(number)?;
        let stamp = stamped.ok_or(StampDiscarded::Missing).and_then(|stamped| mapper.map_sent(stamped, packet.before));
        if stamp == Err(StampDiscarded::BeforeReading) && self.is_renumbered {
            // Of a packet that had this number before the count began anew: the right one is still to come.
            return None;
        }
        let stamp = stamp.map(|stamp| mapper.refine(Direction::Outgoing, stamp, None));
        self.ledger.settle(packet.id);
        Some(Transmitted { id: packet.id, stamp })
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn unreachable(errno: i32, reporter: Option<SocketAddr>) -> SocketEvent {
    SocketEvent::Unreachable(PeerError { kind: io::Error::from_raw_os_error(errno).kind(), reporter })
}

/// The kind of an error that tells of the network and not of this socket.
fn unreachable_kind(error: &io::Error) -> Option<io::ErrorKind> {
    let is_of_network = matches!(
        error.raw_os_error(),
        Some(
            libc::ECONNREFUSED
                | libc::EHOSTUNREACH
                | libc::ENETUNREACH
                | libc::EHOSTDOWN
                | libc::ENETDOWN
                | libc::EPROTO
                | libc::EMSGSIZE
                | libc::EACCES
                | libc::ENOPROTOOPT
                | libc::EOPNOTSUPP
        )
    );
    is_of_network.then(|| error.kind())
}
