//! Figures of packets that are made up: what they say, and what is not believed.

use super::*;
use ffclock_units::{Moment, ServerQuality, Span, Tai, Ticks};

const US: i64 = 1_000;
const SECOND: i64 = 1_000_000_000;

fn ghz() -> Period {
    Period::from_hertz(1e9).unwrap()
}

/// Delays that vary, none of them below `least`, the same on every machine.
fn varied(number: i64, least: i64) -> i64 {
    least + number * 7_919 % 4_001
}

/// One exchange each second, the server 1 ms away: `least` [ns] lie between user space and the driver, and more.
fn exchange(number: i64, least: EachWay<i64>) -> JoinedExchange {
    let begin = Counter::from_raw(1 << 40);
    let (out, back) = (varied(number, least.out), varied(number + 1, least.back));
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
    JoinedExchange { exchange, crossed: Some(Crossed { out: at(crossed.0), back: at(crossed.1), is_certain: true }) }
}

fn exchanges(least: EachWay<i64>) -> Vec<JoinedExchange> {
    (0..200).map(|number| exchange(number, least)).collect()
}

fn judged(joined: &[JoinedExchange]) -> HostDelays {
    let look = BoundaryLook { device: String::new(), is_calibrated: false, events_lost: 0, rows_unreadable: 0 };
    HostDelays::of(joined, ghz(), look)
}

#[test]
fn a_one_sided_delay_is_found_and_little_is_left() {
    let own = judged(&exchanges(EachWay { out: 40 * US, back: 5 * US }));
    let bias_ns = own.bias_ns.unwrap();
    assert!((8_000.0..22_000.0).contains(&bias_ns), "ahead by some half of what is unequal: {bias_ns}");
    let calibrated = own.entry().unwrap();
    assert!(calibrated.entry.is_plausible());
    assert_eq!((calibrated.entry.out_ns, calibrated.entry.location), (40_000.0, Taken::User));
    assert!((calibrated.entry.unequal_ns.unwrap() - 35_000.0).abs() < 4_000.0, "{calibrated:?}");
    assert!(calibrated.left_ns.abs() < 1_000.0, "{calibrated:?}");
    assert_eq!(own.left_ns(&calibrated.entry).unwrap(), calibrated.left_ns, "the figure is that of the entry");
    let written = serde_json::to_value(&calibrated).unwrap();
    for key in ["out_ns", "unequal_ns", "left_out", "events_lost", "rows_unreadable", "bias_ns", "left_ns"] {
        assert!(!written[key].is_null(), "{key}: {written}");
    }
    assert_eq!((calibrated.left_out, calibrated.events_lost), (0, 0));
}

#[test]
fn what_is_left_is_the_least_of_all_approximations() {
    let own = judged(&exchanges(EachWay { out: 40 * US, back: 5 * US }));
    let calibrated = own.entry().unwrap();
    let edges_ns = own.edges_ns().unwrap();
    let first = Entry { unequal_ns: Some(edges_ns.out - edges_ns.back), ..calibrated.entry.clone() };
    assert!(calibrated.left_ns.abs() <= own.left_ns(&first).unwrap().abs());
}

/// The clock's packets need a second move of more than a millisecond, which none is.
#[test]
fn a_calibration_that_leaves_much_is_not_written() {
    let own = judged(&exchanges(EachWay { out: 40 * US, back: 5 * US }));
    let late = judged(&exchanges(EachWay { out: 3_000 * US, back: 5 * US }));
    let torn = HostDelays { twice: late.twice, ..own };
    let refused = torn.entry().unwrap_err().to_string();
    assert!(refused.contains("would still be") && refused.contains("nothing is written"), "{refused}");
    let hopeless = HostDelays { twice: Vec::new(), ..torn };
    assert!(hopeless.entry().is_err(), "no clock, no calibration");
}

#[test]
fn the_smallest_delay_is_that_of_all_exchanges_and_the_clock_follows_the_certain_ones() {
    let mut joined = exchanges(EachWay { out: 40 * US, back: 5 * US });
    // The fastest, right after another one.
    let fast = exchange(200, EachWay { out: 12 * US, back: 2 * US });
    let crossed = fast.crossed.map(|crossed| Crossed { is_certain: false, ..crossed });
    joined.push(JoinedExchange { crossed, ..fast });
    let own = judged(&joined);
    let EachWay { out, .. } = own.least_ns.unwrap();
    assert!((12_000.0..16_100.0).contains(&out.ns), "{out:?}");
    assert_eq!((own.exchanges(), own.counts.exchanges), (200, 1));
    // One alone was so fast: the next may be faster still, as the fourth smallest says.
    assert!(out.interval_ns.1 >= 40_000.0);
    assert!(own.uncertainty_ns().unwrap() >= out.width_ns(), "{:?}", own.uncertainty_ns());
}

#[test]
fn the_commonest_location_counts_and_the_others_are_left_out() {
    let mut joined = exchanges(EachWay { out: 40 * US, back: 5 * US });
    for JoinedExchange { exchange: first, .. } in &mut joined[..5] {
        first.sent.location = StampLocation::Kernel;
        first.received.location = StampLocation::Kernel;
    }
    for JoinedExchange { exchange: mixed, .. } in &mut joined[5..12] {
        mixed.received.location = StampLocation::Kernel;
    }
    let own = judged(&joined);
    assert_eq!((own.location, own.exchanges(), own.counts.exchanges), (Taken::User, 188, 12));
    for JoinedExchange { exchange: one, .. } in &mut joined[..150] {
        one.sent.location = StampLocation::Kernel;
        one.received.location = StampLocation::Kernel;
    }
    let own = judged(&joined);
    assert_eq!((own.location, own.exchanges()), (Taken::Kernel, 150));
}

#[test]
fn evidence_of_a_bad_join_is_refused_for_a_calibration_and_shown_otherwise() {
    let recording = Path::new("one.fftrace");
    let good = judged(&exchanges(EachWay { out: 40 * US, back: 5 * US }));
    good.check(recording, Purpose::Calibration).unwrap();
    let mut joined = exchanges(EachWay { out: 40 * US, back: 5 * US });
    for one in &mut joined[..101] {
        one.crossed = None;
    }
    let most_left_out = judged(&joined);
    let refused = most_left_out.check(recording, Purpose::Calibration).unwrap_err().to_string();
    assert!(refused.contains("99 exchanges") && refused.contains("101 left out"), "{refused}");
    most_left_out.check(recording, Purpose::Check).unwrap();
    assert_eq!(most_left_out.figures().left_out, 101);
    let lossy = HostDelays { counts: LeftOut { events: 3, ..good.counts }, ..good };
    let refused = lossy.check(recording, Purpose::Calibration).unwrap_err().to_string();
    assert!(refused.contains("3 events lost") && refused.contains("nothing is written"), "{refused}");
    lossy.check(recording, Purpose::Check).unwrap();
    assert_eq!(lossy.figures().events_lost, 3);
    let few = judged(&exchanges(EachWay { out: 40 * US, back: 5 * US })[..39]);
    let refused = few.check(recording, Purpose::Check).unwrap_err().to_string();
    assert!(refused.contains("40 are needed"), "{refused}");
}
