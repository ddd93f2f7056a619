//! The packets that a sender has sent and waits for, and which replies belong to them.
//!
//! A reply is ours if it repeats number, time and error estimate of a packet that is waited for, and names no session
//! but ours. Reflectors without RFC 8972 name none: they leave zeros there. The time has a fraction of 2^-32 s, so a
//! host that does not see the packets cannot guess it. Memory is bounded: when too many packets wait, the oldest counts
//! as lost.

use crate::error_estimate::ErrorEstimate;
use crate::packet::{TestReply, TestRequest, WireTime};
use ffclock_units::{CounterEpoch, Moment, Mono, Span, Stamp, StampLocation};
use std::collections::VecDeque;

/// At most this many packets are waited for.
const WAITING_MAX: usize = 1 << 16;
/// Stands where a reflector does not repeat the session's name: in RFC 8762, figure 5, and in RFC 5357, section 4.2.1,
/// these bytes must be zero.
const UNNAMED: u16 = 0;

/// When a packet passed, and in which epoch of the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampedPassage {
    /// By the counter.
    pub stamp: Stamp,
    /// The counter's epoch.
    pub epoch: CounterEpoch,
}

impl StampedPassage {
    /// Whether the kernel stamped it, or the network card. User space reads the counter before a packet leaves and
    /// after it came, by an unknown time.
    pub fn is_stamped(&self) -> bool {
        matches!(self.stamp.location, StampLocation::Kernel | StampLocation::Hardware)
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Counted from 0 in the session.
    pub number: u64,
    /// As it stood on the wire.
    pub request: TestRequest,
    /// When it left.
    pub passage: StampedPassage,
    expires: Moment<Mono>,
    replies: u32,
}

/// Why a reply is not the first one to a packet that is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOurs {
    /// It names another session.
    OtherSession,
    /// No packet of this number is waited for: it comes too late, or was never asked for.
    NotAwaited,
    /// It repeats another time or error estimate than the packet had.
    Altered,
    /// The packet had a reply before.
    Duplicate,
}

/// The packets of one session.
#[derive(Debug)]
pub struct SentPackets {
    session: u16,
    patience: Span,
    next: u64,
    waiting: VecDeque<SentPacket>,
}

impl SentPackets {
    /// A session without packets. Replies are waited for as long as `patience`.
    pub fn new(session: u16, patience: Span) -> Self {
        SentPackets { session, patience, next: 0, waiting: VecDeque::new() }
    }

    /// The next request.
    pub fn request(&self, sent: WireTime, error: ErrorEstimate) -> TestRequest {
        TestRequest { sequence: self.next as u32, sent, error, session: self.session }
    }

    /// The request was sent; its number.
    pub fn note(&mut self, request: TestRequest, passage: StampedPassage, now: Moment<Mono>) -> u64 {
        let number = self.next;
        self.waiting.push_back(SentPacket { number, request, passage, expires: now + self.patience, replies: 0 });
        self.next += 1;
        number
    }

    /// A better stamp of a packet.
    pub fn restamp(&mut self, number: u64, stamp: Stamp) {
        if let Some(packet) = self.find(number) {
            packet.passage.stamp = stamp;
        }
    }

    /// The packet that a reply belongs to.
    ///
    /// # Errors
    /// [`NotOurs`].
    pub fn accept(&mut self, reply: &TestReply) -> Result<SentPacket, NotOurs> {
        if ![self.session, UNNAMED].contains(&reply.request.session) {
            return Err(NotOurs::OtherSession);
        }
        let first = self.waiting.front().map_or(self.next, |packet| packet.number);
        let number = first + u64::from(reply.request.sequence.wrapping_sub(first as u32));
        let packet = self.find(number).ok_or(NotOurs::NotAwaited)?;
        if packet.request != (TestRequest { session: packet.request.session, ..reply.request }) {
            return Err(NotOurs::Altered);
        }
        packet.replies = packet.replies.saturating_add(1);
        if packet.replies > 1 { Err(NotOurs::Duplicate) } else { Ok(*packet) }
    }

    /// The oldest packet, if it was waited for long enough, or too many wait: `Err` if it had no reply.
    pub fn expire(&mut self, now: Moment<Mono>) -> Option<Result<SentPacket, SentPacket>> {
        let is_due = |packet: &SentPacket| packet.expires <= now;
        self.waiting.front().filter(|packet| is_due(packet) || self.waiting.len() > WAITING_MAX)?;
        let packet = self.waiting.pop_front()?;
        Some(if packet.replies > 0 { Ok(packet) } else { Err(packet) })
    }

    /// When the oldest packet was waited for long enough.
    pub fn deadline(&self) -> Option<Moment<Mono>> {
        self.waiting.front().map(|packet| packet.expires)
    }

    /// Whether no packet is without a reply.
    pub fn is_settled(&self) -> bool {
        self.waiting.iter().all(|packet| packet.replies > 0)
    }

    /// How many packets were sent.
    pub fn sent(&self) -> u64 {
        self.next
    }

