//! What a writer says is what a reader hears, with error figures never smaller.

use ffclock_page::{CounterId, PageMemory, Publication, Reader, Writer};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, Rate, ServerIdentity, Span, Status,
    Ticks,
};

fn publication() -> Publication {
    let hertz = 2.7e9;
    let period = Period::from_hertz(hertz).unwrap();
    Publication {
        counter_id: CounterId::Tsc,
        epoch: CounterEpoch::from_raw(3),
        epoch_begin: Counter::from_raw(1_000),
        estimate: Estimate {
            counter: Counter::from_raw(27_000_000_000),
            time: Moment::from_origin(Span::from_secs(1_800_000_037)),
            period,
            uncertainty: Bound::of(Span::from_micros(2)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(20.0)),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::of(Rate::from_ppb(100.0)),
            difference_period: period,
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            status: Status::Synchronised,
        },
        leap: LeapStep { before: 36, after: 37, at: 1_483_228_836 },
        valid_until: Counter::from_raw(27_000_000_000) + period.ticks_in(Span::from_secs(100)),
        server: Some(ServerIdentity { stratum: 1, reference_id: 0x4750_5300 }),
    }
}

#[test]
fn a_reading_is_the_line_through_the_reference() {
    let page = PageMemory::new();
    let mut writer = Writer::open(&page, None);
    let published = publication();
    writer.publish(&published);
    let reader = Reader::new(page.as_ref());
    reader.check_header(None).unwrap();
    let counter = published.estimate.counter + Ticks::from_raw(2_700_000_000);
    let reading = reader.reading_at(counter, CounterId::Tsc).unwrap();
    let error = reading.time - Moment::from_origin(Span::from_secs(1_800_000_001));
    assert!(error.abs() < Span::from_nanos(1), "{error:?}");
    assert!(reading.bound >= Bound::of(Span::from_nanos(50_100)));
    assert!(reading.bound < Bound::of(Span::from_nanos(50_102)));
    assert_eq!(reading.status, Status::Synchronised);
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.server(), published.server);
    assert_eq!(snapshot.leap(), published.leap);
    assert_eq!(snapshot.count(), 1);
    assert_eq!(snapshot.reading_at(counter).unwrap(), reading);
}
