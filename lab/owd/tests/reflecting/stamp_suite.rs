//! With `stamp-suite`, an implementation of STAMP that shares no line with ours, in both directions over loopback. Both
//! ends have the system's clock: ours by a page that the test writes, theirs by their own readings.

use super::common::{Place, plan, reflector_plan};
use ffclock_owd::judge::PacketFate;
use ffclock_owd::packet::BASE_BYTES;
use ffclock_owd::record::OwdRow;
use ffclock_owd::reflector::{Reflector, ReflectorCounts};
use ffclock_owd::sender::{Sender, SenderPlan};
use ffclock_units::Span;
use serde_json::Value;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The system's clock may be slewed while a test runs; this far it is not.
const BOUND: Span = Span::from_millis(5);
/// How long our reflector lets packets wait before it looks at them.
const PAUSE: Duration = Duration::from_millis(40);

/// The program, where tools/setup has built it.
fn stamp_suite() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/stamp-suite");
    let starts = Command::new(&program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !starts {
        println!("SKIP: stamp-suite does not start here (tools/setup peers says why)");
    }
    starts.then_some(program)
}

/// Killed when dropped.
struct Peer(Child);

impl Peer {
    fn start(program: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(program);
        command.args(["--local-addr", "127.0.0.1"]).args(options);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Peer(command.spawn().unwrap())
    }

