//! Connections with any bytes, cut and ordered in any way, in each of the protocols: requests and replies that can be
//! written as a list, read again and imported; and any bytes as a capture.
#![no_main]

mod files;

use ffclock_theta::analysis::{Options, analyse};
use ffclock_theta::import::{MessageLines, StreamMessages, StreamOptions, StreamProtocol, TimeUnit, read_streams};
use ffclock_theta::log::LogReader;
use libfuzzer_sys::fuzz_target;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};

const CLIENT: [u8; 4] = [10, 0, 0, 9];
const PORT: u16 = 7000;
const SYN: u8 = 2;
const ACK: u8 = 16;

const PROTOCOLS: [StreamProtocol; 7] = [
    StreamProtocol::Redis,
    StreamProtocol::Http2,
    StreamProtocol::Kafka,
    StreamProtocol::Length2Big,
    StreamProtocol::Length2Little,
    StreamProtocol::Length4Big,
    StreamProtocol::Length4Little,
];

/// A segment of connection 0 or 1.
struct Segment<'a> {
    connection: u8,
    is_request: bool,
    sequence: u32,
    flags: u8,
    content: &'a [u8],
    /// As many bytes of it were not captured.
    missing: u16,
}

/// A capture of raw IP that grows.
struct Writer {
    bytes: Vec<u8>,
    packets: u32,
}

impl Writer {
    fn new() -> Self {
        let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 0xffff, 101];
        Writer { bytes: header.iter().flat_map(|word: &u32| word.to_le_bytes()).collect(), packets: 0 }
    }

    fn segment(&mut self, segment: &Segment<'_>) {
        let &Segment { connection, is_request, sequence, flags, content, missing } = segment;
        let server = [10, 0, 0, 1 + connection];
        let (from, to) = if is_request { (CLIENT, server) } else { (server, CLIENT) };
        let ports = if is_request { [5000, PORT] } else { [PORT, 5000] };
        let length = 40 + content.len() as u16 + missing;
        let mut packet = vec![0x45, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
        packet.extend([from, to].concat());
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet.extend(content);
        let (at, kept) = (10 * self.packets, packet.len() as u32);
        let head = [1_700_000_000 + at / 1_000_000, at % 1_000_000, kept, length.into()];
        self.bytes.extend(head.iter().flat_map(|word| word.to_le_bytes()));
        self.bytes.extend(packet);
        self.packets += 1;
    }
}

/// Each segment has a byte for where it goes, one for its length, one for a slip of its place; then its content. Both
/// connections are opened, the first one as the protocol wants it.
fn connections(protocol: StreamProtocol, mut bytes: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    let mut next = [[1_u32; 2]; 2];
    for (connection, is_request) in [(0, true), (0, false), (1, true), (1, false)] {
        let flags = if is_request { SYN } else { SYN | ACK };
        writer.segment(&Segment { connection, is_request, sequence: 0, flags, content: &[], missing: 0 });
    }
    if protocol == StreamProtocol::Http2 {
        let hello = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        for (is_request, content) in [(true, &hello[..]), (false, &hello[24..])] {
            writer.segment(&Segment { connection: 0, is_request, sequence: 1, flags: ACK, content, missing: 0 });
            next[0][usize::from(is_request)] += content.len() as u32;
        }
    }
    while let [road, length, slip, rest @ ..] = bytes {
        let (content, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        let (connection, is_request) = (road & 1, road & 2 == 0);
        let place = &mut next[usize::from(connection)][usize::from(is_request)];
        let missing = if road & 4 == 0 { 0 } else { u16::from(*slip) };
        // Most segments follow the one before.
        let sequence = if road & 8 == 0 { *place } else { place.wrapping_add_signed(i32::from(*slip as i8)) };
        let flags = if road & 0xf0 == 0xf0 { *slip } else { ACK };
        writer.segment(&Segment { connection, is_request, sequence, flags, content, missing });
        *place = place.wrapping_add(content.len() as u32 + u32::from(missing));
    }
    writer.bytes
}

fn check(found: &StreamMessages) {
    assert!(found.exchanges() <= found.requests());
    let mut list = vec![];
    found.write_list(&mut list).expect("memory");
    let (mut lines, mut messages, mut answered) = (MessageLines::new(TimeUnit::Nanoseconds), 0, 0);
    let mut count = |message: &ffclock_theta::import::MessageLine<'_>| {
        messages += 1;
        answered += u64::from(message.perceived_ns.is_some());
        Ok(())
    };
    lines.push(&list, &mut count).expect("a header");
    assert_eq!((messages, answered, lines.malformed), (found.requests(), found.exchanges(), 0));
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, rest)) = bytes.split_first() else { return };
    let protocol = PROTOCOLS[usize::from(choice) % PROTOCOLS.len()];
    let capture = if choice < 224 { connections(protocol, rest) } else { rest.to_vec() };
    let options = StreamOptions { client: IpAddr::V4(Ipv4Addr::from(CLIENT)), port: PORT, protocol };
    match read_streams(&capture[..], options) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(found) => {
            check(&found);
            // Files are slow: a part of the inputs is enough.
            if found.exchanges() > 0 && choice % 8 == 0 {
                let directory = files::place("streams");
                let _ = fs::remove_dir_all(&directory);
                if found.import(0, &directory).is_ok() {
                    let log = LogReader::open(&directory).expect("an imported log can be read");
                    analyse(&log, Options::default(), &mut ()).expect("and analysed");
                }
                let _ = fs::remove_dir_all(&directory);
            }
        }
    }
});
