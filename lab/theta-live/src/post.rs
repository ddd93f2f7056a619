//! The socket of a rank: packets to send, now or later, and packets that arrive, with their stamps.

use super::LiveError;
use super::packet::{self, WirePacket};
use super::stamping::StampingCounter;
use ffclock_sys::{Received, SendId, SocketEvent, StampMode, StampedSocket, Stamper};
use ffclock_theta::record::{ProcessId, Round};
use ffclock_units::{Counter, Span};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// The largest number of packets that wait for their transmit stamp.
const UNSTAMPED_MAX: usize = 1 << 14;
/// The requested buffer: at D = 0 the messages of all processes come at once, and the own transmit stamps lie in it
/// too.
const BUFFER_BYTES: usize = 64 << 20;

/// The buffer of a process that others leave behind may hold messages of this time.
const LONGEST_WAIT: Span = Span::from_secs(20);

/// An error of the socket.
pub(super) fn socket_error(error: std::io::Error) -> LiveError {
    LiveError::network("the socket of the messages")(error)
}

/// Something that has arrived.
pub(super) enum Mail {
    /// A packet, if it is one.
    Packet(Received, Option<WirePacket>),
    /// The kernel's stamp of a message sent.
    Stamp { receiver: ProcessId, round: Round, at: Option<Counter> },
    /// Packets do not arrive.
    Unreachable,
}

/// Something that is held until its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Held {
    /// Message `round` for a receiver, in `copies` copies.
    Message { receiver: u32, round: u64, copies: u64 },
    /// What `sender` has sent, for the twin.
    ForTwin { sender: u32, round: u64 },
}

pub(super) struct Post {
    socket: StampedSocket,
    stamper: Stamper,
    /// Packets whose transmit stamp has not come yet.
    unstamped: VecDeque<(SendId, ProcessId, Round)>,
    held: BinaryHeap<Reverse<(u64, Held)>>,
    /// Stamps that were given up.
    pub(super) given_up: u64,
    /// The buffer that the kernel granted.
    pub(super) buffer_bytes: usize,
    buffer: [u8; packet::LENGTH + 1],
}

impl Post {
    pub(super) fn open(address: IpAddr, counter: StampingCounter) -> Result<Self, LiveError> {
        let socket = StampedSocket::bind((address, 0).into(), StampMode::Kernel).map_err(socket_error)?;
        let buffer_bytes = socket.enlarge_receive_buffer(BUFFER_BYTES).map_err(socket_error)?;
        let mut stamper = Stamper::new(counter.kind, counter.period);
        stamper.remember_for(LONGEST_WAIT);
        Ok(Post {
            socket,
            stamper,
            unstamped: VecDeque::new(),
            held: BinaryHeap::new(),
            given_up: 0,
            buffer_bytes,
            buffer: [0; packet::LENGTH + 1],
        })
    }

    pub(super) fn address(&self) -> Result<SocketAddr, LiveError> {
        self.socket.local_address().map_err(socket_error)
    }

    /// How many packets were thrown away since the socket was made; none where the kernel does not count them.
    pub(super) fn dropped(&self) -> Option<u64> {
        self.socket.dropped().ok().map(u64::from)
    }

    /// Sends a packet whose transmit stamp is not needed.
    pub(super) fn send(&mut self, packet: WirePacket, to: SocketAddr) -> Result<SendId, LiveError> {
        Ok(self.socket.send_to(&packet.encode(), to, &mut self.stamper).map_err(socket_error)?.id)
    }

    /// Sends a message and waits for its stamp.
    pub(super) fn send_stamped(&mut self, packet: WirePacket, receiver: u32, to: SocketAddr) -> Result<(), LiveError> {
        let id = self.send(packet, to)?;
        self.unstamped.push_back((id, ProcessId(receiver), Round(packet.round)));
        if self.unstamped.len() > UNSTAMPED_MAX {
            self.unstamped.pop_front();
            self.given_up += 1;
        }
        Ok(())
    }

    /// The next thing that has come; none when there is nothing more.
    pub(super) fn next(&mut self) -> Result<Option<Mail>, LiveError> {
        loop {
            let Some(event) = self.socket.next_event(&mut self.buffer, &mut self.stamper).map_err(socket_error)? else {
                return Ok(None);
            };
            let mail = match event {
                SocketEvent::Received(received) => {
                    let bytes = &self.buffer[..received.length.min(self.buffer.len())];
                    Some(Mail::Packet(received, WirePacket::decode(bytes)))
                }
                SocketEvent::Transmitted(stamped) => self.stamped(stamped.id, stamped.stamp.ok().map(|at| at.counter)),
                SocketEvent::Unreachable(_) => Some(Mail::Unreachable),
            };
            if mail.is_some() {
                return Ok(mail);
            }
        }
    }

    /// Nothing for packets whose stamp is not needed.
    fn stamped(&mut self, id: SendId, at: Option<Counter>) -> Option<Mail> {
        let place = self.unstamped.iter().position(|(waiting, _, _)| *waiting == id)?;
        let (_, receiver, round) = self.unstamped.remove(place)?;
        Some(Mail::Stamp { receiver, round, at })
    }

    /// Keeps something until the counter shows `until`.
    pub(super) fn hold(&mut self, until: u64, held: Held) {
        self.held.push(Reverse((until, held)));
    }

    /// What has been held long enough.
    pub(super) fn release(&mut self, now: u64) -> Option<Held> {
        self.held.peek().filter(|Reverse((until, _))| *until <= now)?;
        self.held.pop().map(|Reverse((_, held))| held)
    }

    /// Messages that are still held, and are sent no more.
    pub(super) fn never_released(&self) -> u64 {
        let copies = |Reverse((_, held)): &Reverse<(u64, Held)>| match held {
            Held::Message { copies, .. } => *copies,
            Held::ForTwin { .. } => 0,
        };
        self.held.iter().map(copies).sum()
    }

    /// Stamps that have not come.
    pub(super) fn outstanding(&self) -> u64 {
        self.given_up + self.unstamped.len() as u64
    }
}

impl AsFd for Post {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
