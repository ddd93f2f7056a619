//! A server's half of the header: what it reads of a request, and the reply as bytes.
//!
//! A server answers versions 1 to 4, whose headers have one form, and copies what it need not understand. What follows
//! the header of a request is left to the caller: an answer without it is right in every version.

use crate::{HEADER_BYTES, KissCode, LeapIndicator, Mode, NtpTimestamp, PACKET_BYTES_MAX, Packet, short};
use core::fmt;
use ffclock_units::Bound;

/// The port of NTP servers.
const NTP_PORT: u16 = 123;

/// What a server needs of a request's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    /// The version, 1 to 4, which the reply repeats.
    pub version: u8,
    /// The role that the reply takes: [`Mode::Server`], or [`Mode::SymmetricPassive`] towards a symmetric peer.
    pub reply_mode: Mode,
    /// The octet of the poll, which the reply repeats.
    pub poll: i8,
    /// The origin field: in interleaved mode (RFC 9769) the receive time of our previous reply.
    pub origin: NtpTimestamp,
    /// The receive field.
    pub receive: NtpTimestamp,
    /// The transmit field, which the reply repeats as its origin.
    pub transmit: NtpTimestamp,
}

/// Why a datagram gets no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotServed {
    /// Shorter than a header.
    Truncated,
    /// Longer than [`PACKET_BYTES_MAX`].
    TooLong,
    /// A version other than 1 to 4.
    Version,
    /// Not a request: a reply, a broadcast, a control message.
    Mode,
}

impl fmt::Display for NotServed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotServed::Truncated => "shorter than a header",
            NotServed::TooLong => "longer than any request",
            NotServed::Version => "of a version other than 1 to 4",
            NotServed::Mode => "not a request",
        })
    }
}

impl core::error::Error for NotServed {}

impl ServedRequest {
    /// Reads the header of a datagram that came from this port.
    ///
    /// A request of version 1 has no mode; it is one if it does not come from the port of servers (RFC 1305, appendix
    /// D). A symmetric peer that is not known here gets the answer of a passive one (RFC 4330, section 5).
    ///
    /// # Errors
    /// [`NotServed`]: in particular a reply never gets a reply.
    pub fn decode(bytes: &[u8], port: u16) -> Result<Self, NotServed> {
        if bytes.len() > PACKET_BYTES_MAX {
            return Err(NotServed::TooLong);
        }
        let header: &[u8; HEADER_BYTES] = bytes.first_chunk().ok_or(NotServed::Truncated)?;
        let (words, _) = header.as_chunks::<8>();
        let &[[first, _, poll, ..], _, _, origin, receive, transmit] = words else {
            return Err(NotServed::Truncated);
        };
        let version = first >> 3 & 7;
        if !(1..=4).contains(&version) {
            return Err(NotServed::Version);
        }
        let reply_mode = match Mode::from_bits(first) {
            Mode::Client => Mode::Server,
            Mode::SymmetricActive if version > 1 => Mode::SymmetricPassive,
            Mode::Reserved if version == 1 && port != NTP_PORT => Mode::Server,
            _ => return Err(NotServed::Mode),
        };
        let stamp = |octets: [u8; 8]| NtpTimestamp::from_raw(u64::from_be_bytes(octets));
        Ok(ServedRequest {
            version,
            reply_mode,
            poll: poll.cast_signed(),
            origin: stamp(origin),
            receive: stamp(receive),
            transmit: stamp(transmit),
        })
    }
}

/// A reply but for what each request decides: made once for many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTemplate([u8; HEADER_BYTES]);

impl ReplyTemplate {
    /// The replies of a server that describes itself by `packet`, of which version, mode, poll and the last three times
    /// do not count.
    pub fn new(packet: &Packet) -> Self {
        ReplyTemplate(packet.encode())
    }

    /// The description that the replies are made from.
    pub const fn header(&self) -> &[u8; HEADER_BYTES] {
        &self.0
    }

    /// The reply to a request that came at `receive`, leaving at `transmit`.
    pub fn reply(&self, request: &ServedRequest, receive: NtpTimestamp, transmit: NtpTimestamp) -> [u8; HEADER_BYTES] {
        let mut bytes = self.0;
        let [first, _, poll, ..] = &mut bytes;
        *first = *first & 0xc0 | request.version << 3 | request.reply_mode.bits();
        *poll = request.poll.cast_unsigned();
        if let [_, _, _, origin_place, receive_place, transmit_place] = bytes.as_chunks_mut::<8>().0 {
            *origin_place = request.transmit.raw().to_be_bytes();
            *receive_place = receive.raw().to_be_bytes();
            *transmit_place = transmit.raw().to_be_bytes();
        }
        bytes
    }

    /// The refusal of a request (RFC 5905, section 7.4). It discloses no time: its times are the request's own.
    pub fn kiss(code: KissCode, request: &ServedRequest) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let [first, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d, ..] = &mut header;
        *first = LeapIndicator::Unsynchronised.bits() << 6;
        [*a, *b, *c, *d] = code.bytes();
        ReplyTemplate(header).reply(request, request.transmit, request.transmit)
    }
}

