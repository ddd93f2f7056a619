//! ffclockd as a client of chronyd: with NTS, through a restart of the server, with a certificate that is not trusted,
//! and with symmetric keys. On loopback; chronyd does not touch the system clock.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_control::protocol::{AuthenticationKind, BeliefReport, SourceState};
use ffclock_counter::CounterId;
use ffclock_units::{Moment, Span};
use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const KEYS: &str = "7 AES128 HEX:2b7e151628aed2a6abf7158809cf4f3c\n8 SHA256 HEX:000102030405060708090a0b0c0d0e0f\n";

fn chronyd() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let program = root.join("tools/peers/chronyd");
    let version = Command::new(&program).arg("--version").output().ok()?;
    version.status.success().then_some(program)
}

/// A certificate for this host, signed by itself, and its key.
fn make_certificate(directory: &Path, name: &str) {
    let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    parameters.distinguished_name.push(DnType::CommonName, name);
    sign(directory, name, parameters);
}

fn sign(directory: &Path, name: &str, parameters: CertificateParams) {
    let key = KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(directory.join(format!("{name}.pem")), certificate.pem()).expect("a file");
    write_secret(&directory.join(format!("{name}.key")), &key.serialize_pem());
}

fn write_secret(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its owner's alone");
}

struct Chronyd(Child);

impl Chronyd {
    fn start(program: &Path, directory: &Path, (port, nts_port): (u16, u16)) -> Self {
        let place = directory.display();
        let file = directory.join("chrony.conf");
        let text = format!(
            "local stratum 1\nallow 127.0.0.1\nbindaddress 127.0.0.1\nport {port}\ncmdport 0\n\
             pidfile {place}/chronyd.pid\nbindcmdaddress {place}/chronyd.sock\nkeyfile {place}/keys\n\
             ntsport {nts_port}\nntsservercert {place}/served.pem\nntsserverkey {place}/served.key\n"
        );
        std::fs::write(&file, text).expect("a configuration");
        let log = std::fs::File::create(directory.join("chronyd.log")).expect("a log");
        let child = Command::new(program)
            .args(["-x", "-d", "-u", "root", "-f"])
            .arg(file)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("chronyd starts");
        Chronyd(child)
    }
}

impl Drop for Chronyd {
    fn drop(&mut self) {
        // It ends its own helpers when it is asked to end.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn free_ports() -> (u16, u16) {
    let udp = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let tcp = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    (udp.port(), tcp.port())
}

/// A server in `directory`, or the reason why there is none.
fn serve(scratch: &Scratch, ports: (u16, u16)) -> Option<(PathBuf, Chronyd)> {
    let Some(program) = chronyd() else {
        println!("SKIP: chronyd is not unpacked (make setup)");
        return None;
    };
    let directory = scratch.path().join("chrony");
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o750)).expect("closed to others");
    make_certificate(&directory, "served");
    make_certificate(&directory, "stranger");
    write_secret(&directory.join("keys"), KEYS);
    let server = Chronyd::start(&program, &directory, ports);
    Some((directory, server))
}

/// The server, asked at a port that it must correct.
fn nts_section(nts_port: u16, authority: &Path) -> String {
    let authority = authority.display();
    format!(
        "[[server]]\naddress = \"127.0.0.1\"\nport = 9\npoll = \"125 ms\"\nnts = true\nnts_port = {nts_port}\nnts_ca = \"{authority}\"\n"
    )
}

#[test]
fn keys_are_established_and_established_again_after_a_restart_of_the_server() {
    let scratch = Scratch::new("nts");
    let ports = free_ports();
    let Some((directory, server)) = serve(&scratch, ports) else { return };
    let plain = format!("[[server]]\naddress = \"localhost\"\nport = {}\npoll = \"125 ms\"\n", ports.0);
    let config =
        scratch.daemon_section("require = \"nts\"") + &nts_section(ports.1, &directory.join("served.pem")) + &plain;
    let daemon = Daemon::start(&scratch, &config);
    let status = daemon.wait_for("exchanges under NTS", |status| status.sources[0].exchanges >= 3);
    let source = &status.sources[0];
    assert_eq!(source.address, Some(format!("127.0.0.1:{}", ports.0)), "the port that the server named");
    let authentication = &source.authentication;
    assert_eq!((authentication.kind, authentication.established), (AuthenticationKind::Nts, Some(1)));
    assert!(authentication.cookies.is_some_and(|cookies| cookies >= 7), "{authentication:?}");
    assert!(authentication.aead.is_some_and(|aead| [15, 30].contains(&aead)), "{authentication:?}");
    assert!(authentication.certificate_end.as_ref().is_some_and(|end| end.ends_with('Z')), "{authentication:?}");
    let asked = daemon.wait_for("the plain server answers", |status| status.sources[1].exchanges > 0);
    assert_eq!(asked.sources[1].belief, BeliefReport::NoSelect, "a server without NTS has no vote");
    assert_eq!(asked.sources[1].authentication.kind, AuthenticationKind::None);
    // The new one has other keys, and cannot open the old cookies.
    drop(server);
    let program = chronyd().expect("it was there before");
    let _server = Chronyd::start(&program, &directory, ports);
    let again = daemon.wait_for("keys are established again", |status| {
        status.sources[0].authentication.established >= Some(2) && status.sources[0].state == SourceState::Reachable
    });
    let before = again.sources[0].exchanges;
    daemon.wait_for("exchanges with the new keys", |status| status.sources[0].exchanges > before);
}

