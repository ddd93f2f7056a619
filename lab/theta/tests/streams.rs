//! Pipelined and multiplexed exchanges in captures: each found, with its times, or counted as passed over.

mod common;

use common::Scratch;
use common::generator::Random;
use common::tcp::{
    ACK, CLIENT, Endpoint, Flow, PORT, Road, Seen, Segment, address, capture, capture_in_this_order, closing, opening,
    segments,
};
use ffclock_theta::analysis::{Options, ThetaReport, analyse};
use ffclock_theta::import::{
    ImportError, StreamMessages, StreamOptions, StreamProtocol, StreamsPassedOver, read_streams,
};
use ffclock_theta::log::LogReader;
use std::net::IpAddr;

const ALL: [StreamProtocol; 7] = [
    StreamProtocol::Redis,
    StreamProtocol::Http2,
    StreamProtocol::Kafka,
    StreamProtocol::Length2Big,
    StreamProtocol::Length2Little,
    StreamProtocol::Length4Big,
    StreamProtocol::Length4Little,
];

fn read(bytes: &[u8], protocol: StreamProtocol) -> Result<StreamMessages, ImportError> {
    read_streams(bytes, StreamOptions { client: IpAddr::V4(address(CLIENT)), port: PORT, protocol })
}

/// A message in parts: what comes before it, itself, and what may come later. The first and the last are no messages.
#[derive(Default)]
struct Written {
    before: Vec<u8>,
    message: Vec<u8>,
    after: Vec<u8>,
}

fn noise(random: &mut Random, up_to: u64) -> Vec<u8> {
    (0..random.below(up_to)).map(|_| b"ab\r\n$*:3"[random.below(8) as usize]).collect()
}

fn bulk(content: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", content.len()).as_bytes(), content, b"\r\n"].concat()
}

fn http2(kind: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&length[1..], &[kind, 4], &stream.to_be_bytes(), body].concat()
}

fn behind_length(protocol: StreamProtocol, content: &[u8]) -> Vec<u8> {
    let length = content.len() as u32;
    let prefix = match protocol {
        StreamProtocol::Length2Big => (length as u16).to_be_bytes().to_vec(),
        StreamProtocol::Length2Little => (length as u16).to_le_bytes().to_vec(),
        StreamProtocol::Length4Little => length.to_le_bytes().to_vec(),
        _ => length.to_be_bytes().to_vec(),
    };
    [prefix, content.to_vec()].concat()
}

/// What a client writes on its own before its first request, and a server before its first reply.
fn greeting(protocol: StreamProtocol) -> [Vec<u8>; 2] {
    let settings = http2(4, 0, &[0; 6]);
    match protocol {
        StreamProtocol::Http2 => [[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), settings.clone()].concat(), settings],
        _ => [vec![], vec![]],
    }
}

fn request(protocol: StreamProtocol, number: u32, random: &mut Random) -> Written {
    let content = noise(random, 120);
    let message = match protocol {
        StreamProtocol::Redis if random.one_in(5) => b"PING\r\n".to_vec(),
        StreamProtocol::Redis => [b"*3\r\n".to_vec(), bulk(b"SET"), bulk(b"key"), bulk(&content)].concat(),
        StreamProtocol::Http2 => {
            let stream = 2 * number + 1;
            return Written {
                before: if random.one_in(4) { http2(8, 0, &[0; 4]) } else { vec![] },
                message: http2(1, stream, &content),
                after: [http2(0, stream, &content), http2(1, stream, b"trailers")].concat(),
            };
        }
        StreamProtocol::Kafka => {
            let head = [&[0, 1, 0, 11], &number.wrapping_sub(3).to_be_bytes()[..], &content].concat();
            behind_length(protocol, &head)
        }
        _ => behind_length(protocol, &content),
    };
    Written { message, ..Written::default() }
}

fn reply(protocol: StreamProtocol, number: u32, random: &mut Random) -> Written {
    let content = noise(random, 200);
    let message = match protocol {
        StreamProtocol::Redis => {
            let before = if random.one_in(9) { b">2\r\n+invalidate\r\n*1\r\n+key\r\n".to_vec() } else { vec![] };
            let message = match random.below(3) {
                0 => b"+OK\r\n".to_vec(),
                1 => bulk(&content),
                _ => [b"*2\r\n%1\r\n+a\r\n:1\r\n".to_vec(), bulk(&content)].concat(),
            };
            return Written { before, message, after: vec![] };
        }
        StreamProtocol::Http2 => {
            let stream = 2 * number + 1;
            let after = [http2(0, stream, &content), http2(1, stream, b"trailers")].concat();
            return Written { before: vec![], message: http2(1, stream, &content), after };
        }
        StreamProtocol::Kafka => {
            behind_length(protocol, &[&number.wrapping_sub(3).to_be_bytes()[..], &content].concat())
        }
        _ => behind_length(protocol, &content),
    };
    Written { message, ..Written::default() }
}

