//! Cookies: the keys of a session, sealed so that only the server can read them (RFC 8915, section 6).
//!
//! The server keeps nothing of a client. A cookie is the number of the key that it is sealed with (4 octets), a nonce
//! (16), and the algorithm and both keys of the session under AEAD_AES_SIV_CMAC_256. The key with a number is derived
//! from one secret, so that all threads and a restarted server agree on it. The newest seals; older ones still open,
//! and so does the next one, which another thread or server may have begun to use a moment earlier.

use crate::aead::{Aead, Key, NotAuthentic, SessionKeys, TAG_BYTES};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alloc::vec::Vec;
use core::fmt;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Octets of the secret that the keys of cookies are derived from.
pub const SECRET_BYTES: usize = 32;

const NUMBER_BYTES: usize = 4;
const NONCE_BYTES: usize = 16;
/// The number of the algorithm, and two zeros: a cookie is a whole number of words.
const ALGORITHM_BYTES: usize = 4;
const OVERHEAD: usize = NUMBER_BYTES + NONCE_BYTES + TAG_BYTES;
/// Octets of the longest cookie.
pub const LONGEST_COOKIE: usize = cookie_bytes(Aead::AesSivCmac256);
/// What the keys of cookies are derived for: no other use of the secret gives the same ones.
const PURPOSE: &[u8] = b"ffclock NTS cookie key";

/// Octets of a cookie for a session with this algorithm.
pub(crate) const fn cookie_bytes(aead: Aead) -> usize {
    OVERHEAD + ALGORITHM_BYTES + 2 * aead.key_bytes()
}

/// Numbers that are used once and look random: a block cipher over a counter. A counter itself would show which cookies
/// were made one after the other, and so which belong to one client.
pub struct NonceSource {
    cipher: Aes128,
    counter: u128,
}

impl fmt::Debug for NonceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NonceSource").finish_non_exhaustive()
    }
}

impl NonceSource {
    /// A source of its own for each thread: `seed` is random.
    pub fn new(seed: [u8; 16]) -> Self {
        NonceSource { cipher: Aes128::new(&seed.into()), counter: 0 }
    }

    /// The next nonce.
    pub fn take(&mut self) -> [u8; NONCE_BYTES] {
        self.counter = self.counter.wrapping_add(1);
        let mut block = self.counter.to_be_bytes().into();
        self.cipher.encrypt_block(&mut block);
        block.into()
    }
}

/// The keys of cookies that are in use.
pub struct CookieKeys {
    secret: Zeroizing<[u8; SECRET_BYTES]>,
    newest: u32,
    /// Those of the numbers from `newest - old` to `newest + 1`.
    keys: Vec<(u32, Key)>,
}

impl fmt::Debug for CookieKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CookieKeys").field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl CookieKeys {
    /// The keys in use while `newest` is the number of the newest one and `old` ones before it still open cookies.
    pub fn new(secret: [u8; SECRET_BYTES], newest: u32, old: u16) -> Self {
        let secret = Zeroizing::new(secret);
        let numbers = newest.saturating_sub(old.into())..=newest.saturating_add(1);
        let keys = numbers.filter_map(|number| Some((number, derive(&secret, number)?))).collect();
        CookieKeys { secret, newest, keys }
    }

    /// The number of the key that seals.
    pub const fn newest(&self) -> u32 {
        self.newest
    }

    /// The same secret's keys at another date.
    #[must_use]
    pub fn at(&self, newest: u32, old: u16) -> Self {
        Self::new(*self.secret, newest, old)
    }

    fn key(&self, number: u32) -> Option<&Key> {
        self.keys.iter().find(|(other, _)| *other == number).map(|(_, key)| key)
    }

    /// Writes a cookie for a session to the beginning of `room`, and gives its length.
    ///
    /// # Errors
    /// There is not enough room.
    pub fn seal(&self, session: &SessionKeys, nonce: [u8; 16], room: &mut [u8]) -> Result<usize, NotAuthentic> {
        let key = self.key(self.newest).ok_or(NotAuthentic)?;
        let length = cookie_bytes(session.aead());
        let room = room.get_mut(..length).ok_or(NotAuthentic)?;
        let (number, rest) = room.split_first_chunk_mut::<NUMBER_BYTES>().ok_or(NotAuthentic)?;
        let (nonce_place, sealed) = rest.split_first_chunk_mut::<NONCE_BYTES>().ok_or(NotAuthentic)?;
        *number = self.newest.to_be_bytes();
        *nonce_place = nonce;
        let text = sealed.get_mut(TAG_BYTES..).ok_or(NotAuthentic)?;
        let (algorithm, keys) = text.split_first_chunk_mut::<ALGORITHM_BYTES>().ok_or(NotAuthentic)?;
        *algorithm = u32::from(session.aead().id()).to_be_bytes();
        let (one, other) = keys.split_at_mut_checked(session.aead().key_bytes()).ok_or(NotAuthentic)?;
        one.copy_from_slice(session.client_to_server.octets());
        other.copy_from_slice(session.server_to_client.octets());
        key.seal(&nonce, number, sealed)?;
        Ok(length)
    }

    /// The keys in a cookie.
    ///
    /// # Errors
    /// It was not made here, was changed, or its key is too old.
    pub fn open(&self, cookie: &[u8]) -> Result<SessionKeys, NotAuthentic> {
        let (number, rest) = cookie.split_first_chunk::<NUMBER_BYTES>().ok_or(NotAuthentic)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(NotAuthentic)?;
        let key = self.key(u32::from_be_bytes(*number)).ok_or(NotAuthentic)?;
        let mut room = Zeroizing::new([0; LONGEST_COOKIE]);
        let room = room.get_mut(..sealed.len()).ok_or(NotAuthentic)?;
        room.copy_from_slice(sealed);
        key.open(nonce, number, room)?;
        let text = room.get(TAG_BYTES..).ok_or(NotAuthentic)?;
        let (&[0, 0, high, low], keys) = text.split_first_chunk::<ALGORITHM_BYTES>().ok_or(NotAuthentic)? else {
            return Err(NotAuthentic);
        };
        let aead = Aead::from_id(u16::from_be_bytes([high, low])).ok_or(NotAuthentic)?;
        let (one, other) = keys.split_at_checked(aead.key_bytes()).ok_or(NotAuthentic)?;
        let key = |octets| Key::new(aead, octets).ok_or(NotAuthentic);
        Ok(SessionKeys { client_to_server: key(one)?, server_to_client: key(other)? })
    }
}

