//! Exchanges of every kind, for properties that hold of all of them.

use ffclock_units::{
    Bound, Counter, Exchange, Leap, Moment, ServerIdentity, ServerQuality, Span, Stamp, StampLocation, Tai, Ticks,
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

pub fn any_exchange() -> impl Strategy<Value = Exchange> {
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
pub fn plausible_exchange() -> impl Strategy<Value = Exchange> {
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
pub struct Step {
    pause: f64,
    trip: f64,
    server_pause: f64,
    residence: f64,
    width: i64,
    root: f64,
    reference_id: u32,
}

pub fn any_step() -> impl Strategy<Value = Step> {
    let size = |least: f64, most: f64| (least.log10()..most.log10()).prop_map(|exponent| 10f64.powf(exponent));
    let server = prop_oneof![8 => Just(None), 1 => size(1e-9, 1e15).prop_map(Some), 1 => size(1e-9, 1e15).prop_map(|s| Some(-s))];
    let parts =
        (size(1e-6, 1e9), size(1e-6, 20.0), server, size(1e-9, 30.0), 0..1_000_000_000i64, size(1e-9, 1e12), 0..6u32);
    parts.prop_map(|(pause, trip, server, residence, width, root, reference_id)| {
        let server_pause = server.unwrap_or(pause);
        Step { pause, trip, server_pause, residence: residence.min(0.9 * trip), width, root, reference_id }
    })
}

pub fn sequence(steps: &[Step]) -> Vec<Exchange> {
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
