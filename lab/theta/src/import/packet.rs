//! Sender, receiver and length of the packet in a captured frame. No input panics.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A packet of UDP or TCP with content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The same where the packet left and where it arrived, and of another packet most likely different. Checksums are
    /// left out: the sender may not have computed them yet.
    pub(super) identity: u64,
    /// What it carries.
    pub(super) content: PacketContent,
}

/// The content of a packet, as far as it says whether a new request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketContent {
    /// A whole message; the number of a repetition is the same.
    Datagram(u64),
    /// A part of a stream.
    Segment {
        /// The number of the byte after its last one.
        end: u32,
        /// Whether the sender's write ends here (PSH).
        is_pushed: bool,
    },
}

/// The flag of a segment that ends a write.
const PSH: u8 = 1 << 3;

/// The number of bytes of content that identify a packet.
const TELLING_BYTES: usize = 32;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The packet in a frame of link type `link`; `None` if it is neither UDP nor TCP, or is a fragment, or has no content.
pub(super) fn packet(link: u32, frame: &[u8]) -> Option<CapturedPacket> {
    match link {
        1 => ethernet(frame),
        // BSD loopback, raw IP (two numbers), Linux cooked 1 and 2.
        0 => ip(frame.get(4..)?),
        12 | 101 => ip(frame),
        113 => ip(frame.get(16..)?),
        276 => ip(frame.get(20..)?),
        _ => None,
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn ethernet(frame: &[u8]) -> Option<CapturedPacket> {
    let mut at = 12;
    // At most two tags of virtual networks.
    for _ in 0..2 {
        if matches!(short(frame, at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
    }
    matches!(short(frame, at)?, 0x0800 | 0x86dd).then(|| ip(frame.get(at + 2..)?)).flatten()
}

fn ip(bytes: &[u8]) -> Option<CapturedPacket> {
    match bytes.first()? >> 4 {
        4 => ip4(bytes),
        6 => ip6(bytes),
        _ => None,
    }
}

fn ip4(bytes: &[u8]) -> Option<CapturedPacket> {
    let header = usize::from(bytes.first()? & 0xf) * 4;
    let total = usize::from(short(bytes, 2)?);
    let is_fragment = short(bytes, 6)? & 0x3fff != 0;
    let address = |at: usize| -> Option<IpAddr> {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(Ipv4Addr::from(four).into())
    };
    if is_fragment || header < 20 {
        return None;
    }
    let head = PacketHead { protocol: *bytes.get(9)?, from: address(12)?, to: address(16)?, number: short(bytes, 4)? };
    transport(&head, bytes.get(header..)?, total.checked_sub(header)?)
}

fn ip6(bytes: &[u8]) -> Option<CapturedPacket> {
    let address = |at: usize| -> Option<IpAddr> {
        let sixteen: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(sixteen).into())
    };
    let head = PacketHead { protocol: *bytes.get(6)?, from: address(8)?, to: address(24)?, number: 0 };
    transport(&head, bytes.get(40..)?, usize::from(short(bytes, 4)?))
}

/// The header of the network layer.
struct PacketHead {
    protocol: u8,
    from: IpAddr,
    to: IpAddr,
    /// The identification of IPv4.
    number: u16,
}

/// `length` is that of header and content, as IP says: the captured bytes may be fewer.
fn transport(head: &PacketHead, bytes: &[u8], length: usize) -> Option<CapturedPacket> {
    // In TCP the sequence and acknowledgement numbers identify a packet.
    let (header, identifying) = match head.protocol {
        UDP => (8, 4..6),
        TCP => (usize::from(*bytes.get(12)? >> 4) * 4, 4..12),
        _ => return None,
    };
    let (source, destination) = (short(bytes, 0)?, short(bytes, 2)?);
    let (from, to) = (SocketAddr::new(head.from, source), SocketAddr::new(head.to, destination));
    if length <= header {
        return None;
    }
    let content = bytes.get(header..).unwrap_or(&[]);
    let identifying_content = &content[..content.len().min(length - header).min(TELLING_BYTES)];
    let identity = hash((from, to, head.number, length, bytes.get(identifying), identifying_content));
    let content = match head.protocol {
        TCP => {
            let sequence = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
            let end = sequence.wrapping_add((length - header) as u32);
            PacketContent::Segment { end, is_pushed: bytes.get(13)? & PSH != 0 }
        }
        _ => PacketContent::Datagram(hash((length, identifying_content))),
    };
    Some(CapturedPacket { from, to, identity, content })
}

fn hash(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
