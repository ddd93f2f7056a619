//! Captures of other systems, made here byte by byte.

mod common;

use common::Scratch;
use common::generator::Random;
use ffclock_theta::analysis::{Options, Ratio, Report, analyse};
use ffclock_theta::import::{ImportError, ImportOptions, Imported, import};
use ffclock_theta::log::LogReader;
use std::net::{IpAddr, Ipv4Addr};

const PORT: u16 = 7000;
const CLIENT: u8 = 9;

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn options() -> ImportOptions {
    ImportOptions { client: IpAddr::V4(address(CLIENT)), port: PORT, tolerated: 1 }
}

/// A UDP packet in Ethernet with a content of 5 bytes.
fn frame(from: (u8, u16), to: (u8, u16)) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    frame.extend([0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(address(from.0).octets());
    frame.extend(address(to.0).octets());
    for word in [from.1, to.1, 13, 0] {
        frame.extend(word.to_be_bytes());
    }
    frame.extend(b"hello");
    frame
}

/// A capture with stamps in microseconds.
fn capture(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 1, 0, 0, 0];
    for (micros, frame) in packets {
        for word in [1_700_000_000 + micros / 1_000_000, micros % 1_000_000, frame.len() as u32, frame.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    bytes
}

/// Rounds of 1 ms: four servers answer after 100, 200, 300 and 400 us; in round 5 the last one takes 2400 us.
fn rounds(count: u32) -> Vec<(u32, Vec<u8>)> {
    let mut packets = vec![];
    for round in 0..count {
        for server in 1..=4 {
            let client = (CLIENT, 5000 + (round % 8) as u16);
            let begun = 1000 * round + u32::from(server);
            packets.push((begun, frame(client, (server, PORT))));
            let slow = if round == 5 && server == 4 { 2000 } else { 0 };
            packets.push((begun + 100 * u32::from(server) + slow, frame((server, PORT), client)));
        }
    }
    packets.sort();
    packets
}

fn imported(bytes: &[u8], scratch: &Scratch) -> Result<Imported, ImportError> {
    import(bytes, options(), &scratch.path().join("log"))
}

#[test]
fn rounds_of_requests_become_a_log_with_an_omega() {
    let scratch = Scratch::new("import");
    let found = imported(&capture(&rounds(20)), &scratch).expect("a capture");
    assert_eq!(found.servers, (1..=4).map(|last| IpAddr::V4(address(last))).collect::<Vec<_>>());
    assert_eq!((found.rounds, found.cut), (20, None));
    let log = LogReader::open(&scratch.path().join("log")).expect("just written");
    let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
    let report = Report::new(log.run(), &tally, log.damage());
    assert!(report.whole && report.conformance.kept, "{:?}", report.remarks);
    assert_eq!(report.counts.messages, found.replies);
    // Three replies of four let the client go on: 300 us. The slow one is in transit over two more rounds.
    assert_eq!(report.all.relevant_min_ps, Some(300_000_000));
    assert_eq!(report.all.omega.map(|peak| peak.ratio), Ratio::of(2400, 300));
}

#[test]
fn a_cut_capture_gives_what_came_before_and_says_so() {
    let scratch = Scratch::new("import-cut");
    let bytes = capture(&rounds(20));
    let found = imported(&bytes[..bytes.len() - 7], &scratch).expect("most of a capture");
    assert!(found.cut.expect("it is cut").contains("cut"));
    let log = LogReader::open(&scratch.path().join("log")).expect("just written");
    let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
    assert!(!Report::new(log.run(), &tally, log.damage()).whole);
}

#[test]
fn what_cannot_be_imported_is_named() {
    let complaint = |bytes: &[u8]| {
        let scratch = Scratch::new("import-bad");
        imported(bytes, &scratch).expect_err("nothing to import").to_string()
    };
    assert!(complaint(b"short").contains("header"));
    assert!(complaint(&[7; 100]).contains("no capture"));
    assert!(complaint(&[0x0a, 0x0d, 0x0d, 0x0a].repeat(30)).contains("pcapng"));
    assert!(complaint(&capture(&[])).contains("nothing to import"));
    let mut long = capture(&rounds(1));
    long[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(complaint(&long).contains("damaged"));
}

#[test]
fn random_bytes_are_survived() {
    let good = capture(&rounds(3));
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(20) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.next() as u8;
        }
        bytes[20] = [0, 1, 12, 101, 113, 20, 255][random.below(7) as usize];
        let scratch = Scratch::new("import-noise");
        if imported(&bytes, &scratch).is_ok() {
            let log = LogReader::open(&scratch.path().join("log")).expect("what was imported can be read");
            analyse(&log, Options::default(), &mut ()).expect("and analysed");
        }
    }
}
