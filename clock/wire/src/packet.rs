//! The header as a whole (RFC 5905, figure 8).

use crate::{KissCode, LeapIndicator, LogSeconds, Mode, NtpTimestamp, Version, short};
use core::fmt;
use ffclock_units::{Bound, Span};

/// The length of the header, and of a packet that carries nothing else.
pub const HEADER_BYTES: usize = 48;
/// The longest packet that is accepted. The part after the header (extension fields, a message digest) is not read; a
/// longer packet cannot be a reply to our requests.
pub const PACKET_BYTES_MAX: usize = 2048;
/// The precision in a request, which discloses nothing about the client: 2^32 s, as in the data minimisation draft of
/// the NTP working group.
const PRECISION_WITHHELD: LogSeconds = LogSeconds::from_exponent(32);

/// The header of an NTP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether a leap second is ahead, or the sender's clock is not set.
    pub leap: LeapIndicator,
    /// The version of the protocol.
    pub version: Version,
    /// The role of the sender.
    pub mode: Mode,
    /// Distance from a primary source: 1..15, 0 in a refusal, 16 and above when not synchronised.
    pub stratum: u8,
    /// The time between two requests of the client.
    pub poll: LogSeconds,
    /// The precision of the sender's clock.
    pub precision: LogSeconds,
    /// Round trip between the sender and its primary source; 0 s to 65536 s in steps of 2^-16 s, encoded rounding up.
    pub root_delay: Span,
    /// The sender's claim of the error that has accumulated on the way from its primary source; same range and steps.
    pub root_dispersion: Bound,
    /// The source that the sender follows, or the letters of a refusal.
    pub reference_id: u32,
    /// The time at which the sender's clock was last set.
    pub reference: NtpTimestamp,
    /// In a reply: the transmit field of the request, bit by bit.
    pub origin: NtpTimestamp,
    /// In a reply: the time at which the request arrived.
    pub receive: NtpTimestamp,
    /// In a reply: the time at which it left. In a request: any number that identifies the reply.
    pub transmit: NtpTimestamp,
}

/// Why bytes are not an NTP packet that this crate reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Shorter than a header.
    Truncated,
    /// Longer than [`PACKET_BYTES_MAX`].
    TooLong,
    /// This version, which is neither 3 nor 4.
    Version(u8),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Truncated => write!(f, "shorter than the {HEADER_BYTES} bytes of an NTP header"),
            DecodeError::TooLong => write!(f, "longer than {PACKET_BYTES_MAX} bytes"),
            DecodeError::Version(version) => write!(f, "NTP version {version}, neither 3 nor 4"),
        }
    }
}

impl core::error::Error for DecodeError {}

