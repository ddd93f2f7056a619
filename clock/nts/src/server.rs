//! A server's side of protected packets: opening requests and sealing replies (RFC 8915, section 5), without memory of
//! a client and without allocating any.
//!
//! A reply is never longer than its request: the client brings the room for each cookie that it wants.

use crate::aead::{SessionKeys, TAG_BYTES};
use crate::cookie::{CookieKeys, NonceSource, cookie_bytes};
use core::ops::Range;
use ffclock_wire::{EXTENSION_HEAD_BYTES, ExtensionField, ExtensionFields, HEADER_BYTES, begin_extension};

/// The types of the extension fields (RFC 8915, section 7.5).
pub(crate) const UNIQUE_IDENTIFIER: u16 = 0x0104;
pub(crate) const COOKIE: u16 = 0x0204;
pub(crate) const COOKIE_PLACEHOLDER: u16 = 0x0304;
pub(crate) const AUTHENTICATOR: u16 = 0x0404;

/// The shortest unique identifier (RFC 8915, section 5.3).
const SHORTEST_IDENTIFIER: usize = 32;
/// The most cookies of one reply: as many as a client keeps (RFC 8915, section 5.7).
const MOST_COOKIES: usize = 8;
/// The lengths of nonce and ciphertext, before both.
pub(crate) const LENGTHS_BYTES: usize = 4;

/// Why a protected request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedRequest {
    /// Its fields are not those of RFC 8915, section 5.7: it gets no answer.
    Malformed,
    /// Its cookie is none of ours, or is too old: the client must establish keys again.
    Cookie,
    /// Its authenticator does not fit: the client must establish keys again.
    Authenticator,
}

/// What a request brings beside its header.
#[derive(Debug)]
pub enum Protection<'d> {
    /// Nothing of NTS.
    Plain,
    /// It is authentic.
    Nts(OpenedRequest),
    /// It is not, and why; with its unique identifier where the answer may be a kiss NTSN ([`write_nak`]).
    Refused(RefusedRequest, Option<&'d [u8]>),
}

/// A request whose authenticator fits. It does not hold the datagram, which [`ReplySealer::seal`] takes again.
#[derive(Debug)]
pub struct OpenedRequest {
    /// Where the body of its unique identifier stands in the datagram.
    identifier: Range<usize>,
    session: SessionKeys,
    cookies: usize,
    length: usize,
}

/// Where the fields of a protected request stand.
#[derive(Default)]
struct Found<'d> {
    identifier: Option<ExtensionField<'d>>,
    cookie: Option<&'d [u8]>,
    placeholders: usize,
    authenticator: Option<ExtensionField<'d>>,
    /// Whether something is there twice, or is no field.
    is_malformed: bool,
}

impl<'d> Found<'d> {
    /// Reads the fields up to the authenticator; what follows it is not protected and is not read.
    fn read(datagram: &'d [u8]) -> Self {
        let mut found = Found::default();
        for field in ExtensionFields::after(datagram, HEADER_BYTES) {
            let Ok(field) = field else {
                found.is_malformed = true;
                return found;
            };
            found.is_malformed |= match field.kind {
                UNIQUE_IDENTIFIER => found.identifier.replace(field).is_some(),
                COOKIE => found.cookie.replace(field.body).is_some(),
                COOKIE_PLACEHOLDER => {
                    found.placeholders += 1;
                    false
                }
                AUTHENTICATOR => {
                    found.authenticator = Some(field);
                    return found;
                }
                _ => false,
            };
        }
        found
    }

    /// Whether there is anything that only a protected request has. A unique identifier alone protects nothing.
    fn is_protected(&self) -> bool {
        self.cookie.is_some() || self.authenticator.is_some()
    }
}

impl<'d> Protection<'d> {
    /// What a request of an NTPv4 client brings. `scratch` must be as long as the datagram; without the room for it the
    /// request is refused.
    pub fn of(datagram: &'d [u8], keys: &CookieKeys, scratch: &mut [u8]) -> Self {
        // Most requests are a header alone.
        if datagram.len() <= HEADER_BYTES {
            return Protection::Plain;
        }
        let found = Found::read(datagram);
        if !found.is_protected() {
            return Protection::Plain;
        }
        match open(datagram, &found, keys, scratch) {
            Ok(opened) => Protection::Nts(opened),
            Err(RefusedRequest::Malformed) => Protection::Refused(RefusedRequest::Malformed, None),
            Err(refused) => Protection::Refused(refused, found.identifier.map(|field| field.body)),
        }
    }
}

