//! The messages of key establishment (RFC 8915, section 4): records inside TLS. The server's side is here,
//! the client's in `client.rs`.
//!
//! A message is a sequence of records, ended by the record End of Message. A record is a bit that makes it critical and
//! its type (2 octets), the length of its body (2), and the body.

mod client;

pub(crate) use client::is_usable_cookie;
pub use client::{Granted, ResponseFault, client_request};

use crate::aead::Aead;
use alloc::vec::Vec;

/// No message is longer: a request needs some tens of octets, and an answer less than a thousand.
pub const LONGEST_MESSAGE: usize = 16 * 1024;

/// The bit that makes a record critical.
const CRITICAL: u16 = 0x8000;
const HEAD_BYTES: usize = 4;
/// The protocol NTPv4 in the registry of RFC 8915, section 7.7.
const NTPV4: u16 = 0;

/// Types of records (RFC 8915, section 7.6).
mod kinds {
    pub(super) const END: u16 = 0;
    pub(super) const NEXT_PROTOCOL: u16 = 1;
    pub(super) const ERROR: u16 = 2;
    pub(super) const WARNING: u16 = 3;
    pub(super) const ALGORITHM: u16 = 4;
    pub(super) const COOKIE: u16 = 5;
    pub(super) const SERVER: u16 = 6;
    pub(super) const PORT: u16 = 7;
    /// For private use: chrony from 4.7 on says by it that it takes the keys of AEAD_AES_128_GCM_SIV from TLS as RFC
    /// 8915 says; its earlier versions take them with the number of the other algorithm.
    pub(super) const GCM_SIV_AS_IN_RFC: u16 = 1024;
}

/// Why a request is answered with an error record (RFC 8915, section 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// A critical record of a type that is not known.
    UnknownCritical,
    /// The message is not one that a client may send.
    BadRequest,
    /// No answer can be made.
    Internal,
}

impl RequestFault {
    const fn code(self) -> u16 {
        match self {
            RequestFault::UnknownCritical => 0,
            RequestFault::BadRequest => 1,
            RequestFault::Internal => 2,
        }
    }

    /// The whole answer.
    pub fn answer(self) -> Vec<u8> {
        let mut answer = Vec::new();
        put(&mut answer, CRITICAL | kinds::ERROR, &self.code().to_be_bytes());
        put(&mut answer, CRITICAL | kinds::END, &[]);
        answer
    }
}

/// What the octets that have come so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// The message goes on.
    More,
    /// The message is whole.
    Whole,
    /// It is longer than [`LONGEST_MESSAGE`], or something follows its end.
    TooLong,
}

/// Collects a message from octets as they come.
#[derive(Clone, Debug, Default)]
pub struct MessageReader {
    octets: Vec<u8>,
    /// Where the next record begins.
    at: usize,
    is_whole: bool,
}

impl MessageReader {
    /// Takes the next octets.
    pub fn take(&mut self, octets: &[u8]) -> Arrived {
        if self.octets.len() + octets.len() > LONGEST_MESSAGE {
            return Arrived::TooLong;
        }
        self.octets.extend_from_slice(octets);
        while !self.is_whole {
            let Some((kind, _, end)) = record(&self.octets, self.at) else { return Arrived::More };
            self.at = end;
            self.is_whole = kind & !CRITICAL == kinds::END;
        }
        if self.at == self.octets.len() { Arrived::Whole } else { Arrived::TooLong }
    }

    /// The message as far as it has come.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }
}

/// The record at `at`: its type with its critical bit, its body, and where it ends.
fn record(octets: &[u8], at: usize) -> Option<(u16, &[u8], usize)> {
    let (&[a, b, c, d], rest) = octets.get(at..)?.split_first_chunk::<HEAD_BYTES>()?;
    let body = rest.get(..usize::from(u16::from_be_bytes([c, d])))?;
    Some((u16::from_be_bytes([a, b]), body, at + HEAD_BYTES + body.len()))
}

fn put(message: &mut Vec<u8>, kind: u16, body: &[u8]) {
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes());
    message.extend_from_slice(body);
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether it speaks NTPv4, which is all that is offered here.
    pub speaks_ntp: bool,
    /// The first of its algorithms that is known here.
    pub aead: Option<Aead>,
    /// Whether it marked its request as that of a client that takes the keys of AEAD_AES_128_GCM_SIV as RFC 8915 says.
    pub is_marked: bool,
}

/// Sixteen-bit numbers, without a rest.
fn numbers(body: &[u8]) -> Option<impl Iterator<Item = u16>> {
    let (pairs, rest) = body.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|pair| u16::from_be_bytes(*pair)))
}

