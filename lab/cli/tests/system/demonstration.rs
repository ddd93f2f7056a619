//! The demonstration by a user without any right, who cannot make network namespaces: on loopback, and twice in the
//! same directory.

use super::programs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The number of the unprivileged user, the same on every system.
const UNPRIVILEGED: &str = "65534";

fn without_rights() -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", UNPRIVILEGED, "--regid", UNPRIVILEGED, "--clear-groups"]).arg(programs::ffclock_lab());
    command
}

#[test]
fn a_demonstration_needs_no_rights_and_can_be_repeated() {
    programs::directory();
    if !without_rights().arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!(
            "SKIP: a demonstration without rights: this user cannot start programs as another one, or where that one may not read"
        );
        return;
    }
    // Below a directory that others may enter.
    let output = std::env::temp_dir().join(format!("ffclock-demonstration-{}", std::process::id()));
    fs::create_dir_all(&output).unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o777)).unwrap();
    for run in 1..=2 {
        let mut demo = without_rights();
        demo.args(["demo", "--before", "3", "--cut", "1.5", "--after", "2.5", "--output"]).arg(&output);
        let ended = demo.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(said.contains("using plain loopback"), "run {run}: {said}");
        assert!(ended.status.success(), "run {run}: {said}");
    }
    fs::remove_dir_all(output).unwrap();
}
