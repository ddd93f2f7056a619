//! The two algorithms that protect packets, and their keys.

use aes_gcm_siv::{Aes128GcmSiv, aead::AeadInOut};
use aes_siv::{KeyInit, siv::Aes128Siv};
use core::fmt;
use core::ops::Range;
use zeroize::Zeroizing;

/// Octets that both algorithms add to what they protect.
pub const TAG_BYTES: usize = 16;
/// The longest key.
const LONGEST_KEY: usize = 32;

/// An algorithm of authenticated encryption, by its number in the registry of RFC 5116.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aead {
    /// AEAD_AES_SIV_CMAC_256 (RFC 5297), which every implementation of NTS has.
    AesSivCmac256,
    /// AEAD_AES_128_GCM_SIV (RFC 8452): shorter cookies.
    Aes128GcmSiv,
}

impl Aead {
    /// The algorithm with this number.
    pub const fn from_id(id: u16) -> Option<Self> {
        match id {
            15 => Some(Aead::AesSivCmac256),
            30 => Some(Aead::Aes128GcmSiv),
            _ => None,
        }
    }

    /// Its number.
    pub const fn id(self) -> u16 {
        match self {
            Aead::AesSivCmac256 => 15,
            Aead::Aes128GcmSiv => 30,
        }
    }

    /// Octets of a key.
    pub const fn key_bytes(self) -> usize {
        match self {
            Aead::AesSivCmac256 => 32,
            Aead::Aes128GcmSiv => 16,
        }
    }

    /// Octets of the nonces that we make.
    pub const fn nonce_bytes(self) -> usize {
        match self {
            Aead::AesSivCmac256 => 16,
            Aead::Aes128GcmSiv => 12,
        }
    }

    /// Where the text stands in `sealed` octets: the tag of the one comes first, that of the other last.
    pub const fn text_in(self, sealed: usize) -> Range<usize> {
        let text = sealed.saturating_sub(TAG_BYTES);
        match self {
            Aead::AesSivCmac256 => sealed - text..sealed,
            Aead::Aes128GcmSiv => 0..text,
        }
    }
}

/// A packet, a cookie or a key does not fit: it is not what its authenticator was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAuthentic;

/// A key, erased when it is dropped and never printed.
#[derive(Clone)]
pub struct Key {
    aead: Aead,
    octets: Zeroizing<[u8; LONGEST_KEY]>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("aead", &self.aead).finish_non_exhaustive()
    }
}

impl Key {
    /// The key with these octets; `None` if they have another length than the algorithm's keys.
    pub fn new(aead: Aead, octets: &[u8]) -> Option<Self> {
        let mut key = Key { aead, octets: Zeroizing::new([0; LONGEST_KEY]) };
        if octets.len() != aead.key_bytes() {
            return None;
        }
        key.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(key)
    }

    /// Its algorithm.
    pub const fn aead(&self) -> Aead {
        self.aead
    }

    /// Its octets, as many as the algorithm's keys have.
    pub fn octets(&self) -> &[u8] {
        self.octets.get(..self.aead.key_bytes()).unwrap_or_default()
    }

    /// Protects the text that stands at [`Aead::text_in`] of `sealed`, together with `associated`.
    ///
    /// # Errors
    /// A nonce of the wrong length, or no room for the tag; nothing is sealed then.
    pub fn seal(&self, nonce: &[u8], associated: &[u8], sealed: &mut [u8]) -> Result<(), NotAuthentic> {
        let (tag, text) = self.parts(sealed)?;
        let made: [u8; TAG_BYTES] = match self.aead {
            Aead::AesSivCmac256 => {
                let sealed = self.siv()?.encrypt_inout_detached([associated, nonce], text.into());
                sealed.map_err(|_| NotAuthentic)?.into()
            }
            Aead::Aes128GcmSiv => {
                let nonce = nonce.try_into().map_err(|_| NotAuthentic)?;
                let sealed = self.gcm_siv()?.encrypt_inout_detached(nonce, associated, text.into());
                sealed.map_err(|_| NotAuthentic)?.into()
            }
        };
        *tag = made;
        Ok(())
    }

    /// Opens what [`Key::seal`] has sealed; the text then stands at [`Aead::text_in`].
    ///
    /// # Errors
    /// Anything of it was changed; `sealed` discloses nothing then.
    pub fn open(&self, nonce: &[u8], associated: &[u8], sealed: &mut [u8]) -> Result<(), NotAuthentic> {
        let (tag, text) = self.parts(sealed)?;
        let opened = match self.aead {
            Aead::AesSivCmac256 => self.siv()?.decrypt_inout_detached([associated, nonce], text.into(), (&*tag).into()),
            Aead::Aes128GcmSiv => {
                let nonce = nonce.try_into().map_err(|_| NotAuthentic)?;
                self.gcm_siv()?.decrypt_inout_detached(nonce, associated, text.into(), (&*tag).into())
            }
        };
        opened.map_err(|_| NotAuthentic)
    }

