//! `ffclock feed`: gives the published time to other programs on this host, in the forms that they read.
//!
//! It is a reader of the page like any other: nothing flows back into the clock, whatever other programs do with the
//! system clock. A receiver that takes nothing costs its own samples and nothing else.

mod chrony;
mod clockbound;
mod ntp_shm;
mod vm_clock;

use crate::failure::Failure;
use crate::page::PublishedTime;
use crate::{Global, output, page, std_duration, waiting_time};
use clap::ArgGroup;
use ffclock::{Clock, Stamp};
use ffclock_sys::mono_now;
use ffclock_units::{Bound, LeapStep, Moment, Mono, Rate, Reading, Span, Status, Tai, Ticks, Utc};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

/// Options of `ffclock feed`.
#[derive(clap::Args)]
#[command(group = ArgGroup::new("to").args(["chrony", "shm", "clockbound", "vmclock"]).required(true).multiple(true),
after_help = "Examples:
  $ ffclock feed --chrony /run/chrony/ffclock.sock
  $ ffclock feed --shm 2
  $ ffclock feed --clockbound
  $ ffclock feed --vmclock /run/ffclock-host/vmclock --interval 250ms

with `refclock SOCK /run/chrony/ffclock.sock refid FFCK poll 0` in chrony.conf, or with
`refclock shm unit 2 refid FFCK` in ntp.conf. chronyd makes its socket when it starts. Samples are
left out while the clock is unsynchronised or its bound is above --bound, and within 3 s of a leap
second; the other daemon then falls back on its other sources. A leap second is announced in the
samples of the day that it ends. With --clockbound, programs that link ClockBound's client of
version 2 or 3 find the segments of its daemon, which must not run beside it; while the clock is
unsynchronised they get the status unknown. With --vmclock, guests that have the file as their
VMClock, or mapped, read the time of this host; ffclockd does as a [[reference]].

Exit code: 1 when one of the receivers took no sample; without --count it goes on until it is ended.")]
pub(crate) struct Args {
    /// The socket of chronyd's SOCK reference clock
    #[arg(long, value_name = "SOCKET")]
    chrony: Option<PathBuf>,
    /// The unit of ntpd's shared memory (driver 28), which chronyd reads as well
    #[arg(long, value_name = "UNIT")]
    shm: Option<u16>,
    /// The directory of ClockBound's segments
    #[arg(long, value_name = "DIRECTORY", num_args = 0..=1, default_missing_value = "/var/run/clockbound")]
    clockbound: Option<PathBuf>,
    /// The file of a VMClock, which guests read
    #[arg(long, value_name = "FILE")]
    vmclock: Option<PathBuf>,
    /// The guest's counter minus this host's, for --vmclock
    #[arg(long, value_name = "TICKS", default_value = "0", allow_hyphen_values = true, requires = "vmclock")]
    counter_offset: i64,
    /// Time between two samples
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = waiting_time)]
    interval: Span,
    /// No sample for --chrony and --shm while the bound is above this
    #[arg(long, value_name = "SPAN", default_value = "100 ms")]
    bound: Bound,
    /// How fast another program may slew the system clock, which ClockBound's clients of version 2 read
    #[arg(long, value_name = "RATE", default_value = "500 ppm")]
    slew: Rate,
    /// End after this number of samples
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
}

/// How often the two clocks are compared for one sample; the closest comparison counts.
const TRIES: usize = 5;
/// A leap second is announced this long before it [s]: within the day that it ends.
const ANNOUNCED_S: i64 = 86_400;
/// The system clock is expected to be on the same side of a leap second outside of this [s].
const NEAR_LEAP_S: i64 = 3;

/// The system clock against the published one, at one moment.
struct FeedSample {
    /// What the system clock showed, since 1970.
    system: Duration,
    /// The published time minus it.
    behind: Span,
    /// From a look at the published clock before the system clock to one after it: `behind` is half of it off at most.
    width: Span,
    /// A moment before all of this.
    begin: Moment<Mono>,
    /// The look after it, and what it showed.
    after: (Stamp, Reading),
    /// The same moment on the scale that leap seconds leave alone, and the leap step around it.
    leap: (Moment<Tai>, LeapStep),
}

/// One who is given samples.
trait Feed {
    /// Gives a sample.
    ///
    /// # Errors
    /// It was not taken, or is not good enough to be given.
    fn give(&mut self, clock: &Clock, sample: &FeedSample) -> Result<(), Failure>;
    /// There is no time to give.
    fn withhold(&mut self) {}
}

/// A receiver, and how it went so far.
struct Receiver {
    feed: Box<dyn Feed>,
    taken: u64,
    trouble: Option<String>,
}

