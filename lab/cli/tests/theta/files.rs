//! From files to results: `ffclock-lab theta import`, `analyse` and `report`, as a user types them.

use super::common::{FFCLOCK_LAB, Place};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn theta(words: &[&str]) -> Output {
    Command::new(FFCLOCK_LAB).arg("--json").arg("theta").args(words).output().expect("works in a test")
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A UDP packet over raw IP between 10.0.0.9 and server 10.0.0.SERVER, port 7000; `number` identifies it.
fn packet(number: u16, server: u8, is_request: bool) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 9], [10, 0, 0, server]);
    let (from, to) = if is_request { (client, server) } else { (server, client) };
    let ports: [u16; 2] = if is_request { [5000, 7000] } else { [7000, 5000] };
    let mut bytes = vec![0x45, 0, 0, 33];
    bytes.extend(number.to_be_bytes());
    bytes.extend([0, 0, 64, 17, 0, 0]);
    bytes.extend([from, to].concat());
    bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    bytes.extend([0, 13, 0, 0, b'h', b'e', b'l', b'l', b'o']);
    bytes
}

/// What a side captures of 2000 rounds of 1 ms with two servers: requests take 30 us, the servers 50 us, replies 40
/// us, those of round 700 240 us; the server's clock is 5 ms ahead.
fn packets(at_server: bool) -> Vec<(u32, Vec<u8>)> {
    let mut packets = vec![];
    for round in 0..2000u16 {
        for server in 1..=2u8 {
            let sent = 1000 * u32::from(round) + u32::from(server);
            let reply = if round == 700 { 240 } else { 40 };
            let times = if at_server { [5030 + sent, 5080 + sent] } else { [sent, sent + 80 + reply] };
            packets.push((times[0], packet(round, server, true)));
            packets.push((times[1], packet(round, server, false)));
        }
    }
    packets.sort();
    packets
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// tcpdump's format, microseconds, raw IP.
fn classic(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 101]);
    for (micros, packet) in packets {
        let length = packet.len() as u32;
        bytes.extend(words(&[1_700_000_000 + micros / 1_000_000, micros % 1_000_000, length, length]));
        bytes.extend(packet);
    }
    bytes
}

/// Wireshark's format: a section, an interface, and the packets.
fn pcapng(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28, 1, 20, 101, 0, 20]);
    for (micros, packet) in packets {
        let at = 1_700_000_000_000_000 + u64::from(*micros);
        let length = packet.len() as u32;
        let padded = length.next_multiple_of(4);
        bytes.extend(words(&[6, 32 + padded, 0, (at >> 32) as u32, at as u32, length, length]));
        bytes.extend(packet);
        bytes.resize(bytes.len() + (padded - length) as usize, 0);
        bytes.extend(words(&[32 + padded]));
    }
    bytes
}

fn write(place: &Place, name: &str, bytes: &[u8]) -> String {
    let path = place.0.join(name);
    std::fs::write(&path, bytes).expect("works in a test");
    path.display().to_string()
}

fn import(place: &Place, capture: &str, more: &[&str]) -> Output {
    let log = place.log();
    let always = ["import", capture, "--client", "10.0.0.9", "--port", "7000", "--output", &log];
    theta(&[&always, more].concat())
}

#[test]
fn a_capture_becomes_an_omega() {
    for (name, bytes) in [("classic.pcap", classic(&packets(false))), ("blocks.pcapng", pcapng(&packets(false)))] {
        let place = Place::new(name);
        let imported = import(&place, &write(&place, name, &bytes), &[]);
        assert!(imported.status.success(), "{imported:?}");
        assert_eq!(json(&imported)["replies"], 4000);
        let analysed = theta(&["analyse", &place.log()]);
        assert!(analysed.status.success(), "{analysed:?}");
        let analysis = json(&analysed);
        // The whole exchange, and the slow one.
        assert_eq!(analysis["delay_min_ps"], 120_000_000u64);
        assert_eq!(analysis["delay_max_ps"], 320_000_000u64);
        assert!(analysis["all"]["omega"]["ratio"]["value"].as_f64().expect("a number") >= 1.0);
    }
}

