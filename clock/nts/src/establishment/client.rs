//! The client's side of key establishment (RFC 8915, section 4).

use super::{CRITICAL, NTPV4, kinds, numbers, put, record};
use crate::aead::Aead;
use crate::client::{COOKIES_KEPT, LONGEST_FOREIGN_COOKIE};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The algorithms that we offer, the one with the shorter cookies first.
const OFFERED: [Aead; 2] = [Aead::Aes128GcmSiv, Aead::AesSivCmac256];
/// The longest name of a host (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

/// The whole request: NTPv4, and both algorithms.
pub fn client_request() -> Vec<u8> {
    let mut request = Vec::new();
    put(&mut request, CRITICAL | kinds::NEXT_PROTOCOL, &NTPV4.to_be_bytes());
    put(&mut request, CRITICAL | kinds::ALGORITHM, OFFERED.map(|aead| aead.id().to_be_bytes()).as_flattened());
    put(&mut request, kinds::GCM_SIV_AS_IN_RFC, &[]);
    put(&mut request, CRITICAL | kinds::END, &[]);
    request
}

/// Why an answer establishes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFault {
    /// The server answers with an error (RFC 8915, section 7.7).
    Error(u16),
    /// The server answers with a warning that is not known: it must be taken for an error (section 4.1.4).
    Warning(u16),
    /// It has a critical record of a type that is not known.
    UnknownCritical(u16),
    /// It is not a message that a server may send.
    Malformed,
    /// The server does not speak NTPv4 with NTS.
    NoProtocol,
    /// The server has none of our algorithms.
    NoAlgorithm,
    /// The server chose an algorithm that was not offered.
    NotOffered(u16),
    /// It brings no cookie that can be used.
    NoCookies,
    /// The host that it names for NTP has no valid name, or its port is 0.
    BadServer,
}

impl fmt::Display for ResponseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResponseFault::Error(0) => f.write_str("the server does not know a record of our request"),
            ResponseFault::Error(1) => f.write_str("the server calls our request a bad one"),
            ResponseFault::Error(2) => f.write_str("the server has an internal error"),
            ResponseFault::Error(code) => write!(f, "the server answers with error {code}"),
            ResponseFault::Warning(code) => write!(f, "the server answers with warning {code}"),
            ResponseFault::UnknownCritical(kind) => write!(f, "the answer needs record type {kind}, which is unknown"),
            ResponseFault::Malformed => f.write_str("the answer is not one of key establishment"),
            ResponseFault::NoProtocol => f.write_str("the server does not offer NTPv4"),
            ResponseFault::NoAlgorithm => f.write_str("the server has none of our algorithms"),
            ResponseFault::NotOffered(id) => write!(f, "the server chose algorithm {id}, which was not offered"),
            ResponseFault::NoCookies => f.write_str("the answer has no cookie that can be used"),
            ResponseFault::BadServer => f.write_str("the answer names no valid host or port for NTP"),
        }
    }
}

/// What a server grants a client.
#[derive(Clone, PartialEq, Eq)]
pub struct Granted {
    /// The algorithm of packets.
    pub aead: Aead,
    /// The algorithm whose number the keys are taken from TLS with. A server that does not return our mark is one of
    /// chrony before 4.7, which takes the keys of AEAD_AES_128_GCM_SIV with the number of the other algorithm.
    pub exported_as: Aead,
    /// At least one cookie, and at most as many as a client keeps.
    pub cookies: Vec<Vec<u8>>,
    /// The host that answers NTP, where it is another one than that of the establishment: a name or an address.
    pub server: Option<String>,
    /// The port of NTP, where it is not 123.
    pub port: Option<u16>,
}

impl fmt::Debug for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Granted");
        shown.field("aead", &self.aead).field("cookies", &self.cookies.len());
        shown.field("server", &self.server).field("port", &self.port).finish_non_exhaustive()
    }
}

/// The records of an answer, as far as they were read.
#[derive(Default)]
struct Records<'m> {
    protocols: Option<&'m [u8]>,
    algorithms: Option<&'m [u8]>,
    server: Option<&'m [u8]>,
    port: Option<&'m [u8]>,
    cookies: Vec<Vec<u8>>,
    is_marked: bool,
}

impl<'m> Records<'m> {
    fn read(message: &'m [u8]) -> Result<Self, ResponseFault> {
        let mut records = Records::default();
        let mut at = 0;
        loop {
            let (kind, body, end) = record(message, at).ok_or(ResponseFault::Malformed)?;
            at = end;
            if kind & !CRITICAL == kinds::END {
                let is_last = body.is_empty() && end == message.len();
                return if is_last { Ok(records) } else { Err(ResponseFault::Malformed) };
            }
            records.take(kind, body)?;
        }
    }

