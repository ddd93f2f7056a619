//! Exchanges of any kind, one after the other: no panic, and two estimators with the same input give the same estimate.
//! Sometimes in retrospect, too.
#![no_main]

use ffclock_estimator::{Algorithm, Chosen, ClassicConfig, Configs, Estimator, LearnedConfig, Smoother};
use ffclock_units::{
    Bound, Counter, Exchange, Moment, Period, ServerIdentity, ServerQuality, Span, Stamp, StampLocation,
    StandardUncertainty, Tai, Ticks,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// The point at which the next exchange begins.
struct Now {
    counter: u64,
    time: Moment<Tai>,
}

fn stamp(counter: u64, input: &mut Unstructured<'_>) -> Result<Stamp> {
    let width = Ticks::from_raw(i64::from(input.arbitrary::<i32>()?));
    Ok(Stamp { counter: Counter::from_raw(counter), width, location: StampLocation::Unknown })
}

/// A plausible exchange most of the time; otherwise any of its parts may have any value.
fn exchange(now: &mut Now, input: &mut Unstructured<'_>) -> Result<Exchange> {
    let poll = i64::from(input.int_in_range(0..=2_000_000_000_u32)?);
    now.counter = now.counter.wrapping_add_signed(poll);
    now.time = now.time + Span::from_nanos(i128::from(poll));
    let (forward, back) = (i64::from(input.arbitrary::<u16>()?), i64::from(input.arbitrary::<u16>()?));
    if input.ratio(1_u8, 32_u8)? {
        now.counter = input.arbitrary()?;
    }
    if input.ratio(1_u8, 32_u8)? {
        now.time = Moment::from_origin(Span::from_units(input.arbitrary()?));
    }
    let server_in = now.time + Span::from_nanos(i128::from(forward));
    let reference_id = u32::from(input.ratio(1_u8, 16_u8)?);
    let claim = Bound::of(Span::from_nanos(i128::from(input.arbitrary::<u32>()?)));
    Ok(Exchange {
        sent: stamp(now.counter, input)?,
        server_in,
        server_out: server_in + Span::from_nanos(i128::from(input.arbitrary::<i16>()?)),
        received: stamp(now.counter.wrapping_add_signed(forward + back), input)?,
        server: ServerQuality {
            identity: ServerIdentity { stratum: 2, reference_id },
            root_distance: claim,
            ..ServerQuality::default()
        },
    })
}

fuzz_target!(|bytes: &[u8]| {
    let Some(nominal) = Period::from_hertz(1e9) else { return };
    let mut input = Unstructured::new(bytes);
    let algorithm = if input.ratio(1_u8, 4_u8).unwrap_or(false) { Algorithm::Learned } else { Algorithm::Classic };
    let new = || Chosen::new(algorithm, Configs::default(), nominal, None);
    let (mut one, mut other) = (new(), new());
    let is_smoothed = algorithm == Algorithm::Learned && input.ratio(1_u8, 4_u8).unwrap_or(false);
    let smoother = || Smoother::new(LearnedConfig::default(), ClassicConfig::default(), nominal);
    let mut smoother = is_smoothed.then(smoother);
    let mut now = Now { counter: 1 << 40, time: Moment::from_origin(Span::from_secs(1_790_000_000)) };
    while !input.is_empty() {
        let Ok(exchange) = exchange(&mut now, &mut input) else { break };
        smoother.iter_mut().for_each(|smoother| _ = smoother.update(&exchange));
        one.update(&exchange);
        other.update(&exchange);
        assert_eq!(one.estimate(), other.estimate());
        if let Some(estimate) = one.estimate() {
            assert!(
                estimate.bound >= Bound::ZERO && estimate.uncertainty.as_span() <= estimate.bound.as_span(),
                "{estimate:?}"
            );
            let proven = one.proven(exchange.received.counter);
            assert!(proven.is_some_and(|proven| proven.earliest <= proven.latest), "{proven:?}");
        }
    }
    for time in smoother.map(|smoother| smoother.finish(&mut |_, _| ())).iter().flat_map(|smoothed| smoothed.times()) {
        assert!(
            time.uncertainty != StandardUncertainty::UNKNOWN && !time.uncertainty.as_span().is_negative(),
            "{time:?}"
        );
    }
});