/// Gives samples until it is ended.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    if global.json {
        return Err(Failure::usage(
            "the samples go to the other daemon and nothing is answered here: leave --json out",
        ));
    }
    if args.interval == Span::ZERO && args.count.is_none() {
        return Err(Failure::usage("an --interval of 0 s needs a --count: samples without end or pause serve nothing"));
    }
    let mut receivers = receivers(args)?;
    let mut number = 0;
    loop {
        number += 1;
        // Opened again each time: the daemon may restart, and remake its page.
        let compared = page::open(global).and_then(|clock| compare(&clock).map(|sample| (clock, sample)));
        for receiver in &mut receivers {
            receiver.take(&compared);
        }
        if args.count.is_some_and(|count| number >= count) {
            let all_took = receivers.iter().all(|receiver| receiver.taken > 0);
            return if all_took { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) };
        }
        thread::sleep(std_duration(args.interval));
    }
}

fn receivers(args: &Args) -> Result<Vec<Receiver>, Failure> {
    let mut feeds: Vec<Box<dyn Feed>> = Vec::new();
    if let Some(path) = &args.chrony {
        feeds.push(Box::new(chrony::SockFeed::new(path, args.bound)?));
    }
    if let Some(unit) = args.shm {
        feeds.push(Box::new(ntp_shm::ShmFeed::attach(unit, args.bound)?));
    }
    if let Some(directory) = &args.clockbound {
        feeds.push(Box::new(clockbound::SegmentFeed::create(directory, args.slew)?));
    }
    if let Some(path) = &args.vmclock {
        feeds.push(Box::new(vm_clock::VmClockFeed::create(path, Ticks::from_raw(args.counter_offset))?));
    }
    Ok(feeds.into_iter().map(|feed| Receiver { feed, taken: 0, trouble: None }).collect())
}

impl Receiver {
    /// Gives it what there is, and says on standard error what is wrong where that is new.
    fn take(&mut self, compared: &Result<(Clock, FeedSample), Failure>) {
        let outcome = match compared {
            Ok((clock, sample)) => self.feed.give(clock, sample),
            Err(failure) => Err(failure.clone()),
        };
        if compared.is_err() {
            self.feed.withhold();
        }
        self.taken += u64::from(outcome.is_ok());
        let message = outcome.err().map(|failure| failure.message);
        if let Some(message) = message.as_ref().filter(|message| self.trouble.as_ref() != Some(*message)) {
            output::complain(&format!("ffclock: no sample: {message}"));
        }
        self.trouble = message;
    }
}

/// Compares the clocks: the published time before and after a look at the system clock, as close together as they come.
fn compare(clock: &Clock) -> Result<FeedSample, Failure> {
    let begin = mono_now();
    let samples: Result<Vec<FeedSample>, Failure> = (0..TRIES).map(|_| compare_once(clock, begin)).collect();
    Ok(samples?.into_iter().min_by_key(|sample| sample.width).ok_or("no comparison was made")?)
}

fn compare_once(clock: &Clock, begin: Moment<Mono>) -> Result<FeedSample, Failure> {
    let before = clock.stamp();
    let system = SystemTime::now();
    let stamp = clock.stamp();
    let leap = clock.snapshot().map_err(|error| Failure::from(error.to_string()))?.leap();
    let (before, after) = (page::read_at(clock, before)?, page::read_at(clock, stamp)?);
    if before.reading.status == Status::Unsynchronised {
        return Err(Failure::unsynchronised("the clock is unsynchronised"));
    }
    let width = width([&before, &after]).ok_or("the published time was moved during the comparison")?;
    let system = system.duration_since(SystemTime::UNIX_EPOCH).map_err(|error| Failure::from(error.to_string()))?;
    let behind = before.reading.time.midpoint(after.reading.time)
        - Moment::<Utc>::from_origin(Span::from_nanos(system.as_nanos().cast_signed()));
    Ok(FeedSample { system, behind, width, begin, after: (stamp, after.reading), leap: (after.tai, leap) })
}

/// From one look to the next; `None` where UTC stepped between them, by a leap second, or the published time went back,
/// by a new publication.
fn width([before, after]: [&PublishedTime; 2]) -> Option<Span> {
    let width = after.tai - before.tai;
    (!width.is_negative() && after.reading.time - before.reading.time == width).then_some(width)
}

