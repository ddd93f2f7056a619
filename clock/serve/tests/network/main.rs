//! ffclock-serve among others: daemons of other projects that follow it, and floods.
//!
//! docs/interop.md has the whole matrix of daemons, with the test of each cell. Foreign daemons run through
//! tools/peers, which keeps them from the clock.
#![expect(clippy::unwrap_used, reason = "a test that cannot start its programs has failed")]

#[path = "../serving/common.rs"]
#[expect(dead_code, reason = "the tests of one server use more of it")]
mod common;
mod floods;
mod peers;
#[path = "../serving/nts/session.rs"]
#[expect(dead_code, reason = "the tests of NTS use more of it")]
mod session;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Set for a test that runs in a namespace of its own.
const INSIDE: &str = "FFCLOCK_TEST_NAMESPACE";

fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// A program of tools/peers that starts here.
fn peer(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers").join(name);
    let found = Some(program).filter(|program| succeeds(Command::new(program).arg("--version")));
    if found.is_none() {
        println!("SKIP: {name} does not start here (tools/setup peers says why)");
    }
    found
}

/// Whether the test goes on: in a network namespace of its own, where loopback is up and 10.0.0.0/8 is local. Outside
/// of one, the test is run again inside, and must succeed there.
fn is_in_a_namespace(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let ways: [&[&str]; 2] = [&["--net"], &["--user", "--map-root-user", "--net"]];
    let way = ways.iter().find(|way| succeeds(Command::new("unshare").args(**way).args(["ip", "link", "show"])));
    let Some(way) = way else {
        println!("SKIP: no network namespace may be made here, so {test} was left out");
        return false;
    };
    let begin = "ip link set lo up && ip route add local 10.0.0.0/8 dev lo && exec \"$0\" \"$@\"";
    let ended = Command::new("unshare")
        .args(*way)
        .args(["sh", "-c", begin])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    said.lines().filter(|line| line.starts_with("SKIP: ")).for_each(|line| println!("{line}"));
    false
}
