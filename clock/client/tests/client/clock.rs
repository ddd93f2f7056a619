//! What a program sees of a clock: readings, stamps, intervals, and the reasons for having none.

use crate::common::{Directory, HERTZ, UTC_SECONDS, about, publication, seconds, writer};
use ffclock::{Bound, Clock, OpenError, PageError, ReadError, Stamp, Status};
use ffclock_counter::ffcounter::Ffcounter;
use ffclock_counter::{CounterId, raw_clock, read_ordered};
use ffclock_page::{BootId, Publication, VoteCounts, VotedPart, Writer};
use ffclock_sys::{PageFileError, SharedPage};
use ffclock_units::{CounterEpoch, GrowingBound, MachineMark, Moment, Period, Span, Ticks};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

fn since_reference(time: Moment<ffclock_units::Utc>) -> Span {
    time - Moment::from_origin(Span::from_secs(UTC_SECONDS))
}

#[test]
fn now_moves_with_the_counter() {
    let directory = Directory::new();
    let path = directory.join("page");
    let published = publication();
    writer(&path).publish(&published);
    let clock = Clock::open_at(&path).unwrap();
    let before = read_ordered(CounterId::CPU) - published.estimate.counter;
    let reading = clock.now().unwrap();
    let again = clock.now_unordered().unwrap();
    let after = read_ordered(CounterId::CPU) - published.estimate.counter;
    let period = published.estimate.period;
    for reading in [reading, again] {
        let age = since_reference(reading.time);
        assert!(period * before <= age && age <= period * after, "{age:?}");
        assert_eq!(reading.status, Status::Synchronised);
        assert!(reading.bound >= Bound::of(Span::from_micros(50)));
    }
    assert_eq!(clock.status(), Status::Synchronised);
    assert_eq!(clock.snapshot().unwrap().epoch(), published.epoch);
}

#[test]
fn a_stamp_is_converted_with_the_estimate_that_came_later() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    writer.publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    let stamp = clock.stamp();
    let mut better = about(stamp.counter() + seconds(5));
    better.estimate.bound = Bound::of(Span::from_micros(1));
    writer.publish(&better);
    let reading = clock.at(stamp).unwrap();
    let age = since_reference(reading.time) + Span::from_secs(5);
    assert!(age.abs() < Span::from_nanos(2), "{age:?}");
    assert!(reading.bound >= Bound::of(Span::from_nanos(1500)) && reading.bound < Bound::of(Span::from_nanos(1502)));
}

#[test]
fn the_strict_bound_comes_with_the_same_time() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let published = publication();
    let strict = GrowingBound { bound: Bound::of(Span::from_micros(700)), growth: published.estimate.bound_growth };
    let counts = VoteCounts { deciders: 3, tolerated: 1, believed: 3 };
    writer.publish_voted(&published, &VotedPart { strict, counts });
    let clock = Clock::open_at(&path).unwrap();
    let stamp = clock.stamp();
    let (usual, strict) = (clock.at(stamp).unwrap(), clock.at_strict(stamp).unwrap());
    assert_eq!((strict.time, strict.uncertainty), (usual.time, usual.uncertainty));
    assert!(usual.bound < Bound::of(Span::from_micros(700)) && strict.bound >= Bound::of(Span::from_micros(700)));
    let now = clock.now_strict().unwrap();
    assert!(now.time >= strict.time && now.bound >= Bound::of(Span::from_micros(700)));
    assert_eq!(clock.snapshot().unwrap().vote(), Some(counts));
    let other = Stamp::from_parts(stamp.counter(), CounterEpoch::from_raw(stamp.epoch().raw() + 1));
    assert_eq!(clock.at_strict(other), Err(ReadError::OtherEpoch));
}

