//! One establishment, from the name to the keys. TLS 1.3 alone; no session is resumed, no secret is written to a key
//! log.

use super::{Established, EstablishmentOrder};
use ffclock_nts::establishment::{Arrived, Granted, MessageReader, client_request};
use ffclock_nts::{
    ALPN, Aead, EXPORTER_LABEL, Key, KeyDirection, Session, SessionKeys, certificate_end, exporter_context,
};
use ffclock_sys::mono_now;
use ffclock_units::{Moment, Mono, Span};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{CertificateError, ClientConfig, ClientConnection, Error, RootCertStore, crypto};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long one address may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long everything after the look-up may take, however slowly the server sends.
const WHOLE: Span = Span::from_secs(15);
/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 4;

/// A clock that stands still: an establishment is short.
#[derive(Debug)]
struct JudgedAt(UnixTime);

impl TimeProvider for JudgedAt {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

/// Establishes keys.
///
/// # Errors
/// Why it cannot be done, in words.
pub(super) fn establish(order: &EstablishmentOrder) -> Result<Established, String> {
    let config = tls_config(order)?;
    let name =
        ServerName::try_from(order.host.clone()).map_err(|_| format!("{} can be in no certificate", order.host))?;
    let deadline = mono_now() + WHOLE;
    let (mut socket, address) = connect(order, deadline)?;
    let mut tls = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
    let granted = converse(&mut tls, &mut socket, deadline).map_err(|failure| failure.words(order))?;
    let session = Session::new(session_keys(&tls, &granted)?, granted.cookies.clone());
    let certificate = tls.peer_certificates().and_then(|chain| chain.first());
    Ok(Established {
        session,
        address: ntp_address(order, &granted, address)?,
        certificate_end: certificate.and_then(|certificate| certificate_end(certificate)),
    })
}

fn tls_config(order: &EstablishmentOrder) -> Result<Arc<ClientConfig>, String> {
    let seconds = u64::try_from(order.now.since_origin().as_nanos() / 1_000_000_000).unwrap_or_default();
    let judged_at = JudgedAt(UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
    let provider = Arc::new(crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(judged_at))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .with_root_certificates(authorities(order.authorities.as_deref())?)
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Those of the file alone, or those of the system.
fn authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        store.add_parsable_certificates(found.certs);
        let why = found.errors.first().map_or_else(String::new, |error| format!(" ({error})"));
        return if store.is_empty() { Err(format!("the system has no trusted certificates{why}")) } else { Ok(store) };
    };
    let named = |why: &dyn std::fmt::Display| format!("nts_ca {}: {why}", file.display());
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| named(&error))? {
        let certificate = certificate.map_err(|error| named(&error))?;
        store.add(certificate).map_err(|error| named(&error))?;
    }
    if store.is_empty() { Err(named(&"it holds no certificate in PEM")) } else { Ok(store) }
}

fn look_up((host, port): (&str, u16), order: &EstablishmentOrder) -> Result<Vec<SocketAddr>, String> {
    let found = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let addresses = usable(found, order);
    let why = || format!("{host}: the name has no address, or none of family = \"{}\"", order.family);
    if addresses.is_empty() { Err(why()) } else { Ok(addresses) }
}

/// The addresses that may be used, in the order in which they are tried: one that does not answer NTP comes last.
fn usable(found: impl Iterator<Item = SocketAddr>, order: &EstablishmentOrder) -> Vec<SocketAddr> {
    let mut addresses: Vec<_> = found.filter(|address| order.family.admits(address)).collect();
    addresses.sort_by_key(|address| order.silent.is_some_and(|silent| silent.ip() == address.ip()));
    addresses.truncate(MOST_ADDRESSES);
    addresses
}

fn connect(order: &EstablishmentOrder, deadline: Moment<Mono>) -> Result<(TcpStream, SocketAddr), String> {
    let mut why = String::new();
    for address in look_up((&order.host, order.port), order)? {
        let attempt = remaining(deadline).and_then(|left| TcpStream::connect_timeout(&address, left.min(CONNECT)));
        match attempt {
            Ok(socket) => return Ok((socket, address)),
            Err(error) => why = format!("no connection to {address}: {error}"),
        }
    }
    Err(why)
}

/// Where NTP is asked: on the host that the server names, or at the address that the keys were established with.
fn ntp_address(order: &EstablishmentOrder, granted: &Granted, established: SocketAddr) -> Result<SocketAddr, String> {
    let port = granted.port.unwrap_or(order.ntp_port);
    match &granted.server {
        None => Ok(SocketAddr::new(established.ip(), port)),
        Some(host) => look_up((host, port), order)?.into_iter().next().ok_or_else(|| format!("{host}: no address")),
    }
}

