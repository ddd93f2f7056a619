//! What a reading costs, against the cheapest things that it could be compared with. Prints one JSON line per figure.
//!
//! `cargo bench -p ffclock-client`; `FFCLOCK_BENCH_READS` scales the search for torn reads (10^9 by default). Figures
//! of one comparison are measured in turns, so that a disturbance meets them all, and the medians of the blocks are
//! compared.

mod turns;

use ffclock::{Clock, Stamp};
use ffclock_counter::{CounterId, read_ordered};
use ffclock_page::{HistoryWriter, Publication, Writer};
use ffclock_sys::{SharedHistory, SharedPage, history_beside};
use ffclock_units::{
    Bound, Counter, CounterEpoch, Estimate, GrowthRate, LeapStep, MachineMark, Moment, Period, Rate, Span,
    StandardUncertainty, Status, Ticks,
};
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use turns::{BLOCKS, block, medians};

/// Ages of stamps, s: since the last publication but one, an hour, a day.
const AGES_S: [f64; 3] = [20.0, 3_500.0, 86_000.0];
/// What the machine of the benchmark shows.
const MACHINE: MachineMark = MachineMark { disruption: 1, generation: Some(1) };
/// How often the writer begins and stops.
const TURNS: usize = 20;
/// Ticks per second that the page of the benchmark claims; the conversion does not depend on it.
const HERTZ: f64 = 2.7e9;

fn main() {
    let bench = Bench::new();
    bench.reading();
    bench.stamping();
    bench.converting();
    bench.reading_after_death();
    bench.reading_while_a_writer_publishes();
    bench.torn_reads();
}

/// What a figure must not exceed.
enum Goal {
    /// As a multiple of what it is compared with.
    Ratio(f64),
    /// In its own unit.
    Value(f64),
    /// No goal: shown for comparison.
    None,
}

fn report(name: &str, (value, unit): (f64, &str), (against, base): (&str, f64), goal: Goal) {
    let ratio = value / base;
    let (goal, met) = match goal {
        Goal::Ratio(goal) => (format!("\"ratio <= {goal}\""), (ratio <= goal).to_string()),
        Goal::Value(goal) => (format!("\"value <= {goal}\""), (value <= goal).to_string()),
        Goal::None => ("null".into(), "null".into()),
    };
    println!(
        "{{\"name\":\"{name}\",\"value\":{value:.2},\"unit\":\"{unit}\",\"against\":\"{against}: {base:.2}\",\
         \"ratio\":{ratio:.3},\"goal\":{goal},\"met\":{met}}}"
    );
}

/// The mean without the slowest tenth. A median would not see the few blocks in which a publication falls.
fn mean_of_most(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.truncate(values.len() * 9 / 10);
    values.iter().sum::<f64>() / values.len() as f64
}

/// `clock_gettime(CLOCK_REALTIME)`, through the vDSO where the kernel has one. The result stays where the call has put
/// it: copying it at once would cost a quarter of the call.
#[inline(always)]
fn system_time(time: &mut libc::timespec) {
    // SAFETY: the pointer is to a place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut *time) };
    black_box(time);
}

/// A page in shared memory, as a daemon would have it, and a clock that reads it.
struct Bench {
    path: PathBuf,
    clock: Clock,
    /// The same clock, which also looks at a VMClock in each reading.
    watching: Clock,
}

