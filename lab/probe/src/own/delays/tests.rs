//! Figures of packets that are made up: what they say, and what is not believed.

use super::*;
use ffclock_units::{ServerQuality, Ticks};

const US: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;

fn ghz() -> Period {
    Period::from_hertz(1e9).unwrap()
}

/// Delays that vary, none of them below `least`, the same on every machine.
fn varied(number: i64, least: i64) -> i64 {
    least + number * 7_919 % 4_001
}

/// One exchange each second, the server 1 ms away: `least` (out, in) [ns] lie between user space and the driver, and more.
fn exchange(number: i64, least: (i64, i64)) -> (Exchange, Option<Crossed>) {
    let begin = Counter::from_raw(1 << 40);
    let (out, back) = (varied(number, least.0), varied(number + 1, least.1));
    let sent = number * SECOND;
    let server_at = sent + out + varied(3 * number + 2, 1_000 * US);
    let crossed = (sent + out, server_at + varied(5 * number + 3, 1_000 * US));
    let at = |ticks| begin + Ticks::from_raw(ticks);
    let stamp = |ticks| Stamp { counter: at(ticks), width: Ticks::ZERO, location: StampLocation::User };
    let server = |ticks| Moment::<Tai>::from_origin(Span::from_secs(1_800_000_000) + ghz() * Ticks::from_raw(ticks));
    let exchange = Exchange {
        sent: stamp(sent),
        server_in: server(server_at),
        server_out: server(server_at),
        received: stamp(crossed.1 + back),
        server: ServerQuality::default(),
    };
    (exchange, Some(Crossed { out: at(crossed.0), back: at(crossed.1), is_certain: true }))
}

fn exchanges(least: (i64, i64)) -> Vec<(Exchange, Option<Crossed>)> {
    (0..200).map(|number| exchange(number, least)).collect()
}

#[test]
fn a_one_sided_delay_is_found_and_little_is_left() {
    let own = Own::of(&exchanges((40 * US, 5 * US)), ghz());
    let bias_ns = own.bias_ns.unwrap();
    assert!((8_000.0..22_000.0).contains(&bias_ns), "ahead by some half of what is unequal: {bias_ns}");
    let calibrated = own.entry().unwrap();
    assert!(calibrated.entry.is_plausible());
    assert_eq!((calibrated.entry.out_ns, calibrated.entry.location), (40_000.0, Taken::User));
    assert!((calibrated.entry.unequal_ns.unwrap() - 35_000.0).abs() < 4_000.0, "{calibrated:?}");
    assert!(calibrated.left_ns.abs() < 1_000.0, "{calibrated:?}");
    assert_eq!(own.left_ns(&calibrated.entry).unwrap(), calibrated.left_ns, "what is told is about what is written");
    let told = serde_json::to_value(&calibrated).unwrap();
    for key in ["out_ns", "unequal_ns", "left_out", "events_lost", "rows_unreadable", "bias_ns", "left_ns"] {
        assert!(!told[key].is_null(), "{key}: {told}");
    }
    assert!(calibrated.told().contains("0 left out as uncertain, 0 events lost"), "{}", calibrated.told());
}

#[test]
fn what_is_left_is_the_least_of_all_approximations() {
    let own = Own::of(&exchanges((40 * US, 5 * US)), ghz());
    let calibrated = own.entry().unwrap();
    let edges_ns = own.edges_ns().unwrap();
    let first = Entry { unequal_ns: Some(edges_ns.0 - edges_ns.1), ..calibrated.entry.clone() };
    assert!(calibrated.left_ns.abs() <= own.left_ns(&first).unwrap().abs());
}

/// The clock's packets need a second move of more than a millisecond, which none is.
#[test]
fn a_calibration_that_leaves_much_is_not_written() {
    let own = Own::of(&exchanges((40 * US, 5 * US)), ghz());
    let late = Own::of(&exchanges((3_000 * US, 5 * US)), ghz());
    let torn = Own { twice: late.twice, ..own };
    let refused = torn.entry().unwrap_err().message;
    assert!(refused.contains("would still be") && refused.contains("nothing is written"), "{refused}");
    let hopeless = Own { twice: Vec::new(), ..torn };
    assert!(hopeless.entry().is_err(), "no clock, no calibration");
}

#[test]
fn the_smallest_delay_is_that_of_all_exchanges_and_the_clock_goes_by_the_certain_ones() {
    let mut joined = exchanges((40 * US, 5 * US));
    // The fastest, right after another one.
    let (fast, crossed) = exchange(200, (12 * US, 2 * US));
    joined.push((fast, crossed.map(|crossed| Crossed { is_certain: false, ..crossed })));
    let own = Own::of(&joined, ghz());
    let (out, _) = own.least_ns.unwrap();
    assert!((12_000.0..16_100.0).contains(&out.min), "{out:?}");
    assert_eq!((own.out_ns.len(), own.counts.exchanges), (200, 1));
    // One alone was so fast: the next may be faster still, as the fourth smallest says.
    assert!(out.high >= 40_000.0);
    assert!(own.uncertainty_ns().unwrap() >= out.high - out.min, "{:?}", own.uncertainty_ns());
}

#[test]
fn the_commonest_location_counts_and_the_others_are_left_out() {
    let mut joined = exchanges((40 * US, 5 * US));
    for (first, _) in &mut joined[..5] {
        first.sent.location = StampLocation::Kernel;
        first.received.location = StampLocation::Kernel;
    }
    for (mixed, _) in &mut joined[5..12] {
        mixed.received.location = StampLocation::Kernel;
    }
    let own = Own::of(&joined, ghz());
    assert_eq!((own.location, own.out_ns.len(), own.counts.exchanges), (Taken::User, 188, 12));
    for (one, _) in &mut joined[..150] {
        one.sent.location = StampLocation::Kernel;
        one.received.location = StampLocation::Kernel;
    }
    let own = Own::of(&joined, ghz());
    assert_eq!((own.location, own.out_ns.len()), (Taken::Kernel, 150));
}

#[test]
fn evidence_of_a_bad_join_is_refused_for_a_calibration_and_shown_otherwise() {
    let recording = recording::tests::recorded("own", &[("asymmetry", "unknown")], &[]);
    let good = Own::of(&exchanges((40 * US, 5 * US)), ghz());
    good.check(&recording, Purpose::Calibration).unwrap();
    let mut joined = exchanges((40 * US, 5 * US));
    for (_, crossed) in &mut joined[..101] {
        *crossed = None;
    }
    let most_left_out = Own::of(&joined, ghz());
    let refused = most_left_out.check(&recording, Purpose::Calibration).unwrap_err().message;
    assert!(refused.contains("99 exchanges") && refused.contains("101 left out"), "{refused}");
    most_left_out.check(&recording, Purpose::Check).unwrap();
    assert_eq!(most_left_out.told()["left_out"], 101);
    let lossy = Own { counts: LeftOut { events: 3, ..good.counts }, ..good };
    let refused = lossy.check(&recording, Purpose::Calibration).unwrap_err().message;
    assert!(refused.contains("3 events lost") && refused.contains("nothing is written"), "{refused}");
    lossy.check(&recording, Purpose::Check).unwrap();
    assert_eq!(lossy.told()["events_lost"], 3);
    assert!(lossy.table().contains("3 events lost"), "{}", lossy.table());
    let few = Own::of(&exchanges((40 * US, 5 * US))[..39], ghz());
    let refused = few.check(&recording, Purpose::Check).unwrap_err().message;
    assert!(refused.contains("40 are needed"), "{refused}");
}