#[test]
fn captures_at_both_ends_become_one_way_delays_with_bounds() {
    let place = Place::new("two-sided");
    let client = write(&place, "client.pcap", &classic(&packets(false)));
    let server = write(&place, "server.pcapng", &pcapng(&packets(true)));
    let imported = import(&place, &client, &["--server", &server, "--drift", "1 ppm"]);
    assert!(imported.status.success(), "{imported:?}");
    let summary = json(&imported);
    assert_eq!((&summary["replies"], &summary["unmatched"]), (&4000.into(), &0.into()));
    // Half of the fastest request and reply, and what the clocks may drift in half a second.
    assert_eq!(summary["bound_ps"], 35_500_000);
    let analysed = theta(&["analyse", &place.log(), "--certify"]);
    assert!(analysed.status.success(), "{analysed:?}");
    let analysis = json(&analysed);
    // The comparison puts the offset in the middle: half of what request and reply differ.
    assert_eq!(analysis["delay_min_ps"], 35_000_000u64);
    assert_eq!(analysis["delay_max_ps"], 235_000_000u64);
    assert!(analysis["certified"]["all"].is_object(), "{analysis}");
}

/// A segment of TCP over raw IP between 10.0.0.9 and 10.0.0.1, port 6379; with SYN the number is that of the SYN.
fn segment(is_request: bool, sequence: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    let (client, server) = ([10, 0, 0, 9], [10, 0, 0, 1]);
    let (from, to) = if is_request { (client, server) } else { (server, client) };
    let ports: [u16; 2] = if is_request { [5000, 6379] } else { [6379, 5000] };
    let mut bytes = vec![0x45, 0, 0, 40 + content.len() as u8, 0, 0, 0, 0, 64, 6, 0, 0];
    bytes.extend([from, to].concat());
    bytes.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    bytes.extend(sequence.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
    bytes.extend(content);
    bytes
}

/// Three commands at once, whose replies come 200, 300 and 400 us later.
fn pipelined() -> Vec<(u32, Vec<u8>)> {
    let mut packets = vec![(0, segment(true, 0, 2, b"")), (5, segment(false, 0, 18, b""))];
    packets.push((100, segment(true, 1, 16, b"PING\r\nPING\r\nPING\r\n")));
    packets.extend((0..3).map(|number| (300 + 100 * number, segment(false, 1 + 7 * number, 16, b"+PONG\r\n"))));
    packets
}

#[test]
fn pipelined_commands_become_a_log_and_a_list() {
    let place = Place::new("streams");
    let capture = write(&place, "redis.pcap", &classic(&pipelined()));
    let list = place.0.join("list.csv").display().to_string();
    let (log, words) = (place.log(), ["import", &capture, "--client", "10.0.0.9", "--port", "6379"]);
    let import = |more: &[&str]| theta(&[&words, more].concat());
    let imported = import(&["--protocol", "redis", "--output", &log, "--list", &list]);
    assert!(imported.status.success(), "{imported:?}");
    let summary = json(&imported);
    assert_eq!((&summary["requests"], &summary["replies"]), (&3.into(), &3.into()), "{summary}");
    assert_eq!((&summary["rounds"], &summary["passed_over"]["gaps"]), (&3.into(), &0.into()), "{summary}");
    assert_eq!(json(&theta(&["analyse", &log]))["delay_max_ps"], 400_000_000u64);
    let again = theta(&["import", "--messages", &list, "--output", &place.0.join("again").display().to_string()]);
    assert_eq!(json(&again)["messages"], 3, "{again:?}");

    let other = import(&["--protocol", "kafka", "--list", &list]);
    assert!(!other.status.success() && String::from_utf8_lossy(&other.stderr).contains("do not speak the protocol"));
    let nowhere = import(&["--protocol", "redis"]);
    assert!(!nowhere.status.success() && String::from_utf8_lossy(&nowhere.stderr).contains("--output"), "{nowhere:?}");
}

/// A reply was not captured: what was is there, and the exit code says that it is not all.
#[test]
fn a_gap_in_a_stream_makes_it_partial() {
    let place = Place::new("streams-gap");
    let mut packets = pipelined();
    packets.remove(4);
    let capture = write(&place, "redis.pcap", &classic(&packets));
    let words = ["import", &capture, "--client", "10.0.0.9", "--port", "6379", "--protocol", "redis", "--output"];
    let imported = theta(&[&words[..], &[&place.log()]].concat());
    assert_eq!(imported.status.code(), Some(1), "{imported:?}");
    let over = &json(&imported)["passed_over"];
    assert_eq!((&over["gaps"], &over["unanswered"]), (&1.into(), &2.into()), "{over}");
    assert_eq!(json(&theta(&["analyse", &place.log()]))["whole"], false);
}

#[test]
fn a_cut_capture_is_partial_all_the_way() {
    let place = Place::new("cut-capture");
    let whole = classic(&packets(false));
    let imported = import(&place, &write(&place, "cut.pcap", &whole[..whole.len() - 3]), &[]);
    assert_eq!(imported.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&imported.stderr).contains("partial"), "{imported:?}");
    let analysed = theta(&["analyse", &place.log()]);
    assert_eq!(analysed.status.code(), Some(1));
    assert_eq!(json(&analysed)["whole"], false);
}