impl Bench {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("ffclock-bench-{}/page", std::process::id()));
        write_page(&path, |writer| {
            writer.show_machine(Some(MACHINE));
            writer.publish(&publication());
        });
        keep_a_day(&path);
        let open = || Clock::open_at(&path).expect("the page just made");
        let machine = path.with_file_name("vmclock");
        std::fs::write(&machine, vm_clock()).expect("a file in the directory for temporary files");
        let watching = open().watching(&machine).expect("the file just made");
        assert!(watching.watches_machine() && watching.now().is_ok());
        // Without a VMClock of this machine, which would be watched as well.
        let clock = open();
        assert!(!clock.watches_machine(), "this machine has a VMClock of its own: there is nothing to compare with");
        Bench { path, clock, watching }
    }

    fn reading(&self) {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let [system, fenced, now, watched, unordered] = medians([
            &mut || block(|| system_time(&mut time)),
            &mut || block(|| read_ordered(CounterId::CPU)),
            &mut || block(|| self.clock.now()),
            &mut || block(|| self.watching.now()),
            &mut || block(|| self.clock.now_unordered()),
        ]);
        let (system, counter) = (("clock_gettime(CLOCK_REALTIME)", system), ("fenced counter read", fenced));
        report("fenced counter read", (fenced, "ns"), system, Goal::None);
        // The fence and the counter are most of a reading: what the page adds is judged.
        report("now", (now, "ns"), counter, Goal::Ratio(1.15));
        report("now, against the system's clock", (now, "ns"), system, Goal::None);
        report("now, the VMClock being watched", (watched, "ns"), ("now", now), Goal::Value(now + 3.0));
        report("now_unordered", (unordered, "ns"), system, Goal::Ratio(0.8));
    }

    fn stamping(&self) {
        let [fenced, stamp] =
            medians([&mut || block(|| read_ordered(CounterId::CPU)), &mut || block(|| self.clock.stamp())]);
        report("stamp", (stamp, "ns"), ("fenced counter read", fenced), Goal::Ratio(1.1));
    }

    fn converting(&self) {
        let (first, second) = (self.clock.stamp(), self.clock.stamp());
        let [recent, hour, day] = AGES_S.map(|age| self.taken_before(&first, age));
        let ages: Vec<Stamp> =
            (0..4096).map(|place| self.taken_before(&first, 17.0 + 20.9 * f64::from(place))).collect();
        for stamp in [recent, hour, day].iter().chain(&ages) {
            assert!(
                self.clock.at(*stamp).is_ok_and(|reading| reading.bound.as_span() < Span::from_millis(1)),
                "{stamp:?}"
            );
        }
        let mut turn = 0usize;
        let mut any_age = || {
            turn = turn.wrapping_add(2_654_435_761);
            ages[turn % ages.len()]
        };
        let [empty, fenced, at, elapsed, recent_at, hour_at, day_at, any_at, long] = medians([
            &mut || block(|| (*black_box(&first), *black_box(&second))),
            &mut || block(|| read_ordered(CounterId::CPU)),
            &mut || block(|| self.clock.at(*black_box(&first))),
            &mut || block(|| self.clock.elapsed(*black_box(&first), *black_box(&second))),
            &mut || block(|| self.clock.at(*black_box(&recent))),
            &mut || block(|| self.clock.at(*black_box(&hour))),
            &mut || block(|| self.clock.at(*black_box(&day))),
            &mut || block(|| self.clock.at(black_box(any_age()))),
            &mut || block(|| self.clock.elapsed(*black_box(&hour), *black_box(&second))),
        ]);
        let base = ("empty loop", empty);
        report("at", (at - empty, "ns"), base, Goal::Value(10.0));
        report(
            "at, taken before the last publication",
            (recent_at - empty, "ns"),
            base,
            Goal::Value(at - empty + 10.0),
        );
        report("at, an hour old", (hour_at - empty, "ns"), base, Goal::Value(at - empty + 10.0));
        report("at, a day old", (day_at - empty, "ns"), base, Goal::Value(at - empty + 10.0));
        report("at, of 4096 ages in disorder", (any_at - empty, "ns"), base, Goal::None);
        report("elapsed beyond two stamps", (elapsed - empty, "ns"), base, Goal::Value(5.0));
        report("elapsed of an hour", (long - empty, "ns"), ("fenced counter read", fenced), Goal::Ratio(5.0));
    }

    /// The stamp that would have been taken this much earlier.
    fn taken_before(&self, stamp: &Stamp, age_s: f64) -> Stamp {
        let age = Period::from_hertz(HERTZ).expect("a period").ticks_in(Span::from_seconds(age_s));
        Stamp::from_parts(stamp.counter() - age, stamp.epoch())
    }

    /// The daemon died: its promise has expired.
    fn reading_after_death(&self) {
        let mut last = publication();
        last.valid_until = last.estimate.counter;
        let [alive] = medians([&mut || block(|| self.clock.now())]);
        write_page(&self.path, |writer| writer.publish(&last));
        let late = self.clock.stamp();
        let [dead, at] =
            medians([&mut || block(|| self.clock.now()), &mut || block(|| self.clock.at(*black_box(&late)))]);
        report("now, the daemon being dead", (dead, "ns"), ("now", alive), Goal::Value(alive + 10.0));
        report("at, the daemon being dead", (at, "ns"), ("now", alive), Goal::None);
        write_page(&self.path, |writer| writer.publish(&publication()));
    }

    fn reading_while_a_writer_publishes(&self) {
        let (busy, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let [idle, disturbed] = thread::scope(|scope| {
            scope.spawn(|| write_page(&self.path, |writer| publish_while(writer, &busy, &done)));
            let mut times = [Vec::new(), Vec::new()];
            for turn in 0..2 * TURNS {
                busy.store(turn % 2 == 1, Ordering::Relaxed);
                times[turn % 2].extend((0..BLOCKS).map(|_| block(|| self.clock.now())));
            }
            done.store(true, Ordering::Relaxed);
            times.map(mean_of_most)
        });
        report("now with 1000 publications/s", (disturbed, "ns"), ("now with an idle writer", idle), Goal::Ratio(1.1));
    }

    /// Every publication lies on the same line, so every whole reading does; one of two publications would not.
    fn torn_reads(&self) {
        let reads: u64 =
            std::env::var("FFCLOCK_BENCH_READS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000_000);
        let done = AtomicBool::new(false);
        let (outcomes, publications) = thread::scope(|scope| {
            let writer = scope.spawn(|| write_page(&self.path, |writer| publish_along_the_line(writer, &done)));
            let mut outcomes = [0u64; 3];
            (0..reads).for_each(|_| outcomes[outcome(&self.clock) as usize] += 1);
            done.store(true, Ordering::Relaxed);
            (outcomes, writer.join().expect("the writer"))
        });
        let [_, refused, torn] = outcomes;
        let base = (&*format!("{reads} reads, publications"), publications as f64);
        report("torn reads", (torn as f64, "reads"), base, Goal::Value(0.0));
        report("refused reads", (refused as f64, "reads"), base, Goal::Value(0.0));
    }
}

/// What a read gave.
#[derive(Clone, Copy)]
enum Outcome {
    Whole,
    Refused,
    Torn,
}

fn outcome(clock: &Clock) -> Outcome {
    match clock.snapshot() {
        Ok(snapshot) if on_the_line(&snapshot) => Outcome::Whole,
        Ok(_) => Outcome::Torn,
        Err(_) => Outcome::Refused,
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let directory = self.path.parent().expect("the directory of the page");
        std::fs::remove_dir_all(directory).expect("the directory just made");
    }
}

fn write_page<T>(path: &std::path::Path, work: impl FnOnce(&mut Writer<SharedPage>) -> T) -> T {
    let page = SharedPage::create(path).expect("a page in the directory for temporary files");
    work(&mut Writer::open(page, None))
}

/// A VMClock that shows [`MACHINE`] (UAPI `linux/vmclock-abi.h`).
fn vm_clock() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[..12].copy_from_slice(b"VCLK\x70\0\0\0\x01\0\xff\0");
    bytes[16] = 1;
    // The flag of the generation counter, and the counter.
    bytes[25] = 1;
    bytes[104] = 1;
    bytes
}

