//! Test packets of STAMP in its unauthenticated mode (RFC 8762, sections 4.2.1 and 4.3.1): bytes to values and back.
//!
//! A reply is exactly as long as its request, so a reflector never sends more than it received. Requests of TWAMP-light
//! (RFC 5357, section 4.1.2) are understood where they are padded to the length of a reply, whatever the padding holds.
//! Extensions (RFC 8972) come back as they were sent, each marked as not understood.

use crate::error_estimate::{ErrorEstimate, TimestampForm};
use ffclock_units::{Moment, Server, Span, Utc};
use ffclock_wire::NtpTimestamp;

/// The length of both packets without extensions, in bytes.
pub const BASE_BYTES: usize = 44;
/// The fields of a reply end here (RFC 5357, section 4.2.1): no shorter request gets one.
pub const REPLY_FIELDS_BYTES: usize = 41;
/// The fields of a request end here; zeros follow up to [`BASE_BYTES`] (RFC 8972, figure 1).
const REQUEST_FIELDS_BYTES: usize = 16;
/// The longest packet that is reflected: more than any path carries whole.
pub const PACKET_BYTES_MAX: usize = 9_000;
/// A TTL that could not be read (RFC 5357, section 4.2.1).
const TTL_UNKNOWN: u8 = 255;

/// An extension that is understood, as there is nothing to it: padding (RFC 8972, section 4.1).
const EXTRA_PADDING: u8 = 1;
const NOT_UNDERSTOOD: u8 = 0x80;
const MALFORMED: u8 = 0x40;

/// Why a packet is none of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTestPacket {
    /// It ends before its fields do.
    #[error("{0} bytes are too short")]
    TooShort(usize),
    /// It is longer than what is handled.
    #[error("{0} bytes are too long")]
    TooLong(usize),
    /// An error estimate whose multiplier is 0.
    #[error("an error estimate of nothing")]
    NoErrorEstimate,
}

/// A timestamp as it stands in a packet; its form is in the error estimate beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireTime(pub u64);

impl WireTime {
    /// NTP's form of a time, rounded to the nearest 2^-32 s.
    pub fn of(time: Moment<Utc>) -> Self {
        WireTime(NtpTimestamp::from_server(Moment::from_origin(time.since_origin())).raw())
    }

    /// The time, in the era nearest to `near.0`, where TAI is ahead of UTC by `near.1`.
    pub fn to_utc(self, form: TimestampForm, near: (Moment<Utc>, Span)) -> Moment<Utc> {
        let (pivot, tai_ahead) = near;
        match form {
            TimestampForm::Ntp => {
                let pivot = Moment::<Server>::from_origin(pivot.since_origin());
                Moment::from_origin(NtpTimestamp::from_raw(self.0).to_server(pivot).since_origin())
            }
            TimestampForm::Ptp => {
                // 32 bits of seconds wrap as NTP's do.
                let distance = ((self.0 >> 32) as u32).wrapping_sub(pivot.whole_seconds() as u32) as i32;
                let seconds = pivot.whole_seconds().saturating_add(i64::from(distance));
                let nanos = Span::from_nanos((self.0 as u32).into());
                Moment::from_origin(Span::from_secs(seconds) + nanos - tai_ahead)
            }
        }
    }
}

/// A packet of the session-sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestRequest {
    /// Counts the packets of a session from 0, and wraps.
    pub sequence: u32,
    /// T1: when it left.
    pub sent: WireTime,
    /// The largest error of that.
    pub error: ErrorEstimate,
    /// Names the session (RFC 8972, section 3); 0 where there are no names.
    pub session: u16,
}

impl TestRequest {
    /// Writes the packet; the rest of `bytes` is filled with zeros.
    pub fn encode(&self, bytes: &mut [u8; BASE_BYTES]) {
        *bytes = [0; BASE_BYTES];
        put(bytes, 0, &self.sequence.to_be_bytes());
        put(bytes, 4, &self.sent.0.to_be_bytes());
        put(bytes, 12, &self.error.raw().to_be_bytes());
        put(bytes, 14, &self.session.to_be_bytes());
    }

