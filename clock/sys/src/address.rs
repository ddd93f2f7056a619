//! Socket addresses as the kernel writes them, encoded and decoded byte by byte.
//!
//! `sockaddr_in` is family (2 bytes), port (2, network order), address (4), zeros (8); `sockaddr_in6` is family, port,
//! flow (4), address (16), scope (4, host order). The families are in host order; FreeBSD has the length of the address
//! in the first byte, and the family in the second.

use crate::ethernet::DeviceAddress;
#[cfg(target_os = "linux")]
use crate::ethernet::FrameKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// An address in the kernel's form, aligned as the structs of C are.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAddress {
    bytes: [u8; RawAddress::CAPACITY],
    length: usize,
}

const IPV4_LENGTH: usize = size_of::<libc::sockaddr_in>();
const IPV6_LENGTH: usize = size_of::<libc::sockaddr_in6>();

/// How an address begins.
#[derive(Clone, Copy)]
enum AddressHead {
    Family,
    LengthAndFamily,
}

const HEAD: AddressHead = if cfg!(target_os = "freebsd") { AddressHead::LengthAndFamily } else { AddressHead::Family };

impl AddressHead {
    const fn encode(self, family: libc::c_int, length: usize) -> [u8; 2] {
        match self {
            AddressHead::Family => (family as u16).to_ne_bytes(),
            AddressHead::LengthAndFamily => [length as u8, family as u8],
        }
    }

    fn family(self, head: [u8; 2]) -> libc::c_int {
        match self {
            AddressHead::Family => u16::from_ne_bytes(head).into(),
            AddressHead::LengthAndFamily => head[1].into(),
        }
    }
}

impl RawAddress {
    /// Enough for every family.
    pub(crate) const CAPACITY: usize = size_of::<libc::sockaddr_storage>();

    /// No address.
    pub(crate) const fn empty() -> Self {
        RawAddress { bytes: [0; Self::CAPACITY], length: 0 }
    }

    pub(crate) const fn as_ptr(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    pub(crate) const fn as_mut_ptr(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr()
    }

    /// How many bytes count.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Takes over the length that the kernel reported; it may claim more than it wrote.
    pub(crate) fn set_length(&mut self, length: usize) {
        self.length = length.min(Self::CAPACITY);
    }

    /// The address in the kernel's form.
    pub(crate) fn encode(address: SocketAddr) -> Self {
        let mut raw = RawAddress::empty();
        raw.bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                raw.bytes[..2].copy_from_slice(&HEAD.encode(libc::AF_INET, IPV4_LENGTH));
                raw.bytes[4..8].copy_from_slice(&v4.ip().octets());
                raw.length = IPV4_LENGTH;
            }
            SocketAddr::V6(v6) => {
                raw.bytes[..2].copy_from_slice(&HEAD.encode(libc::AF_INET6, IPV6_LENGTH));
                raw.bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                raw.bytes[8..24].copy_from_slice(&v6.ip().octets());
                raw.bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                raw.length = IPV6_LENGTH;
            }
        }
        raw
    }

    /// Where frames of this kind are heard, or go to: `sockaddr_ll` is family (2 bytes), protocol (2, network order),
    /// device (4, host order), three fields about received frames (4), address (8).
    #[cfg(target_os = "linux")]
    pub(crate) fn encode_frames(kind: FrameKind, address: DeviceAddress) -> Self {
        let mut raw = RawAddress::empty();
        raw.bytes[..2].copy_from_slice(&HEAD.encode(libc::AF_PACKET, 0));
        raw.bytes[2..4].copy_from_slice(&kind.protocol.to_be_bytes());
        raw.bytes[4..8].copy_from_slice(&kind.device.to_ne_bytes());
        raw.bytes[11] = address.len() as u8;
        raw.bytes[12..18].copy_from_slice(&address);
        raw.length = size_of::<libc::sockaddr_ll>();
        raw
    }

    /// The device that a frame came from, if the frame was for this host or for a group; `None` for what is no address
    /// of frames.
    #[cfg(target_os = "linux")]
    pub(crate) fn decode_frame(&self) -> Option<DeviceAddress> {
        let bytes = self.bytes.get(..self.length)?;
        let is_frame = HEAD.family(*bytes.first_chunk()?) == libc::AF_PACKET;
        let is_ours = [libc::PACKET_HOST, libc::PACKET_BROADCAST, libc::PACKET_MULTICAST].contains(bytes.get(10)?);
        if is_frame && is_ours && *bytes.get(11)? == 6 { bytes.get(12..)?.first_chunk().copied() } else { None }
    }

    /// There are no such addresses here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) const fn decode_frame(&self) -> Option<DeviceAddress> {
        None
    }

    /// The family of an address that is not empty.
    #[cfg(target_os = "linux")]
    pub(crate) fn family(&self) -> Option<libc::c_int> {
        self.bytes.get(..self.length)?.first_chunk().map(|head| HEAD.family(*head))
    }

    /// What the kernel wrote; `None` for no address, and for families other than IPv4 and IPv6.
    pub(crate) fn decode(&self) -> Option<SocketAddr> {
        decode(self.bytes.get(..self.length)?)
    }
}

