//! `ffclock feed --clockbound`: ClockBound's own clients read what it writes.

use crate::common::{Place, boot, publication};
use clock_bound::{Client, ClockStatus};
use clock_bound_client::{ClockBoundClient, ClockStatus as ClockStatus2};
use ffclock_counter::{CounterId, nominal, read_ordered};
use ffclock_page::{Publication, Writer};
use ffclock_sys::SharedPage;
use ffclock_units::{Bound, Counter, LeapTable, MachineMark, Moment, Period, Span, Status, Utc};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

pub(crate) const BOUND: Span = Span::from_micros(40);

/// What the time is, by the counter.
#[derive(Clone, Copy)]
pub(crate) struct World {
    origin: Counter,
    time: Moment<Utc>,
    pub(crate) period: Period,
}

impl World {
    pub(crate) fn beginning_now() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let utc = Moment::<Utc>::from_origin(Span::from_nanos(since.as_nanos().cast_signed()));
        let period = nominal(CounterId::CPU).unwrap().period;
        World { origin: read_ordered(CounterId::CPU), time: utc, period }
    }

    pub(crate) fn utc(&self, counter: Counter) -> Moment<Utc> {
        self.time + self.period * (counter - self.origin)
    }

    /// A clock that is now off by this.
    pub(crate) fn published(&self, error: Span) -> Publication {
        let counter = read_ordered(CounterId::CPU);
        let mut publication = publication(Status::Synchronised);
        publication.counter_id = CounterId::CPU;
        let estimate = &mut publication.estimate;
        (estimate.counter, estimate.period, estimate.difference_period) = (counter, self.period, self.period);
        estimate.time = LeapTable::built_in().tai_from_utc(self.utc(counter)) + error;
        estimate.bound = Bound::of(BOUND);
        publication.leap = LeapTable::built_in().step_around(estimate.time);
        publication.valid_until = counter + self.period.ticks_in(Span::from_secs(30));
        publication
    }
}

/// A feed that runs until it is dropped.
pub(crate) struct Feed(Child);

impl Feed {
    fn start(place: &Place, directory: &str, interval: &str) -> Self {
        Self::start_with(place, &["feed", "--clockbound", directory, "--interval", interval])
    }

    pub(crate) fn start_with(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command(arguments);
        Feed(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn segments(place: &Place) -> (String, String, String) {
    let name = |path: PathBuf| path.to_str().unwrap().to_owned();
    let directory = place.file("clockbound");
    (name(directory.clone()), name(directory.join("shm0")), name(directory.join("shm1")))
}

fn open_both(place: &Place) -> (ClockBoundClient, Client) {
    let (_, shm0, shm1) = segments(place);
    let v2 = wait_for("a segment for version 2", || ClockBoundClient::new_with_path(&shm0).ok());
    let v3 = wait_for("a segment for version 3", || Client::new_with_path(&shm1).ok());
    (v2, v3)
}

fn moment(seconds: i64, nanos: i64) -> Moment<Utc> {
    Moment::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos.into()))
}

/// Ends the thread that publishes, when the test fails as well.
pub(crate) struct Ending<'a>(pub(crate) &'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A clock as wrong as its bound allows, now ahead and now behind, published 50 times a second and fed 20 times:
/// each of 10^6 readings of either client has the truth in it.
#[test]
fn clockbound_clients_find_the_truth_in_every_reading() {
    const READINGS: usize = 1_000_000;
    let place = Place::new();
    let world = World::beginning_now();
    let mut writer = Writer::open(SharedPage::create(&place.page()).unwrap(), boot());
    writer.publish(&world.published(Span::ZERO));
    let (directory, ..) = segments(&place);
    let _feed = Feed::start(&place, &directory, "50 ms");
    let (mut v2, mut v3) = open_both(&place);
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
        for _ in 0..READINGS {
            let before = world.utc(read_ordered(CounterId::CPU));
            let read = v3.now().unwrap();
            let after = world.utc(read_ordered(CounterId::CPU));
            let (earliest, latest) = (
                moment(read.earliest.tv_sec(), read.earliest.tv_nsec()),
                moment(read.latest.tv_sec(), read.latest.tv_nsec()),
            );
            assert_eq!(read.clock_status, ClockStatus::Synchronized);
            assert!(earliest <= after && latest >= before, "version 3: {earliest:?} to {latest:?}, {before:?}");
            assert!(latest - earliest < Span::from_micros(200), "{:?} wide", latest - earliest);
        }
        for _ in 0..READINGS {
            let before = world.utc(read_ordered(CounterId::CPU));
            let read = v2.now().unwrap();
            let after = world.utc(read_ordered(CounterId::CPU));
            let (earliest, latest) = (
                moment(read.earliest.tv_sec(), read.earliest.tv_nsec()),
                moment(read.latest.tv_sec(), read.latest.tv_nsec()),
            );
            assert_eq!(read.clock_status, ClockStatus2::Synchronized);
            assert!(earliest <= after && latest >= before, "version 2: {earliest:?} to {latest:?}, {before:?}");
        }
    });
}

