//! The server of establishments with clients of every kind, on loopback.

use super::connection::{Dialogue, DialogueStep};
use super::identity::tests::made_for;
use super::table::Doorkeeper;
use super::*;
use ffclock_sys::mono_now;
use ffclock_units::Span;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection, crypto};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A dialogue of one line: the server repeats it.
#[derive(Default)]
struct Parrot(Vec<u8>);

impl Dialogue for Parrot {
    fn take(&mut self, octets: &[u8], _: &ServerConnection) -> DialogueStep {
        self.0.extend_from_slice(octets);
        let whole = self.0.ends_with(b"\n");
        if whole { DialogueStep::Answer(std::mem::take(&mut self.0), Ending::Established) } else { DialogueStep::More }
    }
}

/// Lets everyone in.
struct OpenDoor;

impl Doorkeeper for OpenDoor {
    type Dialogue = Parrot;
    fn let_in(&mut self, _: std::net::IpAddr) -> Result<Parrot, Ending> {
        Ok(Parrot::default())
    }
}

const LIMITS: EstablishmentLimits =
    EstablishmentLimits { connections: 200, per_address: 20, patience: Span::from_secs(20) };

struct Bench {
    server: EstablishmentServer,
    address: SocketAddr,
    files: IdentityFiles,
    trusted: CertificateDer<'static>,
}

impl Bench {
    fn with(name: &str, limits: EstablishmentLimits) -> Self {
        let (files, trusted) = made_for(name);
        let listeners = listen(&["127.0.0.1:0".parse().unwrap()]).unwrap();
        let address = listeners[0].local_addr().unwrap();
        let plan = EstablishmentPlan { threads: NonZeroUsize::new(2).unwrap(), limits };
        let server = EstablishmentServer::start_with(&listeners, plan, files.read().unwrap().tls, || OpenDoor).unwrap();
        Bench { server, address, files, trusted }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Connects from an address of the loopback network that stands for another host.
    fn connect_as(&self, host: u32) -> TcpStream {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let from = std::net::Ipv4Addr::from(0x7f01_0000 + host);
        let made = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&made, &SocketAddr::from((from, 0))).unwrap();
        connect(&made, &self.address).unwrap();
        let stream = TcpStream::from(made);
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    fn ask(&self, stream: TcpStream, line: &[u8]) -> io::Result<Vec<u8>> {
        ask_as(client(&self.trusted, &[b"ntske/1"]), stream, line)
    }

    fn is_served(&self) {
        assert_eq!(self.ask(self.connect(), b"hello\n").unwrap(), b"hello\n");
    }

    /// Waits until as many connections have ended so.
    fn counted(&self, ending: Ending, least: u64) {
        let deadline = mono_now() + Span::from_secs(20);
        while self.server.counts().of(ending) < least {
            assert!(mono_now() < deadline, "{} of {least} {ending:?}", self.server.counts().of(ending));
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.files.key.parent().unwrap());
    }
}

fn client(trusted: &CertificateDer<'static>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

/// Sends `line` and reads until the server ends the dialogue.
fn ask_as(config: Arc<ClientConfig>, mut stream: TcpStream, line: &[u8]) -> io::Result<Vec<u8>> {
    let mut tls = ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let mut tls = rustls::Stream::new(&mut tls, &mut stream);
    tls.write_all(line)?;
    let mut answer = Vec::new();
    tls.read_to_end(&mut answer)?;
    Ok(answer)
}

#[test]
fn an_honest_client_is_answered_and_counted_once() {
    let bench = Bench::with("honest", LIMITS);
    bench.is_served();
    bench.is_served();
    bench.counted(Ending::Established, 2);
    let others = Ending::ALL.into_iter().filter(|ending| *ending != Ending::Established);
    assert!(others.map(|ending| bench.server.counts().of(ending)).all(|count| count == 0));
}

/// RFC 8915, section 4: both sides agree on `ntske/1`, or there is no dialogue.
#[test]
fn a_client_of_another_protocol_is_not_answered() {
    let bench = Bench::with("alpn", LIMITS);
    for (count, protocols) in [(1, &[][..]), (2, &[&b"http/1.1"[..]][..])] {
        let answer = ask_as(client(&bench.trusted, protocols), bench.connect(), b"hello\n");
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.is_empty()));
        bench.counted(Ending::OtherProtocol, count);
    }
    bench.is_served();
}

/// A hello of TLS 1.2 (RFC 5246, section 7.4.1.2) with one suite that it and 1.3 could agree on, without the extension
/// by which a client says that it can 1.3.
#[test]
fn a_downgrade_to_an_older_tls_is_refused() {
    let bench = Bench::with("downgrade", LIMITS);
    let mut hello = vec![0x03, 0x03];
    hello.extend([7; 32]);
    hello.extend([0, 0, 4, 0xc0, 0x2b, 0x13, 0x01, 1, 0, 0, 0]);
    let handshake = [&[1, 0, 0, hello.len() as u8][..], &hello].concat();
    let mut stream = bench.connect();
    stream.write_all(&[&[0x16, 3, 1, 0, handshake.len() as u8][..], &handshake].concat()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.first(), Some(&0x15), "an alert: {answer:?}");
    bench.counted(Ending::Incompatible, 1);
    bench.is_served();
}

#[test]
fn noise_is_a_fault_of_the_client_alone() {
    let bench = Bench::with("noise", LIMITS);
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4000], &[0x16, 3, 1, 0xff, 0xff, 1, 2, 3]] {
        let mut stream = bench.connect();
        stream.write_all(noise).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
    }
    let counts = bench.server.counts();
    let ended = || counts.of(Ending::TlsFault) + counts.of(Ending::Left);
    let deadline = mono_now() + Span::from_secs(10);
    while ended() < 3 && mono_now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(ended(), 3);
    bench.is_served();
}