/// A connection, and when each request and each reply of it was seen, in microseconds.
struct World {
    packets: Vec<Seen>,
    truth: Vec<(u32, u32)>,
}

/// Exchanges that overlap: a burst of 40 requests each 5 ms, and replies 3 to 23 ms after the server had the request.
/// In HTTP/2 replies overtake one another.
fn pipelined(protocol: StreamProtocol, ends: (Endpoint, Endpoint), count: u32, road: (Road, &mut Random)) -> World {
    let (road, random) = road;
    let first = (u32::MAX - 3000, 77);
    let mut packets = opening(ends, first).to_vec();
    let [hello, welcome] = greeting(protocol);
    let (mut flow, mut places) = (Flow::default(), vec![]);
    flow.write(10, &hello);
    for number in 0..count {
        let Written { before, message, after } = request(protocol, number, random);
        places.push(flow.bytes.len() + before.len());
        flow.write(100 + number / 40 * 5000, &[before, message, after].concat());
    }
    let asked = segments(&flow, ends, first.0, (road, random));
    packets.extend(asked.packets);

    // The server has a request when it has all up to its end.
    let mut ready: Vec<(u32, u32)> = vec![];
    let mut complete = 0;
    for number in 0..count {
        let end = places.get(number as usize + 1).copied().unwrap_or(flow.bytes.len());
        let until = asked.first_seen[places[number as usize]..end].iter().copied().max().expect("not empty");
        complete = until.max(complete);
        ready.push((complete + 3000 + random.below(20_000) as u32, number));
    }
    if protocol == StreamProtocol::Http2 {
        ready.sort_unstable();
    }
    let (mut back, mut begins, mut at) = (Flow::default(), vec![0; count as usize], 20);
    back.write(at, &welcome);
    for (done, number) in ready {
        at = at.max(done);
        let Written { before, message, after } = reply(protocol, number, random);
        begins[number as usize] = back.bytes.len() + before.len();
        back.write(at, &[before, message, after].concat());
    }
    let answered = segments(&back, (ends.1, ends.0), first.1, (road, random));
    packets.extend(answered.packets);
    packets.extend(closing(ends, u32::MAX / 2));

    let perceived = |place: usize| answered.first_seen[..=place].iter().copied().max().expect("not empty");
    let truth = places.iter().zip(&begins);
    let truth = truth.map(|(&sent, &begin)| (asked.first_seen[sent], perceived(begin))).collect();
    World { packets, truth }
}

const ROUGH: Road = Road { cut: 97, disorder: 900, resent: 40, repeated: 25 };

/// What a list says of one sender: when its messages were sent and perceived, in microseconds of the capture.
fn listed(messages: &StreamMessages, server: u8) -> Vec<(u32, u32)> {
    let mut list = vec![];
    messages.write_list(&mut list).expect("memory");
    let list = String::from_utf8(list).expect("text");
    let of_server = list.lines().filter(|line| line.starts_with(&format!("{},", address(server))));
    of_server
        .zip(1_u64..)
        .map(|(line, number)| {
            let fields: Vec<_> = line.split(',').collect();
            assert_eq!(fields[2], number.to_string(), "{line}");
            let micros = |text: &str| (text.parse::<u64>().expect("a number") / 1000 - 1_700_000_000_000_000) as u32;
            (micros(fields[3]), micros(fields[4]))
        })
        .collect()
}

#[test]
fn every_pipelined_exchange_is_found_with_its_times() {
    for (protocol, seed) in ALL.into_iter().zip(1..) {
        let random = &mut Random(seed);
        let World { packets, truth } = pipelined(protocol, ((CLIENT, 5000), (1, PORT)), 1200, (ROUGH, random));
        let found = read(&capture(&packets, usize::MAX), protocol).expect("a capture");
        assert_eq!((found.requests(), found.exchanges()), (1200, 1200), "{protocol:?}: {:?}", found.passed_over);
        assert_eq!((found.damage(), found.connections), (0, 1), "{protocol:?}: {:?}", found.passed_over);
        assert!(found.passed_over.repeated_segments > 10, "{protocol:?}: {:?}", found.passed_over);
        let mut truth = truth;
        truth.sort_unstable();
        let mut listed = listed(&found, 1);
        listed.sort_unstable();
        assert_eq!(listed, truth, "{protocol:?}");
    }
}

