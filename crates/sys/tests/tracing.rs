//! Packets stamped by the kernel's tracing with the raw counter itself, over the loopback interface.
//!
//! Where the kernel does not trace for us (no rights, no tracefs, no raw trace clock) the tests print why and end.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic, helpers of tests too")]

use ffclock_counter::{CounterKind, nominal, read_ordered};
use ffclock_sys::{
    Direction, Interest, Mapper, PacketTracer, SocketEvent, StampMode, StampedSocket, TraceInstance, TraceUnavailable,
    mono_now, poll,
};
use ffclock_units::{Counter, Span, Stamp, Ticks};
use std::os::fd::AsFd;

const PAYLOAD: &[u8; 61] = &[7; 61];

fn period_of(kind: CounterKind) -> ffclock_units::Period {
    nominal(kind).unwrap().period
}

/// The result, or `None` with the reason printed where this host cannot trace.
fn permitted<T>(result: Result<T, TraceUnavailable>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(
            error @ (TraceUnavailable::NoTracefs(_) | TraceUnavailable::NoInstance(_) | TraceUnavailable::NoClock(_)),
        ) => {
            println!("SKIP: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn next(socket: &mut StampedSocket, mapper: &mut Mapper) -> SocketEvent {
    let deadline = mono_now() + Span::from_secs(2);
    loop {
        if let Some(event) = socket.next_event(&mut [0; 128], mapper).unwrap() {
            return event;
        }
        assert!(mono_now() < deadline, "no event within two seconds");
        poll(&mut [Interest::readable(socket.as_fd())], Some(deadline)).unwrap();
    }
}

/// What is known of one packet that was sent over loopback.
struct Passage {
    before: Counter,
    after: Counter,
    sent: Option<Stamp>,
    received: Option<Stamp>,
    software: [Stamp; 2],
}

/// One packet; `None` as long as the kernel does not stamp it.
fn send(
    pair: &mut [StampedSocket; 2],
    mapper: &mut Mapper,
    tracer: &mut PacketTracer,
    kind: CounterKind,
) -> Option<Passage> {
    let [client, server] = pair;
    let before = read_ordered(kind);
    client.send(PAYLOAD, mapper).unwrap();
    let SocketEvent::Transmitted(transmitted) = next(client, mapper) else { panic!("no transmit stamp") };
    let SocketEvent::Received(received) = next(server, mapper) else { panic!("no packet") };
    let after = read_ordered(kind);
    let software = [transmitted.stamp.ok()?, received.kernel.ok()?];
    let length = PAYLOAD.len() as u32;
    let sent = tracer.stamp(Direction::Outgoing, length, software[0]).unwrap();
    let received = tracer.stamp(Direction::Incoming, length, software[1]).unwrap();
    Some(Passage { before, after, sent, received, software })
}

fn passages(kind: CounterKind, count: usize) -> Vec<Passage> {
    let period = period_of(kind);
    let reach = period.ticks_in(Span::from_micros(100));
    let Some(mut tracer) = permitted(PacketTracer::create(kind, &[PAYLOAD.len() as u32], reach)) else {
        return Vec::new();
    };
    let mut mapper = Mapper::system(kind, period);
    let server = StampedSocket::bind("127.0.0.1:0".parse().unwrap(), StampMode::Kernel).unwrap();
    let client = StampedSocket::connect(server.local_address().unwrap(), StampMode::Kernel).unwrap();
    let mut pair = [client, server];
    let mut passages = Vec::new();
    for _ in 0..count + 200 {
        match send(&mut pair, &mut mapper, &mut tracer, kind) {
            Some(passage) => passages.push(passage),
            // The kernel begins to stamp some time after it was asked to.
            None => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
        if passages.len() == count {
            return passages;
        }
    }
    panic!("the kernel stamped {} of {} packets", passages.len(), count + 200);
}

#[test]
fn every_packet_is_stamped_inside_the_brackets_of_user_space() {
    for kind in [CounterKind::Tsc, CounterKind::MonotonicRaw] {
        for (number, passage) in passages(kind, 200).iter().enumerate() {
            let (sent, received) = (passage.sent.unwrap().counter, passage.received.unwrap().counter);
            let order = [passage.before, sent, received, passage.after];
            assert!(order.is_sorted_by(|a, b| !a.is_after(*b)), "packet {number} by {kind}: {order:?}");
        }
    }
}

#[test]
fn the_two_kernel_stamps_of_a_packet_lie_together() {
    let kind = CounterKind::Tsc;
    let period = period_of(kind);
    let passages = passages(kind, 300);
    if passages.is_empty() {
        return;
    }
    let median = |which: usize, traced: fn(&Passage) -> Stamp| {
        let distance = |passage: &Passage| passage.software[which].counter - traced(passage).counter;
        let mut distances: Vec<Ticks> = passages.iter().map(distance).collect();
        distances.sort();
        (period * distances[distances.len() / 2]).as_seconds() * 1e9
    };
    let (out, back) = (median(0, |passage| passage.sent.unwrap()), median(1, |passage| passage.received.unwrap()));
    println!("software stamp after the event, median: {out} ns out, {back} ns in");
    assert!((0.0..20_000.0).contains(&out), "the event comes right before the stamp: {out} ns");
    assert!((-20_000.0..200.0).contains(&back), "the event comes right after the stamp: {back} ns");
}

#[test]
fn an_instance_is_removed_with_its_owner() {
    let Some(mut instance) = permitted(TraceInstance::create(CounterKind::MonotonicRaw, 8)) else { return };
    let format = instance.enable("sched/sched_switch", "").unwrap();
    assert!(format.field("prev_comm").is_some());
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut events = 0;
    instance.drain(|event| events += u32::from(event.id() == Some(format.id()))).unwrap();
    assert!(events > 0, "sleeping is a switch of threads");
    let path = instance.path().to_owned();
    assert!(path.is_dir());
    drop(instance);
    assert!(!path.exists());
}

#[test]
fn what_the_kernel_does_not_know_is_named() {
    let Some(mut instance) = permitted(TraceInstance::create(CounterKind::MonotonicRaw, 8)) else { return };
    let error = instance.enable("net/no_such_event", "").unwrap_err();
    assert!(error.to_string().contains("net/no_such_event"), "{error}");
    let error = instance.enable("net/net_dev_xmit", "nonsense ==").unwrap_err();
    assert!(matches!(error, TraceUnavailable::Setting { .. }), "{error}");
}
