//! What live runs measure in addition: losses, round trips, priorities.

use crate::common::{FFCLOCK_LAB, analyse, free_port, has_namespaces, json, run_four};
use ffclock_theta::log::{EventColumns, EventReader, LogReader, WayInColumns};
use ffclock_theta::record::Event;
use std::path::Path;
use std::process::Command;

/// At D = 0 everything comes at once. What does not fit is counted, and with large buffers nothing is lost.
#[test]
fn nothing_is_lost_uncounted() {
    if !has_namespaces() {
        return;
    }
    let (output, place) = run_four("rush", 2000, &["--delay", "0 s"]);
    assert!(output.status.success(), "{output:?}");
    let summary = json(&output);
    let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary}"));
    assert_eq!(number("sent"), 16 * 2000);
    assert_eq!(number("sent"), number("perceived") + number("dropped") + number("lost"), "{summary}");
    assert_eq!(number("dropped"), 0, "{summary}");
    // Of each message two stamps of the kernel are logged, or counted as missing.
    assert_eq!(kernel_stamps(&place.log()) + number("unstamped"), number("sent") + number("perceived"), "{summary}");
    assert!(number("buffer_bytes") >= 32 << 20, "root may have it: {summary}");
    let (_, report, _) = analyse(&place.log(), &[]);
    assert_eq!(report["counts"]["unperceived"], summary["lost"], "{report}");
}

fn kernel_stamps(log: &str) -> u64 {
    let log = LogReader::open(Path::new(log)).expect("a log");
    let mut stamps = 0;
    for part in log.streams().iter().flat_map(|stream| &stream.parts) {
        let (mut reader, mut batch) =
            (EventReader::open(part, WayInColumns::Read).expect("whole"), EventColumns::default());
        while reader.next_batch(&mut batch).expect("whole") {
            let is_stamped = |event: Event| match event {
                Event::Transmission { .. } => true,
                Event::Perception { way_in, .. } => way_in.kernel.is_some(),
                Event::Broadcast { .. } | Event::Switch(_) => false,
            };
            stamps += reader.events(&batch).filter(|event| is_stamped(*event.as_ref().expect("whole"))).count() as u64;
        }
    }
    stamps
}

/// A link that holds one direction: round trips share that between both.
#[test]
fn round_trips_hide_what_one_way_delays_show() {
    if !has_namespaces() {
        return;
    }
    let hold = "kind = \"link-hold\", process = 0, receiver = 3, hold = \"40 ms\"";
    let (output, place) = run_four("round-trips", 200, &["--round-trips", "--fault", hold]);
    assert!(output.status.success(), "{output:?}");
    let summary = json(&output);
    assert_eq!(summary["replies"][0], summary["perceived"], "each message is answered: {summary}");
    let (is_well, report, said) = analyse(&place.log(), &[]);
    assert!(is_well, "{said}");
    let trips = &report["round_trips"];
    assert_eq!(
        trips["one_way"]["first"]["value"], report["first"]["omega"]["ratio"]["value"],
        "the same Omega: {report}"
    );
    let longest = |side: &str| trips[side]["delay_max_ps"].as_i64().unwrap_or_else(|| panic!("{trips}"));
    assert!(longest("one_way") >= 40_000_000_000, "{trips}");
    assert!(longest("averaged") < longest("one_way") * 3 / 4, "{trips}");
    assert!(trips["bias_all_percent"].as_f64() < Some(-20.0), "{trips}");
    let table = Command::new(FFCLOCK_LAB).args(["theta", "analyse", &place.log()]).output().expect("works in a test");
    assert!(String::from_utf8_lossy(&table.stdout).contains("averaged as in the paper"), "{table:?}");
}

/// Without the option no message is answered, and the analysis has no round trips.
#[test]
fn without_the_option_there_are_no_replies() {
    if !has_namespaces() {
        return;
    }
    let (output, place) = run_four("no-replies", 20, &[]);
    assert_eq!(json(&output)["replies"], serde_json::json!([0, 0]));
    assert!(analyse(&place.log(), &[]).1["round_trips"].is_null());
}

/// The paper's order: control above the algorithm, above loads on the network, above other loads.
#[test]
fn priorities_are_in_order_where_they_are_permitted() {
    if !has_namespaces() {
        return;
    }
    let is_permitted = Command::new("chrt").args(["-f", "10", "true"]).status().is_ok_and(|status| status.success());
    if !is_permitted {
        println!("SKIP: real-time priorities are not permitted here");
        return;
    }
    let loads = ["--load", "network=5", "--load", "timer=5", "--load-priority", "20"];
    let (output, place) = run_four("priorities", 100, &[&["--priority", "50"][..], &loads].concat());
    assert!(output.status.success(), "{output:?}");
    let summary = json(&output);
    assert_eq!(summary["priorities"], serde_json::json!(["fifo 50", "fifo 50", "fifo 50", "fifo 50"]));
    assert_eq!(summary["control_priority"], "fifo 51");
    let run = std::fs::read_to_string(place.0.join("run").join("run.json")).expect("works in a test");
    assert!(run.contains("fifo 51"), "{run}");
    assert_eq!(output.stderr, b"", "loads got theirs too");
}

#[test]
fn refused_priorities_are_reported() {
    let without_right = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--", FFCLOCK_LAB]).args(words);
        command.output().expect("works in a test")
    };
    let port = free_port().to_string();
    let alone = ["--json", "theta", "rank", "--rank", "0", "--size", "1", "--rounds", "5", "--priority", "50"];
    let output = without_right(&[&alone[..], &["--rendezvous", &format!("127.0.0.1:{port}")]].concat());
    assert!(output.status.success(), "{output:?}");
    let summary = json(&output);
    for priority in [&summary["priorities"][0], &summary["control_priority"]] {
        let priority = priority.as_str().unwrap_or_default();
        assert!(priority.starts_with("normal, because") && priority.contains("not permitted"), "{summary}");
    }
    let output = without_right(&["theta", "load", "timer", "--level", "5", "--for", "50 ms", "--priority", "9"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("normal, because"), "{output:?}");
}
