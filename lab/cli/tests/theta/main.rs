//! Live runs of `ffclock-lab theta`: real processes and real packets, on loopback and in network namespaces that end
//! with the test.
//!
//! What cannot run here says SKIP and why.

mod common;
mod daemons;
mod faults;
mod files;
mod hosts;
mod links;
mod measuring;
mod meeting;
#[path = "../system/programs.rs"]
#[expect(clippy::unwrap_used, reason = "a test that cannot build its programs has failed")]
mod programs;
mod softirqs;
mod ssh;
mod stopping;

use common::{FFCLOCK_LAB, Place, free_port, has, has_namespaces, json, judge};
use std::path::Path;
use std::process::Command;

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn namespaces_play_the_hosts() {
    if !has_namespaces() {
        return;
    }
    for (name, n, f, delay) in [("four", 4, 1, "1 ms"), ("seven", 7, 2, "0 s")] {
        let place = Place::new(name);
        let (size, tolerated) = (n.to_string(), f.to_string());
        let output = Command::new(FFCLOCK_LAB)
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
         {FFCLOCK_LAB} --json theta rank --f 1 --rounds 100 --patience '60 s' --limit '60 s' --log {}",
        place.log()
    );
    let output = Command::new("timeout")
        .args(["-k", "5", "120", "unshare", "--net", "sh", "-c", &mpirun])
        .output()
        .expect("works in a test");
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 100));
}

/// Loads run beside the ranks, end with them, and lose nothing uncounted.
#[test]
fn loads_run_beside_the_ranks() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("load");
    let output = Command::new(FFCLOCK_LAB)
        .args(["--json", "theta", "run", "--netns", "4", "--f", "1", "--rounds", "100", "--delay", "1 ms"])
        .args(["--limit", "60 s", "--log", &place.log(), "--load-priority", "1"])
        .args([
            "--load",
            "network=30",
            "--load",
            "traffic=30",
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
fn wrong_usage_is_reported() {
    for (words, part) in [
        (&["theta", "run", "--netns", "6", "--f", "2"][..], "at least 3f + 1 = 7"),
        (&["theta", "run"], "--netns"),
        (&["theta", "run", "--hosts=-x,b,c,d", "--f", "1"], "no host"),
        (&["theta", "run", "--netns", "4", "--load", "timer=200"], "per cent"),
        (&["theta", "run", "--netns", "4", "--load", "heat=20"], "heat"),
        (&["theta", "run", "--netns", "4", "--link-rate", "0"], "is no rate"),
        (&["theta", "run", "--hosts=a,b,c,d", "--link-rate", "100"], "cannot be used with"),
        (&["theta", "run", "--hosts=a,b,c,d", "--softirq-priority", "9"], "cannot be used with"),
        (&["theta", "rank"], "mpirun"),
        (&["theta", "rank", "--rank", "4", "--size", "4"], "not below"),
        (&["theta", "rank", "--rank", "1", "--size", "3", "--f", "1"], "at least 3f + 1 = 4"),
    ] {
        let output = Command::new(FFCLOCK_LAB).args(words).env_clear().output().expect("works in a test");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {output:?}");
        assert!(said.contains(part), "{words:?}: {said}");
    }
}

/// The shipped manifest holds only options that the command understands.
#[test]
fn the_manifest_is_understood() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kubernetes/theta.yaml");
    let text = std::fs::read_to_string(manifest).expect("it is shipped");
    let words = text.lines().filter_map(|line| line.trim().strip_prefix("- --")).map(|word| format!("--{word}"));
    let words: Vec<String> = words
        .map(|word| match word.split_once('=') {
            Some(("--rendezvous", _)) => format!("--rendezvous=127.0.0.1:{}", free_port()),
            Some(("--patience", _)) => "--patience=100 ms".to_owned(),
            _ => word,
        })
        .collect();
    assert!(words.len() >= 7, "{words:?}");
    let output = Command::new(FFCLOCK_LAB)
        .args(["theta", "rank"])
        .args(&words)
        .env("JOB_COMPLETION_INDEX", "1")
        .output()
        .expect("works in a test");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("rank 1 of 4: meeting rank 0 at"), "{said}");
}
