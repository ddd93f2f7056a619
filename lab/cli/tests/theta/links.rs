//! Links with a rate, and the kernel's threads for soft interrupts above everything: the network of the paper.

use crate::common::{FFCLOCK_LAB, Place, analyse, has_namespaces, json, judge, run_four};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A round is three messages to other hosts, of at least 50 bytes each with their headers. Of 200 rounds a link that
/// lets 8192 bytes pass at once has to hold back the rest, so that some third message waits for its turn, twice.
#[test]
fn a_link_with_a_rate_makes_messages_wait() {
    if !has_namespaces() {
        return;
    }
    let (output, place) = run_four("rate", 200, &["--delay", "0 s", "--link-rate", "0.5"]);
    if String::from_utf8_lossy(&output.stderr).contains("sch_tbf") {
        println!("SKIP: this kernel gives links no rate (sch_tbf)");
        return;
    }
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 200));
    let (_, report, _) = analyse(&place.log(), &[]);
    let turn_ps = 50 * 8 * 2_000_000;
    assert!(report["delay_max_ps"].as_i64() >= Some(3 * turn_ps), "{report}");
}

/// Each ksoftirqd and its policy: 0 is normal, 1 first in first out.
fn policies() -> Vec<(u32, String)> {
    let entries = std::fs::read_dir("/proc").expect("Linux");
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let policy = |number: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let (name, rest) = stat.rsplit_once(") ")?;
        name.contains("(ksoftirqd/").then(|| (number, rest.split(' ').nth(38).unwrap_or_default().to_owned()))
    };
    numbers.filter_map(policy).collect()
}

fn wait_for(wanted: &str, child: &mut Child) {
    let begun = Instant::now();
    while policies().iter().any(|(_, policy)| policy != wanted) {
        assert!(begun.elapsed() < Duration::from_secs(30), "not {wanted}: {:?} {:?}", policies(), child.try_wait());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Also when the run is killed and can do nothing more about it.
#[test]
fn soft_interrupts_get_a_priority_and_lose_it_again() {
    let found = policies();
    let is_permitted = Command::new("chrt").args(["-f", "10", "true"]).status().is_ok_and(|status| status.success());
    if !has_namespaces() || !is_permitted || found.is_empty() || found.iter().any(|(_, policy)| policy != "0") {
        println!("SKIP: no ksoftirqd with normal priority here that may be changed: {found:?}");
        return;
    }
    let place = Place::new("softirqs");
    let mut run = Command::new(FFCLOCK_LAB)
        .args(["theta", "run", "--netns", "4", "--f", "1", "--rounds", "100000", "--delay", "1 ms", "--limit", "60 s"])
        .args(["--softirq-priority", "5", "--log", &place.log()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("works in a test");
    wait_for("1", &mut run);
    run.kill().expect("works in a test");
    run.wait().expect("works in a test");
    wait_for("0", &mut run);
    let (output, _place) = run_four("softirqs-end", 20, &["--softirq-priority", "5"]);
    assert!(output.status.success(), "{output:?}");
    assert!(policies().iter().all(|(_, policy)| policy == "0"), "{:?}", policies());
}
