//! The daemon follows ntpd-rs, which serves the system clock and is kept from setting it (tools/peers). chronyd and
//! NTPsec's ntpd, which need namespaces, are followed in the laboratory's tests; docs/interop.md has the whole matrix.

mod common;

use common::server::Truth;
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_counter::CounterId;
use ffclock_units::Span;
use std::net::UdpSocket;
use std::path::Path;
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

#[test]
fn ntpd_rs_is_followed_within_the_bound() {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/ntp-daemon");
    let starts = Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !starts {
        println!("SKIP: ntp-daemon does not start here (tools/setup peers says why)");
        return;
    }
    let scratch = Scratch::new("ntpd-rs");
    let address = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a loopback port");
    let config = scratch.path().join("ntp.toml");
    let text = format!("[synchronization]\nlocal-stratum = 1\n[[server]]\nlisten = \"{address}\"\n");
    std::fs::write(&config, text).expect("the configuration can be written");
    let mut command = Command::new(&program);
    command.arg("--config").arg(config).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _serving = Serving(command.spawn().expect("ntpd-rs starts"));
    let truth = Truth::beginning_now(CounterId::MonotonicRaw);
    let top = scratch.daemon_section("counter = \"monotonic-raw\"");
    let daemon = Daemon::start(&scratch, &(top + &server_section(address, "")));
    let mut judge = Judge::new(&scratch, CounterId::MonotonicRaw, truth);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    let (_, error) = judge.watch(Duration::from_millis(500)).expect("there is an estimate");
    assert!(error.abs() < Span::from_millis(2), "error {error}");
}
