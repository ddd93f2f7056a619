//! The daemon follows masters of PTP: ptp4l on other hosts, all of which have the system clock of this one, and which
//! are kept from setting it (tools/peers).
//!
//! Each test runs itself again on a host of its own, a network namespace that ends with it. Where none may be made, or
//! ptp4l is not unpacked (tools/setup peers), it prints `SKIP: reason`.

mod common;

use common::server::Truth;
use common::{Daemon, Judge, Scratch};
use ffclock_control::protocol::{BeliefReport, PtpReport, QuorumReport, SourceState, StatusReport};
use ffclock_counter::CounterId;
use ffclock_units::{Span, Status};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Set for a process that runs on a host of its own.
const ON_HOST: &str = "FFCLOCK_PTP_HOST";
/// What ptp4l's clock says of itself: the system clock, which is the truth here.
const HONEST: &str = "arbitrary_timescale = \"utc\"\naccuracy_unclaimed = \"10 us\"\ndelay_interval = \"250 ms\"\n";

fn peer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/ptp4l")
}

fn succeeds(program: impl AsRef<OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether the test goes on: on a host of its own. Outside of one it is run again inside, and must succeed there.
fn is_on_a_host(test: &str) -> bool {
    if std::env::var_os(ON_HOST).is_some() {
        return true;
    }
    if !succeeds(peer(), &["--version"]) {
        println!("SKIP: ptp4l does not start here (tools/setup peers says why)");
        return false;
    }
    if !succeeds("unshare", &["--net", "ip", "link", "add", "ours0", "type", "veth", "peer", "name", "ours1"]) {
        println!("SKIP: no network namespace may be made here, so {test} was left out");
        return false;
    }
    let mut again = Command::new("setpriv");
    again.args(["--pdeathsig", "KILL", "unshare", "--net", "--"]);
    again.arg(std::env::current_exe().expect("a path")).args(["--exact", test, "--nocapture"]).env(ON_HOST, "1");
    let ended = again.output().expect("setpriv");
    let said = String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned();
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    said.lines().filter(|line| line.starts_with("SKIP: ") || line.starts_with("figure: ")).for_each(|line| {
        println!("{line}");
    });
    false
}

/// Ended when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &str) {
    let words: Vec<_> = arguments.split(' ').collect();
    assert!(succeeds("ip", &words), "ip {arguments}");
}

/// Another host at the end of a pair of devices, ours0 and theirs0.
struct Other {
    holder: Process,
    scratch: Scratch,
}

impl Other {
    fn join(name: &str) -> Other {
        let mut holding = Command::new("setpriv");
        holding.args(["--pdeathsig", "KILL", "unshare", "--net", "sleep", "1000"]).stdin(Stdio::null());
        let holder = Process(holding.spawn().expect("setpriv"));
        let its = format!("/proc/{}/ns/net", holder.0.id());
        let own = std::fs::read_link("/proc/self/ns/net").expect("/proc");
        while std::fs::read_link(&its).is_ok_and(|network| network == own) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let inside = holder.0.id().to_string();
        ip("link set lo up");
        ip(&format!("link add ours0 type veth peer name theirs0 netns {inside}"));
        ip("address add 10.81.0.1/24 dev ours0");
        ip("link set ours0 up");
        let other = Other { holder, scratch: Scratch::new(&format!("{name}-other")) };
        other.run("ip address add 10.81.0.2/24 dev theirs0 && ip link set theirs0 up && ip link set lo up");
        other
    }

    /// Runs a command of the shell there.
    fn run(&self, command: &str) {
        let inside = self.holder.0.id().to_string();
        assert!(succeeds("nsenter", &["--net", "--target", &inside, "--", "sh", "-c", command]), "{command}");
    }

    /// ptp4l there, with these options and this configuration.
    fn serve(&self, options: &str, configuration: &str) -> Process {
        let inside = self.holder.0.id().to_string();
        let place = self.scratch.path();
        let number = std::fs::read_dir(place).expect("the directory").count();
        let file = place.join(format!("{number}.conf"));
        std::fs::write(&file, format!("[global]\n{configuration}")).expect("a file");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "nsenter", "--net", "--target", &inside, "--"]).arg(peer());
        command.args(["-S", "-m", "-i", "theirs0", "--free_running", "1", "--uds_address"]);
        command.arg(place.join(format!("{number}.uds"))).arg("-f").arg(file).args(options.split_whitespace());
        command.args("--logSyncInterval -2 --logAnnounceInterval -1 --logMinDelayReqInterval -2".split(' '));
        Process(command.stdout(Stdio::null()).stdin(Stdio::null()).spawn().expect("setpriv"))
    }
}

