//! What a writer says is what a reader hears, with error figures never smaller.
#![cfg(not(loom))]

mod common;

use common::{EPOCH, HERTZ, REFERENCE, publication};
use ffclock_page::layout::{SLOT_WORDS, SLOTS, STRIDE, header, slot};
use ffclock_page::{
    CounterId, IntervalWay, Mark, PageError, PageMemory, Publication, ReadError, Reader, Snapshot, Verified,
    VoteCounts, VotedPart, Writer,
};
use ffclock_units::{
    Bound, Counter, CounterEpoch, GrowingBound, GrowthRate, LeapStep, MachineMark, Moment, Period, Rate, Reading, Span,
    StandardUncertainty, Status, Ticks, Utc,
};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

fn published(publication: &Publication) -> PageMemory {
    let page = PageMemory::new();
    Writer::open(&page, None).publish(publication);
    page
}

fn snapshot(publication: &Publication) -> Snapshot {
    Reader::new(published(publication).as_ref()).snapshot().expect("a whole page")
}

fn seconds(count: i64) -> Ticks {
    Ticks::from_raw(count * HERTZ as i64)
}

fn utc(seconds: i64) -> Moment<Utc> {
    Moment::from_origin(Span::from_secs(seconds))
}

#[test]
fn a_reading_is_the_line_through_the_reference() {
    let page = published(&publication());
    let reading = Reader::new(page.as_ref()).reading_at(REFERENCE + seconds(1), CounterId::Tsc).unwrap();
    let error = reading.time - utc(1_800_000_001);
    assert!(error.abs() < Span::from_nanos(1), "{error:?}");
    assert!(reading.bound >= Bound::of(Span::from_nanos(50_100)));
    assert!(reading.bound < Bound::of(Span::from_nanos(50_102)));
    assert_eq!(reading.status, Status::Synchronised);
}

#[test]
fn a_snapshot_says_what_was_published() {
    let published = publication();
    let snapshot = snapshot(&published);
    assert_eq!(snapshot.count(), 1);
    assert_eq!(snapshot.counter_id(), published.counter_id);
    assert_eq!(snapshot.epoch(), published.epoch);
    assert_eq!(snapshot.epoch_begin(), published.epoch_begin);
    assert_eq!(snapshot.valid_until(), published.valid_until);
    assert_eq!(snapshot.leap(), published.leap);
    assert_eq!(snapshot.server(), published.server);
    let estimate = snapshot.estimate().unwrap();
    assert!(estimate.bound >= published.estimate.bound);
    assert!(estimate.uncertainty >= published.estimate.uncertainty && estimate.noise >= published.estimate.noise);
    let rounded = ffclock_units::Estimate {
        bound: published.estimate.bound,
        uncertainty: published.estimate.uncertainty,
        noise: published.estimate.noise,
        ..estimate
    };
    assert_eq!(rounded, published.estimate);
}

#[test]
fn the_strict_bound_stands_beside_the_other_and_grows_on_its_own() {
    let page = PageMemory::new();
    let mut writer = Writer::open(&page, None);
    let counts = VoteCounts { deciders: 5, tolerated: 2, believed: 3 };
    let strict = GrowingBound { bound: Bound::of(Span::from_micros(700)), growth: GrowthRate::of(Rate::from_ppm(2.0)) };
    writer.publish_voted(&publication(), &VotedPart { strict, counts });
    let check = |snapshot: Snapshot| {
        assert_eq!(snapshot.vote(), Some(counts));
        for age in [-10, 0, 10] {
            let exact = strict.after(Span::from_secs(age));
            let bound = snapshot.strict_bound_at(REFERENCE + seconds(age));
            assert!(bound >= exact && bound.as_span() - exact.as_span() < Span::from_nanos(2), "{bound} {exact}");
            let reading = snapshot.reading_at(REFERENCE + seconds(age)).unwrap();
            let strict_reading = snapshot.strict_reading_at(REFERENCE + seconds(age)).unwrap();
            assert!(reading.bound < bound);
            assert_eq!(strict_reading, Reading { bound, ..reading });
        }
    };
    check(Reader::new(page.as_ref()).snapshot().unwrap());
    writer.retire(Status::Holdover);
    let retired = Reader::new(page.as_ref()).snapshot().unwrap();
    assert_eq!(retired.published_status(), Status::Holdover);
    check(retired);
}

