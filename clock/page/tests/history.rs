//! Old stamps: by the history they are converted within bounds that hold, wherever the rings wrap, writers die or the
//! epoch ends.
#![cfg(not(loom))]

mod common;

use common::{EPOCH, HERTZ, publication};
use ffclock_page::layout::history::{COARSE_ENTRIES, ENTRIES, ENTRY_WORDS, FINE_ENTRIES, HISTORY_WORDS, entry, header};
use ffclock_page::words::{self, AtomicU64};
use ffclock_page::{
    BootId, HistoryWords, HistoryWriter, IntervalWay, PageError, PageMemory, Publication, ReadError, Reader, StampTime,
    Writer, check_history,
};
use ffclock_units::{
    Bound, Counter, GrowthRate, LeapStep, Moment, Period, Rate, Span, StandardUncertainty, Status, Tai, Ticks,
};
use proptest::prelude::*;
use std::rc::Rc;

const BEGIN: Counter = Counter::from_raw(1_000);
/// The rate may move by this from line to line, and the bound grows by it.
const WANDER_PPM: f64 = 0.5;

fn history() -> Rc<HistoryWords> {
    let words: Vec<AtomicU64> = (0..HISTORY_WORDS).map(|_| AtomicU64::new(0)).collect();
    let words: Rc<[AtomicU64]> = words.into();
    words.try_into().expect("the size of a history")
}

/// A page with its history, as a daemon writes them and a reader has them.
struct Clock {
    page: PageMemory,
    words: Rc<HistoryWords>,
}

/// A writer of both.
struct Daemon<'a> {
    writer: Writer<&'a PageMemory>,
    history: HistoryWriter<Rc<HistoryWords>>,
}

impl Clock {
    fn new() -> Self {
        Clock { page: PageMemory::new(), words: history() }
    }

    fn daemon(&self) -> Daemon<'_> {
        let boot = BootId::from_bits(7);
        Daemon { writer: Writer::open(&self.page, boot), history: HistoryWriter::open(self.words.clone(), boot) }
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(self.page.as_ref()).with_history(Some(&self.words))
    }

    fn at(&self, counter: Counter) -> StampTime {
        let time = self.reader().time_of(counter, EPOCH).expect("a time");
        assert_eq!(self.reader().reading_of(counter, EPOCH), Ok(time.reading));
        time
    }
}

impl Daemon<'_> {
    fn publish(&mut self, publication: &Publication) {
        self.history.keep(publication);
        self.writer.publish(publication);
    }
}

fn after(seconds: f64) -> Counter {
    BEGIN + Ticks::from_raw((seconds * HERTZ as f64) as i64)
}

/// A counter whose rate goes to and fro within the wander, with a period of 2000 s.
fn truth(counter: Counter) -> Moment<Tai> {
    let seconds = (counter - BEGIN).as_f64() / HERTZ as f64;
    let slow = 2.0 * core::f64::consts::PI / 2_000.0;
    let wave = 0.4e-6 / slow * (slow * seconds).sin();
    Moment::from_origin(Span::from_secs(1_800_000_037) + Span::from_seconds(seconds) + Span::from_seconds(wave))
}

/// The line of a clock that is off by `error_us` at that second, within a bound of 20 us.
fn line(seconds: f64, error_us: f64) -> Publication {
    let mut publication = publication();
    let estimate = &mut publication.estimate;
    estimate.counter = after(seconds);
    estimate.time = truth(estimate.counter) + Span::from_seconds(error_us * 1e-6);
    estimate.bound = Bound::of(Span::from_micros(20));
    estimate.bound_growth = GrowthRate::of(Rate::from_ppm(WANDER_PPM));
    estimate.uncertainty = StandardUncertainty::of(Span::from_micros(15));
    estimate.noise = StandardUncertainty::of(Span::from_micros(2));
    publication.epoch_begin = BEGIN;
    publication.valid_until = estimate.counter + Ticks::from_raw(1000 * HERTZ as i64);
    publication
}

/// The size of the error at that second.
fn error(clock: &Clock, seconds: f64) -> Bound {
    Bound::of(clock.at(after(seconds)).tai - truth(after(seconds)))
}