fn open(
    datagram: &[u8],
    found: &Found<'_>,
    keys: &CookieKeys,
    scratch: &mut [u8],
) -> Result<OpenedRequest, RefusedRequest> {
    let (Some(identifier), Some(cookie), Some(authenticator)) = (found.identifier, found.cookie, found.authenticator)
    else {
        return Err(RefusedRequest::Malformed);
    };
    if found.is_malformed || identifier.body.len() < SHORTEST_IDENTIFIER {
        return Err(RefusedRequest::Malformed);
    }
    let (nonce, sealed) = nonce_and_sealed(authenticator.body).ok_or(RefusedRequest::Malformed)?;
    let associated = datagram.get(..authenticator.at).ok_or(RefusedRequest::Malformed)?;
    let session = keys.open(cookie).map_err(|_| RefusedRequest::Cookie)?;
    let scratch = scratch.get_mut(..sealed.len()).ok_or(RefusedRequest::Malformed)?;
    scratch.copy_from_slice(sealed);
    session.client_to_server.open(nonce, associated, scratch).map_err(|_| RefusedRequest::Authenticator)?;
    let cookies = (1 + found.placeholders).min(MOST_COOKIES);
    let identifier = identifier.at + EXTENSION_HEAD_BYTES..identifier.end();
    Ok(OpenedRequest { identifier, session, cookies, length: datagram.len() })
}

/// The body of an authenticator (RFC 8915, section 5.6): both are padded to whole words.
pub(crate) fn nonce_and_sealed(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[a, b, c, d], rest) = body.split_first_chunk::<LENGTHS_BYTES>()?;
    let (nonce, sealed) = (usize::from(u16::from_be_bytes([a, b])), usize::from(u16::from_be_bytes([c, d])));
    let after = rest.get(nonce.next_multiple_of(4)..)?;
    // The padding of the ciphertext must be there as well.
    after.get(..sealed.next_multiple_of(4))?;
    Some((rest.get(..nonce)?, after.get(..sealed)?))
}

/// What seals replies: one for each thread.
#[derive(Debug)]
pub struct ReplySealer<'k> {
    /// The keys of the new cookies.
    pub keys: &'k CookieKeys,
    /// Where nonces come from.
    pub nonces: &'k mut NonceSource,
}

impl ReplySealer<'_> {
    /// Writes the reply to an authentic request, which came as `datagram`: `header`, its unique identifier, and new
    /// cookies, as many as the client asked for and has room for. Gives the length of the reply, which is never longer
    /// than its request; `None` if the request has no room for any reply, or `out` is shorter than the request.
    pub fn seal(
        &mut self,
        (request, datagram): (&OpenedRequest, &[u8]),
        header: &[u8; HEADER_BYTES],
        out: &mut [u8],
    ) -> Option<usize> {
        let key = &request.session.server_to_client;
        let (aead, nonce_bytes) = (key.aead(), key.aead().nonce_bytes());
        let room = out.get_mut(..request.length)?;
        let at = write_identified(header, datagram.get(request.identifier.clone())?, room)?;
        let fixed = at + EXTENSION_HEAD_BYTES + LENGTHS_BYTES + nonce_bytes + TAG_BYTES;
        let each = EXTENSION_HEAD_BYTES + cookie_bytes(aead);
        let cookies = (request.length.checked_sub(fixed)? / each).min(request.cookies);
        let sealed_bytes = TAG_BYTES + cookies * each;
        let (associated, rest) = room.split_at_mut_checked(at)?;
        let body = begin_extension(rest, AUTHENTICATOR, LENGTHS_BYTES + nonce_bytes + sealed_bytes)?;
        let (lengths, body) = body.split_first_chunk_mut::<LENGTHS_BYTES>()?;
        let (nonce, sealed) = body.split_at_mut_checked(nonce_bytes)?;
        let lengths_of = |length: usize| Some(u16::try_from(length).ok()?.to_be_bytes());
        let ([a, b], [c, d]) = (lengths_of(nonce_bytes)?, lengths_of(sealed_bytes)?);
        *lengths = [a, b, c, d];
        nonce.copy_from_slice(self.nonces.take().get(..nonce_bytes)?);
        self.put_cookies(request, sealed.get_mut(aead.text_in(sealed_bytes))?)?;
        key.seal(nonce, associated, sealed).ok()?;
        Some(fixed + cookies * each)
    }

    /// Fills `text` with cookies, of which it has room for a whole number.
    fn put_cookies(&mut self, request: &OpenedRequest, text: &mut [u8]) -> Option<()> {
        let length = cookie_bytes(request.session.aead());
        for place in text.chunks_exact_mut(EXTENSION_HEAD_BYTES + length) {
            let body = begin_extension(place, COOKIE, length)?;
            self.keys.seal(&request.session, self.nonces.take(), body).ok()?;
        }
        Some(())
    }
}