impl FeedSample {
    /// Whether it is good enough for a program that sets the system clock by it.
    ///
    /// # Errors
    /// The bound is above `limit`, or a leap second is so near that the system clock may be on the other side of it.
    fn within(&self, limit: Bound) -> Result<(), Failure> {
        let (_, after) = &self.after;
        let (_, step) = self.leap;
        let is_near = step.before != step.after && self.seconds_to_leap().saturating_abs() <= NEAR_LEAP_S;
        match (after.bound > limit, is_near) {
            (true, _) => Err(Failure::from(format!("the bound is above {limit}"))),
            (false, true) => Err(Failure::from("a leap second is near")),
            (false, false) => Ok(()),
        }
    }

    fn seconds_to_leap(&self) -> i64 {
        let (tai, step) = self.leap;
        step.at.saturating_sub(tai.whole_seconds())
    }

    /// The leap second that ends this day, as NTP and the programs of its family write it: 1 for one that is inserted,
    /// 2 for one that is left out, else 0.
    fn leap_indicator(&self) -> i32 {
        let (_, step) = self.leap;
        match (1..=ANNOUNCED_S).contains(&self.seconds_to_leap()) {
            true if step.after > step.before => 1,
            true if step.after < step.before => 2,
            _ => 0,
        }
    }

    /// The published time at the look at the system clock.
    fn published(&self) -> Moment<Utc> {
        Moment::from_origin(Span::from_nanos(self.system.as_nanos().cast_signed()) + self.behind)
    }
}

/// Whole seconds since the origin and the nanoseconds after them, rounded down.
fn seconds_and_nanos<S>(moment: Moment<S>) -> (i64, u32) {
    const SECOND: i128 = 1_000_000_000;
    let nanos = moment.since_origin().as_nanos();
    let seconds = i64::try_from(nanos.div_euclid(SECOND)).unwrap_or(i64::MAX);
    (seconds, u32::try_from(nanos.rem_euclid(SECOND)).unwrap_or_default())
}

/// Two halves of a word as C lays them out, one after the other.
fn halves(first: i32, second: i32) -> u64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// A sample of a clock that shows the system's time plus `behind`.
#[cfg(test)]
fn example(system: Duration, behind: Span) -> FeedSample {
    use ffclock_units::{Counter, CounterEpoch, StandardUncertainty};
    let time = Moment::from_origin(Span::from_nanos(system.as_nanos().cast_signed()) + behind);
    let bound = Bound::of(Span::from_micros(50));
    let uncertainty = StandardUncertainty::of(Span::from_micros(2));
    let reading = Reading { time, bound, uncertainty, status: Status::Synchronised };
    let stamp = Stamp::from_parts(Counter::from_raw(1), CounterEpoch::from_raw(1));
    let begin = Moment::from_origin(Span::from_secs(100));
    let tai = Moment::from_origin(time.since_origin() + Span::from_secs(37));
    let leap = (tai, LeapStep { before: 36, after: 37, at: 0 });
    FeedSample { system, behind, width: Span::from_nanos(100), begin, after: (stamp, reading), leap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_across_a_step_of_utc_or_of_the_clock_show_nothing() {
        let example = example(Duration::from_secs(1_800_000_000), Span::ZERO);
        let time = |utc_ns: i128, tai_ns: i128| PublishedTime {
            reading: Reading { time: Moment::from_origin(Span::from_nanos(utc_ns)), ..example.after.1 },
            noise: example.after.1.uncertainty,
            strict: example.after.1.bound,
            tai: Moment::from_origin(Span::from_nanos(tai_ns)),
        };
        let (second, before) = (1_000_000_000, time(0, 0));
        assert_eq!(width([&before, &time(500, 500)]), Some(Span::from_nanos(500)));
        for after in [time(500 - second, 500), time(500 + second, 500), time(-1, -1)] {
            assert_eq!(width([&before, &after]), None, "{after:?}");
        }
    }

    #[test]
    fn a_leap_second_is_announced_within_its_day_and_nothing_is_compared_across_it() {
        let sample = |ahead: i64, after: i32| {
            let sample = example(Duration::from_secs(1_800_000_000), Span::ZERO);
            let at = sample.leap.0.whole_seconds() + ahead;
            FeedSample { leap: (sample.leap.0, LeapStep { before: 37, after, at }), ..sample }
        };
        for (ahead, after, indicator, is_good) in [
            (86_401, 38, 0, true),
            (86_400, 38, 1, true),
            (86_400, 36, 2, true),
            (4, 38, 1, true),
            (3, 38, 1, false),
            (0, 38, 0, false),
            (-3, 38, 0, false),
            (-4, 38, 0, true),
            (3, 37, 0, true),
        ] {
            let sample = sample(ahead, after);
            let found = (sample.leap_indicator(), sample.within(Bound::UNKNOWN).is_ok());
            assert_eq!(found, (indicator, is_good), "{ahead} s before the step to {after}");
        }
    }
}