#[test]
fn a_certificate_that_is_not_trusted_gives_no_time() {
    let scratch = Scratch::new("nts-stranger");
    let ports = free_ports();
    let Some((directory, _server)) = serve(&scratch, ports) else { return };
    let config = scratch.daemon_section("") + &nts_section(ports.1, &directory.join("stranger.pem"));
    let daemon = Daemon::start(&scratch, &config);
    let refused = daemon.wait_for("the certificate is refused", |status| {
        status.events.iter().any(|event| event.text.contains("none of the authorities that nts_ca names"))
    });
    assert_eq!((refused.sources[0].sent, refused.sources[0].exchanges), (0, 0));
    assert_eq!(refused.sources[0].authentication.established, Some(0));
    assert_eq!(refused.clock, None);
}

/// The middle of 2035: a certificate that is valid only then, and plain servers that say it is then.
const LATER_S: i64 = 2_065_478_400;

#[test]
fn a_quorum_of_plain_servers_judges_certificates_instead_of_the_system_clock() {
    let scratch = Scratch::new("nts-quorum");
    let ports = free_ports();
    let Some((directory, server)) = serve(&scratch, ports) else { return };
    let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    (parameters.not_before, parameters.not_after) = (date_time_ymd(2035, 6, 1), date_time_ymd(2035, 7, 1));
    sign(&directory, "served", parameters);
    drop(server);
    let _server = Chronyd::start(&chronyd().expect("it was there before"), &directory, ports);
    let protected = nts_section(ports.1, &directory.join("served.pem"));
    let refusing = Daemon::start(&scratch, &(scratch.daemon_section("") + &protected));
    refusing.wait_for("the system clock refuses the certificate", |status| {
        status.events.iter().any(|event| event.text.contains("the certificate is not valid yet"))
    });
    drop(refusing);
    let later = Truth::beginning_at(CounterId::MonotonicRaw, Moment::from_origin(Span::from_secs(LATER_S)));
    let plain = ["127.0.0.2:0", "127.0.0.3:0"].map(|listen| TestServer::start(listen, later));
    let sections = [&plain[0], &plain[1]].map(|server| server_section(server.address, "")).concat();
    plain.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = true));
    let top = scratch.daemon_section("nts_bootstrap = \"quorum\"");
    let daemon = Daemon::start(&scratch, &(top + &sections + &protected));
    daemon.wait_for("there is no quorum yet", |status| {
        status.events.iter().any(|event| event.text.contains("no quorum of servers without NTS gives a time yet"))
    });
    plain.iter().for_each(|server| server.behave(|behaviour| behaviour.silent = false));
    let status = daemon.wait_for("keys by the quorum's time", |status| {
        status.sources[2].authentication.established == Some(1) && status.sources[2].exchanges > 0
    });
    let authentication = &status.sources[2].authentication;
    assert_eq!(authentication.certificate_end.as_deref(), Some("2035-07-01T00:00:00Z"));
    assert_eq!(authentication.certificate_end_unix_s, Some(LATER_S + 16 * 86_400));
    assert_ne!(status.sources[2].belief, BeliefReport::Truechimer, "its time is years off: {status:?}");
}

#[test]
fn symmetric_keys_of_chrony_are_understood_and_unknown_ones_ask_nothing() {
    let scratch = Scratch::new("keys");
    let ports = free_ports();
    let Some((directory, _server)) = serve(&scratch, ports) else { return };
    let wrong = directory.join("other-keys");
    write_secret(&wrong, &KEYS.replace("2b7e", "2b7f"));
    let server = |name: &str, key| {
        format!("[[server]]\naddress = \"{name}\"\nport = {}\npoll = \"125 ms\"\nkey = {key}\n", ports.0)
    };
    let keys = |file: &Path| format!("keys = \"{}\"\nrequire = \"authenticated\"", file.display());
    let config =
        scratch.daemon_section(&keys(&directory.join("keys"))) + &server("127.0.0.1", 7) + &server("localhost", 8);
    let daemon = Daemon::start(&scratch, &config);
    let status = daemon.wait_for("exchanges with both keys", |status| status.sources.iter().all(|s| s.exchanges >= 3));
    let numbers: Vec<_> = status.sources.iter().map(|source| source.authentication.key).collect();
    assert_eq!(numbers, [Some(7), Some(8)]);
    drop(daemon);
    let config = scratch.daemon_section(&keys(&wrong)) + &server("127.0.0.1", 7) + &server("localhost", 99);
    let daemon = Daemon::start(&scratch, &config);
    let status = daemon.wait_for("requests with a wrong key", |status| status.sources[0].lost >= 1);
    assert_eq!(status.sources[0].exchanges, 0, "nothing is believed without the right key");
    assert_eq!((status.sources[1].exchanges, status.sources[1].authentication.key), (0, None));
    assert!(daemon.log().contains("no key with this number"), "{}", daemon.log());
}
