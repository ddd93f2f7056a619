//! Captures of other systems, made here byte by byte.

mod common;

use common::Scratch;
use common::generator::Random;
use ffclock_theta::analysis::{Options, Ratio, ThetaReport, analyse};
use ffclock_theta::certified::{CertifyOptions, certify};
use ffclock_theta::import::{
    ImportError, ImportOptions, ImportSummary, OverlapRule, ServerCapture, TwoSidedOptions, import, import_two_sided,
};
use ffclock_theta::log::LogReader;
use ffclock_units::Rate;
use std::net::{IpAddr, Ipv4Addr};

const PORT: u16 = 7000;
const CLIENT: u8 = 9;

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn options() -> ImportOptions {
    ImportOptions { client: IpAddr::V4(address(CLIENT)), port: PORT, tolerated: 1, overlap: OverlapRule::Refuse }
}

/// The last byte of an address, and a port.
type Endpoint = (u8, u16);

/// A UDP packet in Ethernet with a content of 5 bytes.
fn frame(from: Endpoint, to: Endpoint) -> Vec<u8> {
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

fn imported(bytes: &[u8], scratch: &Scratch) -> Result<ImportSummary, ImportError> {
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
    let report = ThetaReport::new(log.run(), &tally, log.damage());
    assert!(report.whole && report.conformance.kept, "{:?}", report.remarks);
    assert_eq!(report.counts.messages, found.replies);
    // Three replies of four let the client go on: 300 us. The slow one is in transit over two more rounds.
    assert_eq!(report.all.relevant_min_ps, Some(300_000_000));
    assert_eq!(report.all.omega.map(|peak| peak.ratio), Ratio::of(2400, 300));
}

/// A segment of TCP in Ethernet: who sends it to whom, the number of its first byte, its flags and its content.
fn segment(from: Endpoint, to: Endpoint, sequence: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    let total = 40 + content.len() as u16;
    frame.extend([0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0, 0, 64, 6, 0, 0]);
    frame.extend(address(from.0).octets());
    frame.extend(address(to.0).octets());
    frame.extend([from.1.to_be_bytes(), to.1.to_be_bytes()].concat());
    frame.extend(sequence.to_be_bytes());
    frame.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(content);
    frame
}

const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;

/// On one connection the client sends its next request before the reply to the last one has come.
#[test]
fn pipelined_requests_are_refused() {
    let (client, server) = ((CLIENT, 5000), (1, PORT));
    let mut packets = vec![];
    for number in 0..1200_u32 {
        packets.push((1000 * number, segment(client, server, 100 * number, PSH_ACK, &[1; 100])));
        packets.push((1000 * number + 2500, segment(server, client, 50 * number, PSH_ACK, &[2; 50])));
    }
    packets.sort();
    let scratch = Scratch::new("import-pipelined");
    let refused = imported(&capture(&packets), &scratch).expect_err("replies cannot be given to requests");
    assert!(matches!(refused, ImportError::Overlapping { connections: 1, writes: 1.. }), "{refused}");
    assert!(refused.to_string().contains("--one-request-at-a-time"), "{refused}");
    assert!(!scratch.path().join("log").exists(), "nothing is written");
    let merged = ImportOptions { overlap: OverlapRule::SameRequest, ..options() };
    import(&capture(&packets)[..], merged, &scratch.path().join("log")).expect("as it was asked for");
}

/// One write in several segments, one of them sent again, and a number that turns over.
#[test]
fn a_request_may_take_several_segments() {
    let (client, server) = ((CLIENT, 5000), (1, PORT));
    let begin = u32::MAX - 1500;
    let packets = [
        (0, segment(client, server, begin, ACK, &[1; 1000])),
        (10, segment(client, server, begin.wrapping_add(1000), ACK, &[1; 1000])),
        (20, segment(client, server, begin, ACK, &[1; 1000])),
        (30, segment(client, server, begin.wrapping_add(2000), PSH_ACK, &[1; 500])),
        (40, segment(client, server, begin.wrapping_add(2000), PSH_ACK, &[1; 500])),
        (900, segment(server, client, 7, PSH_ACK, b"done")),
        (2000, segment(client, server, begin.wrapping_add(2500), PSH_ACK, &[1; 20])),
        (2700, segment(server, client, 11, PSH_ACK, b"done")),
    ];
    let scratch = Scratch::new("import-segments");
    let found = imported(&capture(&packets), &scratch).expect("a capture");
    assert_eq!((found.rounds, found.replies), (2, 2));
    let report = report(&scratch.path().join("log"));
    assert_eq!((report.delay_min_ps, report.delay_max_ps), (Some(700_000_000), Some(900_000_000)));
}

#[test]
fn a_cut_capture_gives_what_came_before_and_says_so() {
    let scratch = Scratch::new("import-cut");
    let bytes = capture(&rounds(20));
    let found = imported(&bytes[..bytes.len() - 7], &scratch).expect("most of a capture");
    assert!(found.cut.expect("it is cut").contains("cut"));
    let log = LogReader::open(&scratch.path().join("log")).expect("just written");
    let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
    assert!(!ThetaReport::new(log.run(), &tally, log.damage()).whole);
}

#[test]
fn what_cannot_be_imported_is_named() {
    let complaint = |bytes: &[u8]| {
        let scratch = Scratch::new("import-bad");
        imported(bytes, &scratch).expect_err("nothing to import").to_string()
    };
    assert!(complaint(b"abc").contains("header") && complaint(&capture(&[])[..20]).contains("header"));
    assert!(complaint(&[7; 100]).contains("no capture"));
    assert!(complaint(&[0x0a, 0x0d, 0x0d, 0x0a].repeat(30)).contains("no byte order"));
    assert!(complaint(&capture(&[])).contains("nothing to import"));
    let mut long = capture(&rounds(1));
    long[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(complaint(&long).contains("damaged"));
}

#[test]
fn random_bytes_are_survived() {
    let good = capture(&rounds(3));
    let mut survived = 0;
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
            survived += 1;
        }
    }
    assert!((20..1980).contains(&survived), "{survived} of 2000 damaged captures could be read: some, not all");
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len().next_multiple_of(4)) as u32;
    let mut bytes = [kind.to_le_bytes(), length.to_le_bytes()].concat();
    bytes.extend(body);
    bytes.resize(length as usize - 4, 0);
    bytes.extend(length.to_le_bytes());
    bytes
}

