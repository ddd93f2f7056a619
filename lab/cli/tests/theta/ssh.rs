//! `ffclock-lab theta run --hosts`: an `ssh` of the test's own starts the ranks in namespaces that play the hosts,
//! through a shell as the real one does.

use crate::common::{FFCLOCK_LAB, HOSTS, Place, bridged, free_port, has_namespaces, json, judge};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// Takes the arguments of ssh. It records what it was asked to do on a host, reads the standard input as ssh does, and
/// prints the message of ssh for a host that is down.
const SSH: &str = r#"#!/bin/sh
directory=$(dirname "$0")
[ "$1 $2" = "-o BatchMode=yes" ] || { echo "ssh: unknown words: $*" >&2; exit 255; }
host=$3
shift 3
printf '%s\n' "$*" > "$directory/asked-$host"
[ -t 0 ] || cat > "$directory/input-$host"
[ -e "$directory/holder-$host" ] || { echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255; }
holder=$(cat "$directory/holder-$host")
exec nsenter --target "$holder" --net --uts sh -c "$*"
"#;

/// Runs on hosts that are up, with `ssh` and `ffclock-lab` where a shell finds them.
fn on_hosts(place: &Place, up: &[&str], run: &str) -> Output {
    let programs = place.0.join("bin");
    std::fs::create_dir_all(&programs).expect("works in a test");
    let ssh = programs.join("ssh");
    std::fs::write(&ssh, SSH).expect("works in a test");
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).expect("works in a test");
    symlink(FFCLOCK_LAB, programs.join("ffclock-lab")).expect("works in a test");
    bridged(place, up, run)
}

/// The command line for four hosts. It names the counter of this machine, because its checks may come out differently
/// from rank to rank.
fn four(place: &Place, more: &str) -> String {
    format!(
        "{FFCLOCK_LAB} --json theta run --hosts {} --f 1 --port {} --counter monotonic-raw --log {} {more}",
        HOSTS.join(","),
        free_port(),
        place.log()
    )
}

#[test]
fn ssh_starts_the_ranks() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("ssh");
    // A quote in a word, and a standard input that belongs to the next command.
    let fault = r#"--fault 'kind = "link-duplication", process = 1, receiver = 2, probability = 0.0'"#;
    let run = four(&place, &format!("--rounds 100 --delay '1 ms' --limit '60 s' --patience '60 s' {fault}"));
    let output = on_hosts(&place, &HOSTS, &format!("printf 'next\\n' | {{ {run}; cat > rest; }}"));
    assert!(output.status.success(), "{output:?}");
    judge(&json(&output), &place.log(), (4, 100));
    let log = std::fs::read_to_string(Path::new(&place.log()).join("run.json")).expect("works in a test");
    assert!((1..=4).all(|host| log.contains(&format!("\"node{host}\""))) && log.contains("link-duplication"), "{log}");
    for (rank, host) in HOSTS.iter().enumerate() {
        let asked = std::fs::read_to_string(place.0.join(format!("bin/asked-{host}"))).expect("it was asked");
        assert!(
            asked.starts_with("ffclock-lab 'theta' 'rank' ") && asked.contains(&format!("'--rank' '{rank}'")),
            "{asked}"
        );
    }
    let rest = std::fs::read_to_string(place.0.join("rest")).expect("works in a test");
    assert_eq!(rest, "next\n", "the ranks leave our standard input alone");
}

/// The host is named by ssh, its rank by rank 0, and nothing waits for longer than its patience.
#[test]
fn a_host_that_cannot_be_reached_is_named() {
    if !has_namespaces() {
        return;
    }
    let place = Place::new("ssh-down");
    let run = four(&place, "--rounds 10 --patience '3 s'");
    let output = on_hosts(&place, &HOSTS[..3], &run);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("connect to host 10.81.0.4") && said.contains("missing: [3]"), "{said}");
}

/// Before anything is started on any host.
#[test]
fn what_cannot_be_started_is_reported() {
    let place = Place::new("no-ssh");
    let run = |hosts: &str, path: &str| {
        let words = ["theta", "run", "--f", "1", "--hosts", hosts];
        Command::new(FFCLOCK_LAB).args(words).env("PATH", path).output().expect("works in a test")
    };
    let output = run("a,b,c,d", &place.0.display().to_string());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("ssh") && said.contains("ffclock-lab theta rank"), "{said}");
    let ssh = place.0.join("ssh");
    std::fs::write(&ssh, format!("#!/bin/sh\n: > '{}/started'\n", place.0.display())).expect("works in a test");
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).expect("works in a test");
    let output = run("a,b,,d", &place.0.display().to_string());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("is no host"), "{output:?}");
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(!place.0.join("started").exists(), "nothing was started");
}
