//! Limits within the filter that are reached from outside only by chance.

use super::{Filter, Input, Now, Revisions};
use crate::bank::group::{Evident, RATE, THETA};
use crate::bank::lanes::{LANES, Lanes};
use crate::bank::revision::{Change, Revision};
use crate::guard::{Decision, Entry, Examined, Guard};
use crate::{ClassicConfig, Estimator, Event, Events, Learned, LearnedConfig};
use alloc::vec::Vec;
use ffclock_units::{
    Counter, Direction, Exchange, Moment, Period, Rate, RateMemory, ServerQuality, Span, Stamp, StampLocation, Ticks,
};

/// The exchange with this number: every 16 s by a steady counter of 1 GHz, each way 140 us and a little queueing.
pub fn exchange(number: u64) -> Exchange {
    let begin = number * 16_000_000_000;
    let queueing = [number * 7 % 11, number * 5 % 13];
    let stamp = |ns: u64| Stamp {
        counter: Counter::from_raw(begin + ns),
        width: Ticks::from_raw(40),
        location: StampLocation::Unknown,
    };
    let server = Moment::from_origin(Span::from_nanos(i128::from(begin + 140_000 + queueing[0] * 1_000)));
    Exchange {
        sent: stamp(0),
        server_in: server,
        server_out: server + Span::from_micros(20),
        received: stamp(300_000 + (queueing[0] + queueing[1]) * 1_000),
        server: ServerQuality::default(),
    }
}

/// Lets an exchange pass the guard.
fn admit(guard: &mut Guard, exchange: &Exchange) {
    let mut events = Events::NONE;
    let decision = match guard.examine(exchange, &mut events) {
        Examined::Decided(decision) => decision,
        Examined::Consistent(passage) => guard.confirm(exchange, passage, &mut events),
        Examined::Contradicts(point) => guard.contradict(exchange, &point, &mut events),
    };
    let Decision::Use(passage) = decision else { panic!("{decision:?}") };
    guard.admit(exchange, &passage, None);
}

fn input<'a>(guard: &'a Guard, exchange: &'a Exchange) -> Input<'a> {
    Input { server: 0, exchange, evident: Evident::All, guard, entry: Entry::Agreeing, fallback_rate: 0.0 }
}

/// A filter behind a guard after a while, and what it knows of now.
struct Settled {
    guard: Guard,
    filter: Filter,
    now: Now,
    next: Exchange,
}

fn settled() -> Settled {
    settled_before(exchange)
}

/// The same with another last exchange.
fn settled_before(next: impl Fn(u64) -> Exchange) -> Settled {
    let (config, nominal) = (ClassicConfig::default(), Period::from_hertz(1e9).unwrap());
    let mut guard = Guard::new(&config, nominal, None);
    let mut filter = Filter::new(LearnedConfig::default(), &config, nominal, 1);
    for number in 0..400 {
        let exchange = exchange(number);
        admit(&mut guard, &exchange);
        filter.measure(&input(&guard, &exchange));
    }
    let next = next(400);
    admit(&mut guard, &next);
    Settled { now: filter.now.unwrap(), guard, filter, next }
}

#[test]
fn the_filter_restarts_when_nothing_explains_32_exchanges() {
    for (astray, restarts) in [(31, false), (32, true)] {
        let Settled { guard, mut filter, mut now, next } = settled();
        now.astray = astray;
        let mut events = Events::NONE;
        filter.conclude(&input(&guard, &next), now, &mut events);
        assert_eq!(events.contains(Event::FilterRestarted), restarts);
    }
}

/// The filter then takes the given rate with a standard uncertainty of 3 ppm.
#[test]
fn a_filter_that_restarts_knows_the_rate_to_3_ppm() {
    let Settled { guard, mut filter, mut now, next } = settled();
    let mut events = Events::NONE;
    now.astray = 32;
    filter.conclude(&input(&guard, &next), now, &mut events);
    // A member with a cycle knows the sum of both rates only.
    filter
        .bank
        .for_groups(|group| (0..LANES).for_each(|lane| assert!((group.p[RATE][RATE].of(lane) - 9.0).abs() < 2e-3)));
    let now = filter.now.unwrap();
    let grown = now.blend.deviation_later * now.blend.deviation_later - now.blend.variance;
    let ppm = libm::sqrt(grown) / now.later;
    assert!((ppm - 3.0).abs() < 0.2, "{ppm}");
}