    fn take(&mut self, kind: u16, body: &'m [u8]) -> Result<(), ResponseFault> {
        let code = || numbers(body).and_then(|mut codes| codes.next()).ok_or(ResponseFault::Malformed);
        let is_first = match kind & !CRITICAL {
            kinds::ERROR => return Err(ResponseFault::Error(code()?)),
            kinds::WARNING => return Err(ResponseFault::Warning(code()?)),
            kinds::NEXT_PROTOCOL => self.protocols.replace(body).is_none(),
            kinds::ALGORITHM => self.algorithms.replace(body).is_none(),
            kinds::SERVER => self.server.replace(body).is_none(),
            kinds::PORT => self.port.replace(body).is_none(),
            kinds::GCM_SIV_AS_IN_RFC => {
                self.is_marked = true;
                true
            }
            kinds::COOKIE => {
                if self.cookies.len() < COOKIES_KEPT && is_usable_cookie(body) {
                    self.cookies.push(body.to_vec());
                }
                true
            }
            other if kind & CRITICAL != 0 => return Err(ResponseFault::UnknownCritical(other)),
            _ => true,
        };
        if is_first { Ok(()) } else { Err(ResponseFault::Malformed) }
    }
}

/// Whether a cookie can be the body of an extension field in a packet that is not split on its way.
pub(crate) const fn is_usable_cookie(cookie: &[u8]) -> bool {
    !cookie.is_empty() && cookie.len() <= LONGEST_FOREIGN_COOKIE && cookie.len().is_multiple_of(4)
}

impl Granted {
    /// Reads a whole answer.
    ///
    /// # Errors
    /// Why it establishes nothing.
    pub fn read(message: &[u8]) -> Result<Self, ResponseFault> {
        let records = Records::read(message)?;
        let aead = algorithm(&records)?;
        if records.cookies.is_empty() {
            return Err(ResponseFault::NoCookies);
        }
        let exported_as = if records.is_marked { aead } else { Aead::AesSivCmac256 };
        Ok(Granted {
            aead,
            exported_as,
            server: records.server.map(host).transpose()?,
            port: records.port.map(port).transpose()?,
            cookies: records.cookies,
        })
    }
}

/// The algorithm of an answer (RFC 8915, sections 4.1.2 and 4.1.5): exactly one protocol and one algorithm.
fn algorithm(records: &Records<'_>) -> Result<Aead, ResponseFault> {
    let protocols = records.protocols.ok_or(ResponseFault::Malformed)?;
    match protocols {
        [] => return Err(ResponseFault::NoProtocol),
        [0, 0] => {}
        _ => return Err(ResponseFault::Malformed),
    }
    match records.algorithms.ok_or(ResponseFault::Malformed)? {
        [] => Err(ResponseFault::NoAlgorithm),
        &[high, low] => {
            let id = u16::from_be_bytes([high, low]);
            Aead::from_id(id).filter(|aead| OFFERED.contains(aead)).ok_or(ResponseFault::NotOffered(id))
        }
        _ => Err(ResponseFault::Malformed),
    }
}

fn host(body: &[u8]) -> Result<String, ResponseFault> {
    let is_part = |octet: &u8| octet.is_ascii_alphanumeric() || b".-_:".contains(octet);
    let is_host = !body.is_empty() && body.len() <= LONGEST_NAME && body.iter().all(is_part);
    let text = core::str::from_utf8(body).ok().filter(|_| is_host);
    text.map(String::from).ok_or(ResponseFault::BadServer)
}

