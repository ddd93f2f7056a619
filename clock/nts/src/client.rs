//! A client's side of protected packets: sealing requests and opening replies (RFC 8915, section 5).

use crate::aead::{Key, SessionKeys, TAG_BYTES};
use crate::establishment::is_usable_cookie;
use crate::server::{AUTHENTICATOR, COOKIE, COOKIE_PLACEHOLDER, LENGTHS_BYTES, UNIQUE_IDENTIFIER, nonce_and_sealed};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use ffclock_wire::{EXTENSION_HEAD_BYTES, ExtensionFields, HEADER_BYTES, begin_extension};

/// The cookies that a client keeps (RFC 8915, section 5.7).
pub const COOKIES_KEPT: usize = 8;
/// A server's cookies may be longer than ours, but must leave room in a packet.
pub(crate) const LONGEST_FOREIGN_COOKIE: usize = 256;
/// Octets of our unique identifiers (RFC 8915, section 5.3).
const IDENTIFIER_BYTES: usize = 32;
/// No request is longer, so that neither it nor its reply is split on its way: the least packet of IPv6, without its
/// headers (RFC 8200, section 5).
pub const LONGEST_REQUEST: usize = 1280 - 48;
/// What a server puts into stratum and reference of a kiss NTSN.
const NAK: &[u8] = b"NTSN";

/// The random numbers of one request.
#[derive(Clone, Copy)]
pub struct RequestRandom {
    /// Its unique identifier.
    pub identifier: [u8; IDENTIFIER_BYTES],
    /// The nonce of its authenticator, as much of it as the algorithm takes.
    pub nonce: [u8; 16],
}

impl fmt::Debug for RequestRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestRandom").finish_non_exhaustive()
    }
}

/// Why a datagram is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unauthentic {
    /// It does not have the unique identifier of the open request: it answers another one, or none.
    NotOurs,
    /// Its fields are not those of a protected reply.
    Malformed,
    /// Its authenticator does not fit.
    Authenticator,
    /// A kiss NTSN for the open request: the server could not open our cookie. It is not protected itself, so it proves
    /// nothing; it is a reason to establish keys again, and the request still waits for its reply.
    Nak,
}

/// What a reply was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedReply<'d> {
    /// Its header, which alone of the packet is of further use.
    pub header: &'d [u8; HEADER_BYTES],
    /// How many new cookies it brought.
    pub cookies: usize,
}

/// The keys and cookies shared with one server. They belong to the address that they are used with: a cookie that is
/// shown from two places would reveal that both are the same client.
pub struct Session {
    keys: SessionKeys,
    jar: VecDeque<Vec<u8>>,
    open_request: Option<[u8; IDENTIFIER_BYTES]>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("keys", &self.keys).field("cookies", &self.jar.len()).finish_non_exhaustive()
    }
}

impl Session {
    /// A session with the keys and the cookies of an establishment; no more than [`COOKIES_KEPT`] are kept.
    pub fn new(keys: SessionKeys, cookies: Vec<Vec<u8>>) -> Self {
        let usable = cookies.into_iter().filter(|cookie| is_usable_cookie(cookie));
        Session { keys, jar: usable.take(COOKIES_KEPT).collect(), open_request: None }
    }

    /// How many requests can still be made.
    pub fn cookies(&self) -> usize {
        self.jar.len()
    }

    /// The algorithm in use.
    pub fn aead(&self) -> crate::Aead {
        self.keys.aead()
    }

    /// The protected form of a request, for which one cookie is used up: it is never sent again. Asks for as many new
    /// cookies as are missing. `None` without a cookie.
    pub fn request(&mut self, header: &[u8; HEADER_BYTES], random: &RequestRandom) -> Option<Vec<u8>> {
        let cookie = self.jar.pop_front()?;
        let mut request = header.to_vec();
        append(&mut request, UNIQUE_IDENTIFIER, &random.identifier)?;
        append(&mut request, COOKIE, &cookie)?;
        let nonce = random.nonce.get(..self.keys.aead().nonce_bytes())?;
        let authenticator = EXTENSION_HEAD_BYTES + LENGTHS_BYTES + nonce.len() + TAG_BYTES;
        let room = LONGEST_REQUEST.saturating_sub(request.len() + authenticator);
        // The cookie that is used up is replaced without being asked for.
        let missing = COOKIES_KEPT - 1 - self.jar.len();
        let placeholders = missing.min(room / (EXTENSION_HEAD_BYTES + cookie.len()));
        let placeholder = alloc::vec![0; cookie.len()];
        for _ in 0..placeholders {
            append(&mut request, COOKIE_PLACEHOLDER, &placeholder)?;
        }
        append_authenticator(&mut request, &self.keys.client_to_server, nonce)?;
        self.open_request = Some(random.identifier);
        Some(request)
    }

