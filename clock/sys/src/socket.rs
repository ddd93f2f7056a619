//! Sockets of UDP, and of frames of Ethernet, whose packets are stamped, on the way out and on the way in.
//!
//! A packet sent is stamped in user space at once, and by the kernel a little later: that stamp comes through the error
//! queue of the socket and is an event, [`SocketEvent::Transmitted`], with the number of the packet. It may never come;
//! the stamp of user space is good in any case, only wider of the truth. A packet received comes with both. Beside each
//! stamp stands the best one ([`BestStamp`]), moved by the host's own delays where they are known
//! ([`StampedSocket::shift`]), and why it is no better. Where a network card stamps too
//! ([`StampedSocket::use_hardware`]), its stamp of a packet sent comes after the kernel's, and both are one event.
//!
//! An ICMP message about a packet (no program listens there) is an event as well and ends nothing.

use crate::address::RawAddress;
use crate::best::{BetterStamps, Judge};
use crate::ethernet::DeviceAddress;
use crate::ffi::{self, Message};
use crate::hardware::CardStamp;
use crate::kernel_stamps::{self, SendReport};
use crate::ledger::{Ledger, SendId};
use crate::stamper::{Arrival, DepartureStamp};
use crate::{BestStamp, CardUse, StampDiscarded, StampQuality, StampShifts, Stamper};
use ffclock_units::{Moment, Phc, Stamp, Utc};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Packets for others are passed over one call at a time up to this many, so that no flood of them holds the caller up.
const PASSED_OVER: u32 = 64;

/// Who stamps the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampMode {
    /// The network card, where one is used ([`StampedSocket::use_hardware`]); and the kernel as a second best.
    Hardware,
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
    /// The best stamp, where user space alone stamps; otherwise it comes as [`Transmitted`].
    pub best: Option<BestStamp>,
}

/// The stamp of a packet sent has come from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitted {
    /// The packet.
    pub id: SendId,
    /// When it passed to the driver, by the kernel.
    pub stamp: Result<Stamp, StampDiscarded>,
    /// The best stamp.
    pub best: BestStamp,
}

/// A packet has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// How many bytes of the buffer it fills.
    pub length: usize,
    /// Whether it was longer than the buffer.
    pub is_truncated: bool,
    /// Who sent it; no address (`[::]:0`) over Ethernet.
    pub from: SocketAddr,
    /// The address that it was sent to, ours or that of a group, where the socket hears both
    /// ([`StampedSocket::on_device`]).
    pub to: Option<IpAddr>,
    /// The device that sent it, over Ethernet alone.
    pub device: Option<DeviceAddress>,
    /// Read right after the packet was taken over: it came earlier.
    pub user: Stamp,
    /// When the kernel saw it first.
    pub kernel: Result<Stamp, StampDiscarded>,
    /// The best stamp, the packet being taken for the answer to the latest one where the socket is connected.
    pub best: BestStamp,
}

/// The network reports that packets do not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerError {
    /// What is wrong, such as `ConnectionRefused`.
    pub kind: io::ErrorKind,
    /// The host that says so, where it is known.
    pub reporter: Option<SocketAddr>,
}

/// What happened on a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A packet has come; it is in the buffer.
    Received(Received),
    /// A stamp has come.
    Transmitted(Transmitted),
    /// Packets do not arrive.
    Unreachable(PeerError),
}

/// A socket that never blocks: of UDP, or of frames ([`StampedSocket::of_frames`]).
#[derive(Debug)]
pub struct StampedSocket {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    ledger: Ledger,
    /// Whether the kernel's count was restarted at some time, so that a stamp may belong to an earlier packet.
    is_renumbered: bool,
    judge: Judge,
    /// The network card that stamps.
    card: Option<CardUse>,
    /// Its last stamps, the newest first: none of them is that of another packet.
    seen: [Option<Moment<Phc>>; 4],
    /// Whether ICMP messages come through the error queue, so that the errors of calls say nothing new.
    queues_errors: bool,
    /// An error that a call returned.
    pending: Option<PeerError>,
    /// The number of the only device whose packets count: the kernel may hand over a group's from any.
    device: Option<u32>,
}

impl StampedSocket {
    /// A socket that talks to `peer` only, from a port that the kernel chooses. [`mode`](Self::mode) says whether the
    /// kernel agreed to stamp.
    ///
    /// # Errors
    /// When there is no socket to be had or no route to the peer.
    pub fn connect(peer: SocketAddr, mode: StampMode) -> io::Result<Self> {
        Self::of(connected(peer)?, Some(peer), mode)
    }

