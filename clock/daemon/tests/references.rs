//! References at this host: programs that write as gpsd does, a host that gives its time in a page, and a daemon that
//! has nothing else.

mod common;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, page_reader, server_section};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::Reader;
use ffclock_sys::{VmClockFile, VmClockLeap, VmClockLine};
use ffclock_units::Status;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Writes samples into unit 3 of ntpd's shared memory, as a clock that is 0.125 s ahead of the system clock, until its
/// parent is gone; every tenth takes 20 ms to write, and is a half meanwhile. When the file `stop` is there, it writes
/// no more.
const WRITER: &str = r#"
use Time::HiRes qw(gettimeofday sleep);
my $parent = getppid();
my $id = shmget(0x4e545033, 96, 01600) // die "shmget: $!";
my ($count, $round) = (0, 0);
while (getppid() == $parent) {
    unless (-e $ARGV[0]) {
        my ($s, $u) = gettimeofday();
        my ($ts, $tu) = ($s, $u + 125000);
        ($ts, $tu) = ($ts + 1, $tu - 1000000) if $tu >= 1000000;
        $count++;
        shmwrite($id, pack("l", 0), 48, 4);
        shmwrite($id, pack("l l", 1, $count), 0, 8);
        shmwrite($id, pack("q l x4 q l l l l", $ts, $tu, $s, $u, 0, -20, 3), 8, 40);
        sleep(0.02) if $round++ % 10 == 0;
        $count++;
        shmwrite($id, pack("L L", $tu * 1000, $u * 1000), 52, 8);
        shmwrite($id, pack("l l", 1, $count), 0, 8);
        shmwrite($id, pack("l", 1), 48, 4);
    }
    sleep(0.25);
}
"#;

/// How to get a namespace of its own for shared memory here, if there is a way.
fn unshare() -> Option<&'static str> {
    let works =
        |arguments: &[&str]| Command::new("unshare").args(arguments).arg("true").status().is_ok_and(|s| s.success());
    if works(&["-i"]) { Some("unshare -i") } else { works(&["-Uri"]).then_some("unshare -Uri") }
}

fn has_perl() -> bool {
    Command::new("perl").args(["-MTime::HiRes", "-e", "1"]).status().is_ok_and(|status| status.success())
}

fn start_with_writer(scratch: &Scratch, unshare: &str, config: &str) -> Daemon {
    let script = scratch.path().join("writer.pl");
    std::fs::write(&script, WRITER).expect("a script");
    let (script, stop) = (script.display(), scratch.path().join("stop"));
    let inner = format!("perl {script} {} & exec \"$0\" \"$@\"", stop.display());
    Daemon::start_after(scratch, config, &format!("exec {unshare} sh -c '{inner}' \"$0\" \"$@\""))
}

#[test]
fn shared_memory_alone_makes_a_clock_of_stratum_1() {
    let Some(unshare) = unshare().filter(|_| has_perl()) else {
        println!("SKIP: no namespace for shared memory can be made here, or there is no perl with Time::HiRes");
        return;
    };
    let scratch = Scratch::new("shm");
    let sock = scratch.path().join("none.sock");
    let config = scratch.daemon_section("")
        + "[[reference]]\ninput = \"shm:3\"\nerror = \"5 ms\"\n"
        + &format!("[[reference]]\ninput = \"sock:{}\"\nerror = \"1 ms\"\n", sock.display());
    let daemon = start_with_writer(&scratch, unshare, &config);
    let status = daemon.wait_for("time from shared memory", |status| {
        status.clock.as_ref().is_some_and(|clock| clock.status >= Status::WarmingUp)
            && status.sources.iter().any(|source| source.exchanges >= 3)
    });
    let clock = status.clock.expect("a clock");
    assert!((clock.system_clock_behind_s - 0.125).abs() < 0.005, "{clock:?}");
    assert!((0.005..0.02).contains(&clock.bound_s), "no better than what is stated: {clock:?}");
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.stratum, source.round_trip_s), ("shm:3", Some(0), None));
    assert_eq!(source.root_distance_s.map(|claim| (claim * 1e6).round()), Some(5000.0));
    assert!(status.sources[1].exchanges == 0 && sock.exists());

    std::fs::write(scratch.path().join("stop"), "").expect("a file");
    let is_of_it = |source: &Option<String>| source.as_deref() == Some("shm:3");
    let is_silent = |text: &str| text.contains("the reference is silent");
    daemon.wait_for("the silence, and holdover", |status| {
        status.events.iter().any(|event| is_of_it(&event.source) && is_silent(&event.text))
            && status.clock.as_ref().is_some_and(|clock| clock.status == Status::Holdover)
    });
    assert!(Path::new(&sock).exists());
}

/// A sample in chrony's form that says what the system clock shows.
fn sample() -> Vec<u8> {
    let now = ffclock_sys::system_utc_now().since_origin().as_nanos();
    let mut bytes = ((now / 1_000_000_000) as i64).to_ne_bytes().to_vec();
    bytes.extend((((now % 1_000_000_000) / 1000) as i64).to_ne_bytes());
    bytes.extend(0.0_f64.to_ne_bytes());
    bytes.extend([0, 0, 0, 0x534f_434b_i32].map(i32::to_ne_bytes).concat());
    bytes
}

