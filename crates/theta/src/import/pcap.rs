//! The classic capture format (libpcap's savefile, versions 2.x): total and bounded.

use super::ImportError;
use std::io::{ErrorKind, Read};

/// Longer packets are refused: no link carries them.
const PACKET_BYTES_MAX: u32 = 1 << 18;

/// Reads packets one by one.
pub(super) struct Capture<R> {
    input: R,
    big_endian: bool,
    nanos_per_fraction: u64,
    /// The number of the link layer's type.
    pub(super) link: u32,
    bytes: Vec<u8>,
    number: u64,
}

/// A packet as captured.
pub(super) struct Captured<'a> {
    /// Since the origin of the system clock that stamped it, nanoseconds.
    pub(super) at_ns: u64,
    pub(super) bytes: &'a [u8],
}

impl<R: Read> Capture<R> {
    pub(super) fn open(mut input: R) -> Result<Self, ImportError> {
        let mut header = [0; 24];
        input.read_exact(&mut header).map_err(|error| cut(error, "the file has no header of a capture"))?;
        let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let (big_endian, nanos_per_fraction) = match magic {
            0xa1b2_c3d4 => (false, 1_000),
            0xd4c3_b2a1 => (true, 1_000),
            0xa1b2_3c4d => (false, 1),
            0x4d3c_b2a1 => (true, 1),
            0x0a0d_0d0a => {
                let words =
                    "this is pcapng: convert it with `tcpdump -r FILE -w NEW` or `editcap -F nsecpcap FILE NEW`";
                return Err(ImportError::Format(words.to_owned()));
            }
            _ => return Err(ImportError::Format("this is no capture file of tcpdump".to_owned())),
        };
        let mut capture = Capture { input, big_endian, nanos_per_fraction, link: 0, bytes: vec![], number: 0 };
        capture.link = capture.word(&header, 20) & 0xffff;
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
        Ok(Some(Captured { at_ns, bytes: &self.bytes }))
    }
}

fn cut(error: std::io::Error, words: &str) -> ImportError {
    if error.kind() == ErrorKind::UnexpectedEof {
        ImportError::Format(words.to_owned())
    } else {
        ImportError::Io(error)
    }
}
