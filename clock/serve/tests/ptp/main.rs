//! ffclock-serve as a grandmaster of PTP: ptp4l and ptpd follow it over a pair of devices, by the clock that all have.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

#[path = "../serving/common.rs"]
#[expect(dead_code, reason = "the tests of NTP use more of it")]
mod common;
mod host;
#[path = "../../../ptp/tests/hosts/mod.rs"]
mod hosts;

use common::{Place, Said, Serving};
use ffclock_units::{LeapStep, Span, Status};
use host::{Follower, PATIENCE};
use hosts::{Other, Process, is_on_a_host, is_on_own_host};
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The page is right within this.
const BOUND: Span = Span::from_micros(40);
/// Between two hosts on one machine all stamps are the kernel's: what is off by more again and again is no delay [ns].
const OFF_MOST_NS: f64 = 20_000.0;
/// This number of offsets in a row are within that: one may be by chance, and on a busy machine not each one is.
const IN_A_ROW: u32 = 3;
const USUAL: &str = "[ptp]\ninterfaces = [\"ours0\"]\nannounce_interval = \"500 ms\"\nsync_interval = \"250 ms\"\n\
                     delay_interval = \"250 ms\"\n";

/// A page that is right, and a server of it.
fn serve(place: &Place, more: &str) -> Serving {
    place.publish(&mut place.writer(), Said::within(BOUND));
    place.serve(&format!("{USUAL}{more}"))
}

