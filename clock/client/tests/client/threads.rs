//! Many readers while a writer publishes as fast as it can.

use crate::common::{Directory, UTC_SECONDS, about, period, writer};
use ffclock::{Clock, Status};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::Publication;
use ffclock_units::{Bound, Counter, Moment, Span, Ticks, Utc};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const READERS: usize = 8;
const READS: usize = 1_250_000;
/// Programs that have the page mapped at once.
const MAPPINGS: usize = 1000;

/// Publications with different references, all on one line, each with a bound that names its reference: a reading that
/// mixed two of them would be far off the line, or under a bound of neither.
fn publication_of(turn: u64, origin: Counter) -> Publication {
    let ticks = Ticks::from_raw((turn % 1000) as i64 * 2_700_000);
    let mut publication = about(origin + ticks);
    let estimate = &mut publication.estimate;
    estimate.time = Moment::from_origin(Span::from_secs(UTC_SECONDS + 37) + period() * ticks);
    estimate.bound = Bound::of(period() * ticks + Span::from_secs(10));
    estimate.bound_growth = ffclock_units::GrowthRate::from_units(0);
    publication.epoch_begin = origin - Ticks::from_raw(1);
    publication
}

fn line(counter: Counter, origin: Counter) -> Moment<Utc> {
    Moment::from_origin(Span::from_secs(UTC_SECONDS) + period() * (counter - origin))
}

#[test]
fn readings_stay_on_the_line_while_the_writer_publishes() {
    all_stay_on_the_line(1, READS);
}

#[test]
fn a_thousand_programs_read_one_page() {
    all_stay_on_the_line(MAPPINGS, READS / 10);
}

fn all_stay_on_the_line(mappings: usize, reads: usize) {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let origin = read_ordered(CounterId::CPU);
    writer.publish(&publication_of(0, origin));
    let clocks: Vec<Clock> = (0..mappings).map(|_| Clock::open_at(&path).expect("a page")).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let mut turn = 0;
            while !done.load(Ordering::Relaxed) {
                turn += 1;
                writer.publish(&publication_of(turn, origin));
            }
            turn
        });
        let readers: Vec<_> = (0..READERS)
            .map(|number| {
                // Each goes from one program's mapping to another's.
                let mine = clocks.iter().cycle().skip(number).step_by(READERS).take(reads / 2);
                scope.spawn(move || mine.for_each(|clock| read_once(clock, origin)))
            })
            .collect();
        let results: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(publishing.join().expect("the writer ends well") > 1000);
        assert!(results.iter().all(|result| result.is_ok()));
    });
}

fn read_once(clock: &Clock, origin: Counter) {
    let before = read_ordered(CounterId::CPU);
    let reading = clock.now().expect("a reading");
    let after = read_ordered(CounterId::CPU);
    let slack = Span::from_nanos(1);
    assert!(reading.time >= line(before, origin) - slack && reading.time <= line(after, origin) + slack);
    assert!(reading.bound >= Bound::of(Span::from_secs(10)) && reading.bound < Bound::of(Span::from_secs(12)));
    assert_eq!(reading.status, Status::Synchronised);

    let stamp = clock.stamp();
    let off = clock.at(stamp).expect("a reading").time - line(stamp.counter(), origin);
    assert!(off.abs() < slack, "{off:?}");
}
