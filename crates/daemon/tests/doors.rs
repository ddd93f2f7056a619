//! The daemon's doors: control socket, metrics, signals, records.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Scratch, server_section};
use ffclock_counter::CounterKind;
use ffclock_daemon::control::report::Answer;
use ffclock_trace::TraceReader;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

fn free_port() -> u16 {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    socket.local_addr().expect("an address").port()
}

#[test]
fn metrics_are_served_and_complete() {
    let scratch = Scratch::new("metrics");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterKind::Tsc));
    let port = free_port();
    let top = scratch.daemon_section(&format!("metrics = \"127.0.0.1:{port}\""));
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    daemon.wait_for("an estimate", |status| status.clock.is_some());
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    for expected in ["200 OK", "ffclock_bound_seconds ", "ffclock_source_requests_total{source=", "# EOF\n"] {
        assert!(answer.contains(expected), "{expected} missing:\n{answer}");
    }
}

#[test]
fn nonsense_on_the_control_socket_gets_an_error() {
    let scratch = Scratch::new("control");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterKind::Tsc));
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("") + &server_section(server.address, "")));
    daemon.wait_for("an answer", |_| true);
    assert!(matches!(daemon.ask("sesame"), Some(Answer::Error { .. })));
    assert!(matches!(daemon.ask(&"x".repeat(8000)), Some(Answer::Error { .. })));
    assert!(daemon.status().is_some());
}

#[test]
fn a_second_daemon_is_refused() {
    let scratch = Scratch::new("second");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterKind::Tsc));
    let config = scratch.daemon_section("") + &server_section(server.address, "");
    let mut first = Daemon::start(&scratch, &config);
    first.wait_for("an answer", |_| true);
    let mut second = Daemon::start(&scratch, &config);
    assert!(!second.wait());
    assert!(first.is_running());
}

#[test]
fn records_replay_to_what_was_published() {
    let scratch = Scratch::new("record");
    let server = TestServer::start("127.0.0.1:0", Truth::beginning_now(CounterKind::Tsc));
    let record = scratch.path().join("record");
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nrecord = \"{}\"", record.display()));
    let mut daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 10);
    daemon.signal("TERM");
    assert!(daemon.wait());
    let file = std::fs::read_dir(&record).unwrap().next().unwrap().unwrap().path();
    let rows: Vec<_> = TraceReader::open(&file).unwrap().map(|row| row.unwrap()).collect();
    let exchanges = rows.iter().filter(|row| row.exchange.is_some()).count();
    assert!(exchanges >= 10, "{exchanges}");
    assert!(rows.windows(2).all(|pair| pair[0].sequence < pair[1].sequence));
}
