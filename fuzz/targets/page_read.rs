//! Pages from a writer that publishes anything, and pages of any words: each read gives a reading or a reason. On an
//! undamaged page, the quick ways to a reading give the same result as the careful one. Histories of any lines, and
//! damaged ones, give a time or none.
#![no_main]

use ffclock_page::layout::history::{ENTRIES, ENTRY_WORDS, HISTORY_WORDS};
use ffclock_page::layout::{self, PAGE_WORDS};
use ffclock_page::words::{self, PageMemory};
use ffclock_page::{
    CounterId, HistoryWords, HistoryWriter, IntervalWay, PageError, Publication, ReadError, Reader, Verified, Writer,
    check_history,
};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, Moment, Period, ServerIdentity, Span,
    StandardUncertainty, Status, Tai, Ticks,
};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, LazyLock};

const STATUSES: [Status; 4] = [Status::Unsynchronised, Status::WarmingUp, Status::Holdover, Status::Synchronised];
/// An epoch has 56 bits in a page.
const EPOCH_MAX: u64 = (1 << 56) - 1;
/// Half a turn of the counter, where before and after become the same; 48 years at 3 GHz are far enough.
const DISTANCE_MAX: i64 = 1 << 62;

fn counter(input: &mut Unstructured<'_>) -> Result<Counter> {
    Ok(Counter::from_raw(input.arbitrary()?))
}

/// A plausible moment most of the time, otherwise any within a billion years. Beyond that, times saturate.
fn moment(input: &mut Unstructured<'_>) -> Result<Moment<Tai>> {
    let units: i128 = input.arbitrary()?;
    let is_wild = input.ratio(1_u8, 8_u8)?;
    Ok(Moment::from_origin(Span::from_units(units >> if is_wild { 8 } else { 32 })))
}

fn bound(input: &mut Unstructured<'_>) -> Result<Bound> {
    Ok(Bound::of(Span::from_units(input.arbitrary::<i128>()? >> input.int_in_range(0..=127_u32)?)))
}

fn growth(input: &mut Unstructured<'_>) -> Result<GrowthRate> {
    Ok(GrowthRate::from_units(input.arbitrary::<u64>()? >> input.int_in_range(0..=63_u32)?))
}

fn period(input: &mut Unstructured<'_>) -> Result<Period> {
    let (mantissa, shift) = (input.arbitrary::<u64>()? | 1 << 63, input.int_in_range(0..=59_u8)?);
    Ok(Period::from_parts(mantissa, shift).expect("the top bit is set and the shift below 60"))
}

/// The distance from the beginning of the epoch to an estimate, or the time for which the estimate is valid.
fn distance(input: &mut Unstructured<'_>) -> Result<Ticks> {
    let shift = input.int_in_range(0..=62_u32)?;
    Ok(Ticks::from_raw(input.int_in_range(0..=DISTANCE_MAX)? >> shift))
}

fn publication(input: &mut Unstructured<'_>) -> Result<Publication> {
    let estimate = Estimate {
        counter: counter(input)?,
        time: moment(input)?,
        period: period(input)?,
        uncertainty: StandardUncertainty::of(bound(input)?.as_span()),
        noise: StandardUncertainty::of(bound(input)?.as_span()),
        uncertainty_growth: growth(input)?,
        bound: bound(input)?,
        bound_growth: growth(input)?,
        difference_period: period(input)?,
        difference_bound: growth(input)?,
        difference_uncertainty: growth(input)?,
        status: *input.choose(&STATUSES)?,
    };
    Ok(Publication {
        counter_id: *input.choose(&[CounterId::Tsc, CounterId::MonotonicRaw])?,
        epoch: CounterEpoch::from_raw(input.int_in_range(0..=EPOCH_MAX)?),
        epoch_begin: estimate.counter - distance(input)?,
        estimate,
        leap: LeapStep { before: input.arbitrary()?, after: input.arbitrary()?, at: input.arbitrary()? },
        valid_until: estimate.counter + distance(input)?,
        server: input
            .arbitrary::<Option<(u8, u32)>>()?
            .map(|(stratum, reference_id)| ServerIdentity { stratum, reference_id }),
    })
}

