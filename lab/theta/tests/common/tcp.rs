//! Connections as a capture has them: written here byte by byte, cut at odd places, out of order, sent again.

use super::generator::Random;
use std::net::Ipv4Addr;

pub const PORT: u16 = 7000;
pub const CLIENT: u8 = 9;
const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const ACK: u8 = 0x10;

/// The last byte of an address, and a port.
pub type Endpoint = (u8, u16);

pub fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

/// A segment in Ethernet: who sends it to whom, its number, its flags and its content.
#[derive(Clone, Debug)]
pub struct Segment {
    pub from: Endpoint,
    pub to: Endpoint,
    pub sequence: u32,
    pub flags: u8,
    pub content: Vec<u8>,
}

impl Segment {
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00]);
        let total = 40 + self.content.len() as u16;
        frame.extend([0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend(address(self.from.0).octets());
        frame.extend(address(self.to.0).octets());
        frame.extend([self.from.1.to_be_bytes(), self.to.1.to_be_bytes()].concat());
        frame.extend(self.sequence.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame.extend(&self.content);
        // Short frames are padded.
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

/// A packet of a capture: when it was seen, in microseconds, and the segment.
pub type Seen = (u32, Segment);

/// A capture with stamps in microseconds, of which each packet is cut off after `snap` bytes.
pub fn capture(packets: &[Seen], snap: usize) -> Vec<u8> {
    let mut packets = packets.to_vec();
    packets.sort_by_key(|(at, _)| *at);
    capture_in_this_order(&packets, snap)
}

/// The same without an order of its own, as when the clock is set during a capture.
pub fn capture_in_this_order(packets: &[Seen], snap: usize) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    for (at, segment) in packets {
        let frame = segment.frame();
        let kept = frame.len().min(snap);
        for word in [1_700_000_000 + at / 1_000_000, at % 1_000_000, kept as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&frame[..kept]);
    }
    bytes
}

/// One direction of a connection, and where each of its writes is in it.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    pub bytes: Vec<u8>,
    /// The place and the time of the first byte of each write.
    writes: Vec<(usize, u32)>,
}

impl Flow {
    /// A program writes.
    pub fn write(&mut self, at: u32, bytes: &[u8]) {
        self.writes.push((self.bytes.len(), at));
        self.bytes.extend(bytes);
    }
}

/// What happens to the segments of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Road {
    /// Segments have at most this many bytes.
    pub cut: u64,
    /// They arrive this much later, at random, so out of order; microseconds.
    pub disorder: u64,
    /// One segment in this many is missing, and is sent again after 20 ms; 0: none.
    pub resent: u64,
    /// One segment in this many is seen again, together with what is around it; 0: none.
    pub repeated: u64,
}

/// A flow as it was seen: its segments, and for each byte the time at which it first was.
pub struct SeenFlow {
    pub packets: Vec<Seen>,
    pub first_seen: Vec<u32>,
}

/// Cuts a flow from one end to the other into segments; its first byte has the number `first`.
pub fn segments(flow: &Flow, ends: (Endpoint, Endpoint), first: u32, road: (Road, &mut Random)) -> SeenFlow {
    let (Road { cut, disorder, resent, repeated }, random) = road;
    let (mut packets, mut first_seen, mut begin) = (vec![], vec![], 0);
    let segment = |begin: usize, end: usize| {
        let sequence = first.wrapping_add(begin as u32);
        Segment { from: ends.0, to: ends.1, sequence, flags: ACK, content: flow.bytes[begin..end].to_vec() }
    };
    while begin < flow.bytes.len() {
        let end = flow.bytes.len().min(begin + 1 + random.below(cut) as usize);
        // A segment leaves when the last write of which it carries something has been made.
        let last = flow.writes.partition_point(|(place, _)| *place < end) - 1;
        let mut at = flow.writes[last].1 + random.below(disorder) as u32;
        at += if random.one_in(resent) { 20_000 } else { 0 };
        packets.push((at, segment(begin, end)));
        if random.one_in(repeated) {
            let around = begin.saturating_sub(40)..flow.bytes.len().min(end + 40);
            packets.push((flow.writes[last].1 + 30_000, segment(around.start, around.end)));
        }
        first_seen.extend((begin..end).map(|_| at));
        begin = end;
    }
    // A copy that covers more may be the first to show a byte.
    for (at, segment) in &packets {
        let begin = segment.sequence.wrapping_sub(first) as usize;
        for seen in &mut first_seen[begin..begin + segment.content.len()] {
            *seen = (*seen).min(*at);
        }
    }
    SeenFlow { packets, first_seen }
}

/// The packets that open a connection: the first bytes of the two flows have these numbers.
pub fn opening(ends: (Endpoint, Endpoint), first: (u32, u32)) -> [Seen; 2] {
    let (client, server) = ends;
    let segment =
        |from, to, first: u32, flags| Segment { from, to, sequence: first.wrapping_sub(1), flags, content: vec![] };
    [(0, segment(client, server, first.0, SYN)), (1, segment(server, client, first.1, SYN | ACK))]
}

/// The packets that close it.
pub fn closing(ends: (Endpoint, Endpoint), at: u32) -> [Seen; 2] {
    let segment = |from, to| Segment { from, to, sequence: 0, flags: FIN | ACK, content: vec![] };
    [(at, segment(ends.0, ends.1)), (at, segment(ends.1, ends.0))]
}
