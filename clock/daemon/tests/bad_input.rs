//! Reactions to bad input: hostile packets, lying servers, broken files. The truth stays inside every published bound,
//! and the clock keeps what it knew and reports the event.

mod common;

use common::server::{Behaviour, TestServer, Truth};
use common::{Daemon, Judge, Scratch, server_section};
use ffclock_control::protocol::{Answer, SourceState};
use ffclock_counter::CounterId;
use ffclock_page::check_history;
use ffclock_page::layout::history::{self, HISTORY_BYTES};
use ffclock_page::layout::{MAGIC, PAGE_BYTES};
use ffclock_sys::{SharedHistoryReader, history_beside};
use ffclock_units::{Bound, Span, Status};
use ffclock_wire::{LeapIndicator, NtpTimestamp, Packet};
use std::path::Path;
use std::time::Duration;

struct Case {
    scratch: Scratch,
    server: TestServer,
    daemon: Daemon,
    judge: Judge,
}

/// A daemon that has settled on a good server.
fn settled(name: &str) -> Case {
    let scratch = Scratch::new(name);
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let section = server_section(server.address, "reply_timeout = \"50 ms\"\nunreachable_after = 4");
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("counter = \"tsc\"") + &section));
    let judge = Judge::new(&scratch, CounterId::CPU, truth);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 12);
    Case { scratch, server, daemon, judge }
}

impl Case {
    fn rejected(&self, reason: &str) -> u64 {
        let status = self.daemon.status().expect("the daemon answers");
        status.sources[0].rejected.iter().find(|(name, _)| name == reason).map_or(0, |(_, count)| *count)
    }

    fn wait_rejected(&self, reason: &str) {
        self.daemon.wait_for(reason, |status| {
            status.sources[0].rejected.iter().any(|(name, count)| name == reason && *count >= 3)
        });
    }
}

#[test]
fn hostile_packets_are_counted_and_change_nothing() {
    let mut case = settled("hostile");
    case.server.behave(|behaviour| {
        behaviour.before = vec![
            |_, _| b"short".to_vec(),
            |_, reply| [reply.encode().to_vec(), vec![0x5a; 2000]].concat(),
            |_, reply| {
                Packet { origin: NtpTimestamp::from_raw(1), receive: NtpTimestamp::from_raw(1 << 40), ..*reply }
                    .encode()
                    .to_vec()
            },
            |request, _| request.encode().to_vec(),
        ];
        behaviour.copies = 2;
    });
    for reason in ["truncated", "wrong-origin", "mode", "duplicate"] {
        case.wait_rejected(reason);
    }
    let used = case.daemon.status().unwrap().sources[0].used;
    case.daemon.wait_for("more exchanges", |status| status.sources[0].used > used + 5);
    let (reading, error) = case.judge.watch(Duration::from_millis(300)).unwrap();
    assert!(reading.status >= Status::WarmingUp);
    assert!(error.abs() < Span::from_millis(2), "{error}");
}

#[test]
fn a_server_that_jumps_is_not_followed() {
    for (name, jump) in [("jump-150ms", Span::from_millis(150)), ("jump-1h", Span::from_secs(3600))] {
        let mut case = settled(name);
        case.server.behave(|behaviour| behaviour.lie = jump);
        case.daemon.wait_for("the contradiction in the events", |status| {
            status.events.iter().any(|event| event.text.contains("contradicts"))
        });
        let (_, error) = case.judge.watch(Duration::from_millis(700)).unwrap();
        assert!(error.abs() < Span::from_millis(2), "{name}: {error}");
        case.server.behave(|behaviour| behaviour.lie = Span::ZERO);
        let used = case.daemon.status().unwrap().sources[0].used;
        case.daemon.wait_for("exchanges again", |status| status.sources[0].used > used + 3);
        case.judge.watch(Duration::from_millis(200));
    }
}

