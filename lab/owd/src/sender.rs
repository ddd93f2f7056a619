//! The session-sender: sends test packets at even intervals and judges the replies.
//!
//! The time in a packet is read before it is handed over. For our own side of the calculation the kernel's stamp takes
//! its place when it has come, which is before the reply. Where it does not come, the packet enters no delay that needs
//! it.

use crate::OwdError;
use crate::error_estimate::ErrorEstimate;
use crate::judge::{JudgedPacket, OwnTimes, PacketFate, is_unstamped_there, judge};
use crate::packet::{BASE_BYTES, PACKET_BYTES_MAX, TestReply, TestRequest, WireTime};
use crate::page_time::{PageTime, Unsynchronised};
use crate::record::OwdRow;
use crate::sent::{NotOurs, SentPacket, SentPackets, StampedPassage};
use ffclock_sys::{Received, SendId, SocketEvent, StampMode, StampedSocket, Stamper, mono_now, random_nonce};
use ffclock_units::{Moment, Mono, Span};
use serde::Serialize;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// The requested buffer for replies and for stamps of packets sent.
const BUFFER_BYTES: usize = 8 << 20;
/// Packets whose stamp of the kernel is waited for.
const AWAITING_STAMP_MAX: usize = 1 << 14;
/// Packets that are sent, or taken over, between two looks at everything else.
const BATCH: usize = 256;

/// What a sender is to do.
#[derive(Clone, Debug)]
pub struct SenderPlan {
    /// The reflector.
    pub to: SocketAddr,
    /// The page, if not where the client library looks for one.
    pub page: Option<PathBuf>,
    /// Between two packets.
    pub interval: Span,
    /// How many packets; without end where there is no number.
    pub packets: Option<u64>,
    /// How long a reply is waited for.
    pub patience: Span,
    /// The length of a packet in bytes, from [`BASE_BYTES`] on: what is more is padding.
    pub bytes: usize,
    /// Whether to measure with a clock that is not synchronised.
    pub unsynchronised: Unsynchronised,
    /// Who stamps the packets; by user space alone, no delay is known.
    pub stamps: StampMode,
}

/// Packets from the reflector's address that are not the first reply to a packet of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrayCounts {
    /// Further replies to a packet.
    pub duplicates: u64,
    /// Replies to packets that are no longer waited for, or never were sent.
    pub not_awaited: u64,
    /// Replies that name another session.
    pub other_sessions: u64,
    /// Replies that do not repeat what the packet said.
    pub altered: u64,
    /// Packets that are no replies, or come from another address.
    pub foreign: u64,
    /// Messages of the network that packets do not arrive.
    pub unreachable: u64,
}

/// Stamps of the kernel that are missing, of packets with a reply. Such packets enter no delay that needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnstampedCounts {
    /// When requests left (T1).
    pub sent: u64,
    /// When requests arrived (T2), as the reflector says by its error estimate.
    pub reflected: u64,
    /// When replies arrived (T4).
    pub received: u64,
}

/// A sender at its socket.
pub struct Sender {
    plan: SenderPlan,
    session: u16,
    socket: StampedSocket,
    stamper: Stamper,
    page: PageTime,
    packets: SentPackets,
    awaiting_stamp: VecDeque<(SendId, u64)>,
    next: Moment<Mono>,
    strays: StrayCounts,
    unstamped: UnstampedCounts,
    packet: Vec<u8>,
    buffer: Vec<u8>,
}

impl Sender {
    /// Opens page and socket.
    ///
    /// # Errors
    /// The page cannot be used, or there is no socket to be had.
    pub fn open(plan: SenderPlan) -> Result<Self, OwdError> {
        let page = PageTime::open(plan.page.as_deref(), plan.unsynchronised)?;
        let any: SocketAddr = match plan.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = StampedSocket::bind(any, plan.stamps).map_err(OwdError::network("cannot open a socket"))?;
        let _ = socket.enlarge_receive_buffer(BUFFER_BYTES);
        // A session is never called 0, which names none.
        let session = random_nonce().map_err(OwdError::network("no random number"))? as u16;
        let session = session.max(1);
        let bytes = plan.bytes.clamp(BASE_BYTES, PACKET_BYTES_MAX);
        Ok(Sender {
            session,
            socket,
            stamper: page.stamper(),
            page,
            packets: SentPackets::new(session, plan.patience),
            awaiting_stamp: VecDeque::new(),
            next: mono_now(),
            strays: StrayCounts::default(),
            unstamped: UnstampedCounts::default(),
            packet: padded(bytes),
            buffer: vec![0; PACKET_BYTES_MAX + 1],
            plan,
        })
    }

    /// The page and its counter.
    pub fn page(&self) -> &PageTime {
        &self.page
    }

    /// The name of the session.
    pub fn session(&self) -> u16 {
        self.session
    }

    /// How many packets were sent.
    pub fn sent(&self) -> u64 {
        self.packets.sent()
    }

    /// What else came.
    pub fn strays(&self) -> StrayCounts {
        self.strays
    }

    /// Stamps that are missing.
    pub fn unstamped(&self) -> UnstampedCounts {
        self.unstamped
    }

    /// Sends no more packets; those under way are still waited for.
    pub fn stop(&mut self) {
        self.plan.packets = Some(self.packets.sent());
    }

    /// Whether all packets were sent, and each has its reply or was waited for long enough.
    pub fn is_finished(&self) -> bool {
        !self.has_more() && self.packets.is_settled()
    }

    /// When there is something to do without anything arriving.
    pub fn deadline(&self) -> Option<Moment<Mono>> {
        let next = self.has_more().then_some(self.next);
        [next, self.packets.deadline()].into_iter().flatten().min()
    }