/// A VMClock with this mark, as its host writes it.
fn write_mark(path: &Path, mark: MachineMark) {
    let mut bytes = vec![0; 4096];
    bytes[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
    bytes[16..24].copy_from_slice(&mark.disruption.to_le_bytes());
    if let Some(generation) = mark.generation {
        bytes[24..32].copy_from_slice(&(1_u64 << 8).to_le_bytes());
        bytes[104..112].copy_from_slice(&generation.to_le_bytes());
    }
    // In its place, as a program has it mapped.
    let file =
        std::fs::File::options().create(true).truncate(false).write(true).open(path).expect("a file for the test");
    file.write_all_at(&bytes, 0).expect("the file can be written");
}

#[test]
fn after_a_restore_no_reading_is_given_until_the_daemon_knows_of_it() {
    let directory = Directory::new();
    let (path, machine) = (directory.join("page"), directory.join("vmclock"));
    write_mark(&machine, MachineMark::of_disruption(1));
    let mut writer = writer(&path);
    writer.show_machine(Some(MachineMark::of_disruption(1)));
    writer.publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    assert!(!clock.watches_machine(), "this machine has a VMClock of its own");
    let clock = clock.watching(&machine).unwrap();
    assert!(clock.watches_machine());
    let before = clock.stamp();
    assert!(clock.now().is_ok() && clock.now().is_ok() && clock.at(before).is_ok());

    write_mark(&machine, MachineMark::of_disruption(2));
    for _ in 0..3 {
        assert_eq!(clock.now(), Err(ReadError::Disrupted));
        assert_eq!(clock.now_unordered(), Err(ReadError::Disrupted));
        assert_eq!(clock.now_strict(), Err(ReadError::Disrupted));
    }
    assert_eq!(clock.status(), Status::Unsynchronised);
    let (after, as_before) = (clock.stamp(), clock.at(before));
    assert_eq!(clock.at(after), Err(ReadError::OtherEpoch));
    assert!(as_before.is_ok(), "a stamp from before is of the page's epoch");

    writer.show_machine(Some(MachineMark::of_disruption(2)));
    assert_eq!(clock.now(), Err(ReadError::NoEstimate));
    let again = Publication { epoch: CounterEpoch::from_raw(publication().epoch.raw() + 1), ..publication() };
    writer.publish(&again);
    assert!(clock.now().is_ok() && clock.now().is_ok() && clock.at(clock.stamp()).is_ok());
    assert_eq!(clock.at(before), Err(ReadError::OtherEpoch));
    assert_eq!(clock.at(after), Err(ReadError::OtherEpoch));

    writer.show_machine(None);
    writer.publish(&again);
    write_mark(&machine, MachineMark::of_disruption(3));
    assert!(clock.now().is_ok() && !clock.watches_machine(), "a daemon that watches nothing promises nothing");
}

/// The generation counter is watched where both the machine's host and the daemon's page state one, up to its highest
/// value and over it.
#[test]
fn a_new_generation_alone_ends_the_epoch_too() {
    let directory = Directory::new();
    let (path, machine) = (directory.join("page"), directory.join("vmclock"));
    let mark = |disruption, generation| MachineMark { disruption, generation };
    write_mark(&machine, mark(1, Some(u64::MAX - 1)));
    let mut writer = writer(&path);
    writer.show_machine(Some(mark(1, Some(u64::MAX - 1))));
    writer.publish(&publication());
    let clock = Clock::open_at(&path).unwrap().watching(&machine).unwrap();
    for (epoch, present) in [(2, mark(1, Some(u64::MAX))), (3, mark(1, Some(0))), (4, mark(u64::MAX, Some(0)))] {
        let (before, kept) = (clock.stamp(), clock.snapshot().unwrap());
        assert!(clock.now().is_ok() && clock.now().is_ok() && clock.at(before).is_ok());
        assert_eq!(clock.check_snapshot(&kept), Ok(()));
        write_mark(&machine, present);
        assert_eq!(clock.check_snapshot(&kept), Err(ReadError::Disrupted), "{present}");
        assert_eq!((clock.now(), clock.now_unordered()), (Err(ReadError::Disrupted), Err(ReadError::Disrupted)));
        let between = clock.stamp();
        writer.show_machine(Some(present));
        assert_eq!(clock.now(), Err(ReadError::NoEstimate), "{present}");
        assert_eq!(clock.check_snapshot(&kept), Err(ReadError::NoEstimate), "{present}");
        writer.publish(&Publication { epoch: CounterEpoch::from_raw(epoch), ..publication() });
        assert!(clock.now().is_ok() && clock.now_strict().is_ok(), "{present}");
        assert_eq!(clock.check_snapshot(&kept), Err(ReadError::OtherEpoch), "{present}: nothing of it holds any more");
        assert_eq!([before, between].map(|stamp| clock.at(stamp)), [Err(ReadError::OtherEpoch); 2], "{present}");
    }
    // A daemon of an earlier version, which knows of no generation.
    writer.show_machine(Some(mark(5, None)));
    writer.publish(&publication());
    for generation in [None, Some(8), Some(9)] {
        write_mark(&machine, mark(5, generation));
        assert!(clock.now().is_ok() && clock.now().is_ok() && clock.at(clock.stamp()).is_ok(), "{generation:?}");
    }
    write_mark(&machine, mark(6, Some(9)));
    assert_eq!(clock.now(), Err(ReadError::Disrupted));
}

/// What a program sees that may not open /dev/ffcounter, or on a machine without it.
#[test]
fn a_counter_of_the_kernel_that_cannot_be_read_is_reported_with_the_remedy() {
    if let Ok(module) = Ffcounter::open() {
        println!("SKIP: the module is here: {:?}", module.counters());
        return;
    }
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let early = Clock::open_at(&path).expect("an empty page names no counter");
    writer.publish(&Publication { counter_id: CounterId::Module(ffclock_units::ModuleCounter::Hpet), ..publication() });
    let error = Clock::open_at(&path).unwrap_err();
    assert!(matches!(error, OpenError::Counter { .. }), "{error}");
    let messages =
        [error.to_string(), early.now().unwrap_err().to_string(), early.now_unordered().unwrap_err().to_string()];
    for text in messages {
        assert!(text.contains("module:hpet") && text.contains("/dev/ffcounter"), "{text}");
        assert!(text.contains("docs/kernel.md"), "{text}");
    }
    assert!(early.at(early.stamp()).is_err(), "a stamp without a reading is never converted");
}

#[test]
fn an_interval_ignores_the_absolute_clock() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    writer.publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    let first = clock.stamp();
    let second = Stamp::from_parts(first.counter() + seconds(1), first.epoch());
    let before = clock.elapsed(first, second).unwrap();
    let mut corrected = publication();
    corrected.estimate.time = corrected.estimate.time + Span::from_secs(3);
    corrected.estimate.period = Period::from_hertz(HERTZ * 1.001).unwrap();
    writer.publish(&corrected);
    assert_eq!(clock.elapsed(first, second).unwrap(), before);
    assert!((before.span - Span::from_secs(1)).abs() < Span::from_nanos(1));
    assert_eq!(clock.elapsed(second, first).unwrap().bound, before.bound);
}

