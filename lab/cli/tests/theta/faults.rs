//! Injected faults in live runs, with the keys of simulated ones.

use crate::common::{FFCLOCK_LAB, Ranks, analyse, events, free_port, has_namespaces, json, run_four};
use ffclock_theta::log::{LogReader, WayInColumns};
use ffclock_theta::record::{Event, WayIn};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A run with one fault; the summary and what the analysis says.
fn faulty(name: &str, fault: &str) -> (Value, Value) {
    let (output, place) = run_four(name, 200, &["--fault", fault]);
    assert!(output.status.success(), "{fault}: {output:?}");
    let (is_well, report, said) = analyse(&place.log(), &[]);
    assert!(is_well, "{fault}: {said}");
    assert_eq!(report["conformance"]["breaches"], 0, "{fault}");
    let summary = json(&output);
    // A message that was not perceived was lost by an injected fault, or still held when the run ended.
    let missing = count(&summary, "lost") + count(&summary, "never_released");
    assert_eq!(report["counts"]["unperceived"].as_u64(), Some(missing), "{fault}: {report}");
    (summary, report)
}

fn count(summary: &Value, what: &str) -> u64 {
    summary["injected"][what].as_u64().unwrap_or_else(|| panic!("{what}: {summary}"))
}

/// The others come to the end, the faulty one's messages do not count, and what it did is counted.
#[test]
fn one_faulty_process_does_not_stop_the_others() {
    if !has_namespaces() {
        return;
    }
    for (kind, more, what) in [
        ("crash", ", from = \"50 ms\"", "missed"),
        ("late-start", ", from = \"50 ms\"", "missed"),
        ("silence", "", "untrue"),
        ("two-faced", "", "untrue"),
        ("early-messages", "", "untrue"),
        ("replay", "", "untrue"),
    ] {
        let (summary, report) = faulty(kind, &format!("kind = \"{kind}\", process = 2{more}"));
        assert!(count(&summary, what) > 50, "{kind}: {summary}");
        assert_eq!(summary["least_round"], 201, "{kind}: {summary}");
        assert_eq!(summary["lost"], 0, "{kind}: {summary}");
        assert_eq!(report["correct"], 3, "{kind}");
        assert_eq!(report["counts"]["messages"], 3 * 3 * 200, "{kind}");
    }
}

/// Two machines under one name send twice as much, and no process stops.
#[test]
fn a_duplicate_identity_speaks_twice() {
    if !has_namespaces() {
        return;
    }
    let (summary, _) = faulty("twin", "kind = \"duplicate-identity\", process = 2");
    assert!(summary["sent"].as_u64() > Some(16 * 200 + 700), "{summary}");
    assert_eq!(summary["least_round"], 201, "{summary}");
}

#[test]
fn links_lose_double_and_hold() {
    if !has_namespaces() {
        return;
    }
    // What is missed is not sent again: so only one link loses, and only for a while.
    let (lossy, report) = faulty("loss", "kind = \"link-loss\", process = 1, receiver = 0, until = \"60 ms\"");
    assert!(count(&lossy, "lost") > 10, "{lossy}");
    assert!(report["counts"]["unperceived"].as_u64() >= Some(count(&lossy, "lost")));
    let (doubled, report) = faulty("double", "kind = \"link-duplication\", probability = 0.3");
    assert!(count(&doubled, "duplicated") > 300, "{doubled}");
    assert_eq!(report["counts"]["duplicates"].as_u64(), Some(count(&doubled, "duplicated")));
    let (held, report) = faulty("hold", "kind = \"link-hold\", process = 1, receiver = 3, hold = \"3 ms\"");
    // The last may still be held at the end.
    assert!(count(&held, "held") >= 200 - 5, "{held}");
    assert!(report["delay_max_ps"].as_i64() > Some(3_000_000_000), "{report}");
}

/// Across a partition nothing passes until it ends; then every process goes on.
#[test]
fn a_partition_ends() {
    if !has_namespaces() {
        return;
    }
    let fault = "kind = \"partition\", group = [0, 1], from = \"50 ms\", until = \"200 ms\"";
    let (summary, report) = faulty("partition", fault);
    assert!(count(&summary, "held") > 4, "{summary}");
    assert!(report["delay_max_ps"].as_i64() > Some(100_000_000_000), "{report}");
    assert_eq!(summary["least_round"], 201, "{summary}");
}

