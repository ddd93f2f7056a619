//! What a plain reply costs the server, beside chronyd, NTPsec's ntpd, ntpd-rs and the least that any program can do.
//!
//! `cargo bench -p ffclock-serve --bench flood`, or `tools/bench serve`: one JSON line for each figure on standard
//! output. docs/benchmarks.md says how each is measured. All happens on loopback, in a network namespace where one may
//! be made: ntpd insists on port 123.
#![expect(clippy::unwrap_used, reason = "a measurement that cannot start its programs has failed")]

#[path = "../tests/serving/common.rs"]
#[expect(dead_code, reason = "the tests use more of it")]
mod common;

use common::{Place, Said, Serving};
use ffclock_units::Span;
use ffclock_wire::{NtpTimestamp, Packet, Version};
use serde_json::json;
use std::fs::File;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the namespace.
const INSIDE: &str = "FFCLOCK_BENCH_NAMESPACE";
/// The CPU of the generator, and that of every server.
const CPUS: [&str; 2] = ["0", "1"];
/// CPU time a reply with two threads over that with one: together they answer at least 1.9 times as often.
const TWO_THREADS_MOST: f64 = 2.0 / 1.9;
/// CPU per reply, at most this share of the best other daemon's, and of the bare echo's.
const BEST_DAEMON_MOST: f64 = 0.8;
const ECHO_MOST: f64 = 1.1;
/// Memory with all addresses seen [MiB].
const MEMORY_MOST: f64 = 16.0;
/// A reply that costs more than this was not one of many [us].
const COST_MOST: f64 = 100.0;
const LIMITING: &str = "ffclock-serve with its rate limit";
const ECHO: &str = "recvmmsg/sendmmsg echo in C";

fn main() {
    if std::env::var_os(INSIDE).is_none() && is_done_in_a_namespace() {
        return;
    }
    let places = [(); 3].map(|()| Place::new());
    let place = &places[0];
    let generator = Generator::compile(place);
    let ours =
        [1, 2].map(|threads| serve(&places[threads - 1], &format!("rate_interval = \"0 s\"\nthreads = {threads}")));
    let mut servers = vec![
        Candidate::ours("ffclock-serve", &ours[0], CPUS[1]),
        Candidate::ours("ffclock-serve, two threads on two CPUs", &ours[1], "0,1"),
    ];
    servers.extend(others(place, &generator));
    for round in 0..rounds() {
        for server in &mut servers {
            let cost = generator.flood(server);
            eprintln!("bench: round {round}, {}: {cost:.2} us", server.name);
            server.costs.push(cost);
        }
    }
    servers.retain(Candidate::is_measured);
    report(&servers);
    if std::env::var_os(INSIDE).is_some() {
        let limiting = serve(&places[2], "");
        generator.remember(&Candidate::ours(LIMITING, &limiting, CPUS[1]));
        servers[2..].iter().for_each(|server| generator.remember(server));
    } else {
        eprintln!("SKIP: no network namespace, so no memory with many addresses");
    }
}

/// ffclock-serve with these lines in its configuration.
fn serve(place: &Place, more: &str) -> Serving {
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    place.serve(more)
}

fn is_quick() -> bool {
    std::env::var_os("FFCLOCK_BENCH_QUICK").is_some()
}

fn rounds() -> usize {
    if is_quick() { 2 } else { 9 }
}

