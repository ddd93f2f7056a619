//! `ffclock doctor` on hosts that are made of files: a sound one, and one for each fault.

mod daemon_faults;
mod host_faults;
mod page_faults;

use crate::common::{Ended, Place};
use ffclock_units::Status;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

const REPORT: &str = include_str!("status.json");
const CONFIG: &str = "# a sound one\n[[server]]\naddress = \"a.example\"\n";
/// It must not take longer, even where the daemon does not answer.
const LONGEST: Duration = Duration::from_secs(5);

/// A host below a directory, sound until a test changes it.
struct SeededHost {
    place: Place,
    report: Value,
    listens: Listens,
    config: Option<&'static str>,
}

/// How the daemon behaves.
enum Listens {
    /// It answers with the report.
    Answers,
    /// It answers with something else.
    With(&'static str),
    /// It takes connections and answers nothing.
    Stuck,
    /// Its socket is left, and it is not.
    Dead,
    /// There is no socket.
    Absent,
}

/// A fault, how it is brought about, and all that is found then.
struct Seed {
    sow: fn(&mut SeededHost),
    finds: &'static [&'static str],
}

impl SeededHost {
    fn new() -> Self {
        let place = Place::new();
        place.publish(Status::Synchronised);
        let host = SeededHost { report: sound_report(&place), place, listens: Listens::Answers, config: Some(CONFIG) };
        fs::set_permissions(host.place.file("."), fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(host.place.page(), fs::Permissions::from_mode(0o644)).unwrap();
        host.write("page.history", "history");
        host.write("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        host.write("proc/cpuinfo", "flags\t\t: fpu constant_tsc nonstop_tsc\n");
        host.process(1, "systemd", 0, 0);
        host.process(70, "ffclockd", own_user(&host.place).max(1), 0);
        host.process(71, "chronyd", 7, 0);
        host.program("ffclockd", "exit 0");
        host.program(
            "systemctl",
            "echo LoadState=loaded; echo ActiveState=active; echo NRestarts=0; echo UnitFileState=enabled",
        );
        fs::create_dir_all(host.place.file("run/systemd/system")).unwrap();
        host
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.place.file(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.place.file(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn process(&self, pid: u32, name: &str, user: u32, nice: i64) {
        self.write(&format!("proc/{pid}/status"), &format!("Name:\t{name}\nUid:\t{user}\t{user}\t{user}\t{user}\n"));
        let stat = format!("{pid} ({name}) S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 {nice} 1 0 100 1 1\n");
        self.write(&format!("proc/{pid}/stat"), &stat);
    }

    /// A program in the PATH of the doctor.
    fn program(&self, name: &str, script: &str) {
        self.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
        self.mode(&format!("bin/{name}"), 0o755);
    }

    fn event(&mut self, text: &str) {
        let at_s = self.report["uptime_s"].as_f64().unwrap() - 10.0;
        let event = json!({ "at_s": at_s, "source": null, "text": text });
        self.report["events"].as_array_mut().unwrap().push(event);
    }

    fn start_daemon(&self) {
        let answer = match self.listens {
            Listens::Answers => self.report.to_string(),
            Listens::With(text) => text.to_owned(),
            Listens::Absent => return,
            Listens::Dead => return drop(UnixListener::bind(self.place.control()).unwrap()),
            Listens::Stuck => {
                // It lives as long as the test, and accepts nothing.
                return std::mem::forget(UnixListener::bind(self.place.control()).unwrap());
            }
        };
        let listener = UnixListener::bind(self.place.control()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = BufReader::new(&stream).read_line(&mut String::new());
                let _ = (&stream).write_all(format!("{answer}\n").as_bytes());
            }
        });
    }

    fn examine(&self, arguments: &[&str]) -> Ended {
        if let Some(config) = self.config {
            self.write("etc/ffclock/ffclockd.toml", config);
            // Older than the daemon's start.
            let file = fs::File::options().append(true).open(self.place.file("etc/ffclock/ffclockd.toml")).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(86_400)).unwrap();
        }
        self.start_daemon();
        self.examine_as_it_is(arguments)
    }

    fn examine_as_it_is(&self, arguments: &[&str]) -> Ended {
        let path = format!("{}:/usr/bin:/bin", self.place.file("bin").display());
        let mut command = self.place.command(&["doctor", "--root"]);
        command.arg(self.place.file(".")).args(arguments).env("PATH", path);
        Ended::from(command.output().unwrap())
    }
}

fn own_user(place: &Place) -> u32 {
    fs::metadata(place.file(".")).unwrap().uid()
}

/// Three servers that agree, and nothing to complain about.
fn sound_report(place: &Place) -> Value {
    let mut report: Value = serde_json::from_str(REPORT).unwrap();
    report["version"] = env!("CARGO_PKG_VERSION").into();
    report["page"] = place.page().to_str().unwrap().into();
    let mut server = report["sources"][0].clone();
    server["agreement"] = "agree".into();
    let named = |name: &str, selected: bool| {
        let mut server = server.clone();
        (server["name"], server["selected"]) = (name.into(), selected.into());
        server["authentication"]["certificate_end"] = "2027-06-01T00:00:00Z".into();
        server
    };
    report["sources"] = vec![named("a.example", true), named("b.example", false), named("c.example", false)].into();
    report["events"] = json!([]);
    report
}

fn checks(ended: &Ended) -> Vec<String> {
    let found = ended.json()["findings"].as_array().unwrap().clone();
    let mut checks: Vec<String> = found.iter().map(|one| one["check"].as_str().unwrap().to_owned()).collect();
    checks.sort();
    checks
}

fn all_seeds() -> Vec<&'static Seed> {
    [page_faults::SEEDS, daemon_faults::SEEDS, host_faults::SEEDS].into_iter().flatten().collect()
}

#[test]
fn a_sound_host_has_no_finding() {
    let host = SeededHost::new();
    let ended = host.examine(&["--json"]);
    assert_eq!(checks(&ended), Vec::<String>::new(), "{ended:?}");
    assert_eq!(ended.code, 0);
    assert!(host.examine_as_it_is(&[]).well().starts_with("no fault found; "));
}

/// Each fault is found, and nothing else is.
#[test]
fn every_seeded_fault_is_found() {
    for seed in all_seeds() {
        let mut host = SeededHost::new();
        (seed.sow)(&mut host);
        let begin = Instant::now();
        let ended = host.examine(&["--json"]);
        let took = begin.elapsed();
        let mut wanted = seed.finds.to_vec();
        wanted.sort_unstable();
        assert_eq!(checks(&ended), wanted, "{ended:?}");
        assert!(took < LONGEST, "{took:?} for {wanted:?}");
    }
}

/// No entry of the catalogue is without a seed.
#[test]
fn every_fault_that_is_looked_for_is_seeded() {
    let listed: Value = serde_json::from_str(&Place::new().run(&["doctor", "--list", "--json"]).well()).unwrap();
    let listed: BTreeSet<String> =
        listed.as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap().to_owned()).collect();
    let seeded = all_seeds().into_iter().flat_map(|seed| seed.finds).copied();
    let elsewhere = ["page-rights", "control-rights", "disk-full", "config-unread"];
    let seeded: BTreeSet<String> = seeded.chain(elsewhere).map(str::to_owned).collect();
    assert!(listed.len() >= 60, "{}", listed.len());
    assert_eq!(listed, seeded);
}