#[test]
fn an_old_stamp_is_converted_by_the_lines_around_it() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..=300).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), f64::from(poll % 5) - 2.0)));
    let without = Reader::new(clock.page.as_ref());
    for seconds in [100.0, 1_000.5, 3_333.3, 4_700.0] {
        let time = clock.at(after(seconds));
        assert!(error(&clock, seconds) <= Bound::of(Span::from_micros(3)), "{seconds}");
        assert!(time.reading.bound < Bound::of(Span::from_micros(29)), "{seconds}: {:?}", time.reading.bound);
        assert!((2..3).contains(&(time.noise.as_nanos_up() / 1_000)), "{:?}", time.noise);
        assert!((15..16).contains(&(time.reading.uncertainty.as_nanos_up() / 1_000)), "{:?}", time.reading);
        assert!(without.reading_of(after(seconds), EPOCH).unwrap().bound > time.reading.bound);
        assert_eq!(time.reading.time.since_origin() + Span::from_secs(37), time.tai.since_origin());
    }
}

/// Lines that proved false convert nothing any more, and what comes after them is kept.
#[test]
fn what_proved_false_is_forgotten() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..=100).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 1_000.0)));
    assert!(error(&clock, 800.5) > Bound::of(Span::from_micros(900)));
    daemon.history.clear();
    (101..=200).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let time = clock.at(after(800.5));
    assert!(error(&clock, 800.5) <= time.reading.bound, "by the lines after it: {:?}", time.reading.bound);
    assert!(error(&clock, 2_000.5) <= Bound::of(Span::from_micros(3)));
}

/// Signs of life for longer than half of the counter's range make no segment that ends before it begins.
#[test]
fn lines_may_be_as_far_apart_as_the_counter_reaches() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    let mut publication = line(16.0, 0.0);
    for _ in 0..12 {
        daemon.publish(&publication);
        let line = publication.estimate;
        let newest = clock.reader().time_of(line.counter, EPOCH).map(|time| time.tai);
        assert!(newest.is_err() || newest == Ok(line.time), "{newest:?}");
        publication.estimate = line.carried_to(line.counter + Ticks::from_raw(1 << 61));
        publication.valid_until = publication.estimate.counter + Ticks::from_raw(1_000);
    }
}

/// An earlier version left the word of the noise at 0, and its uncertainty was the noise.
#[test]
fn an_entry_of_an_earlier_version_has_one_uncertainty() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..=20).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let before = clock.at(after(100.0));
    assert!(before.noise < before.reading.uncertainty);
    for place in (ENTRIES..HISTORY_WORDS).step_by(ENTRY_WORDS) {
        let [noise, check] = [entry::NOISE, entry::CHECK].map(|word| words::load(&clock.words, place + word));
        words::store(&clock.words, place + entry::CHECK, check.wrapping_sub(noise));
        words::store(&clock.words, place + entry::NOISE, 0);
    }
    let earlier = clock.at(after(100.0));
    assert_eq!((earlier.reading, earlier.noise), (before.reading, before.reading.uncertainty));
}

#[test]
fn what_was_before_the_first_line_is_converted_by_it() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..20).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let time = clock.at(after(2.0));
    assert!(time.reading.bound >= Bound::of(Span::from_micros(27)) && error(&clock, 2.0) <= time.reading.bound);
    assert!(time.reading.bound < Bound::of(Span::from_micros(28)));
    let early = BEGIN - Ticks::from_raw(1);
    assert_eq!(clock.reader().reading_of(early, EPOCH), Err(ReadError::BeforeEpoch));
}

/// "The fine ring has every line of the last hour, the coarse one those of a day."
#[test]
fn a_day_of_lines_of_each_second_is_kept_and_thinned() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    let end = 100_000;
    (1..=end).for_each(|second| daemon.publish(&line(f64::from(second), 0.0)));
    let bound = |age: f64| clock.at(after(f64::from(end) - age)).reading.bound;
    let micros = |count| Bound::of(Span::from_micros(count));
    assert!(bound(1_000.5) < micros(21) && bound(3_600.0) < micros(21), "every line: half a second away at most");
    // Two lines of the coarse ring are at most 90 s apart: one grows for 45 s.
    for age in [5_000.0, 40_000.0, 86_400.0, 91_000.0] {
        assert!(bound(age) < micros(66) && bound(age) > micros(20), "{age}: {:?}", bound(age));
        assert!(error(&clock, f64::from(end) - age) < micros(2), "thinned by less than 2 us");
    }
    assert!(bound(99_000.0) > micros(10_000), "beyond the history only the newest line is left");
}

