//! Captures of either format, packet by packet.

use super::ImportError;
use super::pcap::ClassicCapture;
use super::pcapng::Blocks;
use std::io::{ErrorKind, Read};

/// Longer packets are refused: no link carries them.
pub(super) const PACKET_BYTES_MAX: u32 = 1 << 18;

/// A packet as captured.
pub(super) struct Captured<'a> {
    /// Since the origin of the system clock that stamped it, nanoseconds.
    pub(super) at_ns: u64,
    /// The number of the link layer's type.
    pub(super) link: u32,
    pub(super) bytes: &'a [u8],
}

/// Reads packets one by one.
pub(super) enum Capture<R> {
    /// The classic format of tcpdump.
    ClassicCapture(ClassicCapture<R>),
    /// The block format of Wireshark.
    Blocks(Blocks<R>),
}

impl<R: Read> Capture<R> {
    pub(super) fn open(mut input: R) -> Result<Self, ImportError> {
        let mut magic = [0; 4];
        input.read_exact(&mut magic).map_err(|error| cut(error, "the file has no header of a capture"))?;
        if u32::from_le_bytes(magic) == super::pcapng::SECTION {
            return Blocks::open(input).map(Capture::Blocks);
        }
        ClassicCapture::open(input, magic).map(Capture::ClassicCapture)
    }

    /// The next packet; `None` at the end.
    pub(super) fn next_packet(&mut self) -> Result<Option<Captured<'_>>, ImportError> {
        match self {
            Capture::ClassicCapture(classic) => classic.next_packet(),
            Capture::Blocks(blocks) => blocks.next_packet(),
        }
    }
}

pub(super) fn cut(error: std::io::Error, words: &str) -> ImportError {
    if error.kind() == ErrorKind::UnexpectedEof {
        ImportError::Format(words.to_owned())
    } else {
        ImportError::Io(error)
    }
}