#[test]
fn the_exit_code_is_that_of_the_worst_finding() {
    let mut warned = SeededHost::new();
    warned.report["sources"][1]["belief"] = "falseticker".into();
    let ended = warned.examine(&[]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert!(ended.out.starts_with("warning: falseticker (b.example)\n  seen   "), "{ended:?}");
    assert!(ended.out.ends_with("0 error(s), 1 warning(s), 0 note(s)\n"), "{ended:?}");
    let mut noted = SeededHost::new();
    noted.report["sources"][1]["agreement"] = "disagree".into();
    assert_eq!(noted.examine(&[]).code, 0);
    let mut faulty = SeededHost::new();
    (faulty.report["quorum"], faulty.report["sources"][1]["belief"]) = ("disagreement".into(), "undecided".into());
    assert_eq!(faulty.examine(&[]).code, 5);
}

/// The reason stands beside a large bound.
#[test]
fn a_large_bound_is_taken_apart() {
    let host = SeededHost::new();
    let ended = host.examine(&["--bound", "500 us", "--json"]);
    assert_eq!(checks(&ended), ["bound-large"]);
    let seen = ended.json()["findings"][0]["seen"].as_str().unwrap().to_owned();
    assert!(
        seen.starts_with("812 us: a.example claims 300 us about itself, half of the round trip to it is 760 us"),
        "{seen}"
    );
}

#[test]
fn a_configuration_that_was_changed_since_is_named() {
    let host = SeededHost::new();
    host.examine(&["--json"]);
    host.write("etc/ffclock/ffclockd.toml", CONFIG);
    assert_eq!(checks(&host.examine_as_it_is(&["--json"])), ["config-unread"]);
}

#[test]
fn the_bundle_holds_what_a_report_needs_and_no_key() {
    let mut host = SeededHost::new();
    host.config = Some("keys = \"/etc/ffclock/keys\"\nrecord = \"/var/log/exchanges\"\n");
    host.write("etc/ffclock/keys", "1 AES128 HEX:00112233445566778899aabbccddeeff\n");
    host.mode("etc/ffclock/keys", 0o600);
    host.write("var/log/exchanges/a.fft", "a recording");
    host.program("journalctl", "echo a line of the log");
    let file = host.place.file("report.tar");
    let name = file.to_str().unwrap();
    host.examine(&["--bundle", name]).well();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let tar = |arguments: &[&str]| {
        let output = std::process::Command::new("tar").args(arguments).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let listed = tar(&["-tf"]);
    for member in
        ["findings.json", "status.json", "ffclockd.toml", "page", "log.txt", "recordings/a.fft", "host/proc/cpuinfo"]
    {
        assert!(listed.lines().any(|line| line == member), "{member} in {listed}");
    }
    let contents = tar(&["-xOf"]);
    assert!(contents.contains("a recording") && contents.contains("a line of the log"));
    assert!(!contents.contains("00112233"), "a key is in it");
    assert_eq!(host.examine_as_it_is(&["--bundle", name]).code, 1, "no file is overwritten");
}

/// As a user who may not enter the daemon's directory.
/// The doctor as a user who has nothing of this host; `None` where no other user can be had.
fn examine_as_another(host: &SeededHost) -> Option<Ended> {
    // Copied to where the other user may run it.
    let program = std::env::temp_dir().join(format!("ffclock-doctor-{}", std::process::id()));
    fs::copy(crate::PROGRAM, &program).unwrap();
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.arg("--page").arg(host.place.page()).args(["doctor", "--json", "--root"]).arg(host.place.file("."));
    let path = format!("{}:/usr/bin:/bin", host.place.file("bin").display());
    let output = command.env("PATH", path).output();
    fs::remove_file(program).unwrap();
    output.ok().filter(|output| !output.stdout.is_empty()).map(Ended::from)
}

#[test]
fn missing_rights_are_named() {
    let host = SeededHost::new();
    host.examine(&[]);
    host.mode(".", 0o700);
    let ended = if own_user(&host.place) == 0 {
        let Some(ended) = examine_as_another(&host) else {
            return println!("SKIP: setpriv cannot change the user here");
        };
        // A configuration that this user may not read is not a wrong one.
        host.mode(".", 0o755);
        host.mode("etc/ffclock/ffclockd.toml", 0o600);
        host.program("ffclockd", "cat \"$3\"");
        let unread = examine_as_another(&host).map(|ended| checks(&ended)).unwrap_or_default();
        assert!(unread.iter().any(|check| check == "config-unchecked"), "{unread:?}");
        assert!(!unread.iter().any(|check| check == "config-wrong"), "{unread:?}");
        ended
    } else {
        host.mode(".", 0o000);
        let ended = host.examine_as_it_is(&["--json"]);
        host.mode(".", 0o700);
        ended
    };
    let found = checks(&ended);
    assert!(["page-rights", "control-rights"].iter().all(|check| found.iter().any(|one| one == check)), "{ended:?}");
}

#[test]
fn a_full_disk_is_named() {
    let host = SeededHost::new();
    host.examine(&[]);
    fs::create_dir_all(host.place.file("var/lib/ffclock")).unwrap();
    let script = "mount -t tmpfs -o size=64k none \"$0/var/lib/ffclock\" || exit 99; \
                  exec \"$1\" --page \"$0/page\" doctor --json --root \"$0\"";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(host.place.file("."))
        .arg(crate::PROGRAM);
    let path = format!("{}:/usr/bin:/bin", host.place.file("bin").display());
    match command.env("PATH", path).output() {
        Ok(output) if !output.stdout.is_empty() => {
            let found = checks(&Ended::from(output));
            assert!(found.iter().any(|one| one == "disk-full"), "{found:?}");
        }
        _ => println!("SKIP: no file system can be mounted here"),
    }
}
