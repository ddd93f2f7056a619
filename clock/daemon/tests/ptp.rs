//! The daemon follows masters of PTP: ptp4l on other hosts, all of which have the system clock of this one, and which
//! are kept from setting it (tools/peers).
//!
//! Each test runs itself again on a host of its own, a network namespace that ends with it. Where none may be made, or
//! ptp4l is not unpacked (tools/setup peers), it prints `SKIP: reason`.

mod common;
#[path = "../../ptp/tests/hosts/mod.rs"]
mod hosts;

use common::server::{TestServer, Truth};
use common::{Daemon, Judge, Scratch, found_at_driver, server_section};
use ffclock_control::protocol::{BeliefReport, PtpReport, QuorumReport, SourceReport, SourceState, StatusReport};
use ffclock_counter::CounterId;
use ffclock_sys::DriverStamps;
use ffclock_units::{Span, Status};
use hosts::{Other, Process, ip, is_on_a_host};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// What ptp4l's clock says of itself: the system clock, which is the truth here.
const HONEST: &str = "arbitrary_timescale = \"utc\"\naccuracy_unclaimed = \"10 us\"\ndelay_interval = \"250 ms\"\n";

/// ptp4l there, with these options and this configuration.
fn serve(other: &Other, options: &str, configuration: &str) -> Process {
    Process::start(other.ptp4l(options, configuration), Stdio::null())
}

/// ptpd there as a master with these settings.
fn serve_with_ptpd(other: &Other, settings: &[&str]) -> Process {
    let mut command = other.command("ptpd");
    command.args("-C -L -n -M -i theirs0 --global:log_status=n".split(' '));
    let often = ["log_sync_interval=-2", "log_announce_interval=-1", "log_delayreq_interval=-2"];
    command.args(often.iter().chain(settings).map(|setting| format!("--ptpengine:{setting}")));
    Process::start(command, Stdio::null())
}

/// A daemon with these tables of servers, and the judge of its page.
fn start(scratch: &Scratch, servers: &str) -> (Daemon, Judge) {
    start_with(scratch, "", servers)
}

