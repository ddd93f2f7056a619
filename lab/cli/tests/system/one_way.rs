//! One-way delays between two hosts with a daemon and a page each, over veth, against the counter that both read.

use super::{programs, root};
use std::process::Command;

#[test]
fn every_one_way_delay_over_veth_holds_the_truth() {
    let output = Command::new(root().join("tools/owd-veth"))
        .env("FFCLOCK_BIN", programs::directory())
        .envs([("PACKETS", "2000"), ("INTERVAL", "1 ms"), ("SETTLE", "2")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    if said.starts_with("SKIP") {
        return;
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let compared = said.lines().find(|line| line.contains("compared with the shared counter")).unwrap();
    let packets: u64 = compared.split(' ').next().unwrap().parse().unwrap();
    assert!(packets > 1800 && compared.contains(", 0 delays outside their bounds"), "{compared}");
}