impl Request {
    /// Reads a whole message.
    ///
    /// A client that does not mark its request is not given AEAD_AES_128_GCM_SIV: which keys it would take is not
    /// known.
    ///
    /// # Errors
    /// The fault that the answer names ([`RequestFault::answer`]).
    pub fn read(message: &[u8]) -> Result<Self, RequestFault> {
        let bad = RequestFault::BadRequest;
        let (mut protocols, mut algorithms, mut is_marked) = (None, None, false);
        let mut at = 0;
        loop {
            let (kind, body, end) = record(message, at).ok_or(bad)?;
            at = end;
            let is_first = match kind & !CRITICAL {
                kinds::END if body.is_empty() && end == message.len() => break,
                kinds::NEXT_PROTOCOL => protocols.replace(body).is_none(),
                kinds::ALGORITHM => algorithms.replace(body).is_none(),
                // A preference; we are the server.
                kinds::SERVER | kinds::PORT => true,
                kinds::GCM_SIV_AS_IN_RFC => {
                    is_marked = true;
                    true
                }
                kinds::END | kinds::ERROR | kinds::WARNING | kinds::COOKIE => false,
                _ if kind & CRITICAL != 0 => return Err(RequestFault::UnknownCritical),
                _ => true,
            };
            if !is_first {
                return Err(bad);
            }
        }
        let speaks_ntp = numbers(protocols.ok_or(bad)?).ok_or(bad)?.any(|protocol| protocol == NTPV4);
        let algorithms = match algorithms {
            Some(body) => body,
            None if speaks_ntp => return Err(bad),
            None => &[],
        };
        let usable = |aead: &Aead| is_marked || *aead != Aead::Aes128GcmSiv;
        let aead = numbers(algorithms).ok_or(bad)?.filter_map(Aead::from_id).find(usable);
        Ok(Request { speaks_ntp, aead, is_marked })
    }
}

/// What a server grants.
#[derive(Clone, Debug, Default)]
pub struct Grant<'g> {
    /// The cookies.
    pub cookies: &'g [Vec<u8>],
    /// The host that answers NTP, where it is another one.
    pub server: Option<&'g str>,
    /// The port of NTP, where it is not 123.
    pub port: Option<u16>,
}

/// The whole answer to a request (RFC 8915, section 4): without a protocol or an algorithm in common it says so by an
/// empty list, and grants nothing.
pub fn response(request: &Request, grant: &Grant<'_>) -> Vec<u8> {
    let mut answer = Vec::new();
    let protocol = NTPV4.to_be_bytes();
    put(&mut answer, CRITICAL | kinds::NEXT_PROTOCOL, if request.speaks_ntp { &protocol } else { &[] });
    if request.speaks_ntp {
        let algorithm = request.aead.map(|aead| aead.id().to_be_bytes());
        put(&mut answer, CRITICAL | kinds::ALGORITHM, algorithm.as_ref().map_or(&[], |id| id));
        if request.aead.is_some() {
            put_grant(&mut answer, request, grant);
        }
    }
    put(&mut answer, CRITICAL | kinds::END, &[]);
    answer
}