#[test]
fn stamps_of_an_ended_epoch_are_refused() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    writer.publish(&publication());
    let clock = Clock::open_at(&path).unwrap();
    let old = clock.stamp();
    writer.retire(Status::Unsynchronised);
    assert_eq!(clock.now(), Err(ReadError::NoEstimate));
    assert_eq!(clock.at(old), Err(ReadError::NoEstimate));
    let mut next = publication();
    next.epoch = next.epoch.next();
    next.epoch_begin = read_ordered(CounterId::CPU);
    writer.publish(&next);
    let new = clock.stamp();
    assert_eq!(clock.at(old), Err(ReadError::OtherEpoch));
    assert_eq!(clock.elapsed(old, new), Err(ReadError::OtherEpoch));
    assert_eq!(clock.elapsed(new, old), Err(ReadError::OtherEpoch));
    assert!(clock.at(new).is_ok());
    // A stamp that was given the number of the new epoch by mistake.
    let forged = Stamp::from_parts(old.counter(), new.epoch());
    assert_eq!(clock.at(forged), Err(ReadError::BeforeEpoch));
    assert_eq!(clock.elapsed(forged, new), Err(ReadError::BeforeEpoch));
}

#[test]
fn a_dead_daemon_shows_and_what_was_stamped_before_stays_good() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut published = publication();
    published.valid_until = published.estimate.counter - Ticks::from_raw(1);
    writer(&path).publish(&published);
    let clock = Clock::open_at(&path).unwrap();
    let stale = clock.now().unwrap();
    assert_eq!(stale.status, Status::Unsynchronised);
    assert!(stale.bound > published.estimate.bound);
    assert_eq!(clock.status(), Status::Unsynchronised);
    let alive = Stamp::from_parts(published.valid_until, published.epoch);
    assert_eq!(clock.at(alive).unwrap().status, Status::Synchronised);
}

#[test]
fn a_restarted_daemon_goes_on_and_a_replaced_page_is_found_by_reopening() {
    let directory = Directory::new();
    let path = directory.join("page");
    writer(&path).publish(&publication());
    let mut clock = Clock::open_at(&path).unwrap();
    writer(&path).publish(&publication());
    assert_eq!(clock.snapshot().unwrap().count(), 2);
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(clock.reopen(), Err(OpenError::File { error: PageFileError::Missing(_) })));
    assert_eq!(clock.snapshot().unwrap().count(), 2);
    writer(&path).publish(&publication());
    assert_eq!(clock.snapshot().unwrap().count(), 2);
    clock.reopen().unwrap();
    assert_eq!(clock.snapshot().unwrap().count(), 1);
    assert!(clock.now().is_ok());
}

