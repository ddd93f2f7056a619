//! Stamps move towards the wire by the certain part of the delay, and the uncertain part widens them.

use super::*;
use ffclock_units::{Counter, Stamp};

fn subject(kernel: &str) -> Subject {
    Subject { host: "h".into(), kernel: kernel.into(), device: "eth0".into(), driver: "igb".into() }
}

fn entry(kernel: &str, load: &str, delays: (f64, f64)) -> Entry {
    Entry {
        subject: subject(kernel),
        location: Taken::User,
        load: load.into(),
        out_ns: delays.0,
        in_ns: delays.1,
        unequal_ns: None,
        uncertainty_ns: 100.0,
        packets: 1000,
        measured_at: 1_790_000_000,
    }
}

fn ghz() -> Period {
    Period::from_hertz(1e9).unwrap()
}

fn stamp() -> Stamp {
    Stamp { counter: Counter::from_raw(1_000_000), width: Ticks::from_raw(20), location: StampLocation::User }
}

/// How much shorter every round trip becomes.
fn together(shift: StampShift) -> Span {
    ghz() * (shift.sent.by + shift.received.by)
}

#[test]
fn stamps_move_towards_the_wire_by_what_is_certain() {
    let mut calibration = Calibration::default();
    calibration.replace(entry("6.1", "quiet", (20_000.0, 5_000.0)));
    calibration.replace(entry("6.1", "cpu", (3_000.0, 6_000.0)));
    let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_003_000), "the smaller delay under load counts");
    assert_eq!(shift.received(stamp()).counter, Counter::from_raw(995_000));
    assert!((together(shift).as_seconds() - 8e-6).abs() < 1e-12);
    // The difference between the loads is in doubt, and so are 100 ns, to either side.
    assert_eq!(shift.sent(stamp()).width, Ticks::from_raw(20 + 2 * 17_100 + 2));
    assert_eq!(shift.received(stamp()).width, Ticks::from_raw(20 + 2 * 1_100 + 2));
}

#[test]
fn a_delay_that_is_not_certain_moves_nothing() {
    let mut calibration = Calibration::default();
    calibration.replace(entry("6.1", "quiet", (-400.0, 60.0)));
    let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert_eq!((shift.sent(stamp()), shift.received(stamp())), (stamp(), stamp()));
}

#[test]
fn the_clock_decides_what_is_unequal_and_the_minima_what_is_certain() {
    let mut calibration = Calibration::default();
    // One packet in a thousand found every cache hot.
    calibration.replace(Entry { unequal_ns: Some(35_000.0), ..entry("6.1", "quiet", (4_000.0, 8_000.0)) });
    let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert!((together(shift).as_seconds() - 12e-6).abs() < 1e-12, "no more than is certain");
    let (sent, received) = (shift.sent(stamp()), shift.received(stamp()));
    assert_eq!(sent.counter, Counter::from_raw(1_023_500));
    assert_eq!(received.counter, Counter::from_raw(1_011_500));
    // The sent stamp moved too far by 19.5 us at most, plus a sixteenth of the delay and 100 ns; the received one moved
    // away from the wire.
    assert_eq!(sent.width, Ticks::from_raw(20 + 2 * (19_500 + 250 + 100) + 2));
    assert_eq!(received.width, Ticks::from_raw(20 + 2 * (500 + 100) + 2));
    calibration.replace(Entry { unequal_ns: Some(31_000.0), ..entry("6.1", "cpu", (4_000.0, 8_000.0)) });
    let busy = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert_eq!(busy.sent(stamp()).counter, sent.counter, "the quiet host counts");
    assert_eq!(busy.sent(stamp()).width, sent.width + Ticks::from_raw(2 * 2_000), "and the load is in doubt");
}

#[test]
fn a_file_of_before_goes_by_the_minima() {
    let text = r#"{"entries":[{"subject":{"host":"h","kernel":"6.1","device":"eth0","driver":"igb"},"location":"user",
        "load":"quiet","out_ns":1000.0,"in_ns":1000.0,"uncertainty_ns":1.0,"packets":10,"measured_at":1}]}"#;
    let calibration: Calibration = serde_json::from_str(text).unwrap();
    let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_001_000));
}

#[test]
fn another_kernel_makes_it_stale() {
    let mut calibration = Calibration::default();
    calibration.replace(entry("6.1", "quiet", (1_000.0, 1_000.0)));
    let error = calibration.shift(&subject("6.2"), Taken::User, ghz()).unwrap_err().to_string();
    assert!(error.contains("Linux 6.1") && error.contains("Linux 6.2") && error.contains("calibrate"), "{error}");
    assert!(
        error.contains("restart ffclockd, which begins a new recording"),
        "its stamps are moved until then: {error}"
    );
    let error = calibration.shift(&subject("6.1"), Taken::Kernel, ghz()).unwrap_err().to_string();
    assert!(error.contains("kernel stamps"), "{error}");
}

#[test]
fn a_newer_measurement_replaces_an_older_one() {
    let mut calibration = Calibration::default();
    calibration.replace(entry("6.1", "quiet", (1_000.0, 1_000.0)));
    calibration.replace(entry("6.1", "quiet", (5_000.0, 5_000.0)));
    calibration.replace(entry("6.2", "quiet", (1_000.0, 1_000.0)));
    assert_eq!(calibration.entries.len(), 2);
    let shift = calibration.shift(&subject("6.1"), Taken::User, ghz()).unwrap();
    assert_eq!(shift.sent(stamp()).counter, Counter::from_raw(1_005_000));
}