#[test]
fn the_log_of_pipelined_exchanges_has_them_all() {
    for (protocol, seed) in ALL.into_iter().zip(100..) {
        let random = &mut Random(seed);
        let worlds = [1, 2, 3].map(|server| {
            pipelined(protocol, ((CLIENT, 5000 + u16::from(server)), (server, PORT)), 400, (ROUGH, random))
        });
        let packets: Vec<_> = worlds.iter().flat_map(|world| world.packets.clone()).collect();
        let found = read(&capture(&packets, usize::MAX), protocol).expect("a capture");
        let scratch = Scratch::new("streams-log");
        let directory = scratch.path().join("log");
        let rounds = found.import(1, &directory).expect("room for a log");
        assert_eq!((rounds.rounds(), rounds.taken()), (400, 1200), "{protocol:?}");
        let log = LogReader::open(&directory).expect("just written");
        let tally = analyse(&log, Options::default(), &mut ()).expect("just written");
        let report = ThetaReport::new(log.run(), &tally, log.damage());
        assert!(report.whole, "{protocol:?}: {:?}", report.remarks);
        assert_eq!(report.counts.messages, 1200, "{protocol:?}");
        let truth = worlds.iter().flat_map(|world| &world.truth);
        let longest = truth.map(|(sent, perceived)| perceived - sent).max().expect("not empty");
        assert_eq!(report.delay_max_ps, Some(i64::from(longest) * 1_000_000), "{protocol:?}");
    }
}

/// A capture of the beginnings of packets: what is missing lies inside messages.
#[test]
fn the_beginnings_of_packets_are_enough_if_messages_begin_there() {
    let content = vec![7; 900];
    let ends = ((CLIENT, 5000), (1, PORT));
    let cases: [(StreamProtocol, Vec<u8>, Vec<u8>); 3] = [
        (
            StreamProtocol::Redis,
            [b"*3\r\n".to_vec(), bulk(b"SET"), bulk(b"key"), bulk(&content)].concat(),
            bulk(&content),
        ),
        (StreamProtocol::Length4Big, behind_length(StreamProtocol::Length4Big, &content), vec![0; 4]),
        (StreamProtocol::Http2, vec![], vec![]),
    ];
    for (protocol, question, answer) in cases {
        let mut packets = opening(ends, (1, 1)).to_vec();
        let (mut asked, mut answered) = (1, 1);
        let mut say = |at, is_question: bool, content: Vec<u8>| {
            let next = if is_question { &mut asked } else { &mut answered };
            let ((from, to), sequence) = (if is_question { ends } else { (ends.1, ends.0) }, *next);
            *next += content.len() as u32;
            // The end of a string's line is in a packet of its own: the beginning of each packet is all that is kept.
            packets.push((at, Segment { from, to, sequence, flags: ACK, content }));
        };
        let [hello, welcome] = greeting(protocol);
        say(2, true, hello);
        say(3, false, welcome);
        for number in 0..50 {
            let stream = 2 * number + 1;
            let (question, answer) = match protocol {
                StreamProtocol::Http2 => (http2(1, stream, &content), http2(1, stream, &content)),
                _ => (question.clone(), answer.clone()),
            };
            let at = 100 * number;
            let (first, last) = question.split_at(question.len() - 2);
            say(10 + at, true, first.to_vec());
            say(11 + at, true, last.to_vec());
            let (first, last) = answer.split_at(answer.len() - 2);
            say(20 + at, false, first.to_vec());
            say(21 + at, false, last.to_vec());
        }
        let found = read(&capture(&packets, 120), protocol).expect("a capture");
        assert_eq!((found.exchanges(), found.damage()), (50, 0), "{protocol:?}: {:?}", found.passed_over);
        assert!(found.passed_over.missing_bytes > 10_000, "{protocol:?}: {:?}", found.passed_over);
    }
}

/// Messages of 10 bytes behind their length, one in each segment: exchange k begins at 1000 k and takes 300.
fn plain(count: u32) -> Vec<Seen> {
    let ends = ((CLIENT, 5000), (1, PORT));
    let mut packets = opening(ends, (1, 1)).to_vec();
    for number in 0..count {
        let content = behind_length(StreamProtocol::Length2Big, &[0xff; 10]);
        let sequence = 1 + 12 * number;
        let segment = |from, to| Segment { from, to, sequence, flags: ACK, content: content.clone() };
        packets.push((1000 * number + 10, segment(ends.0, ends.1)));
        packets.push((1000 * number + 310, segment(ends.1, ends.0)));
    }
    packets
}