/// Writes the kiss NTSN to a request that was refused: `header`, and the identifier by which the client knows that the
/// kiss is its own (RFC 8915, section 5.7). It protects nothing, and is shorter than every protected request.
pub fn write_nak(header: &[u8; HEADER_BYTES], identifier: &[u8], out: &mut [u8]) -> Option<usize> {
    write_identified(header, identifier, out)
}

fn write_identified(header: &[u8; HEADER_BYTES], identifier: &[u8], out: &mut [u8]) -> Option<usize> {
    let (place, rest) = out.split_first_chunk_mut::<HEADER_BYTES>()?;
    *place = *header;
    begin_extension(rest, UNIQUE_IDENTIFIER, identifier.len())?.copy_from_slice(identifier);
    Some(HEADER_BYTES + EXTENSION_HEAD_BYTES + identifier.len())
}

#[cfg(test)]
pub(crate) mod tests {
    extern crate std;
    use super::*;
    use crate::aead::{Aead, Key};
    use crate::cookie::tests::session;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    const IDENTIFIER: [u8; 32] = [0x77; 32];

    fn keys() -> CookieKeys {
        CookieKeys::new([7; 32], 100, 2)
    }

    fn cookie(aead: Aead) -> Vec<u8> {
        let mut room = [0; 200];
        let length = keys().seal(&session(aead), [4; 16], &mut room).unwrap();
        room[..length].to_vec()
    }

    fn field(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut room = vec![0; EXTENSION_HEAD_BYTES + body.len()];
        begin_extension(&mut room, kind, body.len()).unwrap().copy_from_slice(body);
        room
    }

    fn authenticator(key: &Key, nonce: &[u8], associated: &[u8]) -> Vec<u8> {
        let mut sealed = [0; TAG_BYTES];
        key.seal(nonce, associated, &mut sealed).unwrap();
        field(AUTHENTICATOR, &[&[0, nonce.len() as u8, 0, TAG_BYTES as u8][..], nonce, &sealed].concat())
    }

    /// A request of a client that wants `1 + placeholders` cookies.
    fn request(aead: Aead, placeholders: usize) -> Vec<u8> {
        let cookie = cookie(aead);
        let mut datagram = [&[0x23; HEADER_BYTES][..], &field(UNIQUE_IDENTIFIER, &IDENTIFIER)].concat();
        datagram.extend(field(COOKIE, &cookie));
        for _ in 0..placeholders {
            datagram.extend(field(COOKIE_PLACEHOLDER, &vec![0; cookie.len()]));
        }
        let nonce = &[9; 16][..aead.nonce_bytes()];
        let proof = authenticator(&session(aead).client_to_server, nonce, &datagram);
        datagram.extend(proof);
        datagram
    }

    fn protection(datagram: &[u8]) -> Result<Option<usize>, (RefusedRequest, bool)> {
        match Protection::of(datagram, &keys(), &mut [0; 2000]) {
            Protection::Plain => Ok(None),
            Protection::Nts(opened) => Ok(Some(opened.cookies)),
            Protection::Refused(why, identifier) => Err((why, identifier.is_some())),
        }
    }

    fn reply(datagram: &[u8]) -> Vec<u8> {
        let mut out = [0; 2000];
        let keys = keys();
        let Protection::Nts(opened) = Protection::of(datagram, &keys, &mut [0; 2000]) else { panic!("not opened") };
        let mut nonces = NonceSource::new([1; 16]);
        let mut sealer = ReplySealer { keys: &keys, nonces: &mut nonces };
        let length = sealer.seal((&opened, datagram), &[0x24; HEADER_BYTES], &mut out).unwrap();
        out[..length].to_vec()
    }

    /// What a client finds in a reply: its cookies.
    fn cookies_in(reply: &[u8], aead: Aead) -> Vec<Vec<u8>> {
        let fields: Vec<_> = ExtensionFields::after(reply, HEADER_BYTES).map(Result::unwrap).collect();
        assert_eq!(fields.iter().map(|field| field.kind).collect::<Vec<_>>(), [UNIQUE_IDENTIFIER, AUTHENTICATOR]);
        assert_eq!(fields[0].body, IDENTIFIER);
        let (nonce, sealed) = nonce_and_sealed(fields[1].body).unwrap();
        let mut sealed = sealed.to_vec();
        session(aead).server_to_client.open(nonce, &reply[..fields[1].at], &mut sealed).unwrap();
        let text = &sealed[aead.text_in(sealed.len())];
        let inside = ExtensionFields::after(text, 0).map(Result::unwrap);
        inside.inspect(|field| assert_eq!(field.kind, COOKIE)).map(|field| field.body.to_vec()).collect()
    }

