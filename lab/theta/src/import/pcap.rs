//! The classic capture format (libpcap's savefile, versions 2.x): total and bounded.

use super::ImportError;
use super::capture::{Captured, PACKET_BYTES_MAX, cut};
use std::io::{ErrorKind, Read};

/// Reads packets one by one.
pub(super) struct ClassicCapture<R> {
    input: R,
    big_endian: bool,
    nanos_per_fraction: u64,
    /// The number of the link layer's type.
    link: u32,
    bytes: Vec<u8>,
    number: u64,
}

impl<R: Read> ClassicCapture<R> {
    /// `magic` are the first four bytes, already read.
    pub(super) fn open(mut input: R, magic: [u8; 4]) -> Result<Self, ImportError> {
        let (big_endian, nanos_per_fraction) = match u32::from_le_bytes(magic) {
            0xa1b2_c3d4 => (false, 1_000),
            0xd4c3_b2a1 => (true, 1_000),
            0xa1b2_3c4d => (false, 1),
            0x4d3c_b2a1 => (true, 1),
            _ => return Err(ImportError::Format("this is no capture file of tcpdump".to_owned())),
        };
        let mut header = [0; 20];
        input.read_exact(&mut header).map_err(|error| cut(error, "the file has no header of a capture"))?;
        let mut capture = ClassicCapture { input, big_endian, nanos_per_fraction, link: 0, bytes: vec![], number: 0 };
        capture.link = capture.word(&header, 16) & 0xffff;
        Ok(capture)
    }

    fn word(&self, bytes: &[u8], from: usize) -> u32 {
        let mut word = [0; 4];
        if let Some(four) = bytes.get(from..from + 4) {
            word.copy_from_slice(four);
        }
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    /// The next packet; `None` at the end.
    pub(super) fn next_packet(&mut self) -> Result<Option<Captured<'_>>, ImportError> {
        let mut header = [0; 16];
        let mut filled = 0;
        while filled < header.len() {
            match self.input.read(&mut header[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(ImportError::Format(format!("the capture is cut in packet {}", self.number + 1))),
                Ok(more) => filled += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.number += 1;
        let (seconds, fraction, length) = (self.word(&header, 0), self.word(&header, 4), self.word(&header, 8));
        if length > PACKET_BYTES_MAX {
            return Err(ImportError::Format(format!(
                "packet {} claims {length} bytes: the capture is damaged",
                self.number
            )));
        }
        self.bytes.resize(length as usize, 0);
        let number = self.number;
        self.input
            .read_exact(&mut self.bytes)
            .map_err(|error| cut(error, &format!("the capture is cut in packet {number}")))?;
        let at_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.nanos_per_fraction;
        Ok(Some(Captured { at_ns, link: self.link, bytes: &self.bytes }))
    }
}
