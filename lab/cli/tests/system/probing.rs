//! `ffclock-lab probe` between namespaces and over loopback, with rights and without.

use super::{fresh_directory, programs};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// What the command said: the JSON of its standard output, and its standard error.
fn run(mut command: Command) -> Result<Value, String> {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(serde_json::from_slice(&output.stdout).unwrap()) } else { Err(said) }
}

fn probe(arguments: &[&str]) -> Command {
    let mut command = Command::new(programs::ffclock_lab());
    command.args(["probe", "run", "--json"]).args(arguments);
    command
}

/// An echo server on loopback; ended when dropped.
struct Echo {
    child: Child,
    output: BufReader<ChildStdout>,
    address: String,
}

impl Echo {
    fn start() -> Self {
        let mut command = Command::new(programs::ffclock_lab());
        command.args(["probe", "echo", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.split_whitespace().find(|word| word.starts_with("127.")).unwrap();
        Echo { child, output, address: address.trim_end_matches(';').to_owned() }
    }

    /// Ends it as a person would, and returns its last words.
    fn end(mut self) -> String {
        Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        line
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn delays<'a>(answer: &'a Value, site: &str) -> Vec<&'a Value> {
    let delays = answer["phases"][0]["findings"]["delays"].as_array().unwrap();
    delays.iter().filter(|delay| delay["site"] == site).collect()
}

/// Whether something was left out, with the reason.
fn is_missing(phase: &Value, what: &str) -> bool {
    phase["unavailable"].as_array().unwrap().iter().any(|reason| reason.as_str().unwrap().starts_with(what))
}

/// Both methods saw the same packets, at the same time within what an interrupt of a busy machine takes.
fn agree(answer: &Value, received: u64) {
    let phase = &answer["phases"][0];
    let agreements = phase["agreements"].as_array().unwrap();
    for site in ["queue-out", "driver-out", "done-out", "driver-in", "stack-in"] {
        let one = agreements
            .iter()
            .find(|one| one["site"] == site)
            .unwrap_or_else(|| panic!("{site} is missing: {agreements:?}"));
        assert!(one["count"].as_u64().unwrap() * 10 >= received * 9, "{one} of {received}");
        assert!(one["difference_ns"]["median"].as_f64().unwrap().abs() < 5_000.0, "{one}");
    }
    assert!(phase["mapping"]["median_ns"].as_f64().unwrap() < 2_000.0, "{}", phase["mapping"]);
    for (site, reason) in [("tc-out", "eBPF, tc egress"), ("tc-in", "eBPF, tc ingress")] {
        let count = delays(answer, site).first().and_then(|delay| delay["count"].as_u64()).unwrap_or(0);
        assert!(is_missing(phase, reason) || count * 10 >= received * 9, "{site}: {count} of {received}");
    }
    assert_eq!(phase["counts"]["ebpf_lost"], 0);
}

#[test]
fn the_probe_effect_is_measured_and_taken_off() {
    let record = fresh_directory("probe-effect").join("probe.parquet");
    let record = record.to_str().unwrap();
    let answer = match run(probe(&["--netns", "--packets", "100", "--probe-effect=2", "--xdp", "--record", record])) {
        Err(said)
            if said.contains("cannot make a network namespace") || said.contains("takes the kernel's tracing") =>
        {
            return println!("SKIP: {said}");
        }
        other => other.unwrap(),
    };
    let effect = &answer["probe_effect"];
    let mut show = Command::new(programs::ffclock_lab());
    show.args(["probe", "show", "--json", record]);
    let shown = run(show).unwrap();
    assert!(is_same(effect, &shown["probe_effect"]), "{shown}");
    assert!(is_same(&answer["phases"][0]["corrected"], &shown["phases"][0]["corrected"]), "{shown}");
    assert_eq!(effect["rounds"], 2);
    let levels = effect["levels"].as_array().unwrap();
    assert_eq!(levels[1]["added"], "tracing");
    assert!(levels.iter().enumerate().all(|(probes, level)| level["probes"] == probes), "{levels:?}");
    assert!(levels[1]["cost"]["median_ns"].as_f64().unwrap().abs() < 50_000.0, "{}", levels[1]);
    let phase = &answer["phases"][0];
    let corrected = phase["corrected"].as_array().unwrap();
    let user = corrected.iter().find(|one| one["site"] == "user-send").unwrap();
    let number = |name: &str| user[name].as_f64().unwrap();
    assert!((number("median_ns") - number("cost_ns") - number("corrected_ns")).abs() < 1e-6, "{user}");
    assert!(user["probes"].as_u64().unwrap() >= 1, "the tracing in the queue: {user}");
    if is_missing(phase, "eBPF:") || is_missing(phase, "eBPF, XDP") {
        return println!("SKIP: XDP: {}", phase["unavailable"]);
    }
    assert_eq!(delays(&answer, "xdp-in").len(), 1, "{phase}");
}

/// Each request passes the driver, the wire and the other end in this order, and its reply the other way round. What
/// the network and the device take is the round trip that the driver sees.
#[test]
fn the_wire_is_stamped_outside_the_host() {
    let answer = match run(probe(&["--netns", "--wire", "--packets", "300", "--without", "ebpf"])) {
        Err(said) if said.contains("cannot make a network namespace") => return println!("SKIP: {said}"),
        other => other.unwrap(),
    };
    let phase = &answer["phases"][0];
    if is_missing(phase, "kernel tracing:") {
        return println!("SKIP: {}", phase["unavailable"]);
    }
    let received = phase["counts"]["received"].as_u64().unwrap();
    for site in ["wire-out", "wire-in"] {
        let count = delays(&answer, site).first().and_then(|delay| delay["count"].as_u64());
        assert!(count.is_some_and(|count| count * 10 >= received * 9), "{site}: {count:?} of {received}");
    }
    let wire = &phase["findings"]["wire"];
    assert_eq!(wire["is_ordered"], true, "{wire}");
    for part in ["network_ns", "device_ns", "out_ns", "in_ns"] {
        assert!(wire[part]["min"].as_f64().unwrap() > 0.0, "{part}: {wire}");
    }
    let trips = phase["findings"]["round_trips"].as_array().unwrap();
    let driver = trips.iter().find(|trip| trip["location"] == "driver").unwrap();
    let least = |spread: &Value| spread["min"].as_f64().unwrap();
    let parts = least(&wire["network_ns"]) + least(&wire["device_ns"]);
    assert!(parts <= least(&driver["whole_ns"]) + 1.0, "{wire} {driver}");
    let answer = run(probe(&["--netns", "--wire=elsewhere", "--packets", "20", "--without", "ebpf"])).unwrap();
    assert!(is_missing(&answer["phases"][0], "wire: the kernel's tracing saw no request arrive at elsewhere"));
    assert!(answer["phases"][0]["findings"]["wire"].is_null(), "{answer}");
}

/// The kernel's tracing sees the packets of both, and of a packet only its length and the name of its device.
#[test]
fn two_probes_at_the_same_time_do_not_see_each_others_packets() {
    let other = std::thread::spawn(|| run(probe(&["--netns", "--wire", "--packets", "500", "--without", "ebpf"])));
    let first = run(probe(&["--netns", "--wire", "--packets", "500", "--without", "ebpf"]));
    let answers = match (first, other.join().unwrap()) {
        (Err(said), _) if said.contains("cannot make a network namespace") => return println!("SKIP: {said}"),
        (first, other) => [first.unwrap(), other.unwrap()],
    };
    assert_ne!(answers[0]["about"]["device"], answers[1]["about"]["device"]);
    for answer in &answers {
        let phase = &answer["phases"][0];
        if is_missing(phase, "kernel tracing:") {
            return println!("SKIP: {}", phase["unavailable"]);
        }
        let orders = phase["findings"]["causality"].as_array().unwrap();
        let traced = orders.iter().filter(|order| order["first"] == "driver-out" || order["first"] == "wire-out");
        assert!(traced.clone().count() >= 3, "{orders:?}");
        traced.for_each(|order| assert_eq!(order["violations"], 0, "{order}"));
    }
}

/// The copy that comes back is stamped after the request left user space, and is no reply.
#[test]
fn a_multicast_copy_is_stamped_as_the_papers_socket_did() {
    let answer = match run(probe(&["--netns", "--multicast", "--packets", "300"])) {
        Err(said) if said.contains("cannot make a network namespace") => return println!("SKIP: {said}"),
        other => other.unwrap(),
    };
    let phase = &answer["phases"][0];
    let received = phase["counts"]["received"].as_u64().unwrap();
    assert!(received > 200 && phase["counts"]["foreign"] == 0 && phase["counts"]["duplicated"] == 0, "{phase}");
    let copy = delays(&answer, "loop-out")[0];
    assert!(copy["count"].as_u64().unwrap() * 10 >= received * 9, "{copy} of {received}");
    let user = delays(&answer, "user-send")[0]["delay_ns"]["median"].as_f64().unwrap();
    assert!(copy["delay_ns"]["median"].as_f64().unwrap() < user, "{copy} {user}");
    let orders = phase["findings"]["causality"].as_array().unwrap();
    let order = |first: &str, second: &str| {
        orders.iter().find(|order| order["first"] == first && order["second"] == second).unwrap()
    };
    assert_eq!(order("user-send", "loop-out")["violations"], 0);
    let mixed = phase["findings"]["mixed"].as_array().unwrap();
    assert!(mixed.iter().any(|pair| pair["out"] == "loop-out" && pair["back"] == "user-receive"), "{mixed:?}");
    let claims = answer["paper"].as_array().unwrap();
    let claim = claims.iter().find(|claim| claim["claim"].as_str().unwrap().contains("after the packet is back"));
    assert!(claim.unwrap()["evidence"].as_str().unwrap().contains("multicast copy"), "{claim:?}");
}

#[test]
fn packets_between_namespaces_are_stamped_at_every_location() {
    let answer = match run(probe(&["--netns", "--packets", "300", "--rate", "1000"])) {
        Err(said) if said.contains("cannot make a network namespace") => return println!("SKIP: {said}"),
        other => other.unwrap(),
    };
    let phase = &answer["phases"][0];
    assert_eq!((phase["counts"]["sent"].as_u64(), phase["counts"]["foreign"].as_u64()), (Some(300), Some(0)));
    let received = phase["counts"]["received"].as_u64().unwrap();
    assert!(received > 200, "{phase}");
    for reason in phase["unavailable"].as_array().unwrap() {
        println!("SKIP: {reason}");
    }
    let sites = ["user-send", "user-receive", "socket-out", "socket-in", "tap-out", "tap-in", "queue-out"];
    let counts = sites.map(|site| delays(&answer, site).first().and_then(|delay| delay["count"].as_u64()));
    if !is_missing(phase, "kernel tracing:") && !is_missing(phase, "packet tap") {
        assert_eq!(phase["findings"]["reference"], serde_json::json!(["driver-out", "driver-in"]));
        for (site, count) in sites.iter().zip(counts) {
            assert!(count.is_some_and(|count| count * 10 >= received * 9), "{site}: {count:?} of {received}");
        }
    }
    if !is_missing(phase, "eBPF:") {
        agree(&answer, received);
    }
    // On its way out a packet leaves the program before it reaches the driver, and on its way in the other way round.
    // Two stamps of clocks that were mapped to the counter contradict each other by less than 1 us.
    for site in ["user-send", "user-receive", "tap-out", "queue-out"] {
        for delay in delays(&answer, site) {
            assert!(delay["delay_ns"]["min"].as_f64().unwrap() > -1_000.0, "{delay}");
        }
    }
    let asymmetries = phase["findings"]["asymmetries"].as_array().unwrap();
    let user = asymmetries.iter().find(|one| one["location"] == "user").unwrap();
    let (asymmetry, limit) = (user["asymmetry_ns"].as_f64().unwrap(), user["limit_ns"].as_f64().unwrap());
    assert!(asymmetry.abs() <= limit, "{user}");
}

#[test]
fn without_any_right_user_space_and_socket_remain() {
    let echo = Echo::start();
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", "--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(programs::ffclock_lab()).args(["probe", "run", "--json", "--to", &echo.address, "--packets", "50"]);
    let answer = match run(command) {
        Err(said) if said.contains("setpriv") => return println!("SKIP: this user cannot become another one: {said}"),
        other => other.unwrap(),
    };
    let phase = &answer["phases"][0];
    assert_eq!(phase["counts"]["received"], 50);
    let reasons = phase["unavailable"].to_string();
    assert!(reasons.contains("packet tap") && reasons.contains("CAP_NET_RAW"), "{reasons}");
    assert!(
        reasons.contains("kernel tracing") && reasons.contains("eBPF") && reasons.contains("hardware stamps"),
        "{reasons}"
    );
    assert_eq!(phase["findings"]["reference"], serde_json::json!(["socket-out", "socket-in"]));
    assert_eq!(delays(&answer, "user-send").len(), 1);
    assert_eq!(echo.end(), "answered 50 packets, ignored 0\n");
}

#[test]
fn a_recording_has_every_packet() {
    let echo = Echo::start();
    let path = fresh_directory("probe-recording").join("probe.jsonl");
    let answer = run(probe(&["--to", &echo.address, "--packets", "40", "--record", path.to_str().unwrap()])).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let packets: Vec<_> = records.iter().filter(|record| record["record"] == "packet").collect();
    assert_eq!(packets.len(), 40);
    let period = 1e9 / answer["about"]["counter_hz"].as_f64().unwrap();
    for (sequence, packet) in packets.iter().enumerate() {
        assert_eq!(packet["sequence"], sequence);
        let ticks = packet["ticks"].as_array().unwrap();
        let (out, back) = (ticks[0].as_f64().unwrap(), ticks[ticks.len() - 1].as_f64().unwrap());
        assert!(back > out && (back - out) * period < 1e9, "{packet}");
    }
}

fn said_of(arguments: &[&str]) -> String {
    let output = Command::new(programs::ffclock_lab()).arg("probe").args(arguments).output().unwrap();
    assert!(!output.status.success(), "{arguments:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// But for the last digits of numbers: a record has the counter's frequency, and the run its period.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| is_same(value, other)))
        }
        (Value::Number(a), Value::Number(b)) => (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6,
        _ => a == b,
    }
}

#[test]
fn a_record_shows_what_the_run_said_in_both_forms() {
    let echo = Echo::start();
    let directory = fresh_directory("probe-records");
    for name in ["probe.parquet", "probe.jsonl"] {
        let path = directory.join(name).to_str().unwrap().to_owned();
        let fresh = run(probe(&["--to", &echo.address, "--packets", "60", "--record", &path])).unwrap();
        let mut show = Command::new(programs::ffclock_lab());
        show.args(["probe", "show", "--json", &path]);
        let shown = run(show).unwrap();
        assert!(is_same(&fresh["phases"], &shown["phases"]), "{name}");
        assert_eq!(fresh["about"]["counter_hz"], shown["about"]["counter_hz"]);
        let verdicts = |answer: &Value| {
            let claims = answer["paper"].as_array().unwrap();
            claims.iter().map(|claim| (claim["claim"].clone(), claim["verdict"].clone())).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&fresh), verdicts(&shown));
        let steps = shown["phases"][0]["findings"]["timeline"]["steps"].as_array().unwrap();
        assert_eq!((&steps[0]["site"], &steps[steps.len() - 1]["site"]), (&"user-send".into(), &"user-receive".into()));
        let claims = shown["paper"].as_array().unwrap();
        assert!(claims.iter().any(|claim| claim["verdict"] == "not-measured"), "{claims:?}");
        let mut advise = Command::new(programs::ffclock_lab());
        advise.args(["probe", "advise", "--json", "--from", &path]);
        let said = advise.output().unwrap();
        let advice: Value = serde_json::from_slice(&said.stdout).unwrap();
        // Few packets may not distinguish two locations; of those, one is advised all the same.
        let advice = &advice["advice"];
        let is_tie = advice["reasons"][0].as_str().unwrap().contains("cannot be distinguished");
        let tie = advice["tie"].as_array().unwrap();
        assert_eq!((tie.len() > 1, tie.is_empty()), (is_tie, !is_tie), "{advice}");
        assert!(!is_tie || tie.contains(&advice["location"]), "{advice}");
        assert_eq!((advice["location"].is_string(), said.status.code()), (true, Some(0)), "{advice}");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let said = said_of(&["show", &path]);
        assert!(said.contains("again") && said.contains(name), "{said}");
    }
    assert!(said_of(&["advise"]).contains("--from"));
    assert!(said_of(&["show", "no-such-file"]).contains("no-such-file cannot be used"));
}

#[test]
fn what_cannot_be_measured_is_explained() {
    let said = run(probe(&["--to", "127.0.0.1:9", "--packets", "3"])).unwrap_err();
    assert!(said.contains("none of 3 packets was answered") && said.contains("ffclock-lab probe echo"), "{said}");
    let said = run(probe(&["--to", "no-such-host.invalid"])).unwrap_err();
    assert!(said.contains("no-such-host.invalid"), "{said}");
    let said = run(probe(&["--packets", "3"])).unwrap_err();
    assert!(said.contains("--netns"), "{said}");
    let said = run(probe(&["--to", "127.0.0.1:9", "--device", "no-such-device", "--packets", "3"])).unwrap_err();
    assert!(said.contains("none of 3 packets was answered"), "a device can be named: {said}");
    let said = run(probe(&["--to", "127.0.0.1:9", "--multicast"])).unwrap_err();
    assert!(said.contains("cannot be used with"), "{said}");
    let said = run(probe(&["--to", "127.0.0.1:9", "--wire"])).unwrap_err();
    assert!(said.contains("--wire=DEVICE"), "{said}");
    let said = run(probe(&["--netns", "--rate", "0"])).unwrap_err();
    assert!(said.contains("must lie between"), "{said}");
}