#[test]
fn a_server_out_of_order_is_lost_not_believed() {
    let mut case = settled("out-of-order");
    for (reason, spoil) in [
        ("stratum", (|behaviour| behaviour.stratum = 16) as fn(&mut Behaviour)),
        ("unsynchronised", |behaviour| behaviour.leap = LeapIndicator::Unsynchronised),
        ("root-distance", |behaviour| behaviour.root_dispersion = Bound::of(Span::from_secs(5))),
    ] {
        assert_eq!(case.rejected(reason), 0);
        case.server.behave(spoil);
        case.wait_rejected(reason);
        case.daemon
            .wait_for("holdover", |status| status.clock.as_ref().is_some_and(|clock| clock.status == Status::Holdover));
        case.judge.watch(Duration::from_millis(100)).unwrap();
        case.server.behave(|behaviour| *behaviour = Behaviour::default());
        case.daemon.wait_for("the server again", |status| status.sources[0].state == SourceState::Reachable);
    }
}

#[test]
fn a_refusal_is_obeyed() {
    let case = settled("kiss");
    case.server.behave(|behaviour| {
        behaviour.stratum = 0;
        behaviour.reference_id = u32::from_be_bytes(*b"DENY");
    });
    case.daemon.wait_for("refused", |status| status.sources[0].state == SourceState::Refused);
    let sent = case.daemon.status().unwrap().sources[0].sent;
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(case.daemon.status().unwrap().sources[0].sent, sent, "nothing more is sent");
}

#[test]
fn a_lie_about_the_dispersion_stays_within_what_it_claims() {
    // The server says 20 ms and is 15 ms off from the first packet on: the bound contains the truth because the claim
    // is true.
    let scratch = Scratch::new("dispersion");
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    server.behave(|behaviour| {
        behaviour.root_dispersion = Bound::of(Span::from_millis(20));
        behaviour.lie = Span::from_millis(15);
    });
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("") + &server_section(server.address, "")));
    let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    let (reading, error) = judge.watch(Duration::from_millis(300)).unwrap();
    assert!(reading.bound >= Bound::of(Span::from_millis(15)), "{reading:?} {error}");
}

#[test]
fn a_broken_page_is_replaced() {
    let scratch = Scratch::new("broken-page");
    let head = MAGIC.to_ne_bytes().to_vec();
    std::fs::write(scratch.page(), [head, vec![0xa5; PAGE_BYTES - 8]].concat()).unwrap();
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let daemon = Daemon::start(&scratch, &(scratch.daemon_section("") + &server_section(server.address, "")));
    daemon.wait_for("an estimate", |status| status.clock.is_some());
    let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
    assert!(judge.watch(Duration::from_millis(200)).is_some());
}

/// Page, history and remembered rate of a later version, of the sizes that they have now and of others.
#[test]
fn what_another_version_left_is_begun_again() {
    for (name, page, history) in [("same-sizes", PAGE_BYTES, HISTORY_BYTES), ("other-sizes", 8192, 1 << 20)] {
        let scratch = Scratch::new(&format!("another-version-{name}"));
        let begins = |magic: u64, length: usize| {
            let head = [magic, 2].map(u64::to_ne_bytes).concat();
            [head, vec![0xa5; length - 16]].concat()
        };
        let history_path = history_beside(&scratch.page());
        std::fs::write(scratch.page(), begins(MAGIC, page)).unwrap();
        std::fs::write(&history_path, begins(history::MAGIC, history)).unwrap();
        std::fs::create_dir(scratch.path().join("state")).unwrap();
        std::fs::write(scratch.path().join("state/rate-tsc.json"), "{\"version\": 2}").unwrap();
        let truth = Truth::beginning_now(CounterId::CPU);
        let server = TestServer::start("127.0.0.1:0", truth);
        let section = server_section(server.address, "");
        let daemon = Daemon::start(&scratch, &(scratch.daemon_section("counter = \"tsc\"") + &section));
        daemon.wait_for("an estimate", |status| status.clock.is_some());
        let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
        assert!(judge.watch(Duration::from_millis(200)).is_some());
        let memory = SharedHistoryReader::open(&history_path).expect("a history of this version");
        assert_eq!(check_history(memory.words(), None), Ok(()));
        assert!(daemon.log().contains("the remembered rate cannot be read"), "{}", daemon.log());
    }
}