/// The key with this number: HMAC-SHA-256 of its purpose and its number (RFC 5869, section 2.3, with one block: the
/// secret is random already, so nothing is extracted first).
fn derive(secret: &[u8; SECRET_BYTES], number: u32) -> Option<Key> {
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(secret).ok()?;
    mac.update(PURPOSE);
    mac.update(&number.to_be_bytes());
    mac.update(&[1]);
    let octets = Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()));
    Key::new(Aead::AesSivCmac256, octets.as_slice())
}

#[cfg(test)]
pub(crate) mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    pub(crate) fn session(aead: Aead) -> SessionKeys {
        let key = |octet| Key::new(aead, &[octet; 32][..aead.key_bytes()]).unwrap();
        SessionKeys { client_to_server: key(1), server_to_client: key(2) }
    }

    fn cookie(keys: &CookieKeys, aead: Aead) -> Vec<u8> {
        let mut room = [0; 200];
        let length = keys.seal(&session(aead), [3; 16], &mut room).unwrap();
        room[..length].to_vec()
    }

    const BOTH: [Aead; 2] = [Aead::AesSivCmac256, Aead::Aes128GcmSiv];

    #[test]
    fn a_cookie_gives_back_the_keys_of_its_session() {
        let keys = CookieKeys::new([7; 32], 100, 2);
        for aead in BOTH {
            let cookie = cookie(&keys, aead);
            assert!(cookie.len() == cookie_bytes(aead) && cookie.len().is_multiple_of(4));
            let opened = keys.open(&cookie).unwrap();
            assert_eq!(opened.aead(), aead);
            assert_eq!(opened.client_to_server.octets(), session(aead).client_to_server.octets());
            assert_eq!(opened.server_to_client.octets(), session(aead).server_to_client.octets());
        }
    }

    #[test]
    fn a_restarted_server_agrees_and_another_secret_does_not() {
        let cookie = cookie(&CookieKeys::new([7; 32], 100, 2), Aead::AesSivCmac256);
        assert!(CookieKeys::new([7; 32], 100, 0).open(&cookie).is_ok());
        assert!(CookieKeys::new([8; 32], 100, 2).open(&cookie).is_err());
    }

    /// The newest seals, two older ones and the next one open.
    #[test]
    fn a_cookie_is_good_for_as_long_as_its_key() {
        let made = cookie(&CookieKeys::new([7; 32], 100, 2), Aead::AesSivCmac256);
        let opens = |newest| CookieKeys::new([7; 32], 100, 2).at(newest, 2).open(&made).is_ok();
        assert_eq!([98, 99, 100, 101, 102, 103].map(opens), [false, true, true, true, true, false]);
        for newest in [0, u32::MAX] {
            let keys = CookieKeys::new([7; 32], newest, 2);
            assert!(keys.open(&cookie(&keys, Aead::AesSivCmac256)).is_ok());
        }
    }

    #[test]
    fn cut_and_changed_cookies_are_refused() {
        let keys = CookieKeys::new([7; 32], 100, 2);
        for aead in BOTH {
            let good = cookie(&keys, aead);
            for index in 0..good.len() {
                assert!(keys.open(&good[..index]).is_err());
                let mut changed = good.clone();
                changed[index] ^= 0x80;
                assert!(keys.open(&changed).is_err(), "octet {index}");
            }
            assert!(keys.open(&[&good[..], &[0; 4]].concat()).is_err());
            assert!(keys.seal(&session(aead), [3; 16], &mut [0; 71]).is_err());
        }
    }

    #[test]
    fn nonces_do_not_repeat_and_do_not_count() {
        let mut source = NonceSource::new([1; 16]);
        let mut other = NonceSource::new([2; 16]);
        let made: std::collections::BTreeSet<_> = (0..1000).flat_map(|_| [source.take(), other.take()]).collect();
        assert_eq!(made.len(), 2000);
        let (one, two) = (u128::from_be_bytes(source.take()), u128::from_be_bytes(source.take()));
        assert!(one.abs_diff(two) > 1 << 64);
    }

    proptest! {
        #[test]
        fn noise_is_no_cookie(octets in prop::collection::vec(any::<u8>(), 0..300)) {
            let keys = CookieKeys::new([7; 32], 100, 2);
            prop_assert!(keys.open(&octets).is_err());
            let numbered = [&[0, 0, 0, 100][..], &octets].concat();
            prop_assert!(keys.open(&numbered).is_err());
        }
    }
}
