//! Packets over the loopback interface: stamps, errors and their order.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

use ffclock_counter::{CounterId, nominal};
use ffclock_sys::{
    Interest, Received, SendId, Sent, SocketEvent, StampDiscarded, StampMode, StampedSocket, Stamper, Transmitted,
    mono_now, poll,
};
use ffclock_units::{Span, Stamp, StampLocation, Ticks};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

const V4: &str = "127.0.0.1:0";
const V6: &str = "[::1]:0";

fn stamper(kind: CounterId) -> Stamper {
    Stamper::new(kind, nominal(kind).unwrap().period)
}

/// A client connected to a server on `address`, or `None` where this host does not have that address.
fn connected(address: &str, mode: StampMode) -> Option<(StampedSocket, StampedSocket)> {
    let server = match StampedSocket::bind(address.parse().unwrap(), mode) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            println!("SKIP: this host does not have the address {address}");
            return None;
        }
        result => result.unwrap(),
    };
    let client = StampedSocket::connect(server.local_address().unwrap(), mode).unwrap();
    Some((client, server))
}

/// The next event, waited for up to two seconds.
fn wait(socket: &mut StampedSocket, buffer: &mut [u8], stamper: &mut Stamper) -> Option<SocketEvent> {
    let deadline = mono_now() + Span::from_secs(2);
    while mono_now() < deadline {
        if let Some(event) = socket.next_event(buffer, stamper).unwrap() {
            return Some(event);
        }
        poll(&mut [Interest::readable(socket.as_fd())], Some(deadline)).unwrap();
    }
    None
}

fn wait_received(socket: &mut StampedSocket, buffer: &mut [u8], stamper: &mut Stamper) -> Received {
    loop {
        match wait(socket, buffer, stamper).expect("a packet within two seconds") {
            SocketEvent::Received(received) => return received,
            SocketEvent::Transmitted(_) => {}
            SocketEvent::Unreachable(error) => panic!("{error:?}"),
        }
    }
}

fn wait_transmitted(socket: &mut StampedSocket, stamper: &mut Stamper) -> Transmitted {
    match wait(socket, &mut [0; 64], stamper) {
        Some(SocketEvent::Transmitted(transmitted)) => transmitted,
        other => panic!("expected a transmit stamp: {other:?}"),
    }
}

/// The kernel begins to stamp some time after it was asked to: sends packets until both stamps come.
fn warm_up(client: &mut StampedSocket, server: &mut StampedSocket, stamper: &mut Stamper) {
    for _ in 0..200 {
        client.send(b"warm", stamper).unwrap();
        let received = wait_received(server, &mut [0; 64], stamper);
        let sent = wait_transmitted(client, stamper);
        if received.kernel.is_ok() && sent.stamp.is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("the kernel never began to stamp");
}

/// `a` can lie before `b` as far as their widths allow.
fn assert_ordered(a: Stamp, b: Stamp, what: &str) {
    let slack = a.width.halved() + b.width.halved() + Ticks::from_raw(2);
    assert!(b.counter - a.counter >= -slack, "{what}: {a:?} then {b:?}");
}

/// One packet, as (handed over, sent, received, taken over).
fn exchange(client: &mut StampedSocket, server: &mut StampedSocket, stamper: &mut Stamper) -> [Stamp; 4] {
    let mut buffer = [0; 64];
    let sent = client.send(b"stamped packet", stamper).unwrap();
    let transmitted = wait_transmitted(client, stamper);
    let received = wait_received(server, &mut buffer, stamper);
    assert_eq!(transmitted.id, sent.id);
    assert_eq!(&buffer[..received.length], b"stamped packet");
    assert_eq!(received.from.port(), client.local_address().unwrap().port());
    [sent.user, transmitted.stamp.unwrap(), received.kernel.unwrap(), received.user]
}

fn thousand_packets(address: &str, kind: CounterId) {
    let mut stamper = stamper(kind);
    let Some((mut client, mut server)) = connected(address, StampMode::Kernel) else { return };
    assert_eq!((client.mode(), server.mode()), (StampMode::Kernel, StampMode::Kernel));
    warm_up(&mut client, &mut server, &mut stamper);
    for _ in 0..1000 {
        let [before, left, came, after] = exchange(&mut client, &mut server, &mut stamper);
        assert_eq!((left.location, came.location), (StampLocation::Kernel, StampLocation::Kernel));
        assert_ordered(before, left, "handed over, then sent");
        assert_ordered(left, came, "sent, then received");
        assert_ordered(came, after, "received, then taken over");
    }
}

#[test]
fn a_thousand_packets_have_their_stamps_in_order() {
    thousand_packets(V4, CounterId::CPU);
}

#[test]
fn over_ipv6_too() {
    thousand_packets(V6, CounterId::CPU);
}

#[test]
fn by_the_raw_clock_too() {
    thousand_packets(V4, CounterId::MonotonicRaw);
}

#[test]
fn stamps_that_come_late_and_together_find_their_packets() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    warm_up(&mut client, &mut server, &mut stamper);
    let sent: Vec<Sent> = (0..50).map(|_| client.send(b"x", &mut stamper).unwrap()).collect();
    let reports: Vec<Transmitted> = sent.iter().map(|_| wait_transmitted(&mut client, &mut stamper)).collect();
    for (sent, report) in sent.iter().zip(&reports) {
        assert_eq!(sent.id, report.id);
        assert_ordered(sent.user, report.stamp.unwrap(), "handed over, then sent");
    }
    // The loopback interface takes a packet before the call that sends it returns.
    for (report, next) in reports.iter().zip(&sent[1..]) {
        assert_ordered(report.stamp.unwrap(), next.user, "sent, then the next one handed over");
    }
}