    fn find(&mut self, number: u64) -> Option<&mut SentPacket> {
        let first = self.waiting.front()?.number;
        let place = usize::try_from(number.checked_sub(first)?).ok()?;
        self.waiting.get_mut(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Counter, Ticks};

    fn mono(millis: i64) -> Moment<Mono> {
        Moment::from_origin(Span::from_millis(millis))
    }

    fn passage(counter: u64) -> StampedPassage {
        let stamp =
            Stamp { counter: Counter::from_raw(counter), width: Ticks::from_raw(1), location: StampLocation::User };
        StampedPassage { stamp, epoch: CounterEpoch::from_raw(1) }
    }

    fn send(packets: &mut SentPackets, count: u64) {
        for number in 0..count {
            let request = packets.request(WireTime(1000 + number), ErrorEstimate::from_raw(0x8001));
            assert_eq!(packets.note(request, passage(number), mono(number as i64)), number);
        }
    }

    fn reply(packets: &SentPackets, sequence: u32) -> TestReply {
        let error = ErrorEstimate::from_raw(0x8001);
        let request =
            TestRequest { sequence, sent: WireTime(1000 + u64::from(sequence)), error, session: packets.session };
        TestReply { sequence, sent: WireTime(1), error, received: WireTime(1), request }
    }

    #[test]
    fn a_reply_belongs_to_the_packet_that_it_repeats() {
        let mut packets = SentPackets::new(7, Span::from_millis(100));
        send(&mut packets, 4);
        let right = reply(&packets, 2);
        packets.restamp(2, passage(99).stamp);
        assert_eq!(packets.accept(&right).unwrap().passage, passage(99));
        assert_eq!(packets.accept(&right), Err(NotOurs::Duplicate));
        let mut other = reply(&packets, 1);
        other.request.session = 8;
        assert_eq!(packets.accept(&other), Err(NotOurs::OtherSession));
        let mut altered = reply(&packets, 1);
        altered.request.sent = WireTime(5);
        assert_eq!(packets.accept(&altered), Err(NotOurs::Altered));
        let late = reply(&packets, 4);
        assert_eq!(packets.accept(&late), Err(NotOurs::NotAwaited));
        assert!(!packets.is_settled());
    }

    /// RFC 8762, figure 5: zeros where RFC 8972 has the session's name.
    #[test]
    fn a_reply_that_names_no_session_is_known_by_what_else_it_repeats() {
        let mut packets = SentPackets::new(7, Span::from_millis(100));
        send(&mut packets, 4);
        let unnamed = |sequence, sent| {
            let error = ErrorEstimate::from_raw(0x8001);
            let request = TestRequest { sequence, sent: WireTime(sent), error, session: 0 };
            TestReply { sequence, sent: WireTime(1), error, received: WireTime(1), request }
        };
        assert_eq!(packets.accept(&unnamed(2, 1002)).unwrap().number, 2);
        assert_eq!(packets.accept(&unnamed(2, 1002)), Err(NotOurs::Duplicate));
        assert_eq!(packets.accept(&unnamed(1, 1002)), Err(NotOurs::Altered));
        let mut other_error = unnamed(1, 1001);
        other_error.request.error = ErrorEstimate::from_raw(0x8002);
        assert_eq!(packets.accept(&other_error), Err(NotOurs::Altered));
    }

    #[test]
    fn what_was_waited_for_long_enough_is_lost() {
        let mut packets = SentPackets::new(7, Span::from_millis(100));
        send(&mut packets, 2);
        let first = reply(&packets, 0);
        assert_eq!(packets.accept(&first).unwrap().number, 0);
        assert_eq!(packets.expire(mono(99)), None);
        assert!(packets.expire(mono(101)).unwrap().is_ok_and(|packet| packet.number == 0));
        assert_eq!(packets.deadline(), Some(mono(1) + Span::from_millis(100)));
        assert!(packets.expire(mono(101)).unwrap().is_err_and(|packet| packet.number == 1));
        assert_eq!(packets.accept(&first), Err(NotOurs::NotAwaited));
        assert!(packets.is_settled());
    }

    #[test]
    fn numbers_on_the_wire_wrap_and_memory_is_bounded() {
        let mut packets = SentPackets::new(7, Span::from_secs(3600));
        packets.next = (1 << 32) - 2;
        for _ in 0..5 {
            let request = packets.request(WireTime(1000), ErrorEstimate::from_raw(0x8001));
            packets.note(request, passage(1), mono(0));
        }
        let mut wrapped = reply(&packets, 1);
        wrapped.request.sent = WireTime(1000);
        assert_eq!(packets.accept(&wrapped).unwrap().number, (1 << 32) + 1);
        for _ in 0..WAITING_MAX {
            let request = packets.request(WireTime(1000), ErrorEstimate::from_raw(0x8001));
            packets.note(request, passage(1), mono(0));
        }
        let lost = std::iter::from_fn(|| packets.expire(mono(0))).count();
        assert_eq!((lost, packets.waiting.len()), (5, WAITING_MAX));
    }
}
