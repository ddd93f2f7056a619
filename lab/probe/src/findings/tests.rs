use super::*;
use ffclock_units::Counter;

/// The product of ticks and a period is rounded.
fn assert_near(ns: f64, expected: f64) {
    assert!((ns - expected).abs() < 1e-6, "{ns} is not {expected}");
}

/// A counter of 1 GHz: a tick is 1 ns.
fn findings(packets: &[[(Site, u64); 6]]) -> Findings {
    let mut passages = PacketPassages::new(Counter::from_raw(0));
    for (sequence, stamps) in packets.iter().enumerate() {
        let begin = 1_000_000 * sequence as u64;
        passages.send(Counter::from_raw(begin + stamps[0].1));
        for (site, ticks) in &stamps[1..] {
            passages.note(sequence as u64, *site, Counter::from_raw(begin + ticks));
        }
    }
    Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
}

const fn packet(user: u64, socket: u64) -> [(Site, u64); 6] {
    [
        (Site::UserSend, 10_000 - user),
        (Site::DriverOut, 10_000),
        (Site::SocketOut, socket),
        (Site::DriverIn, 60_000),
        (Site::SocketIn, 60_400),
        (Site::UserReceive, 60_000 + 2 * user),
    ]
}

#[test]
fn delays_and_asymmetries_have_the_signs_of_the_paper() {
    let findings = findings(&[packet(3_000, 9_800), packet(4_000, 9_700), packet(5_000, 9_900)]);
    assert_eq!(findings.reference, (Site::DriverOut, Site::DriverIn));
    let delay = |site| findings.delays.iter().find(|delay| delay.site == site).expect("it was stamped").delay_ns;
    assert_near(delay(Site::UserSend).min, 3_000.0);
    assert_near(delay(Site::UserSend).median, 4_000.0);
    assert_near(delay(Site::UserReceive).min, 6_000.0);
    assert_near(delay(Site::SocketOut).max, 300.0);
    let user =
        findings.asymmetries.iter().find(|one| one.location == TimestampingLocation::User).expect("it was stamped");
    assert_near(user.asymmetry_ns, -3_000.0);
    assert_near(user.limit_ns, 9_000.0);
    assert_near(user.interval_ns.0, -7_000.0);
    assert_near(user.interval_ns.1, -1_000.0);
    assert_eq!(user.verdict, Plausibility::Possible);
    let trip =
        findings.round_trips.iter().find(|trip| trip.location == TimestampingLocation::User).expect("it was stamped");
    assert_near(trip.whole_ns.min, 59_000.0);
    assert_near(trip.partial_ns.expect("not the reference itself").min, 9_000.0);
}

#[test]
fn a_stamp_taken_after_the_packet_is_back_breaks_causality() {
    let findings = findings(&[packet(3_000, 9_800), packet(3_000, 356_000)]);
    let broken: Vec<_> = findings.causality.iter().filter(|order| order.violations > 0).collect();
    assert_eq!(broken.len(), 2, "{broken:?}");
    assert_eq!((broken[0].first, broken[0].second), (Site::SocketOut, Site::DriverIn));
    assert_eq!((broken[0].count, broken[0].violations), (2, 1));
    assert_near(broken[0].worst_ns, -296_000.0);
    assert_eq!(broken[0].examples.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [1]);
    let socket =
        findings.asymmetries.iter().find(|one| one.location == TimestampingLocation::Socket).expect("it was stamped");
    assert_eq!(socket.verdict, Plausibility::CausalityFault);
}

#[test]
fn a_stamp_nearer_to_the_wire_than_the_driver_breaks_nothing() {
    let findings = findings(&[packet(3_000, 10_300), packet(3_000, 10_350)]);
    let socket =
        findings.asymmetries.iter().find(|one| one.location == TimestampingLocation::Socket).expect("it was stamped");
    assert_near(socket.out_ns, -300.0);
    assert_eq!(socket.verdict, Plausibility::BeyondReference);
}

#[test]
fn without_tracing_the_sockets_stamps_stand_for_the_wire() {
    let mut passages = PacketPassages::new(Counter::from_raw(0));
    passages.send(Counter::from_raw(1_000));
    for (site, ticks) in [(Site::SocketOut, 3_000), (Site::SocketIn, 60_000), (Site::UserReceive, 65_000)] {
        passages.note(0, site, Counter::from_raw(ticks));
    }
    let findings = Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"));
    assert_eq!(findings.reference, (Site::SocketOut, Site::SocketIn));
    assert_eq!(findings.asymmetries.len(), 1);
    assert_near(findings.asymmetries[0].asymmetry_ns, 2_000.0 - 5_000.0);
}

#[test]
fn a_run_without_packets_says_nothing() {
    let findings =
        Findings::of(&PacketPassages::new(Counter::from_raw(0)), Period::from_hertz(1e9).expect("a frequency"));
    assert!(findings.delays.is_empty() && findings.asymmetries.is_empty() && findings.causality.is_empty());
}