    #[test]
    fn a_client_gets_as_many_good_cookies_as_it_asks_for_in_a_reply_no_longer_than_its_request() {
        for aead in [Aead::AesSivCmac256, Aead::Aes128GcmSiv] {
            for (placeholders, wanted) in [(0, 1), (1, 2), (7, 8), (9, 8)] {
                let request = request(aead, placeholders);
                let reply = reply(&request);
                assert!(reply.len() <= request.len(), "{} of {}", reply.len(), request.len());
                assert_eq!(reply[..HEADER_BYTES], [0x24; HEADER_BYTES]);
                let cookies = cookies_in(&reply, aead);
                assert_eq!(cookies.len(), wanted);
                for cookie in &cookies {
                    assert_eq!(keys().open(cookie).unwrap().aead(), aead);
                    assert_eq!(cookies.iter().filter(|other| *other == cookie).count(), 1, "all differ");
                }
            }
        }
    }

    #[test]
    fn a_request_without_nts_is_plain_whatever_else_it_brings() {
        let header = [0x23; HEADER_BYTES];
        let clock_bound = [&[0xfe, 0xc2, 0, 16][..], &[0; 12]].concat();
        let alone = field(UNIQUE_IDENTIFIER, &IDENTIFIER);
        for more in [&[][..], &clock_bound, &alone, &[0; 20], &[1], &[0xff; 24]] {
            assert_eq!(protection(&[&header, more].concat()), Ok(None), "{more:?}");
        }
    }

    /// RFC 8915, section 5.7: exactly one of each; an answer only where an identifier shows whom it is for.
    #[test]
    fn requests_of_another_form_get_no_answer() {
        let aead = Aead::AesSivCmac256;
        let header = [0x23; HEADER_BYTES];
        let (identifier, cookie) = (field(UNIQUE_IDENTIFIER, &IDENTIFIER), field(COOKIE, &cookie(aead)));
        let short = field(UNIQUE_IDENTIFIER, &[0x77; 28]);
        let malformed = Err((RefusedRequest::Malformed, false));
        let forms: [&[&[u8]]; 6] = [
            &[&header, &cookie],
            &[&header, &identifier],
            &[&header, &short, &cookie],
            &[&header, &identifier, &identifier, &cookie],
            &[&header, &identifier, &cookie, &cookie],
            &[&header, &identifier, &cookie, &[0, 1, 0, 3]],
        ];
        for (index, form) in forms.into_iter().enumerate() {
            let mut datagram = form.concat();
            let proof = authenticator(&session(aead).client_to_server, &[9; 16], &datagram);
            datagram.extend(proof);
            assert_eq!(protection(&datagram), malformed, "form {index}");
        }
        let unproven = [&header[..], &identifier, &cookie].concat();
        assert_eq!(protection(&unproven), malformed);
        for lengths in [[0, 16, 0xff, 0xff], [0xff, 0xff, 0, 16], [0, 16, 0, 0x20]] {
            let body = [&lengths[..], &[0; 32]].concat();
            assert_eq!(protection(&[&unproven[..], &field(AUTHENTICATOR, &body)].concat()), malformed);
        }
    }

    #[test]
    fn a_replayed_request_gives_nothing_but_another_reply_for_its_owner() {
        let request = request(Aead::AesSivCmac256, 0);
        let (one, two) =
            (cookies_in(&reply(&request), Aead::AesSivCmac256), cookies_in(&reply(&request), Aead::AesSivCmac256));
        assert_eq!((one.len(), two.len()), (1, 1));
    }

    #[test]
    fn swapped_and_changed_requests_are_refused_with_a_kiss_at_most() {
        let aead = Aead::AesSivCmac256;
        let good = request(aead, 1);
        assert_eq!(protection(&good), Ok(Some(2)));
        for index in 0..good.len() {
            let mut changed = good.clone();
            changed[index] ^= 1;
            assert!(!matches!(protection(&changed), Ok(Some(_))), "octet {index}");
            assert!(!matches!(protection(&good[..index]), Ok(Some(_))), "cut at {index}");
        }
        // Another session's cookie under this session's authenticator.
        let mut room = [0; 200];
        let key = |octet| Key::new(aead, &[octet; 32]).unwrap();
        let other = SessionKeys { client_to_server: key(5), server_to_client: key(6) };
        let length = keys().seal(&other, [4; 16], &mut room).unwrap();
        let at = HEADER_BYTES + EXTENSION_HEAD_BYTES + IDENTIFIER.len() + EXTENSION_HEAD_BYTES;
        let mut swapped = good.clone();
        swapped[at..at + length].copy_from_slice(&room[..length]);
        assert_eq!(protection(&swapped), Err((RefusedRequest::Authenticator, true)));
        // A cookie of a server with another secret.
        let length = CookieKeys::new([8; 32], 100, 2).seal(&other, [4; 16], &mut room).unwrap();
        swapped[at..at + length].copy_from_slice(&room[..length]);
        assert_eq!(protection(&swapped), Err((RefusedRequest::Cookie, true)));
    }