#[test]
fn a_gap_is_bridged_from_both_sides() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..10).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let last = line(144.0, 0.0);
    // Signs of life without news, some at a later counter reading.
    for heartbeat in 1..200 {
        let counter = after(144.0 + 20.0 * f64::from(heartbeat));
        let at = last.estimate.at(counter);
        let mut carried = last;
        carried.estimate.counter = counter;
        (carried.estimate.time, carried.estimate.bound) = (at.time, at.bound);
        (carried.estimate.uncertainty, carried.estimate.noise) = (at.uncertainty, at.noise);
        carried.estimate.status = Status::Holdover;
        daemon.publish(&carried);
    }
    daemon.publish(&line(4_144.0, 0.0));
    daemon.publish(&line(4_160.0, 0.0));
    let (near_begin, middle, near_end) = (clock.at(after(244.0)), clock.at(after(2_144.0)), clock.at(after(4_044.0)));
    assert!(near_begin.reading.bound < Bound::of(Span::from_micros(140)));
    assert!(near_end.reading.bound < Bound::of(Span::from_micros(140)), "{:?}", near_end.reading.bound);
    assert!(middle.reading.bound > Bound::of(Span::from_micros(1_000)));
    for seconds in [244.0, 1_000.0, 2_144.0, 3_000.0, 4_044.0] {
        assert!(error(&clock, seconds) <= clock.at(after(seconds)).reading.bound, "{seconds}");
    }
}

/// Lines of which one must be wrong: the bound covers both.
#[test]
fn lines_that_contradict_each_other_are_both_covered() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..10).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    (10..20).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 150_000.0)));
    for seconds in [145.0, 152.0, 159.0] {
        let bound = clock.at(after(seconds)).reading.bound;
        for right in [0, 150_000] {
            let truth = truth(after(seconds)) + Span::from_micros(right);
            assert!(Bound::of(clock.at(after(seconds)).tai - truth) <= bound, "{seconds} {right}");
        }
    }
    assert!(clock.at(after(130.0)).reading.bound < Bound::of(Span::from_micros(30)));
    assert!(clock.at(after(170.0)).reading.bound < Bound::of(Span::from_micros(30)));
}

#[test]
fn the_history_of_another_epoch_converts_nothing() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..100).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let stamp = after(800.0);
    assert!(clock.reader().reading_of(stamp, EPOCH).is_ok());
    let mut next = line(1_600.0, 0.0);
    next.epoch = EPOCH.next();
    next.epoch_begin = after(1_590.0);
    // The history first, as a daemon does, and then killed: the page still speaks of the old epoch.
    daemon.history.keep(&next);
    let by_page = Reader::new(clock.page.as_ref()).reading_of(stamp, EPOCH);
    assert_eq!(clock.reader().reading_of(stamp, EPOCH), by_page);
    daemon.writer.retire(Status::Unsynchronised);
    assert_eq!(clock.reader().reading_of(stamp, EPOCH), Err(ReadError::NoEstimate));
    daemon.publish(&next);
    assert_eq!(clock.reader().reading_of(stamp, EPOCH), Err(ReadError::OtherEpoch));
    assert_eq!(clock.reader().reading_of(stamp, EPOCH.next()), Err(ReadError::BeforeEpoch));
}

/// Entries that were left by an epoch of the same number, of which the page knows nothing.
#[test]
fn an_epoch_of_the_same_number_is_another_one() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..100).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let other = PageMemory::new();
    let mut next = line(1_600.0, 0.0);
    next.epoch_begin = after(10.0);
    Writer::open(&other, None).publish(&next);
    let (with, without) = (Reader::new(other.as_ref()).with_history(Some(&clock.words)), Reader::new(other.as_ref()));
    assert_eq!(with.reading_of(after(800.0), EPOCH), without.reading_of(after(800.0), EPOCH));
}

#[test]
fn a_restarted_daemon_keeps_its_history_until_it_has_a_time() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..100).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let before = clock.at(after(800.0));
    daemon.writer.retire(Status::Holdover);
    drop(daemon);
    let mut daemon = clock.daemon();
    assert_eq!(clock.at(after(800.0)), before);
    let mut next = line(1_700.0, 0.0);
    (next.epoch, next.epoch_begin) = (EPOCH.next(), after(1_650.0));
    daemon.publish(&next);
    assert_eq!(clock.reader().reading_of(after(800.0), EPOCH), Err(ReadError::OtherEpoch));
    assert!(clock.reader().reading_of(after(1_660.0), EPOCH.next()).is_ok());
}

#[test]
fn what_is_no_history_is_refused_with_the_reason() {
    let changed = |place, value| {
        let words = history();
        let _ = HistoryWriter::open(words.clone(), BootId::from_bits(7));
        words::store(&words, place, value);
        check_history(&words, BootId::from_bits(7))
    };
    assert_eq!(changed(ENTRIES, 0), Ok(()));
    assert_eq!(changed(header::MAGIC, 0), Err(PageError::NotAPage));
    assert_eq!(changed(header::VERSION, 9), Err(PageError::Version(9)));
    assert_eq!(changed(header::SIZE, 4096), Err(PageError::Size(4096)));
    assert_eq!(changed(header::BOOT_LOW, 5), Err(PageError::Corrupt));
    let words = history();
    let _ = HistoryWriter::open(words.clone(), BootId::from_bits(8));
    assert_eq!(check_history(&words, BootId::from_bits(7)), Err(PageError::OtherBoot));
}

