//! Octets that are read one field after the other, and messages that are written so.

use crate::NotPtp;
use core::fmt;

/// What is left to read.
pub(crate) struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    pub(crate) const fn of(octets: &'d [u8]) -> Self {
        Reader(octets)
    }

    /// The next `N` octets.
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], NotPtp> {
        let (field, rest) = self.0.split_first_chunk().ok_or(NotPtp::Truncated)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) const fn rest(self) -> &'d [u8] {
        self.0
    }
}

/// A message to send; no message of ours is longer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PtpOctets {
    octets: [u8; PtpOctets::CAPACITY],
    length: usize,
}

impl PtpOctets {
    const CAPACITY: usize = 128;

    /// The octets.
    pub fn as_slice(&self) -> &[u8] {
        self.octets.get(..self.length).unwrap_or_default()
    }

    pub(crate) fn put(&mut self, field: &[u8]) {
        let end = self.length + field.len();
        let place = self.octets.get_mut(self.length..end);
        debug_assert!(place.is_some(), "no message of ours is longer");
        if let Some(place) = place {
            place.copy_from_slice(field);
            self.length = end;
        }
    }

    /// Writes the length so far into the header (13.3.2.6).
    pub(crate) fn state_length(&mut self) {
        let length = u16::try_from(self.length).unwrap_or_default();
        self.set_word(2, length);
    }

    /// Gives the message another sequence number (13.3.2.12).
    pub(crate) fn set_sequence(&mut self, sequence: u16) {
        self.set_word(30, sequence);
    }

    fn set_word(&mut self, at: usize, word: u16) {
        if let Some(place) = self.octets.get_mut(at..at + 2) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }
}

impl Default for PtpOctets {
    fn default() -> Self {
        PtpOctets { octets: [0; Self::CAPACITY], length: 0 }
    }
}

impl fmt::Debug for PtpOctets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}
