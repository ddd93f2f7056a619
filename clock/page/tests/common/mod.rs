//! A publication to test with.

use ffclock_page::{CounterId, Publication};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, ServerIdentity, Span,
    StandardUncertainty, Status,
};

/// The counter at the reference of the estimate: ten seconds after the epoch began.
pub const REFERENCE: Counter = Counter::from_raw(1_000 + 10 * HERTZ);
/// Its epoch.
pub const EPOCH: CounterEpoch = CounterEpoch::from_raw(3);
/// Ticks per second of the counter.
pub const HERTZ: u64 = 2_700_000_000;

/// Synchronised within 50 us, good for 100 s, long after the last leap second.
pub fn publication() -> Publication {
    let period = Period::from_hertz(HERTZ as f64).expect("a period");
    Publication {
        counter_id: CounterId::Tsc,
        epoch: EPOCH,
        epoch_begin: Counter::from_raw(1_000),
        estimate: Estimate {
            counter: REFERENCE,
            time: Moment::from_origin(Span::from_secs(1_800_000_037)),
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(2)),
            noise: StandardUncertainty::of(Span::from_micros(1)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(20.0)),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::of(Rate::from_ppb(100.0)),
            difference_period: period.stretched(Rate::from_ppm(1.0)),
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
            status: Status::Synchronised,
        },
        leap: LeapStep { before: 36, after: 37, at: 1_483_228_836 },
        valid_until: REFERENCE + period.ticks_in(Span::from_secs(100)),
        server: Some(ServerIdentity { stratum: 1, reference_id: 0x4750_5300 }),
    }
}
