//! A packet tap as libpcap has it: copies of packets with the kernel's stamp, requests and replies.
//!
//! Stamps are times of the system clock; [`PairLine`](super::pairs::PairLine) turns them into readings of the counter.

use crate::payload::{Direction, TestPacketId};
use crate::ring::{Instruction, Ring, device_index};
use ffclock_units::{Moment, Span, Utc};
use std::io;

/// Bytes before the packets of a block, and of the header of each.
const PACKET_HEADER: usize = 48;
/// The kernel's word for a packet on its way out (`PACKET_OUTGOING` of linux/if_packet.h).
const PACKET_OUTGOING: u8 = 4;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;

/// A copy of one of our packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// The identity of the packet.
    pub identity: TestPacketId,
    /// The direction in which it passed the tap.
    pub passed: Direction,
    /// The time by the system clock.
    pub stamped: Moment<Utc>,
}

/// Taps one device.
#[derive(Debug)]
pub struct Tap {
    ring: Ring,
    dropped: u64,
}

impl Tap {
    /// Taps UDP packets from and to `port` on the device with this name.
    ///
    /// # Errors
    /// There is no such device, or the right to tap (`CAP_NET_RAW`) is missing.
    pub fn open(device: &str, port: u16) -> io::Result<Self> {
        Ok(Tap { ring: Ring::open(device_index(device)?, &filter(port))?, dropped: 0 })
    }

    /// Taps UDP packets from and to `port` on every device.
    ///
    /// # Errors
    /// The right to tap (`CAP_NET_RAW`) is missing.
    pub(crate) fn open_everywhere(port: u16) -> io::Result<Self> {
        Ok(Tap { ring: Ring::open(0, &filter(port))?, dropped: 0 })
    }

    /// Hands over the packets of this instrument that have come since the last call.
    pub fn drain(&mut self, mut take: impl FnMut(Tapped)) {
        while self.ring.take_block(|block| packets(block).filter_map(tapped).for_each(&mut take)) {}
    }

    /// Hands over all packets that have come since the last call, whosever they are.
    pub(crate) fn drain_all(&mut self, mut take: impl FnMut(AnyCopy<'_>)) {
        while self.ring.take_block(|block| packets(block).filter_map(any_copy).for_each(&mut take)) {}
    }

    /// How many packets the kernel could not hand over until now.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn dropped(&mut self) -> io::Result<u64> {
        self.dropped += self.ring.counts()?.dropped;
        Ok(self.dropped)
    }
}

/// Lets UDP packets from or to `port` pass, of IPv4 without fragments and of IPv6 without extension headers; the packet
/// begins with its network header (socket(7), Documentation/networking/filter.rst).
fn filter(port: u16) -> [Instruction; 20] {
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_HALF: u16 = 0x28;
    const LOAD_HALF_INDEXED: u16 = 0x48;
    const LOAD_HEADER_LENGTH: u16 = 0xb1;
    const AND: u16 = 0x54;
    const IF_EQUAL: u16 = 0x15;
    const IF_ANY_BIT: u16 = 0x45;
    const RETURN: u16 = 0x06;
    let plain = |code, operand| Instruction { code, if_true: 0, if_false: 0, operand };
    // Steps beyond the next instruction: to line 18 (accept) or 19 (reject) below.
    let branch = |code, operand, if_true, if_false| Instruction { code, if_true, if_false, operand };
    let port = port.into();
    [
        plain(LOAD_BYTE, 0),
        plain(AND, 0xf0),
        branch(IF_EQUAL, 0x60, 9, 0),
        // 3: IPv4: UDP, no fragment but the first; ports behind a header of variable length.
        plain(LOAD_BYTE, 9),
        branch(IF_EQUAL, UDP.into(), 0, 14),
        plain(LOAD_HALF, 6),
        branch(IF_ANY_BIT, 0x1fff, 12, 0),
        plain(LOAD_HEADER_LENGTH, 0),
        plain(LOAD_HALF_INDEXED, 0),
        branch(IF_EQUAL, port, 8, 0),
        plain(LOAD_HALF_INDEXED, 2),
        branch(IF_EQUAL, port, 6, 7),
        // 12: IPv6.
        plain(LOAD_BYTE, 6),
        branch(IF_EQUAL, UDP.into(), 0, 5),
        plain(LOAD_HALF, 40),
        branch(IF_EQUAL, port, 2, 0),
        plain(LOAD_HALF, 42),
        branch(IF_EQUAL, port, 0, 1),
        // 18
        plain(RETURN, 0x4_0000),
        plain(RETURN, 0),
    ]
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The packets of a block, each with its header (`struct tpacket3_hdr`).
fn packets(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let count = word(block, 12).unwrap_or(0);
    let first = word(block, 16).and_then(|offset| block.get(offset as usize..));
    // A step of zero would never end.
    let step = |packet: &[u8]| word(packet, 0).filter(|step| *step > 0);
    core::iter::successors(first, move |packet| packet.get(step(packet)? as usize..)).take(count as usize)
}

/// A copy of a packet, from its network header on.
pub(crate) struct AnyCopy<'a> {
    pub(crate) passed: Direction,
    /// The index of the device that it passed.
    pub(crate) device: u32,
    pub(crate) stamped: Moment<Utc>,
    pub(crate) bytes: &'a [u8],
}