#[test]
fn a_full_error_queue_loses_stamps_but_mixes_none_up() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    warm_up(&mut client, &mut server, &mut stamper);
    let sent: BTreeMap<SendId, Stamp> =
        (0..3000).map(|_| client.send(b"x", &mut stamper).unwrap()).map(|sent| (sent.id, sent.user)).collect();
    let mut reports = Vec::new();
    while let Some(event) = client.next_event(&mut [0; 64], &mut stamper).unwrap() {
        let SocketEvent::Transmitted(transmitted) = event else { panic!("{event:?}") };
        reports.push(transmitted);
    }
    assert!(reports.len() < sent.len(), "the queue was not full");
    assert!(reports.is_sorted_by_key(|transmitted| transmitted.id));
    for transmitted in &reports {
        if let Ok(stamp) = transmitted.stamp {
            assert_ordered(sent[&transmitted.id], stamp, "handed over, then sent");
        }
    }
    exchange_after_flood(&mut client, &mut server, &mut stamper);
}

/// The server's queue is full of the flood; once it is empty, everything is as before.
fn exchange_after_flood(client: &mut StampedSocket, server: &mut StampedSocket, stamper: &mut Stamper) {
    while server.next_event(&mut [0; 64], stamper).unwrap().is_some() {}
    let [before, left, came, after] = exchange(client, server, stamper);
    assert_ordered(before, left, "handed over, then sent");
    assert_ordered(left, came, "sent, then received");
    assert_ordered(came, after, "received, then taken over");
}

#[test]
fn user_space_alone_stamps_around_the_truth() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::User).unwrap();
    assert_eq!(client.mode(), StampMode::User);
    let mut last = None;
    for _ in 0..100 {
        let sent = client.send(b"x", &mut stamper).unwrap();
        let received = wait_received(&mut server, &mut [0; 64], &mut stamper);
        assert_eq!(received.kernel, Err(StampDiscarded::Missing));
        assert_eq!(received.best.stamp, received.user);
        assert_eq!(sent.best.map(|best| best.stamp), Some(sent.user));
        assert_eq!((sent.user.location, received.user.location), (StampLocation::User, StampLocation::User));
        assert!(received.user.counter.is_after(sent.user.counter));
        assert!(sent.user.width > Ticks::ZERO);
        assert!(last.is_none_or(|last| last < sent.id));
        last = Some(sent.id);
    }
    assert_eq!(client.next_event(&mut [0; 64], &mut stamper).unwrap(), None);
}

#[test]
fn answers_go_back_to_where_they_belong() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    client.send(b"request", &mut stamper).unwrap();
    let request = wait_received(&mut server, &mut [0; 64], &mut stamper);
    server.send_to(b"answer", request.from, &mut stamper).unwrap();
    let mut buffer = [0; 64];
    let answer = wait_received(&mut client, &mut buffer, &mut stamper);
    assert_eq!(&buffer[..answer.length], b"answer");
    assert_eq!(Some(answer.from), client.peer());
}

/// An address without a listener.
fn deserted(address: &str) -> SocketAddr {
    let socket = std::net::UdpSocket::bind(address).unwrap();
    socket.local_addr().unwrap()
}

