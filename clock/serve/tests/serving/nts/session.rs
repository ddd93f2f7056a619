//! A client of NTS that does what its caller wants, honest or not.

use crate::common::{Place, Serving};
use ffclock_nts::{Aead, EXPORTER_LABEL, Key, KeyDirection, SessionKeys, TAG_BYTES, exporter_context};
use ffclock_wire::{
    EXTENSION_HEAD_BYTES, ExtensionFields, HEADER_BYTES, NtpTimestamp, Packet, Version, begin_extension,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, crypto};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

const UNIQUE_IDENTIFIER: u16 = 0x0104;
const COOKIE: u16 = 0x0204;
const PLACEHOLDER: u16 = 0x0304;
const AUTHENTICATOR: u16 = 0x0404;

/// Writes a fresh certificate for this host and its key.
pub fn certify(place: &Place) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = place.directory.join("key.pem");
    std::fs::write(place.directory.join("chain.pem"), made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A configuration with NTS and these lines more in its table.
pub fn with_nts(place: &Place, more: &str) -> String {
    let here = place.directory.display();
    format!(
        "rate_interval = \"0 s\"\n[nts]\ncertificate = \"{here}/chain.pem\"\nkey = \"{here}/key.pem\"\ncookies = \"{here}/cookies\"\n\
         listen = \"127.0.0.1:0\"\n{more}"
    )
}

pub fn establishing_at(serving: &Serving) -> SocketAddr {
    serving.status()["nts"]["listen"][0].as_str().unwrap().parse().unwrap()
}

/// A client's side of a session.
pub struct Session {
    keys: SessionKeys,
    pub cookies: Vec<Vec<u8>>,
    pub socket: UdpSocket,
    number: u64,
}

/// Records: the type of each without its critical bit, and its body.
pub type Records = Vec<(u16, Vec<u8>)>;

/// The records of an answer: the type without its critical bit, and the body.
fn records(mut octets: &[u8]) -> Records {
    let mut found = Vec::new();
    while let Some((&[a, b, c, d], rest)) = octets.split_first_chunk() {
        let (body, after) = rest.split_at(usize::from(u16::from_be_bytes([c, d])));
        found.push((u16::from_be_bytes([a & 0x7f, b]), body.to_vec()));
        octets = after;
    }
    found
}

/// Asks for these algorithms over TLS.
pub fn ask(place: &Place, at: SocketAddr, algorithms: &[u16]) -> std::io::Result<(ClientConnection, Records)> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(place.directory.join("chain.pem")).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![ffclock_nts::ALPN.to_vec()];
    let mut tls = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let body: Vec<u8> = algorithms.iter().flat_map(|id| id.to_be_bytes()).collect();
    let mut request = vec![0x80, 1, 0, 2, 0, 0, 0x80, 4, 0, body.len() as u8];
    request.extend(body);
    request.extend([0x04, 0, 0, 0, 0x80, 0, 0, 0]);
    let mut answer = Vec::new();
    let mut both = rustls::Stream::new(&mut tls, &mut stream);
    both.write_all(&request)?;
    both.read_to_end(&mut answer)?;
    Ok((tls, records(&answer)))
}

impl Session {
    pub fn establish(place: &Place, serving: &Serving, aead: Aead) -> Self {
        let (tls, records) = ask(place, establishing_at(serving), &[aead.id()]).unwrap();
        let key = |direction| {
            let mut octets = [0; 32];
            let room = &mut octets[..aead.key_bytes()];
            let exported = tls.export_keying_material(room, EXPORTER_LABEL, Some(&exporter_context(aead, direction)));
            Key::new(aead, exported.unwrap()).unwrap()
        };
        let keys = SessionKeys {
            client_to_server: key(KeyDirection::ClientToServer),
            server_to_client: key(KeyDirection::ServerToClient),
        };
        let port = records.iter().find(|(kind, _)| *kind == 7).map(|(_, body)| u16::from_be_bytes([body[0], body[1]]));
        assert_eq!(port, Some(serving.address.port()), "the server says on which port it answers NTP");
        let cookies: Vec<_> = records.into_iter().filter(|(kind, _)| *kind == 5).map(|(_, body)| body).collect();
        assert_eq!(cookies.len(), 8);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Session { keys, cookies, socket, number: 0 }
    }

    /// A request with this cookie, for `1 + placeholders` new ones.
    pub fn request(&mut self, cookie: &[u8], placeholders: usize) -> Vec<u8> {
        self.number += 1;
        let mut request = Packet::request(Version::V4, NtpTimestamp::from_raw(self.number)).encode().to_vec();
        put(&mut request, UNIQUE_IDENTIFIER, &self.identifier());
        put(&mut request, COOKIE, cookie);
        for _ in 0..placeholders {
            put(&mut request, PLACEHOLDER, &vec![0; cookie.len()]);
        }
        let nonce = [self.number as u8; 16];
        let nonce = &nonce[..self.keys.aead().nonce_bytes()];
        let mut sealed = [0; TAG_BYTES];
        self.keys.client_to_server.seal(nonce, &request, &mut sealed).unwrap();
        put(&mut request, AUTHENTICATOR, &[&[0, nonce.len() as u8, 0, 16], nonce, &sealed].concat());
        request
    }

    fn identifier(&self) -> [u8; 32] {
        [self.number as u8; 32]
    }

    pub fn send(&self, request: &[u8]) -> Vec<u8> {
        let mut reply = [0; 2048];
        self.socket.send(request).unwrap();
        let length = self.socket.recv(&mut reply).expect("an answer");
        assert!(length <= request.len(), "{length} octets for {}", request.len());
        reply[..length].to_vec()
    }

    /// Opens a reply and takes its cookies; how many, or `None` if it is the kiss NTSN with our identifier.
    pub fn open(&mut self, reply: &[u8]) -> Option<usize> {
        let fields: Vec<_> = ExtensionFields::after(reply, HEADER_BYTES).map(Result::unwrap).collect();
        assert_eq!(fields.first().map(|field| field.body), Some(&self.identifier()[..]), "{reply:?}");
        if reply[1] == 0 && reply[12..16] == *b"NTSN" {
            assert_eq!(fields.len(), 1);
            return None;
        }
        let (proof, aead) = (fields[1], self.keys.aead());
        assert_eq!(proof.kind, AUTHENTICATOR);
        let (nonce, sealed) = proof.body[4..].split_at(aead.nonce_bytes());
        let mut sealed = sealed[..usize::from(u16::from_be_bytes([proof.body[2], proof.body[3]]))].to_vec();
        self.keys.server_to_client.open(nonce, &reply[..proof.at], &mut sealed).expect("an authentic reply");
        let text = &sealed[aead.text_in(sealed.len())];
        let new: Vec<_> = ExtensionFields::after(text, 0).map(|field| field.unwrap().body.to_vec()).collect();
        assert!(reply[1] > 0 && reply[1] < 16, "it claims a time");
        self.cookies.extend(new.iter().cloned());
        Some(new.len())
    }

    /// One honest exchange, with the oldest cookie; how many new ones came.
    pub fn exchange(&mut self) -> Option<usize> {
        let cookie = self.cookies.remove(0);
        let missing = 8 - self.cookies.len() - 1;
        let request = self.request(&cookie, missing);
        let reply = self.send(&request);
        self.open(&reply)
    }
}

fn put(packet: &mut Vec<u8>, kind: u16, body: &[u8]) {
    let at = packet.len();
    packet.resize(at + EXTENSION_HEAD_BYTES + body.len(), 0);
    begin_extension(&mut packet[at..], kind, body.len()).unwrap().copy_from_slice(body);
}
