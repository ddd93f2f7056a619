//! The daemon follows ntpd-rs, plainly and with NTS, and NTPsec's ntpd with NTS. They serve the system clock and are
//! kept from setting it (tools/peers). Others are followed in `nts.rs` and in the laboratory's tests; docs/interop.md
//! has the whole matrix.

mod common;

use common::namespace::is_in_a_namespace;
use common::server::Truth;
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_control::protocol::AuthenticationKind;
use ffclock_counter::CounterId;
use ffclock_units::Span;
use rcgen::{CertificateParams, DnType, KeyPair};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Killed when dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Serving {
    /// Starts a server whose words go to a file.
    fn start(command: &mut Command, log: &Path) -> Self {
        let said = std::fs::File::create(log).expect("a log");
        let errors = said.try_clone().expect("the same log");
        Serving(command.stdin(Stdio::null()).stdout(said).stderr(errors).spawn().expect("the server starts"))
    }
}

/// A program of tools/peers that starts here.
fn peer(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers").join(name);
    let starts = Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !starts {
        println!("SKIP: {name} does not start here (tools/setup peers says why)");
    }
    starts.then_some(program)
}

fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a loopback port")
}

/// A certificate for this host, signed by itself: its path, and the key's. Programs differ in where they look for the
/// name.
fn certify(scratch: &Scratch) -> (PathBuf, PathBuf) {
    let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    parameters.distinguished_name.push(DnType::CommonName, "127.0.0.1");
    let key = KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let paths = (scratch.path().join("chain.pem"), scratch.path().join("key.pem"));
    std::fs::write(&paths.0, certificate.pem()).expect("a file");
    std::fs::write(&paths.1, key.serialize_pem()).expect("a file");
    std::fs::set_permissions(&paths.1, std::fs::Permissions::from_mode(0o600)).expect("its owner's alone");
    paths
}

/// The daemon with this server, which serves the system clock: it must come to within 2 ms of it.
fn follows(scratch: &Scratch, section: &str) -> Daemon {
    let truth = Truth::beginning_now(CounterId::MonotonicRaw);
    let top = scratch.daemon_section("counter = \"monotonic-raw\"");
    let daemon = Daemon::start(scratch, &(top + section));
    let mut judge = Judge::new(scratch, CounterId::MonotonicRaw, truth);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    let (_, error) = judge.watch(Duration::from_millis(500)).expect("there is an estimate");
    assert!(error.abs() < Span::from_millis(2), "error {error}");
    daemon
}

/// The same with NTS: everything is authentic, and cookies come back as they are used up.
fn follows_with_nts(scratch: &Scratch, (establishing, authority): (u16, &Path)) {
    let authority = authority.display();
    let section = format!(
        "[[server]]\naddress = \"127.0.0.1\"\npoll = \"125 ms\"\nnts = true\nnts_port = {establishing}\n\
         nts_ca = \"{authority}\"\n"
    );
    let daemon = follows(scratch, &section);
    let status = daemon.wait_for("a status", |_| true);
    let authentication = &status.sources[0].authentication;
    assert_eq!((authentication.kind, authentication.established), (AuthenticationKind::Nts, Some(1)), "{status:?}");
    assert!(authentication.cookies.is_some_and(|cookies| cookies >= 7), "{authentication:?}");
}

#[test]
fn ntpd_rs_is_followed_within_the_bound() {
    let Some(program) = peer("ntp-daemon") else { return };
    let scratch = Scratch::new("ntpd-rs");
    let address = free_address();
    let config = scratch.path().join("ntp.toml");
    let text = format!("[synchronization]\nlocal-stratum = 1\n[[server]]\nlisten = \"{address}\"\n");
    std::fs::write(&config, text).expect("the configuration can be written");
    let _serving = Serving::start(Command::new(program).arg("--config").arg(config), &scratch.path().join("ntpd-rs"));
    follows(&scratch, &server_section(address, ""));
}

#[test]
fn ntpd_rs_establishes_keys_and_is_followed() {
    let Some(program) = peer("ntp-daemon") else { return };
    let scratch = Scratch::new("ntpd-rs-nts");
    let address = free_address();
    let establishing = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
    let (certificate, key) = certify(&scratch);
    let config = scratch.path().join("ntp.toml");
    let text = format!(
        "[synchronization]\nlocal-stratum = 1\n[[server]]\nlisten = \"{address}\"\n[[nts-ke-server]]\n\
         listen = \"127.0.0.1:{establishing}\"\nntp-port = {}\ncertificate-chain-path = \"{}\"\n\
         private-key-path = \"{}\"\n",
        address.port(),
        certificate.display(),
        key.display()
    );
    std::fs::write(&config, text).expect("the configuration can be written");
    let _serving = Serving::start(Command::new(program).arg("--config").arg(config), &scratch.path().join("ntpd-rs"));
    follows_with_nts(&scratch, (establishing, &certificate));
}

/// It wants port 123, so it has a namespace.
#[test]
fn ntpsec_establishes_keys_and_is_followed() {
    if !is_in_a_namespace("ntpsec_establishes_keys_and_is_followed", "true") {
        return;
    }
    let Some(program) = peer("ntpd") else { return };
    let scratch = Scratch::new("ntpsec-nts");
    let (certificate, key) = certify(&scratch);
    let here = scratch.path().display();
    // Its default limits would stop answering a client that polls faster than every two seconds.
    let text = format!(
        "disable ntp\ntos orphan 3 orphanwait 1\nlimit average 1000 burst 1000\nrestrict default nomodify\n\
         nts enable\nnts cert {}\nnts key {}\nnts cookie {here}/cookies\ndriftfile {here}/drift\n",
        certificate.display(),
        key.display()
    );
    let config = scratch.path().join("ntp.conf");
    std::fs::write(&config, text).expect("the configuration can be written");
    let log = scratch.path().join("ntpd");
    let _serving = Serving::start(Command::new(program).arg("-n").arg("-c").arg(config), &log);
    follows_with_nts(&scratch, (4460, &certificate));
}
