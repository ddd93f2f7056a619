//! Frames through the program: every field of a reply, and every packet that is none of its business. The kernel runs
//! the program on a buffer (`BPF_PROG_TEST_RUN`); no device takes part.

use super::responder::Responder;
use crate::{
    BootPair, FastOutcome, FastPathError, FastPathPlace, LineMaker, NetworkRule, RequestLimit, Rules, Verdict, XdpHook,
};
use ffclock_counter::CounterId;
use ffclock_units::{Bound, Counter, Moment, Rate, Span};
use ffclock_wire::{LeapIndicator, LogSeconds, Mode, NtpTimestamp, Packet, Version};
use libbpf_rs::ProgramInput;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::thread::sleep;
use std::time::Duration;

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_TX: u32 = 3;
const PORT: u16 = 123;
const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 7, 1, 2, 3, 4);
const SOURCE_PORT: u16 = 40_123;
const STATED: Span = Span::from_micros(40);
const TRANSMIT: u64 = 0x0123_4567_89ab_cdef;

/// A server by the kernel's raw clock, for which that is the time since 1970.
fn reply_at(counter: Counter) -> Option<Packet> {
    let time = NtpTimestamp::from_server(Moment::from_origin(Span::from_nanos(i128::from(counter.raw()))));
    Some(Packet {
        leap: LeapIndicator::Insert,
        version: Version::V4,
        mode: Mode::Server,
        stratum: 3,
        poll: LogSeconds::from_exponent(0),
        precision: LogSeconds::from_exponent(-23),
        root_delay: Span::from_micros(350),
        root_dispersion: Bound::of(STATED),
        reference_id: 0xc000_0205,
        reference: NtpTimestamp::from_raw(0x1122_3344_5566_7788),
        origin: NtpTimestamp::MISSING,
        receive: time,
        transmit: time,
    })
}

/// The program with a line that holds for a second; `None` where the kernel does not allow it.
fn served(rules: &Rules) -> Option<Responder> {
    let place = FastPathPlace { device: String::new(), hook: XdpHook::Auto, port: PORT, addresses_remembered: 1024 };
    let mut responder = match Responder::load(&place) {
        Ok(responder) => responder,
        Err(FastPathError::Refused(reason)) if reason.contains("CAP_BPF") => {
            println!("SKIP: XDP: {reason}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    responder.serve(&[SERVER.into(), SERVER_V6.into()]).unwrap();
    responder.rule(rules).unwrap();
    renew(&mut responder);
    Some(responder)
}

fn renew(responder: &mut Responder) {
    let mut maker = LineMaker::new(Span::from_secs(1), Rate::from_ppm(500.0));
    let pair = || BootPair::read(CounterId::MonotonicRaw).unwrap();
    maker.make(pair(), reply_at).unwrap_err();
    sleep(Duration::from_millis(20));
    responder.publish(&maker.make(pair(), reply_at).unwrap().words()).unwrap();
}

fn request() -> Vec<u8> {
    let packet = Packet::request(Version::V4, NtpTimestamp::from_raw(TRANSMIT));
    let poll = LogSeconds::from_exponent(6);
    Packet { poll, ..packet }.encode().to_vec()
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(two.get(1).copied().unwrap_or(0))).sum()
}

fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The pseudo header of RFC 768 or RFC 8200, as a sum.
fn pseudo(source: IpAddr, target: IpAddr, length: usize) -> u64 {
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    sum(&octets(source)) + sum(&octets(target)) + 17 + length as u64
}

fn udp(source: (IpAddr, u16), target: (IpAddr, u16), payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len();
    let mut udp = [source.1.to_be_bytes(), target.1.to_be_bytes(), (length as u16).to_be_bytes(), [0; 2]].concat();
    udp.extend(payload);
    let check = !folded(pseudo(source.0, target.0, length) + sum(&udp));
    udp[6..8].copy_from_slice(&check.to_be_bytes());
    udp
}

/// Ends, and how they are joined. Begins with what the program answers.
#[derive(Clone)]
struct Frame {
    source: (IpAddr, u16),
    target: (IpAddr, u16),
    tags: Vec<[u8; 4]>,
    payload: Vec<u8>,
}

impl Frame {
    fn v4(payload: Vec<u8>) -> Self {
        Frame { source: (CLIENT.into(), SOURCE_PORT), target: (SERVER.into(), PORT), tags: Vec::new(), payload }
    }

    fn v6(payload: Vec<u8>) -> Self {
        Frame { source: (CLIENT_V6.into(), SOURCE_PORT), target: (SERVER_V6.into(), PORT), ..Frame::v4(payload) }
    }

    fn from(self, source: &str) -> Self {
        Frame { source: (source.parse().unwrap(), SOURCE_PORT), ..self }
    }

    fn bytes(&self) -> Vec<u8> {
        let udp = udp(self.source, self.target, &self.payload);
        let (kind, network) = match (self.source.0, self.target.0) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let length = 20 + udp.len() as u16;
                let mut ip = vec![0x45, 0xb8, 0, 0, 0x12, 0x34, 0, 0, 57, 17, 0, 0];
                ip[2..4].copy_from_slice(&length.to_be_bytes());
                ip.extend([source.octets(), target.octets()].concat());
                let check = !folded(sum(&ip));
                ip[10..12].copy_from_slice(&check.to_be_bytes());
                ([8, 0], ip)
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                let length = (udp.len() as u16).to_be_bytes();
                let start = [0x6b, 0x81, 0x23, 0x45, length[0], length[1], 17, 57];
                ([0x86, 0xdd], [start.as_slice(), &source.octets(), &target.octets()].concat())
            }
            _ => panic!("two families"),
        };
        let link = [[0x02, 0, 0, 0, 0, 1], [0x02, 0, 0, 0, 0, 2]].concat();
        [link, self.tags.concat(), kind.to_vec(), network, udp].concat()
    }
}