/// From the return of the receive call to the perception a slow host takes many times as long as others.
#[test]
fn a_slow_host_takes_longer() {
    if !has_namespaces() {
        return;
    }
    let fault = "kind = \"slow-host\", host = 1, factor = 100.0";
    let (output, place) = run_four("slow", 200, &["--fault", fault]);
    assert!(output.status.success(), "{output:?}");
    // Its own four messages a round, and no other's.
    let summary = json(&output);
    assert_eq!(count(&summary, "slowed"), 4 * 200, "{summary}");
    let log = LogReader::open(Path::new(&place.log())).expect("a whole log");
    let mut taken = vec![vec![]; 4];
    for event in events(&log, WayInColumns::Read) {
        if let Event::Perception { process, at, way_in: WayIn { received: Some(received), .. }, .. } = event {
            taken[process.index()].push((at - received).raw());
        }
    }
    let medians: Vec<i64> = taken.iter_mut().map(|ticks| *ticks.select_nth_unstable(4 * 200 / 2).1).collect();
    let others = medians[0].max(medians[2]).max(medians[3]);
    assert!(medians[1] > 20 * others, "ticks from the receive call to the perception, by process: {medians:?}");
}

/// A measuring clock beyond its bound is found and named: by itself if it moves during the run, by causality if it was
/// wrong all the time.
#[test]
fn a_lying_clock_is_named() {
    if !has_namespaces() {
        return;
    }
    for (name, fault) in [
        ("step", "kind = \"clock-step\", host = 1, step = \"5 ms\", from = \"100 ms\""),
        ("always", "kind = \"clock-step\", host = 1, step = \"-40 ms\""),
        ("drift", "kind = \"clock-drift\", host = 1, rate = \"9000 ppm\", from = \"100 ms\""),
        ("drifting", "kind = \"clock-drift\", host = 1, rate = \"-10000 ppm\""),
    ] {
        let (output, place) = run_four(name, 1000, &["--fault", fault]);
        assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
        let failures = json(&output)["failures"].to_string();
        assert!(failures.contains("the clock of host host1 broke its bound"), "{fault}: {failures}");
        let (is_well, report, said) = analyse(&place.log(), &["--certify"]);
        assert!(!is_well && report["whole"] == false, "{fault}: {report}");
        assert!(said.contains("the clock of host host1 broke its bound"), "{fault}: {said}");
    }
}

#[test]
fn faults_that_make_no_sense_are_reported() {
    for (fault, part) in [
        ("kind = \"heat\"", "heat"),
        ("kind = \"crash\", process = 7", "there is no process 7"),
        ("kind = \"crash\"", "process is missing"),
        ("kind = \"crash\", process = 1, hold = \"1 ms\"", "hold means nothing"),
        ("process = 1", "kind"),
    ] {
        for words in
            [&["theta", "run", "--netns", "4", "--f", "1"][..], &["theta", "rank", "--rank", "1", "--size", "4"]]
        {
            let output =
                Command::new(FFCLOCK_LAB).args(words).args(["--fault", fault]).output().expect("works in a test");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{fault}: {output:?}");
            assert!(said.contains(part), "{fault}: {said}");
        }
    }
    // The simulator has the same reader.
    let output =
        Command::new(FFCLOCK_LAB).args(["theta", "simulate", "--fault", "kind = \"crash\", process = 7"]).output();
    let said = String::from_utf8_lossy(&output.expect("works in a test").stderr).into_owned();
    assert!(said.contains("there is no process 7"), "{said}");
}

/// All ranks on loopback are one host: another has no clock to lie with.
#[test]
fn a_fault_of_a_host_that_is_not_there_is_reported() {
    let mut ranks = Ranks::start(free_port(), 0..4, &["--fault", "kind = \"clock-step\", host = 2, step = \"1 ms\""]);
    let output = ranks.end();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("there is no host 2: they are 0 to 0"), "{said}");
}
