//! Who sends: clocks and their ports.

use core::fmt;

/// The identity of a clock, unique in the world (IEEE 1588-2019, 7.5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ClockIdentity([u8; 8]);

impl ClockIdentity {
    /// From the octets of a message.
    pub const fn from_octets(octets: [u8; 8]) -> Self {
        ClockIdentity(octets)
    }

    /// From the address of a network device: its 48 bits with ff:fe in the middle, as usual since the edition of 2008.
    pub const fn from_mac([a, b, c, d, e, f]: [u8; 6]) -> Self {
        ClockIdentity([a, b, c, 0xff, 0xfe, d, e, f])
    }

    /// From 16 hexadecimal digits in any grouping by dots, hyphens or colons.
    pub fn parse(text: &str) -> Option<Self> {
        let (mut value, mut count) = (0_u64, 0);
        for character in text.chars().filter(|c| !matches!(c, '.' | '-' | ':')) {
            count += 1;
            value = value.checked_mul(16)? | u64::from(character.to_digit(16)?);
        }
        (count == 16).then_some(ClockIdentity(value.to_be_bytes()))
    }

    /// As the octets of a message.
    pub const fn octets(self) -> [u8; 8] {
        self.0
    }

    /// Half as long, for a place with room for no more: two clocks rarely share it.
    pub const fn folded(self) -> u32 {
        let all = u64::from_be_bytes(self.0);
        (all >> 32) as u32 ^ all as u32
    }
}

impl fmt::Display for ClockIdentity {
    /// As linuxptp prints it: `b268b8.fffe.d92b00`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, octet) in self.0.iter().enumerate() {
            if place == 3 || place == 5 {
                f.write_str(".")?;
            }
            write!(f, "{octet:02x}")?;
        }
        Ok(())
    }
}

/// A port of a clock (IEEE 1588-2019, 5.3.5). Clocks are compared before ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortIdentity {
    /// The clock.
    pub clock: ClockIdentity,
    /// Its port, from 1; an ordinary clock has one.
    pub port: u16,
}

impl PortIdentity {
    /// All ports of all clocks, as the target of a Signaling message (13.12.1).
    pub const ANY: PortIdentity = PortIdentity { clock: ClockIdentity([0xff; 8]), port: 0xffff };

    /// Whether a message to this target is for `port`: all ones stand for any clock, and for any port (13.12.1).
    pub(crate) fn reaches(self, port: PortIdentity) -> bool {
        let any = PortIdentity::ANY;
        (self.clock == port.clock || self.clock == any.clock) && (self.port == port.port || self.port == any.port)
    }

    /// The octets of a message.
    pub(crate) fn octets(self) -> [u8; 10] {
        let ([a, b, c, d, e, f, g, h], [i, j]) = (self.clock.octets(), self.port.to_be_bytes());
        [a, b, c, d, e, f, g, h, i, j]
    }

    pub(crate) fn from_octets([a, b, c, d, e, f, g, h, i, j]: [u8; 10]) -> Self {
        PortIdentity { clock: ClockIdentity([a, b, c, d, e, f, g, h]), port: u16::from_be_bytes([i, j]) }
    }
}

impl fmt::Display for PortIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.clock, self.port)
    }
}

/// Where a message goes to or came from: an IPv6 address, an IPv4 address mapped into one, or the address of a network
/// device in the last six octets. Only the caller reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NetworkAddress(pub [u8; 16]);

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Passage {
    /// Who sent it.
    pub from: NetworkAddress,
    /// Our own address that it was sent to; `None` if it was sent to a group, or that is not known.
    pub to: Option<NetworkAddress>,
}

impl Passage {
    /// To a group, or in a way that is not known.
    pub const fn to_group(from: NetworkAddress) -> Self {
        Passage { from, to: None }
    }

    /// To this address of ours alone.
    pub const fn to_us(from: NetworkAddress, to: NetworkAddress) -> Self {
        Passage { from, to: Some(to) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn an_identity_prints_as_other_programs_print_it() {
        let clock = ClockIdentity::from_mac([0xb2, 0x68, 0xb8, 0xd9, 0x2b, 0x00]);
        assert_eq!(clock.to_string(), "b268b8.fffe.d92b00");
        let port = PortIdentity { clock, port: 1 };
        assert_eq!(port.to_string(), "b268b8.fffe.d92b00-1");
        assert_eq!(PortIdentity::from_octets(port.octets()), port);
        assert_eq!(
            [ClockIdentity::parse("b268b8.fffe.d92b00"), ClockIdentity::parse("B2-68-B8-FF-FE-D9-2B-00")],
            [Some(clock); 2]
        );
        for text in ["", "+268b8fffed92b00", "b268b8.fffe.d92b", "b268b8.fffe.d92b00a", "none"] {
            assert_eq!(ClockIdentity::parse(text), None, "{text}");
        }
        assert_eq!(clock.folded(), 0xb268_b8ff ^ 0xfed9_2b00);
        let target = |clock, port| PortIdentity { clock, port };
        let ours = [target(clock, 1), target(clock, 0xffff), target(PortIdentity::ANY.clock, 1), PortIdentity::ANY];
        assert!(ours.into_iter().all(|target| target.reaches(port)));
        let others = [target(clock, 2), target(ClockIdentity::default(), 0xffff), target(PortIdentity::ANY.clock, 2)];
        assert!(!others.into_iter().any(|target| target.reaches(port)));
    }
}