fn put_grant(answer: &mut Vec<u8>, request: &Request, grant: &Grant<'_>) {
    if request.is_marked {
        put(answer, kinds::GCM_SIV_AS_IN_RFC, &[]);
    }
    if let Some(server) = grant.server {
        put(answer, CRITICAL | kinds::SERVER, server.as_bytes());
    }
    if let Some(port) = grant.port {
        put(answer, CRITICAL | kinds::PORT, &port.to_be_bytes());
    }
    for cookie in grant.cookies {
        put(answer, kinds::COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::vec;

    const NEXT_NTP: &[u8] = &[0x80, 1, 0, 2, 0, 0];
    const SIV: &[u8] = &[0x80, 4, 0, 2, 0, 15];
    const END: &[u8] = &[0x80, 0, 0, 0];
    /// A critical record of a type that is not assigned.
    const UNKNOWN: [u8; 4] = [0xff, 0xff, 0, 0];

    fn read(records: &[&[u8]]) -> Result<Request, RequestFault> {
        Request::read(&records.concat())
    }

    #[test]
    fn an_ordinary_request_is_read() {
        let request = Request { speaks_ntp: true, aead: Some(Aead::AesSivCmac256), is_marked: false };
        assert_eq!(read(&[NEXT_NTP, SIV, END]), Ok(request));
        let not_critical = [&[0, 1, 0, 4, 0x12, 0x34, 0, 0][..], &[0, 4, 0, 4, 0, 17, 0, 15], &[0, 0, 0, 0]];
        assert_eq!(read(&not_critical), Ok(request));
        let with_preferences = [NEXT_NTP, SIV, &[0, 6, 0, 1, b'a'], &[0, 7, 0, 2, 0, 123], &[0x7f, 0xff, 0, 1, 1], END];
        assert_eq!(read(&with_preferences), Ok(request));
    }

    #[test]
    fn the_shorter_cookies_are_for_clients_that_say_which_keys_they_take() {
        let both: &[u8] = &[0x80, 4, 0, 4, 0, 30, 0, 15];
        let mark: &[u8] = &[4, 0, 0, 0];
        let aead = |records: &[&[u8]]| read(records).unwrap().aead;
        assert_eq!(aead(&[NEXT_NTP, both, END]), Some(Aead::AesSivCmac256));
        assert_eq!(aead(&[NEXT_NTP, both, mark, END]), Some(Aead::Aes128GcmSiv));
        assert_eq!(aead(&[NEXT_NTP, &[0x80, 4, 0, 2, 0, 30], END]), None);
        let marked = read(&[NEXT_NTP, both, mark, END]).unwrap();
        let answer = response(&marked, &Grant::default());
        assert!(answer.windows(4).any(|octets| octets == mark), "the mark is returned: {answer:?}");
    }

    /// RFC 8915, sections 4.1.2 to 4.1.6.
    #[test]
    fn bad_requests_are_named() {
        let bad = Err(RequestFault::BadRequest);
        let cases: [&[&[u8]]; 14] = [
            &[],
            &[END],
            &[NEXT_NTP, SIV],
            &[SIV, END],
            &[NEXT_NTP, END],
            &[NEXT_NTP, NEXT_NTP, SIV, END],
            &[NEXT_NTP, SIV, SIV, END],
            &[NEXT_NTP, SIV, END, END],
            &[NEXT_NTP, SIV, &[0x80, 0, 0, 1, 0]],
            &[NEXT_NTP, SIV, &[0, 5, 0, 1, 7], END],
            &[NEXT_NTP, SIV, &[0x80, 2, 0, 2, 0, 1], END],
            &[NEXT_NTP, SIV, &[0x80, 3, 0, 2, 0, 1], END],
            &[&[0x80, 1, 0, 3, 0, 0, 0], SIV, END],
            &[NEXT_NTP, &[0x80, 4, 0, 1, 15], END],
        ];
        for case in cases {
            assert_eq!(read(case), bad, "{case:?}");
        }
        assert_eq!(read(&[NEXT_NTP, SIV, &UNKNOWN, END]), Err(RequestFault::UnknownCritical));
        assert_eq!(RequestFault::BadRequest.answer(), [0x80, 2, 0, 2, 0, 1, 0x80, 0, 0, 0]);
        assert_eq!(RequestFault::UnknownCritical.answer()[5], 0);
        assert_eq!(RequestFault::Internal.answer()[5], 2);
    }

    #[test]
    fn an_answer_has_the_records_of_the_rfc() {
        let request = read(&[NEXT_NTP, SIV, END]).unwrap();
        let cookies = [vec![1, 2, 3, 4], vec![5, 6, 7, 8]];
        let answer = response(&request, &Grant { cookies: &cookies, server: Some("t.example"), port: Some(1123) });
        let name: &[u8] = &[0x80, 6, 0, 9, b't', b'.', b'e', b'x', b'a', b'm', b'p', b'l', b'e'];
        let port: &[u8] = &[0x80, 7, 0, 2, 4, 0x63];
        let (one, two): (&[u8], &[u8]) = (&[0, 5, 0, 4, 1, 2, 3, 4], &[0, 5, 0, 4, 5, 6, 7, 8]);
        assert_eq!(answer, [NEXT_NTP, SIV, name, port, one, two, END].concat());
    }

    #[test]
    fn without_anything_in_common_nothing_is_granted() {
        let cookies = [vec![1, 2, 3, 4]];
        let grant = Grant { cookies: &cookies, server: None, port: None };
        let other_protocol = read(&[&[0x80, 1, 0, 2, 0x80, 0], SIV, END]).unwrap();
        assert_eq!(response(&other_protocol, &grant), [&[0x80, 1, 0, 0][..], END].concat());
        let other_algorithm = read(&[NEXT_NTP, &[0x80, 4, 0, 2, 0, 99], END]).unwrap();
        assert_eq!(response(&other_algorithm, &grant), [NEXT_NTP, &[0x80, 4, 0, 0], END].concat());
    }

    #[test]
    fn a_message_that_never_ends_is_cut() {
        let mut reader = MessageReader::default();
        for _ in 0..LONGEST_MESSAGE / 8 {
            assert_eq!(reader.take(&[0x12, 0x34, 0, 4, 0, 0, 0, 0]), Arrived::More);
        }
        assert_eq!(reader.take(&[0]), Arrived::TooLong);
        let mut reader = MessageReader::default();
        assert_eq!(reader.take(&[END, &[1]].concat()), Arrived::TooLong, "something follows the end");
    }

    proptest! {
        #[test]
        fn a_message_is_whole_however_it_is_cut(cuts in prop::collection::vec(1usize..8, 20)) {
            let message = [NEXT_NTP, SIV, &[0x12, 0x34, 0, 3, 1, 2, 3], END].concat();
            let (mut reader, mut rest) = (MessageReader::default(), &message[..]);
            for cut in cuts {
                let (now, later) = rest.split_at(cut.min(rest.len()));
                let arrived = reader.take(now);
                prop_assert_eq!(arrived, if later.is_empty() { Arrived::Whole } else { Arrived::More });
                rest = later;
                if later.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(reader.octets(), &message);
        }

        #[test]
        fn noise_is_read_to_an_end(noise in prop::collection::vec(any::<u8>(), 0..300), start: bool) {
            let message = if start { [NEXT_NTP, SIV, &noise].concat() } else { noise };
            let mut reader = MessageReader::default();
            let arrived = reader.take(&message);
            if let Ok(request) = Request::read(&message) {
                prop_assert_eq!(arrived, Arrived::Whole);
                prop_assert!(response(&request, &Grant::default()).len() < 50);
            }
        }
    }
}
