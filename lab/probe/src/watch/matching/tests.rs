use super::super::capture::tests::packet;
use super::*;
use crate::tap::AnyCopy;
use ffclock_units::{Moment, Span};

const ETHERNET: u32 = 2;
const LOOPBACK: u32 = 1;
const PORT: u16 = 123;
/// A tick is a nanosecond.
const SCALE: TickScale = TickScale { ticks_per_us: 1e3 };

fn copy(passed: Direction, device: u32, id: u16, ports: [u16; 2]) -> Copy {
    let bytes = packet(id, ports, &[id as u8; 48]);
    let (bytes, swap) = if passed == Direction::Incoming { (swapped(bytes), true) } else { (bytes, false) };
    assert!(!swap || bytes[12..16] == [10, 0, 0, 2]);
    let stamped = Moment::from_origin(Span::ZERO);
    Copy::of(&AnyCopy { passed, device, stamped, bytes: &bytes }).expect("it is a packet")
}

/// The same packet from the other end.
fn swapped(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[12..20].rotate_left(4);
    bytes
}

fn event(ticks: u64, what: What, buffer: u64) -> KernelEvent {
    KernelEvent { counter: Counter::from_raw(ticks), what, buffer, device: ETHERNET, thread: 77 }
}

fn run(copies: &[(i64, Copy)], events: &[KernelEvent], role: Role) -> MatchedPackets {
    let timed = TimedEvents::of(events, Counter::from_raw(0));
    let whose = Whose { port: PORT, role, loopback: LOOPBACK };
    Matching::new(SCALE, &timed).run(copies, &whose, WatchCounts::default())
}

fn at(found: &MatchedPackets, packet: usize, site: Site) -> Option<i64> {
    found.passages.at(packet, site).map(|ticks| ticks.raw())
}

const RECEIVES: What = What::Receives { with_stamps: true, error_queue: false };

/// A request that goes out at `begin` and its reply.
fn exchange(begin: u64, buffer: u64) -> Vec<KernelEvent> {
    vec![
        event(begin, What::Sends, 0),
        event(begin + 4_000, What::Queued, buffer),
        event(begin + 6_000, What::Started(76), buffer),
        event(begin + 7_000, What::Done, buffer),
        event(begin + 100_000, What::Came(Site::DriverIn, 76), buffer + 1),
        event(begin + 101_000, What::Came(Site::StackIn, 76), buffer + 1),
        event(begin + 110_000, RECEIVES, 0),
        event(begin + 120_000, What::Received(48), 0),
    ]
}

#[test]
fn an_exchange_of_a_client_is_one_row_with_all_its_stamps() {
    let mut events: Vec<KernelEvent> = exchange(1_000_000, 0xa0).into_iter().chain(exchange(9_000_000, 0xa0)).collect();
    // Buffers of one CPU come after those of another.
    events.reverse();
    let copies = [
        (1_005_000, copy(Direction::Outgoing, ETHERNET, 1, [4000, PORT])),
        (1_100_500, copy(Direction::Incoming, ETHERNET, 2, [PORT, 4000])),
        (9_005_000, copy(Direction::Outgoing, ETHERNET, 3, [4000, PORT])),
        (9_100_500, copy(Direction::Incoming, ETHERNET, 4, [PORT, 4000])),
    ];
    let found = run(&copies, &events, Role::Client);
    let counts = &found.counts;
    assert_eq!((counts.outgoing, counts.incoming, counts.asked, counts.answered, counts.single), (2, 2, 2, 0, 0));
    assert_eq!((counts.ambiguous, counts.without_events, counts.without_calls), (0, 0, 0));
    assert_eq!(found.passages.len(), 2);
    for (row, begin) in [(0, 1_000_000), (1, 9_000_000)] {
        for (site, after) in [
            (Site::UserSend, 0),
            (Site::QueueOut, 4_000),
            (Site::TapOut, 5_000),
            (Site::DriverOut, 6_000),
            (Site::DoneOut, 7_000),
            (Site::DriverIn, 100_000),
            (Site::TapIn, 100_500),
            (Site::StackIn, 101_000),
            (Site::UserReceive, 120_000),
        ] {
            assert_eq!(at(&found, row, site), Some(begin + after), "{row} {site:?}");
        }
    }
}

#[test]
fn requests_of_others_and_our_replies_are_rows_of_their_own() {
    let copies = [
        (100_500, copy(Direction::Incoming, ETHERNET, 2, [4000, PORT])),
        (405_000, copy(Direction::Outgoing, ETHERNET, 1, [PORT, 4000])),
        (905_000, copy(Direction::Outgoing, ETHERNET, 9, [PORT, 5000])),
    ];
    let found = run(&copies, &[], Role::Server);
    assert_eq!((found.counts.answered, found.counts.asked, found.counts.single), (1, 0, 1));
    assert_eq!(found.turnarounds, [304_500]);
    assert_eq!((found.passages.len(), found.counts.without_events), (3, 3));
}