fn any_copy(packet: &[u8]) -> Option<AnyCopy<'_>> {
    let (seconds, nanos) = (word(packet, 4)?, word(packet, 8)?);
    let length = word(packet, 12)? as usize;
    let network = usize::from(u16::from_ne_bytes(*packet.get(26..)?.first_chunk()?));
    let bytes = packet.get(network..network.checked_add(length)?)?;
    // `struct sockaddr_ll` follows the header; the device lies at its fifth byte, the type of the packet is its
    // eleventh.
    let is_outgoing = *packet.get(PACKET_HEADER + 10)? == PACKET_OUTGOING;
    let stamped = Moment::from_origin(Span::from_secs(seconds.into()) + Span::from_nanos(nanos.into()));
    let passed = if is_outgoing { Direction::Outgoing } else { Direction::Incoming };
    Some(AnyCopy { passed, device: word(packet, PACKET_HEADER + 4)?, stamped, bytes })
}

fn tapped(packet: &[u8]) -> Option<Tapped> {
    let AnyCopy { passed, stamped, bytes, .. } = any_copy(packet)?;
    Some(Tapped { identity: TestPacketId::read(payload(bytes)?)?, passed, stamped })
}

/// What a UDP packet carries.
fn payload(packet: &[u8]) -> Option<&[u8]> {
    let (header, protocol) = match packet.first()? >> 4 {
        4 => (usize::from(packet[0] & 15) * 4, *packet.get(9)?),
        6 => (40, *packet.get(6)?),
        _ => return None,
    };
    (protocol == UDP).then(|| packet.get(header + UDP_HEADER..)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::{LONGEST, Lengths};

    /// The filter's answer, worked out as the kernel does.
    fn passes(program: &[Instruction], packet: &[u8]) -> bool {
        let (mut value, mut index, mut line) = (0_u32, 0_usize, 0_usize);
        loop {
            let Instruction { code, if_true, if_false, operand } = program[line];
            let byte = |at: usize| packet.get(at).map(|byte| u32::from(*byte));
            let half = |at: usize| Some((byte(at)? << 8) | byte(at + 1)?);
            line += 1;
            let loaded = match code {
                0x30 => byte(operand as usize),
                0x28 => half(operand as usize),
                0x48 => half(index + operand as usize),
                0xb1 => byte(operand as usize).inspect(|byte| index = (byte & 15) as usize * 4).map(|_| value),
                0x54 => Some(value & operand),
                0x15 | 0x45 => {
                    let holds = if code == 0x15 { value == operand } else { value & operand != 0 };
                    line += usize::from(if holds { if_true } else { if_false });
                    Some(value)
                }
                _ => return operand > 0,
            };
            let Some(loaded) = loaded else { return false };
            value = loaded;
        }
    }

    fn ipv4(ports: [u16; 2], fragment: u16, protocol: u8) -> Vec<u8> {
        let mut packet = vec![0; 24];
        packet[0] = 0x46;
        packet[6..8].copy_from_slice(&fragment.to_be_bytes());
        packet[9] = protocol;
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0; 4]);
        packet
    }

    fn ipv6(ports: [u16; 2], next: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[6] = next;
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend([0; 4]);
        packet
    }

    #[test]
    fn the_filter_lets_our_port_pass_and_nothing_else() {
        let program = filter(7777);
        for (packet, expected) in [
            (ipv4([7777, 1], 0, 17), true),
            (ipv4([1, 7777], 0x4000, 17), true),
            (ipv4([1, 2], 0, 17), false),
            (ipv4([7777, 1], 3, 17), false),
            (ipv4([7777, 1], 0, 6), false),
            (ipv6([7777, 1], 17), true),
            (ipv6([1, 7777], 17), true),
            (ipv6([1, 2], 17), false),
            (ipv6([7777, 1], 6), false),
            (vec![0x45], false),
        ] {
            assert_eq!(passes(&program, &packet), expected, "{packet:?}");
        }
    }

    /// A block as the kernel fills it.
    fn block(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut block = vec![0; 48];
        block[12..16].copy_from_slice(&(packets.len() as u32).to_ne_bytes());
        block[16..20].copy_from_slice(&48_u32.to_ne_bytes());
        for (number, bytes) in packets.iter().enumerate() {
            let mut entry = [0; 80];
            let next = if number + 1 == packets.len() { 0 } else { 80 + bytes.len() as u32 };
            for (at, value) in [(0, next), (4, 100), (8, 5), (12, bytes.len() as u32)] {
                entry[at..at + 4].copy_from_slice(&value.to_ne_bytes());
            }
            entry[26..28].copy_from_slice(&80_u16.to_ne_bytes());
            entry[58] = PACKET_OUTGOING;
            block.extend(entry.iter().chain(bytes));
        }
        block
    }

    #[test]
    fn packets_of_a_block_are_found_and_recognised() {
        let identity = |sequence| TestPacketId { run: 3, sequence, direction: Direction::Outgoing };
        let packet = |sequence| {
            let mut buffer = [0; LONGEST];
            let payload = identity(sequence).write(Lengths::from(64), &mut buffer).to_vec();
            [ipv4([1, 2], 0, UDP), payload].concat()
        };
        let block = block(&[packet(1), ipv4([1, 2], 0, UDP), packet(2)]);
        let found: Vec<Tapped> = super::packets(&block).filter_map(tapped).collect();
        assert_eq!(found.iter().map(|tapped| tapped.identity).collect::<Vec<_>>(), [identity(1), identity(2)]);
        assert!(found.iter().all(|tapped| tapped.passed == Direction::Outgoing));
        assert_eq!(found[0].stamped.since_origin(), Span::from_secs(100) + Span::from_nanos(5));
    }

    #[test]
    fn a_damaged_block_ends_and_stays_inside() {
        let whole = block(&[ipv4([1, 2], 0, UDP), ipv6([1, 2], UDP)]);
        for length in 0..whole.len() {
            assert!(packets(&whole[..length]).filter_map(tapped).count() <= 2);
        }
        let mut endless = vec![0xff; 200];
        endless[16..20].copy_from_slice(&48_u32.to_ne_bytes());
        endless[48..52].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(packets(&endless).count(), 1);
    }
}
