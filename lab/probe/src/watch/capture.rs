//! What a copy of a packet says about itself.

use crate::payload::Direction;
use crate::tap::AnyCopy;
use ffclock_units::{Moment, Utc};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// A packet as the tap saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) passed: Direction,
    pub(super) device: u32,
    pub(super) stamped: Moment<Utc>,
    pub(super) identity: PacketIdentity,
    /// Bytes from the network header on, as the kernel's events count them.
    pub(super) length: u64,
    /// Bytes of the payload.
    pub(super) payload: u64,
}

/// What distinguishes a packet from all others of a few milliseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PacketIdentity {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    /// IP identification; 0 in IPv6.
    id: u16,
    /// A digest of the payload; for comparison within one run only.
    digest: u64,
}

impl Copy {
    /// `None` where it is no whole UDP packet.
    pub(super) fn of(copy: &AnyCopy<'_>) -> Option<Self> {
        let bytes = copy.bytes;
        let (source, destination, id, header) = addresses(bytes)?;
        let half = |at: usize| Some(u16::from_be_bytes(*bytes.get(header + at..)?.first_chunk()?));
        let (from, to, length) = (half(0)?, half(2)?, usize::from(half(4)?));
        let payload = bytes.get(header + UDP_HEADER..header.checked_add(length)?)?;
        let mut hasher = DefaultHasher::new();
        payload.hash(&mut hasher);
        Some(Copy {
            passed: copy.passed,
            device: copy.device,
            stamped: copy.stamped,
            identity: PacketIdentity {
                source: SocketAddr::new(source, from),
                destination: SocketAddr::new(destination, to),
                id,
                digest: hasher.finish(),
            },
            length: (header + length) as u64,
            payload: payload.len() as u64,
        })
    }
}

/// Source, destination, identification and length of the IP header.
fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr, u16, usize)> {
    let address = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<4>()?));
    let address6 = |at: usize| Some(IpAddr::from(*bytes.get(at..)?.first_chunk::<16>()?));
    match bytes.first()? >> 4 {
        4 if *bytes.get(9)? == UDP => {
            let id = u16::from_be_bytes(*bytes.get(4..)?.first_chunk()?);
            Some((address(12)?, address(16)?, id, usize::from(bytes[0] & 15) * 4))
        }
        6 if *bytes.get(6)? == UDP => Some((address6(8)?, address6(24)?, 0, 40)),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ffclock_units::Span;

    /// An IPv4 packet between ports of 10.0.0.1 and 10.0.0.2.
    pub(in crate::watch) fn packet(id: u16, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 0];
        bytes.extend(id.to_be_bytes());
        bytes.extend([0, 0, 64, UDP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        bytes.extend((payload.len() as u16 + 8).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    fn copy(bytes: &[u8]) -> Option<Copy> {
        let stamped = Moment::from_origin(Span::from_secs(5));
        Copy::of(&AnyCopy { passed: Direction::Outgoing, device: 2, stamped, bytes })
    }

    #[test]
    fn a_packet_is_known_by_flow_identification_and_payload() {
        let one = copy(&packet(7, [4000, 123], &[1; 48])).unwrap();
        assert_eq!(one.identity.source, "10.0.0.1:4000".parse().unwrap());
        assert_eq!(one.identity.destination, "10.0.0.2:123".parse().unwrap());
        assert_eq!((one.length, one.payload), (76, 48));
        for other in [
            packet(8, [4000, 123], &[1; 48]),
            packet(7, [4001, 123], &[1; 48]),
            packet(7, [4000, 123], &[2; 48]),
            packet(7, [4000, 123], &[1; 49]),
        ] {
            assert_ne!(copy(&other).unwrap().identity, one.identity);
        }
        // What Ethernet pads short frames with is no part of it.
        let mut padded = packet(7, [4000, 123], &[1; 48]);
        padded.extend([0; 6]);
        assert_eq!(copy(&padded), Some(one));
    }

    #[test]
    fn what_is_cut_or_no_udp_is_left_out() {
        let whole = packet(7, [1, 2], &[1; 20]);
        for length in 0..whole.len() {
            assert_eq!(copy(&whole[..length]), None, "{length}");
        }
        let mut tcp = whole;
        tcp[9] = 6;
        assert_eq!(copy(&tcp), None);
        let mut six = vec![0x60, 0, 0, 0, 0, 12, UDP, 64];
        six.extend([1; 32]);
        six.extend([0, 1, 0, 2, 0, 12, 0, 0, 9, 9, 9, 9]);
        assert_eq!(copy(&six).map(|copy| (copy.length, copy.payload)), Some((52, 4)));
    }
}