#[test]
fn the_noise_stands_beside_the_uncertainty_and_grows_with_it() {
    let line = publication();
    let page = published(&line);
    let reader = Reader::new(page.as_ref());
    for age in [-10, 0, 10] {
        let at = reader.time_of(REFERENCE + seconds(age), EPOCH).unwrap();
        let exact = line.estimate.at(REFERENCE + seconds(age));
        let noise = at.noise.as_span() - exact.noise.as_span();
        let uncertainty = at.reading.uncertainty.as_span() - exact.uncertainty.as_span();
        for over in [noise, uncertainty] {
            assert!(!over.is_negative() && over < Span::from_nanos(2), "{over}");
        }
        assert_eq!(reader.voted_time_of(REFERENCE + seconds(age), EPOCH).unwrap().noise, at.noise);
    }
    let unknown = [StandardUncertainty::UNKNOWN, StandardUncertainty::of(Span::from_secs(256))];
    for noise in unknown {
        let mut vague = line;
        vague.estimate.noise = noise;
        let snapshot = snapshot(&vague);
        assert_eq!((snapshot.noise_at(REFERENCE), snapshot.critical_scale()), (StandardUncertainty::UNKNOWN, None));
    }
}

#[test]
fn a_clock_with_one_server_has_one_bound() {
    let snapshot = snapshot(&publication());
    assert_eq!(snapshot.vote(), Some(VoteCounts { deciders: 1, tolerated: 0, believed: 1 }));
    let reading = snapshot.reading_at(REFERENCE + seconds(7)).unwrap();
    assert_eq!(snapshot.strict_reading_at(REFERENCE + seconds(7)), Ok(reading));
}

/// What rests on another mark is withdrawn first, and a restarted writer that shows the same one withdraws nothing.
#[test]
fn a_page_shows_the_machine_that_its_publications_rest_on() {
    let page = published(&publication());
    let reader = Reader::new(page.as_ref());
    assert_eq!(reader.machine(), None);
    let mark = |disruption, generation| Some(MachineMark { disruption, generation });
    for (mark, status) in [
        (mark(7, None), Status::Synchronised),
        (mark(7, None), Status::Synchronised),
        (mark(8, None), Status::Unsynchronised),
        (None, Status::Unsynchronised),
        (mark(u64::MAX, None), Status::Synchronised),
        (None, Status::Unsynchronised),
        (mark(u64::MAX, Some(0)), Status::Synchronised),
        (mark(u64::MAX, Some(u64::MAX)), Status::Unsynchronised),
        (None, Status::Unsynchronised),
        // A daemon of this version after one of an earlier.
        (mark(7, None), Status::Synchronised),
        (mark(7, Some(3)), Status::Synchronised),
        (mark(7, None), Status::Unsynchronised),
    ] {
        let mut writer = Writer::open(&page, None);
        if reader.machine().is_none() {
            writer.publish(&publication());
        }
        writer.show_machine(mark);
        assert_eq!((reader.machine(), reader.snapshot().unwrap().published_status()), (mark, status));
    }
}

/// A writer of an earlier version goes on with the marker alone, and leaves the words of the generation as they are.
#[test]
fn a_generation_that_an_earlier_writer_left_behind_is_not_taken_for_its_own() {
    let page = published(&publication());
    let reader = Reader::new(page.as_ref());
    Writer::open(&page, None).show_machine(Some(MachineMark { disruption: 7, generation: Some(3) }));
    page.as_ref()[header::MACHINE].store(8, Ordering::Relaxed);
    assert_eq!(reader.machine(), Some(MachineMark::of_disruption(8)));
    // What readers of an earlier version look at is where it was.
    assert_eq!(header::MACHINE_WATCHED, 9);
    assert_eq!(page.as_ref()[header::MACHINE_WATCHED].load(Ordering::Relaxed), 1);
}

#[test]
fn before_the_epoch_there_is_neither_a_reading_nor_a_bound() {
    let snapshot = snapshot(&publication());
    let before = snapshot.epoch_begin() - Ticks::from_raw(1);
    assert_eq!(snapshot.reading_at(before), Err(ReadError::BeforeEpoch));
    assert_eq!(snapshot.strict_bound_at(before), Bound::UNKNOWN);
    assert!(snapshot.strict_bound_at(snapshot.epoch_begin()) < Bound::UNKNOWN);
}