/// Runs this program again with a loopback of its own, if it may.
fn is_done_in_a_namespace() -> bool {
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let works = |way: &&[&str]| {
        let tried = Command::new("unshare").args(*way).args(["ip", "link", "show"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.into_iter().find(works) else { return false };
    let begin = "ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec \"$0\"";
    let mut inside = Command::new("unshare");
    inside.args(way).args(["sh", "-c", begin]).arg(std::env::current_exe().unwrap()).env(INSIDE, "1");
    assert!(inside.status().unwrap().success());
    true
}

/// A server that is measured.
struct Candidate {
    name: &'static str,
    pid: u32,
    port: u16,
    child: Option<Child>,
    costs: Vec<f64>,
}

impl Candidate {
    fn ours(name: &'static str, serving: &Serving, cpus: &str) -> Self {
        let (pid, port) = (serving.pid(), serving.address.port());
        pin(pid, cpus);
        Candidate { name, pid, port, child: None, costs: Vec::new() }
    }

    /// Starts it, unless it does not answer within 20 s.
    fn start(name: &'static str, port: u16, command: &mut Command) -> Option<Self> {
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let Ok(child) = started else {
            eprintln!("SKIP: {name} does not start");
            return None;
        };
        let candidate = Candidate { name, pid: child.id(), port, child: Some(child), costs: Vec::new() };
        if !candidate.answers() {
            eprintln!("SKIP: {name} does not answer");
            return None;
        }
        pin(candidate.pid, CPUS[1]);
        Some(candidate)
    }

    fn answers(&self) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", self.port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            // A refusal comes at once: the port is not open yet.
            if socket.send(&request()).is_ok() && socket.recv(&mut [0; 100]).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// A server that limits its replies shows what it costs to drop requests, which is another figure.
    fn is_measured(&self) -> bool {
        let is_measured = self.costs.iter().all(|&cost| cost < COST_MOST);
        if !is_measured {
            eprintln!("SKIP: {} answers hardly anything", self.name);
        }
        is_measured
    }

    fn median(&self) -> f64 {
        let mut costs = self.costs.clone();
        costs.sort_by(f64::total_cmp);
        costs[costs.len() / 2]
    }

    /// The CPU time of all its threads [s] (the scheduler's own count, in ns).
    fn cpu_seconds(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid)).unwrap();
        let statistics = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
        statistics.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() * 1e-9
    }
}

impl Drop for Candidate {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn pin(pid: u32, cpus: &str) {
    let done = Command::new("taskset").args(["-a", "-c", "-p", cpus, &pid.to_string()]).output();
    assert!(done.is_ok_and(|done| done.status.success()), "taskset (util-linux) is needed");
}

fn request() -> [u8; 48] {
    Packet::request(Version::V4, NtpTimestamp::from_raw(9)).encode()
}

fn others(place: &Place, generator: &Generator) -> Vec<Candidate> {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers");
    let (here, [chrony, rs, echo]) = (place.directory.display(), free_ports());
    let write = |name: &str, text: String| {
        let path = place.directory.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let chrony_config = write(
        "chrony.conf",
        format!(
            "local stratum 1\nport {chrony}\nbindaddress 127.0.0.1\nallow 0/0\ncmdport 0\npidfile {here}/chronyd.pid\n\
             bindcmdaddress {here}/chronyd.sock\n"
        ),
    );
    let ntpd_config = write(
        "ntp.conf",
        format!("restrict default noquery\nrestrict 127.0.0.1\ntos orphan 1\ndisable ntp\ndriftfile {here}/drift\n"),
    );
    let rs_config =
        write("ntp.toml", format!("[synchronization]\nlocal-stratum = 1\n[[server]]\nlisten = \"127.0.0.1:{rs}\"\n"));
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let mut chronyd = Command::new(peers.join("chronyd"));
    chronyd.args(["-x", "-d", "-u", user.trim(), "-f"]).arg(chrony_config);
    let mut ntpd = Command::new(peers.join("ntpd"));
    ntpd.args(["-n", "-c"]).arg(ntpd_config);
    let mut daemon = Command::new(peers.join("ntp-daemon"));
    daemon.arg("--config").arg(rs_config);
    let mut bare = Command::new(&generator.program);
    bare.args(["echo", &echo.to_string()]);
    let started = [
        Candidate::start("chronyd 4.3", chrony, &mut chronyd),
        Candidate::start("ntpsec 1.2.2", 123, &mut ntpd),
        Candidate::start("ntpd-rs 1.9.0", rs, &mut daemon),
        Candidate::start(ECHO, echo, &mut bare),
    ];
    started.into_iter().flatten().collect()
}

fn free_ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

/// The program that floods, and its packet.
struct Generator {
    program: PathBuf,
    packet: PathBuf,
}

impl Generator {
    fn compile(place: &Place) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network/flood.c");
        let [program, packet] = ["flood", "request"].map(|name| place.directory.join(name));
        let compiled = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).status();
        assert!(compiled.is_ok_and(|status| status.success()), "a C compiler is needed");
        std::fs::write(&packet, request()).unwrap();
        Generator { program, packet }
    }

    /// How many packets came back from the server.
    fn run(&self, mode: &str, server: &Candidate, number: u64) -> u64 {
        let mut command = Command::new("taskset");
        command.args(["-c", CPUS[0]]).arg(&self.program).args([mode, "127.0.0.1", &server.port.to_string()]);
        let ended = command.arg(number.to_string()).arg(&self.packet).stderr(File::open("/dev/null").unwrap()).output();
        let text = String::from_utf8(ended.unwrap().stdout).unwrap();
        text.split_whitespace().nth(1).expect("the generator says what came back").parse().unwrap()
    }

    /// CPU time of the server for each reply [us].
    fn flood(&self, server: &Candidate) -> f64 {
        let before = server.cpu_seconds();
        let replies = self.run("flood", server, 2);
        (server.cpu_seconds() - before) / replies as f64 * 1e6
    }

    /// The server's memory once this number of addresses has asked it.
    fn remember(&self, server: &Candidate) {
        let addresses = if is_quick() { 100_000 } else { 1_000_000 };
        let replies = self.run("many", server, addresses);
        let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid)).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kilobytes: f64 = line.split_whitespace().next().unwrap().parse().unwrap();
        let mebibytes = kilobytes / 1024.0;
        let is_judged = server.name == LIMITING && !is_quick();
        println!(
            "{}",
            json!({
                "name": format!("peak memory with {addresses} addresses: {}", server.name),
                "value": mebibytes,
                "unit": "MiB",
                "against": format!("replies: {replies}"),
                "ratio": null,
                "goal": is_judged.then(|| format!("value <= {MEMORY_MOST}")),
                "met": is_judged.then_some(mebibytes <= MEMORY_MOST),
            })
        );
    }
}

