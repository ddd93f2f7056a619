use super::*;
use crate::findings::Findings;
use crate::passages::PacketPassages;
use ffclock_units::Period;

/// Packets whose user stamps vary by `user` ns and socket stamps by `socket` ns; a socket that breaks causality
/// stamps late.
fn findings(user: i64, socket: i64, is_late: bool) -> Findings {
    let mut passages = PacketPassages::default();
    for number in 0..1200 {
        let share = (number * 37) % 101;
        let late = if is_late && number == 7 { 100_000 } else { 0 };
        passages
            .restore([
                (Site::UserSend, 10_000 - 3_000 - user * share / 100),
                (Site::SocketOut, 10_000 - 500 - socket * share / 100 + late),
                (Site::DriverOut, 10_000),
                (Site::DriverIn, 60_000),
                (Site::SocketIn, 60_400 + socket * share / 100),
                (Site::UserReceive, 64_000 + user * share / 100),
            ])
            .unwrap();
    }
    Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
}

#[test]
fn the_steadiest_location_is_advised_with_its_asymmetry() {
    let (quiet, busy) = (findings(20_000, 1_000, false), findings(90_000, 4_000, false));
    let digest = Digest::of([(None, &quiet), (Some(Load::Cpu), &busy)]);
    let advice = advise(&digest, &[]);
    assert_eq!(advice.location, Some(TimestampingLocation::Socket));
    let text = advice.reasons.join("\n");
    assert!(text.contains("Stamp at the socket") && text.contains("user space 178"), "{text}");
    assert!(text.contains("asymmetry is 0.10 us (95 %") && text.contains("wrong by 0.05 us"), "{text}");
    assert!(text.contains("Stress widens its delays from 1.98 us when quiet: cpu to 7.92 us"), "{text}");
    assert!(text.contains("stamps = \"trace\"") && !text.contains("packets only"), "{text}");
}

/// The socket's transmit stamp lies behind the boundary. One packet of 3000 was stamped late, because the driver
/// was interrupted before it.
#[test]
fn one_late_stamp_behind_the_boundary_does_not_decide() {
    let mut passages = PacketPassages::default();
    for number in 0..3000 {
        let share = number * 37 % 101;
        let late = if number == 1234 { 37_000 } else { 0 };
        passages
            .restore([
                (Site::UserSend, 100_000 - 20_000 - 200 * share),
                (Site::TapOut, 100_000 - 900 - 40 * share),
                (Site::DriverOut, 100_000),
                (Site::SocketOut, 100_000 + 1_000 + 2 * share + late),
                (Site::DriverIn, 300_000),
                (Site::TapIn, 300_000 + 300 + 4 * share),
                (Site::SocketIn, 300_000 + 200 + 4 * share),
                (Site::UserReceive, 320_000 + 100 * share),
            ])
            .unwrap();
    }
    let quiet = Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"));
    let advice = advise(&Digest::of([(None, &quiet)]), &[]);
    assert_eq!(advice.location, Some(TimestampingLocation::Socket), "{advice:#?}");
    let socket = advice.candidates[0].asymmetry.expect("it is not the reference");
    assert_eq!((socket.out_ns.round(), socket.in_ns.round()), (-1_000.0, 200.0), "{socket:?}");
    assert!(socket.interval_ns.0 > -1_300.0 && socket.interval_ns.1 < -1_100.0, "{socket:?}");
}