/// What the program did with a frame, and the frame after that.
fn run(responder: &Responder, frame: &[u8]) -> (u32, Vec<u8>) {
    let mut out = vec![0; 2048];
    let input = ProgramInput { data_in: Some(frame), data_out: Some(&mut out), ..ProgramInput::default() };
    let output = responder.test_run(input).unwrap();
    let data = output.data.map(|data| data.to_vec()).unwrap_or_default();
    (output.return_value, data)
}

/// The outcome that a frame adds to the counts, if any, and what was done with it. A frame that is not answered stays
/// as it was.
fn outcome(responder: &Responder, frame: &[u8]) -> (Option<FastOutcome>, u32) {
    let before = responder.counts().unwrap();
    let (action, after) = run(responder, frame);
    if action != XDP_TX {
        assert_eq!(after, frame, "a frame that is not answered stays as it was");
    }
    let counts = responder.counts().unwrap();
    let mut changed = FastOutcome::ALL.into_iter().filter(|one| counts.of(*one) != before.of(*one));
    let outcome = changed.next();
    assert_eq!(changed.next(), None, "one outcome for a frame");
    (outcome, action)
}

fn passed(responder: &Responder, frame: &[u8], reason: FastOutcome) {
    assert_eq!(outcome(responder, frame), (Some(reason), XDP_PASS));
}

fn ignored(responder: &Responder, frame: &[u8]) {
    assert_eq!(outcome(responder, frame), (None, XDP_PASS));
}

