//! Floods: no reply helps to attack a third party, and no number of addresses shuts others out or takes memory.

use crate::common::{Client, Place, Said, Serving};
use crate::is_in_a_namespace;
use crate::session::{Session, certify, with_nts};
use ffclock_nts::Aead;
use ffclock_units::Span;
use ffclock_wire::{HEADER_BYTES, NtpTimestamp, Packet, Version};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Requests that are under way at a time: the socket's buffer holds them.
const UNDER_WAY: usize = 32;

/// Addresses that send a request each.
const ADDRESSES: u64 = 1_000_000;

/// What the server may take with all of them [kB], without its program: tables have their size from the beginning, and
/// are filled.
const MEMORY_MAX: u64 = 16 * 1024;

/// splitmix64 (Steele, Lea and Flood, OOPSLA 2014, figure 19).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// Extension fields of NTS and others, whose lengths are right or not, and what follows them.
fn odd_tail(draw: &mut Draw) -> Vec<u8> {
    const KINDS: [u16; 7] = [0x0104, 0x0204, 0x0304, 0x0404, 0xfec2, 0x2005, 0];
    let mut tail = Vec::new();
    for _ in 0..draw.below(8) {
        let body = 4 * draw.below(40);
        let claimed = if draw.below(3) == 0 { draw.below(300) } else { body + 4 };
        tail.extend(KINDS[draw.below(KINDS.len())].to_be_bytes());
        tail.extend((claimed as u16).to_be_bytes());
        tail.extend(draw.bytes(body));
    }
    let rest = [0, 4, 20, 24, 28, draw.below(80)][draw.below(6)];
    tail.extend(draw.bytes(rest));
    tail
}

/// A true request of NTS with something changed, cut off or added.
fn spoilt(good: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut request = good.to_vec();
    for _ in 0..draw.below(3) {
        let place = HEADER_BYTES + draw.below(request.len() - HEADER_BYTES);
        request[place] = draw.next() as u8;
    }
    match draw.below(3) {
        0 => request.truncate(HEADER_BYTES + draw.below(good.len() - HEADER_BYTES)),
        1 => request.extend(odd_tail(draw)),
        _ => {}
    }
    request
}

/// Every reply belongs to a request, by the time that this one was sent with, and is not longer.
#[test]
fn no_reply_is_longer_than_its_request() {
    let place = Place::new();
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    certify(&place);
    let serving = place.serve(&with_nts(&place, ""));
    let mut session = Session::establish(&place, &serving, Aead::AesSivCmac256);
    let cookie = session.cookies[0].clone();
    let good = [0, 3, 7].map(|placeholders| session.request(&cookie, placeholders));
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (mut draw, mut lengths) = (Draw(1), Vec::new());
    let [mut replies, mut longer_than_plain] = [0_u32; 2];
    for number in 0..16_384_usize {
        let plain = Packet::request(Version::V4, NtpTimestamp::MISSING).encode().to_vec();
        let mut request = match number % 3 {
            0 => spoilt(&good[draw.below(3)], &mut draw),
            _ => [plain, odd_tail(&mut draw)].concat(),
        };
        if number % 5 == 0 {
            request[0] = draw.next() as u8;
        }
        // The oldest versions send it back as well.
        request[40..48].copy_from_slice(&(number as u64 + 1).to_be_bytes());
        lengths.push(request.len());
        socket.send(&request).unwrap();
        if number % UNDER_WAY != UNDER_WAY - 1 {
            continue;
        }
        let mut reply = [0; 4096];
        while let Ok(length) = socket.recv(&mut reply) {
            let asked = u64::from_be_bytes(reply[24..32].try_into().unwrap()) as usize;
            assert!(length <= lengths[asked - 1], "{length} for {}", lengths[asked - 1]);
            replies += 1;
            longer_than_plain += u32::from(length > HEADER_BYTES);
        }
    }
    assert!(replies > 8000 && longer_than_plain > 100, "{replies} replies, {longer_than_plain} of them not plain");
    assert!(Client::of(&serving, place.truth).ask().is_some());
}

/// The program of floods; `None`, with a note, where there is no compiler.
fn flood_program(place: &Place) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/network/flood.c");
    let program = place.directory.join("flood");
    let Ok(ended) = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).output() else {
        println!("SKIP: there is no C compiler, so no flood was made");
        return None;
    };
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Some(program)
}

/// Resident memory [kB] without what is mapped from the program's files, which is many times larger before it is
/// optimised.
fn resident(serving: &Serving) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// `flood` with a bare request and these words.
fn start_flood(program: &Path, place: &Place, words: [&str; 4]) -> Child {
    let packet = place.directory.join("request");
    std::fs::write(&packet, Packet::request(Version::V4, NtpTimestamp::from_raw(9)).encode()).unwrap();
    Command::new(program).args(words).arg(packet).stdout(Stdio::piped()).spawn().unwrap()
}

