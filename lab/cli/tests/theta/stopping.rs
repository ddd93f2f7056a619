//! Runs that end before their last round: at their limit, because a rank dies or hangs, because rank 0 is gone.
//!
//! Each with a delay D between rounds and without one, where every message is the cause of the next.

use crate::common::{FFCLOCK_LAB, HOSTS, Place, Ranks, analyse, bridged, free_port, has_namespaces, json, run_four};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const DELAYS: [&str; 2] = ["1 ms", "0 s"];
/// More rounds than any test has the time for.
const ENDLESS: u64 = 100_000_000;

/// A run without an end of its own.
fn endless(log: &str, delay: &str, more: &[&str]) -> Ranks {
    let rounds = ENDLESS.to_string();
    let ranks =
        Ranks::start(free_port(), 0..4, &[&["--rounds", &rounds, "--delay", delay, "--log", log], more].concat());
    ranks.wait_until_running(2);
    ranks
}

/// What went wrong, by the summary of a run that was not whole.
fn failures(output: &Output) -> Vec<String> {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let texts = json(output)["failures"].as_array().cloned().unwrap_or_default();
    texts.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The log is marked as incomplete, and holds the events of the given number of ranks.
fn judge_rest(log: &str, ranks: usize) {
    let run = std::fs::read_to_string(Path::new(log).join("run.json")).expect("works in a test");
    assert!(run.contains("\"complete\": false"), "{run}");
    let (is_well, report, said) = analyse(log, &[]);
    assert!(!is_well && report["whole"] == false && said.to_lowercase().contains("partial"), "{said} {report}");
    assert!(report["counts"]["messages"].as_u64() > Some(100), "{report}");
    // The log does not show whether messages from a rank without a log were sent.
    assert!(ranks < 4 || report["conformance"]["breaches"] == 0, "{report}");
    let missing = report["remarks"].to_string().matches("left no events").count();
    assert_eq!(missing, 4 - ranks, "{report}");
}

#[test]
fn a_run_ends_at_its_limit_and_keeps_its_log() {
    if !has_namespaces() {
        return;
    }
    for delay in DELAYS {
        let (output, place) = run_four("limit", ENDLESS, &["--limit", "2 s", "--delay", delay]);
        let failures = failures(&output);
        assert!(failures.len() == 1 && failures[0].contains("the limit is over"), "{delay}: {failures:?}");
        judge_rest(&place.log(), 4);
    }
}

/// One that has all it needs from itself never finds its socket empty.
#[test]
fn a_process_that_is_never_idle_is_stopped() {
    let place = Place::new("alone");
    let output = Command::new("timeout")
        .args(["-k", "5", "60", FFCLOCK_LAB, "--json", "theta", "rank", "--rank", "0", "--size", "1", "--limit", "1 s"])
        .args(["--rounds", &ENDLESS.to_string(), "--log", &place.log()])
        .args(["--rendezvous", &format!("127.0.0.1:{}", free_port())])
        .output()
        .expect("works in a test");
    let failures = failures(&output);
    assert!(failures.len() == 1 && failures[0].contains("the limit is over"), "{failures:?}");
    assert!(analyse(&place.log(), &[]).1["counts"]["messages"].as_u64() > Some(100));
}

#[test]
fn a_rank_that_dies_is_named_and_the_rest_kept() {
    for delay in DELAYS {
        let place = Place::new("death");
        let mut ranks = endless(&place.log(), delay, &[]);
        ranks.0[2].kill().expect("works in a test");
        let failures = failures(&ranks.end());
        assert!(failures.len() == 1 && failures[0].contains("rank 2 on "), "{delay}: {failures:?}");
        assert!(failures[0].contains("died"), "{failures:?}");
        judge_rest(&place.log(), 3);
    }
}

/// A rank that stands still is named within seconds, and the others' events are kept.
#[test]
fn a_rank_that_hangs_is_named() {
    for delay in DELAYS {
        let place = Place::new("hang");
        let mut ranks = endless(&place.log(), delay, &["--limit", "4 s"]);
        signal(&ranks, 2, "-STOP");
        let failures = failures(&ranks.end());
        assert!(failures.len() == 2 && failures[0].contains("the limit is over"), "{delay}: {failures:?}");
        assert!(failures[1].contains("rank 2 on ") && failures[1].contains("it hangs"), "{delay}: {failures:?}");
        judge_rest(&place.log(), 3);
    }
}

fn signal(ranks: &Ranks, rank: usize, signal: &str) {
    let sent = Command::new("kill").args([signal, &ranks.0[rank].id().to_string()]).status();
    assert!(sent.expect("works in a test").success());
}

/// Rank 1 has ended with this complaint.
fn judge_orphan(output: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("rank 1 of 4") && words.iter().all(|word| said.contains(word)), "{said}");
}

