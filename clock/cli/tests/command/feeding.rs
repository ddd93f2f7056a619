//! `ffclock feed`: what another daemon is given, and what happens when it does not take it.

use crate::common::{Place, publication};
use ffclock_sys::SystemVWords;
use ffclock_units::{LeapTable, Moment, Span, Status, Utc};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

/// Publishes a clock that is ahead of the system clock by this.
fn publish_ahead(place: &Place, ahead: Span) {
    let mut publication = publication(Status::Synchronised);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let utc = Moment::<Utc>::from_origin(Span::from_nanos(since.as_nanos().cast_signed()) + ahead);
    publication.estimate.time = LeapTable::built_in().tai_from_utc(utc);
    publication.leap = LeapTable::built_in().step_around(publication.estimate.time);
    place.publish_by(&publication);
}

#[test]
fn a_sample_says_how_far_the_system_clock_is_behind() {
    let place = Place::new();
    publish_ahead(&place, Span::from_millis(250));
    let socket = place.file("sock");
    let receiver = UnixDatagram::bind(&socket).unwrap();
    let before = SystemTime::now();
    let name = socket.to_str().unwrap();
    assert_eq!(place.run(&["feed", "--chrony", name, "--count", "2", "--interval", "1 ms"]).well(), "");
    for _ in 0..2 {
        let mut bytes = [0; 64];
        assert_eq!(receiver.recv(&mut bytes).unwrap(), 40);
        let seconds = u64::from_ne_bytes(bytes[..8].try_into().unwrap());
        let offset = f64::from_ne_bytes(bytes[16..24].try_into().unwrap());
        let system = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds + 1);
        assert!(system >= before && system <= SystemTime::now() + Duration::from_secs(1));
        // The counter and the system clock were not read at one moment when the page was made.
        assert!((offset - 0.25).abs() < 0.1, "{offset}");
    }
}