#[test]
fn a_request_that_was_not_seen_does_not_shift_the_pairs_after_it() {
    let request = |at, id| (at, copy(Direction::Incoming, ETHERNET, id, [4000, PORT]));
    let reply = |at, id| (at, copy(Direction::Outgoing, ETHERNET, id, [PORT, 4000]));
    let copies = [reply(100, 1), request(900, 2), reply(1_000, 3), request(1_900, 4), reply(2_000, 5)];
    let found = run(&copies, &[], Role::Server);
    assert_eq!((found.counts.answered, found.counts.asked, found.counts.single), (2, 0, 1));
    assert_eq!(found.turnarounds, [100, 100]);
    // Both ends have the port, as ntpd has it: the one that speaks first asks.
    let both = [
        (100, copy(Direction::Outgoing, ETHERNET, 1, [PORT, PORT])),
        (900, copy(Direction::Incoming, ETHERNET, 2, [PORT, PORT])),
    ];
    let found = run(&both, &[], Role::Server);
    assert_eq!((found.counts.asked, found.counts.answered, found.counts.single), (1, 0, 0));
}

#[test]
fn an_event_that_could_be_anothers_is_left_out_and_counted() {
    let copies = [(1_005_000, copy(Direction::Outgoing, ETHERNET, 1, [4000, PORT]))];
    let near = [event(1_006_000, What::Started(76), 1), event(1_006_500, What::Started(76), 2)];
    let found = run(&copies, &near, Role::Client);
    assert_eq!((found.counts.ambiguous, at(&found, 0, Site::DriverOut)), (1, None));
    let far = [event(1_005_500, What::Started(76), 1), event(1_205_000, What::Started(76), 2)];
    let found = run(&copies, &far, Role::Client);
    assert_eq!((found.counts.ambiguous, at(&found, 0, Site::DriverOut)), (0, Some(1_005_500)));
    // Of another length, of another device, or long gone: not ours.
    let other = [event(1_006_000, What::Started(80), 1), event(900_000, What::Started(76), 2)];
    let found = run(&copies, &other, Role::Client);
    assert_eq!((found.counts.without_events, at(&found, 0, Site::DriverOut)), (1, None));
}

#[test]
fn on_loopback_the_packets_of_the_peer_are_not_ours() {
    let request = copy(Direction::Outgoing, LOOPBACK, 1, [4000, PORT]);
    let came = Copy { passed: Direction::Incoming, ..request.clone() };
    let copies = [(1_000, request), (1_200, came)];
    let server = run(&copies, &[], Role::Server);
    assert_eq!((server.counts.outgoing, server.counts.incoming), (0, 1));
    let client = run(&copies, &[], Role::Client);
    assert_eq!((client.counts.outgoing, client.counts.incoming), (1, 0));
}

#[test]
fn a_packet_that_passes_two_devices_counts_once_nearest_to_the_wire() {
    let copies = [
        (1_000, copy(Direction::Outgoing, 5, 1, [4000, PORT])),
        (3_000, copy(Direction::Outgoing, ETHERNET, 1, [4000, PORT])),
        (90_000, copy(Direction::Incoming, ETHERNET, 2, [PORT, 4000])),
        (92_000, copy(Direction::Incoming, 5, 2, [PORT, 4000])),
    ];
    let found = run(&copies, &[], Role::Client);
    assert_eq!((found.counts.seen_again, found.passages.len(), found.counts.asked), (2, 1, 1));
    assert_eq!((at(&found, 0, Site::TapOut), at(&found, 0, Site::TapIn)), (Some(3_000), Some(90_000)));
}

#[test]
fn what_is_read_from_the_error_queue_did_not_come() {
    let copies = [(100_500, copy(Direction::Incoming, ETHERNET, 2, [4000, PORT]))];
    let errors = What::Receives { with_stamps: true, error_queue: true };
    let events = [
        event(101_000, What::Came(Site::StackIn, 76), 7),
        event(102_000, errors, 0),
        event(103_000, What::Received(48), 0),
        event(104_000, RECEIVES, 0),
        event(105_000, What::ReceivedMany(2), 0),
    ];
    let found = run(&copies, &events, Role::Server);
    assert_eq!(at(&found, 0, Site::UserReceive), Some(105_000));
}

#[test]
fn the_thread_that_queues_a_packet_is_its_sender() {
    let copies = [(1_005_000, copy(Direction::Outgoing, ETHERNET, 1, [4000, PORT]))];
    let timed = TimedEvents::of(&exchange(1_000_000, 0xa0), Counter::from_raw(0));
    let whose = Whose { port: PORT, role: Role::Client, loopback: LOOPBACK };
    assert_eq!(Matching::new(SCALE, &timed).sender(&copies, &whose), Some(77));
    assert_eq!(Matching::new(SCALE, &timed).sender(&[], &whose), None);
}