/// A history of a day of polls of 16 s.
fn keep_a_day(path: &std::path::Path) {
    let memory = SharedHistory::create(&history_beside(path)).expect("a history in the directory for temporary files");
    let (mut history, last) = (HistoryWriter::open(memory, None), publication());
    for poll in (0..5_500).rev() {
        let mut line = last;
        let age = Span::from_secs(16 * poll);
        line.estimate.counter = last.estimate.counter - last.estimate.period.ticks_in(age);
        line.estimate.time = last.estimate.time - age;
        line.estimate.bound = Bound::of(Span::from_micros(40));
        history.keep(&line);
    }
}

/// Two days ago, so that stamps of a day have a time on a machine that has just booted, too.
fn epoch_begin() -> Counter {
    static BEGIN: OnceLock<Counter> = OnceLock::new();
    let two_days = Period::from_hertz(HERTZ).expect("a period").ticks_in(Span::from_secs(2 * 86_400));
    *BEGIN.get_or_init(|| read_ordered(CounterId::CPU) - two_days)
}

fn publication() -> Publication {
    let counter = read_ordered(CounterId::CPU);
    let period = Period::from_hertz(HERTZ).expect("a period");
    Publication {
        counter_id: CounterId::CPU,
        epoch: CounterEpoch::from_raw(1),
        epoch_begin: epoch_begin(),
        estimate: Estimate {
            counter,
            time: Moment::from_origin(Span::from_secs(1_800_000_037)),
            period,
            uncertainty: StandardUncertainty::of(Span::from_micros(2)),
            noise: StandardUncertainty::of(Span::from_micros(1)),
            uncertainty_growth: GrowthRate::of(Rate::from_ppb(20.0)),
            bound: Bound::of(Span::from_micros(50)),
            bound_growth: GrowthRate::of(Rate::from_ppb(100.0)),
            difference_period: period,
            difference_bound: GrowthRate::of(Rate::from_ppb(50.0)),
            difference_uncertainty: GrowthRate::of(Rate::from_ppb(5.0)),
            status: Status::Synchronised,
        },
        leap: LeapStep { before: 36, after: 37, at: 1_483_228_836 },
        valid_until: counter + period.ticks_in(Span::from_secs(3600)),
        server: None,
    }
}

fn publish_while(writer: &mut Writer<SharedPage>, busy: &AtomicBool, done: &AtomicBool) {
    let publication = publication();
    while !done.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(1));
        if busy.load(Ordering::Relaxed) {
            writer.publish(&publication);
        }
    }
}

/// Publishes without pause; the time, the bound and the uncertainty each say what the counter is.
fn publish_along_the_line(writer: &mut Writer<SharedPage>, done: &AtomicBool) -> u64 {
    let mut publication = Publication { epoch_begin: Counter::from_raw(0), ..publication() };
    let mut count = 0;
    while !done.load(Ordering::Relaxed) {
        count += 1;
        publication.estimate.counter = Counter::from_raw(count);
        publication.estimate.time = Moment::from_origin(Span::from_secs(count as i64));
        publication.estimate.bound = Bound::of(Span::from_secs(count as i64));
        publication.valid_until = Counter::from_raw(count) + Ticks::from_raw(1);
        writer.publish(&publication);
    }
    count
}

fn on_the_line(snapshot: &ffclock_page::Snapshot) -> bool {
    snapshot.estimate().is_some_and(|estimate| {
        let count = estimate.counter.raw();
        let expected = Span::from_secs(count as i64);
        let first = estimate.time.since_origin() == Span::from_secs(1_800_000_037);
        first
            || (estimate.time.since_origin() == expected
                && estimate.bound.as_span() - expected <= Span::from_nanos(1)
                && snapshot.valid_until().raw() == count + 1)
    })
}
