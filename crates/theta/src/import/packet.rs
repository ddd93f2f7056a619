//! From a captured frame to who sends how much to whom. Whatever the bytes are, nothing panics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A packet of UDP or TCP with something in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The packet in a frame of link type `link`; `None` if it is none of UDP or TCP, a fragment, or carries nothing.
pub(super) fn packet(link: u32, frame: &[u8]) -> Option<Packet> {
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

fn ethernet(frame: &[u8]) -> Option<Packet> {
    let mut at = 12;
    // At most two tags of virtual networks.
    for _ in 0..2 {
        if matches!(short(frame, at)?, 0x8100 | 0x88a8) {
            at += 4;
        }
    }
    matches!(short(frame, at)?, 0x0800 | 0x86dd).then(|| ip(frame.get(at + 2..)?)).flatten()
}

fn ip(bytes: &[u8]) -> Option<Packet> {
    match bytes.first()? >> 4 {
        4 => ip4(bytes),
        6 => ip6(bytes),
        _ => None,
    }
}

fn ip4(bytes: &[u8]) -> Option<Packet> {
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
    transport((*bytes.get(9)?, address(12)?, address(16)?), bytes.get(header..)?, total.checked_sub(header)?)
}

fn ip6(bytes: &[u8]) -> Option<Packet> {
    let address = |at: usize| -> Option<IpAddr> {
        let sixteen: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        Some(Ipv6Addr::from(sixteen).into())
    };
    transport((*bytes.get(6)?, address(8)?, address(24)?), bytes.get(40..)?, usize::from(short(bytes, 4)?))
}

/// `length` is that of header and content, as IP says: the captured bytes may be fewer.
fn transport((protocol, from, to): (u8, IpAddr, IpAddr), bytes: &[u8], length: usize) -> Option<Packet> {
    let header = match protocol {
        UDP => 8,
        TCP => usize::from(*bytes.get(12)? >> 4) * 4,
        _ => return None,
    };
    let has_content = length > header;
    let (source, destination) = (short(bytes, 0)?, short(bytes, 2)?);
    has_content.then_some(Packet { from: SocketAddr::new(from, source), to: SocketAddr::new(to, destination) })
}
