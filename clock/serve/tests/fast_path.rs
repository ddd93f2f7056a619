//! ffclock-serve with its fast path: two hosts joined by a pair of devices, the server on one, requests from the other.
//! What a kernel or a user is not allowed prints `SKIP: reason`.
#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

#[path = "../../xdp/tests/veth/hosts.rs"]
mod hosts;

use ffclock::Clock;
use ffclock_control::serve::{FastPathReport, ServeAnswer};
use ffclock_counter::{CounterId, nominal, read_ordered};
use ffclock_page::{Publication, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Rate, Server, ServerIdentity, Span,
    StandardUncertainty, Status,
};
use ffclock_wire::{NtpTimestamp, Packet, Version};
use ffclock_xdp::FastPathError;
use hosts::{Client, DEVICE, PORT, SERVER, SERVER_V6, again_as_server, hindrance, role, run};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// How far the page is ahead of the truth: less than its bound says.
const AHEAD: Span = Span::from_micros(90);
const BOUND: Span = Span::from_micros(100);
const LEAP: LeapStep = LeapStep { before: 36, after: 37, at: 1_483_228_836 };

/// The server's host, with a page and a server that is ended with it.
struct Hosts {
    client: Client,
    directory: PathBuf,
}

/// Runs the rest of a test on the server's host.
fn on_hosts(name: &str, part: impl FnOnce(&Hosts)) {
    if role().is_none() {
        if let Some(reason) = hindrance() {
            return println!("SKIP: {reason}");
        }
        let (said, succeeded) = again_as_server(&["--exact", name, "--nocapture", "--test-threads=1"]);
        println!("{said}");
        assert!(succeeded, "on the server's host");
        return;
    }
    let client = match Client::join() {
        Ok(client) => client,
        Err(FastPathError::Refused(reason)) if reason.contains("CAP_BPF") => return println!("SKIP: XDP: {reason}"),
        Err(error) => panic!("{error}"),
    };
    let directory = std::env::temp_dir().join(format!("ffclock-fast-path-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let hosts = Hosts { client, directory };
    hosts.publish(Status::Synchronised);
    part(&hosts);
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Hosts {
    fn page(&self) -> PathBuf {
        self.directory.join("page")
    }

    fn control(&self) -> PathBuf {
        self.directory.join("control")
    }

    /// What the server says of its fast path.
    fn report(&self) -> FastPathReport {
        let mut stream = UnixStream::connect(self.control()).unwrap();
        stream.write_all(b"{\"command\":\"status\"}\n").unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        match serde_json::from_str(&line).unwrap() {
            ServeAnswer::ServeStatus(report) => report.fast_path.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn publish(&self, status: Status) {
        let page = SharedPage::create(&self.page()).unwrap();
        Writer::open(page, None).publish(&publication(status));
    }

    /// Starts a server with these lines in its configuration; it runs behind `before`.
    fn serve(&self, lines: &str, before: &[&str]) -> RunningServer {
        let path = self.directory.join("serve.toml");
        let text = format!(
            "page = \"{}\"\ndaemon = \"off\"\ncontrol = \"{}\"\n\
             listen = [\"0.0.0.0:{PORT}\", \"[::]:{PORT}\"]\n{lines}\n",
            self.page().display(),
            self.control().display()
        );
        fs::write(&path, text).unwrap();
        let log = self.directory.join("log");
        let words = [&["setpriv", "--pdeathsig", "KILL"], before, &[env!("CARGO_BIN_EXE_ffclock-serve"), "--config"]];
        let words = words.concat();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(path).stdin(Stdio::null()).stderr(fs::File::create(&log).unwrap());
        let server = RunningServer { child: command.spawn().unwrap(), log };
        for _ in 0..200 {
            if server.log().contains("listening") && self.local(&request(0)).is_some() {
                break;
            }
            sleep(Duration::from_millis(25));
        }
        // The line begins with the second renewal.
        sleep(Duration::from_millis(250));
        server
    }

    /// A reply over loopback, where the sockets answer.
    fn local(&self, request: &[u8]) -> Option<Packet> {
        exchange(Ipv4Addr::LOCALHOST.into(), request)
    }

    /// A reply to a plain request of the client's host.
    fn reply(&self) -> Option<Packet> {
        let said = self.ask("packet");
        let octet = |place| u8::from_str_radix(said.get(place..place + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..48).map(|number| octet(2 * number)).collect();
        bytes.map(|bytes| Packet::decode(&bytes).unwrap())
    }

    fn stratum(&self) -> Option<u8> {
        self.reply().map(|packet| packet.stratum)
    }

    fn ask(&self, task: &str) -> String {
        let myself = std::env::current_exe().unwrap();
        let mut command = self.client.command();
        command.arg(myself).args(["--exact", "asks", "--nocapture"]);
        let output = command.env("FFCLOCK_FAST_TASK", task).env("FFCLOCK_FAST_PAGE", self.page()).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
        said.lines().find_map(|line| line.split_once("client: ")).map(|(_, said)| said.to_owned()).unwrap_or_default()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct RunningServer {
    child: Child,
    log: PathBuf,
}

impl RunningServer {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn end(mut self, signal: &str) {
        run("kill", &[signal, &self.child.id().to_string()]);
        self.child.wait().unwrap();
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A clock that is ahead of the truth, and admits it.
fn publication(status: Status) -> Publication {
    let counter = read_ordered(CounterId::CPU);
    let period = nominal(CounterId::CPU).unwrap().period;
    let valid = if status == Status::Synchronised { 3600 } else { -1 };
    Publication {
        counter_id: CounterId::CPU,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: Counter::from_raw(0),
        estimate: Estimate {
            counter,
            time: Moment::from_origin(Span::from_secs(1_800_000_037)),
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(9)),
            noise: StandardUncertainty::of(Span::from_micros(9)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(20.0)),
            bound: Bound::of(BOUND),
            bound_growth: GrowthRate::of(Rate::from_ppb(100.0)),
            difference_period: period,
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
            status,
        },
        leap: LEAP,
        valid_until: counter + period.ticks_in(Span::from_secs(valid)),
        server: Some(ServerIdentity { stratum: 1, reference_id: 0x4750_5300 }),
    }
}

fn request(number: u64) -> [u8; 48] {
    Packet::request(Version::V4, NtpTimestamp::from_raw(number | 1 << 63)).encode()
}

fn exchange(target: IpAddr, request: &[u8]) -> Option<Packet> {
    let any: IpAddr = if target.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.connect((target, PORT)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket.send(request).ok()?;
    let mut reply = [0; 2048];
    let length = socket.recv(&mut reply).ok()?;
    assert!(length <= request.len(), "never longer than the request");
    Some(Packet::decode(&reply[..length]).unwrap())
}

fn truth(clock: &Clock) -> Moment<Server> {
    let reading = clock.now().unwrap();
    Moment::from_origin(reading.time.since_origin() - AHEAD)
}

/// The part of the tests that runs on the client's host, and nothing elsewhere. The client knows the truth by the page
/// and by how far that is ahead of it.
#[test]
fn asks() {
    let Ok(task) = std::env::var("FFCLOCK_FAST_TASK") else { return };
    let addresses: [IpAddr; 2] = [SERVER.into(), SERVER_V6.into()];
    let said = match task.as_str() {
        "claims" => addresses.map(hold_claims).iter().sum::<usize>().to_string(),
        "packet" => exchange(SERVER.into(), &request(5)).map_or("none".to_owned(), |packet| hex(&packet.encode())),
        // Of the shape of ClockBound's: a header, and an extension field of 16 octets.
        "extended" => exchange(SERVER.into(), &[request(5).as_slice(), &[0xfe, 0xc2, 0, 16], &[0; 12]].concat())
            .map_or("none".to_owned(), |packet| packet.stratum.to_string()),
        other => panic!("{other}"),
    };
    println!("client: {said}");
}

/// How many replies there were. The root distance of each contains the truth.
fn hold_claims(server: IpAddr) -> usize {
    let clock = Clock::open_at(Path::new(&std::env::var("FFCLOCK_FAST_PAGE").unwrap())).unwrap();
    (0..2000)
        .filter_map(|number| {
            let sent = truth(&clock);
            exchange(server, &request(number)).map(|packet| (sent, packet, truth(&clock)))
        })
        .inspect(|(sent, packet, received)| {
            // RFC 5905, section 11.1: half the root delay, and the root dispersion.
            let distance = packet.root_delay.halved() + packet.root_dispersion.as_span();
            let time = packet.transmit.to_server(*sent);
            assert!(
                time >= *sent - distance && time <= *received + distance,
                "{sent:?} {time:?} {received:?} {distance:?}"
            );
            assert!(distance >= BOUND && distance < BOUND + Span::from_millis(1), "{distance:?}");
        })
        .count()
}

/// As a socket's reply and a driver's reply are compared: all but times and dispersion.
fn same_part(packet: &Packet) -> Packet {
    let missing = NtpTimestamp::MISSING;
    Packet { root_dispersion: Bound::ZERO, receive: missing, transmit: missing, ..*packet }
}

fn links() -> String {
    run("ip", &["link", "show", DEVICE])
}

#[test]
fn every_reply_of_the_driver_contains_the_truth_and_the_server_has_no_right_left() {
    on_hosts("every_reply_of_the_driver_contains_the_truth_and_the_server_has_no_right_left", |hosts| {
        for (hook, shown) in [("native", " xdp "), ("generic", "xdpgeneric")] {
            let server =
                hosts.serve(&format!("xdp = \"{DEVICE}\"\nxdp_hook = \"{hook}\"\nrate_interval = \"0 s\""), &[]);
            assert!(links().contains(shown), "{}\n{}", links(), server.log());
            let answered: usize = hosts.ask("claims").parse().unwrap();
            assert!(answered > 3800, "{answered} of 4000");
            let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
            assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
            sleep(Duration::from_millis(600));
            let report = hosts.report();
            assert_eq!(report.attached, Some(format!("{DEVICE} ({hook})")));
            assert!(report.counts["replied"] as usize >= answered - 100, "the driver answers: {report:?}");
            server.end("-TERM");
            assert!(!links().contains("xdp"), "detached");
        }
    });
}

#[test]
fn the_driver_answers_as_the_sockets_do() {
    on_hosts("the_driver_answers_as_the_sockets_do", |hosts| {
        let server = hosts.serve(&format!("xdp = \"{DEVICE}\"\nxdp_renewal = \"250 ms\""), &[]);
        sleep(Duration::from_millis(600));
        // A line lasts four renewals, and no socket answers meanwhile.
        run("kill", &["-STOP", &server.child.id().to_string()]);
        let fast = hosts.reply();
        run("kill", &["-CONT", &server.child.id().to_string()]);
        let (fast, slow) = (fast.expect("the driver answers alone"), hosts.local(&request(5)).unwrap());
        assert_eq!(same_part(&fast), same_part(&slow));
        let more = fast.root_dispersion.as_span() - slow.root_dispersion.as_span();
        // 1000 ppm of a second, and the steps of the wire.
        assert!(more >= Span::ZERO && more < Span::from_micros(560), "{more:?}");
        let [came, left] = [fast.receive.raw(), fast.transmit.raw()];
        assert_eq!((left.wrapping_sub(came), came & 1), (1, 1), "as in the sockets' replies: odd, then even");
        assert_eq!(hosts.ask("extended"), "2", "the sockets answer what is more than plain");
    });
}

#[test]
fn without_a_time_the_sockets_say_so_and_a_killed_server_leaves_nothing() {
    on_hosts("without_a_time_the_sockets_say_so_and_a_killed_server_leaves_nothing", |hosts| {
        let server = hosts.serve(&format!("xdp = \"{DEVICE}\""), &[]);
        assert_eq!(hosts.stratum(), Some(2));
        hosts.publish(Status::Holdover);
        sleep(Duration::from_millis(400));
        assert_eq!(hosts.stratum(), Some(16), "the page is stale: {}", server.log());
        hosts.publish(Status::Synchronised);
        sleep(Duration::from_millis(400));
        assert_eq!(hosts.stratum(), Some(2));
        server.end("-KILL");
        assert!(!links().contains("xdp"), "{}", links());
        assert_eq!(hosts.stratum(), None);
    });
}

#[test]
fn where_it_cannot_be_had_the_reason_is_logged_and_the_sockets_answer() {
    on_hosts("where_it_cannot_be_had_the_reason_is_logged_and_the_sockets_answer", |hosts| {
        let without_right = ["--bounding-set=-all,+net_bind_service", "--inh-caps=-all"];
        for (lines, before, reason) in [
            ("xdp = \"nowhere\"", [].as_slice(), "no device nowhere"),
            ("xdp = \"lo\"\nxdp_hook = \"native\"", &[], "the driver has no XDP"),
            (&format!("xdp = \"{DEVICE}\""), &without_right, "it takes CAP_BPF and CAP_NET_ADMIN"),
        ] {
            let server = hosts.serve(lines, before);
            assert!(server.log().contains(reason), "{}", server.log());
            assert_eq!(hosts.stratum(), Some(2), "the sockets answer: {}", server.log());
            assert!(hosts.report().unavailable.is_some_and(|said| said.contains(reason)));
            server.end("-TERM");
        }
        let rights = ["--bounding-set=-all,+net_bind_service,+net_admin,+bpf", "--inh-caps=-all"];
        let server = hosts.serve(&format!("xdp = \"{DEVICE}\""), &rights);
        assert!(links().contains(" xdp "), "these rights are enough: {}", server.log());
        server.end("-INT");
        assert!(!links().contains("xdp"));
    });
}