    /// Talks to the same peer from another port from now on, which the kernel chooses; a socket that is not connected
    /// stays as it is. Packets to the old port are lost, and so are stamps of packets that left from it.
    ///
    /// # Errors
    /// When there is no socket to be had or no route to the peer; the old port stays in use.
    pub fn change_port(&mut self) -> io::Result<()> {
        let Some(peer) = self.peer else { return Ok(()) };
        let socket = connected(peer)?;
        socket.set_nonblocking(true)?;
        self.queues_errors = kernel_stamps::queue_errors(&socket).is_ok();
        self.socket = socket;
        if self.is_in_kernel() { self.restart_numbers() } else { Ok(()) }
    }

    /// A socket that talks to any host from `address`.
    ///
    /// # Errors
    /// When the address is taken or not ours.
    pub fn bind(address: SocketAddr, mode: StampMode) -> io::Result<Self> {
        Self::of(UdpSocket::bind(address)?, None, mode)
    }

    pub(crate) fn of(socket: UdpSocket, peer: Option<SocketAddr>, wanted: StampMode) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let queues_errors = kernel_stamps::queue_errors(&socket).is_ok();
        let is_granted = wanted != StampMode::User && kernel_stamps::number_packets(&socket, wanted).is_ok();
        let granted = if is_granted { StampMode::Kernel } else { StampMode::User };
        Ok(StampedSocket {
            socket,
            peer,
            ledger: Ledger::default(),
            is_renumbered: false,
            judge: Judge::new(wanted, granted),
            card: None,
            seen: [None; 4],
            queues_errors,
            pending: None,
            device: None,
        })
    }

    /// Packets that came on another device than this one are left out from now on.
    #[cfg(target_os = "linux")]
    pub(crate) const fn on_device_alone(mut self, number: u32) -> Self {
        self.device = Some(number);
        self
    }

    /// Takes the stamps of this network card from now on, which the stamper knows
    /// ([`Stamper::use_hardware`]); of none with `None`. The socket must have been made for [`StampMode::Hardware`].
    pub fn use_hardware(&mut self, card: Option<CardUse>) {
        self.judge.use_card(card);
        self.card = card.filter(|_| self.mode() == StampMode::Hardware);
    }

    /// Whether the network card's stamp of this packet has not come and is worth waiting for: with an answer on a short
    /// way it may come after that.
    pub fn awaits_hardware(&self, id: SendId) -> bool {
        self.judge.expects_card() && self.ledger.awaited(id).is_some()
    }

    /// Waits for stamps of packets sent, for a millisecond at most.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait_for_stamp(&self) -> io::Result<()> {
        // No event is asked for: an entry in the queue of errors is one in any case.
        let mut stamp = [libc::pollfd { fd: self.socket.as_raw_fd(), events: 0, revents: 0 }];
        ffi::poll(&mut stamp, 1).map(drop)
    }

    /// Who stamps: what was asked for, or the second best where it cannot.
    pub fn mode(&self) -> StampMode {
        self.judge.granted()
    }

    /// Where packets are stamped, beside what was asked for.
    pub fn quality(&self) -> StampQuality {
        self.judge.quality()
    }

    /// Takes the host's own delays off the best stamps from now on.
    pub fn shift(&mut self, shifts: StampShifts) {
        self.judge.shift(shifts);
    }

    /// Takes note of an exchange that was made with these stamps, ours of the request and of its answer. The reason
    /// where, with it, the kernel's stamps count as missing ([`StampQuality::Missing`]).
    pub fn note_exchange(&mut self, sent: &Stamp, received: &Stamp) -> Option<StampDiscarded> {
        self.judge.note_exchange([sent, received])
    }

    /// The best stamp of the latest packet to the peer, of which the kernel's is no longer waited for; `None` where it
    /// is not the latest.
    pub fn give_up(&mut self, id: SendId) -> Option<BestStamp> {
        let kernel = self.ledger.awaited(id).and_then(|packet| packet.kernel);
        self.ledger.settle(id);
        self.judge.give_up(id, kernel)
    }

    /// The best stamp of a packet sent by a socket without a peer ([`bind`](Self::bind)), of which no better one is
    /// waited for: the kernel's where that of the network card alone has not come.
    pub fn give_up_sent(&mut self, sent: &Sent) -> BestStamp {
        let kernel = self.ledger.awaited(sent.id).and_then(|packet| packet.kernel);
        self.ledger.settle(sent.id);
        self.judge.give_up_sent(sent.user, kernel)
    }

    /// Our own address.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The address that the socket is connected to.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Asks for room for `bytes` of packets that wait to be taken over and of stamps, beyond the host's limit where
    /// that is permitted. How many bytes there are then, as the kernel counts them: its own share included, twice what
    /// was asked for.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn enlarge_receive_buffer(&self, bytes: usize) -> io::Result<usize> {
        let wanted = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX / 2);
        ffi::set_receive_buffer(self.socket.as_fd(), wanted)?;
        let granted = ffi::option(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF)?;
        Ok(usize::try_from(granted).unwrap_or(0))
    }

    /// How many packets to this socket the kernel has thrown away because its buffer was full, modulo 2^32.
    ///
    /// # Errors
    /// When the kernel does not say (before Linux 4.12).
    pub fn dropped(&self) -> io::Result<u32> {
        ffi::dropped_packets(self.socket.as_fd())
    }

    /// Sends a packet to the peer of a connected socket.
    ///
    /// # Errors
    /// When the kernel does not take the packet. An error that is about earlier packets comes from
    /// [`next_event`](Self::next_event) instead.
    pub fn send(&mut self, bytes: &[u8], stamper: &mut Stamper) -> io::Result<Sent> {
        self.hand_over(bytes, (None, &[]), stamper)
    }

    /// Sends a packet to `to` from a socket that is not connected.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_to(&mut self, bytes: &[u8], to: SocketAddr, stamper: &mut Stamper) -> io::Result<Sent> {
        self.hand_over(bytes, (Some(&RawAddress::encode(to)), &[]), stamper)
    }

    /// The next thing that happened, stamps of packets sent before packets received; `None` when there is nothing more,
    /// or only a flood of what is not for this socket, after which it is still readable. A packet is put into `buffer`.
    ///
    /// # Errors
    /// When the socket itself fails.
    pub fn next_event(&mut self, buffer: &mut [u8], stamper: &mut Stamper) -> io::Result<Option<SocketEvent>> {
        for _ in 0..PASSED_OVER {
            let queued = self.pending.take().map(SocketEvent::Unreachable).or_else(|| self.next_queued(stamper));
            if queued.is_some() {
                return Ok(queued);
            }
            match ffi::receive_message(self.socket.as_fd(), buffer, 0) {
                Ok(message) => {
                    let user = stamper.arrive();
                    if let Some(received) = self.received(&message, user, stamper) {
                        return Ok(Some(SocketEvent::Received(received)));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => self.note(error)?,
            }
        }
        Ok(None)
    }

    pub(crate) fn hand_over(
        &mut self,
        bytes: &[u8],
        (to, control): (Option<&RawAddress>, &[u8]),
        stamper: &mut Stamper,
    ) -> io::Result<Sent> {
        // The kernel reports an ICMP message about an earlier packet in place of sending this one, so it is tried
        // again.
        let mut tries = 3;
        loop {
            let departure = if self.is_in_kernel() { stamper.depart_for_kernel(self.card) } else { stamper.depart() };
            let error = match ffi::send_message(self.socket.as_fd(), bytes, (to, control)) {
                Ok(_) => return Ok(self.sent(departure)),
                Err(error) => error,
            };
            if self.is_in_kernel() {
                // Whether the kernel counted the packet depends on its version, so its count is restarted.
                self.restart_numbers()?;
            }
            tries -= 1;
            if tries == 0 {
                return Err(error);
            }
            self.note(error)?;
        }
    }

    fn sent(&mut self, departure: DepartureStamp) -> Sent {
        let id = if self.is_in_kernel() { self.ledger.expect(departure) } else { self.ledger.number() };
        let best = if self.peer.is_some() { self.judge.ask(id, departure) } else { self.judge.send(&departure) };
        Sent { id, user: departure.user, best }
    }

    fn restart_numbers(&mut self) -> io::Result<()> {
        self.ledger.restart_keys();
        self.is_renumbered = true;
        kernel_stamps::number_packets(&self.socket, self.judge.wanted())
    }

    /// Whether the kernel stamps, and perhaps a network card beside it.
    fn is_in_kernel(&self) -> bool {
        self.mode() != StampMode::User
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

    /// From the peer of a connected socket comes, as a rule, the answer to the latest packet; whether it is one, the
    /// protocol knows.
    fn received(&mut self, message: &Message, user: Stamp, stamper: &mut Stamper) -> Option<Received> {
        let device = message.address.decode_frame();
        let nowhere = device.map(|_| (Ipv6Addr::UNSPECIFIED, 0).into());
        let from = message.address.decode().or(nowhere).or(self.peer)?;
        let headers = match from {
            _ if device.is_some() => 0,
            SocketAddr::V4(_) => 28,
            SocketAddr::V6(_) => 48,
        };
        let stamps = kernel_stamps::of_received(message);
        if self.device.zip(stamps.to).is_some_and(|(device, (_, came_on))| device != came_on) {
            return None;
        }
        let to = stamps.to.map(|(address, _)| address);
        let kernel = if self.is_in_kernel() {
            let (stamped, answers) = (stamps.stamped, self.judge.latest_mark());
            stamper.received(&Arrival { stamped, ip_length: message.length + headers, answers })
        } else {
            Err(StampDiscarded::Missing)
        };
        let card = self.card.map(|card| {
            let stamp = self.fresh(stamps.by_card)?;
            stamper.received_by_card((card, &stamp), kernel.as_ref().unwrap_or(&user))
        });
        let best = self.judge.received(user, &BetterStamps { kernel, card });
        let is_truncated = message.flags & libc::MSG_TRUNC != 0;
        Some(Received { length: message.length, is_truncated, from, to, device, user, kernel, best })
    }

    /// The next event of the error queue.
    fn next_queued(&mut self, stamper: &mut Stamper) -> Option<SocketEvent> {
        while let Some(entry) = kernel_stamps::next_entry(self.socket.as_fd()) {
            match entry {
                SendReport::Unreachable { errno, reporter } => return Some(unreachable(errno, reporter)),
                SendReport::Sent { number, by_card: Some(stamp), .. } => {
                    if let Some(transmitted) = self.transmitted_by_card(number, stamp, stamper) {
                        return Some(SocketEvent::Transmitted(transmitted));
                    }
                }
                SendReport::Sent { number, stamped, by_card: None } => {
                    if let Some(transmitted) = self.transmitted(number, stamped, stamper) {
                        return Some(SocketEvent::Transmitted(transmitted));
                    }
                }
            }
        }
        None
    }

    fn transmitted(&mut self, number: u32, stamped: Option<Moment<Utc>>, stamper: &mut Stamper) -> Option<Transmitted> {
        let packet = self.ledger.find(number)?;
        let stamp = stamper.sent(stamped, &packet.departure);
        if stamp == Err(StampDiscarded::BeforeReading) && self.is_renumbered {
            // Of a packet that had this number before the count was restarted: the right one is still to come.
            return None;
        }
        if self.card.is_some() {
            self.ledger.keep(packet.id, stamp);
            return None;
        }
        self.ledger.settle(packet.id);
        Some(Transmitted { id: packet.id, stamp, best: self.judge.sent(&packet, &BetterStamps::of_kernel(stamp)) })
    }

    fn transmitted_by_card(&mut self, number: u32, stamp: CardStamp, stamper: &mut Stamper) -> Option<Transmitted> {
        let card = self.card?;
        let packet = self.ledger.find(number)?;
        let kernel = packet.kernel.unwrap_or(Err(StampDiscarded::Missing));
        let by_card = self
            .fresh(Some(stamp))
            .and_then(|stamp| stamper.sent_by_card((card, &stamp), &packet.departure, kernel.ok()));
        if by_card == Err(StampDiscarded::BeforeReading) && self.is_renumbered {
            // As above, of an earlier packet of this number.
            return None;
        }
        self.ledger.settle(packet.id);
        let better = BetterStamps { kernel, card: Some(by_card) };
        Some(Transmitted { id: packet.id, stamp: kernel, best: self.judge.sent(&packet, &better) })
    }

    /// A stamp of the card, unless an earlier packet had the same: cards that are broken give one twice.
    fn fresh(&mut self, stamp: Option<CardStamp>) -> Result<CardStamp, StampDiscarded> {
        let stamp = stamp.ok_or(StampDiscarded::CardMissing)?;
        if self.seen.contains(&Some(stamp.shown)) {
            return Err(StampDiscarded::Repeated);
        }
        self.seen.rotate_right(1);
        if let Some(newest) = self.seen.first_mut() {
            *newest = Some(stamp.shown);
        }
        Ok(stamp)
    }
}

impl AsFd for StampedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A socket that talks to `peer` only, from a port that the kernel chooses.
fn connected(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer)?;
    Ok(socket)
}

fn unreachable(errno: i32, reporter: Option<SocketAddr>) -> SocketEvent {
    SocketEvent::Unreachable(PeerError { kind: io::Error::from_raw_os_error(errno).kind(), reporter })
}

/// The kind of an error that is about the network and not about this socket.
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