/// The same with this line about the daemon.
fn start_with(scratch: &Scratch, line: &str, servers: &str) -> (Daemon, Judge) {
    let truth = Truth::beginning_now(CounterId::MonotonicRaw);
    let top = scratch.daemon_section(&format!("counter = \"monotonic-raw\"\n{line}"));
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

/// Before it is chosen, a master is none, and a Follow_Up may be its first message after that.
fn nothing_is_amiss(source: &SourceReport) {
    // The first request on a link may be sent before ptp4l is there.
    let is_usual = |reason: &str| matches!(reason, "not-master" | "sync-missing" | "response-missing");
    assert!(source.lost <= 1, "{} requests are lost", source.lost);
    assert!(source.rejected.iter().all(|(reason, _)| is_usual(reason)), "{:?}", source.rejected);
}

/// Readings are within their bound, and close to the truth.
fn is_right(judge: &mut Judge) {
    let (reading, error) = judge.watch(Duration::from_millis(1500)).expect("there is an estimate");
    assert!(error.abs() < Span::from_millis(2), "error {error}");
    println!("figure: error {error}, bound {}", reading.bound);
}

#[test]
fn a_master_is_followed_by_multicast_lost_and_found_again() {
    if !is_on_a_host("a_master_is_followed_by_multicast_lost_and_found_again", "ptp4l") {
        return;
    }
    let other = Other::join();
    let ptp4l = serve(&other, "-4", "");
    let scratch = Scratch::new("ptp-multicast");
    let (daemon, mut judge) = start(&scratch, &server("interface = \"ours0\""));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.state), ("ptp:ours0/0", SourceState::Reachable));
    assert_eq!(source.address.as_deref(), Some("224.0.1.129 on ours0"));
    assert_eq!((ptp(&status).domain, ptp(&status).clock_class, ptp(&status).steps_removed), (0, Some(248), Some(0)));
    assert!(ptp(&status).grandmaster.is_some() && has_event(&status, "this master is the best and is followed"));
    nothing_is_amiss(source);
    assert!(status.stamps == "kernel", "the kernel stamps both ways: {}", status.stamps);

    drop(ptp4l);
    let status = daemon.wait_for("holdover", |status| status_is(status, Status::Holdover));
    assert!(has_event(&status, "the master is gone"), "{:?}", status.events);
    assert_eq!((ptp(&status).grandmaster.as_deref(), status.sources[0].state), (None, SourceState::Unreachable));
    is_right(&mut judge);
    let before = status.sources[0].used;

    let _again = serve(&other, "-4", "");
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
    if !is_on_a_host("a_better_master_takes_over_and_the_other_one_follows_it", "ptp4l") {
        return;
    }
    let [good, better] = ["020000.fffe.000001", "020000.fffe.000002"];
    let other = Other::join();
    let _good = serve(&other, "-4", &format!("clockIdentity {good}\n"));
    let scratch = Scratch::new("ptp-better");
    let (daemon, mut judge) = start(&scratch, &server("interface = \"ours0\""));
    let status = daemon.wait_for("the first", |status| follows(status, good) && status.sources[0].used >= 8);
    let used = status.sources[0].used;
    let second = serve(&other, "-4 --priority1 100", &format!("clockIdentity {better}\n"));
    daemon.wait_for("the better one", |status| follows(status, better) && status.sources[0].used >= used + 8);
    is_right(&mut judge);
    drop(second);
    let status = daemon.wait_for("the first again", |status| follows(status, good));
    let used = status.sources[0].used;
    let status = daemon.wait_for("its exchanges", |status| status.sources[0].used >= used + 8);
    is_right(&mut judge);
    // Others within a minute wait for their line.
    let mut chosen = status.events.iter().filter(|event| event.text.starts_with("this master is the best"));
    let first = chosen.next().expect("the first choice is logged at once");
    assert!(first.text.contains(&format!("grandmaster {good}")), "{:?}", status.events);
    let turned_away = daemon.wait_for("the messages of the other one", |status| {
        status.events.iter().any(|event| event.text.starts_with("messages of PTP are turned away: "))
    });
    assert!(!turned_away.sources[0].rejected.is_empty(), "{turned_away:?}");
}

#[test]
fn a_master_is_asked_by_unicast() {
    if !is_on_a_host("a_master_is_asked_by_unicast", "ptp4l") {
        return;
    }
    let other = Other::join();
    let _ptp4l = serve(&other, "-4 --unicast_listen 1 --inhibit_multicast_service 1", "");
    let scratch = Scratch::new("ptp-unicast");
    let keys = "address = \"10.81.0.2\"\nsync_interval = \"250 ms\"\nannounce_interval = \"500 ms\"";
    let (daemon, mut judge) = start(&scratch, &server(keys));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.address.as_deref()), ("ptp:10.81.0.2/0", Some("10.81.0.2")));
    assert!(ptp(&status).master.is_some() && source.sent > source.exchanges, "{source:?}");
}

/// Follows ptp4l, started with these options, by these keys: the truth is inside the bound, and nothing is turned away.
fn is_followed(name: &str, options: &str, keys: &str) -> StatusReport {
    is_followed_at(&Other::join(), (name, options), keys)
}

fn is_followed_at(other: &Other, (name, options): (&str, &str), keys: &str) -> StatusReport {
    let _ptp4l = serve(other, options, "");
    let scratch = Scratch::new(name);
    let (daemon, mut judge) = start(&scratch, &server(&format!("interface = \"ours0\"\n{keys}")));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    nothing_is_amiss(&status.sources[0]);
    assert!(judge.readings > 100);
    status
}

#[test]
fn a_master_is_followed_over_ethernet() {
    if !is_on_a_host("a_master_is_followed_over_ethernet", "ptp4l") {
        return;
    }
    let status = is_followed("ptp-frames", "-2 -E", "transport = \"ethernet\"");
    let source = &status.sources[0];
    assert_eq!((source.name.as_str(), source.address.as_deref()), ("ptp-ethernet:ours0/0", Some("Ethernet on ours0")));
    assert!(status.stamps == "kernel", "the kernel stamps both ways: {}", status.stamps);
}