#[test]
fn the_kernels_clock_serves_as_a_counter_and_a_change_of_counter_is_noticed() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let mut by_kernel = about(raw_clock());
    by_kernel.counter_id = CounterId::MonotonicRaw;
    by_kernel.estimate.period = Period::from_hertz(1e9).unwrap();
    by_kernel.estimate.difference_period = by_kernel.estimate.period;
    writer.publish(&by_kernel);
    let clock = Clock::open_at(&path).unwrap();
    assert!(since_reference(clock.now().unwrap().time) < Span::from_secs(60));
    let old = clock.stamp();
    assert!(raw_clock() - old.counter() < Ticks::from_raw(60_000_000_000));
    let mut by_cpu = publication();
    by_cpu.epoch = CounterEpoch::from_raw(2);
    writer.publish(&by_cpu);
    assert!(since_reference(clock.now().unwrap().time) < Span::from_secs(60));
    let new = clock.stamp();
    assert!(since_reference(clock.at(new).unwrap().time) < Span::from_secs(60));
    assert_eq!(clock.at(old), Err(ReadError::OtherEpoch));
    assert_eq!(clock.snapshot().unwrap().counter_id(), CounterId::CPU);
}

#[test]
fn waiting_ends_with_a_good_reading_or_the_last_look() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let clock = Clock::open_at(&path).unwrap();
    let bound = Bound::of(Span::from_millis(1));
    let empty = clock.wait_until(bound, Duration::from_millis(30)).unwrap_err();
    assert_eq!(empty.last, Err(ReadError::Page(PageError::Empty)));
    let mut vague = publication();
    vague.estimate.bound = Bound::of(Span::from_secs(1));
    writer.publish(&vague);
    assert!(clock.wait_until(bound, Duration::ZERO).unwrap_err().last.is_ok());
    let begin = Instant::now();
    let reading = thread::scope(|scope| {
        let waiting = scope.spawn(|| clock.wait_until(bound, Duration::from_secs(60)));
        thread::sleep(Duration::from_millis(50));
        writer.publish(&publication());
        waiting.join().unwrap().unwrap()
    });
    assert!(reading.bound <= bound);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_stamp_taken_before_the_first_estimate_is_refused() {
    let directory = Directory::new();
    let path = directory.join("page");
    let mut writer = writer(&path);
    let clock = Clock::open_at(&path).unwrap();
    assert_eq!(clock.now(), Err(ReadError::Page(PageError::Empty)));
    let early = clock.stamp();
    writer.publish(&publication());
    assert_eq!(clock.at(early), Err(ReadError::OtherEpoch));
    assert!(clock.at(clock.stamp()).is_ok());
}

#[test]
fn what_cannot_be_opened_is_explained() {
    let directory = Directory::new();
    let path = directory.join("page");
    let complaint = || Clock::open_at(&path).unwrap_err().to_string();
    assert!(complaint().contains("start ffclockd"), "{}", complaint());
    for begun in [0, 4096] {
        std::fs::write(&path, vec![0; begun]).unwrap();
        assert!(complaint().contains("no clock has been published here yet (start ffclockd"), "{}", complaint());
        assert!(matches!(Clock::open_at(&path), Err(OpenError::Page { error: PageError::Empty, .. })), "{begun}");
    }
    std::fs::write(&path, [0; 100]).unwrap();
    assert!(complaint().contains("100 bytes") && complaint().contains("not a clock page"), "{}", complaint());
    assert!(!complaint().contains("remove"), "{}", complaint());
    std::fs::write(&path, [7; 4096]).unwrap();
    assert!(complaint().contains("not a clock page"), "{}", complaint());
    std::fs::remove_file(&path).unwrap();
    drop(Writer::open(SharedPage::create(&path).unwrap(), BootId::from_bits(5)));
    assert!(complaint().contains("before the machine was last started"), "{}", complaint());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // A superuser may read a file of mode 000.
    let forbidden = matches!(Clock::open_at(&path), Err(OpenError::File { error: PageFileError::Permission(_) }));
    assert!(forbidden || std::fs::File::open(&path).is_ok());
}
