//! Properties that hold for every sequence of exchanges.

mod common;
#[path = "common/garbage.rs"]
mod garbage;

use common::World;
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Period, Span, Stamp, StandardUncertainty, Ticks};
use garbage::{Step, any_exchange, any_step, plausible_exchange, sequence};
use proptest::prelude::*;

fn check(estimate: &Estimate) -> Result<(), TestCaseError> {
    prop_assert!(!estimate.bound.as_span().is_negative() && !estimate.uncertainty.as_span().is_negative());
    prop_assert!(estimate.noise <= estimate.uncertainty);
    prop_assert!(estimate.uncertainty.as_span() <= estimate.bound.as_span());
    prop_assert!(estimate.uncertainty_growth <= estimate.bound_growth);
    prop_assert!(estimate.uncertainty != StandardUncertainty::UNKNOWN || estimate.bound == Bound::UNKNOWN);
    prop_assert!(estimate.period.as_seconds().is_finite() && estimate.difference_period.as_seconds() > 0.0);
    Ok(())
}

fn survive(estimator: &mut impl Estimator, exchanges: &[Exchange]) -> Result<(), TestCaseError> {
    for exchange in exchanges {
        let outcome = estimator.update(exchange);
        let _ = (outcome.round_trip(), outcome.point_error(), outcome.naive_error());
        let summary = estimator.summary();
        prop_assert!(summary.period_error.as_fraction().is_finite());
        prop_assert!(summary.local_rate.is_none_or(|rate| rate.as_fraction().is_finite()));
        if let Some(estimate) = estimator.estimate() {
            check(&estimate)?;
        }
        let proven = estimator.proven(exchange.received.counter);
        prop_assert!(proven.is_none_or(|proven| proven.earliest <= proven.latest), "{proven:?}");
    }
    Ok(())
}

fn tick(hertz: f64) -> Period {
    Period::from_hertz(hertz).expect("a frequency")
}

fn classic(hertz: f64) -> Classic {
    Classic::new(ClassicConfig::default(), tick(hertz), None)
}

fn learned(hertz: f64) -> Learned {
    Learned::new(LearnedConfig::default(), ClassicConfig::default(), tick(hertz), None)
}

/// Garbage never panics and never makes a NaN, whatever the counter's frequency.
fn garbage_does_no_harm<E: Estimator>(make: fn(f64) -> E, exchanges: &[Exchange]) -> Result<(), TestCaseError> {
    [1e9, 1.1, 1e18].into_iter().try_for_each(|hertz| survive(&mut make(hertz), exchanges))
}

fn times_of_any_size_leave_finite_figures<E: Estimator>(mut estimator: E, steps: &[Step]) -> Result<(), TestCaseError> {
    for exchange in sequence(steps) {
        survive(&mut estimator, &[exchange])?;
        if let Some(estimate) = estimator.estimate() {
            prop_assert!(estimate.bound != Bound::UNKNOWN);
            prop_assert!(estimator.summary().offset.as_span().abs() < Span::from_seconds(1e18));
        }
    }
    Ok(())
}

/// Whatever came before, an hour of good exchanges brings the clock back.
fn recovers_from<E: Estimator>(make: fn(f64) -> E, garbage: &[Exchange], seed: u64) -> Result<(), TestCaseError> {
    let mut world = World::lan(seed);
    let mut estimator = make(world.hertz);
    for (step, exchange) in garbage.iter().enumerate() {
        survive(&mut estimator, core::slice::from_ref(exchange))?;
        if step % 2 == 1 {
            world.advance(world.time() + 16.0);
            survive(&mut estimator, &[world.exchange()])?;
        }
    }
    for _ in 0..400 {
        world.advance(world.time() + 16.0);
        survive(&mut estimator, &[world.exchange()])?;
    }
    let estimate = estimator.estimate().expect("an estimate");
    let age = estimate.period * (world.counter() - estimate.counter);
    let error = (estimate.time + age - world.moment(world.time())).abs();
    prop_assert!(error < Span::from_micros(200), "{error:?}");
    Ok(())
}

/// A lie, and a longer route.
fn upset(world: &mut World, step: u32, lie: core::ops::Range<u32>, route: u32) {
    world.advance(world.time() + 16.0);
    world.lie = if lie.contains(&step) { 0.3 } else { 0.0 };
    world.forward_floor = if step > route { 900e-6 } else { 140e-6 };
}

/// Absolute values have no influence: shifted counters and server times give the same estimates, shifted, bit for bit.
fn shifts_exactly<E: Estimator>(
    make: fn(f64) -> E,
    (ticks, seconds): (u64, i64),
    seed: u64,
) -> Result<(), TestCaseError> {
    let mut world = World::lan(seed);
    let (mut plain, mut moved) = (make(world.hertz), make(world.hertz));
    let ticks = Ticks::from_raw(ticks as i64);
    for step in 0..200 {
        upset(&mut world, step, 60..80, 120);
        let exchange = world.exchange();
        let shift = |stamp: Stamp| Stamp { counter: stamp.counter + ticks, ..stamp };
        let other = Exchange {
            sent: shift(exchange.sent),
            received: shift(exchange.received),
            server_in: exchange.server_in + Span::from_secs(seconds),
            server_out: exchange.server_out + Span::from_secs(seconds),
            ..exchange
        };
        let outcomes = (plain.update(&exchange), moved.update(&other));
        prop_assert_eq!((outcomes.0.verdict, outcomes.0.events), (outcomes.1.verdict, outcomes.1.events));
        let (mut a, b) = (plain.estimate().expect("one"), moved.estimate().expect("one"));
        a.counter = a.counter + ticks;
        a.time = a.time + Span::from_secs(seconds);
        prop_assert_eq!(a, b);
        prop_assert_eq!(plain.summary(), moved.summary());
    }
    Ok(())
}

