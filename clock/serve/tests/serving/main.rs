//! ffclock-serve as a process, on loopback: what its replies claim is compared with the truth.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod clients;
mod common;
mod interleaving;
mod nts;

use common::{Client, Place, Said, bare_request};
use ffclock::Clock;
use ffclock_serve::face::{FaceOptions, ReplyMoments, ServedFace};
use ffclock_serve::options::{ServedBound, Smear};
use ffclock_units::{Bound, LeapStep, Rate, ServerIdentity, Span, Status};
use ffclock_wire::{LeapIndicator, LogSeconds};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// The page is wrong by almost its bound, in either direction, and renewed all the time; some lines are old, so that
/// most of the claim has grown. Every reply must admit it. `FFCLOCK_CLAIM_ROUNDS` makes it longer: 8 replies a round.
#[test]
fn the_truth_lies_within_the_claim_of_every_reply() {
    let place = Place::new();
    let mut writer = place.writer();
    let bound = Span::from_micros(300);
    let said = Said { growth: Rate::from_ppm(200.0), ..Said::within(bound) };
    let wrong = |sign: i64| Said { error: Span::from_micros(285 * sign), ..said };
    place.publish(&mut writer, wrong(1));
    let serving = place.serve("threads = 2\nrate_interval = \"0 s\"");
    let mut clients: Vec<Client> = (0..8).map(|_| Client::of(&serving, place.truth)).collect();
    let rounds = std::env::var("FFCLOCK_CLAIM_ROUNDS").ok().map_or(1500, |rounds| rounds.parse::<u64>().unwrap());
    // The least that a claim left beyond the error.
    let (mut worst, mut tight) = (f64::MAX, 0);
    for round in 0..rounds {
        place.publish(&mut writer, wrong(if round % 2 == 0 { 1 } else { -1 }));
        for client in &mut clients {
            let answered = client.ask().expect("an answer");
            assert!(answered.holds(), "{answered:?}");
            // The server's own times alone: neither is before the request left nor after the reply came.
            assert!(answered.distance >= bound.as_seconds(), "{answered:?}");
            worst = worst.min(answered.half_delay + answered.distance - answered.offset.abs());
            tight += u64::from(answered.offset.abs() > 0.5 * bound.as_seconds());
        }
    }
    println!("{} replies; the tightest claim left {worst:.1e} s beyond the error", 8 * rounds);
    assert!(tight > 4 * rounds, "the page's error shows in only {tight} of {} replies", 8 * rounds);
    assert!(worst < 100e-6, "the claim is wider than it must be: by {worst} s at least");
    assert_eq!(serving.count("answered"), 8 * rounds);
    assert!(serving.count("unstamped") < rounds, "{}", serving.status());
    assert!(serving.end());
}

/// A reply that leaves sooner than was foreseen has stated a time that is too late by what was foreseen at most.
#[test]
fn the_claim_is_wider_by_what_is_foreseen() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_micros(300)));
    let snapshot = Clock::open_at(&place.directory.join("page")).unwrap().snapshot().unwrap();
    let estimate = snapshot.estimate().unwrap();
    let distance = |foreseen: Span| {
        let foreseen = estimate.period.ticks_in(foreseen);
        let moments = ReplyMoments { foreseen, ..ReplyMoments::at(estimate.counter) };
        ServedFace::of(&snapshot, &moments, &face_options()).standing.unwrap().distance.as_seconds()
    };
    let widened = distance(Span::from_millis(2)) - distance(Span::ZERO);
    assert!((widened - 2e-3).abs() < 2.0 / 65536.0, "{widened}");
}

fn face_options() -> FaceOptions {
    let (bound, bound_max) = (ServedBound::Bound, Bound::of(Span::from_secs(1)));
    FaceOptions {
        bound,
        bound_max,
        smear: Smear::Off,
        smeared_leap: None,
        precision: LogSeconds::from_exponent(-20),
        reference_id: Some(1),
    }
}

/// RFC 5905, figure 12: a server of stratum 1 names the kind of its reference, any other one whom it follows.
#[test]
fn a_reference_is_named_by_its_kind_and_a_server_by_its_address() {
    let place = Place::new();
    let mut writer = place.writer();
    let clock = || Clock::open_at(&place.directory.join("page")).unwrap();
    let (address, kind) = (0xc000_0201, *b"PPS\0");
    for (stratum, reference_id, named) in
        [(0, Some(address), kind), (0, None, kind), (1, Some(address), [192, 0, 2, 1]), (1, None, kind)]
    {
        let server = ServerIdentity { stratum, reference_id: u32::from_be_bytes(kind) };
        place.publish(&mut writer, Said { server, ..Said::within(Span::from_micros(300)) });
        let snapshot = clock().snapshot().unwrap();
        let moments = ReplyMoments::at(snapshot.estimate().unwrap().counter);
        let options = FaceOptions { reference_id, ..face_options() };
        let claim = ServedFace::of(&snapshot, &moments, &options).standing.unwrap();
        assert_eq!((claim.stratum, claim.reference_id.to_be_bytes()), (stratum + 1, named), "{reference_id:?}");
    }
}