#[test]
fn a_missing_listener_is_an_event_and_ends_nothing() {
    for mode in [StampMode::Kernel, StampMode::User] {
        let mut stamper = stamper(CounterId::CPU);
        let peer = deserted(V4);
        let mut client = StampedSocket::connect(peer, mode).unwrap();
        let mut refusals = 0;
        for _ in 0..20 {
            client.send(b"x", &mut stamper).unwrap();
            while let Some(event) = client.next_event(&mut [0; 64], &mut stamper).unwrap() {
                if let SocketEvent::Unreachable(error) = event {
                    assert_eq!(error.kind, io::ErrorKind::ConnectionRefused);
                    assert_eq!(error.reporter.map(|reporter| reporter.ip()), Some(peer.ip()));
                    refusals += 1;
                }
            }
        }
        assert!(refusals >= 19, "{refusals} of 20 reported");
    }
}

#[test]
fn stamps_find_their_packets_after_refused_ones() {
    let mut stamper = stamper(CounterId::CPU);
    let peer = deserted(V4);
    let mut client = StampedSocket::connect(peer, StampMode::Kernel).unwrap();
    // The refusal of each packet is reported in place of sending the next one, after which the kernel's count is in
    // doubt.
    for _ in 0..5 {
        client.send(b"x", &mut stamper).unwrap();
    }
    while client.next_event(&mut [0; 64], &mut stamper).unwrap().is_some() {}
    let mut server = StampedSocket::bind(peer, StampMode::Kernel).unwrap();
    warm_up(&mut client, &mut server, &mut stamper);
    for _ in 0..20 {
        let [before, left, came, after] = exchange(&mut client, &mut server, &mut stamper);
        assert_ordered(before, left, "handed over, then sent");
        assert_ordered(left, came, "sent, then received");
        assert_ordered(came, after, "received, then taken over");
    }
}

#[test]
fn what_does_not_fit_is_reported() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    client.send(&[7; 100], &mut stamper).unwrap();
    let mut buffer = [0; 48];
    let received = wait_received(&mut server, &mut buffer, &mut stamper);
    assert!(received.is_truncated);
    assert_eq!(received.length, 48);
    client.send(&[7; 48], &mut stamper).unwrap();
    assert!(!wait_received(&mut server, &mut buffer, &mut stamper).is_truncated);
    client.send(&[], &mut stamper).unwrap();
    assert_eq!(wait_received(&mut server, &mut buffer, &mut stamper).length, 0);
}

#[test]
fn a_packet_too_large_to_send_is_an_error_and_spoils_no_stamp() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    warm_up(&mut client, &mut server, &mut stamper);
    assert!(client.send(&vec![0; 70_000], &mut stamper).is_err());
    let [before, left, came, after] = exchange(&mut client, &mut server, &mut stamper);
    assert_ordered(before, left, "handed over, then sent");
    assert_ordered(left, came, "sent, then received");
    assert_ordered(came, after, "received, then taken over");
}

#[test]
fn the_error_queue_wakes_the_loop() {
    let mut stamper = stamper(CounterId::CPU);
    let (mut client, mut server) = connected(V4, StampMode::Kernel).unwrap();
    warm_up(&mut client, &mut server, &mut stamper);
    client.send(b"x", &mut stamper).unwrap();
    let mut interests = [Interest::readable(client.as_fd())];
    assert_eq!(poll(&mut interests, Some(mono_now() + Span::from_secs(2))).unwrap(), 1);
    assert!(interests[0].has_error() && !interests[0].is_readable());
}

/// What does not fit into the buffer of a socket is counted: received and dropped together are what was sent.
#[test]
fn packets_that_do_not_fit_are_counted() {
    let mut stamper = stamper(CounterId::MonotonicRaw);
    let (mut client, mut server) = connected(V4, StampMode::User).unwrap();
    let granted = server.enlarge_receive_buffer(8 << 10).unwrap();
    assert!(granted >= 8 << 10, "{granted}");
    for _ in 0..500 {
        client.send(&[7; 40], &mut stamper).unwrap();
    }
    let mut received = 0;
    while server.next_event(&mut [0; 64], &mut stamper).unwrap().is_some() {
        received += 1;
    }
    let dropped = server.dropped().unwrap();
    assert!(received > 0 && dropped > 0);
    assert_eq!(received + dropped, 500);
}

/// Beyond the host's limit only where that is permitted; the granted size is returned in either case.
#[test]
fn a_large_buffer_is_granted_or_reported_smaller() {
    let (_, server) = connected(V4, StampMode::User).unwrap();
    let small = server.enlarge_receive_buffer(64 << 10).unwrap();
    let large = server.enlarge_receive_buffer(4 << 20).unwrap();
    assert!(large > small, "{small} {large}");
    let limit: usize = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap().trim().parse().unwrap();
    assert!(large == 8 << 20 || large == 2 * limit, "{large} {limit}");
}