/// Numbers that look random (a linear congruential generator of Knuth's), between 0 and 1.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The closed form against the bootstrap itself: of 4000 resamples of the delays of both directions, with repetition,
/// at least 95 % have an asymmetry inside the interval.
#[test]
fn the_interval_holds_what_resampling_gives() {
    let mut draws = Draws(7);
    let mut packets = Vec::new();
    for _ in 0..300 {
        let (out, back) = (3_000.0 - 4_000.0 * draws.next().ln(), 2_000.0 - 1_000.0 * draws.next().ln());
        packets.push((out as u64, back as u64));
    }
    let rows: Vec<[(Site, u64); 6]> = packets
        .iter()
        .map(|(out, back)| {
            let sites = [Site::UserSend, Site::DriverOut, Site::SocketOut, Site::DriverIn, Site::SocketIn];
            let ticks = [100_000 - out, 100_000, 100_100, 500_000, 500_100];
            let mut row = [(Site::UserReceive, 500_000 + back); 6];
            for (place, stamp) in row.iter_mut().zip(sites.into_iter().zip(ticks)) {
                *place = stamp;
            }
            row
        })
        .collect();
    let found = findings(&rows);
    let user = found.asymmetries.iter().find(|one| one.location == TimestampingLocation::User).expect("it was stamped");
    let mut pick = |of: fn(&(u64, u64)) -> u64| {
        let drawn = (0..packets.len()).map(|_| of(&packets[(draws.next() * packets.len() as f64) as usize]));
        drawn.min().expect("there are packets") as f64
    };
    let resamples = 4_000;
    let inside = (0..resamples)
        .filter(|_| {
            let asymmetry = pick(|packet| packet.0) - pick(|packet| packet.1);
            (user.interval_ns.0 - 1e-3..=user.interval_ns.1 + 1e-3).contains(&asymmetry)
        })
        .count();
    let share = inside as f64 / f64::from(resamples);
    assert!((0.95..0.99).contains(&share), "{share}");
}

/// The wire lies 300 ns behind the reference on the way out and 500 ns before it on the way in; in one packet of three
/// 200 ns more.
#[test]
fn the_wire_shows_the_network_the_device_and_the_reference() {
    let packet = |number: u64| {
        let more = if number == 2 { 200 } else { 0 };
        [
            (Site::UserSend, 8_000),
            (Site::DriverOut, 10_000),
            (Site::WireOut, 10_300 + more),
            (Site::WireIn, 59_500 + more),
            (Site::DriverIn, 60_000 + 2 * more),
            (Site::UserReceive, 70_000),
        ]
    };
    let found = findings(&[packet(0), packet(1), packet(2)]);
    let wire = found.wire.expect("it was stamped");
    assert_near(wire.network_ns.max, 49_200.0);
    assert_near(wire.device_ns.min, 800.0);
    assert_near(wire.device_ns.max, 1_200.0);
    assert_near(wire.asymmetry_ns, -200.0);
    assert!(wire.is_ordered);
    // What the network and the device take is the round trip of the reference, packet by packet.
    let driver = found.round_trips.iter().find(|trip| trip.location == TimestampingLocation::Driver).expect("stamped");
    assert_near(driver.whole_ns.max, wire.network_ns.max + wire.device_ns.max);
    let mut late = packet(0);
    late[3].1 = 62_000;
    assert!(!findings(&[late]).wire.expect("it was stamped").is_ordered);
    assert_eq!(findings(&[self::packet(3_000, 9_800)]).wire, None);
}

#[test]
fn every_site_out_is_paired_with_every_site_in() {
    let found = findings(&[packet(3_000, 9_800), packet(4_000, 9_700)]);
    let pair = |out, back| *found.mixed.iter().find(|pair| (pair.out, pair.back) == (out, back)).expect("both stamped");
    assert_eq!(found.mixed.len(), 3 * 3);
    assert_near(pair(Site::UserSend, Site::SocketIn).asymmetry_ns, 3_000.0 - 400.0);
    assert_near(pair(Site::UserSend, Site::SocketIn).limit_ns, 3_000.0 + 400.0);
    assert_near(pair(Site::DriverOut, Site::UserReceive).asymmetry_ns, -6_000.0);
    assert_near(pair(Site::DriverOut, Site::DriverIn).asymmetry_ns, 0.0);
    let user = found.asymmetries.iter().find(|one| one.location == TimestampingLocation::User).expect("stamped");
    assert_eq!(pair(Site::UserSend, Site::UserReceive).interval_ns, user.interval_ns);
    let broken = findings(&[packet(3_000, 356_000)]);
    assert!(broken.mixed.iter().all(|pair| pair.is_ordered
        == (pair.out != Site::SocketOut && pair.back != Site::SocketIn && pair.back != Site::DriverIn)));
}
