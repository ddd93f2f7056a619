//! The clock in retrospect: better than the clock as it was, honest about it, and sound whatever it is given.

mod common;
#[path = "common/garbage.rs"]
mod garbage;

use common::World;
use ffclock_estimator::{ClassicConfig, Estimator, Learned, LearnedConfig, Smoothed, Smoother};
use ffclock_units::{Counter, Exchange, Moment, Period, Span, StandardUncertainty, Tai, Ticks};
use garbage::{any_exchange, any_step, plausible_exchange, sequence};
use proptest::prelude::*;

fn tick(hertz: f64) -> Period {
    Period::from_hertz(hertz).expect("a frequency")
}

fn smoother(hertz: f64) -> Smoother {
    Smoother::new(LearnedConfig::default(), ClassicConfig::default(), tick(hertz))
}

fn smooth(hertz: f64, exchanges: &[Exchange]) -> Smoothed {
    let mut smoother = smoother(hertz);
    exchanges.iter().for_each(|exchange| {
        smoother.update(exchange);
    });
    smoother.finish(&mut |_, _| ())
}

/// A recording of a world with the true times at the replies.
struct Recording {
    hertz: f64,
    exchanges: Vec<Exchange>,
    truths: Vec<Moment<Tai>>,
}

fn record(mut world: World, count: usize, mut script: impl FnMut(usize, &mut World)) -> Recording {
    let mut recording = Recording { hertz: world.hertz, exchanges: Vec::new(), truths: Vec::new() };
    for step in 0..count {
        world.advance(world.time() + 16.0);
        script(step, &mut world);
        let exchange = world.exchange();
        recording.truths.push(world.moment(world.time()));
        recording.exchanges.push(exchange);
    }
    recording
}

/// Errors of the clock as it was and in retrospect, s, with what the latter says of itself.
fn errors(recording: &Recording) -> Vec<[f64; 3]> {
    let mut learned = Learned::new(LearnedConfig::default(), ClassicConfig::default(), tick(recording.hertz), None);
    let smoothed = smooth(recording.hertz, &recording.exchanges);
    assert_eq!(smoothed.times().len(), recording.exchanges.len());
    let all = recording.exchanges.iter().zip(&recording.truths).zip(smoothed.times());
    let error = |((exchange, truth), time): ((&Exchange, &Moment<Tai>), &ffclock_estimator::SmoothedTime)| {
        learned.update(exchange);
        let estimate = learned.estimate().expect("an estimate");
        assert_eq!(time.counter, exchange.received.counter);
        let causal = estimate.time + estimate.period * (time.counter - estimate.counter);
        let [causal, smooth] = [causal, time.time].map(|time| (time - *truth).as_seconds());
        [causal, smooth, time.uncertainty.as_seconds()]
    };
    all.map(error).collect()
}

fn spread(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() * 3 / 4] - values[values.len() / 4]
}

#[test]
fn the_future_halves_the_error_of_a_quiet_network() {
    let errors = errors(&record(World::lan(3), 2_000, |_, _| ()));
    let settled = || errors.iter().skip(100);
    let (causal, smooth) = (spread(settled().map(|error| error[0])), spread(settled().map(|error| error[1])));
    assert!(smooth < 0.6 * causal, "{smooth} {causal}");
    let within = settled().filter(|error| error[1].abs() <= 2.0 * error[2]).count();
    assert!(within * 100 >= 95 * (errors.len() - 100), "{within}");
}

#[test]
fn a_one_sided_route_change_and_a_lie_leave_no_trace() {
    let recording = record(World::lan(5), 1_500, |step, world| {
        world.forward_floor = if (500..900).contains(&step) { 1_040e-6 } else { 140e-6 };
        world.lie = if (1_100..1_120).contains(&step) { 0.15 } else { 0.0 };
    });
    let worst = errors(&recording).iter().skip(100).fold(0.0, |worst: f64, error| worst.max(error[1].abs()));
    assert!(worst < 5e-6, "{worst}");
}

/// More exchanges than are worked out at a time: nothing is to be seen where two windows meet.
#[test]
fn a_long_recording_has_no_seams() {
    let errors = errors(&record(World::lan(13), 8_500, |_, _| ()));
    let seam = || errors.iter().skip(8_192 - 40).take(80);
    assert!(seam().all(|error| error[1].abs() < 2e-6 && error[1].abs() < 5.0 * error[2]));
    let spread_of = |errors: &[[f64; 3]]| spread(errors.iter().map(|error| error[1]));
    assert!(spread_of(&errors[8_152..8_232]) < 2.0 * spread_of(&errors[4_000..8_000]));
}

#[test]
fn stamps_between_exchanges_have_their_time_and_others_none() {
    let mut world = World::lan(7);
    let (mut exchanges, mut stamps) = (Vec::new(), Vec::new());
    for _ in 0..600 {
        world.advance(world.time() + 5.0);
        stamps.push((world.counter(), world.moment(world.time())));
        world.advance(world.time() + 11.0);
        exchanges.push(world.exchange());
    }
    let smoothed = smooth(world.hertz, &exchanges);
    assert_eq!(smoothed.at(0, stamps[0].0), None, "before the first exchange");
    assert_eq!(smoothed.at(1, stamps[300].0), None, "another epoch");
    for (counter, truth) in &stamps[100..] {
        let time = smoothed.at(0, *counter).expect("within the recording");
        let error = (time.time - *truth).abs();
        assert!(error < Span::from_micros(3) && error.as_seconds() < 6.0 * time.uncertainty.as_seconds(), "{error}");
    }
    let last = exchanges[599].received.counter;
    assert_eq!(smoothed.at(0, last), smoothed.times().last().copied());
    assert_eq!(smoothed.at(0, last + Ticks::from_raw(1)), None);
}