#[test]
fn the_filter_restarts_when_its_time_is_disproved_16_times() {
    for (outside, restarts) in [(14, false), (15, true)] {
        let Settled { guard, mut filter, mut now, next } = settled();
        filter.bank.for_groups(|group| group.x[THETA] += Lanes::all(1e6));
        now.outside = outside;
        let mut events = Events::NONE;
        filter.conclude(&input(&guard, &next), now, &mut events);
        assert!(events.contains(Event::OutsideProof));
        assert_eq!(events.contains(Event::FilterRestarted), restarts);
    }
}

/// An exchange that alone allows the filter's time shows that the proof has run away from it.
#[test]
fn a_filter_that_explains_its_exchanges_doubts_the_proof() {
    let slow = |number| {
        let usual = exchange(number);
        let received = Stamp { counter: usual.received.counter + Ticks::from_raw(500_000), ..usual.received };
        Exchange { received, ..usual }
    };
    for (outside, astray, doubts) in [(14, 0, false), (15, 0, true), (15, 1, false)] {
        let Settled { guard, mut filter, mut now, next } = settled_before(slow);
        filter.bank.for_groups(|group| group.x[THETA] += Lanes::all(-300.0));
        (now.outside, now.astray) = (outside, astray);
        let mut events = Events::NONE;
        filter.conclude(&input(&guard, &next), now, &mut events);
        assert!(events.contains(Event::OutsideProof));
        assert_eq!(events.contains(Event::FilterRestarted), outside == 15 && !doubts);
        assert_eq!(filter.now.unwrap().doubts_proof, doubts);
    }
}

/// A lone packet shows a rare floor, and both ways change: the smoother needs to know of all of them.
#[test]
fn every_revision_that_one_exchange_makes_is_noted() {
    let Settled { mut filter, .. } = settled();
    filter.revisions = Revisions::default();
    let change = |way| Change { server: 0, way, since: 4, shift: 0.0, variance: 1.0 };
    filter.revise(0, &Revision::RareFloor(change(Direction::Outgoing)));
    for way in Direction::BOTH {
        filter.revise(0, &Revision::Floor(change(way)));
    }
    let noted: Vec<Option<Direction>> = filter.revisions.list.iter().flatten().map(floor_moved).collect();
    assert_eq!(noted, [None, Some(Direction::Outgoing), Some(Direction::Incoming)]);
}

/// The way whose floor moved by a revision.
fn floor_moved(revision: &Revision) -> Option<Direction> {
    match revision {
        Revision::Floor(change) => Some(change.way),
        _ => None,
    }
}

/// An exchange on a cable: each way 500 ns and some nanoseconds of queueing, and replies that leave by up to twelve
/// times `early_ns` later than the server says.
fn on_a_cable(number: u64, location: StampLocation, early_ns: u64) -> Exchange {
    let (begin, queueing) = (number * 1_000_000_000, [number * 7 % 11, number * 5 % 13 * (1 + early_ns)]);
    let stamp = |ns: u64| Stamp { counter: Counter::from_raw(begin + ns), width: Ticks::from_raw(16), location };
    let server = Moment::from_origin(Span::from_nanos(i128::from(begin + 500 + queueing[0])));
    let mut quality = ServerQuality::default();
    quality.identity.stratum = 1;
    Exchange {
        sent: stamp(0),
        server_in: server,
        server_out: server + Span::from_micros(20),
        received: stamp(21_000 + queueing[0] + queueing[1]),
        server: quality,
    }
}

/// The median of the requests' queueing that is learned on a cable, us.
fn median_on_a_cable(location: StampLocation, servers: usize, early_ns: u64) -> f64 {
    let (config, nominal) = (ClassicConfig::default(), Period::from_hertz(1e9).unwrap());
    let mut guard = Guard::new(&config, nominal, None);
    let mut filter = Filter::new(LearnedConfig::default(), &config, nominal, 1);
    for number in 0..200 {
        let exchange = on_a_cable(number, location, early_ns);
        admit(&mut guard, &exchange);
        filter.measure(&input(&guard, &exchange));
    }
    let mut origins = alloc::vec![None; servers];
    origins[0] = Some(0);
    filter.renumber(&origins);
    filter.densities(0)[0][0].median
}