#[test]
fn a_file_is_read_back_and_damage_is_named() {
    let directory = std::env::temp_dir().join(format!("ffclock-calibration-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("calibration.json");
    assert!(matches!(Calibration::read(&path), Err(CalibrationError::Unreadable(_))));
    let mut calibration = Calibration::default();
    calibration.replace(entry("6.1", "quiet", (1.0, 2.0)));
    calibration.write(&path).unwrap();
    assert_eq!(Calibration::read(&path).unwrap(), calibration);
    fs::write(&path, "{\"entries\": 3}").unwrap();
    assert!(matches!(Calibration::read(&path), Err(CalibrationError::Damaged(_))));
    fs::remove_dir_all(directory).unwrap();
}

/// A stream of numbers from 0 to 1 that is the same on every machine (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of either sign and any size up to the longest.
    fn delay_ns(&mut self) -> f64 {
        let size = LONGEST_DELAY_NS * 10.0_f64.powf(-6.0 * self.next());
        if self.next() < 0.2 { -size } else { size }
    }
}

/// The bound rests on this: the range of a moved stamp begins no later than the request passed the driver, and ends no
/// earlier than the reply did, for every delay that the measurement leaves possible.
#[test]
fn a_moved_stamp_never_leaves_the_passage_behind() {
    let mut numbers = Numbers(1);
    for round in 0..20_000 {
        let mut calibration = Calibration::default();
        let (mut least_out, mut least_in) = (f64::INFINITY, f64::INFINITY);
        for load in [QUIET, "cpu", "io"].into_iter().take(1 + round % 3) {
            let entry = Entry {
                unequal_ns: (round % 5 > 0).then(|| numbers.delay_ns()),
                uncertainty_ns: numbers.delay_ns().abs(),
                ..entry("6.1", load, (numbers.delay_ns(), numbers.delay_ns()))
            };
            assert!(entry.is_plausible());
            least_out = least_out.min(entry.out_ns - entry.uncertainty_ns);
            least_in = least_in.min(entry.in_ns - entry.uncertainty_ns);
            calibration.replace(entry);
        }
        let period = Period::from_hertz(1e9 + 3e9 * numbers.next()).unwrap();
        let shift = calibration.shift(&subject("6.1"), Taken::User, period).unwrap();
        let ticks = |ns: f64| Ticks::from_raw((ns * 1e-9 / period.as_seconds()).ceil() as i64);
        let point = Stamp { counter: Counter::from_raw(1 << 40), width: Ticks::ZERO, location: StampLocation::User };
        // The worst case, and some other one. A stamp that lies behind the boundary does not make the packet leave
        // before it was made.
        for more in [0.0, LONGEST_DELAY_NS * numbers.next()] {
            let passage_out = point.counter + ticks(least_out.max(0.0) + more);
            let passage_in = point.counter - ticks(least_in.max(0.0) + more);
            let (sent, received) = (shift.sent(point), shift.received(point));
            assert!((sent.counter - passage_out).raw() <= sent.width.raw() / 2 + 1, "{round}: {calibration:?}");
            assert!((received.counter - passage_in).raw() >= -received.width.raw() / 2 - 1, "{round}: {calibration:?}");
        }
    }
}

#[test]
fn impossible_figures_are_refused_and_neither_cut_nor_written() {
    let good = entry("6.1", "quiet", (1_000.0, 1_000.0));
    let bad = [
        Entry { out_ns: 1e300, ..good.clone() },
        Entry { in_ns: f64::NAN, ..good.clone() },
        Entry { in_ns: -2e6, ..good.clone() },
        Entry { unequal_ns: Some(f64::INFINITY), ..good.clone() },
        Entry { unequal_ns: Some(-1.1e6), ..good.clone() },
        Entry { uncertainty_ns: -1.0, ..good.clone() },
        Entry { uncertainty_ns: 1.1e6, ..good.clone() },
        Entry { uncertainty_ns: f64::NAN, ..good.clone() },
        Entry { packets: 0, ..good.clone() },
    ];
    let directory = std::env::temp_dir().join(format!("ffclock-impossible-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let path = directory.join("calibration.json");
    let kept = Calibration { entries: vec![good.clone()] };
    kept.write(&path).unwrap();
    for entry in bad {
        assert!(!entry.is_plausible(), "{entry:?}");
        let calibration = Calibration { entries: vec![good.clone(), entry.clone()] };
        let refused = calibration.write(&path).unwrap_err().to_string();
        assert!(refused.contains("a figure is impossible"), "{refused}");
        assert_eq!(Calibration::read(&path).unwrap(), kept, "the file stays as it was");
        assert!(matches!(calibration.shift(&subject("6.1"), Taken::User, ghz()), Err(CalibrationError::Damaged(_))));
        // NaN is not valid JSON either.
        let figures = [entry.out_ns, entry.in_ns, entry.unequal_ns.unwrap_or(0.0), entry.uncertainty_ns];
        if figures.iter().all(|ns| ns.is_finite()) {
            fs::write(directory.join("bad.json"), serde_json::to_vec(&calibration).unwrap()).unwrap();
            let refused = Calibration::read(&directory.join("bad.json")).unwrap_err().to_string();
            assert!(refused.contains("a figure is impossible"), "{refused}");
        }
    }
    fs::remove_dir_all(directory).unwrap();
}
