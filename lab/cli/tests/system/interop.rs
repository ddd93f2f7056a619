//! Servers of other projects: Debian's chronyd and NTPsec's ntpd, each in a network namespace, configured to touch no
//! clock and without the right to.
//!
//! The truth is the system clock, which the server serves and nothing adjusts meanwhile. `ffclock-lab demo` compares
//! with it 100 times a second, and reports what it saw in figures and samples.

use super::{fresh_directory, programs, root};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Seconds before the server is cut off, without it, and after. An ntpd that has lost its address looks for it every
/// few seconds.
const BEFORE: f64 = 15.0;
const CUT: f64 = 3.0;
const AFTER: f64 = 9.0;

/// By then there must be a first reading. An orphaned ntpd takes two seconds to believe in itself; a busy machine takes
/// its time.
const FIRST_READING: f64 = 10.0;

/// Requests in a second.
const POLLS: f64 = 4.0;

/// The largest error after the first readings [s]. The round trip over veth takes 1 to 30 us here; the rest is for
/// machines that do other things at the same time.
const ERROR_MAX: f64 = 200e-6;

#[test]
fn chronyd_is_followed_within_the_bound() {
    follows("chronyd");
}

#[test]
fn ntpd_is_followed_within_the_bound() {
    follows("ntpd");
}

fn follows(peer: &str) {
    let peer_program = root().join("tools/peers").join(peer);
    if let Err(reason) = is_possible(&peer_program) {
        println!("SKIP: {peer} as the server of a demonstration: {reason}");
        return;
    }
    programs::directory();
    let output = fresh_directory(&format!("interop-{peer}"));
    let mut demo = Command::new(programs::ffclock_lab());
    demo.args(["demo", "--json", &format!("--{peer}")]).arg(&peer_program).arg("--output").arg(&output);
    for (option, seconds) in [("--before", BEFORE), ("--cut", CUT), ("--after", AFTER)] {
        demo.args([option, &seconds.to_string()]);
    }
    let ended = demo.output().unwrap();
    let log = fs::read_to_string(output.join("server.log")).unwrap_or_default();
    let story = format!("{}\n{peer} says:\n{log}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{story}");
    check_figures(&ended, &story);
    for file in ["samples.csv", "samples-user-stamps.csv"] {
        check_samples(&output.join(file), &story);
    }
    check_recording(&output.join("kernel.recorded"), &story);
}

/// Whether the peer starts and namespaces can be joined; otherwise the reason.
fn is_possible(peer: &Path) -> Result<(), String> {
    run(Command::new(peer).arg("--version"))?;
    let link = ["--net", "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"];
    run(Command::new("unshare").args(link)).map(drop)
}

fn run(command: &mut Command) -> Result<Output, String> {
    let ended = command.output().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if ended.status.success() {
        return Ok(ended);
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(said.trim().lines().next().unwrap_or("it fails without a word").to_owned())
}

fn check_figures(ended: &Output, story: &str) {
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(summary["bound_held"], true, "{story}");
    let figure = |name: String| {
        let figures = summary["figures"].as_array().unwrap();
        let figure = figures.iter().find(|figure| figure["name"] == name.as_str());
        figure.unwrap_or_else(|| panic!("no figure {name} in {summary:#}"))["value"].as_f64()
    };
    for stamps in ["kernel", "user"] {
        let value = |name: &str| figure(format!("{name}, {stamps} stamps"));
        assert_eq!(value("readings outside the bound"), Some(0.0), "{story}");
        assert!(value("largest error while cut off").unwrap() < ERROR_MAX, "{story}");
    }
    // How much later user space sees a packet in one direction than in the other, the host decides: 10 us on some.
    assert!(figure("time to the first reading within 10 us, kernel stamps".to_owned()).is_some(), "{story}");
}

/// Comparisons of the published clock with the truth, in the state that was published.
fn check_samples(path: &Path, story: &str) {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("t_s,error_s,bound_s,"));
    let number = |line: &str| line.split(',').take(3).map(|cell| cell.parse().unwrap()).collect::<Vec<f64>>();
    let samples: Vec<Vec<f64>> = lines.map(number).collect();
    let first = samples.first().unwrap_or_else(|| panic!("there was no reading\n{story}"));
    assert!(first[0] < FIRST_READING, "the first reading came after {} s\n{story}", first[0]);
    let settled = || samples.iter().filter(|sample| sample[0] > FIRST_READING);
    assert!(settled().count() > 500, "{story}");
    let worst = settled().max_by(|one, other| one[1].abs().total_cmp(&other[1].abs())).unwrap();
    assert!(worst[1].abs() < ERROR_MAX, "{worst:?}\n{story}");
    let largest_bound = settled().map(|sample| sample[2]).fold(0.0, f64::max);
    assert!(largest_bound < 1e-3, "{largest_bound} s\n{story}");
}

/// What the daemon recorded meanwhile: replies before and after the cut, requests without one during it, and no
/// contradiction.
fn check_recording(directory: &Path, story: &str) {
    let file = fs::read_dir(directory).unwrap().next().unwrap().unwrap().path();
    let replayed = run(Command::new(programs::ffclock_lab()).args(["replay", "--json"]).arg(file)).unwrap();
    let report: Value = serde_json::from_slice(&replayed.stdout).unwrap();
    let count = |name: &str| report[name].as_f64().unwrap();
    assert!(count("exchanges") > POLLS * (BEFORE + AFTER) * 0.5, "{report:#}\n{story}");
    assert!(count("span_s") > BEFORE + CUT, "nothing came after the cut: {report:#}\n{story}");
    assert!(count("lost") >= 1.0, "{report:#}\n{story}");
    assert_eq!((count("rejected"), count("contradictions"), count("server_steps")), (0.0, 0.0, 0.0), "{story}");
}
