//! One-way delays at the command line: what a run says when replies come that do not count, when it asks for more than
//! a reflector answers, and when nothing can be drawn.

use crate::common::Place;
use ffclock_units::Status;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A reflector that answers as `reply` says, until it is dropped.
struct Reflector {
    address: String,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reflector {
    fn new(reply: fn(&[u8]) -> Vec<u8>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (address, is_over) = (socket.local_addr().unwrap().to_string(), Arc::new(AtomicBool::new(false)));
        let ended = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2048];
            while !ended.load(Ordering::Relaxed) {
                if let Ok((length, from)) = socket.recv_from(&mut buffer) {
                    let _ = socket.send_to(&reply(&buffer[..length]), from);
                }
            }
        });
        Reflector { address, is_over, thread: Some(thread) }
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

/// A reply of RFC 8762, figure 5, that came and left when the request left, within 4 s; `number` stands for the
/// request's.
fn reply(request: &[u8], number: &[u8]) -> Vec<u8> {
    let (time, error) = (&request[4..12], &request[12..14]);
    [number, time, &[0x9a, 0xff, 0, 0], time, number, time, error, &[0, 0, 255, 0, 0, 0]].concat()
}

#[test]
fn replies_that_do_not_count_are_said_where_every_packet_is_lost() {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let reflector = Reflector::new(|request| reply(request, &[0, 0, 77, 77]));
    let asked = ["owd", "send", &reflector.address, "--packets", "5", "--patience", "300 ms"];
    let ended = place.run(&asked);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.err.contains("5 replies too late or never asked for"), "{ended:?}");
    assert!(!ended.err.contains("owd reflect"), "a reflector runs there: {ended:?}");
    drop(reflector);
    let unanswered = ["owd", "send", "127.0.0.1:9", "--packets", "2", "--patience", "50 ms"];
    assert!(place.run(&unanswered).err.contains("is `ffclock-lab owd reflect` running there"));
}

#[test]
fn a_run_has_its_counts_in_json_and_in_metrics() {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let reflector = Reflector::new(|request| reply(request, &request[..4]));
    let metrics = place.file("metrics");
    let asked = ["owd", "send", &reflector.address, "--packets", "20", "--interval", "50 us"];
    let ended = place.run(&[&asked[..], &["--json", "--metrics", &metrics.display().to_string()]].concat());
    assert!(ended.err.contains("more than the 10000 packets per second"), "{ended:?}");
    let answer: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(answer["minute"]["packets"], 20, "{answer}");
    assert_eq!(answer["minute"]["forward"], answer["figures"]["forward"], "{answer}");
    assert!(answer["unstamped"]["sent"].is_u64() && answer["figures"]["reordered_forward"].is_u64(), "{answer}");
    let text = std::fs::read_to_string(metrics).unwrap();
    for line in
        ["ffclock_owd_unstamped_total{time=\"T4\"}", "ffclock_owd_minute_forward_delay_seconds{quantile=\"0.5\"}"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

/// The interpreter fails as the package does: its own words are passed on, and nothing else is blamed.
#[test]
fn the_complaint_of_the_package_is_all_that_is_said() {
    let place = Place::new();
    place.publish(Status::Synchronised);
    let file = |name: &str| place.file(name).display().to_string();
    let (record, python) = (file("owd.csv"), file("python"));
    let unanswered = ["owd", "send", "127.0.0.1:9", "--packets", "2", "--patience", "50 ms", "--record", &record];
    place.run(&unanswered);
    let complaint = "#!/bin/sh\ncat >/dev/null\necho 'ffclock.owd_report: no packet has a one-way delay' >&2\nexit 2\n";
    std::fs::write(&python, complaint).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = place.run(&["owd", "report", &record, "--output", &file("out"), "--python", &python]);
    let said = "nothing was drawn: ffclock.owd_report: no packet has a one-way delay";
    assert!(ended.code == 1 && ended.err.contains(said) && ended.err.lines().count() == 1, "{ended:?}");
}