    /// Opens a reply. Nothing of it is believed, and nothing changes, unless it is that to the latest request and its
    /// authenticator fits. A reply is accepted once.
    ///
    /// # Errors
    /// Why it is not believed; the request then still waits for its reply.
    pub fn open<'d>(&mut self, datagram: &'d [u8]) -> Result<OpenedReply<'d>, Unauthentic> {
        let identifier = self.open_request.ok_or(Unauthentic::NotOurs)?;
        let header = datagram.first_chunk().ok_or(Unauthentic::Malformed)?;
        let found = sealed_part(datagram, &identifier)?;
        let Some((associated, nonce, sealed)) = found else {
            return Err(if is_nak(header) { Unauthentic::Nak } else { Unauthentic::Malformed });
        };
        let mut sealed = sealed.to_vec();
        let key = &self.keys.server_to_client;
        key.open(nonce, associated, &mut sealed).map_err(|_| Unauthentic::Authenticator)?;
        let text = sealed.get(key.aead().text_in(sealed.len())).unwrap_or_default();
        self.open_request = None;
        Ok(OpenedReply { header, cookies: self.keep_cookies(text) })
    }

    /// Only what is encrypted may bring cookies: others would show which requests belong together.
    fn keep_cookies(&mut self, text: &[u8]) -> usize {
        let before = self.jar.len();
        for field in ExtensionFields::after(text, 0).flatten() {
            if field.kind == COOKIE && is_usable_cookie(field.body) && self.jar.len() < COOKIES_KEPT {
                self.jar.push_back(field.body.to_vec());
            }
        }
        self.jar.len() - before
    }
}

/// What the authenticator covers, its nonce, and what is sealed.
type Sealed<'d> = (&'d [u8], &'d [u8], &'d [u8]);

/// What is sealed in a reply with this identifier. What follows its authenticator is not protected and is not read.
/// `None` if there is no authenticator.
fn sealed_part<'d>(datagram: &'d [u8], identifier: &[u8]) -> Result<Option<Sealed<'d>>, Unauthentic> {
    let mut is_ours = false;
    for field in ExtensionFields::after(datagram, HEADER_BYTES) {
        let field = field.map_err(|_| Unauthentic::Malformed)?;
        match field.kind {
            UNIQUE_IDENTIFIER if is_ours || field.body != identifier => return Err(Unauthentic::NotOurs),
            UNIQUE_IDENTIFIER => is_ours = true,
            AUTHENTICATOR if is_ours => {
                let (nonce, sealed) = nonce_and_sealed(field.body).ok_or(Unauthentic::Malformed)?;
                let associated = datagram.get(..field.at).ok_or(Unauthentic::Malformed)?;
                return Ok(Some((associated, nonce, sealed)));
            }
            _ => {}
        }
    }
    if is_ours { Ok(None) } else { Err(Unauthentic::NotOurs) }
}

/// Stratum 0 and the code NTSN, in a reply (RFC 8915, section 5.7).
fn is_nak(header: &[u8; HEADER_BYTES]) -> bool {
    let is_reply = header.first().is_some_and(|first| first & 7 == 4);
    is_reply && header.get(1) == Some(&0) && header.get(12..16) == Some(NAK)
}

fn append(packet: &mut Vec<u8>, kind: u16, body: &[u8]) -> Option<()> {
    let at = packet.len();
    packet.resize(at + EXTENSION_HEAD_BYTES + body.len(), 0);
    begin_extension(packet.get_mut(at..)?, kind, body.len())?.copy_from_slice(body);
    Some(())
}

/// Appends an authenticator that encrypts nothing (RFC 8915, section 5.6).
fn append_authenticator(packet: &mut Vec<u8>, key: &Key, nonce: &[u8]) -> Option<()> {
    let mut tag = [0; TAG_BYTES];
    key.seal(nonce, packet, &mut tag).ok()?;
    let lengths = [u16::try_from(nonce.len()).ok()?.to_be_bytes(), (TAG_BYTES as u16).to_be_bytes()];
    append(packet, AUTHENTICATOR, &[lengths.as_flattened(), nonce, &tag].concat())
}

#[cfg(test)]
mod tests;
