//! Symmetric keys: a code of authentication at the end of a packet (RFC 5905, section 7.3; RFC 8573), and the files in
//! which chrony and ntpd keep their keys.
//!
//! A code is the number of the key (4 octets) and the digest: AES-CMAC of the packet (RFC 4493), or the first 20 octets
//! of SHA-256 of key and packet. That is what chrony and ntpsec send in version 4: a longer one could be taken for an
//! extension field (RFC 7822). MD5 and SHA-1 are refused.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use cmac::{Cmac, KeyInit, Mac};
use core::fmt;
use ffclock_wire::HEADER_BYTES;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Octets of the key's number.
const NUMBER_BYTES: usize = 4;
/// Octets of a digest of SHA-256 that are sent.
const SHA_BYTES: usize = 20;
/// Octets of a digest of AES-CMAC, and of its key.
const CMAC_BYTES: usize = 16;
/// A value that is longer than this and has no prefix is hexadecimal (ntp.keys of ntpd).
const LONGEST_PLAIN: usize = 20;
/// The shortest key: what can be guessed is no secret.
const SHORTEST_KEY: usize = 8;
/// The most keys of one file.
const MOST_KEYS: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MacAlgorithm {
    Aes128Cmac,
    Sha256,
}

impl MacAlgorithm {
    const fn digest_bytes(self) -> usize {
        match self {
            MacAlgorithm::Aes128Cmac => CMAC_BYTES,
            MacAlgorithm::Sha256 => SHA_BYTES,
        }
    }
}

/// A symmetric key, erased when it is dropped and never printed.
#[derive(Clone)]
pub struct SymmetricKey {
    number: u32,
    algorithm: MacAlgorithm,
    octets: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for SymmetricKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymmetricKey").field("number", &self.number).finish_non_exhaustive()
    }
}

impl SymmetricKey {
    /// The number by which both sides know it.
    pub const fn number(&self) -> u32 {
        self.number
    }

    fn digest(&self, packet: &[u8]) -> Option<[u8; SHA_BYTES]> {
        let mut digest = [0; SHA_BYTES];
        match self.algorithm {
            MacAlgorithm::Aes128Cmac => {
                let mut mac = Cmac::<aes::Aes128>::new_from_slice(&self.octets).ok()?;
                mac.update(packet);
                digest.get_mut(..CMAC_BYTES)?.copy_from_slice(&mac.finalize().into_bytes());
            }
            MacAlgorithm::Sha256 => {
                let whole = Sha256::new().chain_update(self.octets.as_slice()).chain_update(packet).finalize();
                digest.copy_from_slice(whole.get(..SHA_BYTES)?);
            }
        }
        Some(digest)
    }

    /// Appends the code of the packet to it.
    pub fn append(&self, packet: &mut Vec<u8>) {
        if let Some(digest) = self.digest(packet) {
            packet.extend_from_slice(&self.number.to_be_bytes());
            packet.extend_from_slice(digest.get(..self.algorithm.digest_bytes()).unwrap_or_default());
        }
    }

    /// The packet before its code; `None` if there is no code of this key at its end, or it does not fit.
    pub fn verify<'d>(&self, datagram: &'d [u8]) -> Option<&'d [u8]> {
        let length = datagram.len().checked_sub(NUMBER_BYTES + self.algorithm.digest_bytes())?;
        let (packet, code) = datagram.split_at_checked(length).filter(|(packet, _)| packet.len() >= HEADER_BYTES)?;
        let (number, digest) = code.split_first_chunk::<NUMBER_BYTES>()?;
        let expected = self.digest(packet)?;
        let fits = digest.ct_eq(expected.get(..digest.len())?);
        (*number == self.number.to_be_bytes() && bool::from(fits)).then_some(packet)
    }
}

/// Why a key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// No line of the file has its number.
    Missing,
    /// Its algorithm can be forged.
    Weak(&'static str),
    /// Its algorithm is not known.
    UnknownType(String),
    /// Its value cannot be read.
    Value(&'static str),
    /// Two lines have its number.
    Twice,
}

impl fmt::Display for KeyFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFault::Missing => f.write_str("the file has no key with this number"),
            KeyFault::Weak(name) => write!(f, "{name} can be forged: make a key of type AES128 or SHA256"),
            KeyFault::UnknownType(name) => write!(f, "type {name} is not known: AES128 and SHA256 are"),
            KeyFault::Value(why) => f.write_str(why),
            KeyFault::Twice => f.write_str("two lines of the file have this number"),
        }
    }
}