#[test]
fn a_master_is_followed_over_ethernet_by_peer_delay() {
    if !is_on_a_host("a_master_is_followed_over_ethernet_by_peer_delay", "ptp4l") {
        return;
    }
    let keys = "transport = \"ethernet\"\ndelay_mechanism = \"peer\"";
    let status = is_followed("ptp-frames-peer", "-2 -P", keys);
    assert!(status.stamps == "kernel", "the kernel stamps both ways: {}", status.stamps);
}

#[test]
fn a_master_is_followed_over_ipv4_by_peer_delay() {
    if !is_on_a_host("a_master_is_followed_over_ipv4_by_peer_delay", "ptp4l") {
        return;
    }
    let status = is_followed("ptp-peer", "-4 -P", "delay_mechanism = \"peer\"");
    assert!(status.stamps == "kernel", "the kernel stamps both ways: {}", status.stamps);
}

/// How many packets to groups this host has sent.
fn packets_to_groups() -> u64 {
    let text = std::fs::read_to_string("/proc/self/net/netstat").expect("/proc");
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("IpExt: "));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let mut counts = names.split(' ').zip(values.split(' '));
    let (_, count) = counts.find(|(name, _)| *name == "OutMcastPkts").expect("the count");
    count.parse().expect("a number")
}

#[test]
fn the_master_alone_is_asked_in_hybrid_mode() {
    if !is_on_a_host("the_master_alone_is_asked_in_hybrid_mode", "ptp4l") {
        return;
    }
    let status = is_followed("ptp-hybrid", "-4 --hybrid_e2e 1", "delay_mechanism = \"hybrid\"");
    let (sent, to_groups) = (status.sources[0].sent, packets_to_groups());
    println!("figure: {sent} requests, {to_groups} packets to groups");
    assert!(sent >= 8 && to_groups < 8, "{sent} requests, {to_groups} packets to groups, of which some are of IGMP");
}

#[test]
fn the_master_alone_is_asked_over_ethernet_in_hybrid_mode() {
    if !is_on_a_host("the_master_alone_is_asked_over_ethernet_in_hybrid_mode", "ptp4l") {
        return;
    }
    let keys = "transport = \"ethernet\"\ndelay_mechanism = \"hybrid\"";
    is_followed("ptp-frames-hybrid", "-2 --hybrid_e2e 1", keys);
}

#[test]
fn ptpd_is_followed_by_multicast() {
    if !is_on_a_host("ptpd_is_followed_by_multicast", "ptpd") {
        return;
    }
    let other = Other::join();
    let _ptpd = serve_with_ptpd(&other, &[]);
    let scratch = Scratch::new("ptp-ptpd");
    let (daemon, mut judge) = start(&scratch, &server("interface = \"ours0\""));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    assert_eq!((ptp(&status).clock_class, ptp(&status).steps_removed), (Some(13), Some(0)));
    nothing_is_amiss(&status.sources[0]);
}

#[test]
fn ptpd_serves_tai_and_claims_its_accuracy() {
    if !is_on_a_host("ptpd_serves_tai_and_claims_its_accuracy", "ptpd") {
        return;
    }
    let other = Other::join();
    let claim =
        ["clock_class=6", "ptp_clock_accuracy=ACC_25US", "ptp_timescale=PTP", "utc_offset=37", "utc_offset_valid=y"];
    let _ptpd = serve_with_ptpd(&other, &claim);
    let scratch = Scratch::new("ptp-ptpd-tai");
    let keys = "protocol = \"ptp\"\ninterface = \"ours0\"\ndelay_interval = \"250 ms\"\n";
    let (daemon, mut judge) = start(&scratch, &format!("[[server]]\n{keys}"));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
    assert_eq!(ptp(&status).clock_class, Some(6));
}

#[test]
fn ptpd_is_asked_by_unicast() {
    if !is_on_a_host("ptpd_is_asked_by_unicast", "ptpd") {
        return;
    }
    let other = Other::join();
    let _ptpd = serve_with_ptpd(&other, &["ip_mode=unicast", "unicast_negotiation=y"]);
    let scratch = Scratch::new("ptp-ptpd-unicast");
    let keys = "address = \"10.81.0.2\"\nsync_interval = \"250 ms\"\nannounce_interval = \"500 ms\"";
    let (daemon, mut judge) = start(&scratch, &server(keys));
    daemon.wait_for("some exchanges", |status| status.sources[0].used >= 8);
    is_right(&mut judge);
}

