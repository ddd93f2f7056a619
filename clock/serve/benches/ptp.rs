//! How many Delay_Req a second the grandmaster answers on one CPU.
//!
//! `cargo bench -p ffclock-serve --bench ptp`, or `tools/bench serve`: one JSON line for each figure.
//! docs/benchmarks.md says how each is measured. All happens on loopback, in a network namespace.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot start its programs has failed")]

#[path = "../tests/serving/common.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod common;

use common::{Place, Said, Serving};
use ffclock_units::Span;
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use serde_json::json;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

/// Set in the namespace.
const INSIDE: &str = "FFCLOCK_BENCH_NAMESPACE";
/// The CPU of the generator, and that of the server.
const CPUS: [&str; 2] = ["0", "1"];
/// Answers in a second of CPU time.
const ANSWERS_LEAST: f64 = 50_000.0;
/// Requests that have not been answered yet.
const UNANSWERED_MOST: u64 = 256;

fn main() {
    if std::env::var_os(INSIDE).is_none() {
        let inside = ["--net", "--", "sh", "-c", "ip link set lo up && exec \"$0\""];
        let program = std::env::current_exe().unwrap();
        let tried = Command::new("unshare").args(["--net", "ip", "link", "show"]).output();
        if tried.is_ok_and(|output| output.status.success()) {
            assert!(Command::new("unshare").args(inside).arg(program).env(INSIDE, "1").status().unwrap().success());
        } else {
            eprintln!("SKIP: no network namespace may be made here, so PTP was not measured");
        }
        return;
    }
    let place = Place::new();
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    let serving = place.serve("rate_interval = \"0 s\"\n[ptp]\ninterfaces = [\"lo\"]");
    for (pid, cpu) in [(serving.pid(), CPUS[1]), (std::process::id(), CPUS[0])] {
        let pinned = Command::new("taskset").args(["-a", "-c", "-p", cpu, &pid.to_string()]).output();
        assert!(pinned.is_ok_and(|done| done.status.success()), "taskset (util-linux) is needed");
    }
    while serving.status()["ptp"][0]["state"] != "serving" {
        std::thread::sleep(Duration::from_millis(20));
    }
    let rounds = if is_quick() { 2 } else { 9 };
    let mut measured: Vec<[f64; 2]> = (0..rounds).map(|_| flood(&serving)).collect();
    measured.sort_by(|one, other| one[0].total_cmp(&other[0]));
    let [rate, by_wall] = measured[rounds / 2];
    let spread = format!("{rounds} rounds: {:.0} to {:.0}", measured[0][0], measured[rounds - 1][0]);
    let goal = (!is_quick()).then_some(ANSWERS_LEAST);
    println!(
        "{}",
        json!({
            "name": "Delay_Req answered in a second of CPU time",
            "value": rate,
            "unit": "1/s",
            "against": spread,
            "ratio": null,
            "goal": goal.map(|goal| format!("value >= {goal}")),
            "met": goal.map(|goal| rate >= goal),
        })
    );
    let against = "of the same round, with whatever else the machine did";
    println!(
        "{}",
        json!({ "name": "the same in a second", "value": by_wall, "unit": "1/s", "against": against, "ratio": null,
            "goal": null, "met": null })
    );
}

fn is_quick() -> bool {
    std::env::var_os("FFCLOCK_BENCH_QUICK").is_some()
}

/// The CPU time of all threads of the server [s] (the scheduler's own count, in ns).
fn cpu_seconds(serving: &Serving) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", serving.pid())).unwrap();
    let statistics = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
    statistics.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() * 1e-9
}

/// A socket of a follower, beside the server's, which has all addresses of the device.
fn follower(port: u16) -> UdpSocket {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &SocketAddrV4::new([127, 0, 0, 2].into(), port)).unwrap();
    socket.into()
}

/// A Delay_Req of 44 octets (IEEE 1588-2019, 11.3) in unicast.
fn delay_request() -> [u8; 44] {
    let mut octets = [0; 44];
    octets[..4].copy_from_slice(&[0x01, 0x02, 0, 44]);
    octets[6] = 0x04;
    octets[20..30].copy_from_slice(&[2, 0, 0, 0xff, 0xfe, 0, 0, 9, 0, 1]);
    octets
}

/// Asks for two seconds; answers in a second of the server's CPU time, and in a second.
fn flood(serving: &Serving) -> [f64; 2] {
    let (event, general) = (follower(319), follower(320));
    event.connect(SocketAddr::from(([127, 0, 0, 1], 319))).unwrap();
    general.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut sent, mut answered, mut lost, mut answer) = (0_u64, 0_u64, 0_u64, [0; 100]);
    let (before, begin) = (cpu_seconds(serving), Instant::now());
    while begin.elapsed() < Duration::from_secs(2) {
        while sent.saturating_sub(answered + lost) < UNANSWERED_MOST {
            event.send(&delay_request()).unwrap();
            sent += 1;
        }
        match general.recv(&mut answer) {
            Ok(length) => {
                assert_eq!((length, answer[0] & 15), (54, 9), "a Delay_Resp");
                answered += 1;
            }
            // The rest was dropped by the kernel, or comes later than it is waited for.
            Err(_) => lost = sent.saturating_sub(answered),
        }
    }
    let (wall, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds(serving) - before);
    eprintln!("bench: {answered} answers in {wall:.2} s, {cpu:.2} s of CPU time; {lost} lost");
    [answered as f64 / cpu, answered as f64 / wall]
}
