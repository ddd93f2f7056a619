//! What is certain about the order of events, and the commit wait.

use crate::common::{Directory, about, publication, writer};
use ffclock::{Clock, ReadError, Status, certainly_before, earliest, latest};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_units::{Bound, Moment, Span};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn after_a_commit_wait_every_time_is_certainly_later() {
    let directory = Directory::new();
    let path = directory.join("page");
    writer(&path).publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    for _ in 0..20 {
        let event = clock.time_of(clock.stamp()).unwrap();
        let commit = latest(&event);
        let at_once = clock.time_of(clock.stamp()).unwrap();
        let passed = clock.wait_certainly_after(commit, PATIENCE).unwrap();
        assert!(earliest(&passed) > commit);
        let after = clock.time_of(clock.stamp()).unwrap();
        assert!(certainly_before(&event, &after) && !certainly_before(&after, &event));
        assert_eq!(certainly_before(&event, &at_once), earliest(&at_once) > commit);
    }
}

/// Two hosts whose clocks are as wrong as their bounds allow, in opposite directions: after the wait of the fast one,
/// the slow one gives later times only.
#[test]
fn the_slowest_clock_is_waited_for() {
    let directory = Directory::new();
    let (fast_path, slow_path) = (directory.join("fast"), directory.join("slow"));
    let bound = Span::from_millis(2);
    let counter = read_ordered(CounterId::CPU);
    let off = |error: Span| {
        let mut published = about(counter);
        published.estimate.bound = Bound::of(bound);
        published.estimate.time = published.estimate.time + error;
        published
    };
    writer(&fast_path).publish(&off(bound));
    writer(&slow_path).publish(&off(-bound));
    let (fast, slow) = (Clock::open_at(&fast_path).unwrap(), Clock::open_at(&slow_path).unwrap());
    let event = fast.time_of(fast.stamp()).unwrap();
    fast.wait_certainly_after(latest(&event), PATIENCE).unwrap();
    let seen = slow.time_of(slow.stamp()).unwrap();
    assert!(seen.tai > event.tai, "the slow clock's time itself is later");
    assert!(latest(&seen) > latest(&event));
}

#[test]
fn without_a_time_nothing_is_certain() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut published = publication();
    let mut writer = writer(&path);
    writer.publish(&published);
    let clock = Clock::open_at(&path).unwrap();
    let early = clock.time_of(clock.stamp()).unwrap();
    published.valid_until = published.estimate.counter;
    writer.publish(&published);
    std::thread::sleep(Duration::from_millis(1));
    let late = clock.time_of(clock.stamp()).unwrap();
    assert!(!certainly_before(&early, &late) && !certainly_before(&late, &early));
    assert_eq!((earliest(&late), latest(&late)), (Moment::EARLIEST, Moment::LATEST), "it can be any time");
    let error = clock.wait_certainly_after(latest(&early), Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.last.map(|reading| reading.status), Ok(Status::Unsynchronised));
    let empty = directory.join("empty");
    let _kept = crate::common::writer(&empty);
    let clock = Clock::open_at(&empty).unwrap();
    let error = clock.wait_certainly_after(latest(&early), Duration::from_millis(30)).unwrap_err();
    assert!(matches!(error.last, Err(ReadError::NoEstimate | ReadError::Page(_) | ReadError::OtherEpoch)), "{error:?}");
}