/// Neither a request that never ends nor a hello that never ends takes more memory than is stated.
#[test]
fn what_is_too_long_is_ended() {
    let bench = Bench::with("long", LIMITS);
    let answer = bench.ask(bench.connect(), &[b'x'; 100_000]);
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.is_empty()));
    bench.counted(Ending::TooLong, 1);
    bench.is_served();
}

/// One octet at a time: the whole establishment has one deadline, which no octet puts off.
#[test]
fn a_slow_client_is_ended_in_time_and_delays_no_other() {
    let patience = Span::from_secs(1);
    let bench = Bench::with("slow", EstablishmentLimits { patience, ..LIMITS });
    let begun = mono_now();
    let mut slow = bench.connect();
    let octets = [0x16, 3, 1, 1, 0].into_iter().chain(std::iter::repeat(0));
    for octet in octets {
        if slow.write_all(&[octet]).is_err() {
            break;
        }
        bench.is_served();
        thread::sleep(Duration::from_millis(20));
        assert!(mono_now() < begun + Span::from_secs(15), "it is never ended");
    }
    assert!(mono_now() >= begun + patience);
    assert_eq!(bench.server.counts().of(Ending::Late), 1);
}

#[test]
fn one_address_takes_its_share_of_the_places_alone() {
    let bench = Bench::with("share", EstablishmentLimits { per_address: 3, ..LIMITS });
    // Either of two threads may have accepted them.
    let silent: Vec<_> = (0..20).map(|_| bench.connect_as(1)).collect();
    bench.counted(Ending::AddressFull, 14);
    assert_eq!(bench.server.counts().of(Ending::Displaced), 0);
    bench.is_served();
    drop(silent);
}

/// A thousand connections from a thousand addresses that never go on, five times as many as there are places.
#[test]
fn a_flood_of_half_open_establishments_stops_no_honest_client() {
    let bench = Bench::with("flood", EstablishmentLimits { connections: 100, ..LIMITS });
    let mut silent = Vec::new();
    for host in 0..1000 {
        let mut stream = bench.connect_as(host);
        if host % 2 == 0 {
            let _ = stream.write_all(&[0x16, 3, 1, 2, 0]);
        }
        silent.push(stream);
        if host % 100 == 0 {
            bench.is_served();
        }
    }
    bench.is_served();
    bench.counted(Ending::Displaced, 800);
    bench.counted(Ending::Established, 11);
    assert_eq!(bench.server.counts().of(Ending::Late), 0);
}

/// Ten thousand clients that never go on, and places for eight thousand: the last ones take the place of the oldest,
/// and honest ones get their keys meanwhile.
#[test]
fn ten_thousand_half_open_establishments_stop_no_honest_client() {
    const HALF_OPEN: u32 = 10_000;
    // Both ends of each connection are files of this process.
    let files = u64::from(HALF_OPEN) + 9000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let at_least = |limit: Option<u64>| limit.map(|limit| limit.max(files));
    let raised = rustix::process::Rlimit { current: at_least(limit.current), maximum: at_least(limit.maximum) };
    if rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).is_err() {
        println!("SKIP: this user may not open {files} files, so ten thousand establishments were left out");
        return;
    }
    let limits = EstablishmentLimits { connections: 4000, patience: Span::from_secs(300), ..LIMITS };
    let bench = Bench::with("ten-thousand", limits);
    let mut silent = Vec::new();
    let mut longest = Span::ZERO;
    for host in 0..HALF_OPEN {
        let mut stream = bench.connect_as(host);
        let _ = stream.write_all(&[0x16, 3, 1, 2, 0]);
        silent.push(stream);
        if host % 1000 == 999 {
            let begun = mono_now();
            bench.is_served();
            longest = longest.max(mono_now() - begun);
        }
    }
    bench.counted(Ending::Established, 10);
    bench.counted(Ending::Displaced, 2000);
    assert_eq!(bench.server.counts().of(Ending::Late), 0);
    assert!(longest < Span::from_secs(10), "an honest client waited {longest}");
}

#[test]
fn a_new_certificate_is_shown_to_the_next_client_and_those_inside_end_well() {
    let bench = Bench::with("renewed", LIMITS);
    let mut inside = bench.connect();
    let mut tls =
        ClientConnection::new(client(&bench.trusted, &[b"ntske/1"]), "localhost".try_into().unwrap()).unwrap();
    let mut tls = rustls::Stream::new(&mut tls, &mut inside);
    tls.write_all(b"half ").unwrap();
    tls.flush().unwrap();

    let (files, trusted) = made_for("renewed-after");
    bench.server.show(files.read().unwrap().tls);
    let asked = ask_as(client(&trusted, &[b"ntske/1"]), bench.connect(), b"hello\n");
    assert_eq!(asked.unwrap(), b"hello\n");
    let error = bench.ask(bench.connect(), b"hello\n").unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");

    tls.write_all(b"and half\n").unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "half and half\n");
    std::fs::remove_dir_all(files.key.parent().unwrap()).unwrap();
}

#[test]
fn the_threads_end_with_the_server() {
    let bench = Bench::with("end", LIMITS);
    let mut inside = bench.connect();
    bench.is_served();
    let address = bench.address;
    drop(bench);
    let read = inside.read(&mut [0; 16]);
    assert!(
        read.as_ref().is_ok_and(|length| *length == 0) || read.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset)
    );
    assert!(TcpStream::connect(address).is_err());
}
