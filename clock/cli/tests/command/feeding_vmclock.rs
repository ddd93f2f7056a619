//! `ffclock feed --vmclock`: what a guest reads in the file.

use crate::common::{Place, boot};
use crate::feeding_clockbound::{BOUND, Ending, Feed, World, wait_for};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::Writer;
use ffclock_sys::{SharedPage, SharedVmClock, VmClockRefused};
use ffclock_units::{CounterEpoch, LeapTable, Span, Status};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A clock as wrong as its bound allows, now ahead and now behind, published 50 times a second and fed 100 times: the
/// truth is within each line that a guest reads, whenever it reads.
#[test]
fn a_guest_finds_the_truth_in_every_line() {
    const READINGS: usize = 300_000;
    let (place, world) = (Place::new(), World::beginning_now());
    let mut writer = Writer::open(SharedPage::create(&place.page()).unwrap(), boot());
    writer.publish(&world.published(Span::ZERO));
    let file = place.file("vmclock");
    let _feed = Feed::start_with(&place, &["feed", "--vmclock", file.to_str().unwrap(), "--interval", "10 ms"]);
    let clock = wait_for("a VMClock", || SharedVmClock::open_for_time(&file).ok());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for turn in 0_i64.. {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let error = BOUND - Span::from_nanos(100);
                writer.publish(&world.published(if turn % 2 == 0 { error } else { -error }));
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let _end = Ending(&ended);
        let (mut lines, mut last) = (0, None);
        for _ in 0..READINGS {
            let Ok((sequence, line)) = clock.line() else { continue };
            lines += usize::from(last.replace(sequence) != Some(sequence));
            let counter = read_ordered(CounterId::CPU);
            let (time, bound) = line.at(counter);
            let truth = LeapTable::built_in().tai_from_utc(world.utc(counter));
            assert!((time - truth).abs() <= bound.as_span(), "{}: {line:?}", time - truth);
            assert_eq!((line.counter_id, line.marker, line.tai_offset), (CounterId::CPU, 1, 37));
        }
        assert!(lines > 10, "{lines} lines");
    });
}

/// The daemon's restart begins a new epoch of its page, and guests lose nothing by it.
#[test]
fn the_marker_changes_with_what_the_guests_know_and_not_with_the_daemon() {
    let (place, world) = (Place::new(), World::beginning_now());
    let file = place.file("vmclock");
    let once = ["feed", "--vmclock", file.to_str().unwrap(), "--count", "1"];
    let fed = |epoch: u64, error: Span, more: &[&str]| {
        let mut publication = world.published(error);
        publication.epoch = CounterEpoch::from_raw(epoch);
        place.publish_by(&publication);
        place.run(&[&once[..], more].concat()).well();
        SharedVmClock::open_for_time(&file).unwrap().mark().disruption
    };
    assert_eq!(fed(3, Span::ZERO, &[]), 1);
    place.publish_nothing();
    assert_eq!(place.run(&once).code, 1, "withheld: the daemon is away");
    assert_eq!(fed(4, Span::from_micros(20), &[]), 1, "a new epoch that agrees");
    assert_eq!(fed(5, Span::from_millis(3), &[]), 2, "a counter that jumped");
    assert_eq!(fed(5, Span::from_millis(3), &["--counter-offset", "1000000000"]), 3, "another counter of the guest");
    assert_eq!(fed(6, Span::from_millis(3), &["--counter-offset", "1000000000"]), 3);
    let host = std::fs::File::options().write(true).open(&file).unwrap();
    host.write_all_at(&u64::MAX.to_le_bytes(), 16).unwrap();
    assert_eq!(fed(7, Span::from_millis(3), &["--counter-offset", "1000000000"]), u64::MAX);
    assert_eq!(fed(8, Span::from_millis(6), &["--counter-offset", "1000000000"]), 0, "after the highest marker");
    assert_eq!(fed(9, Span::from_millis(6), &["--counter-offset", "1000000000"]), 0, "which is a marker as any other");
}

#[test]
fn what_the_host_does_not_know_is_taken_back_and_the_counter_of_the_guest_is_shifted() {
    let (place, world) = (Place::new(), World::beginning_now());
    let file = place.file("vmclock");
    let name = file.to_str().unwrap();
    let once = ["feed", "--vmclock", name, "--count", "1"];
    place.publish_by(&world.published(Span::ZERO));
    assert_eq!(place.run(&once).well(), "");
    let clock = SharedVmClock::open_for_time(&file).unwrap();
    let (_, plain) = clock.line().unwrap();
    let shift = -1_000_000_000_000_i64;
    let ticks = shift.to_string();
    let shifted = [&once[..], &["--counter-offset", &ticks]].concat();
    assert_eq!(place.run(&shifted).well(), "");
    let (_, line) = clock.line().unwrap();
    assert_eq!(line.status, Status::Synchronised);
    let passed = world.period * (line.counter - plain.counter) - world.period.times(shift.into());
    assert!((line.time - plain.time - passed).abs() < Span::from_nanos(100), "{passed}");

    place.publish_nothing();
    let withheld = place.run(&once);
    assert_eq!((withheld.code, withheld.out.as_str()), (1, ""), "{withheld:?}");
    assert_eq!(clock.line(), Err(VmClockRefused::Unsynchronised));
    place.publish_by(&world.published(Span::ZERO));
    let inode = std::fs::metadata(&file).unwrap().ino();
    assert_eq!(place.run(&once).well(), "");
    assert_eq!((clock.line().is_ok(), std::fs::metadata(&file).unwrap().ino()), (true, inode), "the same file");

    let mut other = world.published(Span::ZERO);
    other.counter_id = CounterId::MonotonicRaw;
    other.estimate.counter = read_ordered(CounterId::MonotonicRaw);
    other.valid_until = other.estimate.counter + other.estimate.period.ticks_in(Span::from_secs(30));
    place.publish_by(&other);
    let refused = place.run(&once);
    assert!(refused.err.contains("keeps time with monotonic-raw"), "{refused:?}");
    assert_eq!(clock.line(), Err(VmClockRefused::Unsynchronised), "what was there is not good any longer");
    std::fs::write(&file, [b'x'; 4096]).unwrap();
    let refused = place.run(&once);
    assert!(refused.err.contains("is not a VMClock: it is left alone"), "{refused:?}");
}
