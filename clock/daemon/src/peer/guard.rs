//! What authenticates the packets of one server: nothing, a symmetric key, or NTS.

use crate::establish::Established;
use crate::slowdowns::Proof;
use ffclock_control::protocol::{AuthenticationKind, AuthenticationReport};
use ffclock_nts::mac::SymmetricKey;
use ffclock_nts::{CertificateTime, RequestRandom, Session, Unauthentic};
use ffclock_units::Span;
use ffclock_wire::HEADER_BYTES;
use std::io;
use std::net::SocketAddr;

/// The first wait for the next establishment [s]; each one without an authentic reply doubles it.
const ESTABLISH_AGAIN: i64 = 8;
/// The longest wait: 34 minutes.
const MOST_DOUBLINGS: u32 = 8;

/// What authenticates packets.
pub(super) enum PacketGuard {
    /// Packets are believed as they come.
    Plain,
    /// A symmetric key.
    Key(SymmetricKey),
    /// A symmetric key that cannot be used: nothing is asked without it.
    NoKey,
    /// NTS.
    Nts(Box<NtsGuard>),
}

/// NTS with one server.
#[derive(Default)]
pub(super) struct NtsGuard {
    session: Option<(Session, SocketAddr)>,
    certificate_end: Option<CertificateTime>,
    /// Establishments since the last authentic reply.
    attempts: u32,
    established: u64,
    /// Whether a reply to the open request says, without proof, that the server cannot open our cookies.
    is_doubted: bool,
    /// Whether one said so, and no authentic reply to the same request came.
    is_refused: bool,
}

/// A packet that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OpenedDatagram<'d> {
    /// It may be believed as far as the guard can say: the part that is protected.
    Authentic(&'d [u8]),
    /// It is not authentic.
    Refused,
    /// The server says, without proof, that it cannot open our cookie.
    KeysRefused,
}

impl PacketGuard {
    /// Whether keys are to be established.
    pub(super) fn wants_keys(&self) -> bool {
        match self {
            PacketGuard::Nts(nts) => nts.is_refused || nts.cookies() == 0,
            _ => false,
        }
    }

    /// An establishment begins; the next one may begin after the time that is returned.
    pub(super) fn begin_establishment(&mut self) -> Span {
        let PacketGuard::Nts(nts) = self else { return Span::from_secs(ESTABLISH_AGAIN) };
        let doublings = nts.attempts.min(MOST_DOUBLINGS);
        nts.attempts = nts.attempts.saturating_add(1);
        Span::from_secs(ESTABLISH_AGAIN << doublings)
    }

    /// Uses new keys from now on.
    pub(super) fn use_keys(&mut self, established: Established) {
        if let PacketGuard::Nts(nts) = self {
            nts.session = Some((established.session, established.address));
            nts.certificate_end = established.certificate_end;
            nts.established += 1;
            (nts.is_doubted, nts.is_refused) = (false, false);
        }
    }

    /// The open request was given up. Only now is it known that nothing better than a refusal answered it (RFC 8915,
    /// section 5.7): a refusal can be forged on the request's way, and each establishment costs the server much.
    pub(super) fn note_lost(&mut self) {
        if let PacketGuard::Nts(nts) = self {
            nts.is_refused |= std::mem::take(&mut nts.is_doubted);
        }
    }

    /// The datagram of a request to `address`; `None` if it cannot be authenticated and must not be sent.
    ///
    /// # Errors
    /// There are no random numbers.
    pub(super) fn protect(&mut self, header: &[u8; HEADER_BYTES], address: SocketAddr) -> io::Result<Option<Vec<u8>>> {
        match self {
            PacketGuard::Plain => Ok(Some(header.to_vec())),
            PacketGuard::NoKey => Ok(None),
            PacketGuard::Key(key) => {
                let mut datagram = header.to_vec();
                key.append(&mut datagram);
                Ok(Some(datagram))
            }
            PacketGuard::Nts(nts) => {
                // A cookie is never shown to another address.
                let session = nts.session.as_mut().filter(|(_, of)| *of == address);
                let Some((session, _)) = session else { return Ok(None) };
                Ok(session.request(header, &random()?))
            }
        }
    }

