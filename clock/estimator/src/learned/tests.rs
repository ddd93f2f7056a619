//! Limits within the filter that are reached from outside only by chance.

use super::{Learned, MICRO, Now};
use crate::bank::group::{RATE, THETA};
use crate::bank::lanes::Lanes;
use crate::{ClassicConfig, Estimator, Event, Events, LearnedConfig};
use ffclock_units::{Counter, Exchange, Moment, Period, ServerQuality, Span, Stamp, StampLocation, Status, Ticks};

/// The exchange with this number: every 16 s by a steady counter of 1 GHz, each way 140 us and a little queueing.
fn exchange(number: u64) -> Exchange {
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

/// A clock after a while, and what it knows of now.
fn settled() -> (Learned, Now) {
    let nominal = Period::from_hertz(1e9).unwrap();
    let mut learned = Learned::new(LearnedConfig::default(), ClassicConfig::default(), nominal, None);
    (0..400).for_each(|number| _ = learned.update(&exchange(number)));
    let now = learned.now.unwrap();
    assert_eq!(learned.status(&now), Status::Synchronised);
    (learned, now)
}

#[test]
fn a_clock_whose_uncertainty_grows_by_more_than_1_ppm_is_warming_up() {
    let (learned, now) = settled();
    for (ppm, status) in [(0.9, Status::Synchronised), (1.1, Status::WarmingUp)] {
        let mut now = now;
        now.blend.deviation_later = libm::sqrt(now.blend.variance) + ppm * now.later;
        assert_eq!(learned.status(&now), status);
    }
}

#[test]
fn the_algorithms_disagree_beyond_three_joint_uncertainties() {
    let (learned, now) = settled();
    let other = learned.classic.estimate().unwrap();
    let apart = (Learned::time(&now) - other.time).as_seconds();
    let joint = learned.uncertainty(&now).as_seconds() + other.uncertainty.as_seconds();
    for (times, disagrees) in [(2.9, false), (3.1, true)] {
        let (mut now, mut events) = (now, Events::NONE);
        now.blend.theta += (times * joint - apart) / MICRO;
        learned.compare(&mut now, &mut events);
        assert_eq!(events.contains(Event::Disagreement), disagrees, "{times}");
    }
}

#[test]
fn the_filter_begins_anew_when_nothing_explains_32_exchanges() {
    for (astray, restarts) in [(31, false), (32, true)] {
        let (mut learned, mut now) = settled();
        now.astray = astray;
        let mut events = Events::NONE;
        learned.conclude(&exchange(400), now, &mut events);
        assert_eq!(events.contains(Event::FilterRestarted), restarts);
    }
}

/// The classic algorithm's rate is believed to 3 ppm then.
#[test]
fn a_filter_that_begins_anew_knows_the_rate_to_3_ppm() {
    let (mut learned, mut now) = settled();
    let mut events = Events::NONE;
    now.astray = 32;
    learned.conclude(&exchange(400), now, &mut events);
    learned.bank.for_groups(|group| assert_eq!(group.p[RATE][RATE], Lanes::all(9.0)));
    let now = learned.now.unwrap();
    let grown = now.blend.deviation_later * now.blend.deviation_later - now.blend.variance;
    let ppm = libm::sqrt(grown) / now.later;
    assert!((ppm - 3.0).abs() < 0.2, "{ppm}");
}

#[test]
fn the_filter_begins_anew_when_its_time_is_disproved_16_times() {
    for (outside, restarts) in [(14, false), (15, true)] {
        let (mut learned, mut now) = settled();
        learned.bank.for_groups(|group| group.x[THETA] += Lanes::all(1e6));
        now.outside = outside;
        let mut events = Events::NONE;
        learned.conclude(&exchange(400), now, &mut events);
        assert!(events.contains(Event::OutsideProof));
        assert_eq!(events.contains(Event::FilterRestarted), restarts);
    }
}