#[test]
fn an_epoch_is_a_clock_of_its_own() {
    let first = record(World::lan(9), 300, |_, _| ());
    let second = record(World::lan(11), 300, |_, _| ());
    let mut smoother = smoother(first.hertz);
    first.exchanges.iter().for_each(|exchange| assert!(smoother.update(exchange)));
    smoother.restart();
    second.exchanges.iter().for_each(|exchange| assert!(smoother.update(exchange)));
    let both = smoother.finish(&mut |_, _| ());
    let alone = smooth(first.hertz, &first.exchanges);
    assert!(both.times()[..300] == *alone.times());
    assert!(both.at(1, second.exchanges[150].received.counter).is_some());
}

fn sound(smoothed: &Smoothed) -> Result<(), TestCaseError> {
    for time in smoothed.times() {
        prop_assert!(time.uncertainty != StandardUncertainty::UNKNOWN && !time.uncertainty.as_span().is_negative());
        prop_assert!(time.period.as_seconds() > 0.0 && time.period.as_seconds().is_finite());
    }
    for pair in smoothed.times().windows(2) {
        let middle = pair[0].counter + Ticks::from_raw((pair[1].counter - pair[0].counter).raw() / 2);
        if let Some(time) = smoothed.at(0, middle) {
            prop_assert!(time.uncertainty != StandardUncertainty::UNKNOWN);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn garbage_does_no_harm(exchanges in prop::collection::vec(prop_oneof![any_exchange(), plausible_exchange()], 1..60)) {
        for hertz in [1e9, 1.1, 1e18] {
            sound(&smooth(hertz, &exchanges))?;
        }
    }

    #[test]
    fn times_of_any_size_leave_finite_times(steps in prop::collection::vec(any_step(), 1..80)) {
        sound(&smooth(1e9, &sequence(&steps)))?;
    }

    /// The frame is anchored at the first exchange, so that no absolute value enters a float: the shift is exact to the
    /// bit.
    #[test]
    fn shifting_the_scales_shifts_the_times_exactly(
        ticks in any::<u64>(), seconds in -1_000_000_000i64..4_000_000_000, seed in 0..100u64,
    ) {
        let recording = record(World::lan(seed), 150, |step, world| {
            world.lie = if (60..70).contains(&step) { 0.3 } else { 0.0 };
            world.forward_floor = if step > 100 { 900e-6 } else { 140e-6 };
        });
        let moved = |exchange: &Exchange| {
            let mut moved = *exchange;
            moved.sent.counter = exchange.sent.counter + Ticks::from_raw(ticks as i64);
            moved.received.counter = exchange.received.counter + Ticks::from_raw(ticks as i64);
            moved.server_in = exchange.server_in + Span::from_secs(seconds);
            moved.server_out = exchange.server_out + Span::from_secs(seconds);
            moved
        };
        let other: Vec<Exchange> = recording.exchanges.iter().map(moved).collect();
        let (plain, shifted) = (smooth(recording.hertz, &recording.exchanges), smooth(recording.hertz, &other));
        prop_assert_eq!(plain.times().len(), shifted.times().len());
        for (a, b) in plain.times().iter().zip(shifted.times()) {
            prop_assert_eq!(a.counter + Ticks::from_raw(ticks as i64), b.counter);
            prop_assert_eq!(a.time + Span::from_secs(seconds), b.time);
            prop_assert_eq!((a.uncertainty, a.period), (b.uncertainty, b.period));
        }
    }

    /// Twice the ticks at twice the frequency are the same times, with half the period: a power of two, so that nothing
    /// is rounded again.
    #[test]
    fn scaling_the_counter_scales_the_period(seed in 0..100u64) {
        let recording = record(World::lan(seed), 150, |_, _| ());
        let twice = |counter: Counter| Counter::from_raw(counter.raw().wrapping_mul(2));
        let scaled = |exchange: &Exchange| {
            let mut scaled = *exchange;
            for (stamp, from) in [(&mut scaled.sent, &exchange.sent), (&mut scaled.received, &exchange.received)] {
                stamp.counter = twice(from.counter);
                stamp.width = Ticks::from_raw(from.width.raw() * 2);
            }
            scaled
        };
        let other: Vec<Exchange> = recording.exchanges.iter().map(scaled).collect();
        let (plain, scaled) = (smooth(recording.hertz, &recording.exchanges), smooth(2.0 * recording.hertz, &other));
        for (a, b) in plain.times().iter().zip(scaled.times()) {
            prop_assert!((a.time - b.time).abs() < Span::from_nanos(2), "{:?} {:?}", a, b);
            prop_assert!((a.period.as_seconds() / b.period.as_seconds() - 2.0).abs() < 1e-9);
        }
    }
}