fn port(body: &[u8]) -> Result<u16, ResponseFault> {
    let &[high, low] = body else { return Err(ResponseFault::BadServer) };
    match u16::from_be_bytes([high, low]) {
        0 => Err(ResponseFault::BadServer),
        port => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::establishment::{Arrived, Grant, MessageReader, Request, RequestFault, response};
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;

    const NTP: &[u8] = &[0x80, 1, 0, 2, 0, 0];
    const SIV: &[u8] = &[0x80, 4, 0, 2, 0, 15];
    const COOKIE: &[u8] = &[0, 5, 0, 4, 1, 2, 3, 4];
    const END: &[u8] = &[0x80, 0, 0, 0];

    fn read(records: &[&[u8]]) -> Result<Granted, ResponseFault> {
        Granted::read(&records.concat())
    }

    /// RFC 8915, section 4: the records by their octets.
    #[test]
    fn our_request_is_what_the_rfc_says_and_our_server_reads_it() {
        let request = client_request();
        assert_eq!(request, [0x80, 1, 0, 2, 0, 0, 0x80, 4, 0, 4, 0, 30, 0, 15, 4, 0, 0, 0, 0x80, 0, 0, 0]);
        let understood = Request::read(&request).unwrap();
        assert_eq!(understood.aead, Some(Aead::Aes128GcmSiv));
        let cookies = vec![vec![7; 64]; 9];
        let answer = response(&understood, &Grant { cookies: &cookies, server: Some("::1"), port: Some(1123) });
        let granted = Granted::read(&answer).unwrap();
        assert_eq!((granted.aead, granted.exported_as), (Aead::Aes128GcmSiv, Aead::Aes128GcmSiv));
        assert_eq!((granted.server.as_deref(), granted.port), (Some("::1"), Some(1123)));
        assert_eq!(granted.cookies, vec![vec![7; 64]; COOKIES_KEPT], "the jar is bounded");
        for cut in 0..answer.len() {
            assert!(Granted::read(&answer[..cut]).is_err(), "cut at {cut}");
            assert_eq!(MessageReader::default().take(&answer[..cut]), Arrived::More);
        }
    }

    #[test]
    fn a_server_without_the_mark_takes_its_keys_as_older_chrony_does() {
        let granted = read(&[NTP, &[0x80, 4, 0, 2, 0, 30], COOKIE, END]).unwrap();
        assert_eq!((granted.aead, granted.exported_as), (Aead::Aes128GcmSiv, Aead::AesSivCmac256));
        let granted = read(&[NTP, SIV, COOKIE, &[0x7f, 1, 0, 1, 9], END]).unwrap();
        assert_eq!((granted.aead, granted.exported_as), (Aead::AesSivCmac256, Aead::AesSivCmac256));
        assert_eq!((granted.server, granted.port), (None, None));
    }

    #[test]
    fn answers_that_establish_nothing_are_named() {
        let long_cookie = [&[0, 5, 1, 4][..], &[1; 260]].concat();
        let cases: [(&[&[u8]], ResponseFault); 19] = [
            (&[NTP, SIV, END], ResponseFault::NoCookies),
            (&[NTP, SIV, &[0, 5, 0, 3, 1, 2, 3], END], ResponseFault::NoCookies),
            (&[NTP, SIV, &[0, 5, 0, 0], &long_cookie, END], ResponseFault::NoCookies),
            (&[&[0x80, 1, 0, 0], END], ResponseFault::NoProtocol),
            (&[NTP, &[0x80, 4, 0, 0], COOKIE, END], ResponseFault::NoAlgorithm),
            (&[NTP, &[0x80, 4, 0, 2, 0, 17], COOKIE, END], ResponseFault::NotOffered(17)),
            (&[NTP, &[0x80, 4, 0, 4, 0, 15, 0, 30], COOKIE, END], ResponseFault::Malformed),
            (&[&[0x80, 1, 0, 2, 0, 1], SIV, COOKIE, END], ResponseFault::Malformed),
            (&[SIV, COOKIE, END], ResponseFault::Malformed),
            (&[NTP, COOKIE, END], ResponseFault::Malformed),
            (&[NTP, NTP, SIV, COOKIE, END], ResponseFault::Malformed),
            (&[NTP, SIV, COOKIE, END, END], ResponseFault::Malformed),
            (&[NTP, SIV, COOKIE], ResponseFault::Malformed),
            (&[&[0x80, 2, 0, 2, 0, 1], END], ResponseFault::Error(1)),
            (&[&[0x80, 3, 0, 2, 0, 9], END], ResponseFault::Warning(9)),
            (&[NTP, SIV, COOKIE, &[0xff, 1, 0, 0], END], ResponseFault::UnknownCritical(0x7f01)),
            (&[NTP, SIV, COOKIE, &[0x80, 7, 0, 2, 0, 0], END], ResponseFault::BadServer),
            (&[NTP, SIV, COOKIE, &[0x80, 6, 0, 3, b'a', b' ', b'b'], END], ResponseFault::BadServer),
            (&[NTP, SIV, COOKIE, &[0x80, 6, 0, 0], END], ResponseFault::BadServer),
        ];
        for (records, fault) in cases {
            assert_eq!(read(records), Err(fault), "{records:?}");
            assert!(!fault.to_string().is_empty());
        }
        assert_eq!(Granted::read(&RequestFault::Internal.answer()), Err(ResponseFault::Error(2)));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_to_an_end(octets in prop::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(granted) = Granted::read(&octets) {
                prop_assert!((1..=COOKIES_KEPT).contains(&granted.cookies.len()));
            }
        }
    }
}