    /// Reads a request that can be answered.
    ///
    /// # Errors
    /// [`NotTestPacket::TooShort`], [`NotTestPacket::TooLong`]. Its error estimate is not judged: it is the sender's
    /// own.
    pub fn decode(bytes: &[u8]) -> Result<Self, NotTestPacket> {
        check_length(bytes)?;
        Ok(TestRequest {
            sequence: u32::from_be_bytes(get(bytes, 0)),
            sent: WireTime(u64::from_be_bytes(get(bytes, 4))),
            error: ErrorEstimate::from_raw(u16::from_be_bytes(get(bytes, 12))),
            session: if is_padded_freely(bytes) { 0 } else { u16::from_be_bytes(get(bytes, 14)) },
        })
    }
}

/// Whether the padding of TWAMP-light begins where STAMP has the session's name: it may be random (RFC 5357, section
/// 4.1.2), another one in each packet, while STAMP has zeros behind the name (RFC 8972, figure 1).
fn is_padded_freely(bytes: &[u8]) -> bool {
    bytes.iter().take(BASE_BYTES).skip(REQUEST_FIELDS_BYTES).any(|byte| *byte != 0)
}

/// A packet of the session-reflector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestReply {
    /// The reflector's own count in this session, or the request's number where it keeps none.
    pub sequence: u32,
    /// T3: when it left.
    pub sent: WireTime,
    /// The largest error of T2 and of T3.
    pub error: ErrorEstimate,
    /// T2: when the request arrived.
    pub received: WireTime,
    /// The request as it came.
    pub request: TestRequest,
}

impl TestReply {
    /// Turns the request in `bytes` into this reply: as long as it was, whatever follows the fields being kept.
    pub fn encode(&self, bytes: &mut [u8]) {
        let mut base = [0; BASE_BYTES];
        put(&mut base, 0, &self.sequence.to_be_bytes());
        put(&mut base, 4, &self.sent.0.to_be_bytes());
        put(&mut base, 12, &self.error.raw().to_be_bytes());
        put(&mut base, 14, &self.request.session.to_be_bytes());
        put(&mut base, 16, &self.received.0.to_be_bytes());
        put(&mut base, 24, &self.request.sequence.to_be_bytes());
        put(&mut base, 28, &self.request.sent.0.to_be_bytes());
        put(&mut base, 36, &self.request.error.raw().to_be_bytes());
        put(&mut base, 40, &[TTL_UNKNOWN]);
        let length = bytes.len().min(BASE_BYTES);
        let (fields, extensions) = bytes.split_at_mut(length);
        fields.copy_from_slice(&base[..length]);
        mark_extensions(extensions);
    }

    /// Reads a reply.
    ///
    /// # Errors
    /// [`NotTestPacket`].
    pub fn decode(bytes: &[u8]) -> Result<Self, NotTestPacket> {
        check_length(bytes)?;
        let error = ErrorEstimate::from_raw(u16::from_be_bytes(get(bytes, 12)));
        error.bound().ok_or(NotTestPacket::NoErrorEstimate)?;
        Ok(TestReply {
            sequence: u32::from_be_bytes(get(bytes, 0)),
            sent: WireTime(u64::from_be_bytes(get(bytes, 4))),
            error,
            received: WireTime(u64::from_be_bytes(get(bytes, 16))),
            request: TestRequest {
                sequence: u32::from_be_bytes(get(bytes, 24)),
                sent: WireTime(u64::from_be_bytes(get(bytes, 28))),
                error: ErrorEstimate::from_raw(u16::from_be_bytes(get(bytes, 36))),
                session: u16::from_be_bytes(get(bytes, 14)),
            },
        })
    }
}

fn check_length(bytes: &[u8]) -> Result<(), NotTestPacket> {
    match bytes.len() {
        length if length < REPLY_FIELDS_BYTES => Err(NotTestPacket::TooShort(length)),
        length if length > PACKET_BYTES_MAX => Err(NotTestPacket::TooLong(length)),
        _ => Ok(()),
    }
}

/// Sets the flags of each extension (RFC 8972, section 4): padding is understood, no other is; what does not fit into
/// the rest of the packet is malformed, and nothing after it is looked at.
fn mark_extensions(mut rest: &mut [u8]) {
    while let [flags, kind, high, low, ..] = *rest {
        let end = 4 + usize::from(u16::from_be_bytes([high, low]));
        if end > rest.len() {
            rest[0] |= MALFORMED;
            return;
        }
        rest[0] = if kind == EXTRA_PADDING { flags & !NOT_UNDERSTOOD } else { flags | NOT_UNDERSTOOD };
        rest = &mut rest[end..];
    }
}

/// The bytes from `at` on; zeros beyond the end.
fn get<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn put(bytes: &mut [u8; BASE_BYTES], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}

#[cfg(test)]
mod tests;
