//! Instants and timestamps of clocks with pages in real files.

use crate::common::{Directory, publication, seconds, writer};
use ffclock::{Bound, Clock, Instant, ReadError, Span, Stamp, Status, Timestamp};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::Publication;
use ffclock_units::{CounterEpoch, Ticks};
use std::cmp::Ordering;
use std::time::Duration;

#[test]
fn instants_count_as_the_clock_does() {
    let directory = Directory::new();
    let path = directory.join("page");
    writer(&path).publish(&publication());
    let (clock, other) = (Clock::open_at(&path).unwrap(), Clock::open_at(&path).unwrap());
    let begin = Instant::now(&clock);
    let end = Instant::now(&other);
    assert_eq!([begin.partial_cmp(&end), end.partial_cmp(&begin)], [Some(Ordering::Less), Some(Ordering::Greater)]);
    assert_eq!(begin, Instant::of(&other, begin.stamp()));
    let interval = (end - begin).unwrap();
    assert_eq!(interval, clock.elapsed(begin.stamp(), end.stamp()).unwrap());
    assert!(interval.span > Span::ZERO && (begin - end).unwrap().span.is_negative());
    assert!(begin.elapsed().unwrap().span > interval.span);
    assert_eq!(begin.timestamp().unwrap().time(), &clock.time_of(begin.stamp()).unwrap());
}

#[test]
fn durations_are_those_of_the_standard_library_where_it_has_them() {
    let directory = Directory::new();
    let path = directory.join("page");
    writer(&path).publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    let begin = Instant::now(&clock);
    for duration in [Duration::ZERO, Duration::from_nanos(1_000), Duration::new(3_600, 999_999_999)] {
        let later = begin.checked_add(duration).unwrap();
        assert_eq!(later.checked_sub(duration), Some(begin));
        let found = later.checked_duration_since(begin).unwrap();
        // A tick of the page is 0.4 ns.
        assert!(found.abs_diff(duration) <= Duration::from_nanos(1), "{found:?}, {duration:?}");
        assert_eq!(later > begin, duration > Duration::ZERO);
    }
    let later = begin.checked_add(Duration::from_secs(1)).unwrap();
    assert_eq!(begin.checked_duration_since(later), None, "it was before");
    for too_long in [Duration::MAX, Duration::from_secs(u64::MAX / 2), Duration::from_secs(1 << 32)] {
        assert_eq!((begin.checked_add(too_long), begin.checked_sub(too_long)), (None, None), "{too_long:?}");
    }
}

#[test]
fn between_epochs_and_between_pages_there_is_neither_order_nor_length() {
    let directory = Directory::new();
    let (path, other_path) = (directory.join("page"), directory.join("other"));
    let mut writer = writer(&path);
    let clock = Clock::open_at(&path).unwrap();
    let early = Instant::now(&clock);
    assert_eq!(early.timestamp(), Err(ReadError::Page(ffclock::PageError::Empty)));
    writer.publish(&publication());
    let before = Instant::now(&clock);
    let next = Publication {
        epoch: CounterEpoch::from_raw(publication().epoch.raw() + 1),
        epoch_begin: read_ordered(CounterId::CPU),
        ..publication()
    };
    writer.publish(&next);
    let after = Instant::now(&clock);
    for past in [early, before] {
        assert_eq!((past.partial_cmp(&after), after.partial_cmp(&past)), (None, None));
        assert_eq!((after - past, past.elapsed()), (Err(ReadError::OtherEpoch), Err(ReadError::OtherEpoch)));
        assert_eq!(after.checked_duration_since(past), None);
        assert_eq!(past.checked_add(Duration::from_secs(1)), None, "the rate of another epoch says nothing");
    }
    crate::common::writer(&other_path).publish(&next);
    let elsewhere = Clock::open_at(&other_path).unwrap();
    let same_stamp = Instant::of(&elsewhere, after.stamp());
    assert!(same_stamp != after && same_stamp.partial_cmp(&after).is_none());
    assert_eq!(same_stamp - after, Err(ReadError::OtherEpoch));
}

/// Two hosts whose bounds say what is certain.
#[test]
fn timestamps_are_ordered_where_their_bounds_leave_no_doubt() {
    let directory = Directory::new();
    let path = directory.join("page");
    writer(&path).publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    let stamp = clock.stamp();
    let at = |ticks: Ticks| {
        Instant::of(&clock, Stamp::from_parts(stamp.counter() + ticks, stamp.epoch())).timestamp().unwrap()
    };
    let (first, soon, late) = (at(Ticks::ZERO), at(Ticks::from_raw(1_000)), at(seconds(1)));
    assert_eq!([first.partial_cmp(&late), late.partial_cmp(&first)], [Some(Ordering::Less), Some(Ordering::Greater)]);
    assert!(first.latest() < late.earliest());
    assert_eq!(first.partial_cmp(&soon), None, "both are known to 50 us only");
    let difference = late - first;
    assert!((difference.span - Span::from_secs(1)).abs() < Span::from_nanos(2));
    assert_eq!(difference.bound, first.bound() + late.bound());
    assert!(difference.bound > Bound::of(Span::from_micros(100)) && difference.status == Status::Synchronised);
    let now = Timestamp::now(&clock).unwrap();
    assert_eq!(now.utc(), now.time().reading.time);
    assert!(now.tai() > first.tai() && now.status() == Status::Synchronised);
}
