//! Running systems, with clients that do not wait for replies: captured, imported and analysed.

use super::{programs, root};
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn pauses_and_slow_links_of_three_redis_servers_are_found() {
    pauses_and_slow_links_are_found("redis");
}

/// A cluster, by gRPC.
#[test]
fn pauses_and_slow_links_of_etcd_are_found() {
    pauses_and_slow_links_are_found("etcd");
}

fn pauses_and_slow_links_are_found(system: &str) {
    let output = Command::new(root().join("tools/theta-real"))
        .env("SYSTEM", system)
        .env("FFCLOCK_BIN", programs::ffclock_lab().parent().unwrap())
        .env("SECONDS_EACH", "2")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    if said.starts_with("SKIP") {
        return;
    }
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let mut lines = said.lines().map(|line| line.split("  ").map(str::trim).filter(|field| !field.is_empty()));
    let heads: Vec<_> = lines.next().unwrap().collect();
    let rows: BTreeMap<_, BTreeMap<_, _>> =
        lines.by_ref().take(4).map(|mut row| (row.next().unwrap(), heads.iter().copied().zip(row).collect())).collect();
    let number = |phase, column: &str| rows[phase][column].parse::<f64>().unwrap();
    for phase in ["calm", "load", "pause", "delay"] {
        assert_eq!((number(phase, "damage"), number(phase, "no reply")), (0.0, 0.0), "{said}");
        assert!(number(phase, "exchanges") > 100.0, "{said}");
    }
    // The server stands still for 300 ms; the link takes 5 ms longer each way.
    assert!(number("pause", "tau+ ms") > 250.0 && number("delay", "tau+ ms") > 10.0, "{said}");
    assert!(said.contains("suspect after"), "{said}");
}