/// The value of a metric of the reference.
fn metric(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(&format!("{name}{{source=\"sock:")))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn metrics_say_what_came_from_a_reference_what_was_refused_and_how_old_the_last_is() {
    let scratch = Scratch::new("reference-metrics");
    let (path, free) = (scratch.path().join("gps.sock"), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let address = free.local_addr().expect("an address");
    drop(free);
    let config = scratch.daemon_section(&format!("metrics = \"{address}\""))
        + &format!("[[reference]]\ninput = \"sock:{}\"\nerror = \"1 ms\"\n", path.display());
    let daemon = Daemon::start(&scratch, &config);
    daemon.wait_for("the socket", |status| status.sources[0].address.is_some());
    let metrics = || {
        let (mut stream, mut answer) = (TcpStream::connect(address).expect("the metrics"), String::new());
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let text = metrics();
    assert_eq!(metric(&text, "ffclock_source_used_total"), Some(0.0), "{text}");
    assert_eq!(metric(&text, "ffclock_source_heard_seconds"), None, "nothing came yet: {text}");

    let writer = UnixDatagram::unbound().expect("a socket");
    let send = |bytes: &[u8]| writer.send_to(bytes, &path).expect("the daemon's own user may write");
    for _ in 0..3 {
        send(b"no sample");
    }
    daemon.wait_for("exchanges", |status| {
        send(&sample());
        std::thread::sleep(Duration::from_millis(60));
        status.sources[0].used >= 3
    });
    let text = metrics();
    assert!(metric(&text, "ffclock_source_used_total") >= Some(3.0), "{text}");
    assert!(metric(&text, "ffclock_source_exchanges_total") >= Some(3.0), "{text}");
    assert_eq!(metric(&text, "ffclock_source_rejected_total"), Some(3.0), "{text}");
    assert_eq!(metric(&text, "ffclock_source_reachable"), Some(1.0), "{text}");
    assert!(metric(&text, "ffclock_source_heard_seconds").is_some_and(|age| (0.0..60.0).contains(&age)), "{text}");
}

/// What `ffclock feed --vmclock` does, ten times a second until `ended`.
fn feed(host: &Scratch, file: &VmClockFile, ended: &AtomicBool) {
    let page = page_reader(host);
    let reader = Reader::new(page.words());
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(100));
        let counter = read_ordered(CounterId::CPU);
        let Ok(snapshot) = reader.snapshot() else { continue };
        let (Some(estimate), Ok(reading), Ok(time)) =
            (snapshot.estimate(), snapshot.reading_at(counter), snapshot.tai_at(counter))
        else {
            continue;
        };
        file.give(&VmClockLine {
            marker: snapshot.epoch().raw(),
            counter_id: CounterId::CPU,
            counter,
            time,
            period: estimate.period,
            uncertainty: (reading.uncertainty, estimate.uncertainty_growth),
            bound: (reading.bound, estimate.bound_growth),
            tai_offset: 37,
            leap: VmClockLeap::None,
            status: reading.status,
        });
    }
}

/// Ends the feed, when the test fails as well.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A daemon that has a server, and one that has nothing but the page that the first one's readings are written to.
#[test]
fn the_page_of_a_host_alone_makes_a_clock_that_holds_the_truth() {
    let truth = Truth::beginning_now(CounterId::CPU);
    let server = TestServer::start("127.0.0.1:0", truth);
    let (host, guest) = (Scratch::new("vmclock-host"), Scratch::new("vmclock-guest"));
    let counter = format!("counter = \"{}\"", CounterId::CPU);
    let host_daemon = Daemon::start(&host, &(host.daemon_section(&counter) + &server_section(server.address, "")));
    let path = host.path().join("vmclock");
    let file = VmClockFile::create(&path).expect("a file for the page");
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = Ending(&ended);
        scope.spawn(|| feed(&host, &file, &ended));
        host_daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
        let top = guest.daemon_section(&counter);
        let daemon =
            Daemon::start(&guest, &(top + &format!("[[reference]]\ninput = \"vmclock:{}\"\n", path.display())));
        let status = daemon.wait_for("time from the host", |status| status.sources[0].exchanges >= 3);
        assert_eq!(status.sources[0].stratum, Some(0), "{:#?}", status.sources[0]);
        let mut judge = Judge::new(&guest, CounterId::CPU, truth);
        let (reading, error) = judge.watch(Duration::from_secs(2)).expect("there is an estimate");
        println!("error {error}, bound {}, {} readings", reading.bound, judge.readings);
        assert!(reading.status >= Status::WarmingUp && judge.readings > 500, "{reading:?}");

        ended.store(true, Ordering::Relaxed);
        daemon.wait_for("the silence, and holdover", |status| {
            status.events.iter().any(|event| event.text.contains("the reference is silent"))
                && status.clock.as_ref().is_some_and(|clock| clock.status == Status::Holdover)
        });
        judge.watch(Duration::from_millis(200)).expect("holdover gives time");
    });
}