/// The reply in a frame whose payload begins at `place`, checked against the clock around it.
fn checked_reply(responder: &Responder, frame: &[u8], place: usize) -> (Packet, Vec<u8>) {
    let before = BootPair::read(CounterId::MonotonicRaw).unwrap().counter;
    let (action, reply) = run(responder, frame);
    let after = BootPair::read(CounterId::MonotonicRaw).unwrap().counter;
    assert_eq!((action, reply.len()), (XDP_TX, frame.len()));
    let packet = Packet::decode(&reply[place..]).unwrap();
    let dispersion = packet.root_dispersion.as_span();
    assert!(dispersion >= STATED && dispersion < STATED + Span::from_micros(500), "{dispersion:?}");
    let pivot = Moment::from_origin(Span::ZERO);
    let [earliest, time, latest] =
        [reply_at(before).unwrap(), packet, reply_at(after).unwrap()].map(|packet| packet.transmit.to_server(pivot));
    let allowed = dispersion - STATED;
    assert!(time >= earliest - allowed && time <= latest + allowed, "{earliest:?} {time:?} {latest:?}");
    (packet, reply)
}

fn expected(of: &Packet, version: Version) -> Packet {
    Packet {
        version,
        poll: LogSeconds::from_exponent(6),
        root_dispersion: of.root_dispersion,
        origin: NtpTimestamp::from_raw(TRANSMIT),
        receive: NtpTimestamp::from_raw((of.transmit.raw() & !1).wrapping_sub(1)),
        transmit: of.transmit,
        // 350 us in 2^-16 s, rounded up.
        root_delay: Span::from_units(23 << 48),
        ..reply_at(Counter::from_raw(0)).unwrap()
    }
}

#[test]
fn every_field_of_a_reply_over_ipv4_is_right() {
    let Some(responder) = served(&Rules::default()) else { return };
    let frame = Frame::v4(request()).bytes();
    let (packet, reply) = checked_reply(&responder, &frame, 42);
    assert_eq!(packet, expected(&packet, Version::V4));
    assert_eq!(reply[..14], [&frame[6..12], &frame[..6], &[8, 0]].concat(), "ends of the link are swapped");
    let ip = &reply[14..34];
    assert_eq!(ip[..10], [0x45, 0, 0, 76, 0, 0, 0x40, 0, 64, 17], "no service class, not to be fragmented");
    assert_eq!(ip[12..], [SERVER.octets(), CLIENT.octets()].concat());
    assert_eq!(folded(sum(ip)), 0xffff, "the header's checksum");
    assert_eq!(reply[34..40], [0, 123, 0x9c, 0xbb, 0, 56]);
    assert_eq!(folded(pseudo(SERVER.into(), CLIENT.into(), 56) + sum(&reply[34..])), 0xffff, "UDP's checksum");
}

#[test]
fn every_field_of_a_reply_over_ipv6_is_right() {
    let Some(responder) = served(&Rules::default()) else { return };
    let frame = Frame::v6(request()).bytes();
    let (packet, reply) = checked_reply(&responder, &frame, 62);
    assert_eq!(packet, expected(&packet, Version::V4));
    assert_eq!(reply[..22], [&frame[6..12], &frame[..6], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 56, 17, 64]].concat());
    assert_eq!(reply[22..54], [SERVER_V6.octets(), CLIENT_V6.octets()].concat());
    assert_eq!(reply[54..60], [0, 123, 0x9c, 0xbb, 0, 56]);
    assert_eq!(folded(pseudo(SERVER_V6.into(), CLIENT_V6.into(), 56) + sum(&reply[54..])), 0xffff, "UDP's checksum");
}

#[test]
fn a_client_of_version_3_gets_version_3_and_tags_stay() {
    let Some(responder) = served(&Rules::default()) else { return };
    let mut payload = request();
    payload[0] = 0x1b;
    let tags = vec![[0x88, 0xa8, 0, 5], [0x81, 0, 0x20, 7]];
    let frame = Frame { tags, ..Frame::v4(payload) }.bytes();
    let (packet, reply) = checked_reply(&responder, &frame, 50);
    assert_eq!(packet, expected(&packet, Version::V3));
    assert_eq!(reply[12..22], [0x88, 0xa8, 0, 5, 0x81, 0, 0x20, 7, 8, 0]);
}

