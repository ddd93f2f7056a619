//! Protocols whose messages begin with a header of fixed length that says how long the rest is: HTTP/2, Kafka, plain
//! length. Only headers are looked at, so bytes that are missing in a body do no harm.

use super::found::{Found, FoundAt, MESSAGE_BYTES_MAX, Side, StreamFault};
use crate::import::streams::StreamProtocol;

/// What a client sends first (RFC 9113, section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Frames of HTTP/2 (RFC 9113, section 6).
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;

/// Kafka's request for a way to authenticate; in version 0 bytes of no such form follow it.
const SASL_HANDSHAKE: i16 = 17;

/// Whether a header's first bytes are its length with the highest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByteOrder {
    Big,
    Little,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameForm {
    Preface,
    /// `last` is the greatest number of a stream that the client has opened; none before the first frame.
    Http2 {
        side: Side,
        last: Option<u32>,
    },
    Kafka(Side),
    /// Octets of the length.
    Length(usize, ByteOrder),
}

impl FrameForm {
    fn header_length(self) -> usize {
        match self {
            FrameForm::Preface => PREFACE.len(),
            FrameForm::Http2 { .. } => 9,
            FrameForm::Kafka(Side::Requests) => 12,
            FrameForm::Kafka(Side::Replies) => 8,
            FrameForm::Length(octets, _) => octets,
        }
    }
}

/// Cuts a stream into frames.
#[derive(Debug)]
pub(super) struct Framed {
    form: FrameForm,
    header: [u8; PREFACE.len()],
    filled: usize,
    /// As many bytes of the frame are still to come.
    body: u64,
    begun_ns: i64,
}

impl Framed {
    /// `None` for a protocol of another kind.
    pub(super) fn new(protocol: StreamProtocol, side: Side) -> Option<Self> {
        let form = match protocol {
            StreamProtocol::Http2 if side == Side::Requests => FrameForm::Preface,
            StreamProtocol::Http2 => FrameForm::Http2 { side, last: None },
            StreamProtocol::Kafka => FrameForm::Kafka(side),
            StreamProtocol::Length2Big => FrameForm::Length(2, ByteOrder::Big),
            StreamProtocol::Length2Little => FrameForm::Length(2, ByteOrder::Little),
            StreamProtocol::Length4Big => FrameForm::Length(4, ByteOrder::Big),
            StreamProtocol::Length4Little => FrameForm::Length(4, ByteOrder::Little),
            StreamProtocol::Redis => return None,
        };
        Some(Framed { form, header: [0; PREFACE.len()], filled: 0, body: 0, begun_ns: 0 })
    }

    pub(super) fn read(&mut self, mut bytes: &[u8], at_ns: i64, found: &mut Vec<FoundAt>) -> Result<(), StreamFault> {
        while !bytes.is_empty() {
            if self.body > 0 {
                let skipped = usize::try_from(self.body).unwrap_or(usize::MAX).min(bytes.len());
                self.body -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            if self.filled == 0 {
                self.begun_ns = at_ns;
            }
            let wanted = self.form.header_length();
            let (taken, rest) = bytes.split_at((wanted - self.filled).min(bytes.len()));
            self.header[self.filled..self.filled + taken.len()].copy_from_slice(taken);
            self.filled += taken.len();
            bytes = rest;
            if self.filled == wanted {
                self.filled = 0;
                found.extend(self.frame()?.map(|what| (what, self.begun_ns)));
            }
        }
        Ok(())
    }

    /// Bytes that are missing do no harm inside a body.
    pub(super) fn miss(&mut self, missing: u64) -> Result<(), StreamFault> {
        self.body = self.body.checked_sub(missing).ok_or(StreamFault::Gap)?;
        Ok(())
    }

    fn word(&self, at: usize) -> u32 {
        let mut word = [0; 4];
        word.copy_from_slice(&self.header[at..at + 4]);
        u32::from_be_bytes(word)
    }

    /// The header is whole: what it announces.
    fn frame(&mut self) -> Result<Option<Found>, StreamFault> {
        match self.form {
            FrameForm::Preface if self.header == *PREFACE => {
                self.form = FrameForm::Http2 { side: Side::Requests, last: None };
                Ok(None)
            }
            FrameForm::Preface => Err(StreamFault::NotUnderstood),
            FrameForm::Http2 { side, last } => self.http2(side, last),
            FrameForm::Kafka(side) => self.kafka(side).map(Some),
            FrameForm::Length(octets, order) => {
                let mut length = [0; 8];
                length[..octets].copy_from_slice(&self.header[..octets]);
                if order == ByteOrder::Big {
                    length[..octets].reverse();
                }
                self.body = u64::from_le_bytes(length);
                if self.body > MESSAGE_BYTES_MAX { Err(StreamFault::NotUnderstood) } else { Ok(Some(Found::Next)) }
            }
        }
    }

    fn http2(&mut self, side: Side, last: Option<u32>) -> Result<Option<Found>, StreamFault> {
        self.body = u64::from(self.word(0) >> 8);
        let (kind, stream) = (self.header[3], self.word(5) & 0x7fff_ffff);
        let Some(last) = last else {
            // Both sides begin with their settings.
            self.form = FrameForm::Http2 { side, last: Some(0) };
            return if (kind, stream) == (SETTINGS, 0) { Ok(None) } else { Err(StreamFault::NotUnderstood) };
        };
        let is_clients = stream % 2 == 1;
        match (kind, side) {
            (HEADERS | RST_STREAM, _) if stream == 0 => Err(StreamFault::NotUnderstood),
            (HEADERS, Side::Requests) if !is_clients => Err(StreamFault::NotUnderstood),
            // Later headers of a stream end it (trailers).
            (HEADERS, Side::Requests) if stream <= last => Ok(None),
            (HEADERS, Side::Requests) => {
                self.form = FrameForm::Http2 { side, last: Some(stream) };
                Ok(Some(Found::Numbered(stream.into())))
            }
            (HEADERS, Side::Replies) => Ok(is_clients.then_some(Found::Numbered(stream.into()))),
            (RST_STREAM, _) => Ok(Some(Found::BrokenOff(stream.into()))),
            (PUSH_PROMISE, Side::Replies) => Ok(Some(Found::Pushed)),
            _ => Ok(None),
        }
    }

    /// Size, and then the correlation id; in requests behind the number of the interface and its version.
    fn kafka(&mut self, side: Side) -> Result<Found, StreamFault> {
        let (id, counted) = match side {
            Side::Requests => (self.word(8), 8),
            Side::Replies => (self.word(4), 4),
        };
        let size = u64::from(self.word(0));
        if size < counted || size > MESSAGE_BYTES_MAX {
            return Err(StreamFault::NotUnderstood);
        }
        if side == Side::Requests {
            let [interface, version] = [4, 6].map(|at| i16::from_be_bytes([self.header[at], self.header[at + 1]]));
            if interface < 0 || version < 0 {
                return Err(StreamFault::NotUnderstood);
            }
            if (interface, version) == (SASL_HANDSHAKE, 0) {
                return Err(StreamFault::OtherMode);
            }
        }
        self.body = size - counted;
        Ok(Found::Numbered(id.into()))
    }
}
