use super::*;
use crate::agreement::MethodAgreement;
use crate::effect::{Cost, EffectLevel};
use crate::kind::{ProbeKind, StampedSites};
use crate::pairs::MappingError;
use crate::site::Sites;
use ffclock_counters::campaign::{Load, schedule};
use ffclock_statistics::Spread;
use ffclock_units::{Counter, Span, Ticks};
use std::path::PathBuf;

fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ffclock-record-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn outcome(packets: u64) -> ProbeOutcome {
    let mut passages = PacketPassages::new(Counter::from_raw(1_000));
    let mut counts = PacketCounts { sent: packets, events_lost: 2, ..PacketCounts::default() };
    for sequence in 0..packets {
        passages.send(Counter::from_raw(1_000 + sequence * 100));
        if sequence % 5 != 3 {
            passages.note(sequence, Site::UserReceive, Counter::from_raw(1_070 + sequence * 100));
            counts.received += 1;
        }
        // The socket's stamp may lie before the beginning.
        passages.note(sequence, Site::SocketOut, Counter::from_raw(990 + sequence * 100));
    }
    counts.lost = counts.sent - counts.received;
    let unavailable = vec!["the tap: no right".to_owned()];
    ProbeOutcome { passages, counts, unavailable, length_s: 1.5, sends: Vec::new(), methods: methods() }
}

/// Both methods at one site.
fn methods() -> Methods {
    let difference_ns = Spread::of(&[100.0, 150.0, 300.0]).unwrap();
    Methods {
        agreements: vec![MethodAgreement {
            site: Site::DriverOut,
            count: 3,
            tracing_ns: 1_000.0,
            ebpf_ns: 1_150.0,
            difference_ns,
        }],
        mapping: Some(MappingError { median_ns: 21.0, worst_ns: 90.5 }),
        stamped: StampedSites {
            tracing: Sites::DRIVER,
            ebpf: Sites::of(&[Site::DriverOut, Site::TcOut]),
            tap: Sites::of(&[Site::TapIn]),
        },
    }
}

fn effect() -> Effect {
    let delays = Spread::of(&[1_000.0, 2_000.0, 4_000.0]).unwrap();
    let level = EffectLevel {
        probes: 1,
        added: Some(ProbeKind::Tap),
        out_ns: delays,
        out_p90_ns: 3_600.0,
        in_ns: delays,
        in_p90_ns: 3_600.0,
        send_ns: delays,
        cost: Some(Cost { median_ns: 600.0, interval_ns: (500.0, 700.0) }),
    };
    Effect { levels: vec![level], rounds: 16 }
}

