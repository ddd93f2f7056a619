//! The interleaved mode (RFC 9769) against chronyd: one daemon asks it at two addresses, at one of them interleaved,
//! and the records of both are compared. The exchanges differ in nothing but the time at which the replies left.
//!
//! `cargo test -p ffclock-daemon --test interleaved -- --nocapture` prints the figures.

mod common;

use common::{Daemon, Scratch};
use ffclock_control::protocol::StatusReport;
use ffclock_trace::TraceReader;
use ffclock_units::{Exchange, Moment, Period, Span, Tai};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Exchanges of each server.
const EXCHANGES: u64 = 200;

struct Chronyd(Child);

impl Drop for Chronyd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// chronyd with the system clock's time at this port; `None` where it is not unpacked.
fn chronyd(scratch: &Scratch, port: u16) -> Option<Chronyd> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/chronyd");
    let version = Command::new(&program).arg("--version").output();
    version.ok().filter(|output| output.status.success())?;
    let configuration = scratch.path().join("chrony.conf");
    let pid = scratch.path().join("chronyd.pid");
    let text =
        format!("local stratum 1\nallow all\nport {port}\ncmdport 0\nbindcmdaddress /\npidfile {}\n", pid.display());
    std::fs::write(&configuration, text).expect("the configuration can be written");
    let user = Command::new("id").arg("-un").output().expect("id runs").stdout;
    let child = Command::new(program)
        .args(["-x", "-d", "-u", String::from_utf8(user).expect("a name").trim(), "-f"])
        .arg(configuration)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Some(Chronyd(child.expect("chronyd starts")))
}

fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port()
}

/// The recorded exchanges with the server at this address, and the counter's nominal period.
fn recorded(scratch: &Scratch, address: &str) -> (Vec<Exchange>, Period) {
    let files = std::fs::read_dir(scratch.path().join("record")).expect("a record");
    let mut files = files.map(|file| file.expect("a file"));
    let of_server = |file: &std::fs::DirEntry| file.file_name().to_string_lossy().starts_with(address);
    let path = files.find(of_server).expect("a record of this server").path();
    let reader = TraceReader::open(&path).expect("a trace");
    let nominal = reader.header().nominal.expect("the daemon states it");
    (reader.filter_map(|row| row.expect("a whole row").exchange).collect(), nominal)
}

/// The round trips without the time at the server, ascending [us].
fn round_trips(exchanges: &[Exchange], period: Period) -> Vec<f64> {
    let trip = |one: &Exchange| period * (one.received.counter - one.sent.counter) - (one.server_out - one.server_in);
    let mut trips: Vec<f64> = exchanges.iter().map(|exchange| trip(exchange).as_seconds() * 1e6).collect();
    trips.sort_by(f64::total_cmp);
    trips
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[(sorted.len() as f64 * part) as usize]
}

#[test]
fn a_server_that_interleaves_says_when_its_replies_left() {
    let scratch = Scratch::new("interleaved");
    let port = free_port();
    let Some(_server) = chronyd(&scratch, port) else {
        println!("SKIP: chronyd is not unpacked");
        return;
    };
    let server = |address: &str, rest: &str| format!("[[server]]\naddress = \"{address}\"\nport = {port}\n{rest}");
    let top = scratch.daemon_section(&format!("record = \"{}/record\"", scratch.path().display()));
    let source = "[source]\npoll = \"125 ms\"\nburst_count = 0\nreply_timeout = \"100 ms\"\n";
    let text = [top, source.to_owned(), server("127.0.0.1", ""), server("127.0.0.2", "interleaved = true\n")].concat();
    let mut daemon = Daemon::start(&scratch, &text);
    let status = daemon.wait_for("enough exchanges", |status: &StatusReport| {
        status.sources.iter().all(|source| source.exchanges >= EXCHANGES)
    });
    let [basic, interleaved] = &status.sources[..] else { panic!("{status:?}") };
    assert_eq!(basic.interleaved, 0);
    assert!(interleaved.interleaved >= EXCHANGES - 20, "{interleaved:?}");
    assert!(interleaved.exchanges + interleaved.lost + 3 >= interleaved.sent, "no exchange is lost: {interleaved:?}");
    daemon.signal("TERM");
    assert!(daemon.wait());

    let mut trips = Vec::new();
    for address in ["127.0.0.1", "127.0.0.2"] {
        let (exchanges, period) = recorded(&scratch, address);
        let ordered = exchanges.windows(2).all(|pair| pair[1].sent.counter.is_after(pair[0].received.counter));
        assert!(ordered, "exchanges come in order and never overlap");
        let left_in_time = |one: &Exchange| -> (Moment<Tai>, Moment<Tai>) { (one.server_in, one.server_out) };
        assert!(exchanges.iter().map(left_in_time).all(|(came, left)| came <= left));
        trips.push(round_trips(&exchanges, period));
        let sorted = trips.last().unwrap();
        println!(
            "{address}: round trip without the server's time: median {:.2} us, middle half {:.2} us wide, {} exchanges",
            quantile(sorted, 0.5),
            quantile(sorted, 0.75) - quantile(sorted, 0.25),
            sorted.len()
        );
    }
    // What chronyd does after it has read the clock is no part of the way back any more.
    let gain = quantile(&trips[0], 0.5) - quantile(&trips[1], 0.5);
    assert!(gain > 0.0, "the replies seem to come {gain} us later");
    assert!(quantile(&trips[1], 0.5) > -Span::from_micros(1).as_seconds() * 1e6, "no reply comes before it left");
}