/// A daemon with these tables of servers, and the judge of its page.
fn start(scratch: &Scratch, servers: &str) -> (Daemon, Judge) {
    let truth = Truth::beginning_now(CounterId::MonotonicRaw);
    let top = scratch.daemon_section("counter = \"monotonic-raw\"");
    let daemon = Daemon::start(scratch, &(top + servers));
    (daemon, Judge::new(scratch, CounterId::MonotonicRaw, truth))
}

fn server(keys: &str) -> String {
    format!("[[server]]\nprotocol = \"ptp\"\n{HONEST}{keys}\n")
}

fn has_event(status: &StatusReport, text: &str) -> bool {
    status.events.iter().any(|event| event.text.contains(text))
}

fn status_is(status: &StatusReport, wanted: Status) -> bool {
    status.clock.as_ref().is_some_and(|clock| clock.status == wanted)
}

fn ptp(status: &StatusReport) -> &PtpReport {
    status.sources[0].ptp.as_ref().expect("a server of PTP")
}

/// Readings are within their bound, and close to the truth.
fn is_right(judge: &mut Judge) {
    let (reading, error) = judge.watch(Duration::from_millis(1500)).expect("there is an estimate");
    assert!(error.abs() < Span::from_millis(2), "error {error}");
    println!("figure: error {error}, bound {}", reading.bound);
}

#[test]
fn a_master_is_followed_by_multicast_lost_and_found_again() {
    if !is_on_a_host("a_master_is_followed_by_multicast_lost_and_found_again") {
        return;
    }
    let other = Other::join("ptp-multicast");
    let ptp4l = other.serve("-4", "");
    let scratch = Scratch::new("ptp-multicast");
    let (daemon, mut judge) = start(&scratch, &server("interface = \"ours0\""));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.state), ("ptp:ours0/0", SourceState::Reachable));
    assert_eq!(source.address.as_deref(), Some("224.0.1.129 on ours0"));
    assert_eq!((ptp(&status).domain, ptp(&status).clock_class, ptp(&status).steps_removed), (0, Some(248), Some(0)));
    assert!(ptp(&status).grandmaster.is_some() && has_event(&status, "this master is the best and is followed"));
    let amiss = source.rejected.iter().filter(|(reason, _)| reason != "not-master");
    assert_eq!(amiss.count(), 0, "before it is chosen, a master is none: {:?}", source.rejected);
    assert!(status.stamps == "kernel", "the kernel stamps both ways: {}", status.stamps);

    drop(ptp4l);
    let status = daemon.wait_for("holdover", |status| status_is(status, Status::Holdover));
    assert!(has_event(&status, "the master has fallen silent"), "{:?}", status.events);
    assert_eq!((ptp(&status).grandmaster.as_deref(), status.sources[0].state), (None, SourceState::Unreachable));
    is_right(&mut judge);
    let before = status.sources[0].used;

    let _again = other.serve("-4", "");
    daemon.wait_for("the master again", |status| {
        status.sources[0].used > before + 4 && !status_is(status, Status::Holdover)
    });
    is_right(&mut judge);
    assert!(judge.readings > 1000);
}

/// The master that the first server follows has this clock identity.
fn follows(status: &StatusReport, grandmaster: &str) -> bool {
    ptp(status).grandmaster.as_deref() == Some(grandmaster)
}

#[test]
fn a_better_master_takes_over_and_the_other_one_follows_it() {
    if !is_on_a_host("a_better_master_takes_over_and_the_other_one_follows_it") {
        return;
    }
    let [good, better] = ["020000.fffe.000001", "020000.fffe.000002"];
    let other = Other::join("ptp-better");
    let _good = other.serve("-4", &format!("clockIdentity {good}\n"));
    let scratch = Scratch::new("ptp-better");
    let (daemon, mut judge) = start(&scratch, &server("interface = \"ours0\""));
    let status = daemon.wait_for("the first", |status| follows(status, good) && status.sources[0].used >= 8);
    let used = status.sources[0].used;
    let second = other.serve("-4 --priority1 100", &format!("clockIdentity {better}\n"));
    daemon.wait_for("the better one", |status| follows(status, better) && status.sources[0].used >= used + 8);
    is_right(&mut judge);
    drop(second);
    let status = daemon.wait_for("the first again", |status| follows(status, good));
    let used = status.sources[0].used;
    let status = daemon.wait_for("its exchanges", |status| status.sources[0].used >= used + 8);
    is_right(&mut judge);
    let chosen = status.events.iter().filter(|event| event.text.starts_with("this master is the best"));
    assert!(chosen.count() >= 1, "{:?}", status.events);
}