#[test]
fn densities_are_fine_on_a_short_path_of_a_clock_of_one_server() {
    let [card, kernel] = [StampLocation::Hardware, StampLocation::Kernel];
    assert!(median_on_a_cable(card, 1, 0) < 0.05);
    assert!(median_on_a_cable(card, 2, 0) > 0.2);
    // Those of a card are as fine as the cable is short, whatever delays replies; those of a kernel never are.
    assert!(median_on_a_cable(card, 1, 2000) < 0.01);
    let of_kernel = median_on_a_cable(kernel, 1, 0);
    assert!((0.01..0.1).contains(&of_kernel), "{of_kernel}");
    assert!(median_on_a_cable(kernel, 1, 2000) < 0.1, "a server that says when it hands over, and not when it sends");
    assert!(median_on_a_cable(kernel, 2, 0) > 0.2);
}

/// An exchange of two hosts whose processors have to wake for each packet, 2.2 us and as much as the ways scatter by in
/// some steps, but for the packet of this way that is `early`; all ns.
fn between_sleepers(number: u64, scatter: [u64; 2], early: [u64; 2]) -> Exchange {
    let begin = number * 1_000_000_000;
    let wakes = [2_200 + scatter[0] * (number * 7 % 11), 2_200 + scatter[1] * (number * 5 % 13)];
    let [there, back] = [wakes[0] - early[0], wakes[1] - early[1]];
    let location = StampLocation::Kernel;
    let stamp = |ns: u64| Stamp { counter: Counter::from_raw(begin + ns), width: Ticks::from_raw(160), location };
    let mut quality = ServerQuality::default();
    quality.identity.stratum = 1;
    let moment = |ns: u64| Moment::from_origin(Span::from_nanos(i128::from(begin + ns)));
    Exchange {
        sent: stamp(0),
        server_in: moment(there),
        server_out: moment(there + 20_000),
        received: stamp(there + 20_000 + back),
        server: quality,
    }
}

/// The largest error, us, of a clock between such hosts, after it has settled, where one packet of this way is early.
fn largest_error_by_one(way: Direction, scatter: [u64; 2], early_ns: u64) -> f64 {
    let nominal = Period::from_hertz(1e9).unwrap();
    let kept = RateMemory { period: nominal, bound: Rate::from_ppm(0.1), wander: None };
    let mut clock = Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, Some(kept));
    let off_us = |number: u64| {
        let early = Direction::BOTH.map(|one| if number == 60 && one == way { early_ns } else { 0 });
        let exchange = between_sleepers(number, scatter, early);
        clock.update(&exchange);
        let counter = exchange.received.counter;
        let truth = Moment::from_origin(Span::from_nanos(i128::from(counter.raw())));
        (clock.estimate().unwrap().at(counter).time - truth).as_seconds() * 1e6
    };
    (0..100).map(off_us).skip(30).fold(0.0, |largest, off| off.abs().max(largest))
}

#[test]
fn one_packet_that_waited_for_no_processor_does_not_move_the_clock() {
    for way in Direction::BOTH {
        for early_ns in [700, 1_500] {
            let error = largest_error_by_one(way, [30, 30], early_ns);
            assert!(error < 0.05, "{way:?}, {early_ns} ns: {error}");
        }
        // So near, it may be the first of its queue, and shows a floor.
        let error = largest_error_by_one(way, [30, 30], 400);
        assert!((0.09..0.2).contains(&error), "{way:?}: {error}");
    }
}

/// Where the ways scatter differently, they do not wait for the same: one packet before a queue shows the floor of its
/// way, and moves the clock by half of what it was early.
#[test]
fn one_packet_before_the_queue_of_its_way_shows_the_floor() {
    for early_ns in [700, 1_500, 2_100] {
        let error = largest_error_by_one(Direction::Outgoing, [30, 90], early_ns);
        let moved = error / (early_ns as f64 * 0.5e-3);
        assert!((0.9..1.3).contains(&moved), "{early_ns} ns: {error}");
    }
}