#[test]
fn the_strict_bound_is_served_where_it_is_asked_for_and_grows_with_age() {
    let place = Place::new();
    let mut writer = place.writer();
    let said =
        Said { strict: Span::from_millis(40), growth: Rate::from_ppm(100_000.0), ..Said::within(Span::from_millis(5)) };
    place.publish(&mut writer, said);
    let serving = place.serve("bound = \"strict\"");
    let mut client = Client::of(&serving, place.truth);
    let young = client.ask().unwrap().distance;
    std::thread::sleep(Duration::from_millis(300));
    let old = client.ask().unwrap().distance;
    assert!(young >= 40e-3 && old - young >= 29e-3, "{young} {old}");
}

#[test]
fn a_server_without_time_says_so_until_it_has_one() {
    let place = Place::new();
    let serving = place.serve("serve_bound_max = \"10 ms\"");
    let mut client = Client::of(&serving, place.truth);
    let unsynchronised = |client: &mut Client| {
        let packet = client.ask().expect("an answer").packet;
        (packet.leap, packet.stratum) == (LeapIndicator::Unsynchronised, 16)
    };
    assert!(unsynchronised(&mut client), "there is no page");
    assert!(serving.status()["unserved"].as_str().unwrap().contains("page"));
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(5)));
    let end = Instant::now() + Duration::from_secs(20);
    while unsynchronised(&mut client) {
        assert!(Instant::now() < end, "the page is not found");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(client.ask().unwrap().packet.stratum, 2);
    place.publish(&mut writer, Said::within(Span::from_millis(11)));
    assert!(unsynchronised(&mut client), "the bound is larger than what is served");
    place.publish(&mut writer, Said { status: Status::Holdover, ..Said::within(Span::from_millis(5)) });
    assert!(!unsynchronised(&mut client), "holdover has a bound");
    place.publish(&mut writer, Said { valid_for: Span::from_millis(1), ..Said::within(Span::from_millis(5)) });
    std::thread::sleep(Duration::from_millis(5));
    assert!(unsynchronised(&mut client), "no one renews the page");
    writer.retire(Status::Unsynchronised);
    assert!(unsynchronised(&mut client), "the estimate was withdrawn");
}

#[test]
fn a_silent_server_is_silent_while_it_has_no_time() {
    let place = Place::new();
    let serving = place.serve("unsynchronised = \"silence\"");
    let mut client = Client::of(&serving, place.truth);
    client.socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(client.ask().is_none());
    assert_eq!(serving.count("silent"), 1);
}

#[test]
fn a_leap_second_is_announced_or_smeared_never_both() {
    let place = Place::new();
    let mut writer = place.writer();
    let now = place.truth.now().whole_seconds() + 37;
    let leap = LeapStep { before: 37, after: 38, at: now + 3600 };
    place.publish(&mut writer, Said { leap: Some(leap), ..Said::within(Span::from_millis(1)) });
    let announced = place.serve("");
    assert_eq!(Client::of(&announced, place.truth).ask().unwrap().packet.leap, LeapIndicator::Insert);
    drop(announced);
    let smeared = place.serve("smear = \"linear-24h\"");
    let answered = Client::of(&smeared, place.truth).ask().unwrap();
    assert_eq!(answered.packet.leap, LeapIndicator::None);
    assert_eq!(answered.packet.reference_id >> 24, 254);
    // 11 of 24 hours have passed.
    assert!((answered.offset + 11.0 / 24.0).abs() < 2e-3 + answered.half_delay, "{answered:?}");
}