/// An address in the kernel's form, wherever it stands.
pub(crate) fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let family = HEAD.family(*bytes.first_chunk()?);
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match family {
        libc::AF_INET => {
            let ip: [u8; 4] = *bytes.get(4..)?.first_chunk()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(ip), port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
            let ip: [u8; 16] = *bytes.get(8..)?.first_chunk()?;
            let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["192.0.2.7:123", "[2001:db8::7%3]:123", "0.0.0.0:0", "[::]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddress::encode(address).decode(), Some(address), "{text}");
        }
    }

    #[test]
    fn both_ways_to_begin_an_address_are_known() {
        assert_eq!(AddressHead::Family.encode(libc::AF_INET, IPV4_LENGTH), (libc::AF_INET as u16).to_ne_bytes());
        assert_eq!(AddressHead::LengthAndFamily.encode(28, IPV6_LENGTH), [28, 28]);
        for head in [AddressHead::Family, AddressHead::LengthAndFamily] {
            assert_eq!(head.family(head.encode(libc::AF_INET6, IPV6_LENGTH)), libc::AF_INET6);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn frames_come_from_a_device_and_are_for_this_host() {
        let device = [2, 0, 0, 0, 0, 7];
        let mut raw = RawAddress::encode_frames(FrameKind { protocol: 0x88f7, device: 3 }, device);
        assert_eq!((raw.length(), raw.family()), (20, Some(libc::AF_PACKET)));
        for (kind, from) in [
            (libc::PACKET_HOST, Some(device)),
            (libc::PACKET_MULTICAST, Some(device)),
            (libc::PACKET_OTHERHOST, None),
            (libc::PACKET_OUTGOING, None),
        ] {
            raw.bytes[10] = kind;
            assert_eq!((raw.decode_frame(), raw.decode()), (from, None), "{kind}");
        }
        raw.bytes[10] = libc::PACKET_HOST;
        for length in 0..18 {
            let mut cut = raw;
            cut.set_length(length);
            assert_eq!(cut.decode_frame(), None, "{length}");
        }
        raw.bytes[11] = 20;
        assert_eq!(raw.decode_frame(), None, "no Ethernet");
        assert_eq!(RawAddress::encode("192.0.2.7:123".parse().unwrap()).decode_frame(), None);
    }

    #[test]
    fn what_is_no_address_decodes_to_none() {
        assert_eq!(RawAddress::empty().decode(), None);
        let mut cut = RawAddress::encode("192.0.2.7:123".parse().unwrap());
        cut.set_length(7);
        assert_eq!(cut.decode(), None);
        cut.set_length(usize::MAX);
        assert_eq!(cut.length(), RawAddress::CAPACITY);
    }
}