/// A file of keys. A line is a number, a type and a value, as in the files of ntpd and chrony: the value is text, or
/// hexadecimal after `HEX:` or if it is longer than 20 characters. Blank lines and comments (`#`, `!`, `;`, `%`) are
/// skipped. A line with a key that cannot be used spoils no other.
#[derive(Clone, Debug, Default)]
pub struct KeyFile(BTreeMap<u32, Result<SymmetricKey, KeyFault>>);

/// A line of a file of keys is none: its number, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKeyLine(pub usize);

impl fmt::Display for BadKeyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: expected a number from 1 to 4294967295, a type, and a value", self.0)
    }
}

impl KeyFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The first line that does not begin with a number or does not have two or three words, or is one too many.
    pub fn parse(text: &str) -> Result<Self, BadKeyLine> {
        let mut keys = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!', ';', '%']) {
                continue;
            }
            let bad = BadKeyLine(index + 1);
            let without_comment = line.split(" #").next().unwrap_or(line);
            let words: Vec<&str> = without_comment.split_whitespace().collect();
            let (number, kind, value) = match words[..] {
                // chrony takes MD5 where no type is named.
                [number, value] => (number, "MD5", value),
                [number, kind, value] => (number, kind, value),
                _ => return Err(bad),
            };
            let number = number.parse::<u32>().ok().filter(|number| *number > 0).ok_or(bad)?;
            if keys.len() >= MOST_KEYS {
                return Err(bad);
            }
            let key = if keys.contains_key(&number) { Err(KeyFault::Twice) } else { key(number, kind, value) };
            keys.insert(number, key);
        }
        Ok(KeyFile(keys))
    }

    /// The key with this number.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn key(&self, number: u32) -> Result<SymmetricKey, KeyFault> {
        self.0.get(&number).cloned().unwrap_or(Err(KeyFault::Missing))
    }
}

fn key(number: u32, kind: &str, value: &str) -> Result<SymmetricKey, KeyFault> {
    let algorithm = match kind.to_ascii_uppercase().as_str() {
        "AES128" | "AES" | "AES-128" | "AES-CMAC" | "AES-128-CMAC" | "AES128CMAC" => MacAlgorithm::Aes128Cmac,
        "SHA256" | "SHA-256" => MacAlgorithm::Sha256,
        "MD5" | "M" => return Err(KeyFault::Weak("MD5")),
        "SHA1" | "SHA-1" | "SHA" => return Err(KeyFault::Weak("SHA-1")),
        _ => return Err(KeyFault::UnknownType(kind.to_string())),
    };
    let octets = Zeroizing::new(octets(value)?);
    match algorithm {
        MacAlgorithm::Aes128Cmac if octets.len() != CMAC_BYTES => {
            Err(KeyFault::Value("a key of AES128 has 16 octets: 32 hexadecimal digits"))
        }
        _ if octets.len() < SHORTEST_KEY => Err(KeyFault::Value("the key is shorter than 8 octets")),
        _ => Ok(SymmetricKey { number, algorithm, octets }),
    }
}

fn octets(value: &str) -> Result<Vec<u8>, KeyFault> {
    if let Some(text) = value.strip_prefix("ASCII:") {
        return Ok(text.as_bytes().to_vec());
    }
    match value.strip_prefix("HEX:") {
        Some(digits) => hexadecimal(digits),
        None if value.len() > LONGEST_PLAIN => hexadecimal(value),
        None => Ok(value.as_bytes().to_vec()),
    }
}

