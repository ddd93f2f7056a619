//! Properties that hold for every sequence of exchanges.

mod common;

use common::World;
use ffclock_estimator::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig};
use ffclock_units::{
    Bound, Counter, Estimate, Exchange, Leap, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp,
    StampLocation, Tai, Ticks,
};
use proptest::prelude::*;

fn any_stamp() -> impl Strategy<Value = Stamp> {
    (extreme_u64(), extreme_i64()).prop_map(|(counter, width)| Stamp {
        counter: Counter::from_raw(counter),
        width: Ticks::from_raw(width),
        location: StampLocation::Kernel,
    })
}

fn extreme_u64() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..40_000_000_000u64, Just(0), Just(u64::MAX), Just(1 << 63)]
}

fn extreme_i64() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), 0..1_000i64, Just(0), Just(i64::MIN), Just(i64::MAX)]
}

fn any_moment() -> impl Strategy<Value = Moment<Tai>> {
    let units = prop_oneof![any::<i128>(), 0..(40i128 << 64), Just(i128::MIN), Just(i128::MAX), Just(0)];
    units.prop_map(|units| Moment::from_origin(Span::from_units(units)))
}

fn any_exchange() -> impl Strategy<Value = Exchange> {
    let root = prop_oneof![
        Just(Bound::ZERO),
        Just(Bound::UNKNOWN),
        any::<i128>().prop_map(|u| Bound::of(Span::from_units(u)))
    ];
    (any_stamp(), any_stamp(), any_moment(), any_moment(), root, 0..3u32).prop_map(
        |(sent, received, server_in, server_out, root_distance, reference_id)| {
            let identity = ServerIdentity { stratum: 1, reference_id };
            let server = ServerQuality { identity, leap: Leap::None, root_distance };
            Exchange { sent, server_in, server_out, received, server }
        },
    )
}

/// Exchanges that look sane but for the times: these get past the admission.
fn plausible_exchange() -> impl Strategy<Value = Exchange> {
    let parts = (0..1_000_000_000_000u64, 1..20_000_000_000i64, any_moment(), 0..1_000_000i64, 0..5_000_000_000i64);
    parts.prop_map(|(sent, trip, server_in, residence, width)| {
        let sent = Counter::from_raw(sent);
        let stamp = |counter| Stamp { counter, width: Ticks::from_raw(width), location: StampLocation::Kernel };
        Exchange {
            sent: stamp(sent),
            server_in,
            server_out: server_in + Span::from_nanos(i128::from(residence)),
            received: stamp(sent + Ticks::from_raw(trip)),
            server: ServerQuality::default(),
        }
    })
}

/// What comes between two exchanges of a sequence that gets past the admission: times of any size, all of it finite.
#[derive(Clone, Debug)]
struct Step {
    pause: f64,
    trip: f64,
    server_pause: f64,
    residence: f64,
    width: i64,
    root: f64,
    reference_id: u32,
}

fn any_step() -> impl Strategy<Value = Step> {
    let size = |least: f64, most: f64| (least.log10()..most.log10()).prop_map(|exponent| 10f64.powf(exponent));
    let server = prop_oneof![8 => Just(None), 1 => size(1e-9, 1e15).prop_map(Some), 1 => size(1e-9, 1e15).prop_map(|s| Some(-s))];
    let parts =
        (size(1e-6, 1e9), size(1e-6, 20.0), server, size(1e-9, 30.0), 0..1_000_000_000i64, size(1e-9, 1e12), 0..6u32);
    parts.prop_map(|(pause, trip, server, residence, width, root, reference_id)| {
        let server_pause = server.unwrap_or(pause);
        Step { pause, trip, server_pause, residence: residence.min(0.9 * trip), width, root, reference_id }
    })
}

fn sequence(steps: &[Step]) -> Vec<Exchange> {
    let (mut counter, mut server) =
        (Counter::from_raw(1 << 40), Moment::<Tai>::from_origin(Span::from_secs(1_700_000_000)));
    let ticks = |seconds: f64| Ticks::from_raw((seconds * 1e9) as i64 + 1);
    let exchanges = steps.iter().map(|step| {
        let stamp = |counter| Stamp { counter, width: Ticks::from_raw(step.width), location: StampLocation::User };
        let sent = counter + ticks(step.pause);
        counter = sent + ticks(step.trip);
        let server_in = server + Span::from_seconds(step.server_pause);
        server = server_in + Span::from_seconds(step.residence);
        let identity = ServerIdentity { stratum: 1, reference_id: step.reference_id };
        let quality = ServerQuality { identity, leap: Leap::None, root_distance: Bound::from_seconds(step.root) };
        Exchange { sent: stamp(sent), server_in, server_out: server, received: stamp(counter), server: quality }
    });
    exchanges.collect()
}