fn passed_over(packets: &[Seen]) -> (u64, StreamsPassedOver) {
    let found = read(&capture(packets, usize::MAX), StreamProtocol::Length2Big).expect("a capture");
    (found.exchanges(), found.passed_over)
}

#[test]
fn a_connection_that_began_before_is_passed_over() {
    let packets = plain(20);
    let (exchanges, over) = passed_over(&packets[2..]);
    assert_eq!((exchanges, over.begun_before, over.unread_bytes), (0, 1, 40 * 12));
    // Half of its beginning is not enough.
    assert_eq!(passed_over(&packets[1..]).1.begun_before, 1);
    let without_answer: Vec<_> = [&packets[..1], &packets[2..]].concat();
    assert_eq!(passed_over(&without_answer).1.begun_before, 1);
}

#[test]
fn a_clock_that_is_set_back_changes_no_delay_and_is_named() {
    let (steady, stepped) = (plain(20), {
        let mut packets = plain(20);
        // From exchange 10 on: 400 ms earlier, by a clock that began half a second later.
        packets.iter_mut().enumerate().for_each(|(place, seen)| seen.0 += if place < 22 { 500_000 } else { 100_000 });
        packets
    });
    let delays = |packets: &[Seen]| {
        let capture = capture_in_this_order(packets, usize::MAX);
        let found = read(&capture, StreamProtocol::Length2Big).expect("a capture");
        let delays = listed(&found, 1).iter().map(|(sent, perceived)| perceived - sent).collect::<Vec<_>>();
        (delays, found.passed_over.steps_back, found.damage())
    };
    assert_eq!(delays(&steady), (vec![300; 20], 0, 0));
    assert_eq!(delays(&stepped), (vec![300; 20], 1, 1));
}

#[test]
fn nothing_is_guessed_behind_a_gap() {
    // The request of exchange 10 was not captured: its length was in it.
    let mut packets = plain(20);
    packets.remove(2 + 20);
    let (exchanges, over) = passed_over(&packets);
    assert_eq!((exchanges, over.gaps, over.missing_bytes, over.unasked), (10, 1, 12, 0), "{over:?}");
    // The reply was not captured: requests are still counted.
    let mut packets = plain(20);
    packets.remove(2 + 21);
    let (exchanges, over) = passed_over(&packets);
    assert_eq!((exchanges, over.gaps, over.unanswered), (10, 1, 10), "{over:?}");
    // A gap inside a message does no harm.
    let mut packets = plain(20);
    let content = packets[2 + 20].1.content.split_off(4);
    packets.push((
        10_011,
        Segment { sequence: 1 + 120 + 10, content: content[6..].to_vec(), ..packets[2 + 20].1.clone() },
    ));
    let (exchanges, over) = passed_over(&packets);
    assert_eq!((exchanges, over.gaps, over.missing_bytes), (20, 0, 6), "{over:?}");
}

#[test]
fn a_server_that_speaks_first_is_no_server_of_replies() {
    let mut packets = plain(20);
    for (_, segment) in packets.iter_mut().filter(|(_, segment)| segment.from.0 == 1 && !segment.content.is_empty()) {
        segment.sequence += 12;
    }
    let greeting = Segment { sequence: 1, ..packets[3].1.clone() };
    packets.push((3, greeting));
    let (exchanges, over) = passed_over(&packets);
    assert_eq!((exchanges, over.out_of_step, over.unasked), (0, 1, 1), "{over:?}");
}

#[test]
fn what_is_not_the_protocol_is_named() {
    for protocol in [StreamProtocol::Redis, StreamProtocol::Http2, StreamProtocol::Kafka, StreamProtocol::Length4Little]
    {
        let found = read(&capture(&plain(20), usize::MAX), protocol).expect("a capture");
        assert_eq!((found.exchanges(), found.passed_over.not_understood), (0, 1), "{protocol:?}");
    }
    let nothing = read(&capture(&[], usize::MAX), StreamProtocol::Redis).expect_err("no packet");
    assert!(matches!(nothing, ImportError::Nothing { .. }), "{nothing}");
}

/// A connection with two flows of whole writes: to the server and back.
fn dialogue(lines: &[(u32, bool, Vec<u8>)]) -> Vec<Seen> {
    let ends = ((CLIENT, 5000), (1, PORT));
    let mut packets = opening(ends, (1, 1)).to_vec();
    let mut next = [1, 1];
    for (at, is_question, content) in lines {
        let (from, to) = if *is_question { ends } else { (ends.1, ends.0) };
        let sequence = next[usize::from(*is_question)];
        packets.push((*at, Segment { from, to, sequence, flags: ACK, content: content.clone() }));
        next[usize::from(*is_question)] += content.len() as u32;
    }
    packets
}

