//! Golden traces: what `ffclock-lab replay` reports of them is the same bit for bit, and within limits that were set by
//! hand.
//!
//! A directory of tests/golden holds a trace (`trace.*`), the accepted results of each estimator (`expected-NAME.json`,
//! `expected-NAME.csv`), and `limits.json`, the ranges that hold whatever is expected: a clock that got worse cannot be
//! accepted by rewriting its expected figures. Where the trace was generated, the test generates it again, requires the
//! same bytes, and judges each row of the output by the truth that only the generator knows, in its own integers.
//!
//! After a deliberate change of the estimator: `tools/golden`, and look at the difference.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its own data has failed")]

mod formats;
mod judge;
mod limits;
mod trace;
mod world;
mod worlds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::Trace;

/// A test for each directory of tests/golden.
macro_rules! goldens {
    ($($test:ident = $name:literal),+ $(,)?) => {
        /// The directories that are tested.
        const NAMES: &[&str] = &[$($name),+];
        $(#[test]
        fn $test() {
            check($name);
        })+
    };
}

goldens! {
    quiet_lan = "quiet-lan",
    far_path = "far-path",
    level_shifts = "level-shifts",
    outage = "outage",
    server_lie = "server-lie",
    poll_changes = "poll-changes",
    hpet = "hpet",
    losses = "losses",
    identity_flap = "identity-flap",
    leap_second = "leap-second",
    warm_room = "warm-room",
    counter_epochs = "counter-epochs",
    recorded_kernel = "recorded-kernel",
    recorded_user = "recorded-user",
    recorded_chrony = "recorded-chrony",
}

/// Each trace is replayed with both.
const ESTIMATORS: [&str; 2] = ["learned", "classic"];

/// What a replay printed and wrote.
pub struct Replayed {
    /// The report, without the one figure that is not the same at every run.
    pub report: String,
    /// The clock after each exchange.
    pub rows: String,
}

/// `ffclock-lab replay --json --output ... ARGUMENTS`.
pub fn replay(name: &str, arguments: &[&str]) -> Replayed {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{name}.csv"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_ffclock-lab"));
    let ended = command.args(["replay", "--json", "--output"]).arg(&output).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{name}: {errors}");
    let report = without_speed(&String::from_utf8(ended.stdout).unwrap());
    Replayed { report, rows: fs::read_to_string(output).unwrap() }
}

/// The report in its own digits, a line for each figure.
fn without_speed(report: &str) -> String {
    let (before, rest) = report.split_once("\"exchanges_per_s\":").unwrap();
    let (_, after) = rest.split_once(',').unwrap();
    format!("{before}{after}").replace(",\"", ",\n\"")
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

fn check(name: &str) {
    let directory = directory(name);
    let trace = Trace::of(name, &directory);
    for estimator in ESTIMATORS {
        let replayed = replay(name, &["--estimator", estimator, trace.path.to_str().unwrap()]);
        limits::check(&directory, estimator, &replayed.report);
        judge::check(&trace.truths, &replayed.rows);
        compare(&directory.join(format!("expected-{estimator}.json")), &replayed.report);
        compare(&directory.join(format!("expected-{estimator}.csv")), &judge::digest(&replayed.rows));
    }
}

/// Whether the expected files are to be written instead of compared.
pub fn is_writing() -> bool {
    std::env::var_os("FFCLOCK_GOLDEN").is_some_and(|word| word == "write")
}

fn compare(expected: &Path, found: &str) {
    if is_writing() {
        fs::write(expected, found).unwrap();
        return;
    }
    let wanted = fs::read_to_string(expected).unwrap();
    let differs = wanted.lines().zip(found.lines()).find(|(wanted, found)| wanted != found);
    if let Some((wanted, found)) = differs {
        panic!("{}: expected\n  {wanted}\nfound\n  {found}\nIf that is meant: tools/golden", expected.display());
    }
    assert_eq!(wanted.lines().count(), found.lines().count(), "{}", expected.display());
}

#[test]
fn every_directory_is_tested_and_tells_what_it_is() {
    let entries = fs::read_dir(directory("")).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<String> = entries
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    let mut wanted: Vec<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
    for name in NAMES {
        let text = fs::read_to_string(directory(name).join("README.md")).unwrap();
        for heading in ["Where from: ", "Guards: "] {
            assert!(text.contains(heading), "{name}/README.md does not say \"{heading}\"");
        }
    }
}

#[test]
fn the_traces_take_little_room() {
    let size: u64 = NAMES.iter().map(|name| trace::path_in(&directory(name)).metadata().unwrap().len()).sum();
    assert!(size < 600 * 1024, "{size} bytes");
}