/// The same packets as pcapng: a section, an interface with stamps in nanoseconds, and a block that no reader needs to
/// know.
fn pcapng(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = block(0x0a0d_0d0a, &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    bytes.extend(block(1, &[1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]));
    bytes.extend(block(0x0bad, b"a custom block"));
    for (micros, frame) in packets {
        let at = (1_700_000_000_000_000u64 + u64::from(*micros)) * 1000;
        let length = frame.len() as u32;
        let words = [0, (at >> 32) as u32, at as u32, length, length];
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(block(6, &[head, frame.clone()].concat()));
    }
    bytes
}

fn report(directory: &std::path::Path) -> ThetaReport {
    let log = LogReader::open(directory).expect("just written");
    let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
    ThetaReport::new(log.run(), &tally, log.damage())
}

#[test]
fn pcapng_gives_what_the_classic_format_gives() {
    let (classic, blocks) = (Scratch::new("import-classic"), Scratch::new("import-blocks"));
    let packets = rounds(50);
    let found = imported(&capture(&packets), &classic).expect("a capture");
    assert_eq!(imported(&pcapng(&packets), &blocks).expect("a capture"), found);
    let events = |scratch: &Scratch| std::fs::read_dir(scratch.path().join("log")).expect("a log").count();
    assert_eq!(events(&classic), events(&blocks));
    let of = |scratch: &Scratch| serde_json::to_string(&report(&scratch.path().join("log"))).expect("plain");
    assert_eq!(of(&classic), of(&blocks));
}

#[test]
fn damaged_pcapng_is_survived_and_reported() {
    let good = pcapng(&rounds(20));
    let scratch = Scratch::new("import-blocks-cut");
    let found = imported(&good[..good.len() - 7], &scratch).expect("most of a capture");
    assert!(found.cut.expect("it is cut").contains("cut in block"));
    let mut survived = 0;
    for seed in 0..2000 {
        let mut random = Random(seed);
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(20) {
            let place = random.below(bytes.len() as u64) as usize;
            bytes[place] = random.next() as u8;
        }
        let scratch = Scratch::new("import-blocks-noise");
        if imported(&bytes, &scratch).is_ok() {
            analyse(&LogReader::open(&scratch.path().join("log")).expect("a log"), Options::default(), &mut ())
                .expect("well");
            survived += 1;
        }
    }
    assert!((20..1980).contains(&survived), "{survived} of 2000 damaged captures could be read: some, not all");
}

/// How far the servers' clocks are ahead, and how long replies take: microseconds.
struct World {
    ahead: i64,
    step_at: u32,
    step: i64,
}

/// Captures at the client and at server 1 and 2 (one capture), and the one-way delays of all replies. Each request
/// takes 30 us and more.
fn both_sides(count: u32, world: &World) -> (Vec<u8>, Vec<u8>, Vec<u32>) {
    let (mut at_client, mut at_server, mut delays) = (vec![], vec![], vec![]);
    let mut random = Random(3);
    for round in 0..count {
        for server in 1..=2u8 {
            // Each packet is its own: the identification of IPv4 counts.
            let distinct = |mut frame: Vec<u8>| {
                frame[18..20].copy_from_slice(&(round as u16).to_be_bytes());
                frame
            };
            let client = (CLIENT, 5000 + (round % 8) as u16);
            let request = distinct(frame(client, (server, PORT)));
            let reply = distinct(frame((server, PORT), client));
            let sent = 1_000_000 + 1000 * round + u32::from(server);
            let reached = sent + 30 + random.below(20) as u32;
            let left = reached + 50;
            let delay = if round == 7 { 300 } else { 40 + random.below(20) as u32 };
            let theirs = |at: u32| {
                let step = if at >= world.step_at { world.step } else { 0 };
                u32::try_from(i64::from(at) + world.ahead + step).expect("not before the origin")
            };
            at_client.extend([(sent, request.clone()), (left + delay, reply.clone())]);
            at_server.extend([(theirs(reached), request), (theirs(left), reply)]);
            delays.push(delay);
        }
    }
    at_client.sort();
    at_server.sort();
    (capture(&at_client), pcapng(&at_server), delays)
}

fn joined(world: &World, scratch: &Scratch) -> (Result<ImportSummary, ImportError>, Vec<u32>) {
    let (client, server, delays) = both_sides(2500, world);
    let servers = vec![ServerCapture { name: "server".to_owned(), input: &server[..] }];
    let options = ImportOptions { tolerated: 0, ..options() };
    let found = import_two_sided(
        &client[..],
        servers,
        TwoSidedOptions { import: options, drift: Rate::from_ppm(1.0) },
        &scratch.path().join("log"),
    );
    (found, delays)
}

#[test]
fn captures_at_both_ends_give_one_way_delays_within_their_bound() {
    for ahead in [-900_000, 0, 123_456] {
        let scratch = Scratch::new("import-two");
        let (found, delays) = joined(&World { ahead, step_at: u32::MAX, step: 0 }, &scratch);
        let found = found.expect("two captures");
        assert_eq!((found.replies, found.unmatched, found.cut), (5000, 0, None));
        // A request takes at least 30 us and a reply 40 us: the offset is known to half of both together, and its
        // drift.
        let bound = found.bound_ps.expect("two captures");
        assert!((35_000_000..40_000_000).contains(&bound), "{bound}");
        let report = report(&scratch.path().join("log"));
        assert!(report.whole, "{:?}", report.remarks);
        assert_eq!(report.counts.messages, 5000);
        let truth = i64::from(*delays.iter().max().expect("some")) * 1_000_000;
        let longest = report.delay_max_ps.expect("some");
        assert!(longest.abs_diff(truth) <= bound, "{longest} against {truth}");
        let log = LogReader::open(&scratch.path().join("log")).expect("just written");
        let bounds =
            certify(&log, &CertifyOptions::default()).expect("clocks that kept their bound").all.expect("switches");
        assert!(bounds.low <= bounds.high);
    }
}

#[test]
fn clocks_of_captures_that_contradict_each_other_are_named() {
    let scratch = Scratch::new("import-two-step");
    let (found, _) = joined(&World { ahead: 0, step_at: 2_400_000, step: 5_000 }, &scratch);
    let error = found.expect_err("a step").to_string();
    assert!(error.contains("server: in second 1 ") && error.contains("contradict"), "{error}");
}

#[test]
fn a_capture_of_something_else_is_named() {
    let scratch = Scratch::new("import-two-other");
    let (client, ..) = both_sides(20, &World { ahead: 0, step_at: u32::MAX, step: 0 });
    let into = scratch.path().join("log");
    let with = |bytes: Vec<u8>| {
        let servers = vec![ServerCapture { name: "server".to_owned(), input: std::io::Cursor::new(bytes) }];
        let client = std::io::Cursor::new(client.clone());
        import_two_sided(client, servers, TwoSidedOptions { import: options(), drift: Rate::from_ppm(1.0) }, &into)
            .expect_err("no match")
            .to_string()
    };
    assert!(with(capture(&[])).contains("10.0.0.1"));
    let others: Vec<_> = (1..=2).map(|server| (0, frame((CLIENT, 6000), (server, PORT)))).collect();
    assert!(with(capture(&others)).contains("shares no requests"));
    assert!(with(b"nothing".to_vec()).contains("server: "));
}