#[test]
fn replies_stay_right_over_many_requests() {
    let Some(mut responder) = served(&Rules::default()) else { return };
    for number in 0..2000_u32 {
        let mut payload = request();
        payload[40..44].copy_from_slice(&number.wrapping_mul(0x9e37_79b9).to_be_bytes());
        payload[2] = number as u8;
        let last = [(number % 250) as u8, (number / 250) as u8];
        let v4 = Frame::v4(payload.clone()).from(&format!("203.0.{}.{}", last[1], last[0]));
        let v6 = Frame::v6(payload).from(&format!("2001:db8::{:x}", number + 2));
        for (frame, place) in [(v4, 42), (v6, 62)] {
            let (_, reply) = checked_reply(&responder, &frame.bytes(), place);
            let whole = pseudo(frame.source.0, frame.target.0, 56) + sum(&reply[place - 8..]);
            assert_eq!(folded(whole), 0xffff, "{number}");
            assert_eq!(reply[place + 2], number as u8, "poll is the request's");
        }
        if number % 256 == 0 {
            renew(&mut responder);
        }
    }
}

#[test]
fn packets_that_are_not_for_the_server_are_not_even_counted() {
    let Some(responder) = served(&Rules::default()) else { return };
    let frame = Frame::v4(request());
    let whole = frame.bytes();
    ignored(&responder, &Frame { target: (SERVER.into(), 124), ..frame.clone() }.bytes());
    // From TCP on, cut at each place, to a group of hosts and from one, another protocol below, a later fragment, IPv4
    // with options.
    let altered = |place: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[place] = byte;
        bytes
    };
    for (place, byte) in [(23, 6), (0, 0x33), (6, 0x33), (12, 0x86), (20, 0x20), (21, 1), (14, 0x46)] {
        ignored(&responder, &altered(place, byte));
    }
    (14..42).for_each(|length| ignored(&responder, &whole[..length]));
    let v6 = Frame::v6(request()).bytes();
    (14..62).for_each(|length| ignored(&responder, &v6[..length]));
    let mut extended = v6.clone();
    extended[20] = 44;
    ignored(&responder, &extended);
    let three = Frame { tags: vec![[0x81, 0, 0, 1]; 3], ..frame }.bytes();
    ignored(&responder, &three);
}

#[test]
fn what_is_more_than_plain_goes_to_the_sockets() {
    let Some(responder) = served(&Rules::default()) else { return };
    for length in [0, 1, 12, 47, 49, 52, 64, 68, 1000] {
        let payload = [request(), vec![0; 952]].concat()[..length].to_vec();
        passed(&responder, &Frame::v4(payload.clone()).bytes(), FastOutcome::PassedForm);
        passed(&responder, &Frame::v6(payload).bytes(), FastOutcome::PassedForm);
    }
    let whole = Frame::v4(request()).bytes();
    (42..90).for_each(|length| passed(&responder, &whole[..length], FastOutcome::PassedForm));
    passed(&responder, &[whole, vec![0; 6]].concat(), FastOutcome::PassedForm);
    for first in (0..=255_u8).filter(|first| first & 7 != 3 || !(3..=4).contains(&(first >> 3 & 7))) {
        let mut payload = request();
        payload[0] = first;
        passed(&responder, &Frame::v4(payload.clone()).bytes(), FastOutcome::PassedMode);
        passed(&responder, &Frame::v6(payload).bytes(), FastOutcome::PassedMode);
    }
}

