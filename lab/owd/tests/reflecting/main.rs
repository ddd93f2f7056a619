//! Sender and reflector on loopback, each with a page that the test writes. Both read one counter, so the true delay of
//! every packet is known.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod common;
mod plain;
mod stamp_suite;

use common::{Place, Shift, drive, plan, reflector_plan};
use ffclock_owd::OwdError;
use ffclock_owd::error_estimate::ErrorEstimate;
use ffclock_owd::judge::PacketFate;
use ffclock_owd::packet::{BASE_BYTES, TestReply, TestRequest, WireTime};
use ffclock_owd::page_time::Unsynchronised;
use ffclock_owd::reflector::{Numbering, Reflector, ReflectorCounts, ReflectorPlan};
use ffclock_owd::sender::{Sender, SenderPlan};
use ffclock_owd::summary::OwdSummary;
use ffclock_owd::truth;
use ffclock_sys::StampMode;
use ffclock_units::Span;
use std::net::UdpSocket;
use std::time::Duration;

const PACKETS: u64 = 300;

#[test]
fn every_delay_holds_the_truth_within_its_bound() {
    let place = Place::new();
    // Clocks that err in opposite directions, as far as their bounds allow.
    let here = place.page("here", Shift { error: Span::from_micros(9), bound: Span::from_micros(10) });
    let there = place.page("there", Shift { error: Span::from_micros(-29), bound: Span::from_micros(30) });
    let mut reflector = Reflector::open(&reflector_plan(&there)).unwrap();
    let (writer, passages) = place.passages();
    reflector.record_passages(writer).unwrap();
    let mut sender = Sender::open(plan(&here, reflector.address().unwrap(), PACKETS)).unwrap();
    let rows = drive(&mut sender, &mut reflector);
    let passages = truth::read_passages(passages().as_bytes(), sender.session()).unwrap();
    let found = truth::compare(&rows, &passages, sender.page().period());
    let measured = rows.iter().filter(|row| row.fate == PacketFate::Measured).count();
    println!("{measured} of {PACKETS} measured, {found:?}");
    assert!(measured as u64 > PACKETS * 9 / 10, "{:?}", sender.strays());
    assert_eq!((found.compared, found.outside), (measured as u64, 0));
    // The clocks' own errors are what is left: 38 us.
    let error = found.forward_error_ns.unwrap();
    assert!((error.median - 38_000.0).abs() < 2_000.0, "{error:?}");
}