fn check(estimate: &Estimate) -> Result<(), TestCaseError> {
    prop_assert!(!estimate.bound.as_span().is_negative() && !estimate.uncertainty.as_span().is_negative());
    prop_assert!(estimate.uncertainty <= estimate.bound);
    prop_assert!(estimate.uncertainty_growth <= estimate.bound_growth);
    prop_assert!(estimate.uncertainty != Bound::UNKNOWN || estimate.bound == Bound::UNKNOWN);
    prop_assert!(estimate.period.as_seconds().is_finite() && estimate.difference_period.as_seconds() > 0.0);
    Ok(())
}

fn survive(classic: &mut impl Estimator, exchanges: &[Exchange]) -> Result<(), TestCaseError> {
    for exchange in exchanges {
        let outcome = classic.update(exchange);
        let _ = (outcome.round_trip(), outcome.point_error(), outcome.naive_error());
        let summary = classic.summary();
        prop_assert!(summary.period_error.as_fraction().is_finite());
        prop_assert!(summary.local_rate.is_none_or(|rate| rate.as_fraction().is_finite()));
        if let Some(estimate) = classic.estimate() {
            check(&estimate)?;
        }
    }
    Ok(())
}

fn tick(hertz: f64) -> Period {
    Period::from_hertz(hertz).expect("a frequency")
}

fn learned(hertz: f64) -> Learned {
    Learned::new(LearnedConfig::default(), ClassicConfig::default(), tick(hertz), None)
}