/// An earlier version left the words about the vote as they were: 0.
#[test]
fn a_page_of_an_earlier_version_has_no_strict_bound() {
    let page = published(&publication());
    let slot_begin = SLOTS + STRIDE;
    (slot::BOUND_STRICT..SLOT_WORDS).for_each(|place| page.as_ref()[slot_begin + place].store(0, Ordering::Relaxed));
    let reader = Reader::new(page.as_ref());
    let earlier = reader.snapshot().unwrap();
    assert_eq!((earlier.vote(), earlier.strict_bound_at(REFERENCE)), (None, Bound::UNKNOWN));
    let estimate = earlier.estimate().unwrap();
    assert_eq!((earlier.critical_scale(), estimate.difference_uncertainty), (None, estimate.difference_bound));
    assert_eq!(estimate.noise, estimate.uncertainty, "all that it states is the noise");
    assert!(earlier.reading_at(REFERENCE).is_ok());
    Writer::open(&page, None).retire(Status::Holdover);
    let retired = reader.snapshot().unwrap();
    assert_eq!(retired.strict_bound_at(REFERENCE), Bound::UNKNOWN, "nothing is not no error");
    assert_eq!(retired.noise_at(REFERENCE), estimate.uncertainty);
    assert_eq!(retired.published_status(), Status::Holdover);
}

#[test]
fn a_missing_server_is_not_server_zero() {
    assert_eq!(snapshot(&Publication { server: None, ..publication() }).server(), None);
}

#[test]
fn a_stamp_before_the_reference_is_converted_with_a_growing_bound() {
    let snapshot = snapshot(&publication());
    let before = snapshot.reading_at(REFERENCE - seconds(5)).unwrap();
    let after = snapshot.reading_at(REFERENCE + seconds(5)).unwrap();
    assert!((before.time - utc(1_799_999_995)).abs() < Span::from_nanos(1));
    assert_eq!(before.bound, after.bound);
    assert_eq!(before.status, Status::Synchronised);
}

#[test]
fn a_stamp_from_before_the_epoch_is_refused() {
    let page = published(&publication());
    let reader = Reader::new(page.as_ref());
    let snapshot = reader.snapshot().unwrap();
    let (first, early) = (Counter::from_raw(1_000), Counter::from_raw(999));
    assert!(snapshot.reading_at(first).is_ok());
    assert_eq!(reader.reading_at(early, CounterId::Tsc), Err(ReadError::BeforeEpoch));
    assert_eq!(snapshot.elapsed(early, REFERENCE), Err(ReadError::BeforeEpoch));
    assert_eq!(snapshot.elapsed(REFERENCE, early), Err(ReadError::BeforeEpoch));
}

#[test]
fn a_stamp_of_another_epoch_or_counter_is_refused() {
    let page = published(&publication());
    let reader = Reader::new(page.as_ref());
    let mark = reader.mark().unwrap();
    assert_eq!(mark, Mark { counter_id: CounterId::Tsc, epoch: EPOCH });
    assert!(reader.reading_of(REFERENCE, mark.epoch).is_ok());
    assert_eq!(reader.reading_of(REFERENCE, CounterEpoch::from_raw(2)), Err(ReadError::OtherEpoch));
    let other_counter = ReadError::OtherCounter(CounterId::Tsc);
    assert_eq!(reader.reading_at(REFERENCE, CounterId::MonotonicRaw), Err(other_counter));
}

/// "Reading after valid until: the status is 1, whatever the slot says, and the reading is given with its grown bound."
#[test]
fn a_dead_writer_shows_in_the_status_and_the_bound_grows_on() {
    let publication = publication();
    let page = published(&publication);
    let reader = Reader::new(page.as_ref());
    let last = reader.reading_at(publication.valid_until, CounterId::Tsc).unwrap();
    let stale = reader.reading_at(publication.valid_until + seconds(1000), CounterId::Tsc).unwrap();
    assert_eq!((last.status, stale.status), (Status::Synchronised, Status::Unsynchronised));
    assert!(stale.bound >= last.bound + Bound::of(Span::from_micros(100)));
    let interval = reader.snapshot().unwrap().elapsed(REFERENCE, publication.valid_until + seconds(1)).unwrap();
    assert_eq!(interval.status, Status::Unsynchronised);
}