/// Its smear would have begun eleven hours ago: the time would jump by as much.
#[test]
fn a_leap_second_that_is_announced_late_is_not_smeared() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(1)));
    let serving = place.serve("smear = \"linear-24h\"");
    let mut client = Client::of(&serving, place.truth);
    client.ask().unwrap();
    let leap = LeapStep { before: 37, after: 38, at: place.truth.now().whole_seconds() + 37 + 3600 };
    place.publish(&mut writer, Said { leap: Some(leap), ..Said::within(Span::from_millis(1)) });
    // Longer than the main thread takes to look at the page.
    let end = Instant::now() + Duration::from_millis(1500);
    while Instant::now() < end {
        let answered = client.ask().unwrap();
        assert_eq!(answered.packet.leap, LeapIndicator::Insert);
        assert!(answered.offset.abs() < 2e-3 + answered.half_delay, "{answered:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn every_tail_of_a_request_is_answered_plainly_and_nothing_else_is() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(1)));
    let serving = place.serve("rate_interval = \"0 s\"");
    let mut client = Client::of(&serving, place.truth);
    // ClockBound's request: an extension field of 16 octets and type 0xFEC2.
    let clock_bound = [[0xfe, 0xc2, 0, 16].as_slice(), &[0; 12]].concat();
    assert_eq!(client.ask_with(&clock_bound).unwrap().length, 48);
    for length in (0..2000).step_by(37) {
        assert_eq!(client.ask_with(&vec![0xff; length]).unwrap().length, 48, "{length}");
    }
    let before = serving.count("answered");
    let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
    mute.connect(serving.address).unwrap();
    mute.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let not_requests = [0x24, 0x22, 0x25, 0x26, 0x27, 0x03, 0x2b, 0x3b];
    for first in not_requests {
        mute.send(&bare_request(first)).unwrap();
    }
    mute.send(&[0x23; 47]).unwrap();
    mute.send(&[]).unwrap();
    mute.send(&[0x23; 3000]).unwrap();
    assert!(mute.recv(&mut [0; 100]).is_err(), "nothing of this is a request");
    assert_eq!(serving.count("answered"), before);
    let counted = |name| serving.count(name);
    assert_eq!([counted("not_request"), counted("version"), counted("truncated"), counted("too_long")], [5, 3, 2, 1]);
}

/// It may be in another's name, and every server of the network would answer it.
#[test]
fn a_request_to_all_hosts_gets_no_answer() {
    let place = Place::new();
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    let serving = place.serve("listen = \"0.0.0.0:0\"\nrate_interval = \"0 s\"");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.set_broadcast(true).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let request = bare_request(0x23);
    client.send_to(&request, ("127.255.255.255", serving.address.port())).unwrap();
    client.send_to(&request[..], ("127.0.0.1", serving.address.port())).unwrap();
    let mut reply = [0; 100];
    let (length, from) = client.recv_from(&mut reply).unwrap();
    assert_eq!((length, from), (48, ([127, 0, 0, 1], serving.address.port()).into()));
    assert_eq!((serving.count("to_group"), serving.count("answered")), (1, 1));
}

/// Requests go on while the lists are read again and again: each gets its answer, and the new list is in force.
#[test]
fn a_reload_loses_no_packet_and_decides_who_is_served() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(1)));
    let serving = place.serve("rate_interval = \"0 s\"");
    let mut client = Client::of(&serving, place.truth);
    for round in 0..1000 {
        if round % 100 == 50 {
            place.configure(&format!("rate_interval = \"0 s\"\nallow = \"127.0.0.0/{}\"", 8 + round / 100));
            serving.signal("-HUP");
        }
        assert!(client.ask().is_some(), "{round}");
    }
    assert!(
        serving.capabilities().iter().all(|line| line.ends_with("0000000000000000")),
        "{:?}",
        serving.capabilities()
    );
    place.configure("rate_interval = \"0 s\"\ndeny = \"127.0.0.0/8\"\nkiss = false");
    serving.signal("-HUP");
    client.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while serving.count("denied") == 0 {
        assert!(Instant::now() < end, "the denied network is still served");
        let _ = client.ask();
    }
    assert!(client.ask().is_none());
    place.configure("nonsense = 1");
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(100));
    assert!(client.ask().is_none(), "a configuration that is refused changes nothing");
}

#[test]
fn who_asks_too_often_is_answered_now_and_then() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(1)));
    let serving = place.serve("rate_interval = \"10 s\"\nrate_burst = 5\nrate_leak = 8");
    let client = Client::of(&serving, place.truth);
    for _ in 0..4000 {
        client.socket.send(&bare_request(0x23)).unwrap();
        std::thread::sleep(Duration::from_micros(20));
    }
    let end = Instant::now() + Duration::from_secs(10);
    while serving.count("received") < 4000 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (answered, limited, kissed) = (serving.count("answered"), serving.count("limited"), serving.count("kiss_rate"));
    assert_eq!(answered + limited, serving.count("received"));
    assert!((350..700).contains(&answered), "{answered} of 4000: the burst and an eighth");
    assert!((100..400).contains(&kissed), "{kissed} refusals");
}