    /// Opens a packet. Nothing of it is believed before its authenticator was verified.
    pub(super) fn open<'d>(&mut self, datagram: &'d [u8]) -> OpenedDatagram<'d> {
        match self {
            PacketGuard::Plain => OpenedDatagram::Authentic(datagram),
            PacketGuard::NoKey => OpenedDatagram::Refused,
            PacketGuard::Key(key) => key.verify(datagram).map_or(OpenedDatagram::Refused, OpenedDatagram::Authentic),
            PacketGuard::Nts(nts) => nts.open(datagram),
        }
    }

    /// Whether what is believed is the server's own word.
    pub(super) fn proof(&self) -> Proof {
        match self {
            PacketGuard::Plain => Proof::Open,
            PacketGuard::Key(_) | PacketGuard::NoKey | PacketGuard::Nts(_) => Proof::Authentic,
        }
    }

    pub(super) fn report(&self) -> AuthenticationReport {
        match self {
            PacketGuard::Plain => AuthenticationReport::default(),
            PacketGuard::NoKey => {
                AuthenticationReport { kind: AuthenticationKind::Key, ..AuthenticationReport::default() }
            }
            PacketGuard::Key(key) => AuthenticationReport {
                kind: AuthenticationKind::Key,
                key: Some(key.number()),
                ..AuthenticationReport::default()
            },
            PacketGuard::Nts(nts) => AuthenticationReport {
                kind: AuthenticationKind::Nts,
                key: None,
                aead: nts.session.as_ref().map(|(session, _)| session.aead().id()),
                cookies: Some(nts.cookies()),
                established: Some(nts.established),
                certificate_end: nts.certificate_end.map(|end| end.to_string()),
                certificate_end_unix_s: nts.certificate_end.map(|end| end.unix_seconds),
            },
        }
    }
}

impl NtsGuard {
    fn cookies(&self) -> usize {
        self.session.as_ref().map_or(0, |(session, _)| session.cookies())
    }

    fn open<'d>(&mut self, datagram: &'d [u8]) -> OpenedDatagram<'d> {
        let Some((session, _)) = &mut self.session else { return OpenedDatagram::Refused };
        match session.open(datagram) {
            Ok(reply) => {
                (self.attempts, self.is_doubted, self.is_refused) = (0, false, false);
                OpenedDatagram::Authentic(reply.header)
            }
            Err(Unauthentic::Nak) => {
                self.is_doubted = true;
                OpenedDatagram::KeysRefused
            }
            Err(Unauthentic::NotOurs | Unauthentic::Malformed | Unauthentic::Authenticator) => OpenedDatagram::Refused,
        }
    }
}

fn random() -> io::Result<RequestRandom> {
    let mut octets = [0; 48];
    for chunk in octets.as_chunks_mut::<8>().0 {
        *chunk = ffclock_sys::random_nonce()?.to_ne_bytes();
    }
    let (mut identifier, mut nonce) = ([0; 32], [0; 16]);
    let (one, other) = octets.split_at(identifier.len());
    identifier.copy_from_slice(one);
    nonce.copy_from_slice(other);
    Ok(RequestRandom { identifier, nonce })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_nts::{Aead, Key, SessionKeys};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }

    fn established(cookies: usize) -> Established {
        let key = |octet| Key::new(Aead::AesSivCmac256, &[octet; 32]).unwrap();
        let keys = SessionKeys { client_to_server: key(1), server_to_client: key(2) };
        let session = Session::new(keys, vec![vec![7; 64]; cookies]);
        Established { session, address: address(123), certificate_end: None }
    }

    #[test]
    fn cookies_are_shown_to_their_address_only_and_run_out() {
        let mut guard = PacketGuard::Nts(Box::default());
        assert!(guard.wants_keys());
        assert_eq!(guard.protect(&[0x23; 48], address(123)).unwrap(), None, "nothing is asked without keys");
        assert_eq!(guard.open(&[0x24; 48]), OpenedDatagram::Refused, "nothing is believed without keys");
        guard.use_keys(established(1));
        assert!(!guard.wants_keys());
        assert_eq!(guard.protect(&[0x23; 48], address(124)).unwrap(), None);
        assert_eq!(guard.report().cookies, Some(1));
        assert!(guard.protect(&[0x23; 48], address(123)).unwrap().is_some_and(|datagram| datagram.len() > 48));
        assert!(guard.wants_keys());
        assert_eq!(guard.protect(&[0x23; 48], address(123)).unwrap(), None);
        assert_eq!(guard.open(&[0x24; 48]), OpenedDatagram::Refused, "a plain reply");
    }

    /// A kiss NTSN is not protected: it counts where the request has no better answer.
    #[test]
    fn a_refusal_of_keys_counts_once_the_request_is_lost() {
        let mut guard = PacketGuard::Nts(Box::default());
        guard.use_keys(established(3));
        let request = guard.protect(&[0x23; 48], address(123)).unwrap().unwrap();
        let mut refusal = request[..48 + 36].to_vec();
        (refusal[0], refusal[1]) = (0x24, 0);
        refusal[12..16].copy_from_slice(b"NTSN");
        guard.note_lost();
        assert!(!guard.wants_keys(), "a request that is lost refuses no keys");
        assert_eq!(guard.open(&refusal), OpenedDatagram::KeysRefused);
        assert!(!guard.wants_keys(), "its reply may come yet");
        guard.note_lost();
        assert!(guard.wants_keys());
        guard.use_keys(established(3));
        assert!(!guard.wants_keys());
    }

    #[test]
    fn establishments_that_bring_nothing_become_rare() {
        let mut guard = PacketGuard::Nts(Box::default());
        let waits: Vec<_> = (0..10).map(|_| guard.begin_establishment().as_seconds()).collect();
        assert_eq!(waits, [8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 2048.0]);
    }
}