#[test]
fn a_reflector_that_lies_is_kept_apart() {
    let place = Place::new();
    let here = place.page("here", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    // It is 50 ms behind and claims 30 us: requests would arrive before they were sent.
    let there = place.page("there", Shift { error: Span::from_millis(-50), bound: Span::from_micros(30) });
    let mut reflector = Reflector::open(&reflector_plan(&there)).unwrap();
    let mut sender = Sender::open(plan(&here, reflector.address().unwrap(), 20)).unwrap();
    let rows = drive(&mut sender, &mut reflector);
    let apart = rows.iter().filter(|row| row.fate == PacketFate::ForwardBelowZero).count();
    let lost = rows.iter().filter(|row| row.fate == PacketFate::Lost).count();
    assert!(apart > 0 && apart + lost == 20, "{rows:?}");
}

#[test]
fn without_a_synchronised_page_neither_end_begins_unless_asked() {
    let place = Place::new();
    let empty = place.empty_page("empty");
    let good = place.page("good", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    assert!(matches!(Reflector::open(&reflector_plan(&empty)), Err(OwdError::Unsynchronised { .. })));
    let missing = reflector_plan(&place.path("missing"));
    assert!(matches!(Reflector::open(&missing), Err(OwdError::Page(_))));

    let asked = ReflectorPlan { unsynchronised: Unsynchronised::Allow, ..reflector_plan(&empty) };
    let mut reflector = Reflector::open(&asked).unwrap();
    let refused = Sender::open(plan(&empty, reflector.address().unwrap(), 10)).err();
    assert!(matches!(refused, Some(OwdError::Unsynchronised { .. })));
    let mut sender = Sender::open(plan(&good, reflector.address().unwrap(), 10)).unwrap();
    let rows = drive(&mut sender, &mut reflector);
    let trips: Vec<_> = rows.iter().filter(|row| row.fate == PacketFate::Unsynchronised).collect();
    assert!(!trips.is_empty(), "{rows:?}");
    for row in trips {
        assert!(row.forward.is_none() && row.round_trip.is_some_and(|trip| trip < Span::from_secs(2)), "{row:?}");
    }
    assert!(reflector.counts().unsynchronised > 0);
}

/// Without the kernel's stamps it is unknown how long a packet waited for user space. What needs the missing one has no
/// delay; the rest has.
#[test]
fn a_stamp_that_is_missing_enters_no_delay_and_is_counted() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let run = |sending: StampMode, reflecting: StampMode| {
        let asked = ReflectorPlan { stamps: reflecting, ..reflector_plan(&page) };
        let mut reflector = Reflector::open(&asked).unwrap();
        let asked = SenderPlan { stamps: sending, ..plan(&page, reflector.address().unwrap(), 20) };
        let mut sender = Sender::open(asked).unwrap();
        let rows = drive(&mut sender, &mut reflector);
        let replies: Vec<_> = rows.into_iter().filter(|row| row.fate != PacketFate::Lost).collect();
        assert!(!replies.is_empty());
        (replies, sender.unstamped(), reflector.counts().unstamped)
    };
    let (rows, unstamped, there) = run(StampMode::Kernel, StampMode::Kernel);
    assert!(rows.iter().any(|row| row.fate == PacketFate::Measured), "{unstamped:?} {there} {rows:?}");

    let (rows, unstamped, there) = run(StampMode::User, StampMode::Kernel);
    let replies = rows.len() as u64;
    assert_eq!((unstamped.sent, unstamped.received, there), (replies, replies, unstamped.reflected));
    assert!(rows.iter().all(|row| row.fate == PacketFate::Unstamped && row.round_trip.is_none()), "{rows:?}");
    assert!(rows.iter().all(|row| row.forward.is_none() && row.backward.is_none()), "{rows:?}");

    let (rows, unstamped, there) = run(StampMode::Kernel, StampMode::User);
    assert_eq!((unstamped.reflected, there), (rows.len() as u64, rows.len() as u64));
    assert!(rows.iter().all(|row| row.fate == PacketFate::Unstamped && row.held.is_none()), "{rows:?}");
}

/// Waits for a packet, while the reflector works.
fn exchange(socket: &UdpSocket, reflector: &mut Reflector, packet: &[u8]) -> Option<Vec<u8>> {
    socket.send_to(packet, reflector.address().unwrap()).unwrap();
    let mut buffer = [0; 2048];
    for _ in 0..50 {
        reflector.turn().unwrap();
        if let Ok((length, _)) = socket.recv_from(&mut buffer) {
            return Some(buffer[..length].to_vec());
        }
    }
    None
}

fn foreign_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(4))).unwrap();
    socket
}

fn request(sequence: u32) -> [u8; BASE_BYTES] {
    let mut bytes = [0; BASE_BYTES];
    let error = ErrorEstimate::from_raw(0x8001);
    TestRequest { sequence, sent: WireTime(77), error, session: 5 }.encode(&mut bytes);
    bytes
}

/// RFC 8762, section 4.3: a stateful reflector numbers by session. RFC 5357, appendix I: a packet of TWAMP-light.
#[test]
fn foreign_senders_get_replies_of_their_own_length() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let mut reflector = Reflector::open(&reflector_plan(&page)).unwrap();
    let socket = foreign_socket();
    for (number, length) in [41, 44, 200, 1400].into_iter().enumerate() {
        let mut packet = request(9).to_vec();
        packet.resize(length, 0);
        let reply = exchange(&socket, &mut reflector, &packet).unwrap();
        assert_eq!(reply.len(), length);
        let reply = TestReply::decode(&reply).unwrap();
        assert_eq!((reply.sequence, reply.request.sequence, reply.request.sent), (number as u32, 9, WireTime(77)));
        assert!(reply.error.is_synchronised() && reply.sent.0 > reply.received.0);
    }
    for length in [0, 1, 14, 40] {
        assert_eq!(exchange(&socket, &mut reflector, &request(9)[..length]), None);
    }
    assert_eq!(reflector.counts(), ReflectorCounts { reflected: 4, too_short: 4, ..ReflectorCounts::default() });
}

