//! An open clock allocates nothing: neither where it gives a time, nor where it has none, nor where a program waits for
//! it. A program may thus read it where it must not allocate, and no reading waits for an allocator's lock.
//!
//! The allocator is the program's, so this test has a file, and thus a program, of its own.

#[path = "client/common.rs"]
mod common;
#[path = "../../estimator/tests/counting/mod.rs"]
mod counting;

use common::{Directory, about, publication, seconds, writer};
use counting::{allocations, live};
use ffclock::{Bound, Clock, Instant, MachineMark, Span, Stamp, Timestamp, certainly_before};
use ffclock_page::{HistoryWriter, Publication};
use ffclock_sys::{SharedHistory, history_beside};
use ffclock_units::{CounterEpoch, Status};
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

fn used<T>(value: T) {
    black_box(&value);
}

/// Everything that a program can ask of an open clock, of a stamp just taken and of one of an hour ago.
fn ask(clock: &Clock, before: Stamp) {
    let stamp = clock.stamp();
    used((clock.now(), clock.now_unordered(), clock.now_strict(), clock.status(), clock.snapshot()));
    for stamp in [stamp, before] {
        used((clock.at(stamp), clock.at_strict(stamp), clock.time_of(stamp), clock.elapsed(stamp, clock.stamp())));
    }
    used((clock.check_machine(), clock.watches_machine(), clock.machine_mark()));
    let (begin, end) = (Instant::of(clock, before), Instant::now(clock));
    used((begin < end, begin.elapsed(), end - begin, end.checked_duration_since(begin)));
    used((begin.checked_add(Duration::from_secs(1)), end.checked_sub(Duration::from_secs(1))));
    if let (Ok(first), Ok(second)) = (begin.timestamp(), Timestamp::now(clock)) {
        used((first < second, second - first, certainly_before(first.time(), second.time())));
        let short = Duration::from_millis(5);
        used((clock.wait_certainly_after(first.latest(), short), clock.wait_certainly_after(second.latest(), short)));
    }
    used(clock.wait_until(Bound::of(Span::from_millis(1)), Duration::from_millis(1)));
    used(clock.wait_until(Bound::ZERO, Duration::from_millis(1)));
}

fn assert_free(clock: &Clock, before: Stamp, when: &str) {
    let held = live();
    // The first time is the one on which what is made when needed would be made.
    let (count, ()) = allocations(|| ask(clock, before));
    assert_eq!((count, live()), (0, held), "{when}");
}

/// Lines of two hours ago, of one, and of now.
fn keep_history(path: &Path, last: &Publication) {
    let memory = SharedHistory::create(&history_beside(path)).expect("a history in the directory of the test");
    let mut history = HistoryWriter::open(memory, None);
    for hours in [2, 1, 0] {
        let mut line = *last;
        line.estimate.counter = last.estimate.counter - seconds(3600 * hours);
        line.estimate.time = last.estimate.time - Span::from_secs(3600 * hours);
        history.keep(&line);
    }
}

#[test]
fn an_open_clock_allocates_nothing() {
    let directory = Directory::new();
    let (path, machine) = (directory.join("page"), directory.path().join("vmclock"));
    let mut vm_clock = vec![0; 4096];
    vm_clock[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
    std::fs::write(&machine, vm_clock).unwrap();
    let mut writer = writer(&path);
    let published = Publication { epoch_begin: publication().estimate.counter - seconds(7200), ..publication() };
    keep_history(&path, &published);
    let (count, clock) = allocations(|| Clock::open_at(&path).unwrap().watching(&machine).unwrap());
    assert!(count > 0, "nothing is counted");
    let hour_ago = Stamp::from_parts(published.estimate.counter - seconds(1800), published.epoch);
    assert_free(&clock, hour_ago, "the page is empty");

    writer.show_machine(Some(MachineMark::of_disruption(0)));
    writer.publish(&published);
    assert!(clock.watches_machine() && clock.at(hour_ago).is_ok());
    assert_free(&clock, hour_ago, "in regular work");
    writer.publish(&about(published.estimate.counter - seconds(7200)));
    assert_free(&clock, hour_ago, "the promise is broken");
    writer.publish(&Publication { epoch: CounterEpoch::from_raw(2), ..published });
    assert_free(&clock, hour_ago, "another epoch");
    writer.retire(Status::Unsynchronised);
    assert_free(&clock, hour_ago, "no estimate");
    writer.show_machine(Some(MachineMark::of_disruption(1)));
    assert_free(&clock, hour_ago, "the machine was disrupted");
    // Readings of many threads need no lock either: all of this is by a shared reference.
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&clock);
    shared(&Instant::now(&clock));
}