/// Another host that has IPv6 as well, with the addresses fd81::1 here and fd81::2 there.
fn join_by_ipv6() -> Option<Other> {
    let six = "/proc/sys/net/ipv6/conf";
    if !Path::new(six).exists() {
        println!("SKIP: this kernel knows no IPv6");
        return None;
    }
    // An address is of use at once where it need not be tried first.
    std::fs::write(format!("{six}/default/accept_dad"), "0").expect("a namespace of our own");
    std::fs::write(format!("{six}/default/disable_ipv6"), "0").expect("a namespace of our own");
    let other = Other::join();
    for command in
        [format!("echo 0 > {six}/theirs0/disable_ipv6"), "ip address add fd81::2/64 dev theirs0 nodad".into()]
    {
        other.run(&command);
    }
    ip("address add fd81::1/64 dev ours0 nodad");
    Some(other)
}

#[test]
fn a_master_is_followed_over_ipv6_by_peer_delay_and_in_hybrid_mode() {
    if !is_on_a_host("a_master_is_followed_over_ipv6_by_peer_delay_and_in_hybrid_mode", "ptp4l") {
        return;
    }
    let Some(other) = join_by_ipv6() else { return };
    is_followed_at(&other, ("ptp6-peer", "-6 -P"), "family = \"ipv6\"\ndelay_mechanism = \"peer\"");
    is_followed_at(&other, ("ptp6-hybrid", "-6 --hybrid_e2e 1"), "family = \"ipv6\"\ndelay_mechanism = \"hybrid\"");
}

#[test]
fn masters_are_followed_over_ipv6() {
    if !is_on_a_host("masters_are_followed_over_ipv6", "ptp4l") {
        return;
    }
    let Some(other) = join_by_ipv6() else { return };
    // One master, heard in both ways.
    let _ptp4l = serve(&other, "-6 --unicast_listen 1", "");
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
    let twins = [0, 1].map(|server: usize| status.sources[server].vote.same_as.as_deref());
    assert_eq!(twins, [Some("ptp:fd81::2/0"), None], "one master has one vote: that of the one asked by unicast");
}

/// On another network a host speaks in the name of the master that is asked by unicast, and is heard by multicast.
#[test]
fn a_forger_does_not_silence_the_master_that_is_asked_by_unicast() {
    if !is_on_a_host("a_forger_does_not_silence_the_master_that_is_asked_by_unicast", "ptp4l") {
        return;
    }
    let other = Other::join();
    other.connect(1, ["10.82.0.1", "10.82.0.2"]);
    let name = "clockIdentity 020000.fffe.000001\n";
    let _right = serve(&other, "-4 --unicast_listen 1 --inhibit_multicast_service 1", name);
    let lie = "[theirs1]\negressLatency 5000000\ningressLatency -5000000\n";
    let forger = serve(&other, "-4 -i theirs1", &format!("{name}{lie}"));
    let scratch = Scratch::new("ptp-forger");
    let unicast = "address = \"10.81.0.2\"\nsync_interval = \"250 ms\"\nannounce_interval = \"500 ms\"";
    let servers = server("interface = \"ours1\"") + &server(unicast);
    let (daemon, mut judge) = start(&scratch, &servers);
    let twins = |status: &StatusReport| [0, 1].map(|server: usize| status.sources[server].vote.same_as.clone());
    let right = Some("ptp:10.81.0.2/0".to_owned());
    let status = daemon.wait_for("exchanges of both", |status| {
        status.sources.iter().all(|source| source.used >= 8) && twins(status) == [right.clone(), None]
    });
    assert_eq!(status.selected, right);
    is_right(&mut judge);
    drop(forger);
    daemon.wait_for("its silence", |status| status.sources[0].state == SourceState::Unreachable);
    let status = daemon.wait_for("more of the right one", |now| now.sources[1].used >= status.sources[1].used + 8);
    assert_eq!((twins(&status), status.selected.clone()), ([right.clone(), None], right));
    is_right(&mut judge);
}