/// A reply that claims no less than this root distance (half the root delay and the root dispersion; RFC 5905, section
/// 11.1): its root dispersion is raised where it is too small, and rounded up.
pub fn claiming_at_least(mut reply: [u8; HEADER_BYTES], distance: Bound) -> [u8; HEADER_BYTES] {
    if let [_, delay, dispersion, ..] = reply.as_chunks_mut::<4>().0 {
        let missing = short::from_bound(distance).saturating_sub(u32::from_be_bytes(*delay) / 2);
        *dispersion = u32::from_be_bytes(*dispersion).max(missing).to_be_bytes();
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogSeconds, Version};
    use ffclock_units::Span;

    fn request(first: u8) -> [u8; HEADER_BYTES] {
        let mut bytes = Packet::request(Version::V4, NtpTimestamp::from_raw(0x1122_3344_5566_7788)).encode();
        (bytes[0], bytes[2]) = (first, 6);
        bytes
    }

    fn decode(first: u8) -> Result<(u8, Mode), NotServed> {
        ServedRequest::decode(&request(first), 4000).map(|request| (request.version, request.reply_mode))
    }

    /// RFC 4330, section 5, and RFC 1305, appendix D.
    #[test]
    fn requests_of_every_version_get_the_reply_that_they_expect() {
        for version in 2..=4 {
            assert_eq!(decode(version << 3 | 3), Ok((version, Mode::Server)));
            assert_eq!(decode(version << 3 | 1), Ok((version, Mode::SymmetricPassive)));
        }
        assert_eq!(decode(1 << 3), Ok((1, Mode::Server)));
        assert_eq!(decode(1 << 3 | 3), Ok((1, Mode::Server)));
        assert_eq!(ServedRequest::decode(&request(1 << 3), NTP_PORT), Err(NotServed::Mode));
    }

    #[test]
    fn replies_and_other_messages_get_none() {
        for version in 1..=4 {
            for mode in [2, 4, 5, 6, 7] {
                assert_eq!(decode(version << 3 | mode), Err(NotServed::Mode), "{version} {mode}");
            }
        }
        for version in [0, 5, 6, 7] {
            assert_eq!(decode(version << 3 | 3), Err(NotServed::Version));
        }
        assert_eq!(ServedRequest::decode(&request(0x23)[..47], 1), Err(NotServed::Truncated));
        assert_eq!(ServedRequest::decode(&[0x23; PACKET_BYTES_MAX + 1], 1), Err(NotServed::TooLong));
    }

    #[test]
    fn a_reply_is_read_back_as_it_was_meant() {
        let server = Packet {
            leap: LeapIndicator::Insert,
            stratum: 3,
            precision: LogSeconds::from_exponent(-24),
            root_delay: Span::from_millis(500),
            root_dispersion: Bound::of(Span::from_millis(250)),
            reference_id: 0x7f00_0001,
            reference: NtpTimestamp::from_raw(5),
            ..Packet::request(Version::V4, NtpTimestamp::MISSING)
        };
        let request = ServedRequest::decode(&request(0x1b), 1).unwrap();
        let [receive, transmit] = [7, 9].map(NtpTimestamp::from_raw);
        let reply = Packet::decode(&ReplyTemplate::new(&server).reply(&request, receive, transmit)).unwrap();
        let poll = LogSeconds::from_exponent(6);
        let origin = request.transmit;
        let expected = Packet { version: Version::V3, mode: Mode::Server, poll, origin, receive, transmit, ..server };
        assert_eq!(reply, expected);
    }

    #[test]
    fn a_claim_is_widened_and_never_narrowed() {
        let server = Packet {
            precision: LogSeconds::from_exponent(-24),
            root_delay: Span::from_millis(3),
            root_dispersion: Bound::of(Span::from_millis(1)),
            ..Packet::request(Version::V4, NtpTimestamp::MISSING)
        };
        let distance = |wanted: Span| {
            let reply = claiming_at_least(server.encode(), Bound::of(wanted));
            Packet::decode(&reply).unwrap().root_distance().as_span()
        };
        let claimed = distance(Span::ZERO);
        for wanted in [Span::from_micros(2400), Span::from_micros(2600), Span::from_millis(700)] {
            let (least, most) = (claimed.max(wanted), claimed.max(wanted + Span::from_micros(31)));
            assert!((least..=most).contains(&distance(wanted)), "{wanted}: {}", distance(wanted));
        }
        assert!(distance(Span::MAX) >= Span::from_secs(65_535));
    }

    #[test]
    fn a_refusal_says_why_and_no_time() {
        let request = ServedRequest::decode(&request(0x23), 1).unwrap();
        let kiss = Packet::decode(&ReplyTemplate::kiss(KissCode::RATE, &request)).unwrap();
        assert_eq!((kiss.kiss_code(), kiss.leap), (Some(KissCode::RATE), LeapIndicator::Unsynchronised));
        assert_eq!([kiss.origin, kiss.receive, kiss.transmit], [request.transmit; 3]);
        assert!(kiss.reference.is_missing());
    }
}