/// The places of all entries that hold something.
fn entries(clock: &Clock) -> impl Iterator<Item = usize> {
    let places = (0..FINE_ENTRIES + COARSE_ENTRIES).map(|number| ENTRIES + number * ENTRY_WORDS);
    places.filter(|place| words::load(&clock.words, *place) != 0)
}

/// A writer killed after any of its stores leaves an entry that is not used, and the next one writes it again.
#[test]
fn a_writer_killed_in_the_middle_of_an_entry_is_harmless() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..=40).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let stamp = after(333.0);
    let by_page = Reader::new(clock.page.as_ref()).reading_of(stamp, EPOCH).unwrap();
    let all: Vec<usize> = entries(&clock).collect();
    for stores in 1..ENTRY_WORDS {
        for place in &all {
            words::store(&clock.words, *place, words::load(&clock.words, *place) | 1);
            (1..stores).for_each(|word| words::store(&clock.words, place + word, 0xdead));
        }
        assert_eq!(clock.reader().reading_of(stamp, EPOCH), Ok(by_page), "{stores}");
    }
    (41..=60).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    assert!(clock.at(after(900.0)).reading.bound < Bound::of(Span::from_micros(29)));
}

#[test]
fn a_flipped_bit_of_an_entry_is_found() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    (1..=40).for_each(|poll| daemon.publish(&line(16.0 * f64::from(poll), 0.0)));
    let stamp = after(333.0);
    let right = clock.at(stamp).reading;
    let by_page = Reader::new(clock.page.as_ref()).reading_of(stamp, EPOCH).unwrap();
    let holding: Vec<usize> = entries(&clock)
        .filter(|place| {
            let begin = Counter::from_raw(words::load(&clock.words, place + entry::BEGIN));
            stamp.is_after(begin) && (stamp - begin).raw() as u64 <= words::load(&clock.words, place + entry::TICKS)
        })
        .collect();
    assert!(holding.len() > 10);
    for word in 0..ENTRY_WORDS {
        for bit in 0..64 {
            let flip = || {
                holding.iter().for_each(|place| {
                    words::store(&clock.words, place + word, words::load(&clock.words, place + word) ^ (1 << bit));
                });
            };
            flip();
            let reading = clock.reader().reading_of(stamp, EPOCH).unwrap();
            assert!(reading == by_page || reading == right, "word {word} bit {bit}: {reading:?}");
            flip();
        }
    }
}

#[test]
fn a_leap_second_in_the_past_is_a_step_of_utc_there() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    let leap = LeapStep { before: 37, after: 38, at: 1_800_000_037 + 500 };
    for poll in 1..=100 {
        let mut published = line(16.0 * f64::from(poll), 0.0);
        published.leap = leap;
        daemon.publish(&published);
    }
    let label = |seconds: f64| clock.at(after(seconds)).reading.time.whole_seconds() - 1_800_000_000;
    assert_eq!([498.5, 499.5, 500.5, 501.5, 502.5].map(label), [498, 499, 499, 500, 501]);
}

#[test]
fn an_interval_is_measured_by_the_better_clock() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    for poll in 1..=600 {
        let mut published = line(16.0 * f64::from(poll), 0.0);
        published.estimate.difference_period = Period::from_hertz(HERTZ as f64).unwrap();
        published.estimate.difference_uncertainty = GrowthRate::of(Rate::from_ppb(20.0));
        published.estimate.difference_bound = GrowthRate::of(Rate::from_ppm(WANDER_PPM));
        daemon.publish(&published);
    }
    let reader = clock.reader();
    let measure = |from: f64, to: f64| reader.elapsed_of([after(from), after(to)], EPOCH).unwrap();
    // A noise of 2 us at each end, 20 ns/s: they cross at 141 s, whatever is common to both ends.
    let critical = reader.snapshot().unwrap().critical_scale().unwrap();
    assert!((critical - Span::from_seconds(141.42)).abs() < Span::from_millis(50), "{critical}");
    for (from, to, way) in [
        (9_590.0, 9_590.001, IntervalWay::Difference),
        (9_500.0, 9_600.0, IntervalWay::Difference),
        (9_400.0, 9_600.0, IntervalWay::Absolute),
        (600.0, 9_600.0, IntervalWay::Absolute),
        (9_600.0, 600.0, IntervalWay::Absolute),
        (3_000.0, 3_001.0, IntervalWay::Difference),
    ] {
        let interval = measure(from, to);
        assert_eq!(interval.way, way, "{from} {to}");
        let lasted = truth(after(to)) - truth(after(from));
        assert!(Bound::of(interval.span - lasted) <= interval.bound, "{from} {to}");
        assert!(interval.uncertainty <= StandardUncertainty::of(Span::from_nanos(3_000)), "{:?}", interval.uncertainty);
        assert!(interval.bound <= Bound::of(Span::from_micros(58)), "{:?}", interval.bound);
    }
    let (there, back) = (measure(600.0, 9_600.0), measure(9_600.0, 600.0));
    assert_eq!((there.span + back.span, there.bound), (Span::ZERO, back.bound));
}