fn hexadecimal(digits: &str) -> Result<Vec<u8>, KeyFault> {
    let bad = KeyFault::Value("the value is not hexadecimal: put ASCII: before a text of more than 20 characters");
    let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|nibble| u8::try_from(nibble).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bad);
    }
    let octets = pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?));
    octets.collect::<Option<_>>().ok_or(bad)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    const FILE: &str = "\
# keys of two sites
1 AES128 HEX:2b7e151628aed2a6abf7158809cf4f3c
2 AES-128-CMAC 2b7e151628aed2a6abf7158809cf4f3c   # as ntpd has it
3 SHA256 HEX:000102030405060708090a0b0c0d0e0f
4 SHA256 sixteen-letters!
5 SHA256 ASCII:a-text-of-more-than-twenty-letters
6 MD5 password
7 sha1 HEX:000102030405060708090a0b0c0d0e0f10111213
8 secret
9 SHA3-224 HEX:00010203040506070809
10 AES128 HEX:0011
11 SHA256 a-text-of-more-than-twenty-letters
12 SHA256 short
13 SHA256 HEX:000102030405060708090a0b0c0d0e0f
13 SHA256 HEX:000102030405060708090a0b0c0d0e0e
";

    /// RFC 4493, section 4.
    #[test]
    fn cmac_is_that_of_the_rfc() {
        let key = KeyFile::parse(FILE).unwrap().key(1).unwrap();
        let message = hexadecimal("6bc1bee22e409f96e93d7e117393172a").unwrap();
        let expected = hexadecimal("070a16b46b4d4144f79bdd9dd04a287c").unwrap();
        assert_eq!(key.digest(&message).unwrap()[..CMAC_BYTES], expected);
        let empty = hexadecimal("bb1d6929e95937287fa37d129b756746").unwrap();
        assert_eq!(key.digest(&[]).unwrap()[..CMAC_BYTES], empty);
    }

    /// FIPS 180-4: SHA-256 of "abc", as key "ab..." and packet together.
    #[test]
    fn sha_is_of_key_and_packet() {
        let octets = Zeroizing::new(b"a".to_vec());
        let key = SymmetricKey { number: 1, algorithm: MacAlgorithm::Sha256, octets };
        let expected = hexadecimal("ba7816bf8f01cfea414140de5dae2223b00361a3").unwrap();
        assert_eq!(key.digest(b"bc").unwrap()[..], expected);
    }

    #[test]
    fn the_files_of_chrony_and_ntpd_are_read() {
        let file = KeyFile::parse(FILE).unwrap();
        assert_eq!(file.key(1).unwrap().octets, file.key(2).unwrap().octets);
        assert_eq!(file.key(3).unwrap().octets[..], (0..16).collect::<Vec<u8>>()[..]);
        assert_eq!(file.key(4).unwrap().octets[..], *b"sixteen-letters!");
        assert_eq!(file.key(5).unwrap().octets.len(), 34);
        for number in [6, 8] {
            assert_eq!(file.key(number).unwrap_err(), KeyFault::Weak("MD5"));
        }
        assert_eq!(file.key(7).unwrap_err(), KeyFault::Weak("SHA-1"));
        assert_eq!(file.key(9).unwrap_err(), KeyFault::UnknownType("SHA3-224".into()));
        for (number, why) in [(10, "16 octets"), (11, "ASCII:"), (12, "shorter")] {
            assert!(file.key(number).unwrap_err().to_string().contains(why), "{number}");
        }
        assert_eq!(file.key(13).unwrap_err(), KeyFault::Twice);
        assert_eq!(file.key(14).unwrap_err(), KeyFault::Missing);
        for (text, line) in [("0 SHA256 x", 1), ("\nx SHA256 y", 2), ("1", 1), ("1 a b c", 1), ("-1 SHA256 x", 1)] {
            assert_eq!(KeyFile::parse(text).unwrap_err(), BadKeyLine(line), "{text}");
        }
        let printed = std::format!("{file:?}");
        assert!(!printed.contains("sixteen") && !printed.contains("126"), "{printed}");
    }

    #[test]
    fn what_was_changed_or_cut_does_not_fit() {
        let file = KeyFile::parse(FILE).unwrap();
        for (number, length) in [(1, 48 + 20), (3, 48 + 24)] {
            let key = file.key(number).unwrap();
            let mut packet = vec![0x23; HEADER_BYTES];
            key.append(&mut packet);
            assert_eq!(packet.len(), length);
            assert_eq!(key.verify(&packet), Some(&[0x23; HEADER_BYTES][..]));
            for index in 0..packet.len() {
                let mut changed = packet.clone();
                changed[index] ^= 1;
                assert_eq!(key.verify(&changed), None, "octet {index}");
                assert_eq!(key.verify(&packet[..index]), None, "cut at {index}");
            }
            assert_eq!(file.key(2).unwrap().verify(&packet), None, "another number");
            let mut short = vec![0x23; HEADER_BYTES - 4];
            key.append(&mut short);
            assert_eq!(key.verify(&short), None, "less than a header");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_to_an_end(text in "[0-9a-zA-Z :#\n\t]{0,200}", number: u32) {
            if let Ok(file) = KeyFile::parse(&text) {
                prop_assert!(file.key(number).is_err() || text.contains(&number.to_string()));
            }
        }

        #[test]
        fn noise_does_not_fit(noise in prop::collection::vec(any::<u8>(), 0..120)) {
            let file = KeyFile::parse(FILE).unwrap();
            prop_assert!(file.key(1).unwrap().verify(&noise).is_none());
        }
    }
}
