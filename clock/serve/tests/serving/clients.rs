//! Clients of other projects: chronyd looks at the server once, without touching a clock.

use crate::common::{Place, Said};
use ffclock_units::Span;
use std::path::Path;
use std::process::Command;

/// `chronyd -Q` prints how wrong it takes the system clock to be, and sets nothing. The truth of the page is the system
/// clock when the test begins.
#[test]
fn chronyd_believes_the_server() {
    let chronyd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/chronyd");
    let is_there = Command::new(&chronyd).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIP: chronyd is not unpacked");
        return;
    }
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said { error: Span::from_millis(250), ..Said::within(Span::from_millis(300)) });
    let serving = place.serve("");
    let server = format!("server 127.0.0.1 port {} iburst maxsamples 4", serving.address.port());
    let pid = format!("pidfile {}/chronyd.pid", place.directory.display());
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let output = Command::new(&chronyd)
        .args(["-u", String::from_utf8(user).unwrap().trim()])
        .args(["-Q", "-x", "-t", "20", &server, &pid, "cmdport 0", "bindcmdaddress /"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let wrong = said.split("clock wrong by ").nth(1).and_then(|rest| rest.split(' ').next());
    let wrong: f64 = wrong.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!((wrong - 0.25).abs() < 0.01, "{said}");
    assert!(serving.count("answered") > 0);
}