proptest! {
    // An estimator takes a while to make: fewer cases.
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_harms_the_learned_filter(exchanges in prop::collection::vec(any_exchange(), 1..60)) {
        for hertz in [1e9, 1.1, 1e18] {
            survive(&mut learned(hertz), &exchanges)?;
        }
    }

    #[test]
    fn the_learned_filter_stays_finite_at_times_of_any_size(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut learned = learned(1e9);
        for exchange in sequence(&steps) {
            survive(&mut learned, &[exchange])?;
            if let Some(estimate) = learned.estimate() {
                prop_assert!(estimate.bound != Bound::UNKNOWN);
                prop_assert!(learned.summary().offset.as_span().abs() < Span::from_seconds(1e18));
            }
        }
    }

    #[test]
    fn the_learned_filter_recovers_from_garbage(
        garbage in prop::collection::vec(prop_oneof![any_exchange(), plausible_exchange()], 1..60),
        seed in 0..1_000u64,
    ) {
        let mut world = World::lan(seed);
        let mut learned = learned(world.hertz);
        for (step, exchange) in garbage.iter().enumerate() {
            survive(&mut learned, core::slice::from_ref(exchange))?;
            if step % 2 == 1 {
                world.advance(world.time() + 16.0);
                survive(&mut learned, &[world.exchange()])?;
            }
        }
        for _ in 0..400 {
            world.advance(world.time() + 16.0);
            survive(&mut learned, &[world.exchange()])?;
        }
        let estimate = learned.estimate().expect("an estimate");
        let age = estimate.period * (world.counter() - estimate.counter);
        let error = (estimate.time + age - world.moment(world.time())).abs();
        prop_assert!(error < Span::from_micros(200), "{error:?}");
    }

    #[test]
    fn shifting_the_scales_shifts_the_learned_estimate_exactly(
        ticks in any::<u64>(), seconds in -1_000_000_000i64..4_000_000_000, seed in 0..100u64,
    ) {
        let mut world = World::lan(seed);
        let mut plain = learned(world.hertz);
        let mut moved = plain.clone();
        for step in 0..200 {
            world.advance(world.time() + 16.0);
            world.lie = if (60..80).contains(&step) { 0.3 } else { 0.0 };
            world.forward_floor = if step > 120 { 900e-6 } else { 140e-6 };
            let exchange = world.exchange();
            let shift = |stamp: Stamp| Stamp { counter: stamp.counter + Ticks::from_raw(ticks as i64), ..stamp };
            let other = Exchange {
                sent: shift(exchange.sent),
                received: shift(exchange.received),
                server_in: exchange.server_in + Span::from_secs(seconds),
                server_out: exchange.server_out + Span::from_secs(seconds),
                ..exchange
            };
            prop_assert_eq!(plain.update(&exchange).events, moved.update(&other).events);
            let (mut a, b) = (plain.estimate().expect("one"), moved.estimate().expect("one"));
            a.counter = a.counter + Ticks::from_raw(ticks as i64);
            a.time = a.time + Span::from_secs(seconds);
            prop_assert_eq!(a, b);
            prop_assert_eq!(plain.summary(), moved.summary());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_panics_and_never_makes_a_nan(exchanges in prop::collection::vec(any_exchange(), 1..60)) {
        for hertz in [1e9, 1.1, 1e18] {
            survive(&mut Classic::new(ClassicConfig::default(), tick(hertz), None), &exchanges)?;
        }
    }

    #[test]
    fn times_of_any_size_leave_finite_figures(steps in prop::collection::vec(any_step(), 1..80)) {
        let mut classic = Classic::new(ClassicConfig::default(), tick(1e9), None);
        for exchange in sequence(&steps) {
            survive(&mut classic, &[exchange])?;
            if let Some(estimate) = classic.estimate() {
                prop_assert!(estimate.bound != Bound::UNKNOWN);
                prop_assert!(classic.summary().offset.as_span().abs() < Span::from_seconds(1e18));
            }
        }
    }

    #[test]
    fn garbage_amid_good_exchanges_does_no_harm(
        garbage in prop::collection::vec(prop_oneof![any_exchange(), plausible_exchange()], 1..60),
        seed in 0..1_000u64,
    ) {
        let mut world = World::lan(seed);
        let mut classic = Classic::new(ClassicConfig::default(), tick(world.hertz), None);
        for (step, exchange) in garbage.iter().enumerate() {
            survive(&mut classic, core::slice::from_ref(exchange))?;
            if step % 2 == 1 {
                world.advance(world.time() + 16.0);
                survive(&mut classic, &[world.exchange()])?;
            }
        }
        // Whatever came before, an hour of good exchanges brings the clock back.
        for _ in 0..400 {
            world.advance(world.time() + 16.0);
            survive(&mut classic, &[world.exchange()])?;
        }
        let estimate = classic.estimate().expect("an estimate");
        let age = estimate.period * (world.counter() - estimate.counter);
        let error = (estimate.time + age - world.moment(world.time())).abs();
        prop_assert!(error < Span::from_micros(200), "{error:?}");
    }

    /// Absolute values have no influence: shifted counters and server times give the same estimates, shifted, bit for bit.
    #[test]
    fn shifting_the_scales_shifts_the_estimate_exactly(ticks in any::<u64>(), seconds in -1_000_000_000i64..4_000_000_000, seed in 0..100u64) {
        let mut world = World::lan(seed);
        let mut plain = Classic::new(ClassicConfig::default(), tick(world.hertz), None);
        let mut moved = plain.clone();
        for step in 0..300 {
            world.advance(world.time() + 16.0);
            world.lie = if (100..120).contains(&step) { 0.3 } else { 0.0 };
            let exchange = world.exchange();
            let shift = |stamp: Stamp| Stamp { counter: stamp.counter + Ticks::from_raw(ticks as i64), ..stamp };
            let other = Exchange {
                sent: shift(exchange.sent),
                received: shift(exchange.received),
                server_in: exchange.server_in + Span::from_secs(seconds),
                server_out: exchange.server_out + Span::from_secs(seconds),
                ..exchange
            };
            prop_assert_eq!(plain.update(&exchange).verdict, moved.update(&other).verdict);
            let (mut a, b) = (plain.estimate().expect("one"), moved.estimate().expect("one"));
            a.counter = a.counter + Ticks::from_raw(ticks as i64);
            a.time = a.time + Span::from_secs(seconds);
            prop_assert_eq!(a, b);
            prop_assert_eq!(plain.summary(), moved.summary());
        }
    }
}

/// The same exchanges give the same bits. The figure is a hash of every estimate of a day with all kinds of upsets; it may change
/// only with the algorithm, and must then be the same on every machine.
#[test]
fn the_same_trace_gives_the_same_bits() {
    let run = || {
        let mut world = World::lan(42);
        let mut classic = Classic::new(ClassicConfig::default(), tick(world.hertz), None);
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for step in 0..5_000 {
            world.advance(world.time() + 16.0);
            world.lie = if (1_000..1_100).contains(&step) { 0.3 } else { 0.0 };
            world.forward_floor = if step > 3_000 { 900e-6 } else { 140e-6 };
            classic.update(&world.exchange());
            let estimate = classic.estimate().expect("an estimate");
            let time = estimate.time.since_origin().units() as u64;
            for word in [
                time,
                estimate.bound.as_span().units() as u64,
                estimate.period.mantissa(),
                estimate.bound_growth.units(),
            ] {
                hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
            }
        }
        hash
    };
    assert_eq!(run(), 0x4b07_25fa_59a5_b33e);
}

/// The same for the learned algorithm, whose functions come from `libm` and are therefore the same everywhere too.
#[test]
fn the_same_trace_gives_the_same_learned_bits() {
    let run = || {
        let mut world = World::lan(42);
        let mut learned = learned(world.hertz);
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for step in 0..2_000 {
            world.advance(world.time() + 16.0);
            world.lie = if (1_000..1_020).contains(&step) { 0.3 } else { 0.0 };
            world.forward_floor = if step > 1_500 { 900e-6 } else { 140e-6 };
            learned.update(&world.exchange());
            let estimate = learned.estimate().expect("an estimate");
            let time = estimate.time.since_origin().units() as u64;
            let uncertainty = estimate.uncertainty.as_span().units() as u64;
            for word in [time, uncertainty, estimate.period.mantissa(), estimate.bound_growth.units()] {
                hash = (hash ^ word).wrapping_mul(0x100_0000_01b3);
            }
        }
        hash
    };
    assert_eq!(run(), LEARNED_BITS);
}

/// May change only with the algorithm.
const LEARNED_BITS: u64 = 0x6595_7daa_03e0_d89e;