    fn parts<'s>(&self, sealed: &'s mut [u8]) -> Result<(&'s mut [u8; TAG_BYTES], &'s mut [u8]), NotAuthentic> {
        match self.aead {
            Aead::AesSivCmac256 => sealed.split_first_chunk_mut().ok_or(NotAuthentic),
            Aead::Aes128GcmSiv => sealed.split_last_chunk_mut().map(|(text, tag)| (tag, text)).ok_or(NotAuthentic),
        }
    }

    fn siv(&self) -> Result<Aes128Siv, NotAuthentic> {
        Aes128Siv::new_from_slice(self.octets()).map_err(|_| NotAuthentic)
    }

    fn gcm_siv(&self) -> Result<Aes128GcmSiv, NotAuthentic> {
        Aes128GcmSiv::new_from_slice(self.octets()).map_err(|_| NotAuthentic)
    }
}

/// The keys of one client and one server.
#[derive(Clone, Debug)]
pub struct SessionKeys {
    /// Protects requests.
    pub client_to_server: Key,
    /// Protects replies; of the same algorithm.
    pub server_to_client: Key,
}

impl SessionKeys {
    /// Their algorithm.
    pub const fn aead(&self) -> Aead {
        self.client_to_server.aead()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// RFC 5297, appendix A.1.
    #[test]
    fn siv_is_that_of_the_rfc() {
        let key = hex("fffefdfc fbfaf9f8 f7f6f5f4 f3f2f1f0 f0f1f2f3 f4f5f6f7 f8f9fafb fcfdfeff");
        let mut siv = Aes128Siv::new_from_slice(&key).unwrap();
        let associated = hex("10111213 14151617 18191a1b 1c1d1e1f 20212223 24252627");
        let mut text = hex("11223344 55667788 99aabbcc ddee");
        let tag = siv.encrypt_inout_detached([&associated], text.as_mut_slice().into()).unwrap();
        assert_eq!(tag.to_vec(), hex("85632d07 c6e8f37f 950acd32 0a2ecc93"));
        assert_eq!(text, hex("40c02b96 90c4dc04 daef7f6a fe5c"));
    }

    /// RFC 8452, appendix C.1: a text of 8 octets.
    #[test]
    fn gcm_siv_is_that_of_the_rfc() {
        let key = Key::new(Aead::Aes128GcmSiv, &hex("01000000 00000000 00000000 00000000")).unwrap();
        let nonce = hex("03000000 00000000 00000000");
        let mut sealed = [hex("01000000 00000000"), [0; TAG_BYTES].to_vec()].concat();
        key.seal(&nonce, &[], &mut sealed).unwrap();
        assert_eq!(sealed, hex("b5d83933 0ac7b786 578782ff f6013b81 5b287c22 493a364c"));
    }

    #[test]
    fn what_was_changed_is_not_opened() {
        for aead in [Aead::AesSivCmac256, Aead::Aes128GcmSiv] {
            let key = Key::new(aead, &[9; 32][..aead.key_bytes()]).unwrap();
            let nonce = &[5; 16][..aead.nonce_bytes()];
            let mut sealed = [0; 40];
            sealed[aead.text_in(40)].fill(0x61);
            key.seal(nonce, b"associated", &mut sealed).unwrap();
            let open = |nonce: &[u8], associated: &[u8], mut octets: Vec<u8>| {
                key.open(nonce, associated, &mut octets).map(|()| octets[aead.text_in(40)].to_vec())
            };
            assert_eq!(open(nonce, b"associated", sealed.to_vec()), Ok([0x61; 24].to_vec()));
            assert!(open(nonce, b"associateD", sealed.to_vec()).is_err());
            assert!(open(&[6; 16][..nonce.len()], b"associated", sealed.to_vec()).is_err());
            for index in 0..sealed.len() {
                let mut changed = sealed.to_vec();
                changed[index] ^= 1;
                assert!(open(nonce, b"associated", changed).is_err(), "octet {index}");
                assert!(key.open(nonce, b"associated", &mut sealed[..index].to_vec()).is_err(), "cut at {index}");
            }
        }
    }

    #[test]
    fn a_key_has_the_length_of_its_algorithm_and_is_not_printed() {
        assert!(Key::new(Aead::AesSivCmac256, &[1; 16]).is_none());
        assert!(Key::new(Aead::Aes128GcmSiv, &[1; 32]).is_none());
        let printed = std::format!("{:?}", Key::new(Aead::Aes128GcmSiv, &[0x5a; 16]));
        assert!(!printed.contains("5a") && !printed.contains("90"), "{printed}");
        for id in 0..100 {
            assert!(Aead::from_id(id).is_none_or(|aead| aead.id() == id));
        }
    }
}
