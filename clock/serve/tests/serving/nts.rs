//! NTS from end to end: a client of another project, and one that is made here to do what no honest one does.

mod session;

use crate::common::{Place, Said, Serving};
use ffclock_nts::Aead;
use ffclock_units::Span;
use ffclock_wire::{HEADER_BYTES, Packet};
use session::{Session, ask, certify, establishing_at, with_nts};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Waits until this number of connections has ended for this reason: each is counted at its end, which the client does
/// not wait for.
fn ended(serving: &Serving, reason: &str, number: u64) {
    let end = Instant::now() + Duration::from_secs(10);
    while serving.status()["nts"]["establishments"][reason] != number {
        assert!(Instant::now() < end, "{number} {reason}: {}", serving.status());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn served(place: &Place, more: &str) -> Serving {
    certify(place);
    place.serve(&with_nts(place, more))
}

/// A page that is right within 300 ms.
fn publish(place: &Place) -> impl Sized {
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_millis(300)));
    writer
}

/// `chronyd -Q` establishes keys, asks, believes only what is authentic, and says how wrong it takes the system clock
/// to be; it sets nothing.
#[test]
fn chronyd_establishes_keys_and_believes_the_server() {
    let chronyd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/peers/chronyd");
    let is_there = Command::new(&chronyd).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        println!("SKIP: chronyd is not unpacked");
        return;
    }
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said { error: Span::from_millis(250), ..Said::within(Span::from_millis(300)) });
    let serving = served(&place, "");
    let here = place.directory.display();
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let output = Command::new(&chronyd)
        .args(["-u", String::from_utf8(user).unwrap().trim()])
        .args(["-Q", "-x", "-t", "20"])
        .arg(format!("server 127.0.0.1 nts ntsport {} iburst maxsamples 4", establishing_at(&serving).port()))
        .arg(format!("ntstrustedcerts {here}/chain.pem"))
        .arg(format!("pidfile {here}/chronyd.pid"))
        .args(["cmdport 0", "bindcmdaddress /"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    let wrong = said.split("clock wrong by ").nth(1).and_then(|rest| rest.split(' ').next());
    let wrong: f64 = wrong.unwrap_or_else(|| panic!("{said}\n{}", serving.status())).parse().unwrap();
    assert!((wrong - 0.25).abs() < 0.01, "{said}");
    assert!(serving.count("nts_answered") >= 3, "{}", serving.status());
    assert_eq!(serving.count("nts_answered"), serving.count("answered"));
    ended(&serving, "established", 1);
}

/// The time of leaving is sealed into the reply, so it is read before: until the server knows how long sealing and
/// sending take it is too early by that, and then it is closer.
#[test]
fn a_protected_reply_allows_for_its_own_sealing() {
    let place = Place::new();
    let mut writer = place.writer();
    place.publish(&mut writer, Said::within(Span::from_micros(300)));
    let serving = served(&place, "");
    let mut session = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let cookie = session.cookies[0].clone();
    let mut early: Vec<Span> = Vec::new();
    for _ in 0..60 {
        let request = session.request(&cookie, 0);
        let reply = session.send(&request);
        let received = place.truth.now();
        assert_eq!(session.open(&reply), Some(1));
        early.push(received - Packet::decode(&reply).unwrap().transmit.to_server(received));
    }
    // Of the first one nothing was known. The load of the machine only adds to what is seen, so the least counts.
    let (before, after) = (early[0], early[1..].iter().copied().min().unwrap());
    println!("the first protected reply is received {before} after the time that it states, a later one {after}");
    assert!(after < before, "{before} {after}");
}

#[test]
fn a_session_lasts_as_long_as_its_cookies_are_used() {
    let place = Place::new();
    let _writer = publish(&place);
    let serving = served(&place, "");
    for aead in [Aead::AesSivCmac256, Aead::Aes128GcmSiv] {
        let mut session = Session::establish(&place, &serving, aead);
        session.cookies.truncate(5);
        assert_eq!(session.exchange(), Some(4), "it is filled up to 8");
        for _ in 0..50 {
            assert_eq!(session.exchange(), Some(1));
        }
        assert_eq!(session.cookies.len(), 8);
    }
    assert_eq!(serving.count("nts_answered"), 102);
    // Neither algorithm is known here.
    let (_, records) = ask(&place, establishing_at(&serving), &[17, 99]).unwrap();
    assert_eq!(records, [(1, vec![0, 0]), (4, vec![]), (0, vec![])]);
    ended(&serving, "nothing_in_common", 1);
}

#[test]
fn replayed_cut_and_swapped_requests_get_nothing_that_helps() {
    let place = Place::new();
    let _writer = publish(&place);
    let serving = served(&place, "");
    let mut session = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let mut other = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let cookie = session.cookies.remove(0);
    let good = session.request(&cookie, 0);
    // A replayed request gets replies that only its owner can open.
    for _ in 0..2 {
        let reply = session.send(&good);
        assert_eq!(session.open(&reply), Some(1));
    }
    let kisses = ["nts_cookie", "nts_unauthentic"];
    let before = kisses.map(|name| serving.count(name));
    let swapped = session.request(&other.cookies[0], 0);
    let reply = session.send(&swapped);
    assert_eq!(session.open(&reply), None);
    let mut foreign = cookie.clone();
    foreign[30] ^= 1;
    let forged = session.request(&foreign, 0);
    let reply = session.send(&forged);
    assert_eq!(session.open(&reply), None);
    assert_eq!(kisses.map(|name| serving.count(name)), before.map(|count| count + 1));
    // Cut ones are no requests: silence, or an ordinary answer where nothing of NTS is left.
    session.socket.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    for length in (HEADER_BYTES + 1..good.len()).step_by(7) {
        session.socket.send(&good[..length]).unwrap();
        let mut reply = [0; 2048];
        if let Ok(received) = session.socket.recv(&mut reply) {
            assert!(received == HEADER_BYTES, "cut at {length}: {received} octets");
        }
    }
    assert!(serving.count("nts_malformed") > 0);
    assert_eq!(other.exchange(), Some(1), "others are served on");
}

/// Keys change each second, two older ones open: a session goes on, an old cookie is refused, a restarted server takes
/// the cookies of the one before it, and one with a new secret does not.
#[test]
fn keys_rotate_under_load_and_outlive_a_restart() {
    let place = Place::new();
    let _writer = publish(&place);
    let more = "rotation = \"1 s\"\nold_keys = 2";
    let serving = served(&place, more);
    let mut session = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let old = session.cookies.pop().unwrap();
    let first = serving.status()["nts"]["cookie_key"].as_u64().unwrap();
    let begun = Instant::now();
    let mut exchanges = 0;
    while begun.elapsed() < Duration::from_secs(5) {
        assert!(session.exchange().is_some(), "after {exchanges} exchanges");
        exchanges += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(serving.status()["nts"]["cookie_key"].as_u64().unwrap() >= first + 4);
    assert_eq!(serving.count("nts_answered"), exchanges);
    let stale = session.request(&old, 0);
    let reply = session.send(&stale);
    assert_eq!(session.open(&reply), None, "its key is too old");

    assert!(serving.end());
    let again = place.serve(&with_nts(&place, more));
    session.socket.connect(again.address).unwrap();
    assert!(session.exchange().is_some(), "the secret is in the file");
    assert!(again.end());
    std::fs::remove_file(place.directory.join("cookies")).unwrap();
    let other = place.serve(&with_nts(&place, more));
    session.socket.connect(other.address).unwrap();
    assert!(session.exchange().is_none(), "the secret is another one");
}

/// SIGHUP with a new certificate, while a client is in the middle of its session.
#[test]
fn a_reload_shows_the_new_certificate_and_loses_no_session() {
    let place = Place::new();
    let _writer = publish(&place);
    let serving = served(&place, "");
    let mut session = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let before = std::fs::read(place.directory.join("chain.pem")).unwrap();
    certify(&place);
    assert_ne!(std::fs::read(place.directory.join("chain.pem")).unwrap(), before);
    assert!(ask(&place, establishing_at(&serving), &[15]).is_err(), "the old one is shown until the reload");
    serving.signal("-HUP");
    let end = Instant::now() + Duration::from_secs(10);
    while ask(&place, establishing_at(&serving), &[15]).is_err() {
        assert!(session.exchange().is_some());
        assert!(Instant::now() < end, "the new certificate is never shown");
    }
    // A key that others may read is refused, and the server goes on.
    std::fs::set_permissions(place.directory.join("key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert!(ask(&place, establishing_at(&serving), &[15]).is_ok());
    assert!(session.exchange().is_some());
}

#[test]
fn networks_that_are_not_served_get_no_keys_and_one_address_is_limited() {
    let place = Place::new();
    let _writer = publish(&place);
    let serving = served(&place, "establish_interval = \"1 h\"\nestablish_burst = 3");
    let at = establishing_at(&serving);
    let granted = (0..6).filter(|_| ask(&place, at, &[15]).is_ok_and(|(_, records)| !records.is_empty())).count();
    assert_eq!(granted, 3);
    ended(&serving, "limited", 3);
    drop(serving);
    let denying = place.serve(&format!("deny = \"127.0.0.0/8\"\n{}", with_nts(&place, "")));
    assert!(ask(&place, establishing_at(&denying), &[15]).is_err());
    ended(&denying, "denied", 1);
}