#[test]
fn an_end_that_is_not_served_or_cannot_be_answered_goes_to_the_stack() {
    let Some(mut responder) = served(&Rules::default()) else { return };
    let to = |target: &str, frame: Frame| Frame { target: (target.parse().unwrap(), PORT), ..frame }.bytes();
    passed(&responder, &to("192.0.2.2", Frame::v4(request())), FastOutcome::PassedAddress);
    passed(&responder, &to("2001:db8::2", Frame::v6(request())), FastOutcome::PassedAddress);
    for source in ["0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "192.0.2.1"] {
        passed(&responder, &Frame::v4(request()).from(source).bytes(), FastOutcome::PassedSource);
    }
    for source in ["::", "::1", "ff02::1", "::ffff:198.51.100.7", "::198.51.100.7"] {
        passed(&responder, &Frame::v6(request()).from(source).bytes(), FastOutcome::PassedSource);
    }
    let without_port = Frame { source: (CLIENT.into(), 0), ..Frame::v4(request()) };
    passed(&responder, &without_port.bytes(), FastOutcome::PassedSource);
    responder.serve(&[SERVER_V6.into()]).unwrap();
    passed(&responder, &Frame::v4(request()).bytes(), FastOutcome::PassedAddress);
    assert_eq!(run(&responder, &Frame::v6(request()).bytes()).0, XDP_TX);
}

#[test]
fn a_damaged_packet_is_left_to_the_stack_and_one_without_its_checksum_is_not() {
    let Some(responder) = served(&Rules::default()) else { return };
    for (whole, network) in [(Frame::v4(request()).bytes(), 14..34), (Frame::v6(request()).bytes(), 22..54)] {
        let damaged = |place: usize| {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x10;
            bytes
        };
        // The poll field: judged by UDP's checksum alone. The time to live: by that of IPv4.
        passed(&responder, &damaged(whole.len() - 46), FastOutcome::PassedChecksum);
        passed(&responder, &damaged(whole.len() - 1), FastOutcome::PassedChecksum);
        if network.len() == 20 {
            passed(&responder, &damaged(22), FastOutcome::PassedChecksum);
        }
        let mut bytes = whole.clone();
        let place = network.end + 6;
        bytes[place..place + 2].fill(0);
        match network.len() {
            20 => assert_eq!(run(&responder, &bytes).0, XDP_TX, "RFC 768: none was made"),
            _ => passed(&responder, &bytes, FastOutcome::PassedChecksum),
        }
        // As a device of this host hands it on: the sum over the pseudo header, the rest is the receiver's.
        let ends = match network.len() {
            20 => (CLIENT.into(), SERVER.into()),
            _ => (CLIENT_V6.into(), SERVER_V6.into()),
        };
        bytes[place..place + 2].copy_from_slice(&folded(pseudo(ends.0, ends.1, 56)).to_be_bytes());
        assert_eq!(run(&responder, &bytes).0, XDP_TX);
    }
}

#[test]
fn lists_decide_by_the_longest_prefix() {
    let rule = |address: &str, prefix, verdict| NetworkRule { address: address.parse().unwrap(), prefix, verdict };
    let networks = vec![
        rule("198.51.100.0", 24, Verdict::Drop),
        rule("198.51.100.0", 29, Verdict::Answer),
        rule("198.51.100.6", 32, Verdict::Pass),
        rule("::", 0, Verdict::Drop),
        rule("0.0.0.0", 0, Verdict::Answer),
        rule("2001:db8:7::", 48, Verdict::Answer),
        rule("2001:db8:7:8::", 64, Verdict::Pass),
    ];
    let rules = Rules { networks, ..Rules::default() };
    let Some(mut responder) = served(&rules) else { return };
    let judged = |responder: &Responder, source: &str| {
        let is_v4 = source.parse::<IpAddr>().unwrap().is_ipv4();
        let frame = if is_v4 { Frame::v4(request()) } else { Frame::v6(request()) };
        outcome(responder, &frame.from(source).bytes())
    };
    let (replied, denied) = ((Some(FastOutcome::Replied), XDP_TX), (Some(FastOutcome::Denied), XDP_DROP));
    let left = (Some(FastOutcome::PassedNetwork), XDP_PASS);
    for (source, what) in [
        ("203.0.113.9", replied),
        ("198.51.100.9", denied),
        ("198.51.100.7", replied),
        ("198.51.100.6", left),
        ("2001:db8:6::1", denied),
        ("203.0.113.10", replied),
        ("2001:db8:7::1", replied),
        ("2001:db8:7:8::1", left),
    ] {
        assert_eq!(judged(&responder, source), what, "{source}");
    }
    // Another list: what is not in it is gone.
    let networks = vec![rule("203.0.113.0", 24, Verdict::Answer)];
    responder.rule(&Rules { networks, otherwise: Verdict::Drop, ..Rules::default() }).unwrap();
    for (source, what) in [("203.0.113.9", replied), ("198.51.100.7", denied), ("2001:db8:7::1", denied)] {
        assert_eq!(judged(&responder, source), what, "{source}");
    }
    responder.rule(&Rules::default()).unwrap();
    assert_eq!(judged(&responder, "198.51.100.9"), replied);
}