/// Ways to spoil a file that the daemon has mapped.
const SPOILS: [fn(&Path); 2] = [
    |path| std::fs::remove_file(path).expect("the file is there"),
    |path| {
        std::fs::File::options()
            .write(true)
            .open(path)
            .expect("the file is there")
            .set_len(0)
            .expect("it can be cut off")
    },
];

/// Spoils a file of `length` bytes and waits until the daemon has made it again.
fn spoil(case: &mut Case, path: &Path, spoil: fn(&Path)) {
    let length = std::fs::metadata(path).expect("the file is there").len();
    spoil(path);
    let start = std::time::Instant::now();
    while !std::fs::metadata(path).is_ok_and(|found| found.len() == length) {
        assert!(start.elapsed() < Duration::from_secs(10), "never made again\n{}", case.daemon.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    // The new file has its name before the daemon has mapped it, and to cut it off then would end the daemon. Once it
    // has, it answers.
    assert!(case.daemon.status().is_some() && case.daemon.is_running());
}

#[test]
fn a_history_that_is_removed_or_cut_off_is_made_again() {
    let mut case = settled("history-gone");
    let history = history_beside(&case.scratch.page());
    SPOILS.into_iter().for_each(|way| spoil(&mut case, &history, way));
    assert!(case.daemon.log().contains("the history was removed or replaced"), "{}", case.daemon.log());
    std::fs::remove_file(&history).unwrap();
    std::fs::create_dir(&history).unwrap();
    case.daemon
        .wait_for("the reason", |status| status.events.iter().any(|event| event.text.contains("old stamps will not")));
    assert!(case.judge.watch(Duration::from_millis(200)).is_some(), "time is kept all the same");
}

#[test]
fn a_page_that_is_removed_or_cut_off_is_made_again() {
    let mut case = settled("page-gone");
    for way in SPOILS {
        let page = case.scratch.page();
        spoil(&mut case, &page, way);
        let mut judge = Judge::new(&case.scratch, CounterId::CPU, case.judge.truth());
        assert!(judge.watch(Duration::from_secs(1)).is_some());
    }
    assert!(case.daemon.log().contains("the page was removed or replaced: it is made again"), "{}", case.daemon.log());
    std::fs::remove_file(case.scratch.page()).unwrap();
    std::fs::create_dir(case.scratch.page()).unwrap();
    case.daemon
        .wait_for("the reason", |status| status.events.iter().any(|event| event.text.contains("cannot be made again")));
}

#[test]
fn a_control_socket_that_is_removed_is_made_again() {
    let case = settled("control-gone");
    let control = case.scratch.path().join("control");
    std::fs::remove_file(&control).unwrap();
    let start = std::time::Instant::now();
    while case.daemon.status().is_none() {
        assert!(start.elapsed() < Duration::from_secs(30), "never made again\n{}", case.daemon.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(case.daemon.log().contains("the control socket was removed or replaced: it is made again"));
}

#[test]
fn a_broken_configuration_is_refused_and_the_old_one_kept() {
    let case = settled("reload");
    let used = case.daemon.status().unwrap().sources[0].used;
    case.scratch.write_config("counter = \"sundial\"\n");
    case.daemon.signal("HUP");
    case.daemon.wait_for("the refusal", |status| status.events.iter().any(|event| event.text.contains("refused")));
    match case.daemon.ask("{\"command\":\"reload\"}") {
        Some(Answer::Error { message }) => assert!(message.contains("sundial"), "{message}"),
        other => panic!("{other:?}"),
    }
    let section = server_section(case.server.address, "asymmetry = \"1 us\"");
    case.scratch.write_config(&(case.scratch.daemon_section("counter = \"tsc\"") + &section));
    assert_eq!(case.daemon.ask("{\"command\":\"reload\"}"), Some(Answer::Reloaded));
    let after = case.daemon.status().unwrap();
    assert!(after.sources[0].used >= used, "a reload loses nothing: {} then {}", used, after.sources[0].used);
}

#[test]
fn what_cannot_start_says_why() {
    let scratch = Scratch::new("refused");
    let cases = [
        ("[[server]]\naddress = \"192.0.2.1\"\npol = \"16 s\"\n", "line 3: unknown key `pol`"),
        ("", "no [[server]]"),
        ("[[server]]\naddress = 1.5e\n", "line 2"),
    ];
    for (text, expected) in cases {
        let path = scratch.write_config(text);
        for check in [&["--check-config"][..], &[]] {
            let output = std::process::Command::new(env!("CARGO_BIN_EXE_ffclockd"))
                .args(check)
                .arg("--config")
                .arg(&path)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success());
            assert!(said.contains(expected), "{said}");
        }
    }
}

/// Whether a test may mount its own file system.
fn may_mount(directory: &std::path::Path) -> bool {
    let mount = format!("mount -t tmpfs -o size=4k none {}", directory.display());
    let tried = std::process::Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    tried.is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let scratch = Scratch::new("full-disk");
    let record = scratch.path().join("record");
    std::fs::create_dir(&record).unwrap();
    if !may_mount(&record) {
        println!("SKIP: no file system may be mounted here, so none can be filled");
        return;
    }
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let name = record.display();
    // A file system with room for one page of memory, which the record of a few seconds fills.
    let mount = format!("mount -t tmpfs -o size=4k none {name}");
    let top = scratch.daemon_section(&format!("counter = \"tsc\"\nrecord = \"{name}\""));
    let config = top + &server_section(server.address, "");
    let daemon = Daemon::start_after(
        &scratch,
        &config,
        &format!("exec unshare -rm sh -c '{mount} && exec \"$0\" \"$@\"' \"$0\" \"$@\""),
    );
    let mut judge = Judge::new(&scratch, CounterId::CPU, truth);
    let status = daemon
        .wait_for("the end of the recording", |status| status.events.iter().any(|event| event.text.contains("record")));
    let used = status.sources[0].used;
    daemon.wait_for("more exchanges", |status| status.sources[0].used > used + 4);
    judge.watch(Duration::from_millis(100)).unwrap();
}

#[test]
fn a_place_that_cannot_be_written_ends_the_recording_and_nothing_else() {
    let scratch = Scratch::new("no-place");
    let file = scratch.path().join("file");
    std::fs::write(&file, "").unwrap();
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    // Directories that cannot be made, since their parent is a file.
    let below = file.display();
    let top = scratch.daemon_section(&format!("record = \"{below}/record\""));
    let top = top.replace("state\"", "file/state\"");
    let daemon = Daemon::start(&scratch, &(top + &server_section(server.address, "")));
    let status = daemon.wait_for("an estimate", |status| status.clock.is_some());
    for expected in ["cannot record", "the rate will not be remembered"] {
        assert!(status.events.iter().any(|event| event.text.contains(expected)), "{expected}: {:?}", status.events);
    }
}

#[test]
fn a_flood_of_packets_holds_up_nothing_but_itself() {
    let case = settled("flood");
    case.server.behave(|behaviour| behaviour.flood = 20_000);
    let wrong = |case: &Case| case.rejected("wrong-origin");
    let before = wrong(&case);
    case.daemon.wait_for("the flood", |status| {
        status.sources[0].rejected.iter().any(|(name, count)| name == "wrong-origin" && *count > before + 1000)
    });
    for _ in 0..20 {
        assert!(case.daemon.status().is_some(), "the daemon answers while it is flooded");
    }
    case.server.behave(|behaviour| behaviour.flood = 0);
    let used = case.daemon.status().unwrap().sources[0].used;
    case.daemon.wait_for("exchanges again", |status| status.sources[0].used > used + 3);
}