/// Every rank that is left when rank 0 dies ends and says so.
#[test]
fn ranks_do_not_outlive_rank_0() {
    let place = Place::new("orphans");
    for delay in DELAYS {
        let mut ranks = endless(&place.log(), delay, &[]);
        ranks.0[0].kill().expect("works in a test");
        ranks.0.remove(0).wait().expect("works in a test");
        judge_orphan(&ranks.end(), &["rank 0", "died"]);
    }
}

/// Rank 0 stands still: it can say neither that the run is over nor that it is gone.
#[test]
fn ranks_do_not_wait_for_a_rank_0_that_hangs() {
    let place = Place::new("hang-0");
    let mut ranks = endless(&place.log(), "1 ms", &["--limit", "2 s"]);
    signal(&ranks, 0, "-STOP");
    let rank_0 = ranks.0.remove(0);
    let output = ranks.end();
    ranks.0.push(rank_0);
    judge_orphan(&output, &["rank 0", "the limit of 2 s"]);
}

/// The host of rank 0 leaves the network silently: no rank waits for the end of the limit.
#[test]
fn a_host_that_vanishes_is_noticed() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("vanished");
    let run = format!(
        r#"rank=0
        for host in {hosts}; do
            nsenter --target $(cat bin/holder-$host) --net --uts {FFCLOCK_LAB} --json theta rank --rank $rank --size 4 --f 1 \
                --rounds {ENDLESS} --delay "1 ms" --limit "90 s" --rendezvous {rank_0}:9217 --counter monotonic-raw \
                --log {log} > said$rank 2> complained$rank &
            eval "rank_$rank=$!"
            rank=$((rank + 1))
        done
        sleep 3
        ip link set port1 nomaster
        for rank in 1 2 3; do eval "wait \$rank_$rank" && exit 9; done
        wait $rank_0 && exit 9
        exit 0"#,
        hosts = HOSTS.join(" "),
        rank_0 = HOSTS[0],
        log = place.log(),
    );
    let begun = Instant::now();
    let output = bridged(&place, &HOSTS, &run);
    let took = begun.elapsed();
    let said = |name: &str| std::fs::read_to_string(place.0.join(name)).unwrap_or_default();
    assert!(output.status.success(), "{output:?} {} {}", said("complained0"), said("complained1"));
    assert!(took < Duration::from_secs(60), "{took:?}");
    for rank in 1..4 {
        let complaint = said(&format!("complained{rank}"));
        assert!(complaint.contains(&format!("rank {rank} of 4: rank 0: ")), "{complaint}");
    }
    let failures = said("said0");
    assert!((1..4).all(|rank| failures.contains(&format!("rank {rank} on node{}: ", rank + 1))), "{failures}");
    judge_rest(&place.log(), 1);
}

/// What a rank has no room for is counted as such, in the summary, in the log, and by the analysis.
#[test]
fn what_is_not_recorded_is_counted() {
    if !has_namespaces() {
        return;
    }
    let (output, place) = run_four("room", 100, &["--events", "300", "--round-trips"]);
    let failures = failures(&output);
    assert_eq!(failures.len(), 4, "{failures:?}");
    assert!(failures.iter().any(|failure| failure.contains("rank 2 on host2 had no room for")), "{failures:?}");
    let summary = json(&output);
    let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"));
    // In 100 rounds a rank broadcasts 100 times, sends and perceives 400 messages and switches up to 100 times; and it
    // has 400 replies. What the kernel did not stamp is no event.
    let unrecorded = number("unrecorded");
    assert!(unrecorded + number("unstamped") > 4 * (900 - 300 + 400 - 300), "{summary}");
    assert!(unrecorded <= 4 * (1000 - 300 + 400 - 300), "{summary}");
    let run = std::fs::read_to_string(Path::new(&place.log()).join("run.json")).expect("works in a test");
    assert!(run.contains(&format!("\"unrecorded\": {unrecorded}")), "{run}");
    let (is_well, report, _) = analyse(&place.log(), &[]);
    let remark = format!("{unrecorded} events were lost by the recorder");
    assert!(!is_well && report["remarks"].to_string().contains(&remark), "{report}");
}