#[test]
fn an_address_gets_its_burst_and_then_its_rate_and_others_are_not_concerned() {
    let limit = Some(RequestLimit { interval: Span::from_millis(100), burst: 5, leak: 0 });
    let Some(responder) = served(&Rules { limit, ..Rules::default() }) else { return };
    let replied = |frame: &Frame, times: usize| {
        let bytes = frame.bytes();
        (0..times).filter(|_| run(&responder, &bytes).0 == XDP_TX).count()
    };
    let (v4, v6) = (Frame::v4(request()), Frame::v6(request()));
    assert_eq!(replied(&v4, 50), 5);
    assert_eq!(outcome(&responder, &v4.bytes()), (Some(FastOutcome::Limited), XDP_DROP));
    assert_eq!(replied(&v4.clone().from("198.51.100.8"), 50), 5);
    // Of IPv6, 64 bits are one client.
    assert_eq!(replied(&v6, 3) + replied(&v6.clone().from("2001:db8:7:7:8888::1"), 50), 5);
    assert_eq!(replied(&v6.from("2001:db8:7:8::1"), 50), 5);
    sleep(Duration::from_millis(120));
    assert!((1..=2).contains(&replied(&v4, 50)), "one more in each tenth of a second");
}

#[test]
fn a_flood_of_addresses_takes_no_more_room_and_locks_no_one_out() {
    let limit = Some(RequestLimit { interval: Span::from_millis(500), burst: 2, leak: 0 });
    let Some(mut responder) = served(&Rules { limit, ..Rules::default() }) else { return };
    let honest = Frame::v4(request()).bytes();
    assert_eq!(run(&responder, &honest).0, XDP_TX);
    for number in 0..20_000_u32 {
        let address = Ipv4Addr::from(0x0a00_0000 + number * 7);
        let frame = Frame::v4(request()).from(&address.to_string());
        assert_eq!(run(&responder, &frame.bytes()).0, XDP_TX, "a first request is answered");
        if number % 1000 == 0 {
            renew(&mut responder);
        }
    }
    sleep(Duration::from_millis(500));
    renew(&mut responder);
    assert_eq!(run(&responder, &honest).0, XDP_TX);
}

