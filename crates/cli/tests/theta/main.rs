//! Live runs of `ffclock theta`: real processes and real packets, on loopback and in network namespaces that end with the test.
//!
//! What cannot run here says SKIP and why.

mod files;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const FFCLOCK: &str = env!("CARGO_BIN_EXE_ffclock");

/// A directory of the test's own.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ffclock-theta-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("works in a test");
        Place(path)
    }

    fn log(&self) -> String {
        self.0.join("run").display().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether namespaces can be made here.
fn has_namespaces() -> bool {
    let made = Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"]).output();
    let has = made.is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP: no network namespaces here (root is needed)");
    }
    has
}

fn has(program: &str) -> bool {
    let has = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP: {program} is not installed (make setup)");
    }
    has
}

fn json(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim()).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The log is whole, everything in it keeps the rules, and nothing that was sent is missing.
fn judge(summary: &serde_json::Value, log: &str, (size, rounds): (u64, u64)) {
    assert_eq!(summary["failures"], serde_json::json!([]), "{summary}");
    assert_eq!(summary["sent"], size * size * rounds, "{summary}");
    assert_eq!(summary["perceived"], summary["sent"], "{summary}");
    let analysed = Command::new(FFCLOCK).args(["theta", "analyse", log]).output().expect("works in a test");
    assert!(analysed.status.success(), "{analysed:?}");
    let text = String::from_utf8_lossy(&analysed.stdout);
    assert!(text.contains(&format!("{} messages counted, 0 never perceived", size * size * rounds)), "{text}");
    assert!(text.contains(" 0 breaches"), "{text}");
}

#[test]
fn namespaces_play_the_hosts() {
    if !has_namespaces() {
        return;
    }
    for (name, n, f, delay) in [("four", 4, 1, "1 ms"), ("seven", 7, 2, "0 s")] {
        let place = Place::new(name);
        let (size, tolerated) = (n.to_string(), f.to_string());
        let output = Command::new(FFCLOCK)
            .args(["--json", "theta", "run", "--netns", &size, "--f", &tolerated, "--rounds", "100"])
            .args(["--delay", delay, "--limit", "60 s", "--log", &place.log()])
            .output()
            .expect("works in a test");
        assert!(output.status.success(), "{output:?}");
        judge(&json(&output), &place.log(), (n, 100));
    }
}

/// Ranks by `mpirun`, in a namespace of their own: whatever they send stays in it.
#[test]
fn mpirun_starts_the_ranks() {
    if !has_namespaces() || !has("mpirun") {
        return;
    }
    let place = Place::new("mpirun");
    let mpirun = format!(
        "ip link set lo up && exec mpirun --allow-run-as-root --oversubscribe --mca btl self --mca oob_tcp_if_include lo -n 4 \
         {FFCLOCK} --json theta rank --f 1 --rounds 100 --patience '60 s' --limit '60 s' --log {}",
        place.log()
    );
    let output = Command::new("timeout")
        .args(["-k", "5", "120", "unshare", "--net", "sh", "-c", &mpirun])
        .output()
        .expect("works in a test");
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 100));
}

/// Four ranks on loopback, started by hand.
struct Ranks(Vec<Child>);

impl Ranks {
    fn start(port: u16, ranks: std::ops::Range<u32>, more: &[&str]) -> Self {
        let start = |rank: u32| {
            Command::new(FFCLOCK)
                .args(["--json", "theta", "rank", "--size", "4", "--f", "1", "--rank", &rank.to_string()])
                .args(["--rendezvous", &format!("127.0.0.1:{port}")])
                .args(more)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("works in a test")
        };
        Ranks(ranks.map(start).collect())
    }

    /// A rank has a second thread, its timer, once all have met.
    fn wait_until_running(&self, rank: usize) {
        let status = format!("/proc/{}/status", self.0[rank].id());
        let begun = Instant::now();
        while !std::fs::read_to_string(&status).unwrap_or_default().contains("Threads:\t2") {
            assert!(begun.elapsed() < Duration::from_secs(60), "the ranks do not meet");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
    }

    /// Rank 0's end, which must come.
    fn end(&mut self) -> Output {
        let begun = Instant::now();
        while self.0[0].try_wait().expect("works in a test").is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "rank 0 hangs");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.0.remove(0).wait_with_output().expect("works in a test")
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").expect("works in a test").local_addr().expect("works in a test").port()
}

#[test]
fn a_rank_that_dies_is_named_and_the_rest_kept() {
    let place = Place::new("death");
    let log = place.log();
    let mut ranks = Ranks::start(free_port(), 0..4, &["--rounds", "1000000", "--delay", "1 ms", "--log", &log]);
    ranks.wait_until_running(2);
    ranks.0[2].kill().expect("works in a test");
    let output = ranks.end();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let failures = json(&output)["failures"].to_string();
    assert!(failures.contains("rank 2 on ") && failures.contains("died"), "{failures}");
    let run = std::fs::read_to_string(Path::new(&log).join("run.json")).expect("works in a test");
    assert!(run.contains("\"complete\": false"), "{run}");
    let analysed = Command::new(FFCLOCK).args(["theta", "analyse", &log]).output().expect("works in a test");
    let told = String::from_utf8_lossy(&analysed.stdout).to_lowercase()
        + &String::from_utf8_lossy(&analysed.stderr).to_lowercase();
    assert!(told.contains("partial") || told.contains("did not come to the end"), "{analysed:?}");
}

#[test]
fn ranks_that_stay_away_are_named() {
    let mut ranks = Ranks::start(free_port(), 0..3, &["--patience", "2 s"]);
    let output = ranks.end();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("only 3 of 4 ranks came") && said.contains("missing: [3]"), "{said}");
}

/// Loads run beside the ranks, end with them, and lose nothing uncounted.
#[test]
fn loads_run_beside_the_ranks() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("load");
    let output = Command::new(FFCLOCK)
        .args(["--json", "theta", "run", "--netns", "4", "--f", "1", "--rounds", "100", "--delay", "1 ms"])
        .args(["--limit", "60 s", "--log", &place.log(), "--load-priority", "1"])
        .args([
            "--load",
            "network=30",
            "--load",
            "timer=jumps:10..50",
            "--load",
            "processor=ramp:0..20",
            "--load",
            "disk=10",
        ])
        .output()
        .expect("ffclock runs");
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 100));
}

#[test]
fn wrong_usage_is_told() {
    for (words, part) in [
        (&["theta", "run", "--netns", "6", "--f", "2"][..], "at least 3f + 1 = 7"),
        (&["theta", "run"], "--netns"),
        (&["theta", "run", "--hosts=-x,b,c,d", "--f", "1"], "no host"),
        (&["theta", "run", "--netns", "4", "--load", "timer=200"], "per cent"),
        (&["theta", "run", "--netns", "4", "--load", "heat=20"], "heat"),
        (&["theta", "rank"], "mpirun"),
        (&["theta", "rank", "--rank", "4", "--size", "4"], "not below"),
        (&["theta", "rank", "--rank", "1", "--size", "3", "--f", "1"], "at least 3f + 1 = 4"),
    ] {
        let output = Command::new(FFCLOCK).args(words).env_clear().output().expect("works in a test");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}