    /// Sends what is due and takes over what has come; a row for each packet whose fate is known.
    ///
    /// # Errors
    /// The socket fails.
    pub fn turn(&mut self, rows: &mut Vec<OwdRow>) -> Result<(), OwdError> {
        for _ in 0..BATCH {
            if !self.has_more() || self.next > mono_now() {
                break;
            }
            self.send()?;
            self.next = self.next + self.plan.interval;
        }
        for _ in 0..2 * BATCH {
            let event = self.socket.next_event(&mut self.buffer, &mut self.stamper);
            match event.map_err(OwdError::network("the socket fails"))? {
                Some(SocketEvent::Received(received)) => rows.extend(self.receive(&received)),
                Some(SocketEvent::Transmitted(stamped)) => self.restamp(stamped.id, stamped.best.stamp),
                Some(SocketEvent::Unreachable(_)) => self.strays.unreachable += 1,
                None => break,
            }
        }
        let now = mono_now();
        while let Some(expired) = self.packets.expire(now) {
            if let Err(lost) = expired {
                rows.push(self.lost(&lost));
            }
        }
        Ok(())
    }

    fn has_more(&self) -> bool {
        self.plan.packets.is_none_or(|packets| self.packets.sent() < packets)
    }

    fn send(&mut self) -> Result<(), OwdError> {
        let time = self.page.time_of(&self.page.passage_now());
        let error = if time.is_synchronised { ErrorEstimate::of(time.bound) } else { ErrorEstimate::unsynchronised() };
        let request = self.packets.request(WireTime::of(time.time), error);
        write(&request, &mut self.packet);
        let to = self.plan.to;
        let before = self.page.passage_now();
        let sent = match self.socket.send_to(&self.packet, to, &mut self.stamper) {
            Ok(sent) => sent,
            Err(error) if self.packets.sent() == 0 => {
                return Err(OwdError::network(format!("cannot send to {to}"))(error));
            }
            // The network went away during the run: the packet is lost.
            Err(_) => {
                self.strays.unreachable += 1;
                self.packets.note(request, before, mono_now());
                return Ok(());
            }
        };
        let stamp = sent.best.map_or(sent.user, |best| best.stamp);
        let number = self.packets.note(request, StampedPassage { stamp, ..before }, mono_now());
        self.awaiting_stamp.push_back((sent.id, number));
        if self.awaiting_stamp.len() > AWAITING_STAMP_MAX {
            self.awaiting_stamp.pop_front();
        }
        Ok(())
    }

    fn restamp(&mut self, id: SendId, stamp: ffclock_units::Stamp) {
        if let Some(place) = self.awaiting_stamp.iter().position(|(waiting, _)| *waiting == id)
            && let Some((_, number)) = self.awaiting_stamp.remove(place)
        {
            self.packets.restamp(number, stamp);
        }
    }

    fn receive(&mut self, received: &Received) -> Option<OwdRow> {
        let bytes = &self.buffer[..received.length.min(self.buffer.len())];
        let reply = TestReply::decode(bytes).ok().filter(|_| received.from == self.plan.to);
        let Some(reply) = reply else {
            self.strays.foreign += 1;
            return None;
        };
        match self.packets.accept(&reply) {
            Ok(packet) => Some(self.judge(&packet, &reply, received)),
            Err(stray) => {
                *match stray {
                    NotOurs::OtherSession => &mut self.strays.other_sessions,
                    NotOurs::NotAwaited => &mut self.strays.not_awaited,
                    NotOurs::Altered => &mut self.strays.altered,
                    NotOurs::Duplicate => &mut self.strays.duplicates,
                } += 1;
                None
            }
        }
    }

    fn judge(&mut self, packet: &SentPacket, reply: &TestReply, received: &Received) -> OwdRow {
        let arrived = StampedPassage { stamp: received.best.stamp, epoch: self.page.epoch() };
        let own = OwnTimes {
            sent: self.page.time_of(&packet.passage),
            received: self.page.time_of(&arrived),
            interval: self.page.interval(&packet.passage, &arrived),
            tai_ahead: self.page.tai_ahead(&arrived),
        };
        self.unstamped.sent += u64::from(!own.sent.is_stamped);
        self.unstamped.reflected += u64::from(is_unstamped_there(reply));
        self.unstamped.received += u64::from(!own.received.is_stamped);
        let JudgedPacket { fate, forward, backward, round_trip, held } = judge(&own, reply);
        OwdRow {
            forward,
            backward,
            round_trip,
            held,
            reflector_sequence: Some(reply.sequence),
            received_counter: Some(arrived.stamp.counter),
            fate,
            ..self.lost(packet)
        }
    }

    fn lost(&self, packet: &SentPacket) -> OwdRow {
        OwdRow {
            number: packet.number,
            fate: PacketFate::Lost,
            sent: self.page.time_of(&packet.passage).time,
            forward: None,
            backward: None,
            round_trip: None,
            held: None,
            reflector_sequence: None,
            sent_counter: packet.passage.stamp.counter,
            received_counter: None,
        }
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A packet of this length. What is beyond the fields is an extension of padding (RFC 8972, section 4.1), if it has
/// room for the head of one.
fn padded(bytes: usize) -> Vec<u8> {
    let mut packet = vec![0; bytes];
    if let Some([flags, kind, length @ ..]) = packet.get_mut(BASE_BYTES..).filter(|rest| rest.len() >= 4) {
        let value = (length.len() - 2) as u16;
        (*flags, *kind) = (0x80, 1);
        length[..2].copy_from_slice(&value.to_be_bytes());
    }
    packet
}

fn write(request: &TestRequest, packet: &mut [u8]) {
    if let Some(fields) = packet.first_chunk_mut() {
        request.encode(fields);
    }
}