/// A feed that has the file at `vm_clock` as the machine's device, where it and clients look for that; none where this
/// machine has no namespaces.
fn feed_in_machine(place: &Place, vm_clock: &Path, arguments: &[&str]) -> Option<Feed> {
    let feed = place.command(arguments);
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]).arg(vm_clock);
        command
    };
    let with_device = "mount -t tmpfs none /dev && touch /dev/vmclock0 && mount --bind \"$1\" /dev/vmclock0";
    if !in_namespace(with_device).stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        return None;
    }
    let mut command = in_namespace(&format!("{with_device} && shift && exec \"$@\""));
    command.arg(feed.get_program()).args(feed.get_args()).env_remove("FFCLOCK_VMCLOCK");
    for (name, value) in feed.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(Feed(command.stderr(Stdio::null()).spawn().unwrap()))
}

/// The host changes the marker: the next reading says so, before the daemon or the feed know of it.
#[test]
fn clients_see_that_the_virtual_machine_was_restored() {
    let place = Place::new();
    let world = World::beginning_now();
    let vm_clock = place.file("vmclock");
    let mut page = vec![0; 4096];
    page[..16].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0\x02\0\0\0");
    page[16] = 7;
    std::fs::write(&vm_clock, page).unwrap();
    let host = std::fs::File::options().write(true).open(&vm_clock).unwrap();
    let mut writer = Writer::open(SharedPage::create(&place.page()).unwrap(), boot());
    writer.show_machine(Some(MachineMark::of_disruption(7)));
    writer.publish(&world.published(Span::ZERO));
    let (directory, shm0, shm1) = segments(&place);
    let arguments = ["feed", "--clockbound", &directory, "--interval", "20 ms"];
    let Some(_feed) = feed_in_machine(&place, &vm_clock, &arguments) else {
        println!("SKIP: no namespaces here, so ClockBound's clients were not tried in a restored machine");
        return;
    };
    let device = vm_clock.to_str().unwrap();
    let mut v2 = wait_for("version 2", || ClockBoundClient::new_with_paths(&shm0, device).ok());
    let mut v3 = wait_for("version 3", || Client::new_with_paths(&shm1, device).ok());
    assert_eq!(v3.now().unwrap().clock_status, ClockStatus::Synchronized);
    assert_eq!(v2.now().unwrap().clock_status, ClockStatus2::Synchronized);
    // Those clients look at the marker again when the sequence has changed, which a host makes odd before.
    for (at, octet) in [(12, 3), (16, 8), (12, 4)] {
        host.write_all_at(&[octet], at).unwrap();
    }
    assert_eq!(v3.now().unwrap().clock_status, ClockStatus::Disrupted);
    // Those of version 2 have no name for it.
    assert_eq!(v2.now().unwrap().clock_status, ClockStatus2::Unknown);
    writer.show_machine(Some(MachineMark::of_disruption(8)));
    writer.publish(&world.published(Span::ZERO));
    wait_for("synchronised", || (v3.now().unwrap().clock_status == ClockStatus::Synchronized).then_some(()));
    wait_for("synchronised", || (v2.now().unwrap().clock_status == ClockStatus2::Synchronized).then_some(()));
}