/// How many packets a flood sent, and how many came back.
fn outcome(flood: Child) -> [u64; 2] {
    let said = flood.wait_with_output().unwrap();
    assert!(said.status.success());
    let text = String::from_utf8(said.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap());
    [numbers.next().unwrap(), numbers.next().unwrap()]
}

/// A request from each of 10^6 addresses with the usual limits: all are answered, one that asks honestly meanwhile is
/// as well, and the server's memory stays as it was meant.
#[test]
fn many_addresses_shut_no_one_out_and_take_no_memory() {
    if !is_in_a_namespace("floods::many_addresses_shut_no_one_out_and_take_no_memory") {
        return;
    }
    let place = Place::new();
    let Some(program) = flood_program(&place) else { return };
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    let serving = place.serve("");
    let mut client = Client::of(&serving, place.truth);
    assert!(client.ask().is_some());
    let port = serving.address.port().to_string();
    let mut flood = start_flood(&program, &place, ["many", "127.0.0.1", &port, &ADDRESSES.to_string()]);
    let mut asked = 0;
    while flood.try_wait().unwrap().is_none() {
        assert!(client.ask().is_some_and(|answered| answered.holds()), "request {asked}");
        asked += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    let [sent, came] = outcome(flood);
    assert_eq!(sent, ADDRESSES);
    assert!(came * 100 >= sent * 99, "{came} of {sent} were answered");
    assert!(asked >= 10, "the flood was over after {asked} requests");
    let resident = resident(&serving);
    println!("{came} of {sent} addresses were answered, resident without the program: {resident} kB");
    assert!(resident <= MEMORY_MAX, "it takes {resident} kB");
}

/// As many requests as one CPU can send, each in another address's name: the server answers an honest client whenever
/// its queue has room. (The table's own test holds who is remembered; `benches/flood.rs` of ffclock-xdp has 500,000/s.)
#[test]
fn a_flood_of_forged_addresses_shuts_no_one_out() {
    if !is_in_a_namespace("floods::a_flood_of_forged_addresses_shuts_no_one_out") {
        return;
    }
    let place = Place::new();
    let Some(program) = flood_program(&place) else { return };
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    let serving = place.serve("");
    let port = serving.address.port().to_string();
    let begun = std::time::Instant::now();
    let mut flood = start_flood(&program, &place, ["forge", "127.0.0.1", &port, "3"]);
    let (mut asked, mut answered) = (0, 0);
    while flood.try_wait().unwrap().is_none() {
        asked += 1;
        answered += u32::from(is_answered(&serving));
        std::thread::sleep(Duration::from_millis(20));
    }
    let [sent, _] = outcome(flood);
    let rate = sent as f64 / begun.elapsed().as_secs_f64();
    println!("{rate:.0} forged requests a second; {answered} of {asked} honest ones were answered");
    assert!(sent > 10_000, "{sent}");
    assert!(asked >= 10 && answered * 10 >= asked, "{answered} of {asked} honest requests were answered");
    // What the kernel still holds of the flood comes before it.
    assert!((0..20).any(|_| is_answered(&serving)), "{}", serving.status());
}

/// Whether a request from an address that sends no others is answered within a tenth of a second.
fn is_answered(serving: &Serving) -> bool {
    let socket = UdpSocket::bind("127.0.0.2:0").unwrap();
    socket.connect(serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket.send(&Packet::request(Version::V4, NtpTimestamp::from_raw(7)).encode()).unwrap();
    socket.recv(&mut [0; 100]).is_ok_and(|length| length == HEADER_BYTES)
}

/// One address asks as fast as it can, as if someone had forged it: it is limited, and another one is answered as soon
/// as the queue has room for its request.
#[test]
fn one_flooding_address_is_limited_and_others_are_served() {
    let place = Place::new();
    let Some(program) = flood_program(&place) else { return };
    place.publish(&mut place.writer(), Said::within(Span::from_millis(1)));
    let serving = place.serve("");
    let port = serving.address.port().to_string();
    let mut flood = start_flood(&program, &place, ["flood", "127.0.0.1", &port, "3"]);
    let (mut asked, mut answered) = (0, 0);
    while flood.try_wait().unwrap().is_none() {
        asked += 1;
        answered += u32::from(is_answered(&serving));
        std::thread::sleep(Duration::from_millis(20));
    }
    let [sent, came] = outcome(flood);
    assert!(came * 2 < sent, "{came} of {sent} were answered");
    assert!(serving.count("limited") > 1000, "{}", serving.status());
    assert!(asked >= 10 && answered * 10 >= asked, "{answered} of {asked} honest requests were answered");
}