#[test]
fn what_is_no_capture_or_of_another_time_is_named() {
    let place = Place::new("no-capture");
    let client = write(&place, "client.pcap", &classic(&packets(false)));
    let text = write(&place, "text", b"nothing of the kind, but long enough");
    let empty = write(&place, "empty.pcap", &classic(&[]));
    for (capture, more, part) in [
        (&text, vec![], "no capture file"),
        (&client, vec!["--server", &empty], "10.0.0.1"),
        (&client, vec!["--server", &text], "no capture file"),
        (&client, vec!["--server", "no-such-file"], "no-such-file"),
    ] {
        let output = import(&place, capture, &more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(said.contains(part), "{part}: {said}");
        assert!(!Path::new(&place.log()).exists());
    }
}

/// An interpreter with the package's sources and what they need, if there is one.
fn python() -> Option<(PathBuf, PathBuf)> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python = checkout.join(".venv/bin/python");
    let has =
        Command::new(&python).args(["-c", "import matplotlib"]).output().is_ok_and(|output| output.status.success());
    if !has {
        println!("SKIP: no .venv with matplotlib (tools/setup python)");
    }
    has.then(|| (python, checkout.join("python")))
}

fn simulated(place: &Place) {
    let output =
        theta(&["simulate", "--n", "4", "--f", "1", "--rounds", "300", "--delay", "1 ms", "--log", &place.log()]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_trim_that_leaves_nothing_is_refused() {
    let place = Place::new("trimmed-away");
    simulated(&place);
    assert!(theta(&["analyse", &place.log(), "--trim", "10 ms"]).status.success());
    let output = theta(&["analyse", &place.log(), "--trim", "10 min"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("nothing is left of it without 600 s at both ends"), "{said}");
}

#[test]
fn a_log_becomes_a_page_that_holds_its_picture() {
    let Some((python, sources)) = python() else { return };
    let place = Place::new("report");
    simulated(&place);
    let out = place.0.join("out");
    let output = Command::new(FFCLOCK_LAB)
        .args(["theta", "report", &place.log(), "--output"])
        .arg(&out)
        .arg("--python")
        .arg(python)
        .env("PYTHONPATH", sources)
        .output()
        .expect("works in a test");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("theta.png") && text.contains("theta.html"), "{text}");
    let page = std::fs::read_to_string(out.join("theta.html")).expect("drawn");
    assert!(page.contains("data:image/png;base64,") && page.contains("keep the rules"), "the page is whole");
    assert!(std::fs::read(out.join("theta.png")).expect("drawn").starts_with(b"\x89PNG"));
}

#[test]
fn a_report_of_a_partial_log_is_drawn_and_says_so() {
    let Some((python, sources)) = python() else { return };
    let place = Place::new("report-partial");
    simulated(&place);
    let run = Path::new(&place.log()).join("run.json");
    let text = std::fs::read_to_string(&run).expect("just written");
    std::fs::write(&run, text.replace("\"complete\": true", "\"complete\": false")).expect("works in a test");
    let output = Command::new(FFCLOCK_LAB)
        .args(["theta", "report", &place.log(), "--output"])
        .arg(&place.0)
        .arg("--python")
        .arg(python)
        .env("PYTHONPATH", sources)
        .output()
        .expect("works in a test");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let page = std::fs::read_to_string(place.0.join("theta.html")).expect("drawn all the same");
    assert!(page.contains("Partial"));
}

#[test]
fn a_span_that_no_signed_number_holds_is_refused() {
    let place = Place::new("huge-delay");
    simulated(&place);
    let run = Path::new(&place.log()).join("run.json");
    let text = std::fs::read_to_string(&run).expect("just written");
    let (before, rest) = text.split_once("\"delay_ps\":").expect("every run has it");
    let (_, after) = rest.split_once(',').expect("more follows");
    std::fs::write(&run, format!("{before}\"delay_ps\": {},{after}", u64::MAX)).expect("works in a test");
    let output = theta(&["analyse", &place.log()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("delay_ps = 18446744073709551615 is longer"),
        "{output:?}"
    );
}

#[test]
fn a_report_of_nothing_is_a_clear_error() {
    let output = theta(&["report", "no-such-log"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-log"), "{output:?}");
}

/// Senders that were not asked for do not count and are not remembered: a million of them, in 64 MiB of data.
#[test]
fn a_watch_forgets_a_million_strangers() {
    let words = ["--json", "theta", "watch", "-", "--receiver", "r", "--sender", "a", "--every", "1 h"];
    let mut watch = Command::new("sh")
        .args(["-c", "ulimit -d 65536 && exec \"$@\"", "sh", FFCLOCK_LAB])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("works in a test");
    let mut list = BufWriter::new(watch.stdin.take().expect("it is piped"));
    writeln!(list, "sender,receiver,id,sent,perceived").expect("the watch reads");
    for number in 0..1_000_000_u64 {
        let at = 10_000 * number;
        writeln!(list, "stranger-{number},r,{number},{at},{}", at + 500).expect("the watch reads");
        if number % 1000 == 0 {
            writeln!(list, "a,r,{number},{at},{}", at + 700).expect("the watch reads");
        }
    }
    drop(list);
    let output = watch.wait_with_output().expect("works in a test");
    // Passed over, which it says at its end; without memory it would not have come so far.
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let last: serde_json::Value =
        serde_json::from_str(said.lines().last().unwrap_or_default()).expect("a line of figures");
    assert_eq!((&last["passed_over"]["strangers"], &last["messages"]), (&1_000_000.into(), &1000.into()), "{last}");
}

/// The scheduler's trace, as a text of the kernel's tracer, beside the story of a peak.
#[test]
fn the_story_of_a_peak_says_who_ran() {
    let place = Place::new("who-ran");
    let simulated =
        theta(&["simulate", "--n", "4", "--f", "1", "--rounds", "100", "--seed", "3", "--log", &place.log()]);
    assert!(simulated.status.success(), "{simulated:?}");
    let trace = place.0.join("trace.txt");
    let why = |until: u64, more: &str| {
        let line = |at: u64| {
            format!(
                "  x-1  [001] d..2. {at}: sched_switch: prev_comm=x prev_pid=1 ==> next_comm=busy next_pid=7 next_prio=120\n"
            )
        };
        std::fs::write(&trace, line(0) + &line(until) + more).expect("works in a test");
        theta(&["why", &place.log(), "--sched", &trace.display().to_string()])
    };
    let all = why(u64::MAX, "");
    assert!(all.status.success(), "{all:?}");
    let ran = &json(&all)["ran"];
    assert_eq!(*ran, serde_json::json!([{ "processor": 1, "thread": "busy-7", "share": 1.0 }]), "{ran}");
    assert_eq!(json(&all)["sched"]["own"], serde_json::json!({ "thread": "busy-7", "processor": 1 }), "{all:?}");
    assert_eq!(json(&all)["sched"]["not_known"], serde_json::json!([]), "{all:?}");
    // Kernel buffers are per processor: what one of them lost is not known of that one alone.
    let lossy = why(u64::MAX, "CPU:0 [LOST 12 EVENTS]\n");
    assert_eq!(json(&lossy)["ran"], *ran, "{lossy:?}");
    let not_known = serde_json::json!([{ "processor": 0, "reason": "lost-events" }]);
    assert_eq!(json(&lossy)["sched"]["not_known"], not_known, "{lossy:?}");
    let short = why(1, "");
    assert_eq!(short.status.code(), Some(1), "{short:?}");
    assert!(String::from_utf8_lossy(&short.stderr).contains("does not reach over the message"), "{short:?}");
}