/// Every kind of reading must give the same result after a writer has published `published`.
fn agree(reader: Reader<'_>, published: &Publication, counters: [Counter; 2]) {
    let [first, second] = counters;
    let snapshot = reader.snapshot().expect("a writer leaves a whole page");
    assert_eq!((snapshot.counter_id(), snapshot.epoch()), (published.counter_id, published.epoch));
    let careful = snapshot.reading_at(first);
    assert_eq!(reader.reading_at(first, published.counter_id), careful);
    assert_eq!(reader.reading_of(first, published.epoch), careful);
    let (interval, by_difference) = (reader.elapsed_of(counters, published.epoch), snapshot.elapsed(first, second));
    assert_eq!(interval.err(), by_difference.err());
    if let (Ok(interval), Ok(by_difference)) = (interval, by_difference) {
        assert!(interval.uncertainty <= by_difference.uncertainty);
        assert!(interval.way == IntervalWay::Absolute || interval.span == by_difference.span);
    }
    assert_eq!(reader.reading_at(first, CounterId::ArmVirtual), Err(ReadError::OtherCounter(published.counter_id)));
    let verified = Verified::none();
    reader.verify(published.counter_id, &verified).expect("a writer leaves a whole page");
    if let Some(quick) = reader.plain_reading(&verified, || first) {
        assert_eq!(Ok(quick), careful);
    }
    if let (Ok(reading), Bound::UNKNOWN) = (careful, published.estimate.bound) {
        assert_eq!(reading.bound, Bound::UNKNOWN, "an unknown bound stays unknown");
    }
}

/// Reading any words ends, and a page with a wrong check word gives no reading.
fn endure(reader: Reader<'_>, counters: [Counter; 2]) {
    let [first, second] = counters;
    let epoch = reader.mark().map_or(CounterEpoch::from_raw(1), |mark| mark.epoch);
    let header = reader.check_header(None);
    assert!(header != Err(PageError::OtherBoot));
    let readings = [reader.reading_at(first, CounterId::Tsc), reader.reading_of(second, epoch)];
    let _ = reader.elapsed_of(counters, epoch);
    if let Ok(snapshot) = reader.snapshot() {
        let _ = (snapshot.reading_at(first), snapshot.tai_at(second), snapshot.elapsed(second, first), snapshot.leap());
        let _ = snapshot.status_at(first);
    } else {
        assert!(readings[0].is_err());
    }
}

/// A history of zeros, made once: its writer voids what an earlier input left.
fn history() -> &'static Arc<HistoryWords> {
    static HISTORY: LazyLock<Arc<HistoryWords>> = LazyLock::new(|| {
        let words: Arc<[words::AtomicU64]> = (0..HISTORY_WORDS).map(|_| words::AtomicU64::new(0)).collect();
        words.try_into().expect("the size of a history")
    });
    &HISTORY
}

/// Lines of one epoch and then any words: a stamp has a time by the history or by the page, never a panic, and an entry
/// that is damaged changes nothing that its check word covers.
fn remember(input: &mut Unstructured<'_>) -> Result<()> {
    let memory = PageMemory::new();
    let (mut writer, mut past) = (Writer::open(&memory, None), HistoryWriter::open(history().clone(), None));
    let mut published = publication(input)?;
    for _ in 0..input.int_in_range(1..=6_u8)? {
        past.keep(&published);
        writer.publish(&published);
        let reader = Reader::new(memory.as_ref()).with_history(Some(history()));
        let stamps = [published.estimate.counter - distance(input)?, counter(input)?];
        for stamp in stamps {
            assert_eq!(
                reader.reading_of(stamp, published.epoch),
                reader.time_of(stamp, published.epoch).map(|time| time.reading)
            );
        }
        let _ = reader.elapsed_of(stamps, published.epoch);
        let later = publication(input)?.estimate;
        published.estimate = Estimate { counter: published.estimate.counter + distance(input)?, ..later };
    }
    for _ in 0..input.int_in_range(0..=16_u8)? {
        let entry = input.int_in_range(0..=(HISTORY_WORDS - ENTRIES) / ENTRY_WORDS - 1)?;
        let place = ENTRIES + entry * ENTRY_WORDS + input.int_in_range(0..=ENTRY_WORDS - 1)?;
        words::store(history(), place, input.arbitrary()?);
    }
    let reader = Reader::new(memory.as_ref()).with_history(Some(history()));
    let _ = (reader.time_of(counter(input)?, published.epoch), check_history(history(), None));
    Ok(())
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let memory = PageMemory::new();
    let counters = [counter(input)?, counter(input)?];
    let mut writer = Writer::open(memory, None);
    for _ in 0..input.int_in_range(0..=3_u8)? {
        let published = publication(input)?;
        writer.publish(&published);
        let near = [published.estimate.counter + (counters[0] - Counter::from_raw(0)).halved(), counters[1]];
        agree(Reader::new(writer.memory().as_ref()), &published, counters);
        agree(Reader::new(writer.memory().as_ref()), &published, near);
    }
    for _ in 0..input.int_in_range(0..=64_u8)? {
        let place = input.int_in_range(0..=layout::SLOTS + 2 * layout::STRIDE)?.min(PAGE_WORDS - 1);
        words::store(writer.memory().as_ref(), place, input.arbitrary()?);
    }
    endure(Reader::new(writer.memory().as_ref()), counters);
    writer.retire(Status::Holdover);
    endure(Reader::new(writer.memory().as_ref()), counters);
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input).and_then(|()| remember(&mut input));
});