#[test]
fn an_unsynchronised_clock_is_of_unknown_status() {
    let place = Place::new();
    let world = World::beginning_now();
    let mut writer = Writer::open(SharedPage::create(&place.page()).unwrap(), boot());
    writer.publish(&world.published(Span::ZERO));
    let (directory, ..) = segments(&place);
    let _feed = Feed::start(&place, &directory, "20 ms");
    let (mut v2, mut v3) = open_both(&place);
    assert_eq!(v3.now().unwrap().clock_status, ClockStatus::Synchronized);
    writer.retire(Status::Unsynchronised);
    wait_for("unknown", || (v3.now().unwrap().clock_status == ClockStatus::Unknown).then_some(()));
    wait_for("unknown", || (v2.now().unwrap().clock_status == ClockStatus2::Unknown).then_some(()));
    writer.publish(&world.published(Span::ZERO));
    wait_for("synchronised", || (v3.now().unwrap().clock_status == ClockStatus::Synchronized).then_some(()));
    wait_for("synchronised", || (v2.now().unwrap().clock_status == ClockStatus2::Synchronized).then_some(()));
}

/// A line that ends before the promise of the feed that wrote it: the daemon's own promise holds for clients too.
#[test]
fn without_feed_or_daemon_the_time_becomes_void() {
    let place = Place::new();
    let world = World::beginning_now();
    let mut publication = world.published(Span::ZERO);
    publication.valid_until = publication.estimate.counter + world.period.ticks_in(Span::from_secs(2));
    place.publish_by(&publication);
    let (directory, ..) = segments(&place);
    assert_eq!(place.run(&["feed", "--clockbound", &directory, "--count", "1"]).well(), "");
    let (_, mut v3) = open_both(&place);
    let status = v3.now().unwrap().clock_status;
    assert!(matches!(status, ClockStatus::Synchronized | ClockStatus::Unknown), "{status:?}");
    wait_for("unknown", || (v3.now().unwrap().clock_status == ClockStatus::Unknown).then_some(()));
}

#[test]
fn clients_go_on_over_the_end_of_a_feed_and_foreign_files_are_left_alone() {
    let place = Place::new();
    let world = World::beginning_now();
    place.publish_by(&world.published(Span::ZERO));
    let (directory, shm0, shm1) = segments(&place);
    let once = ["feed", "--clockbound", &directory, "--count", "1"];
    assert_eq!(place.run(&once).well(), "");
    let (_, mut v3) = open_both(&place);
    let first = v3.now().unwrap();
    let inode = std::fs::metadata(&shm1).unwrap().ino();
    place.publish_by(&world.published(Span::from_secs(5)));
    assert_eq!(place.run(&once).well(), "");
    assert_eq!(std::fs::metadata(&shm1).unwrap().ino(), inode, "the same file");
    let later = v3.now().unwrap();
    assert!(later.earliest.tv_sec() >= first.earliest.tv_sec() + 5, "an open client sees the new line");
    // A hundred octets of something else, as long as a segment is.
    std::fs::remove_file(&shm0).unwrap();
    std::fs::write(&shm0, [b'x'; 80]).unwrap();
    let refused = place.run(&once);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("is not a segment of ClockBound: it is left alone"), "{refused:?}");
    assert_eq!(std::fs::read(&shm0).unwrap(), [b'x'; 80]);
}

/// As ClockBound's own daemon would, beside ours.
#[test]
fn a_second_writer_is_noticed() {
    let place = Place::new();
    place.publish_by(&World::beginning_now().published(Span::ZERO));
    let (directory, _, shm1) = segments(&place);
    let mut command = place.command(&["feed", "--clockbound", &directory, "--interval", "20 ms"]);
    let mut feed = Feed(command.stderr(Stdio::piped()).spawn().unwrap());
    drop(open_both(&place));
    let other = std::fs::OpenOptions::new().write(true).open(&shm1).unwrap();
    // Generations that never come from a feed that counts by two.
    for _ in 0..10 {
        std::os::unix::fs::FileExt::write_all_at(&other, &60_000_u16.to_ne_bytes(), 14).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
    feed.0.kill().unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(feed.0.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains("another program writes it: is ClockBound's daemon running?"), "{said}");
}
