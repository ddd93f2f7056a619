//! Clocks of exchanges that are made up, with the time that is known.

use super::*;
use ffclock_units::Rate;
use ffclock_wire::{NtpTimestamp, Packet, Version};

const EVERY: u64 = 250_000_000;

fn truth() -> KnownTime {
    KnownTime {
        origin: Counter::from_raw(1 << 40),
        time: Moment::from_origin(Span::from_secs(1_800_000_000)),
        period: Period::from_hertz(1e9).unwrap().stretched(Rate::from_ppm(-37.0)),
        wander: Rate::from_ppm(0.0),
        swing: Span::from_secs(60),
    }
}

fn at(number: u64, ticks: u64) -> Counter {
    truth().origin + Ticks::from_raw((number * EVERY + ticks) as i64)
}

/// The server is 45 us away from the driver, which is 5 us away from user space on the way out and 10 us on the way
/// in.
fn exchanged(number: u64) -> Exchanged {
    let stamp = |ticks| Stamp { counter: at(number, ticks), width: Ticks::from_raw(64), location: StampLocation::User };
    let shown = |ticks| {
        let utc = LeapTable::built_in().utc_from_tai(truth().at(at(number, ticks)));
        NtpTimestamp::from_server(Moment::from_origin(utc.since_origin()))
    };
    let reading = |ticks| {
        let base = at(number, ticks).raw();
        BracketedReading { base, width: 30, value: base.into() }
    };
    let reply = Packet {
        stratum: 1,
        receive: shown(50_000),
        transmit: shown(50_000),
        ..Packet::request(Version::V4, NtpTimestamp::MISSING)
    };
    Exchanged {
        reply,
        user: [stamp(0), stamp(105_000)],
        socket: Some([stamp(5_000), stamp(95_000)]),
        driver: Vec::new(),
        shown: [vec![at(number, 0).raw()], vec![at(number, 105_000).raw()]],
        around: [vec![reading(0)], vec![reading(105_000)]],
    }
}

#[test]
fn a_clock_is_judged_by_the_known_time_after_the_warm_up() {
    let ways = crate::ways::cpu_ways(1e9).into_iter().take(1).collect::<Vec<CounterWay>>();
    let mut tracks =
        Tracks::new(&ways, &[], truth(), Period::from_hertz(1e9).unwrap()).unwrap().after(Span::from_secs(30));
    let reading = |number| {
        let base = at(number, 100_000_000).raw();
        BracketedReading { base, width: 30, value: base.into() }
    };
    assert!(tracks.check(0, 0.0, &[reading(0)]).is_none(), "there is no clock yet");
    for number in 0..240 {
        tracks.feed(0, number as f64 / 4.0, &exchanged(number));
        let errors = tracks.check(0, number as f64 / 4.0, &[reading(number)]);
        let clocks = errors.map(|errors| errors.error_s.iter().flatten().count());
        assert!(number < 40 || clocks == Some(4), "{number}: {clocks:?}");
    }
    let figures = tracks.figures();
    let names: Vec<[&str; 2]> = figures.iter().map(|clock| [&*clock.stamps, &*clock.estimator]).collect();
    assert_eq!(names, [["user", "learned"], ["user", "classic"], ["socket", "learned"], ["socket", "classic"]]);
    for pair in [[&figures[0], &figures[2]], [&figures[1], &figures[3]]] {
        judged_by_the_known_time(pair);
    }
}

fn judged_by_the_known_time([user, socket]: [&ClockFigures; 2]) {
    assert_eq!((user.count, user.outside, socket.count, socket.outside), (120, 0, 120, 0));
    // Half of the 5 us by which the two ways of the user space differ.
    assert!((user.median_s.abs() - 2.5e-6).abs() < 0.3e-6, "{user:?}");
    assert!(socket.median_s.abs() < 0.3e-6, "{socket:?}");
    assert!(user.iqr_s < 1e-6 && user.p1_s <= user.p25_s && user.p75_s <= user.p99_s, "{user:?}");
}

#[test]
fn stamps_are_compared_with_those_nearest_to_the_wire() {
    let ways = crate::ways::cpu_ways(1e9).into_iter().take(1).collect::<Vec<CounterWay>>();
    let period = Period::from_hertz(1e9).unwrap();
    let mut tracks = Tracks::new(&ways, &[], truth(), period).unwrap();
    (0..3).for_each(|number| drop(tracks.feed(1, 0.0, &exchanged(number))));
    let figures = tracks.stamp_figures();
    let found: Vec<_> =
        figures.iter().map(|one| (one.stamps.as_str(), one.direction.as_str(), one.ns.median.round())).collect();
    assert_eq!(found, [("user", "out", 5_000.0), ("user", "in", 10_000.0)]);
    assert!(figures.iter().all(|one| one.reference == "socket" && one.phase == 1 && one.count == 3));
    let mut tracks = Tracks::new(&ways, &[DriverSource::Trace], truth(), period).unwrap();
    let socket = exchanged(0).socket;
    tracks.feed(0, 0.0, &Exchanged { driver: vec![socket], ..exchanged(0) });
    assert!(tracks.stamp_figures().iter().all(|one| one.reference == "trace"), "{:?}", tracks.stamp_figures());
    assert_eq!(tracks.stamp_figures().len(), 4, "user and socket, each way");
}

#[test]
fn no_clock_is_made_of_an_absurd_frequency() {
    let ways = crate::ways::cpu_ways(f64::NAN);
    let refused = Tracks::new(&ways, &[], truth(), Period::from_hertz(1e9).unwrap()).err().expect("it is refused");
    assert!(refused.to_string().contains("cannot carry a clock"), "{refused}");
}

#[test]
fn a_stamp_is_carried_over_to_another_counter() {
    let base = u64::MAX - 500;
    let point = |after: u64, value| BracketedReading { base: base.wrapping_add(after), width: 30, value };
    let around = [point(0, 1_000_000), point(3000, 1_001_000)];
    let stamp = |after: u64| Stamp {
        counter: Counter::from_raw(base.wrapping_add(after)),
        width: Ticks::from_raw(60),
        location: StampLocation::Kernel,
    };
    let carried = carried_over(&stamp(1500), &around);
    assert_eq!(carried.counter.raw(), 1_000_500);
    assert_eq!((carried.width, carried.location), (Ticks::from_raw(32), StampLocation::Kernel));
    assert_eq!(carried_over(&stamp(3000), &around).counter.raw(), 1_001_000);
    let stalled = [point(0, 5), point(0, 5)];
    assert_eq!(carried_over(&stamp(9), &stalled).counter.raw(), 5);
}
