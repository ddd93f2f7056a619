//! Tests that run in a network namespace of their own.

use std::process::Command;

/// Set for a test that runs in a namespace of its own.
const INSIDE: &str = "FFCLOCK_TEST_NAMESPACE";

/// Whether the test goes on: in a network namespace of its own, where loopback is up and these commands were run.
/// Outside of one, the test is run again inside, and must succeed there.
pub fn is_in_a_namespace(test: &str, commands: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let begin = format!("ip link set lo up && {commands} && exec \"$0\" \"$@\"");
    let tried = Command::new("unshare").args(["--net", "sh", "-c", &begin, "true"]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        println!("SKIP: no network namespace may be made here, so {test} was left out");
        return false;
    }
    let ended = Command::new("unshare")
        .args(["--net", "sh", "-c", &begin])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare runs");
    let said = String::from_utf8_lossy(&ended.stdout) + String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    said.lines().filter(|line| line.starts_with("SKIP: ")).for_each(|line| println!("{line}"));
    false
}