#[test]
fn redis_is_read_until_it_is_subscribed() {
    let lines = [
        (10, true, b"PING\r\nGET a\r\nSUBSCRIBE news\r\n".to_vec()),
        (20, false, b"+PONG\r\n".to_vec()),
        (30, false, b"$-1\r\n*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n".to_vec()),
        (40, false, b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$2\r\nhi\r\n".to_vec()),
    ];
    let found = read(&capture(&dialogue(&lines), usize::MAX), StreamProtocol::Redis).expect("a capture");
    assert_eq!(listed(&found, 1), [(10, 20), (10, 30)]);
    assert_eq!((found.passed_over.other_mode, found.damage()), (1, 0), "{:?}", found.passed_over);
}

#[test]
fn kafka_requests_need_no_reply() {
    let request = |id: u8| behind_length(StreamProtocol::Kafka, &[0, 0, 0, 9, 0, 0, 0, id, 1, 2, 3]);
    let reply = |id: u8| behind_length(StreamProtocol::Kafka, &[0, 0, 0, id, 9, 9]);
    let lines = [
        (10, true, [request(1), request(2), request(3)].concat()),
        (20, false, reply(2)),
        (30, false, reply(3)),
        (40, false, reply(9)),
    ];
    let found = read(&capture(&dialogue(&lines), usize::MAX), StreamProtocol::Kafka).expect("a capture");
    assert_eq!((found.requests(), found.exchanges()), (3, 2));
    assert_eq!((found.passed_over.unanswered, found.passed_over.unasked), (1, 1), "{:?}", found.passed_over);
}

#[test]
fn streams_of_http2_may_be_broken_off_or_pushed() {
    let [hello, welcome] = greeting(StreamProtocol::Http2);
    let lines = [
        (5, true, hello),
        (6, false, welcome),
        (10, true, [http2(1, 1, b"a"), http2(1, 3, b"b"), http2(1, 5, b"c")].concat()),
        (20, true, http2(3, 3, &[0; 4])),
        (30, false, [http2(5, 1, &[0, 0, 0, 2]), http2(1, 2, b"pushed"), http2(1, 5, b"c")].concat()),
        (40, false, [http2(1, 3, b"late"), http2(1, 1, b"a"), http2(0, 1, b""), http2(1, 1, b"trailers")].concat()),
    ];
    let found = read(&capture(&dialogue(&lines), usize::MAX), StreamProtocol::Http2).expect("a capture");
    assert_eq!((found.requests(), found.exchanges(), found.damage()), (3, 2, 0), "{:?}", found.passed_over);
    assert_eq!(found.passed_over.pushed, 1);
}

/// Any byte of a capture may be wrong: there is an answer, and no more replies than requests.
#[test]
fn a_damaged_capture_is_read_as_far_as_it_makes_sense() {
    let (mut whole, mut partial) = (0, 0);
    for (protocol, seed) in ALL.into_iter().zip(500..) {
        let random = &mut Random(seed);
        let World { packets, .. } = pipelined(protocol, ((CLIENT, 5000), (1, PORT)), 30, (ROUGH, random));
        let bytes = capture(&packets, usize::MAX);
        for _ in 0..100 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(4) {
                let place = 24 + random.below(bytes.len() as u64 - 24) as usize;
                damaged[place] = [0, 0xff, random.next() as u8][random.below(3) as usize];
            }
            let Ok(found) = read(&damaged, protocol) else { continue };
            assert!(found.exchanges() <= found.requests() && found.requests() <= 400, "{:?}", found.passed_over);
            let count = if found.damage() == 0 { &mut whole } else { &mut partial };
            *count += 1;
        }
    }
    assert!(whole > 50 && partial > 50, "{whole} {partial}");
}

#[test]
fn what_is_missing_in_a_log_makes_it_partial() {
    let found = read(&capture(&plain(20)[2..], usize::MAX), StreamProtocol::Length2Big).expect("a capture");
    let scratch = Scratch::new("streams-partial");
    assert!(found.import(0, &scratch.path().join("none")).is_err(), "no message");
    let mut packets = plain(20);
    packets.remove(2 + 20);
    let mut bytes = capture(&packets, usize::MAX);
    bytes.pop();
    let found = read(&bytes, StreamProtocol::Length2Big).expect("a capture");
    assert_eq!(found.damage(), 2, "a gap, and the cut: {:?} {:?}", found.passed_over, found.cut);
    found.import(0, &scratch.path().join("log")).expect("room for a log");
    let log = LogReader::open(&scratch.path().join("log")).expect("just written");
    assert_eq!(log.run().unrecorded, 2);
}
