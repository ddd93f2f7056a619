//! The bytes of one direction of a connection, in order, out of segments in any order.
//!
//! Each byte has the time at which it was first seen. What was never captured is handed on as missing, with its
//! length, which the sequence numbers say; it is never filled by a guess.

use crate::import::packet::TcpSegment;
use std::collections::BTreeMap;

/// A waiting piece takes this much memory besides its bytes.
const PIECE_BYTES: usize = 64;

/// Bytes that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// When they were seen.
    pub(super) at_ns: i64,
    pub(super) bytes: Vec<u8>,
    /// As many bytes follow that were not captured.
    pub(super) missing: u64,
}

impl Piece {
    fn length(&self) -> u64 {
        self.bytes.len() as u64 + self.missing
    }

    fn memory(&self) -> usize {
        self.bytes.len() + PIECE_BYTES
    }
}

/// A stream of bytes whose begin was seen.
#[derive(Debug)]
pub(super) struct ByteStream {
    /// The number of its first byte.
    first: u32,
    /// As many bytes have been handed on.
    next: u64,
    /// What came too early, by its place in the stream. Pieces do not overlap.
    waiting: BTreeMap<u64, Piece>,
    waiting_bytes: usize,
}

impl ByteStream {
    /// A stream that begins with the byte of this number.
    pub(super) fn new(first: u32) -> Self {
        ByteStream { first, next: 0, waiting: BTreeMap::new(), waiting_bytes: 0 }
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The memory that waiting pieces take.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The bytes that wait.
    pub(super) fn unread(&self) -> u64 {
        self.waiting.values().map(|piece| piece.bytes.len() as u64).sum()
    }

    /// Takes a segment that was seen at this time. Whether it brought anything new.
    pub(super) fn add(&mut self, first: u32, segment: &TcpSegment<'_>, at_ns: i64) -> bool {
        // Numbers turn over; nothing is farther from the next byte than half of them.
        let ahead = first.wrapping_sub(self.first.wrapping_add(self.next as u32)) as i32;
        let begin = self.next as i64 + i64::from(ahead);
        let end = begin + i64::from(segment.length);
        let (mut at, end) = (self.next, u64::try_from(end).unwrap_or(0));
        if begin > at as i64 {
            at = begin as u64;
        }
        let mut is_new = false;
        while at < end {
            let before = self.waiting.range(..=at).next_back().map(|(start, piece)| start + piece.length());
            if let Some(covered) = before.filter(|&covered| covered > at) {
                at = covered;
                continue;
            }
            let until = self.waiting.range(at..).next().map_or(end, |(&start, _)| start.min(end));
            let place = |at: u64| ((at as i64 - begin) as usize).min(segment.content.len());
            let bytes = segment.content[place(at)..place(until)].to_vec();
            let piece = Piece { at_ns, missing: until - at - bytes.len() as u64, bytes };
            self.waiting_bytes += piece.memory();
            self.waiting.insert(at, piece);
            (at, is_new) = (until, true);
        }
        is_new
    }

    /// The next piece, if nothing is missing before it.
    pub(super) fn pop(&mut self) -> Option<Piece> {
        let piece = self.waiting.first_entry().filter(|entry| *entry.key() == self.next)?.remove();
        self.waiting_bytes -= piece.memory();
        self.next += piece.length();
        Some(piece)
    }

    /// Gives up what is missing before the first waiting piece: its length, if there is one.
    pub(super) fn give_up_gap(&mut self) -> Option<u64> {
        let (&start, _) = self.waiting.first_key_value()?;
        let missing = start - self.next;
        self.next = start;
        Some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    const FIRST: u32 = u32::MAX - 5;

    fn add(stream: &mut ByteStream, from: u32, content: &[u8], at_ns: i64) -> bool {
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        let (sequence, length) = (FIRST.wrapping_add(from), content.len() as u32);
        stream.add(sequence, &TcpSegment { from: nowhere, to: nowhere, sequence, flags: 0, content, length }, at_ns)
    }

    fn all(stream: &mut ByteStream) -> Vec<(i64, Vec<u8>)> {
        std::iter::from_fn(|| stream.pop()).map(|piece| (piece.at_ns, piece.bytes)).collect()
    }

    #[test]
    fn each_byte_has_the_time_at_which_it_was_first_seen() {
        let mut stream = ByteStream::new(FIRST);
        assert!(add(&mut stream, 4, b"ef", 1) && add(&mut stream, 8, b"ij", 2));
        assert_eq!(stream.pop(), None);
        // One segment covers what came before, with what lies between and after.
        assert!(add(&mut stream, 2, b"cdefghijkl", 3));
        assert!(!add(&mut stream, 3, b"defg", 4), "nothing new");
        assert!(add(&mut stream, 0, b"abc", 5));
        let pieces: [(i64, &[u8]); 6] = [(5, b"ab"), (3, b"cd"), (1, b"ef"), (3, b"gh"), (2, b"ij"), (3, b"kl")];
        assert_eq!(all(&mut stream), pieces.map(|(at, bytes)| (at, bytes.to_vec())));
        assert!(!add(&mut stream, 0, b"abc", 6), "long gone");
        assert_eq!(stream.waiting_bytes(), 0);
    }

    #[test]
    fn a_gap_is_given_up_with_its_length() {
        let mut stream = ByteStream::new(FIRST);
        assert_eq!(stream.give_up_gap(), None);
        add(&mut stream, 1000, b"x", 1);
        assert_eq!((stream.pop(), stream.give_up_gap()), (None, Some(1000)));
        assert_eq!(all(&mut stream), [(1, b"x".to_vec())]);
    }

    #[test]
    fn the_tail_that_was_not_captured_is_missing() {
        let mut stream = ByteStream::new(FIRST);
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        let short = TcpSegment { from: nowhere, to: nowhere, sequence: FIRST, flags: 0, content: b"ab", length: 100 };
        assert!(stream.add(FIRST, &short, 1));
        assert_eq!(stream.pop(), Some(Piece { at_ns: 1, bytes: b"ab".to_vec(), missing: 98 }));
        assert!(add(&mut stream, 100, b"c", 2) && stream.pop().is_some());
    }
}
