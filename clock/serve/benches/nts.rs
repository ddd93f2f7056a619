//! What NTS costs the server: CPU for each reply, plain and protected, and key establishments for each second of CPU.
//!
//! `cargo bench -p ffclock-serve --bench nts` floods an ffclock-serve of one thread on loopback, first with plain
//! requests and then with protected ones, in turn, and divides the CPU time of the server's process by its replies. The
//! requests are made once and sent again and again, so the client costs the server nothing. Prints one JSON line for
//! each figure.

#![expect(clippy::unwrap_used, reason = "a benchmark, as its tests, ends where something fails")]

#[path = "../tests/serving/common.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod common;
#[path = "../tests/serving/nts/session.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod session;

use common::{Place, Said, Serving};
use ffclock_nts::Aead;
use ffclock_units::Span;
use ffclock_wire::{NtpTimestamp, Packet, Version};
use serde_json::json;
use session::{Session, ask, certify, establishing_at, with_nts};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Packets that are under way at a time.
const WINDOW: usize = 48;
const FLOOD: Duration = Duration::from_secs(2);
const ROUNDS: usize = 5;
const CLIENTS: usize = 4;
const PLAIN: &str = "plain";
/// Goals: a protected reply over a plain one, and establishments for each second of CPU time.
const PROTECTED_MOST: f64 = 2.0;
const ESTABLISHMENTS_LEAST: f64 = 500.0;

fn main() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(300)));
    certify(&place);
    let serving = place.serve(&with_nts(&place, "establish_interval = \"0 s\"\nconnections_per_address = 1000"));
    let plain = Packet::request(Version::V4, NtpTimestamp::from_raw(7)).encode().to_vec();
    let protected = [Aead::AesSivCmac256, Aead::Aes128GcmSiv].map(|aead| {
        let mut session = Session::establish(&place, &serving, aead);
        let cookie = session.cookies[0].clone();
        session.request(&cookie, 0)
    });
    let kinds = [(PLAIN, &plain), ("AES-SIV-CMAC-256", &protected[0]), ("AES-128-GCM-SIV", &protected[1])];
    let mut costs = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for ((_, request), costs) in kinds.iter().zip(&mut costs) {
            costs.push(flood(&serving, request));
        }
    }
    let middle = costs.map(|mut costs| {
        costs.sort_by(f64::total_cmp);
        costs[ROUNDS / 2]
    });
    for ((name, request), cost) in kinds.iter().zip(middle) {
        let ratio = cost / middle[0];
        let goal = (*name != PLAIN).then_some(PROTECTED_MOST);
        println!(
            "{}",
            json!({
                "name": format!("CPU time a reply: {name}, {} octets", request.len()),
                "value": cost,
                "unit": "us",
                "against": format!("a plain reply: {:.2}", middle[0]),
                "ratio": ratio,
                "goal": goal.map(|most| format!("ratio <= {most}")),
                "met": goal.map(|most| ratio <= most),
            })
        );
    }
    let (count, cpu) = establishments(&place, &serving);
    let rate = count as f64 / cpu;
    println!(
        "{}",
        json!({
            "name": "key establishments a second of CPU time",
            "value": rate,
            "unit": "/s",
            "against": format!("establishments: {count}"),
            "ratio": null,
            "goal": format!("value >= {ESTABLISHMENTS_LEAST}"),
            "met": rate >= ESTABLISHMENTS_LEAST,
        })
    );
}

/// The CPU time that the server has used [s], in ticks of 10 ms (proc(5): fields 14 and 15, counted after the name).
fn cpu_seconds(serving: &Serving) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", serving.pid())).unwrap();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields = after_name.split(' ').skip(11).take(2);
    fields.map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

/// CPU time of the server for each reply [us].
fn flood(serving: &Serving, request: &[u8]) -> f64 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let mut reply = [0; 2048];
    let (begun, before) = (Instant::now(), cpu_seconds(serving));
    let mut replies = 0_u64;
    while begun.elapsed() < FLOOD {
        for _ in 0..WINDOW {
            socket.send(request).unwrap();
        }
        replies += (0..WINDOW).take_while(|_| socket.recv(&mut reply).is_ok()).count() as u64;
    }
    (cpu_seconds(serving) - before) / replies as f64 * 1e6
}

/// How many keys several clients at once establish, and the CPU time of the server for it [s].
fn establishments(place: &Place, serving: &Serving) -> (usize, f64) {
    let (begun, before) = (Instant::now(), cpu_seconds(serving));
    let at = establishing_at(serving);
    let one = || (0..).take_while(|_| begun.elapsed() < 3 * FLOOD && ask(place, at, &[15]).is_ok()).count();
    let count = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(one)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    (count, cpu_seconds(serving) - before)
}
