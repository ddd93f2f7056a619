use super::*;
use crate::config::AddressFamily;
use ffclock_nts::establishment::{Grant, Request, response};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// A server that establishes keys once, with a certificate for 2026.
struct Server {
    port: u16,
    authority: PathBuf,
    thread: Option<JoinHandle<()>>,
}

/// What it answers: the octets inside TLS to a request.
type Answer = fn(&[u8]) -> Vec<u8>;

fn grant(request: &[u8]) -> Vec<u8> {
    let cookies = vec![vec![9; 64]; 8];
    let grant = Grant { cookies: &cookies, server: None, port: Some(1123) };
    response(&Request::read(request).unwrap(), &grant)
}

impl Server {
    fn start(case: &str, (name, alpn): (&str, &[u8]), answer: Answer) -> Self {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        (parameters.not_before, parameters.not_after) = (date_time_ymd(2026, 1, 1), date_time_ymd(2027, 1, 1));
        parameters.distinguished_name.push(DnType::CommonName, case);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let authority = std::env::temp_dir().join(format!("ffclock-establish-{case}-{}", std::process::id()));
        std::fs::write(&authority, certificate.pem()).unwrap();
        let provider = Arc::new(crypto::ring::default_provider());
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        config.alpn_protocols = vec![alpn.to_vec()];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
            let mut stream = rustls::Stream::new(&mut tls, &mut socket);
            let mut request = [0; 200];
            // A client that refuses the certificate ends the connection.
            if let Ok(length) = stream.read(&mut request) {
                let _ = stream.write_all(&answer(&request[..length]));
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Server { port, authority, thread: Some(thread) }
    }

    fn order(&self, host: &str, unix_seconds: i64) -> EstablishmentOrder {
        EstablishmentOrder {
            name: "the server".to_owned(),
            host: host.to_owned(),
            port: self.port,
            ntp_port: 123,
            family: AddressFamily::Any,
            silent: None,
            authorities: Some(self.authority.clone()),
            now: Moment::from_origin(Span::from_secs(unix_seconds)),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.authority);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

const JUNE_2026: i64 = 1_780_272_000;
const JUNE_2025: i64 = JUNE_2026 - 365 * 86_400;
const JUNE_2027: i64 = JUNE_2026 + 365 * 86_400;
const HERE: (&str, &[u8]) = ("127.0.0.1", ALPN);

fn failure(case: &str, (host, unix_seconds): (&str, i64), served: (&str, &[u8]), answer: Answer) -> String {
    let server = Server::start(case, served, answer);
    establish(&server.order(host, unix_seconds)).unwrap_err()
}

#[test]
fn keys_are_established_for_the_address_and_port_that_the_server_names() {
    let server = Server::start("good", HERE, grant);
    let established = establish(&server.order("127.0.0.1", JUNE_2026)).unwrap();
    assert_eq!(established.address, "127.0.0.1:1123".parse().unwrap());
    assert_eq!(established.session.cookies(), 8);
    assert_eq!(established.session.aead(), Aead::Aes128GcmSiv);
    assert_eq!(established.certificate_end.unwrap().to_string(), "2027-01-01T00:00:00Z");
}

/// The host of NTP that a server names may have addresses of both families, and some that do not answer.
#[test]
fn addresses_of_the_wanted_family_are_used_and_a_silent_one_last() {
    let [one, two, six] = ["192.0.2.1:123", "192.0.2.2:123", "[2001:db8::1]:123"].map(|text| text.parse().unwrap());
    let tried = |family, silent| {
        let order = EstablishmentOrder { family, silent, ..order("/dev/null") };
        usable([six, one, two].into_iter(), &order)
    };
    assert_eq!(tried(AddressFamily::Any, None), [six, one, two]);
    assert_eq!(tried(AddressFamily::Ipv4, None), [one, two]);
    assert_eq!(tried(AddressFamily::Ipv4, Some(one)), [two, one]);
    assert_eq!(tried(AddressFamily::Ipv6, Some(six)), [six], "the only one");
    let ipv6 = EstablishmentOrder { family: AddressFamily::Ipv6, ..order("/dev/null") };
    assert!(look_up(("127.0.0.1", 123), &ipv6).unwrap_err().contains("none of family = \"ipv6\""));
}

/// A reload may change whom to trust while keys are established.
#[test]
fn keys_that_another_configuration_ordered_are_not_used() {
    let of = |text: &str| crate::config::Config::parse(&format!("[[server]]\n{text}\n")).unwrap().servers.remove(0);
    let before = of("address = \"ntp.example\"\nnts = true");
    let now = Moment::from_origin(Span::from_secs(JUNE_2026));
    let silent = Some("192.0.2.1:123".parse().unwrap());
    let order = EstablishmentOrder::of(&before.name(), &before, now).beside(silent);
    assert!(order.is_of(&before));
    for other in ["nts_ca = \"/etc/other.pem\"", "nts_port = 4461", "family = \"ipv6\""] {
        assert!(!order.is_of(&of(&format!("address = \"ntp.example\"\nnts = true\n{other}"))), "{other}");
    }
}

#[test]
fn each_bad_certificate_is_refused_with_its_reason() {
    let expired = failure("expired", ("127.0.0.1", JUNE_2027), HERE, grant);
    assert!(expired.starts_with("the certificate has expired, if it is now 2027-06-01T00:00:00Z"), "{expired}");
    let early = failure("early", ("127.0.0.1", JUNE_2025), HERE, grant);
    assert!(early.contains("not valid yet") && early.contains("nts_bootstrap"), "{early}");
    let name = failure("name", ("127.0.0.1", JUNE_2026), ("ntp.example", ALPN), grant);
    assert!(name.starts_with("the certificate is for another name than 127.0.0.1"), "{name}");
    let stranger = Server::start("stranger", HERE, grant);
    let server = Server::start("issuer", HERE, grant);
    let order =
        EstablishmentOrder { authorities: Some(stranger.authority.clone()), ..server.order("127.0.0.1", JUNE_2026) };
    let issuer = establish(&order).unwrap_err();
    // Its thread waits for a connection.
    drop(TcpStream::connect(("127.0.0.1", stranger.port)).unwrap());
    assert!(issuer.contains("none of the authorities that nts_ca names"), "{issuer}");
}

#[test]
fn answers_that_establish_nothing_are_refused_with_their_reason() {
    let refused = failure("error", ("127.0.0.1", JUNE_2026), HERE, |_| vec![0x80, 2, 0, 2, 0, 1, 0x80, 0, 0, 0]);
    assert_eq!(refused, "the server calls our request a bad one");
    let cut = failure("cut", ("127.0.0.1", JUNE_2026), HERE, |request| grant(request)[..40].to_vec());
    assert_eq!(cut, "the server ended the connection without an answer");
    let long = failure("long", ("127.0.0.1", JUNE_2026), HERE, |_| [0, 5, 0x3f, 0xff].repeat(5000));
    assert_eq!(long, "the answer is too long");
    let other = failure("alpn", ("127.0.0.1", JUNE_2026), ("127.0.0.1", b"http/1.1"), grant);
    assert!(other.starts_with("TLS: ") && other.contains("ApplicationProtocol"), "{other}");
}

fn order(path: &str) -> EstablishmentOrder {
    EstablishmentOrder {
        name: "a".to_owned(),
        host: "127.0.0.1".to_owned(),
        port: 1,
        ntp_port: 123,
        family: AddressFamily::Any,
        silent: None,
        authorities: Some(PathBuf::from(path)),
        now: Moment::from_origin(Span::from_secs(JUNE_2026)),
    }
}

#[test]
fn files_without_certificates_are_named() {
    assert!(establish(&order("/nonexistent")).unwrap_err().starts_with("nts_ca /nonexistent"));
    assert!(establish(&order("/dev/null")).unwrap_err().contains("no certificate in PEM"));
}