#[test]
fn a_master_is_asked_by_unicast() {
    if !is_on_a_host("a_master_is_asked_by_unicast") {
        return;
    }
    let other = Other::join("ptp-unicast");
    let _ptp4l = other.serve("-4 --unicast_listen 1 --inhibit_multicast_service 1", "");
    let scratch = Scratch::new("ptp-unicast");
    let keys = "address = \"10.81.0.2\"\nsync_interval = \"250 ms\"\nannounce_interval = \"500 ms\"";
    let (daemon, mut judge) = start(&scratch, &server(keys));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.address.as_deref()), ("ptp:10.81.0.2/0", Some("10.81.0.2")));
    assert!(ptp(&status).master.is_some() && source.sent > source.exchanges, "{source:?}");
}

#[test]
fn masters_are_followed_over_ipv6() {
    if !is_on_a_host("masters_are_followed_over_ipv6") {
        return;
    }
    let six = "/proc/sys/net/ipv6/conf";
    if !Path::new(six).exists() {
        println!("SKIP: this kernel knows no IPv6");
        return;
    }
    // An address is of use at once where it need not be tried first.
    std::fs::write(format!("{six}/default/accept_dad"), "0").expect("a namespace of our own");
    std::fs::write(format!("{six}/default/disable_ipv6"), "0").expect("a namespace of our own");
    let other = Other::join("ptp-ipv6");
    for command in
        [format!("echo 0 > {six}/theirs0/disable_ipv6"), "ip address add fd81::2/64 dev theirs0 nodad".into()]
    {
        other.run(&command);
    }
    ip("address add fd81::1/64 dev ours0 nodad");
    // One master, heard in both ways.
    let _ptp4l = other.serve("-6 --unicast_listen 1", "");
    let scratch = Scratch::new("ptp-ipv6");
    let unicast = "address = \"fd81::2\"\nsync_interval = \"250 ms\"\nannounce_interval = \"500 ms\"";
    let servers = server("interface = \"ours0\"\nfamily = \"ipv6\"") + &server(unicast);
    let (daemon, mut judge) = start(&scratch, &servers);
    let status =
        daemon.wait_for("some exchanges of both", |status| status.sources.iter().all(|source| source.used >= 8));
    is_right(&mut judge);
    assert_eq!(status.sources[0].name, "ptp6:ours0/0");
    assert_eq!(status.sources[0].address.as_deref(), Some("ff0e::181 on ours0"));
    assert_eq!(status.sources[1].name, "ptp:fd81::2/0");
    assert_eq!(status.sources[1].vote.same_as.as_deref(), Some("ptp6:ours0/0"), "one master has one vote");
}

#[test]
fn a_grandmaster_that_lies_by_a_millisecond_is_a_falseticker() {
    if !is_on_a_host("a_grandmaster_that_lies_by_a_millisecond_is_a_falseticker") {
        return;
    }
    let other = Other::join("ptp-liar");
    let _honest = [0, 1].map(|domain| other.serve(&format!("-4 --domainNumber {domain}"), ""));
    // Its stamps of what it sends and of what it receives are a millisecond ahead.
    let lie = "[theirs0]\negressLatency 1000000\ningressLatency -1000000\n";
    let _liar = other.serve("-4 --domainNumber 2", lie);
    let scratch = Scratch::new("ptp-liar");
    let domains = [0, 1, 2].map(|domain| server(&format!("interface = \"ours0\"\ndomain = {domain}")));
    let (daemon, mut judge) = start(&scratch, &domains.concat());
    let status = daemon.wait_for("a verdict", |status| {
        status.quorum == Some(QuorumReport::Majority) && status.sources.iter().all(|source| source.used >= 8)
    });
    let beliefs: Vec<BeliefReport> = status.sources.iter().map(|source| source.belief).collect();
    assert_eq!(beliefs, [BeliefReport::Truechimer, BeliefReport::Truechimer, BeliefReport::Falseticker]);
    let misses = status.sources[2].vote.misses_s.expect("it misses the others");
    assert!((0.0005..0.001).contains(&misses), "{misses} s");
    is_right(&mut judge);
    let rejected = |reason: &str| status.sources[0].rejected.iter().any(|(name, _)| name == reason);
    assert!(rejected("domain"), "messages of the other domains: {:?}", status.sources[0].rejected);
}

#[test]
fn a_daemon_without_the_right_to_the_ports_says_which_one_it_takes() {
    if !is_on_a_host("a_daemon_without_the_right_to_the_ports_says_which_one_it_takes") {
        return;
    }
    ip("link set lo up");
    let scratch = Scratch::new("ptp-rights");
    let without = "exec setpriv --bounding-set=-net_bind_service --inh-caps=-net_bind_service \"$0\" \"$@\"";
    let config = scratch.daemon_section("") + &server("interface = \"lo\"");
    let daemon = Daemon::start_after(&scratch, &config, without);
    let status = daemon.wait_for("the event", |status| has_event(status, "masters of PTP cannot be heard"));
    assert!(has_event(&status, "UDP port 319 takes the capability CAP_NET_BIND_SERVICE"), "{:?}", status.events);
    assert_eq!(status.sources[0].state, SourceState::Resolving);
}
