//! Several kernels: four guests of user-mode Linux, each with a raw counter of its own rate, an `ffclockd` and a page,
//! and this host between them, which sees each message at both taps (`tests/uml/theta`).
//!
//! A program of tests of its own, and one run after the other: four kernels take all that a small machine has.

#[path = "../theta/common.rs"]
#[expect(dead_code, reason = "the live runs use the rest")]
mod common;
#[path = "../system/programs.rs"]
#[expect(clippy::unwrap_used, reason = "a test that cannot build its programs has failed")]
mod programs;

use common::{FFCLOCK_LAB, Place, json};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Held by the run that has the machine.
static MACHINE: Mutex<()> = Mutex::new(());

/// The exit code of tests/uml/theta where no guests can be had.
const SKIPPED: i32 = 77;

/// A run of some seconds, which is ended where it takes minutes.
fn run_once(place: &Place, words: &[&str]) -> Output {
    Command::new("timeout")
        .args(["-k", "5", "150"])
        .arg(root().join("tests/uml/theta"))
        .arg(&place.0)
        .args(words)
        .env("FFCLOCK_BIN", programs::directory())
        .env("ROUNDS", "300")
        .output()
        .expect("works in a test")
}

/// The same, a second time where a busy host let it hang; none where the machine cannot, for a reason that is printed.
fn run_guests(place: &Place, words: &[&str]) -> Option<Output> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut output = run_once(place, words);
    if output.status.code().is_none() {
        println!("the guests did not come to an end within 150 s, and are run a second time");
        std::fs::remove_dir_all(&place.0).and_then(|()| std::fs::create_dir_all(&place.0)).expect("works in a test");
        output = run_once(place, words);
    }
    if output.status.code() == Some(SKIPPED) {
        print!("{}", String::from_utf8_lossy(&output.stdout));
        return None;
    }
    Some(output)
}

/// The log against the captures of the four links.
fn taps(place: &Place) -> Output {
    let tap = |guest| format!("--tap=guest{guest}={}/guest{guest}.pcap", place.0.display());
    let taps = (1..=4).map(tap);
    Command::new(FFCLOCK_LAB)
        .args(["--json", "theta", "taps", &place.log()])
        .args(taps)
        .output()
        .expect("works in a test")
}

#[test]
fn four_kernels_agree_with_the_taps_between_them() {
    let place = Place::new("guests");
    let Some(output) = run_guests(&place, &[]) else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    let summary = std::fs::read_to_string(place.0.join("summary.json")).unwrap_or_default();
    assert!(output.status.success() && summary.contains("\"failures\":[]"), "{said}{summary}");

    let output = taps(&place);
    assert!(output.status.success(), "{output:?}");
    let check = json(&output);
    // Of four processes, three hear each message over a link; a host that is behind may miss the last rounds.
    let messages = check["messages"].as_u64().unwrap_or(0);
    assert!(messages >= 3000, "{check}");
    assert_eq!((check["departures"].as_u64(), check["arrivals"].as_u64()), (Some(messages), Some(messages)), "{check}");
    let bound = |by: &str, side: &str| check[by]["first"][side]["value"].as_f64().unwrap_or_else(|| panic!("{check}"));
    let (low, high) = (bound("promised", "low"), bound("promised", "high"));
    println!(
        "Omega between {low:.2} and {high:.2} by the pages, {:.2} and {:.2} by the taps",
        bound("seen", "low"),
        bound("seen", "high")
    );
    assert!(low <= bound("seen", "high") && bound("seen", "low") <= high, "{check}");
    // The pages do promise something, and the messages make it tighter than a guess.
    let apart = check["promised"]["half_width_max_ps"].as_i64().unwrap_or(0);
    assert!(0 < apart && apart < 20_000_000_000, "{check}");

    let run_file = Path::new(&place.log()).join("run.json");
    let text = std::fs::read_to_string(&run_file).expect("works in a test");
    assert!(text.contains(r#""unrecorded": 0"#), "{text}");
    std::fs::write(&run_file, text.replace(r#""unrecorded": 0"#, r#""unrecorded": 3"#)).expect("works in a test");
    let output = taps(&place);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("3 events were lost by the recorder"), "{said}");
}

/// The third guest's counter jumps by 10 ms during the run: its page goes on from the reading before. A step shorter
/// than the fastest messages of all links but one has two explanations, and is no test of the name.
#[test]
fn a_guest_whose_clock_is_stepped_is_named() {
    let place = Place::new("stepped-guest");
    let Some(output) = run_guests(&place, &["stepped"]) else { return };
    let summary = std::fs::read_to_string(place.0.join("summary.json")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(summary.contains("the clock of host guest3 broke its bound"), "{summary}");
    let output = taps(&place);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("the clock of host guest3 broke its bound"), "{said}");
}

/// What is no host, no capture, or a capture of something else is named before anything is compared.
#[test]
fn captures_that_say_nothing_are_named() {
    let place = Place::new("no-taps");
    let lab = |words: &[&str]| Command::new(FFCLOCK_LAB).arg("theta").args(words).output().expect("works in a test");
    let simulated = lab(&["simulate", "--n", "4", "--f", "1", "--rounds", "10", "--log", &place.log()]);
    assert!(simulated.status.success(), "{simulated:?}");
    // The header of a capture without packets; and half of one.
    let header = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    let (empty, cut) = (place.0.join("empty.pcap"), place.0.join("cut.pcap"));
    std::fs::write(&empty, header).expect("works in a test");
    std::fs::write(&cut, &header[..10]).expect("works in a test");
    for (tap, code, part) in [
        (format!("elsewhere={}", empty.display()), 2, "the log has no such host"),
        ("host0".to_owned(), 2, "is no HOST=CAPTURE"),
        (format!("host0={}", empty.display()), 1, "empty.pcap: holds no message of a run"),
        (format!("host0={}", cut.display()), 1, "cut.pcap: "),
        ("host0=/nowhere".to_owned(), 1, "/nowhere: "),
    ] {
        let output = lab(&["taps", &place.log(), "--tap", &tap]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{tap}: {output:?}");
        assert!(said.contains(part), "{tap}: {said}");
    }
}