    fn output(&mut self) -> ChildStdout {
        self.0.stdout.take().unwrap()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What their sender reports of 20 packets to our reflector, and what ours counted.
fn reflected(place: &Place, program: &Path, options: &[&str]) -> (Value, ReflectorCounts) {
    let page = place.page_of_the_system("page", BOUND);
    let mut reflector = Reflector::open(&reflector_plan(&page)).unwrap();
    let port = reflector.address().unwrap().port().to_string();
    let common = ["--remote-addr", "127.0.0.1", "--remote-port", port.as_str(), "--count", "20", "--send-delay", "5"];
    let mut peer = Peer::start(program, &[&common[..], &["--output-format", "json"], options].concat());
    while peer.0.try_wait().unwrap().is_none() {
        std::thread::sleep(PAUSE);
        while reflector.turn().unwrap() {}
    }
    let report = serde_json::from_reader(peer.output()).unwrap();
    (report, reflector.counts())
}

#[test]
fn their_sender_understands_our_reflector() {
    let (Some(program), place) = (stamp_suite(), Place::new()) else { return };
    for form in ["NTP", "PTP"] {
        let options = ["--clock-synchronized", "--ssid", "77", "--clock-source", form];
        let (report, counts) = reflected(&place, &program, &options);
        println!("{form}: {report}");
        assert_eq!((counts.reflected, counts.unsynchronised), (20, 0), "{counts:?}");
        assert_eq!((&report["packets_sent"], &report["packets_received"]), (&20.into(), &20.into()));
        let (delays, quality) = (&report["owd"], &report["owd"]["clock_quality"]);
        assert_eq!((&delays["samples"], &quality["both_synchronized"]), (&20.into(), &20.into()));
        // Our bound as they read it from the error estimate: no smaller, and at most 1/128 larger.
        let claimed = quality["last_reflector"]["error_ms"].as_f64().unwrap();
        assert!((5.0..5.1).contains(&claimed), "{claimed}");
        // They take the time for which the packets waited into none of the two directions only if T2 and T3 are what
        // the RFC says they are.
        let figure = |of: &Value, name: &str| of[name].as_f64().unwrap();
        for direction in ["forward_median_ms", "reverse_median_ms"] {
            assert!((-6.0..15.0).contains(&figure(delays, direction)), "{direction}");
        }
        assert!(figure(delays, "forward_median_ms") + figure(delays, "reverse_median_ms") < 10.0);
        assert!(figure(&report, "max_rtt_ms") > 20.0);
    }
}

/// They drop replies that they cannot verify, as docs/owd.md says.
#[test]
fn their_sender_in_authenticated_mode_takes_no_reply_of_ours() {
    let (Some(program), place) = (stamp_suite(), Place::new()) else { return };
    let key = "00112233445566778899aabbccddeeff";
    let (report, counts) = reflected(&place, &program, &["--auth-mode", "A", "--hmac-key", key, "--timeout", "1"]);
    assert_eq!(counts.reflected, 20, "{counts:?}");
    assert_eq!((&report["packets_sent"], &report["packets_received"]), (&20.into(), &0.into()), "{report}");
}

/// Our packets, and the session that they were of, by their reflector with these options.
fn measured(place: &Place, program: &Path, (bytes, options): (usize, &[&str])) -> Vec<OwdRow> {
    let to = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap();
    let port = to.port().to_string();
    let fixed = ["--is-reflector", "--clock-synchronized", "--local-port", port.as_str()];
    let _peer = Peer::start(program, &[&fixed[..], options].concat());
    wait_for_a_reply(to);
    let page = place.page_of_the_system("page", BOUND);
    let mut sender = Sender::open(SenderPlan { bytes, ..plan(&page, to, 100) }).unwrap();
    let mut rows = Vec::new();
    while !sender.is_finished() {
        sender.turn(&mut rows).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    sender.turn(&mut rows).unwrap();
    let strays = sender.strays();
    println!("{options:?}, {bytes} bytes: {strays:?}, first of {}: {:?}", rows.len(), rows.first());
    assert_eq!((strays.altered, strays.other_sessions, strays.foreign, strays.duplicates), (0, 0, 0, 0), "{strays:?}");
    rows
}

fn wait_for_a_reply(from: SocketAddr) {
    let socket = super::foreign_socket();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    socket.connect(from).unwrap();
    // Until the reflector listens, its port is unreachable.
    let is_answered = |_: &usize| {
        let _ = socket.send(&super::request(0));
        let answered = socket.recv(&mut [0; 100]).is_ok();
        if !answered {
            std::thread::sleep(Duration::from_millis(20));
        }
        answered
    };
    assert!((0..500).any(|number| is_answered(&number)), "the reflector does not answer");
}

#[test]
fn our_sender_understands_their_reflector() {
    let (Some(program), place) = (stamp_suite(), Place::new()) else { return };
    // 4 * 2^22 * 2^-32 s: what their reflector claims about its clock.
    let claims = ["--error-scale", "22", "--error-multiplier", "4", "--stateful-reflector"];
    let claimed = Span::from_nanos(3_906_250);
    for bytes in [BASE_BYTES, 100] {
        let rows = measured(&place, &program, (bytes, &claims));
        assert_eq!(rows.len(), 100);
        for row in rows {
            assert_eq!((row.fate, row.reflector_sequence), (PacketFate::Measured, Some(row.number as u32)), "{row:?}");
            let (forward, backward) = (row.forward.unwrap(), row.backward.unwrap());
            for delay in [forward, backward] {
                let bound = delay.bound.as_span();
                assert!(bound >= BOUND + claimed && bound < BOUND + claimed + Span::from_millis(1), "{row:?}");
                assert!(delay.delay + bound >= Span::ZERO, "{row:?}");
            }
            assert!(row.held.unwrap() >= Span::ZERO, "{row:?}");
        }
    }
}

/// Their reflector puts UTC into PTP's form, which is 37 s behind TAI. Every packet contradicts itself.
#[test]
fn their_reflector_with_utc_in_the_form_of_ptp_is_kept_apart() {
    let (Some(program), place) = (stamp_suite(), Place::new()) else { return };
    let rows = measured(&place, &program, (BASE_BYTES, &["--clock-source", "PTP"]));
    assert!(rows.len() == 100 && rows.iter().all(|row| row.fate == PacketFate::ForwardBelowZero), "{rows:?}");
}