impl Packet {
    /// Reads the header at the beginning of `bytes`, a whole datagram.
    ///
    /// # Errors
    /// A datagram that is too short or too long, or of another version. Every other datagram decodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > PACKET_BYTES_MAX {
            return Err(DecodeError::TooLong);
        }
        let (words, _) = bytes.as_chunks::<4>();
        let &[head, root_delay, root_dispersion, reference_id, a, b, c, d, e, f, g, h, ..] = words else {
            return Err(DecodeError::Truncated);
        };
        let [first, stratum, poll, precision] = head;
        let version = Version::from_bits(first >> 3).ok_or(DecodeError::Version(first >> 3 & 7))?;
        Ok(Packet {
            leap: LeapIndicator::from_bits(first >> 6),
            version,
            mode: Mode::from_bits(first),
            stratum,
            poll: LogSeconds::from_exponent(poll.cast_signed()),
            precision: LogSeconds::from_exponent(precision.cast_signed()),
            root_delay: short::to_span(u32::from_be_bytes(root_delay)),
            root_dispersion: short::to_bound(u32::from_be_bytes(root_dispersion)),
            reference_id: u32::from_be_bytes(reference_id),
            reference: timestamp(a, b),
            origin: timestamp(c, d),
            receive: timestamp(e, f),
            transmit: timestamp(g, h),
        })
    }

    /// The header as bytes. Delay and dispersion are rounded up and clamped to the range of the format.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let first = self.leap.bits() << 6 | self.version.bits() << 3 | self.mode.bits();
        let [a, b] = halves(self.reference);
        let [c, d] = halves(self.origin);
        let [e, f] = halves(self.receive);
        let [g, h] = halves(self.transmit);
        let words = [
            [first, self.stratum, self.poll.exponent().cast_unsigned(), self.precision.exponent().cast_unsigned()],
            short::from_span(self.root_delay).to_be_bytes(),
            short::from_bound(self.root_dispersion).to_be_bytes(),
            self.reference_id.to_be_bytes(),
            a,
            b,
            c,
            d,
            e,
            f,
            g,
            h,
        ];
        debug_assert!(words.len() * 4 == HEADER_BYTES, "the header has as many words");
        let mut bytes = [0; HEADER_BYTES];
        for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *place = word;
        }
        bytes
    }

    /// A request that discloses nothing about the client: every field is empty except version, mode and `transmit`,
    /// which the reply repeats as its origin. Source: draft-ietf-ntp-data-minimization.
    pub const fn request(version: Version, transmit: NtpTimestamp) -> Self {
        Packet {
            leap: LeapIndicator::None,
            version,
            mode: Mode::Client,
            stratum: 0,
            poll: LogSeconds::from_exponent(0),
            precision: PRECISION_WITHHELD,
            root_delay: Span::ZERO,
            root_dispersion: Bound::ZERO,
            reference_id: 0,
            reference: NtpTimestamp::MISSING,
            origin: NtpTimestamp::MISSING,
            receive: NtpTimestamp::MISSING,
            transmit,
        }
    }

    /// The reply to `request` of a server that describes itself by `self`, receives the request at `receive` and
    /// replies at `transmit` (RFC 5905, section 14).
    #[must_use]
    pub const fn reply_to(&self, request: &Packet, receive: NtpTimestamp, transmit: NtpTimestamp) -> Self {
        Packet {
            version: request.version,
            mode: Mode::Server,
            poll: request.poll,
            origin: request.transmit,
            receive,
            transmit,
            ..*self
        }
    }

    /// The letters of a refusal, which has a stratum of 0; `None` in any other packet.
    pub const fn kiss_code(&self) -> Option<KissCode> {
        if self.stratum == 0 { Some(KissCode::from_bytes(self.reference_id.to_be_bytes())) } else { None }
    }

    /// The sender's own claim of its largest error: half the root delay, the root dispersion and its precision,
    /// rounded up. Source: RFC 5905, appendix A, root_dist(), without the terms that grow on our side.
    pub fn root_distance(&self) -> Bound {
        Bound::of(self.root_delay).halved() + self.root_dispersion + self.precision.as_bound()
    }
}

const fn timestamp(seconds: [u8; 4], fraction: [u8; 4]) -> NtpTimestamp {
    let (seconds, fraction) = (u32::from_be_bytes(seconds) as u64, u32::from_be_bytes(fraction) as u64);
    NtpTimestamp::from_raw(seconds << 32 | fraction)
}