#[test]
fn a_grandmaster_that_lies_by_a_millisecond_is_a_falseticker() {
    if !is_on_a_host("a_grandmaster_that_lies_by_a_millisecond_is_a_falseticker", "ptp4l") {
        return;
    }
    let other = Other::join();
    let _honest = [0, 1].map(|domain| serve(&other, &format!("-4 --domainNumber {domain}"), ""));
    // Its stamps of what it sends and of what it receives are a millisecond ahead.
    let lie = "[theirs0]\negressLatency 1000000\ningressLatency -1000000\n";
    let _liar = serve(&other, "-4 --domainNumber 2", lie);
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
fn a_grandmaster_that_lies_beside_two_servers_of_ntp_is_a_falseticker() {
    if !is_on_a_host("a_grandmaster_that_lies_beside_two_servers_of_ntp_is_a_falseticker", "ptp4l") {
        return;
    }
    ip("link set lo up");
    let other = Other::join();
    let _liar = serve(&other, "-4", "[theirs0]\negressLatency 1000000\ningressLatency -1000000\n");
    let truth = Truth::beginning_now(CounterId::MonotonicRaw);
    let honest = [1, 2].map(|host| TestServer::start(&format!("127.0.0.{host}:0"), truth));
    let scratch = Scratch::new("ptp-mixed");
    let [one, two] = honest.each_ref().map(|server| server_section(server.address, ""));
    let (daemon, mut judge) = start(&scratch, &(server("interface = \"ours0\"") + &one + &two));
    let status = daemon.wait_for("a verdict", |status| {
        status.quorum == Some(QuorumReport::Majority) && status.sources.iter().all(|source| source.used >= 8)
    });
    let beliefs: Vec<BeliefReport> = status.sources.iter().map(|source| source.belief).collect();
    assert_eq!(beliefs, [BeliefReport::Falseticker, BeliefReport::Truechimer, BeliefReport::Truechimer]);
    is_right(&mut judge);
}

/// Packets of PTP are found at the driver as those of NTP are.
#[test]
fn events_of_the_kernel_stamp_messages_of_ptp() {
    if !is_on_a_host("events_of_the_kernel_stamp_messages_of_ptp", "ptp4l") {
        return;
    }
    if let Err(error) = DriverStamps::trace(CounterId::MonotonicRaw, 1e9) {
        println!("SKIP: no stamps by trace on this host: {error}");
        return;
    }
    let other = Other::join();
    let _ptp4l = serve(&other, "-4", "");
    let scratch = Scratch::new("ptp-trace");
    let (daemon, mut judge) = start_with(&scratch, "stamps = \"trace\"", &server("interface = \"ours0\""));
    let status = daemon.wait_for("some exchanges", |status| status.sources[0].used >= 16);
    is_right(&mut judge);
    println!("figure: {}", status.stamps);
    assert!(found_at_driver(&status.stamps) >= 8, "{}", status.stamps);
}

#[test]
fn a_daemon_without_the_right_to_the_ports_says_which_one_it_takes() {
    if !is_on_a_host("a_daemon_without_the_right_to_the_ports_says_which_one_it_takes", "ptp4l") {
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

#[test]
fn a_daemon_without_the_right_to_frames_says_which_one_it_takes() {
    if !is_on_a_host("a_daemon_without_the_right_to_frames_says_which_one_it_takes", "ptp4l") {
        return;
    }
    ip("link set lo up");
    let scratch = Scratch::new("ptp-frames-rights");
    let without = "exec setpriv --bounding-set=-net_raw --inh-caps=-net_raw \"$0\" \"$@\"";
    let config = scratch.daemon_section("") + &server("interface = \"lo\"\ntransport = \"ethernet\"");
    let daemon = Daemon::start_after(&scratch, &config, without);
    let status = daemon.wait_for("the event", |status| has_event(status, "masters of PTP cannot be heard"));
    assert!(has_event(&status, "PTP over Ethernet takes the capability CAP_NET_RAW"), "{:?}", status.events);
    assert_eq!(status.sources[0].state, SourceState::Resolving);
}