fn written(path: &Path) {
    let about = serde_json::json!({ "way": "a test", "counter_hz": 2.5e9, "size": 64 });
    let mut writer = ProbeWriter::create(path, &about).unwrap();
    writer.effect(&effect()).unwrap();
    for phase in schedule(&[Load::Cpu], Span::from_secs(2)) {
        writer.phase(&phase, &outcome(20)).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn both_forms_read_back_stamp_by_stamp() {
    let directory = directory("both");
    for name in ["a.parquet", "a.jsonl"] {
        let path = directory.join(name);
        written(&path);
        let record = read(&path).unwrap();
        assert_eq!(record.about["way"], "a test", "{name}");
        assert_eq!(record.effect, Some(effect()), "{name}");
        assert!((record.period.as_hertz() - 2.5e9).abs() < 1.0);
        assert_eq!(record.phases.iter().map(|phase| phase.phase.name()).collect::<Vec<_>>(), ["quiet", "cpu", "quiet"]);
        let expected = outcome(20);
        for phase in &record.phases {
            assert_eq!((&phase.counts, &phase.unavailable), (&expected.counts, &expected.unavailable));
            assert_eq!(phase.methods, methods());
            for packet in 0..20 {
                for site in Site::ALL {
                    assert_eq!(phase.passages.at(packet, site), expected.passages.at(packet, site), "{name} {packet}");
                }
            }
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn columns_are_found_by_their_names() {
    let path = directory("names").join("a.parquet");
    written(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (&b"\"user-send\",\"loop-out\""[..], &b"\"loop-out\",\"user-send\""[..]);
    let place = bytes.windows(from.len()).position(|part| part == from).unwrap();
    bytes[place..place + to.len()].copy_from_slice(to);
    std::fs::write(&path, &bytes).unwrap();
    let record = read(&path).unwrap();
    assert_eq!(record.phases[0].passages.at(2, Site::UserSend), Some(Ticks::from_raw(200)));
    assert_eq!(record.phases[0].passages.count(Site::LoopOut), 0);
    // A site whose column is not there, and a name that this program does not know.
    bytes[place..place + to.len()].copy_from_slice(b"\"loop-abc\",\"user-send\"");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path).unwrap().phases[0].passages.count(Site::UserSend), 20);
    let column = b"user-send";
    let schema = bytes.windows(column.len()).enumerate().filter(|(_, part)| part == column);
    // Behind a quote it is a name in the metadata.
    let names: Vec<usize> = schema.map(|(place, _)| place).filter(|place| bytes[place - 1] != b'"').collect();
    names.iter().for_each(|place| bytes[place + 8] = b'x');
    std::fs::write(&path, &bytes).unwrap();
    let error = read(&path).expect_err("a column is missing").to_string();
    assert!(error.contains("user-send is missing"), "{error}");
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let directory = directory("cut");
    for name in ["a.parquet", "a.jsonl"] {
        let path = directory.join(name);
        written(&path);
        let whole = std::fs::read(&path).unwrap();
        let step = (whole.len() / 97).max(1);
        for length in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = read(&path).expect_err("it is cut").to_string();
            assert!(!error.is_empty(), "{name} {length}");
            if length > 600 {
                assert!(error.contains("again"), "the remedy is named: {error}");
            }
        }
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_damaged_table_gives_an_error_and_never_a_panic() {
    let path = directory("damaged").join("a.parquet");
    written(&path);
    let whole = std::fs::read(&path).unwrap();
    for place in (4..whole.len()).step_by(23) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0xff;
        std::fs::write(&path, bytes).unwrap();
        // Values may still decode; what matters is that reading ends.
        let _ = read(&path);
    }
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// The recording with one text replaced.
fn changed(from: &str, to: &str) -> String {
    let path = directory("changed").join(format!("{}.jsonl", from.len() * 1000 + to.len()));
    written(&path);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    std::fs::write(&path, text.replacen(from, to, 1)).unwrap();
    let error = read(&path).expect_err("it contradicts itself").to_string();
    std::fs::remove_file(path).unwrap();
    error
}

#[test]
fn contradictions_are_named() {
    for (from, to, expected) in [
        ("\"sent\":20", "\"sent\":21", "21 packets were sent and 20 are recorded"),
        ("\"received\":16", "\"received\":15", "15 replies were received and 16 are recorded"),
        ("\"sequence\":4", "\"sequence\":5", "packet 5 where 4 is expected"),
        ("[0,null", "[null", &format!("stamps for {} sites", Site::ALL.len())),
        ("\"counter_hz\":2500000000.0", "\"counter_hz\":0", "no frequency"),
        ("\"sites\":[\"user-send\"", "\"sites\":[\"tap-in\"", "names a site twice"),
        ("\"record\":\"phase\"", "\"record\":\"other\"", "belongs to no phase"),
        ("\"record\":\"ended\"", "\"record\":\"other\"", "begins in a phase"),
    ] {
        let error = changed(from, to);
        assert!(error.contains(expected), "{from}: {error}");
    }
}

#[test]
fn records_of_other_versions_are_read() {
    let mut beside = serde_json::json!({ "number": 0, "load": null, "begin_s": 0.0, "length_s": 1.0, "counts": PacketCounts::default(),
        "unavailable": [], "took_s": 1.0 });
    let of = |value: &Value| serde_json::from_value::<Beside>(value.clone()).unwrap().methods;
    assert_eq!(of(&beside), Methods::default(), "before there were two methods");
    let mut agreements = serde_json::to_value(methods().agreements).unwrap();
    agreements.as_array_mut().unwrap().push(serde_json::json!({ "site": "of-tomorrow" }));
    beside["agreements"] = agreements;
    assert_eq!(of(&beside).agreements, methods().agreements, "another version knows more sites");
}

#[test]
fn stamps_centuries_away_are_refused() {
    let error = changed("[0,null", &format!("[{},null", i64::MAX));
    assert!(error.contains("again") && error.contains("centuries"), "{error}");
    for ns in ["9223372036854775807", "-9223372036854775808", "2305843009213693952"] {
        let error = script(&format!("{SCRIPT_HEAD}{{\"ns\":{ns},\"site\":\"user-send\",\"length\":64}}\n"));
        assert!(matches!(error, Err(RecordError::Script { line: 2, .. })), "{ns}");
    }
    let dropped = "dtrace: 18446744073709551615 drops on CPU 0\n";
    let record = script(&format!("{SCRIPT_HEAD}{dropped}{dropped}{{\"record\":\"end\"}}\n")).unwrap();
    assert_eq!(record.phases[0].counts.events_lost, u64::MAX);
}

#[test]
fn other_files_are_no_records() {
    let path = directory("foreign").join("x");
    for (bytes, expected) in [
        (&b""[..], "is no record of `ffclock-lab probe run --record`"),
        (&b"Ta,Tb\n1,2\n"[..], "is no record of `ffclock-lab probe run --record`"),
        (&b"PAR1PAR1PAR1"[..], "Parquet"),
        (
            &b"{\"format\":\"ffclock counters 1\",\"instrument\":\"latency\"}\n{\"record\":\"end\",\"records\":0}\n"[..],
            "latency",
        ),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = read(&path).expect_err("it is something else").to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(matches!(read(&path.with_extension("missing")), Err(RecordError::Io(_))));
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
}

/// What the script prints on FreeBSD for requests of 64, 66 and 68 bytes, events of one CPU after those of another.
const SCRIPT: &str = include_str!("../../tests/probe-d.txt");

const SCRIPT_HEAD: &str = "{\"format\":\"ffclock dtrace 1\",\"system\":\"FreeBSD\",\"device\":\"igb0\",\"size\":64}\n";

fn script(text: &str) -> Result<ProbeRecord, RecordError> {
    dtrace::read(text.as_bytes())
}

#[test]
fn what_the_dtrace_script_prints_becomes_packets() {
    let record = script(SCRIPT).unwrap();
    assert_eq!((&record.about["system"], &record.about["device"]), (&"FreeBSD 14.1-RELEASE".into(), &"igb0".into()));
    let [phase] = record.phases.as_slice() else { panic!("one phase") };
    let counts = &phase.counts;
    assert_eq!((counts.sent, counts.received, counts.lost), (3, 2, 1));
    assert_eq!((counts.events_unplaced, counts.events_lost, counts.foreign), (1, 4, 1));
    let ns = |packet, site| phase.passages.at(packet, site).map(|ticks| ticks.raw());
    assert_eq!(
        (ns(0, Site::UserSend), ns(0, Site::TapOut), ns(0, Site::DriverOut)),
        (Some(0), Some(9_000), Some(12_000))
    );
    assert_eq!((ns(0, Site::DriverIn), ns(0, Site::UserReceive)), (Some(220_000), Some(240_000)));
    assert_eq!((ns(1, Site::DriverOut), ns(1, Site::UserReceive)), (Some(1_010_000), None));
    // The paper's fault: the socket's stamp on the way out is made after the packet is back.
    assert_eq!((ns(2, Site::SocketOut), ns(2, Site::UserReceive)), (Some(2_600_000), Some(2_250_000)));
}

/// Everything that packaging/freebsd/probe.d can print, with its numbers filled in.
#[test]
fn the_dtrace_script_prints_what_is_read_here() {
    let source = include_str!("../../../../packaging/freebsd/probe.d");
    let formats = source.lines().filter_map(|line| line.trim().strip_prefix("printf(\"")?.split("\\n\"").next());
    let mut sites = std::collections::BTreeSet::new();
    let mut text = String::new();
    for format in formats {
        let line = format.replace("\\\"", "\"").replacen("%s", "14.1", 1).replacen("%s", "igb0", 1);
        let line = line.replacen("%d", "64", 1);
        // The length of a reply is odd, that of a request even.
        let is_reply = line.contains("-in\"") || line.contains("-receive\"");
        let line = line.replacen("%d", if is_reply { "65" } else { "64" }, 1);
        assert!(!line.contains('%'), "{line}");
        sites.extend(line.split("\"site\":\"").nth(1).and_then(|rest| rest.split('"').next()).map(str::to_owned));
        text += &line;
        text.push('\n');
    }
    let record = script(&text).unwrap();
    assert_eq!(record.about["system"], "FreeBSD 14.1");
    for site in [
        "user-send",
        "queue-out",
        "tap-out",
        "driver-out",
        "driver-in",
        "stack-in",
        "tap-in",
        "socket-in",
        "user-receive",
    ] {
        assert!(sites.contains(site), "{site} is not stamped");
    }
    assert_eq!(record.phases[0].counts.sent, 1);
}

#[test]
fn a_script_that_was_interrupted_or_changed_is_refused() {
    let without_end = SCRIPT.replace("{\"record\":\"end\"}\n", "");
    assert!(matches!(script(&without_end), Err(RecordError::Lines(RecordingError::Truncated { .. }))));
    for (from, to) in [("\"ns\":", "\"ms\":"), ("user-send", "user-land"), ("\"device\"", "\"dev\"")] {
        let error = script(&SCRIPT.replacen(from, to, 1)).expect_err("it was changed");
        assert!(matches!(error, RecordError::Script { .. }), "{error}");
    }
    let more = format!("{SCRIPT}{{\"ns\":1,\"site\":\"tap-in\",\"length\":63}}\n");
    assert!(script(&more).expect_err("it goes on").to_string().contains("behind the end"));
    let long = SCRIPT.replacen("igb0", &"x".repeat(9_000), 1);
    assert!(matches!(script(&long), Err(RecordError::Script { line: 1, .. })));
}