/// The seconds and the fraction.
const fn halves(stamp: NtpTimestamp) -> [[u8; 4]; 2] {
    [((stamp.raw() >> 32) as u32).to_be_bytes(), (stamp.raw() as u32).to_be_bytes()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply built by hand from figure 8, byte by byte.
    const REPLY: [u8; HEADER_BYTES] = [
        0b01_100_100,
        2,
        6,
        0xe9, // insert, version 4, server; stratum 2; 64 s; 2^-23 s
        0,
        0,
        0x80,
        0, // root delay 0.5 s
        0,
        1,
        0x40,
        0, // root dispersion 1.25 s
        192,
        0,
        2,
        1, // reference id
        0xe0,
        0,
        0,
        1,
        0,
        0,
        0,
        1, // reference
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8, // origin
        0xe0,
        0,
        0,
        2,
        0x80,
        0,
        0,
        0, // receive
        0xe0,
        0,
        0,
        2,
        0xc0,
        0,
        0,
        0, // transmit
    ];

    #[test]
    fn each_field_is_read_from_its_place() {
        let packet = Packet::decode(&REPLY).unwrap();
        assert_eq!((packet.leap, packet.version, packet.mode), (LeapIndicator::Insert, Version::V4, Mode::Server));
        assert_eq!((packet.stratum, packet.poll.exponent(), packet.precision.exponent()), (2, 6, -23));
        assert_eq!(packet.root_delay, Span::from_millis(500));
        assert_eq!(packet.root_dispersion, Bound::of(Span::from_millis(1250)));
        assert_eq!(packet.reference_id, 0xc000_0201);
        assert_eq!(packet.reference.raw(), 0xe000_0001_0000_0001);
        assert_eq!(packet.origin.raw(), 0x0102_0304_0506_0708);
        assert_eq!(packet.receive.raw(), 0xe000_0002_8000_0000);
        assert_eq!(packet.transmit.raw(), 0xe000_0002_c000_0000);
        assert_eq!(packet.encode(), REPLY);
        let precision = LogSeconds::from_exponent(-23).as_bound();
        assert_eq!(packet.root_distance(), Bound::of(Span::from_millis(1500)) + precision);
    }

    #[test]
    fn length_and_version_are_the_only_reasons_to_refuse() {
        let mut long = [0; PACKET_BYTES_MAX + 1];
        long[..HEADER_BYTES].copy_from_slice(&REPLY);
        assert_eq!(Packet::decode(&long[..47]), Err(DecodeError::Truncated));
        assert_eq!(Packet::decode(&[]), Err(DecodeError::Truncated));
        assert_eq!(Packet::decode(&long[..PACKET_BYTES_MAX]), Packet::decode(&REPLY));
        assert_eq!(Packet::decode(&long[..49]), Packet::decode(&REPLY));
        assert_eq!(Packet::decode(&long), Err(DecodeError::TooLong));
        for version in [0, 1, 2, 5, 6, 7] {
            long[0] = version << 3 | 4;
            assert_eq!(Packet::decode(&long[..48]), Err(DecodeError::Version(version)));
        }
        long[0] = 3 << 3 | 4;
        assert_eq!(Packet::decode(&long[..48]).unwrap().version, Version::V3);
    }

    #[test]
    fn a_request_discloses_only_its_nonce() {
        let bytes = Packet::request(Version::V4, NtpTimestamp::from_raw(0x1122_3344_5566_7788)).encode();
        assert_eq!(bytes[..4], [0b00_100_011, 0, 0, 0x20]);
        assert!(bytes[4..40].iter().all(|&byte| byte == 0));
        assert_eq!(bytes[40..], [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    }

    #[test]
    fn a_reply_repeats_the_nonce_of_its_request() {
        let server = Packet::decode(&REPLY).unwrap();
        let request = Packet::request(Version::V3, NtpTimestamp::from_raw(77));
        let reply = server.reply_to(&request, NtpTimestamp::from_raw(100), NtpTimestamp::from_raw(101));
        assert_eq!((reply.version, reply.mode, reply.origin.raw()), (Version::V3, Mode::Server, 77));
        assert_eq!((reply.receive.raw(), reply.transmit.raw()), (100, 101));
        assert_eq!((reply.stratum, reply.reference_id), (server.stratum, server.reference_id));
    }

    #[test]
    fn only_stratum_0_is_a_refusal() {
        let mut packet = Packet::decode(&REPLY).unwrap();
        packet.reference_id = u32::from_be_bytes(*b"RATE");
        assert_eq!(packet.kiss_code(), None);
        packet.stratum = 0;
        assert_eq!(packet.kiss_code(), Some(KissCode::RATE));
    }
}