fn report(servers: &[Candidate]) {
    let ours = servers[0].median();
    for server in servers {
        let [least, most] = [f64::min, f64::max].map(|pick| server.costs.iter().copied().reduce(pick).unwrap());
        let spread = format!("{} rounds: {least:.2} to {most:.2}", server.costs.len());
        figure(&format!("CPU time a reply: {}", server.name), server.median(), (spread, None), None);
    }
    let (two, rivals) = (servers[1].median(), servers[2..].iter());
    figure("the same: two threads", two, ("one thread".into(), Some(two / ours)), Some(TWO_THREADS_MOST));
    let (echo, daemons): (Vec<_>, Vec<_>) = rivals.partition(|server| server.name == ECHO);
    let best = daemons.iter().min_by(|one, other| one.median().total_cmp(&other.median()));
    for (rival, goal) in best
        .into_iter()
        .map(|server| (*server, BEST_DAEMON_MOST))
        .chain(echo.into_iter().map(|server| (server, ECHO_MOST)))
    {
        let against = format!("{}: {:.2}", rival.name, rival.median());
        figure("the same: ffclock-serve", ours, (against, Some(ours / rival.median())), Some(goal));
    }
}

/// CPU time a reply [us], beside something and the ratio to it, which should be at most the goal.
fn figure(name: &str, value: f64, (against, ratio): (String, Option<f64>), goal: Option<f64>) {
    let goal = goal.filter(|_| !is_quick());
    println!(
        "{}",
        json!({
            "name": name,
            "value": value,
            "unit": "us",
            "against": against,
            "ratio": ratio,
            "goal": goal.map(|goal| format!("ratio <= {goal}")),
            "met": goal.and_then(|goal| Some(ratio? <= goal)),
        })
    );
}
