//! Hosts whose time comes from daemons of their own: three `ffclockd` in three namespaces, one server, a page each,
//! and a run that is certified by nothing else.

use crate::common::{FFCLOCK_LAB, Place, analyse, has_namespaces, json};
use crate::hosts::truth;
use crate::programs;
use std::path::Path;
use std::process::Command;

const HOSTS: usize = 3;

/// The daemon of a host uses no default path: page, control socket and server are named.
fn configure(place: &Place, host: usize) {
    let directory = place.0.display();
    let text = format!(
        "page = \"{directory}/page{host}\"\ncontrol = \"{directory}/control{host}\"\nstate = \"off\"\n\n\
         [[server]]\naddress = \"10.80.0.254\"\nport = 11123\npoll = \"125 ms\"\n"
    );
    std::fs::write(place.0.join(format!("host{host}.toml")), text).expect("works in a test");
}

/// Everything below one process in a network and a number space of its own: when it ends, so does all else.
fn script(place: &Place) -> String {
    let pages: Vec<String> = (0..HOSTS).map(|host| format!("{}/page{host}", place.0.display())).collect();
    format!(
        r#"set -e
        cd {directory}
        ip link set lo up
        ip link add name hub type bridge
        ip address add 10.80.0.254/24 dev hub
        ip link set hub up
        {FFCLOCK_LAB} lab server --listen 10.80.0.254:11123 > server.log 2>&1 &
        for host in 0 1 2; do
            unshare --net sleep 120 &
            holder=$!
            while [ "$(readlink /proc/$holder/ns/net)" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.02; done
            ip link add name port$host type veth peer name eth0 netns $holder
            ip link set port$host master hub up
            nsenter --target $holder --net ip link set lo up
            nsenter --target $holder --net ip address add 10.80.0.$((host + 1))/24 dev eth0
            nsenter --target $holder --net ip link set eth0 up
            nsenter --target $holder --net -- {daemon} --config host$host.toml > daemon$host.log 2>&1 &
        done
        for host in 0 1 2; do
            {ffclock} wait --page page$host --timeout "60 s" >&2 || {{ cat daemon$host.log >&2; exit 1; }}
        done
        {FFCLOCK_LAB} --json theta run --netns {HOSTS} --f 0 --rounds 500 --delay "1 ms" --patience "60 s" --limit "60 s" \
            --pages {pages} --log {log}"#,
        directory = place.0.display(),
        daemon = programs::directory().join("ffclockd").display(),
        ffclock = programs::directory().join("ffclock").display(),
        pages = pages.join(","),
        log = place.log()
    )
}

#[test]
fn daemons_of_three_hosts_certify_a_run() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("daemons");
    (0..HOSTS).for_each(|host| configure(&place, host));
    let own = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"];
    let output = Command::new("timeout").args(["-k", "5", "150"]).args(own).arg(script(&place)).output();
    let output = output.expect("works in a test");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(json(&output)["failures"], serde_json::json!([]));
    let run = std::fs::read_to_string(Path::new(&place.log()).join("run.json")).expect("works in a test");
    assert!((0..HOSTS).all(|host| run.contains(&format!("\"host{host}\""))), "{run}");

    let (is_well, report, said) = analyse(&place.log(), &["--certify"]);
    // Clocks that err put some messages before their sending, which is no lie as long as the bounds allow it.
    assert!(is_well || said.contains("partial"), "{said}");
    let omega = report["first"]["omega"]["ratio"]["value"].as_f64().unwrap_or_else(|| panic!("{report}"));
    let side =
        |side: &str| report["certified"]["first"][side]["value"].as_f64().unwrap_or_else(|| panic!("{report} {said}"));
    let (low, high) = (side("low"), side("high"));
    println!("Omega {omega:.3}, certified {low:.3} to {high:.3}; {}", report["certified"]);
    assert!(omega >= 1.0 && 1.0 <= low && low <= high && high.is_finite(), "{low} to {high}: {}", report["certified"]);
    // Three daemons disagree, so there is something to certify; and what they all read is one counter, so the truth is
    // known.
    assert!(report["certified"]["half_width_max_ps"].as_i64() > Some(0), "{}", report["certified"]);
    let truth = truth(&place.log());
    assert!(low <= truth * 1.001 && truth <= high * 1.001, "{truth}: {}", report["certified"]);
}
