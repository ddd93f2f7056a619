//! What a reply in the driver costs, through a pair of virtual devices. Prints one JSON line per figure.
//!
//! `cargo bench -p ffclock-xdp --features ebpf`, as root. The kernel handles the server's device in a thread of its own
//! (threaded NAPI), pinned to the last CPU: its CPU time, by the replies that the program counted, is the cost of a
//! reply with all that the device does for it. Requests come in bursts of 64 from sockets on the other host
//! (`flood.py`), pinned to CPU 0, as is the thread that handles the replies there. The program's own part is what the
//! kernel's statistics of programs say, in rounds apart, because they cost time themselves.

#[path = "../tests/veth/hosts.rs"]
mod hosts;
#[path = "../tests/veth/serving.rs"]
mod serving;

use ffclock_units::Span;
use ffclock_xdp::{FastOutcome, FastPath, RequestLimit, Rules, XdpHook};
use hosts::{Client, DEVICE, SERVER, SERVER_V6, again_as_server, hindrance, place, role, run};
use serving::while_renewing;
use std::fs;
use std::process::{Child, Command};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

/// What sends the requests.
const GENERATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/flood.py");
/// A client beside the flood.
const HONEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/honest.py");
/// What takes part goes before other load, which would cost it its caches.
const NICE: &str = "-10";
const ROUND: Duration = Duration::from_secs(2);
/// Requests/s that are offered; 0: as many as there can be.
const OFFERED: [u64; 3] = [100_000, 300_000, 0];
/// Requests/s in the names of others.
const FORGED_RATE: u64 = 500_000;
/// [us] at flood: a fifth of what a reply costs the fastest server with sockets.
const GOAL_US: f64 = 0.8;
const STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

fn main() {
    match role().as_deref() {
        None => match hindrance() {
            Some(reason) => println!("SKIP: {reason}"),
            None => print!("{}", again_as_server(&[]).0),
        },
        Some(_) => match Client::join() {
            Ok(client) => measure(&client),
            Err(error) => println!("SKIP: XDP: {error}"),
        },
    }
}

/// A command on the client's host that runs a script on CPU 0.
fn script(client: &Client, script: &str) -> Command {
    let mut command = client.command();
    command.args(["nice", "-n", NICE, "taskset", "-c", "0", "python3", script]);
    command
}

fn start_flood(client: &Client, flood: &Flood) -> Child {
    let mut command = script(client, GENERATOR);
    command.env("FFCLOCK_XDP_RATE", flood.rate.to_string());
    if flood.is_forged {
        command.env("FFCLOCK_XDP_FORGED", "1");
    }
    command.spawn().expect("taskset and Python")
}

/// The kernel's thread for a device.
fn thread_of(device: &str) -> u32 {
    let is_its = |pid: u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(&format!("napi/{device}")))
    };
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid| is_its(*pid)).expect("threaded NAPI")
}

/// The command that gives a device a thread.
fn threaded(device: &str) -> String {
    format!("echo 1 > /sys/class/net/{device}/threaded")
}

fn pin(device: &str, cpu: usize) {
    let thread = thread_of(device).to_string();
    run("taskset", &["-cp", &cpu.to_string(), &thread]);
    run("renice", &["-n", NICE, "-p", &thread]);
}

/// CPU time of a process [ns].
fn cpu_time(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).expect("schedstat");
    text.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number")
}

/// Time in programs that this process holds [ns], and their runs, since the statistics were enabled.
fn program_statistics() -> (f64, f64) {
    let files = fs::read_dir("/proc/self/fdinfo").expect("/proc").flatten();
    let value = |text: &str, name: &str| -> f64 {
        text.lines().find_map(|line| line.strip_prefix(name)).and_then(|word| word.trim().parse().ok()).unwrap_or(0.0)
    };
    let texts = files.filter_map(|file| fs::read_to_string(file.path()).ok());
    let both = texts.map(|text| (value(&text, "run_time_ns:"), value(&text, "run_cnt:")));
    both.fold((0.0, 0.0), |most, one| if one.1 > most.1 { one } else { most })
}

/// Rounds for each figure.
fn rounds_each() -> usize {
    if std::env::var_os("FFCLOCK_BENCH_QUICK").is_some() { 2 } else { 5 }
}

/// What is offered.
struct Flood {
    /// [requests/s]; 0: as many as there can be.
    rate: u64,
    /// In the names of 2^20 addresses.
    is_forged: bool,
}

struct Round {
    us_per_reply: f64,
    replies_per_second: f64,
}

