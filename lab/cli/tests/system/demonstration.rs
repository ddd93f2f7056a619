//! The demonstrations by a user without any right, who cannot make network namespaces: on loopback, and in a directory
//! that was used before.

use super::{fresh_directory, programs, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The number of the unprivileged user, the same on every system.
const UNPRIVILEGED: &str = "65534";

fn without_rights() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--clear-groups"]).arg(programs::ffclock_lab());
    command
}

/// A directory for the results, below one that others may enter; `None` where no other user can run the programs.
fn output(name: &str) -> Option<PathBuf> {
    programs::directory();
    if !without_rights().arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!(
            "SKIP: a demonstration without rights: this user cannot start programs as another one, or where that one may not read"
        );
        return None;
    }
    let output = std::env::temp_dir().join(format!("ffclock-{name}-{}", std::process::id()));
    fs::create_dir_all(&output).unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o777)).unwrap();
    Some(output)
}

#[test]
fn a_demonstration_needs_no_rights_and_can_be_repeated() {
    let Some(output) = output("demonstration") else { return };
    for run in 1..=2 {
        let mut demo = without_rights();
        demo.args(["demo", "--before", "3", "--cut", "1.5", "--after", "2.5", "--output"]).arg(&output);
        let ended = demo.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("using plain loopback"), "run {run}: {said}");
        assert!(ended.status.success(), "run {run}: {said}");
    }
    let exchanges = fs::read_to_string(output.join("exchanges.csv")).unwrap();
    let last: Vec<&str> = exchanges.lines().next_back().unwrap().split(',').collect();
    assert!(last.iter().all(|cell| cell.parse::<f64>().is_ok()), "{last:?}");
    fs::remove_dir_all(output).unwrap();
}

/// A chain with clients of each kind, in namespaces where root may make them and on loopback for others: every stage
/// has a time, every claim of ours holds, and the same clients are behind ffclock-serve and chronyd.
#[test]
fn the_time_is_served_on_and_every_claim_holds() {
    let peers = root().join("tools/peers");
    let starts =
        |name: &str| Command::new(peers.join(name)).arg("--version").output().is_ok_and(|ended| ended.status.success());
    if !starts("chronyd") {
        println!("SKIP: chronyd is not unpacked (make setup)");
        return;
    }
    programs::directory();
    let output = fresh_directory("demo-serve");
    let mut demo = Command::new(programs::ffclock_lab());
    demo.args(["demo", "serve", "--json", "--before", "8", "--watch", "8", "--output"]).arg(&output);
    demo.arg("--chronyd").arg(peers.join("chronyd"));
    if starts("ntpd") {
        demo.arg("--ntpd").arg(peers.join("ntpd"));
    }
    let ended = demo.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    said.lines().filter(|line| line.starts_with("SKIP: ")).for_each(|line| println!("{line}"));
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stdout));
    let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let stages = summary["stages"].as_array().unwrap();
    let claims = |behind: &str| {
        let of = stages.iter().filter(|stage| stage["behind"] == behind);
        of.map(|stage| stage["claims"].as_u64().unwrap()).sum::<u64>()
    };
    assert!(claims("the reference") > 100 && claims("ffclock-serve") > 200, "{summary:#}");
    assert!(stages.iter().all(|stage| stage["is_ours"] == false || stage["claims_broken"] == 0), "{summary:#}");
    assert!(summary["ratios"].as_array().unwrap().len() >= 3, "{summary:#}");
}

fn lines_with(path: &Path, text: &str) -> usize {
    fs::read_to_string(path).unwrap().lines().filter(|line| line.contains(text)).count()
}

/// Each lie is named, neither is followed, and what was seen is there to be drawn.
#[test]
fn of_three_servers_the_one_that_lies_is_named() {
    let Some(output) = output("liar") else { return };
    let mut demo = without_rights();
    demo.args(["demo", "liar", "--json", "--before", "12", "--after", "8", "--output"]).arg(&output);
    let ended = demo.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    for (case, standing) in [("step", "liar,falseticker"), ("inside", "liar,suspect")] {
        let directory = output.join(case);
        assert!(lines_with(&directory.join("votes.csv"), standing) > 0, "{case}: {said}");
        assert!(lines_with(&directory.join("servers.csv"), "honest 2") > 20, "{case}");
        assert!(lines_with(&directory.join("samples.csv"), "synchronised") > 500, "{case}");
        assert!(lines_with(&directory.join("sources.txt"), "verdict") == 3, "{case}");
    }
    let summaries: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(summaries.as_array().map(Vec::len), Some(2));
    fs::remove_dir_all(output).unwrap();
}