/// The period is that of the recent past: the longer ago an interval was, the less is known of the rate then. Within
/// the history two conversions know it better, and beyond it nothing does.
#[test]
fn the_longer_ago_an_interval_was_the_more_uncertain_it_is() {
    let clock = Clock::new();
    let mut daemon = clock.daemon();
    let mut now = line(400_000.0, 0.0);
    now.estimate.difference_uncertainty = GrowthRate::of(Rate::from_ppb(5.0));
    now.estimate.uncertainty_growth = GrowthRate::of(Rate::from_ppb(20.0));
    daemon.publish(&now);
    let reader = Reader::new(clock.page.as_ref());
    let relative = |age: f64| {
        let end = 400_000.0 - age;
        let interval = reader.elapsed_of([after(end - 1.0), after(end)], EPOCH).unwrap();
        let back = reader.elapsed_of([after(end), after(end - 1.0)], EPOCH).unwrap();
        assert_eq!((interval.uncertainty, interval.way), (back.uncertainty, IntervalWay::Difference), "{age}");
        interval.uncertainty.as_seconds() * 1e9
    };
    for (age, ppb) in [
        (-500.0, 5.0),
        (0.0, 5.0),
        (50.0, 5.0),
        // From here on sqrt(5^2 + 3 20^2 age / 1 h).
        (3_600.0, 35.0),
        (14_400.0, 69.5),
        (360_000.0, 346.4),
    ] {
        assert!((relative(age) - ppb).abs() < 0.1, "{age}: {}", relative(age));
    }
}

/// Polls of any length and jitter, lines wrong within their bounds, and stamps of any age.
fn any_world() -> impl Strategy<Value = (Vec<(f64, f64)>, Vec<f64>)> {
    let line = (prop_oneof![0.1f64..3.0, 10.0..20.0, 500.0..1_100.0], -19.0f64..19.0);
    (prop::collection::vec(line, 1..300), prop::collection::vec(0.0f64..1.0, 20))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn the_truth_lies_within_the_bound_of_every_old_stamp((lines, stamps) in any_world()) {
        let clock = Clock::new();
        let mut daemon = clock.daemon();
        let mut now = 0.0;
        for (poll, off) in lines {
            now += poll;
            let mut published = line(now, off);
            // What is measured with such errors has a rate that is wrong by this.
            published.estimate.period = published.estimate.period.stretched(Rate::from_ppb(off * 5.0));
            published.estimate.bound_growth = GrowthRate::of(Rate::from_ppm(WANDER_PPM));
            daemon.publish(&published);
        }
        for part in stamps {
            let counter = after(part * now);
            let time = clock.at(counter);
            prop_assert!(Bound::of(time.tai - truth(counter)) <= time.reading.bound, "{} of {now}", part * now);
        }
    }

    #[test]
    fn random_histories_never_panic_and_never_convert(
        noise in prop::collection::vec((0..HISTORY_WORDS, any::<u64>()), 0..2_000),
        counter in any::<u64>(),
        scale in any::<[u64; 3]>(),
    ) {
        let clock = Clock::new();
        Writer::open(&clock.page, None).publish(&line(5_000.0, 0.0));
        noise.into_iter().for_each(|(place, word)| words::store(&clock.words, place, word));
        (0..3).for_each(|place| words::store(&clock.words, header::ORIGIN + place, scale[place]));
        let counter = Counter::from_raw(counter);
        let by_page = Reader::new(clock.page.as_ref()).reading_of(counter, EPOCH);
        prop_assert_eq!(clock.reader().reading_of(counter, EPOCH), by_page);
        let _ = clock.reader().elapsed_of([counter, BEGIN], EPOCH);
    }
}
