//! The capture format pcapng (draft-ietf-opsawg-pcapng): sections, interfaces and packets. Total and bounded; blocks
//! of other kinds are passed over, and so are packets without a time.

use super::ImportError;
use super::capture::{Captured, PACKET_BYTES_MAX, cut};
use std::io::Read;

/// The type of a section header block, the same in both byte orders.
pub(super) const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const PACKET: u32 = 6;
const ORDER: u32 = 0x1a2b_3c4d;
/// if_tsresol and if_tsoffset, options of an interface.
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
/// Longer blocks are refused.
const BLOCK_BYTES_MAX: u32 = 1 << 24;
/// More interfaces are refused.
const INTERFACES_MAX: usize = 1 << 12;

/// Reads packets one by one.
pub(super) struct Blocks<R> {
    input: R,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// The content of the block that was read last.
    block: Vec<u8>,
    number: u64,
}

/// An interface on which packets were captured.
#[derive(Clone, Copy)]
struct Interface {
    link: u32,
    /// Ticks of its stamps a second.
    hertz: u128,
    /// What must be added to its stamps.
    offset_s: i64,
}

impl<R: Read> Blocks<R> {
    /// The type of the first block, a section, has been read.
    pub(super) fn open(input: R) -> Result<Self, ImportError> {
        let mut blocks = Blocks { input, big_endian: false, interfaces: vec![], block: vec![], number: 1 };
        blocks.section()?;
        Ok(blocks)
    }

    /// The next packet; `None` at the end.
    pub(super) fn next_packet(&mut self) -> Result<Option<Captured<'_>>, ImportError> {
        loop {
            let mut kind = [0; 4];
            if self.input.read(&mut kind[..1])? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let words = self.cut_words();
            self.input.read_exact(&mut kind[1..]).map_err(|error| cut(error, &words))?;
            let kind = self.order(kind);
            if kind == SECTION {
                self.section()?;
                continue;
            }
            let length = self.length()?;
            self.read_block(length)?;
            match kind {
                INTERFACE => self.interface()?,
                PACKET | OLD_PACKET => {
                    if let Some((at_ns, link, until)) = self.packet(kind) {
                        return Ok(Some(Captured { at_ns, link, bytes: &self.block[20..until] }));
                    }
                }
                _ => {}
            }
        }
    }

    fn cut_words(&self) -> String {
        format!("the capture is cut in block {}", self.number)
    }

    fn damaged(&self, what: &str) -> ImportError {
        ImportError::Format(format!("block {} {what}: the capture is damaged", self.number))
    }

    fn order(&self, bytes: [u8; 4]) -> u32 {
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    fn word(&mut self) -> Result<[u8; 4], ImportError> {
        let mut word = [0; 4];
        let words = self.cut_words();
        self.input.read_exact(&mut word).map_err(|error| cut(error, &words))?;
        Ok(word)
    }

    fn length(&mut self) -> Result<u32, ImportError> {
        let length = self.word()?;
        Ok(self.order(length))
    }

    fn check_length(&self, length: u32) -> Result<(), ImportError> {
        if (12..=BLOCK_BYTES_MAX).contains(&length) && length.is_multiple_of(4) {
            return Ok(());
        }
        Err(self.damaged(&format!("claims {length} bytes")))
    }

    fn fill(&mut self, length: usize) -> Result<(), ImportError> {
        self.block.resize(length, 0);
        let words = self.cut_words();
        self.input.read_exact(&mut self.block).map_err(|error| cut(error, &words))
    }

    /// Reads a block of the given size in bytes, with type and both lengths, of which type and first length have been
    /// read.
    fn read_block(&mut self, length: u32) -> Result<(), ImportError> {
        self.check_length(length)?;
        self.fill(length as usize - 8)?;
        let last = self.block.split_off(length as usize - 12);
        if self.order([last[0], last[1], last[2], last[3]]) != length {
            return Err(self.damaged("has two different lengths"));
        }
        Ok(())
    }

    /// A new section: from here on another byte order and other interfaces.
    fn section(&mut self) -> Result<(), ImportError> {
        let (length, order) = (self.word()?, self.word()?);
        self.big_endian = match u32::from_le_bytes(order) {
            ORDER => false,
            swapped if swapped.swap_bytes() == ORDER => true,
            _ => return Err(self.damaged("has no byte order")),
        };
        self.interfaces.clear();
        let length = self.order(length);
        self.check_length(length.saturating_sub(4))?;
        // Type, length and byte order have been read already.
        self.fill(length as usize - 12)
    }

    fn interface(&mut self) -> Result<(), ImportError> {
        if self.interfaces.len() >= INTERFACES_MAX || self.block.len() < 8 {
            return Err(self.damaged("describes an interface that cannot be"));
        }
        let short = |at: usize| {
            let two = [self.block[at], self.block[at + 1]];
            if self.big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
        };
        let mut interface = Interface { link: u32::from(short(0)), hertz: 1_000_000, offset_s: 0 };
        let mut at = 8;
        while at + 4 <= self.block.len() {
            let (option, length) = (short(at), usize::from(short(at + 2)));
            let Some(value) = self.block.get(at + 4..at + 4 + length).filter(|_| option != 0) else { break };
            match (option, value) {
                (RESOLUTION, &[power]) => {
                    interface.hertz = hertz(power).ok_or_else(|| self.damaged("has no resolution"))?
                }
                (OFFSET, value) => {
                    if let Ok(eight) = <[u8; 8]>::try_from(value) {
                        let bytes = if self.big_endian { i64::from_be_bytes(eight) } else { i64::from_le_bytes(eight) };
                        interface.offset_s = bytes;
                    }
                }
                _ => {}
            }
            at += 4 + length.next_multiple_of(4);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    /// Time, link and the end of the bytes of a packet block; `None` if it is too short or of an unknown interface.
    fn packet(&self, kind: u32) -> Option<(u64, u32, usize)> {
        let word = |at: usize| Some(self.order(self.block.get(at..at + 4)?.try_into().ok()?));
        let number = if kind == PACKET {
            word(0)?
        } else {
            let two = [*self.block.first()?, *self.block.get(1)?];
            u32::from(if self.big_endian { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) })
        };
        let interface = self.interfaces.get(number as usize)?;
        let ticks = u128::from(word(4)?) << 32 | u128::from(word(8)?);
        let length = word(12)?;
        let until = 20 + length as usize;
        if length > PACKET_BYTES_MAX || until > self.block.len() {
            return None;
        }
        let nanos = i128::try_from(ticks * 1_000_000_000 / interface.hertz).ok()?;
        let at_ns = u64::try_from(nanos + i128::from(interface.offset_s) * 1_000_000_000).ok()?;
        Some((at_ns, interface.link, until))
    }
}

/// Ticks a second of the resolution `power`: a power of ten, or of two if its highest bit is set.
fn hertz(power: u8) -> Option<u128> {
    let (base, exponent) = if power & 0x80 == 0 { (10u128, power) } else { (2, power & 0x7f) };
    base.checked_pow(u32::from(exponent)).filter(|&hertz| hertz <= 1 << 100)
}