#[test]
fn an_interval_comes_from_the_difference_clock() {
    let snapshot = snapshot(&publication());
    let interval = snapshot.elapsed(REFERENCE, REFERENCE + seconds(10)).unwrap();
    let off = interval.span - Span::from_secs(10) - Span::from_micros(10);
    assert!(off.abs() < Span::from_nanos(1), "{off:?}");
    assert!(interval.bound >= Bound::of(Span::from_nanos(500)) && interval.bound < Bound::of(Span::from_nanos(501)));
    let back = snapshot.elapsed(REFERENCE + seconds(10), REFERENCE).unwrap();
    assert!((back.span + interval.span).abs() <= Span::from_units(1));
}

#[test]
fn utc_repeats_a_second_when_one_is_inserted() {
    let mut publication = publication();
    publication.leap = LeapStep { before: 37, after: 38, at: 1_800_000_042 };
    let page = published(&publication);
    let reader = Reader::new(page.as_ref());
    let just_after = |second| REFERENCE + seconds(second) + Ticks::from_raw(3);
    let at = |second| reader.reading_at(just_after(second), CounterId::Tsc).unwrap().time;
    let labels: Vec<i64> = (3..8).map(|second| at(second).whole_seconds() - 1_800_000_000).collect();
    assert_eq!(labels, [3, 4, 4, 5, 6]);
}

#[test]
fn an_unknown_bound_stays_unknown() {
    let mut publication = publication();
    publication.estimate.bound = Bound::UNKNOWN;
    publication.estimate.uncertainty_growth = GrowthRate::of(Rate::from_fraction(f64::NAN));
    let page = published(&publication);
    let reading = Reader::new(page.as_ref()).reading_at(REFERENCE + seconds(1), CounterId::Tsc).unwrap();
    assert_eq!((reading.bound, reading.uncertainty), (Bound::UNKNOWN, StandardUncertainty::UNKNOWN));
    assert!((reading.time - utc(1_800_000_001)).abs() < Span::from_nanos(1));
}

#[test]
fn an_interval_by_a_rate_of_unknown_error_has_no_bound() {
    let mut unknown = publication();
    unknown.estimate.difference_bound = GrowthRate::from_units(u64::MAX);
    unknown.estimate.bound = Bound::UNKNOWN;
    let page = published(&unknown);
    let reader = Reader::new(page.as_ref());
    let measure = |ticks| reader.elapsed_of([REFERENCE, REFERENCE + ticks], EPOCH).unwrap();
    for ticks in [Ticks::from_raw(0), Ticks::from_raw(1), seconds(1), seconds(5_000)] {
        assert_eq!(measure(ticks).bound, Bound::UNKNOWN, "{ticks:?}");
    }
    unknown.estimate.difference_uncertainty = unknown.estimate.difference_bound;
    unknown.estimate.noise = StandardUncertainty::UNKNOWN;
    let page = published(&unknown);
    let interval = Reader::new(page.as_ref()).elapsed_of([REFERENCE, REFERENCE + seconds(1)], EPOCH).unwrap();
    assert_eq!(interval.uncertainty, StandardUncertainty::UNKNOWN);
}

#[test]
fn a_retired_page_says_so() {
    let page = PageMemory::new();
    let mut writer = Writer::open(&page, None);
    let reader = Reader::new(page.as_ref());
    writer.retire(Status::Holdover);
    assert_eq!(reader.snapshot(), Err(PageError::Empty));
    writer.publish(&publication());
    writer.retire(Status::Holdover);
    assert_eq!(reader.reading_at(REFERENCE, CounterId::Tsc).map(|reading| reading.status), Ok(Status::Holdover));
    writer.retire(Status::Synchronised);
    assert_eq!(reader.snapshot().map(|snapshot| snapshot.published_status()), Ok(Status::Holdover));
    writer.retire(Status::Unsynchronised);
    assert_eq!(reader.reading_at(REFERENCE, CounterId::Tsc), Err(ReadError::NoEstimate));
    assert_eq!(reader.snapshot().unwrap().elapsed(REFERENCE, REFERENCE), Err(ReadError::NoEstimate));
    assert_eq!(reader.snapshot().unwrap().estimate(), None);
}

