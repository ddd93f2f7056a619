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
    transport(&network(link, frame)?)
}

/// Sender, receiver and content of the whole datagram of UDP in a frame of link type `link`; `None` if it is none, or
/// was cut.
pub(super) fn datagram(link: u32, frame: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let NetworkPacket { protocol, from, to, bytes, length, .. } = network(link, frame)?;
    let content = bytes.get(8..length).filter(|_| protocol == UDP)?;
    Some((SocketAddr::new(from, short(bytes, 0)?), SocketAddr::new(to, short(bytes, 2)?), content))
}

/// A segment of TCP, with or without content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSegment<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    /// The number of its first byte, or of the SYN before it.
    pub(super) sequence: u32,
    pub(super) flags: u8,
    /// As much of the content as was captured.
    pub(super) content: &'a [u8],
    /// The length of the content on the wire: that of `content` or more.
    pub(super) length: u32,
}

/// The segment in a frame of link type `link`; `None` if it is none of TCP, or a fragment.
pub(super) fn segment(link: u32, frame: &[u8]) -> Option<TcpSegment<'_>> {
    let NetworkPacket { protocol, from, to, bytes, length, .. } = network(link, frame)?;
    let header = usize::from(*bytes.get(12)? >> 4) * 4;
    if protocol != TCP || header < 20 {
        return None;
    }
    let length = length.checked_sub(header)?;
    let content = bytes.get(header..).unwrap_or(&[]);
    let (from, to) = (SocketAddr::new(from, short(bytes, 0)?), SocketAddr::new(to, short(bytes, 2)?));
    let sequence = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
    let content = &content[..content.len().min(length)];
    Some(TcpSegment { from, to, sequence, flags: *bytes.get(13)?, content, length: length as u32 })
}

/// What the network layer says of a packet.
struct NetworkPacket<'a> {
    protocol: u8,
    from: IpAddr,
    to: IpAddr,
    /// The identification of IPv4.
    number: u16,
    /// Header and content of the transport, as far as they were captured.
    bytes: &'a [u8],
    /// Their length, as IP says: the captured bytes may be fewer.
    length: usize,
}

fn network(link: u32, frame: &[u8]) -> Option<NetworkPacket<'_>> {
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

fn ethernet(frame: &[u8]) -> Option<NetworkPacket<'_>> {
    let mut at = 12;
    // At most two tags of virtual networks.
    for _ in 0..2 {
        if matches!(short(frame, at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
    }
    matches!(short(frame, at)?, 0x0800 | 0x86dd).then(|| ip(frame.get(at + 2..)?)).flatten()
}

fn ip(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    match bytes.first()? >> 4 {
        4 => ip4(bytes),
        6 => ip6(bytes),
        _ => None,
    }
}

fn ip4(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
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
    let (protocol, from, to, number) = (*bytes.get(9)?, address(12)?, address(16)?, short(bytes, 4)?);
    let (bytes, length) = (bytes.get(header..)?, total.checked_sub(header)?);
    Some(NetworkPacket { protocol, from, to, number, bytes, length })
}

fn ip6(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    let address = |at: usize| -> Option<IpAddr> {
        let sixteen: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(sixteen).into())
    };
    let (protocol, from, to, length) = (*bytes.get(6)?, address(8)?, address(24)?, short(bytes, 4)?.into());
    Some(NetworkPacket { protocol, from, to, number: 0, bytes: bytes.get(40..)?, length })
}

fn transport(packet: &NetworkPacket<'_>) -> Option<CapturedPacket> {
    let &NetworkPacket { protocol, from, to, number, bytes, length } = packet;
    // In TCP the sequence and acknowledgement numbers identify a packet.
    let (header, identifying) = match protocol {
        UDP => (8, 4..6),
        TCP => (usize::from(*bytes.get(12)? >> 4) * 4, 4..12),
        _ => return None,
    };
    let (from, to) = (SocketAddr::new(from, short(bytes, 0)?), SocketAddr::new(to, short(bytes, 2)?));
    if length <= header {
        return None;
    }
    let content = bytes.get(header..).unwrap_or(&[]);
    let identifying_content = &content[..content.len().min(length - header).min(TELLING_BYTES)];
    let identity = hash((from, to, number, length, bytes.get(identifying), identifying_content));
    let content = match protocol {
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