#[test]
fn a_clock_that_is_not_good_enough_is_not_fed() {
    let place = Place::new();
    publish_ahead(&place, Span::ZERO);
    let socket = place.file("sock");
    let receiver = UnixDatagram::bind(&socket).unwrap();
    receiver.set_nonblocking(true).unwrap();
    let name = socket.to_str().unwrap();
    let ended = place.run(&["feed", "--chrony", name, "--count", "1", "--bound", "1 us"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("the bound is above 1 us"), "{ended:?}");
    assert!(receiver.recv(&mut [0; 64]).is_err(), "nothing was sent");
}

#[test]
fn a_socket_that_is_full_or_gone_costs_samples_only() {
    let place = Place::new();
    publish_ahead(&place, Span::ZERO);
    let socket = place.file("sock");
    let name = socket.to_str().unwrap();
    let arguments = ["feed", "--chrony", name, "--count", "3000", "--interval", "0 s"];
    let gone = place.run(&["feed", "--chrony", name, "--count", "3", "--interval", "1 ms"]);
    assert_eq!(gone.code, 1);
    assert!(gone.err.contains("nothing listens there"), "{gone:?}");
    let _never_reads = UnixDatagram::bind(&socket).unwrap();
    let full = place.run(&arguments);
    assert_eq!(full.code, 0, "the first ones found room: {full:?}");
    assert_eq!(full.err.matches("it is stopped or stuck").count(), 1, "said once: {full:?}");
}

/// A chronyd that was started here, without the right to set the clock.
struct Chronyd(Child);

impl Drop for Chronyd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn peer(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers").join(name)
}

impl Chronyd {
    /// Starts it with this reference clock as its only source; none where it is not installed.
    fn start(place: &Place, refclock: &str) -> Option<Self> {
        if !Command::new(peer("chronyd")).arg("--version").output().is_ok_and(|output| output.status.success()) {
            println!("SKIP: chronyd is not here (make setup unpacks it)");
            return None;
        }
        let config = format!(
            "refclock {refclock} refid FFCK poll 0 filter 1\ncmdport 0\nport 0\nbindcmdaddress {}\npidfile {}\n",
            place.file("chrony.sock").display(),
            place.file("chrony.pid").display()
        );
        std::fs::write(place.file("chrony.conf"), config).unwrap();
        // chronyd makes its command socket in a directory of its own only.
        std::fs::set_permissions(place.file("."), std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
        let log = std::fs::File::create(place.file("chrony.log")).unwrap();
        let mut command = Command::new(peer("chronyd"));
        command.args(["-x", "-d", "-U", "-f"]).arg(place.file("chrony.conf")).stdin(Stdio::null());
        let config = std::fs::metadata(place.file("chrony.conf")).unwrap();
        if std::os::unix::fs::MetadataExt::uid(&config) == 0 {
            command.args(["-u", "root"]);
        }
        Some(Chronyd(command.stderr(log.try_clone().unwrap()).stdout(log).spawn().unwrap()))
    }

    /// What chronyc prints, once there is a socket to ask at.
    fn ask(place: &Place, what: &str) -> String {
        let mut command = Command::new(peer("chronyc"));
        let output = command.arg("-h").arg(place.file("chrony.sock")).args(["-c", what]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// It selected the reference clock, and takes the system clock, which it may not touch here, as 250 ms behind.
    fn follows(place: &Place) {
        let sources = Self::ask(place, "sources");
        assert!(sources.starts_with("#,*,FFCK,"), "it is selected: {sources} {}", said(place));
        let tracking = Self::ask(place, "tracking");
        let behind: f64 = tracking.split(',').nth(4).unwrap().parse().unwrap();
        assert!((behind - 0.25).abs() < 0.1, "{tracking}");
    }
}

fn said(place: &Place) -> String {
    std::fs::read_to_string(place.file("chrony.log")).unwrap()
}

/// Waits until chronyd has made this socket.
fn wait_for_socket(place: &Place, name: &str) {
    let begin = Instant::now();
    while !place.file(name).exists() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(place.file(name).exists(), "{}", said(place));
}

/// The real chronyd takes our samples and finds the offset that they state.
#[test]
fn chronyd_takes_the_samples() {
    let place = Place::new();
    publish_ahead(&place, Span::from_millis(250));
    let sock = place.file("sock");
    let Some(_chronyd) = Chronyd::start(&place, &format!("SOCK {}", sock.display())) else { return };
    wait_for_socket(&place, "sock");
    place.run(&["feed", "--chrony", sock.to_str().unwrap(), "--count", "40", "--interval", "200 ms"]).well();
    Chronyd::follows(&place);
}

/// A unit of ntpd's shared memory that no other test uses; removed in the end.
struct Unit(u16);

impl Unit {
    fn new(number: u32) -> Self {
        Unit(1000 + ((std::process::id() * 4 + number) % 60_000) as u16)
    }

    fn key(&self) -> i32 {
        0x4e54_5030 + i32::from(self.0)
    }
}

impl Drop for Unit {
    fn drop(&mut self) {
        let _ = Command::new("ipcrm").args(["-M", &self.key().to_string()]).stderr(Stdio::null()).status();
    }
}

/// The real chronyd reads ntpd's shared memory, in which our samples are.
#[test]
fn chronyd_takes_the_samples_from_shared_memory() {
    let place = Place::new();
    publish_ahead(&place, Span::from_millis(250));
    let unit = Unit::new(0);
    let Some(_chronyd) = Chronyd::start(&place, &format!("SHM {}", unit.0)) else { return };
    wait_for_socket(&place, "chrony.sock");
    place.run(&["feed", "--shm", &unit.0.to_string(), "--count", "40", "--interval", "200 ms"]).well();
    Chronyd::follows(&place);
}

/// A process that is ended when the test ends.
struct Ntpd(Child);

impl Drop for Ntpd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// NTPsec's ntpd takes the samples from shared memory and selects them, as its file of statistics says.
#[test]
fn ntpd_takes_the_samples_from_shared_memory() {
    let possible = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !possible(Command::new(peer("ntpd")).arg("--version")) {
        println!("SKIP: ntpd is not here (make setup unpacks it)");
        return;
    }
    if !possible(Command::new("unshare").args(["--net", "ip", "link", "set", "lo", "up"])) {
        println!("SKIP: no network namespace may be made here, and ntpd has a fixed port");
        return;
    }
    let place = Place::new();
    publish_ahead(&place, Span::from_millis(50));
    // ntpd knows 256 of them.
    let unit = Unit(100 + (std::process::id() % 150) as u16);
    let (here, number) = (place.file("."), unit.0);
    let text = format!(
        "refclock shm unit {number} minpoll 0 maxpoll 0\ndisable ntp\ndisable kernel\nlogfile {0}/ntpd.log\n\
         logconfig =all\nstatsdir {0}/\nfilegen peerstats file peers type none enable\ndriftfile {0}/drift\n",
        here.display()
    );
    std::fs::write(place.file("ntp.conf"), text).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", "ip link set lo up; exec \"$0\" -n -c \"$1\""]);
    command.arg(peer("ntpd")).arg(place.file("ntp.conf"));
    let mut ntpd = Ntpd(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    // The fourth hexadecimal digit of the status is the selection (RFC 9327): 6 is the system's peer.
    let selected = |place: &Place| {
        let peers = std::fs::read_to_string(place.file("peers")).unwrap_or_default();
        peers.lines().rev().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let status = u16::from_str_radix(fields.get(3)?, 16).ok()?;
            let offset: f64 = fields.get(4)?.parse().ok()?;
            (status >> 8 & 7 == 6).then_some(offset)
        })
    };
    let begin = Instant::now();
    let mut found = None;
    while found.is_none() && ntpd.0.try_wait().unwrap().is_none() && begin.elapsed() < Duration::from_secs(60) {
        place.run(&["feed", "--shm", &number.to_string(), "--count", "5", "--interval", "100 ms"]).well();
        found = selected(&place);
    }
    let log = std::fs::read_to_string(place.file("ntpd.log")).unwrap_or_default();
    let offset = found.unwrap_or_else(|| panic!("ntpd did not select the samples: {log}"));
    assert!((offset - 0.05).abs() < 0.04, "{offset} s: {log}");
}

#[test]
fn a_sample_in_shared_memory_says_how_far_the_system_clock_is_behind() {
    let place = Place::new();
    publish_ahead(&place, Span::from_millis(250));
    let unit = Unit::new(1);
    let memory = SystemVWords::<12>::attach(unit.key(), 0o600).unwrap();
    let word = |number: usize| memory.words()[number].load(Ordering::Acquire);
    let feed = |more: &[&str]| {
        place.run(&[&["feed", "--shm", &unit.0.to_string(), "--count", "3", "--interval", "1 ms"], more].concat())
    };
    assert_eq!(feed(&[]).well(), "");
    let nanos = |seconds: u64, nanos: u32| seconds as i64 * 1_000_000_000 + i64::from(nanos);
    let (clock, received) = (nanos(word(1), (word(6) >> 32) as u32), nanos(word(3), word(7) as u32));
    assert!(((clock - received) as f64 / 1e9 - 0.25).abs() < 0.1, "{clock} {received}");
    assert_eq!((word(6) as u32, word(0) as u32, word(0) >> 32), (1, 1, 6), "valid, mode, count");
    assert_eq!(feed(&["--bound", "1 us"]).code, 1);
    assert_eq!(word(0) >> 32, 6, "nothing was written");
    place.publish(Status::Unsynchronised);
    assert_eq!(feed(&[]).code, 1);
    assert_eq!(word(6) as u32, 0, "a sample that was not read is not read any more");
}

#[test]
fn a_feed_to_no_one_is_refused() {
    let ended = Place::new().run(&["feed"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("--chrony") && ended.err.contains("--clockbound"), "{ended:?}");
}