#[test]
fn a_flood_is_answered_at_the_rate_of_its_address() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let slow = ReflectorPlan { rate: 5, numbering: Numbering::Stateless, ..reflector_plan(&page) };
    let mut reflector = Reflector::open(&slow).unwrap();
    let socket = foreign_socket();
    for number in 0..40 {
        socket.send_to(&request(number), reflector.address().unwrap()).unwrap();
    }
    while reflector.turn().unwrap() {}
    std::thread::sleep(Duration::from_millis(20));
    reflector.turn().unwrap();
    let counts = reflector.counts();
    assert_eq!(counts.reflected + counts.limited, 40);
    assert!(counts.limited >= 30, "{counts:?}");
}

/// What the reflector does not answer looks as if lost on the way there. How many arrived distinguishes it from what a
/// network loses.
#[test]
fn a_loss_by_the_reflectors_limit_is_recognised() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let mut reflector = Reflector::open(&ReflectorPlan { rate: 50, ..reflector_plan(&page) }).unwrap();
    let mut sender = Sender::open(plan(&page, reflector.address().unwrap(), 600)).unwrap();
    let mut summary = OwdSummary::default();
    drive(&mut sender, &mut reflector).iter().for_each(|row| summary.add(row));
    let (figures, counts) = (summary.figures(), reflector.counts());
    assert!(counts.limited > 0, "{counts:?}");
    assert!(figures.is_limited_to(50), "{counts:?} {figures:?}");
    assert!(!figures.is_limited_to(25) && !figures.is_limited_to(100), "{counts:?} {figures:?}");
}

/// Replies that are not to ours, in all the ways that there are, beside one that is.
#[test]
fn replies_to_others_are_counted_and_change_nothing() {
    let place = Place::new();
    let page = place.page("page", Shift { error: Span::ZERO, bound: Span::from_micros(10) });
    let reflector = foreign_socket();
    let mut sender = Sender::open(plan(&page, reflector.local_addr().unwrap(), 1)).unwrap();
    let (mut rows, mut buffer) = (Vec::new(), [0; 2048]);
    sender.turn(&mut rows).unwrap();
    reflector.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let (length, from) = reflector.recv_from(&mut buffer).unwrap();
    let asked = TestRequest::decode(&buffer[..length]).unwrap();
    let send = |request: TestRequest, error: u16| {
        let mut packet = [0; BASE_BYTES];
        let error = ErrorEstimate::from_raw(error);
        TestReply { sequence: 0, sent: asked.sent, error, received: asked.sent, request }.encode(&mut packet);
        reflector.send_to(&packet, from).unwrap();
    };
    send(TestRequest { session: asked.session ^ 1, ..asked }, 0x8a11);
    send(TestRequest { sequence: 7, ..asked }, 0x8a11);
    send(TestRequest { sent: WireTime(1), ..asked }, 0x8a11);
    send(asked, 0x8000);
    reflector.send_to(&[1, 2, 3], from).unwrap();
    foreign_socket().send_to(&buffer[..length], from).unwrap();
    send(asked, 0x9aff);
    send(asked, 0x9aff);
    for _ in 0..100 {
        sender.turn(&mut rows).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let strays = sender.strays();
    assert_eq!((rows.len(), strays.other_sessions, strays.not_awaited, strays.altered), (1, 1, 1, 1), "{strays:?}");
    assert_eq!((strays.foreign, strays.duplicates), (3, 1), "{strays:?}");
    assert_eq!(rows[0].fate, PacketFate::Measured);
}