#[test]
fn beyond_the_limit_a_share_is_answered_and_a_share_refused() {
    let limit = Some(RequestLimit { interval: Span::from_secs(60), burst: 1, leak: 4 });
    let denied = NetworkRule { address: "2001:db8:7::".parse().unwrap(), prefix: 48, verdict: Verdict::Drop };
    let Some(responder) = served(&Rules { limit, kiss: 2, networks: vec![denied], ..Rules::default() }) else { return };
    for (frame, place, code) in [(Frame::v4(request()), 42, *b"RATE"), (Frame::v6(request()), 62, *b"DENY")] {
        let bytes = frame.bytes();
        let replies: Vec<Vec<u8>> = (0..400)
            .map(|_| run(&responder, &bytes))
            .filter(|(action, _)| *action == XDP_TX)
            .map(|(_, reply)| reply)
            .collect();
        let is_refusal = |reply: &&Vec<u8>| Packet::decode(&reply[place..]).unwrap().stratum == 0;
        let refusals: Vec<&Vec<u8>> = replies.iter().filter(is_refusal).collect();
        assert!((100..300).contains(&refusals.len()), "{}", refusals.len());
        let reply = refusals[0];
        let check = pseudo(frame.source.0, frame.target.0, 56) + sum(&reply[place - 8..]);
        assert_eq!(folded(check), 0xffff);
        let times = [[0; 8], TRANSMIT.to_be_bytes(), TRANSMIT.to_be_bytes(), TRANSMIT.to_be_bytes()].concat();
        let expected = [[0xe4, 0, 6, 0].as_slice(), &[0; 8], &code, &times].concat();
        assert_eq!(reply[place..], expected, "RFC 5905, section 7.4: leap 3, stratum 0, the code, no time");
    }
    let counts = responder.counts().unwrap();
    let of = |outcome| counts.of(outcome);
    assert_eq!(of(FastOutcome::Replied), 1);
    assert!((60..140).contains(&of(FastOutcome::Leaked)), "{counts:?}");
    assert_eq!(of(FastOutcome::Leaked) + of(FastOutcome::KissRate) + of(FastOutcome::Limited), 399);
    assert_eq!(of(FastOutcome::KissDeny) + of(FastOutcome::Denied), 400);
}

#[test]
fn a_request_that_may_be_interleaved_is_left_to_the_sockets_where_they_answer_it() {
    let Some(mut responder) = served(&Rules::default()) else { return };
    let mut payload = request();
    payload[24..40].copy_from_slice(&[0x11; 16]);
    let interleaved = Frame::v4(payload.clone()).bytes();
    payload[32..40].copy_from_slice(&TRANSMIT.to_be_bytes());
    let basic = Frame::v4(payload).bytes();
    assert_eq!(run(&responder, &interleaved).0, XDP_TX);
    responder.rule(&Rules { leaves_interleaved: true, ..Rules::default() }).unwrap();
    passed(&responder, &interleaved, FastOutcome::PassedInterleaved);
    // RFC 9769, section 2: a request whose receive and transmit fields are equal is a basic one.
    assert_eq!(run(&responder, &basic).0, XDP_TX);
    assert_eq!(run(&responder, &Frame::v4(request()).bytes()).0, XDP_TX);
    // RFC 5905: the origin is the time at which the last reply left, which is even.
    let mut payload = request();
    payload[24..40].copy_from_slice(&[[0x12; 8], [0x13; 8]].concat());
    assert_eq!(run(&responder, &Frame::v4(payload).bytes()).0, XDP_TX);
}

#[test]
fn a_line_that_is_old_withdrawn_or_damaged_is_not_served() {
    let Some(mut responder) = served(&Rules::default()) else { return };
    let frame = Frame::v4(request()).bytes();
    responder.withdraw().unwrap();
    passed(&responder, &frame, FastOutcome::PassedStale);
    let mut maker = LineMaker::new(Span::from_millis(60), Rate::from_ppm(500.0));
    let mut line = || {
        let pair = || BootPair::read(CounterId::MonotonicRaw).unwrap();
        maker.make(pair(), reply_at).ok();
        sleep(Duration::from_millis(5));
        maker.make(pair(), reply_at).unwrap().words()
    };
    responder.publish(&line()).unwrap();
    assert_eq!(run(&responder, &frame).0, XDP_TX);
    sleep(Duration::from_millis(70));
    passed(&responder, &frame, FastOutcome::PassedStale);
    // Words of two lines, at every place where they can be mixed.
    let (old, new) = (line(), line());
    for words in 1..10 {
        let mixed: Vec<u64> = new[..words].iter().chain(&old[words..]).copied().collect();
        responder.publish(mixed.first_chunk().unwrap()).unwrap();
        let is_whole = mixed == new;
        assert!(is_whole || outcome(&responder, &frame) == (Some(FastOutcome::PassedTorn), XDP_PASS), "{words}");
    }
}