proptest! {
    // An estimator takes a while to make: fewer cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_harms_the_learned_filter(exchanges in prop::collection::vec(any_exchange(), 1..60)) {
        garbage_does_no_harm(learned, &exchanges)?;
    }

    #[test]
    fn the_learned_filter_stays_finite_at_times_of_any_size(steps in prop::collection::vec(any_step(), 1..80)) {
        times_of_any_size_leave_finite_figures(learned(1e9), &steps)?;
    }

    #[test]
    fn the_learned_filter_recovers_from_garbage(
        garbage in prop::collection::vec(prop_oneof![any_exchange(), plausible_exchange()], 1..60),
        seed in 0..1_000u64,
    ) {
        recovers_from(learned, &garbage, seed)?;
    }

    /// Twice the ticks at twice the frequency are the same times, with half the period.
    #[test]
    fn scaling_the_counter_scales_the_learned_period(seed in 0..100u64) {
        let mut world = World::lan(seed);
        let (mut plain, mut scaled) = (learned(world.hertz), learned(2.0 * world.hertz));
        let twice = |stamp: Stamp| {
            let counter = Counter::from_raw(stamp.counter.raw().wrapping_mul(2));
            Stamp { counter, width: Ticks::from_raw(stamp.width.raw() * 2), ..stamp }
        };
        for step in 0..200 {
            world.advance(world.time() + 16.0);
            world.forward_floor = if step > 120 { 900e-6 } else { 140e-6 };
            let exchange = world.exchange();
            let other = Exchange { sent: twice(exchange.sent), received: twice(exchange.received), ..exchange };
            prop_assert_eq!(plain.update(&exchange).verdict, scaled.update(&other).verdict);
            let (a, b) = (plain.estimate().expect("one"), scaled.estimate().expect("one"));
            prop_assert!((a.time - b.time).abs() < Span::from_nanos(2), "{:?} {:?}", a, b);
            prop_assert!((a.bound.as_seconds() - b.bound.as_seconds()).abs() < 2e-9);
            prop_assert!((a.period.as_seconds() / b.period.as_seconds() - 2.0).abs() < 1e-9);
        }
    }

    #[test]
    fn shifting_the_scales_shifts_the_learned_estimate_exactly(
        ticks in any::<u64>(), seconds in -1_000_000_000i64..4_000_000_000, seed in 0..100u64,
    ) {
        shifts_exactly(learned, (ticks, seconds), seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_harms_the_classic_algorithm(exchanges in prop::collection::vec(any_exchange(), 1..60)) {
        garbage_does_no_harm(classic, &exchanges)?;
    }

    #[test]
    fn the_classic_algorithm_stays_finite_at_times_of_any_size(steps in prop::collection::vec(any_step(), 1..80)) {
        times_of_any_size_leave_finite_figures(classic(1e9), &steps)?;
    }

    #[test]
    fn the_classic_algorithm_recovers_from_garbage(
        garbage in prop::collection::vec(prop_oneof![any_exchange(), plausible_exchange()], 1..60),
        seed in 0..1_000u64,
    ) {
        recovers_from(classic, &garbage, seed)?;
    }

    #[test]
    fn shifting_the_scales_shifts_the_classic_estimate_exactly(
        ticks in any::<u64>(), seconds in -1_000_000_000i64..4_000_000_000, seed in 0..100u64,
    ) {
        shifts_exactly(classic, (ticks, seconds), seed)?;
    }
}

/// The hash of every estimate of a day with all kinds of upsets.
fn hash(mut estimator: impl Estimator, mut world: World, days: (u32, core::ops::Range<u32>, u32)) -> u64 {
    let (steps, lie, route) = days;
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for step in 0..steps {
        upset(&mut world, step, lie.clone(), route);
        estimator.update(&world.exchange());
        let estimate = estimator.estimate().expect("an estimate");
        for word in [
            estimate.time.since_origin().units() as u64,
            estimate.noise.as_span().units() as u64,
            estimate.bound.as_span().units() as u64,
            estimate.period.mantissa(),
            estimate.difference_period.mantissa(),
            estimate.bound_growth.units(),
        ] {
            hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

/// The same exchanges give the same bits, on every machine. They may change only with the algorithm.
#[test]
fn the_same_trace_gives_the_same_bits() {
    let world = World::lan(42);
    assert_eq!(hash(classic(world.hertz), world, (5_000, 1_000..1_100, 3_000)), CLASSIC_BITS);
}

/// The functions of the learned algorithm come from `libm` and are therefore the same everywhere too.
#[test]
fn the_same_trace_gives_the_same_learned_bits() {
    let world = World::lan(42);
    assert_eq!(hash(learned(world.hertz), world, (2_000, 1_000..1_020, 1_500)), LEARNED_BITS);
}

const CLASSIC_BITS: u64 = 0x7dcb_fae2_d82f_f5ef;
const LEARNED_BITS: u64 = 0x8cab_2ac7_c61c_7e86;