/// What a flood costs while `work` lasts.
fn round(path: &mut FastPath, client: &Client, flood: &Flood, work: impl FnOnce()) -> Round {
    let thread = thread_of(DEVICE);
    let mut flood = start_flood(client, flood);
    sleep(Duration::from_millis(300));
    let count = |path: &FastPath| path.counts().expect("counts").of(FastOutcome::Replied) as f64;
    let (before, cpu, begin) = (count(path), cpu_time(thread), Instant::now());
    while_renewing(path, work);
    let (replies, cpu, seconds) = (count(path) - before, cpu_time(thread) - cpu, begin.elapsed().as_secs_f64());
    flood.kill().expect("a child");
    flood.wait().expect("a child");
    assert!(replies > 1000.0, "{replies} replies");
    Round { us_per_reply: cpu / replies / 1e3, replies_per_second: replies / seconds }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(client: &Client) {
    let last = available_parallelism().map_or(1, usize::from) - 1;
    let entered = client
        .command()
        .args(["unshare", "--mount", "sh", "-c", &format!("mount -t sysfs sysfs /sys; {}", threaded("client0"))])
        .status();
    assert!(entered.is_ok_and(|status| status.success()), "threaded NAPI");
    pin("client0", 0);
    // The kernel sends in the name of an address that is local.
    let local = client.command().args(["ip", "route", "add", "local", "10.128.0.0/9", "dev", "lo"]).status();
    assert!(local.is_ok_and(|status| status.success()), "addresses for a flood");
    let limit = Some(RequestLimit { interval: Span::from_nanos(1), burst: 1_000_000, leak: 0 });
    let limited = Rules { limit, ..Rules::default() };
    for (rules, name, goal) in [(Rules::default(), "no limit", Some(GOAL_US)), (limited, "a limit by address", None)] {
        let mut path = FastPath::open(&place(DEVICE, XdpHook::Native)).expect("the device");
        path.serve(&[SERVER.into(), SERVER_V6.into()]).expect("addresses");
        path.rule(&rules).expect("rules");
        // A device has a thread only as long as it has a program.
        run("sh", &["-c", &threaded(DEVICE)]);
        pin(DEVICE, last);
        for rate in OFFERED {
            let flood = Flood { rate, is_forged: false };
            let rounds: Vec<Round> =
                (0..rounds_each()).map(|_| round(&mut path, client, &flood, || sleep(ROUND))).collect();
            let offered = if rate == 0 { "flood".to_owned() } else { format!("{rate}/s offered") };
            report(&format!("XDP, {name}: CPU per reply, {offered}"), &rounds, goal.filter(|_| rate == 0));
        }
        own_part(&mut path, client, name);
        forged(&mut path, client, name);
    }
}

/// How many requests of an honest client are answered beside a flood in the names of 2^20 others.
fn forged(path: &mut FastPath, client: &Client, name: &str) {
    let flood = Flood { rate: FORGED_RATE, is_forged: true };
    let (mut asked, mut answered) = (0.0, 0.0);
    let mut honest = || {
        let output = script(client, HONEST).arg(ROUND.as_secs().to_string()).output().expect("taskset and Python");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut numbers = said.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
        asked += numbers.next().expect("requests");
        answered += numbers.next().expect("replies");
    };
    let rounds: Vec<Round> = (0..rounds_each()).map(|_| round(path, client, &flood, &mut honest)).collect();
    report(&format!("XDP, {name}: CPU per reply, {FORGED_RATE}/s in the names of 2^20 addresses"), &rounds, None);
    line(
        &format!("XDP, {name}: share of honest requests answered meanwhile"),
        (answered / asked, ""),
        &format!("{answered} of {asked}"),
        Some(("value >= 0.99", answered / asked >= 0.99)),
    );
}

fn own_part(path: &mut FastPath, client: &Client, name: &str) {
    fs::write(STATISTICS, "1").expect("root");
    let (time, runs) = program_statistics();
    round(path, client, &Flood { rate: 0, is_forged: false }, || sleep(ROUND));
    let (time, runs) = (program_statistics().0 - time, program_statistics().1 - runs);
    fs::write(STATISTICS, "0").expect("root");
    line(&format!("XDP, {name}: the program's own time"), (time / runs, "ns"), &format!("{runs:.0} runs"), None);
}

fn report(name: &str, rounds: &[Round], goal: Option<f64>) {
    let costs: Vec<f64> = rounds.iter().map(|round| round.us_per_reply).collect();
    let (least, most) = (costs.iter().copied().fold(f64::MAX, f64::min), costs.iter().copied().fold(0.0, f64::max));
    let rate = median(rounds.iter().map(|round| round.replies_per_second).collect());
    let against = format!("{least:.2} to {most:.2} us in {} rounds at {:.0} k replies/s", rounds.len(), rate / 1e3);
    let value = median(costs);
    let met = goal.map(|goal| (format!("value <= {goal}"), value <= goal));
    line(name, (value, "us"), &against, met.as_ref().map(|(goal, met)| (goal.as_str(), *met)));
}

/// `goal`: its words, and whether it was met.
fn line(name: &str, (value, unit): (f64, &str), against: &str, goal: Option<(&str, bool)>) {
    let (shown, met) = match goal {
        Some((goal, met)) => (format!("\"{goal}\""), met.to_string()),
        None => ("null".to_owned(), "null".to_owned()),
    };
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.2},\"unit\":\"{unit}\",\"against\":\"{against}\",\"ratio\":null,\
         \"goal\":{shown},\"met\":{met}}}"
    );
}