/// Why a conversation failed.
enum Failure {
    Socket(io::Error),
    Tls(Error),
    Answer(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Socket(error)
    }
}

impl Failure {
    fn words(&self, order: &EstablishmentOrder) -> String {
        let slow = [io::ErrorKind::TimedOut, io::ErrorKind::WouldBlock];
        match self {
            Failure::Socket(error) if slow.contains(&error.kind()) => "the server is too slow".to_owned(),
            Failure::Socket(error) => error.to_string(),
            Failure::Answer(why) => why.clone(),
            Failure::Tls(Error::InvalidCertificate(error)) => certificate_words(error, order),
            Failure::Tls(error) => format!("TLS: {error}"),
        }
    }
}

fn certificate_words(error: &CertificateError, order: &EstablishmentOrder) -> String {
    let seconds = (order.now.since_origin().as_nanos() / 1_000_000_000) as i64;
    let now = ffclock_nts::CertificateTime { unix_seconds: seconds };
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate has expired, if it is now {now}: {error}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate is not valid yet, if it is now {now}; see nts_bootstrap: {error}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is for another name than {}: {error}", order.host)
        }
        CertificateError::UnknownIssuer => {
            let trusted = if order.authorities.is_some() { "that nts_ca names" } else { "that the system trusts" };
            format!("the certificate comes from none of the authorities {trusted}")
        }
        other => format!("the certificate is refused: {other}"),
    }
}

fn remaining(deadline: Moment<Mono>) -> io::Result<Duration> {
    let left = u64::try_from((deadline - mono_now()).as_nanos()).unwrap_or_default();
    if left == 0 { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Duration::from_nanos(left)) }
}

/// Sends the request inside TLS and reads the answer.
fn converse(tls: &mut ClientConnection, socket: &mut TcpStream, deadline: Moment<Mono>) -> Result<Granted, Failure> {
    tls.writer().write_all(&client_request())?;
    let mut reader = MessageReader::default();
    loop {
        socket.set_write_timeout(Some(remaining(deadline)?))?;
        while tls.wants_write() {
            tls.write_tls(socket)?;
        }
        socket.set_read_timeout(Some(remaining(deadline)?))?;
        let has_ended = tls.read_tls(socket)? == 0;
        if let Err(error) = tls.process_new_packets() {
            // The server learns the reason; it does not matter whether it does.
            let _ = tls.write_tls(socket);
            return Err(Failure::Tls(error));
        }
        if !tls.is_handshaking() && tls.alpn_protocol() != Some(ALPN) {
            return Err(Failure::Answer("the server does not establish keys for NTS on this port".to_owned()));
        }
        if let Some(message) = take_plain(tls, &mut reader)? {
            return Granted::read(&message).map_err(|fault| Failure::Answer(fault.to_string()));
        }
        if has_ended {
            return Err(Failure::Answer("the server ended the connection without an answer".to_owned()));
        }
    }
}

/// Takes over what TLS has; returns the message once it is whole.
fn take_plain(tls: &mut ClientConnection, reader: &mut MessageReader) -> Result<Option<Vec<u8>>, Failure> {
    let mut buffer = [0; 2048];
    loop {
        let length = match tls.reader().read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match reader.take(buffer.get(..length).unwrap_or_default()) {
            Arrived::More => {}
            Arrived::Whole => return Ok(Some(reader.octets().to_vec())),
            Arrived::TooLong => return Err(Failure::Answer("the answer is too long".to_owned())),
        }
    }
}

/// The keys that follow from a TLS connection (RFC 8915, section 5.1).
fn session_keys(tls: &ClientConnection, granted: &Granted) -> Result<SessionKeys, String> {
    let key = |direction| exported(tls, granted.aead, &exporter_context(granted.exported_as, direction));
    let keys = key(KeyDirection::ClientToServer).zip(key(KeyDirection::ServerToClient));
    let (client_to_server, server_to_client) = keys.ok_or("TLS gives no keys")?;
    Ok(SessionKeys { client_to_server, server_to_client })
}

fn exported(tls: &ClientConnection, aead: Aead, context: &[u8]) -> Option<Key> {
    let room = Zeroizing::new(vec![0; aead.key_bytes()]);
    let octets = Zeroizing::new(tls.export_keying_material(room.to_vec(), EXPORTER_LABEL, Some(context)).ok()?);
    Key::new(aead, &octets)
}
#[cfg(test)]
mod tests;