/// Hosts whose load changes every ten seconds or so, and every half second, while runs of three seconds follow each
/// other: most runs are steady, and differ. 95 % of them state an interval in which the median of ten runs lies, and
/// in which the next run lies. The intervals of a steady host do not hold.
#[test]
fn the_stated_interval_holds_for_another_run() {
    // A random number from its place, between 0 and 1 (SplitMix64).
    let random = |place: u64| {
        let mut bits = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    };
    let advised = |host: u64, number: u64| {
        let mut passages = PacketPassages::default();
        for packet in number * 3000..(number + 1) * 3000 {
            let [slow, quick] = [10_000, 500].map(|length| random((host << 40) | (length << 24) | (packet / length)));
            let stretched = (0.7 * slow + 0.2 * quick).exp();
            let delay = |place: u64| {
                300.0 + stretched * (300.0 - 150.0 * (1.0 - random(!((host << 40) | (packet << 1) | place))).ln())
            };
            passages
                .restore([
                    (Site::DriverOut, 100_000),
                    (Site::SocketOut, 100_000 + delay(0) as i64),
                    (Site::DriverIn, 300_000),
                    (Site::SocketIn, 300_000 + (delay(1) / 4.0) as i64),
                ])
                .unwrap();
        }
        let quiet = Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"));
        advise(&Digest::of([(None, &quiet)]), &[]).candidates.swap_remove(0)
    };
    let (mut stated, mut steady, mut next) = (0, 0, 0);
    for host in 0..10 {
        let runs: Vec<LocationCandidate> = (0..11).map(|number| advised(host, number)).collect();
        let mut reaches: Vec<f64> = runs[..10].iter().map(|run| run.reach_ns).collect();
        reaches.sort_by(f64::total_cmp);
        let median = f64::midpoint(reaches[4], reaches[5]);
        let holds = |(low, high): (f64, f64), ns: f64| (low..=high).contains(&ns);
        stated += runs[..10].iter().filter(|run| holds(run.worst_interval_ns, median)).count();
        steady += runs[..10].iter().filter(|run| holds(run.steady_interval_ns, median)).count();
        next += runs.windows(2).filter(|pair| holds(pair[0].worst_interval_ns, pair[1].reach_ns)).count();
    }
    println!(
        "of 100 runs the median lies in {stated} stated intervals and {steady} steady ones, the next run in {next}"
    );
    assert!(stated >= 95 && next >= 95 && steady < 90, "{stated}, {next} and {steady}");
}

/// Other load moves all locations together, so that it does not make them a tie.
#[test]
fn a_location_that_reaches_five_times_as_far_is_distinguished() {
    let quiet = findings(20_000, 4_000, false);
    let advice = advise(&Digest::of([(None, &quiet)]), &[]);
    assert_eq!((advice.location, advice.tie.len()), (Some(TimestampingLocation::Socket), 0), "{advice:?}");
    let best = &advice.candidates[0];
    let (low, high) = best.worst_interval_ns;
    assert!(low <= best.reach_ns / 2.0 && high >= best.reach_ns * 2.0, "{best:?}");
    assert!(best.steady_interval_ns.0 > low && best.steady_interval_ns.1 < high, "{best:?}");
}

/// Whichever of the two happens to reach less far, the simpler one is advised.
#[test]
fn of_what_cannot_be_distinguished_the_simplest_is_advised() {
    for socket in [19_900, 20_100] {
        let quiet = findings(20_000, socket, false);
        let advice = advise(&Digest::of([(None, &quiet)]), &[]);
        assert_eq!(advice.location, Some(TimestampingLocation::Socket));
        assert_eq!(advice.tie, [TimestampingLocation::Socket, TimestampingLocation::User]);
        assert!(
            advice.reasons[0].contains("cannot be distinguished") && advice.reasons[0].contains("95 %"),
            "{advice:?}"
        );
    }
    let clear = findings(20_000, 1_000, false);
    assert_eq!(advise(&Digest::of([(None, &clear)]), &[]).tie, []);
}

#[test]
fn a_location_that_breaks_causality_is_never_advised() {
    let quiet = findings(20_000, 1_000, true);
    let advice = advise(&Digest::of([(None, &quiet)]), &[]);
    assert_eq!(advice.location, Some(TimestampingLocation::User));
    assert!(advice.reasons.iter().any(|reason| reason.contains("Do not pair stamps of the socket")), "{advice:?}");
    assert!(advice.reasons.iter().any(|reason| reason.contains("--stress")), "{advice:?}");
}

#[test]
fn without_tracing_the_advice_says_what_is_unknown() {
    let mut passages = PacketPassages::default();
    for number in 0..10 {
        passages
            .restore([
                (Site::UserSend, 0),
                (Site::SocketOut, 3_000 + 1_000 * number),
                (Site::SocketIn, 60_000),
                (Site::UserReceive, 65_000),
            ])
            .unwrap();
    }
    let quiet = Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"));
    let advice = advise(&Digest::of([(None, &quiet)]), &["kernel tracing: no right".to_owned()]);
    assert_eq!(advice.location, Some(TimestampingLocation::Socket));
    let text = advice.reasons.join("\n");
    assert!(text.contains("not seen (kernel tracing: no right)") && text.contains("10 packets only"), "{text}");
}