/// The state of the first port, once it is as wanted.
fn wait_for_port(serving: &Serving, what: &str, is_wanted: impl Fn(&serde_json::Value) -> bool) -> serde_json::Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let port = serving.status()["ptp"][0].clone();
        if is_wanted(&port) {
            return port;
        }
        assert!(Instant::now() < end, "{what}: {port}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// How far the system clock, which the followers compare with, is ahead of what the page states [ns]: the two were the
/// same when the page was made, and run at their own rates.
fn system_clock_ahead_ns(place: &Place) -> f64 {
    let system = ffclock_counter::read_narrowest(common::COUNTER, 5, ffclock_sys::system_utc_now);
    let stated = place.truth.utc_at(system.middle());
    (system.value.since_origin() - stated.since_origin()).as_seconds() * 1e9
}

/// Waits until the offsets that `next` gives [ns], and which `who` measures, are right. TAI - UTC is that of our
/// announcement.
fn check_offsets(who: &str, place: &Place, mut next: impl FnMut() -> f64) {
    let (end, mut in_a_row, mut seen) = (Instant::now() + PATIENCE, 0, Vec::new());
    while in_a_row < IN_A_ROW {
        assert!(Instant::now() < end, "{who} measures {seen:?} ns more than there is");
        let off = next() - system_clock_ahead_ns(place);
        in_a_row = if off.abs() <= OFF_MOST_NS { in_a_row + 1 } else { 0 };
        seen.push(off.round());
    }
    println!("figure: {who} measures {seen:?} ns more than there is");
}

fn check_offset(place: &Place, follower: &mut Follower) {
    check_offsets("ptp4l", place, || follower.offset_ns() as f64);
}

#[test]
fn ptp4l_follows_and_sees_what_the_clock_is_worth() {
    if !is_on_a_host("ptp4l_follows_and_sees_what_the_clock_is_worth", "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let serving = serve(&place, "");
    let mut ptp4l = other.follower("-4 -s", "");
    check_offset(&place, &mut ptp4l);
    let port = wait_for_port(&serving, "serving", |port| port["state"] == "serving");
    assert_eq!((port["port"].as_str(), port["clock_class"].as_u64()), (Some("ours0/ipv4"), Some(6)));
    assert_eq!(port["counts"]["unstamped"], 0, "the kernel stamps all that counts: {port}");
    for (field, value) in [
        ("gm.ClockClass", "6"),
        ("gm.ClockAccuracy", "0x27"),
        ("grandmasterPriority1", "128"),
        ("grandmasterIdentity", port["identity"].as_str().unwrap().split('-').next().unwrap()),
    ] {
        ptp4l.wait_for_parent(field, value);
    }
    let mut writer = place.writer();
    let held = Said { status: Status::Holdover, ..Said::within(BOUND) };
    place.publish(&mut writer, held);
    ptp4l.wait_for_parent("gm.ClockClass", "7");
    place.publish(&mut writer, Said { bound: Span::from_millis(5), ..held });
    ptp4l.wait_for_parent("gm.ClockClass", "187");
    ptp4l.wait_for_parent("gm.ClockAccuracy", "0x2b");
    check_offset(&place, &mut ptp4l);
    // A reload changes the claim between two announcements.
    place.configure(&format!("{USUAL}priority_1 = 100\nholdover_max = \"10 ms\"\n"));
    serving.signal("-HUP");
    ptp4l.wait_for_parent("gm.ClockClass", "7");
    ptp4l.wait_for_parent("grandmasterPriority1", "100");
}

#[test]
fn a_page_that_is_no_longer_renewed_is_disowned_and_then_nothing_is_said() {
    let test = "a_page_that_is_no_longer_renewed_is_disowned_and_then_nothing_is_said";
    if !is_on_a_host(test, "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let serving = serve(&place, "");
    let mut ptp4l = other.follower("-4 -s", "");
    check_offset(&place, &mut ptp4l);
    let short = Said { valid_for: Span::from_millis(300), ..Said::within(BOUND) };
    place.publish(&mut place.writer(), short);
    // The last announcement is believed until its timeout, three intervals.
    ptp4l.wait_for_parent("gm.ClockClass", "248");
    let port = wait_for_port(&serving, "silence", |port| port["state"] == "silent");
    assert_eq!(port["clock_accuracy_s"], serde_json::Value::Null);
    ptp4l.wait_for("the timeout of announcements", |line| line.contains("ANNOUNCE_RECEIPT_TIMEOUT").then_some(()));
    let sent = |serving: &Serving| serving.status()["ptp"][0]["counts"]["sent"].as_u64().unwrap();
    let before = sent(&serving);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(sent(&serving), before, "it is silent");
    // The page is written again.
    place.publish(&mut place.writer(), Said::within(BOUND));
    check_offset(&place, &mut ptp4l);
    assert!(ptp4l.pid() > 0);
}

#[test]
fn to_a_better_master_it_gives_way_and_serves_again_when_that_is_gone() {
    if !is_on_a_host("to_a_better_master_it_gives_way_and_serves_again_when_that_is_gone", "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let serving = serve(&place, "announce_timeout = 2\n");
    wait_for_port(&serving, "serving", |port| port["state"] == "serving");
    let worse = other.follower("-4 --priority1 200 --clockClass 6", "clockIdentity 020000.fffe.000001\n");
    let better = other.follower("-4 --priority1 100", "clockIdentity 020000.fffe.000002\n");
    let port = wait_for_port(&serving, "passive", |port| port["state"] == "passive");
    assert_eq!(port["better_master"], "020000.fffe.000002-1");
    let sent = |serving: &Serving| serving.status()["ptp"][0]["counts"]["sent"].as_u64().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let before = sent(&serving);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(sent(&serving), before, "it is silent");
    drop(better);
    wait_for_port(&serving, "serving again", |port| port["state"] == "serving" && port["better_master"].is_null());
    drop(worse);
}

/// Two servers on one network, whose bounds rise and fall each in its own time: after the first seconds one of them
/// serves, always the same.
#[test]
fn of_two_of_ours_one_serves() {
    if !is_on_own_host("of_two_of_ours_one_serves") {
        return;
    }
    let (places, other) = ([Place::new(), Place::new()], Other::with_multicast());
    let mut writers = [places[0].writer(), places[1].writer()];
    let mut publish = |step: u32| {
        for (place, period) in [(0, 7), (1, 11)] {
            let bound = Span::from_micros(10 + i64::from(80 * (step % period) / period));
            places[place].publish(&mut writers[place], Said::within(bound));
        }
    };
    publish(0);
    let _one = places[0].serve(USUAL);
    let mut command = other.command(env!("CARGO_BIN_EXE_ffclock-serve"));
    command.arg("--config").arg(places[1].configure(&USUAL.replace("ours0", "theirs0")));
    let _two = Process::start(command, Stdio::null());
    let states = || {
        let state = |place: &Place| {
            let status = common::status_at(&place.directory.join("status")).ok();
            status.map_or(String::new(), |status| status["ptp"][0]["state"].as_str().unwrap().to_owned())
        };
        [state(&places[0]), state(&places[1])]
    };
    let (mut last, mut alike, mut passive) = (states(), 0, 0);
    for step in 0..400 {
        publish(step);
        std::thread::sleep(Duration::from_millis(50));
        let now = states();
        // What a port reports is up to 100 ms old.
        passive = if now == ["passive", "passive"] { passive + 1 } else { 0 };
        assert!(passive < 10, "neither serves");
        alike = if now == last { alike + 1 } else { 0 };
        last = now;
        if alike == 100 && last != ["serving", "serving"] {
            break;
        }
    }
    assert!(alike >= 100 && last.contains(&"serving".to_owned()), "{last:?} for {alike} looks");
    assert_ne!(last[0], last[1], "one of them");
}

#[test]
fn unicast_is_granted_to_as_many_as_stated_and_only_to_networks_that_are_served() {
    let test = "unicast_is_granted_to_as_many_as_stated_and_only_to_networks_that_are_served";
    if !is_on_a_host(test, "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let serving = serve(&place, "multicast = false\nunicast_grants = 3\n");
    let table = "inhibit_multicast_service 1\n[unicast_master_table]\ntable_id 1\nlogQueryInterval -1\n\
                 UDPv4 10.81.0.1\n[theirs0]\nunicast_master_table 1\n";
    let mut ptp4l = other.follower("-4 -s", table);
    check_offset(&place, &mut ptp4l);
    wait_for_port(&serving, "three grants", |port| port["grants"] == 3);
    // Another client finds no place.
    other.run("ip address add 10.81.0.3/24 dev theirs0");
    let mut denied = other.follower("-4 -s --clockIdentity 020000.fffe.000003", table);
    wait_for_port(&serving, "a request is refused or renewed", |port| port["counts"]["received"].as_u64() > Some(20));
    assert_eq!(serving.status()["ptp"][0]["grants"], 3);
    denied.forget();
    drop(denied);
    place.configure(&format!("deny = \"10.81.0.0/24\"\n{USUAL}multicast = false\nunicast_grants = 3\n"));
    serving.signal("-HUP");
    wait_for_port(&serving, "requests are denied", |port| port["counts"]["denied"].as_u64() > Some(3));
}

#[test]
fn a_link_is_measured_and_followed() {
    if !is_on_a_host("a_link_is_measured_and_followed", "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let _serving = serve(&place, "");
    check_offset(&place, &mut other.follower("-4 -s -P", ""));
}

#[test]
fn followers_over_ethernet_are_served_end_to_end_and_by_the_link() {
    if !is_on_a_host("followers_over_ethernet_are_served_end_to_end_and_by_the_link", "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let serving = serve(&place, "family = \"ethernet\"\n");
    check_offset(&place, &mut other.follower("-2 -s", ""));
    check_offset(&place, &mut other.follower("-2 -s -P", ""));
    let port = serving.status()["ptp"][0].clone();
    assert_eq!((port["port"].as_str(), port["counts"]["unstamped"].as_u64()), (Some("ours0/ethernet"), Some(0)));
}

#[test]
fn followers_of_ipv6_and_ipv4_are_served_by_one_clock() {
    if !is_on_a_host("followers_of_ipv6_and_ipv4_are_served_by_one_clock", "ptp4l") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    if !other.has_ipv6() {
        println!("SKIP: this kernel knows no IPv6");
        return;
    }
    let serving = serve(&place, "family = \"both\"\n");
    let (mut six, mut four) = (other.follower("-6 -s", ""), other.follower("-4 -s", ""));
    check_offset(&place, &mut six);
    check_offset(&place, &mut four);
    let ports = serving.status()["ptp"].clone();
    let identity = |place: usize| ports[place]["identity"].as_str().unwrap().to_owned();
    assert_eq!(identity(0).replace("-1", "-2"), identity(1));
}

#[test]
fn ptpd_follows() {
    if !is_on_a_host("ptpd_follows", "ptpd") {
        return;
    }
    let (place, other) = (Place::new(), Other::with_multicast());
    let now = place.truth.now().whole_seconds() + 37;
    let leap = LeapStep { before: 37, after: 38, at: now + 40_000 };
    let serving = place.serve(USUAL);
    place.publish(&mut place.writer(), Said { leap: Some(leap), ..Said::within(BOUND) });
    wait_for_port(&serving, "serving", |port| port["state"] == "serving");
    let mut ptpd = other.ptpd();
    let offset = |line: &str| {
        // Time, state, port, one-way delay, offset from the master [s].
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        let offset = (fields.get(1) == Some(&"slv")).then(|| fields.get(4)?.parse::<f64>().ok()).flatten();
        // It says 0 before the first one.
        offset.filter(|offset| *offset != 0.0)
    };
    check_offsets("ptpd", &place, || {
        ptpd.forget();
        ptpd.wait_for("an offset", offset) * 1e9
    });
    assert!(ptpd.pid() > 0);
}

/// A socket at an address of the loopback device, beside the server's, which has all of them.
fn shared_socket(ip: &str, port: u16) -> UdpSocket {
    use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt::set_socket_reuseaddr};
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    set_socket_reuseaddr(&socket, true).unwrap();
    bind(&socket, &std::net::SocketAddrV4::new(ip.parse().unwrap(), port)).unwrap();
    socket.into()
}

/// A Delay_Req of 44 octets (IEEE 1588-2019, 11.3) in unicast, with this number.
fn delay_request(number: u16) -> [u8; 44] {
    let mut octets = [0; 44];
    let length_and_version: [u8; 4] = [0x01, 0x02, 0, 44];
    octets[..4].copy_from_slice(&length_and_version);
    octets[6] = 0x04;
    octets[20..30].copy_from_slice(&[2, 0, 0, 0xff, 0xfe, 0, 0, 9, 0, 1]);
    octets[30..32].copy_from_slice(&number.to_be_bytes());
    octets[32] = 1;
    octets[33] = 0x7f;
    octets
}

/// Followers are answered within the limit of their address, with ten octets more than they sent; the flood of one does
/// another no harm.
#[test]
fn a_flood_of_delay_requests_is_answered_within_the_limit() {
    if !is_on_a_host("a_flood_of_delay_requests_is_answered_within_the_limit", "ptp4l") {
        return;
    }
    let (place, _other) = (Place::new(), Other::with_multicast());
    place.publish(&mut place.writer(), Said::within(BOUND));
    let serving =
        place.serve("rate_interval = \"10 s\"\nrate_burst = 5\nrate_leak = 1000\n[ptp]\ninterfaces = [\"lo\"]\n");
    wait_for_port(&serving, "serving", |port| port["state"] == "serving");
    let ask = |ip: &str, number: u16| {
        let [event, general] = [319, 320].map(|port| shared_socket(ip, port));
        general.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let answers = (0..number).filter(|number| {
            event.send_to(&delay_request(*number), "127.0.0.1:319").unwrap();
            if *number >= 5 {
                return false;
            }
            let mut answer = [0; 100];
            assert_eq!(general.recv(&mut answer).unwrap(), 54);
            assert_eq!((answer[0] & 15, &answer[30..32]), (9, &number.to_be_bytes()[..]));
            true
        });
        answers.count()
    };
    assert_eq!(ask("127.0.0.2", 2000), 5);
    let port = wait_for_port(&serving, "all are judged", |port| {
        let count = |name: &str| port["counts"][name].as_u64().unwrap();
        count("limited") + count("leaked") == 1995
    });
    assert!(port["counts"]["leaked"].as_u64() < Some(20), "{port}");
    assert_eq!(ask("127.0.0.3", 5), 5);
}