    /// A cookie says which algorithm its keys are for; the other one cannot be used with them.
    #[test]
    fn an_algorithm_cannot_be_swapped() {
        let mut datagram = [&[0x23; HEADER_BYTES][..], &field(UNIQUE_IDENTIFIER, &IDENTIFIER)].concat();
        datagram.extend(field(COOKIE, &cookie(Aead::AesSivCmac256)));
        let key = Key::new(Aead::Aes128GcmSiv, &[1; 16]).unwrap();
        let proof = authenticator(&key, &[9; 12], &datagram);
        datagram.extend(proof);
        assert_eq!(protection(&datagram), Err((RefusedRequest::Authenticator, true)));
    }

    #[test]
    fn a_kiss_has_the_identifier_and_is_short() {
        let mut out = [0; 1000];
        let length = write_nak(&[0x24; HEADER_BYTES], &IDENTIFIER, &mut out).unwrap();
        assert_eq!(length, HEADER_BYTES + EXTENSION_HEAD_BYTES + IDENTIFIER.len());
        assert!(length < request(Aead::Aes128GcmSiv, 0).len());
        assert!(write_nak(&[0; HEADER_BYTES], &IDENTIFIER, &mut [0; 60]).is_none());
    }

    proptest! {
        #[test]
        fn no_reply_is_longer_than_its_request(
            identifier in 8usize..40,
            placeholders in prop::collection::vec(0usize..60, 0..10),
            nonce in 1usize..40,
            siv: bool,
        ) {
            let aead = if siv { Aead::AesSivCmac256 } else { Aead::Aes128GcmSiv };
            let nonce = if siv { nonce } else { 12 };
            let mut datagram = [&[0x23; HEADER_BYTES][..], &field(UNIQUE_IDENTIFIER, &vec![7; 4 * identifier])].concat();
            datagram.extend(field(COOKIE, &cookie(aead)));
            for words in &placeholders {
                datagram.extend(field(COOKIE_PLACEHOLDER, &vec![0; 4 * words]));
            }
            let mut sealed = [0; TAG_BYTES];
            session(aead).client_to_server.seal(&vec![9; nonce], &datagram, &mut sealed).unwrap();
            let mut body = vec![0, nonce as u8, 0, 16];
            body.extend(vec![9; nonce]);
            body.resize(body.len().next_multiple_of(4), 0);
            body.extend(sealed);
            datagram.extend(field(AUTHENTICATOR, &body));
            let (keys, mut out) = (keys(), vec![0; datagram.len()]);
            let Protection::Nts(opened) = Protection::of(&datagram, &keys, &mut [0; 3000]) else {
                return Err(TestCaseError::fail("not opened"));
            };
            let mut nonces = NonceSource::new([1; 16]);
            let mut sealer = ReplySealer { keys: &keys, nonces: &mut nonces };
            if let Some(length) = sealer.seal((&opened, &datagram), &[0; HEADER_BYTES], &mut out) {
                prop_assert!(length <= datagram.len());
            }
        }

        #[test]
        fn noise_after_a_header_is_never_taken_for_authentic(
            noise in prop::collection::vec(any::<u8>(), 0..600),
            kinds in prop::collection::vec(0usize..5, 0..6),
        ) {
            let mut datagram = vec![0x23; HEADER_BYTES];
            for (chunk, kind) in noise.chunks(100).zip(kinds) {
                let kind = [UNIQUE_IDENTIFIER, COOKIE, COOKIE_PLACEHOLDER, AUTHENTICATOR, 0xfec2][kind];
                datagram.extend(field(kind, &chunk[..chunk.len() / 4 * 4]));
            }
            prop_assert!(!matches!(protection(&datagram), Ok(Some(_))));
            datagram.extend(noise);
            prop_assert!(!matches!(protection(&datagram), Ok(Some(_))));
        }
    }
}