fn any_publication() -> impl Strategy<Value = Publication> {
    let clock = (any::<u64>(), 0i64..4_000_000_000, any::<u64>(), 1u64 << 63.., 0u8..60);
    let errors = (any::<[u64; 2]>(), any::<[u32; 2]>(), 0u32..40);
    let rest = (0i64..4_000_000_000, -1i64..1 << 50, 0u64..1 << 50);
    (clock, errors, rest).prop_map(|((counter, second, fraction, mantissa, shift), errors, (leap, valid, begun))| {
        let mut publication = publication();
        let estimate = &mut publication.estimate;
        estimate.counter = Counter::from_raw(counter);
        estimate.time = Moment::from_origin(Span::from_units((i128::from(second) << 64) | i128::from(fraction)));
        estimate.period = Period::from_parts(mantissa, shift).expect("a period");
        let ([bound, uncertainty], [growth, slower], scale) = errors;
        estimate.bound = Bound::of(Span::from_units(i128::from(bound) << scale));
        estimate.uncertainty = StandardUncertainty::of(Span::from_units(i128::from(uncertainty)));
        estimate.bound_growth = GrowthRate::from_units(u64::from(growth) << (scale % 32));
        estimate.uncertainty_growth = GrowthRate::from_units(slower.into());
        publication.leap = LeapStep { before: 36, after: 37, at: leap };
        publication.valid_until = estimate.counter + Ticks::from_raw(valid);
        publication.epoch_begin = Counter::from_raw(counter.wrapping_sub(begun));
        publication
    })
}

/// Often within the window, sometimes far outside it.
fn any_age() -> impl Strategy<Value = i64> {
    prop_oneof![0i64..1 << 40, -(1i64 << 50)..1 << 56]
}

/// The reading as the units alone would make it.
fn expected(publication: &Publication, counter: Counter) -> Reading {
    let estimate = &publication.estimate;
    let age = estimate.period * (counter - estimate.counter);
    let tai = estimate.time + age;
    let leap = publication.leap;
    let offset = if tai.whole_seconds() < leap.at { leap.before } else { leap.after };
    Reading {
        time: Moment::from_origin(tai.since_origin() - Span::from_secs(offset.into())),
        uncertainty: estimate.uncertainty.grown(age, estimate.uncertainty_growth),
        bound: estimate.bound.grown(age, estimate.bound_growth),
        status: if counter.is_after(publication.valid_until) { Status::Unsynchronised } else { estimate.status },
    }
}

proptest! {
    #[test]
    fn readings_agree_with_exact_arithmetic(publication in any_publication(), age in any_age()) {
        let page = published(&publication);
        let reader = Reader::new(page.as_ref());
        let counter = publication.estimate.counter + Ticks::from_raw(age);
        let reading = reader.reading_of(counter, EPOCH);
        let snapshot = reader.snapshot().unwrap();
        prop_assert_eq!(reading, snapshot.reading_at(counter), "the short way and the long way");
        let verified = Verified::none();
        prop_assert_eq!(reader.plain_reading(&verified, || counter), None, "nothing is verified");
        prop_assert!(reader.verify(CounterId::Tsc, &verified).is_ok());
        if let Some(plain) = reader.plain_reading(&verified, || counter) {
            prop_assert_eq!(Ok(plain), reading, "the shortest way");
        }
        let from = publication.estimate.counter;
        let (interval, by_difference) = (reader.elapsed_of([from, counter], EPOCH), snapshot.elapsed(from, counter));
        prop_assert_eq!(interval.err(), by_difference.err());
        if let (Ok(interval), Ok(by_difference)) = (interval, by_difference) {
            prop_assert!(interval.uncertainty <= by_difference.uncertainty);
            prop_assert!(interval.way == IntervalWay::Absolute || interval.span == by_difference.span);
        }
        if publication.epoch_begin.is_after(counter) {
            prop_assert_eq!(reading, Err(ReadError::BeforeEpoch));
            return Ok(());
        }
        let (reading, expected) = (reading.unwrap(), expected(&publication, counter));
        prop_assert_eq!(reading.time, expected.time);
        prop_assert_eq!(reading.status, expected.status);
        // A rounded error may lose the exact one's last unit of 2^-64 s, which its own rounding added.
        let slack = Span::from_units(2);
        prop_assert!(reading.bound.as_span() + slack >= expected.bound.as_span());
        prop_assert!(reading.uncertainty.as_span() + slack >= expected.uncertainty.as_span());
        if reading.bound != Bound::UNKNOWN {
            let excess = reading.bound.as_span() - expected.bound.as_span();
            let ticks = Span::from_units(i128::from(age.unsigned_abs() >> 32));
            prop_assert!(excess <= Span::from_units(4 << 32) + ticks, "{:?}", excess);
        }
    }
}
