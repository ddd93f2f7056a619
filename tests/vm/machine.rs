//! A guest that is restored, as a program inside it sees that: the VMClock of the emulator, which the emulator
//! alone writes, at `/dev/vmclock0`, and a clock that watches it.

use super::clock::text;
use super::network::status;
use super::{Found, Outcome, figure};
use ffclock::{Bound, Clock, ReadError, Reading, Stamp, Status};
use ffclock_sys::{SharedVmClock, places};
use ffclock_units::{Estimate, MachineMark, Span};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks.
const PAUSE: Duration = Duration::from_micros(200);
const PATIENCE: Duration = Duration::from_secs(100);

/// Two exchanges are half a second apart, and a slow guest has them closer by some of that.
const EXCHANGES_APART: Duration = Duration::from_millis(150);

/// What ffclockd has done with its only server.
#[derive(Clone, Copy)]
struct Exchanges {
    sent: u64,
    complete: u64,
    used: u64,
}

impl Exchanges {
    fn so_far() -> Result<Self, String> {
        let report = status(places::CONTROL)?;
        let count = |name: &str| {
            let (_, after) =
                report.split_once(&format!("\"{name}\":")).ok_or_else(|| format!("no {name}: {report}"))?;
            after.split(|end: char| !end.is_ascii_digit()).next().unwrap_or_default().parse::<u64>().map_err(text)
        };
        Ok(Exchanges { sent: count("sent")?, complete: count("exchanges")?, used: count("used")? })
    }

    fn since(self, before: Self) -> Self {
        Exchanges {
            sent: self.sent - before.sent,
            complete: self.complete - before.complete,
            used: self.used - before.used,
        }
    }
}

/// What is known before the machine is restored.
struct Before {
    mark: MachineMark,
    stamp: Stamp,
    estimate: Estimate,
}

/// Says for each restore whether it went as it should, until the machine is switched off.
pub(crate) fn follow_restores() -> Outcome {
    let device = SharedVmClock::open(Path::new(places::VM_CLOCK)).map_err(text)?;
    let clock = opened()?;
    Found(clock.watches_machine() && clock.machine_mark() == Some(device.mark()))
        .or_fail(|| format!("the page rests on {:?}, the machine shows {}", clock.machine_mark(), device.mark()))?;
    doctor()?;
    println!("GUEST watches marker {}", device.mark());
    loop {
        let mark = device.mark();
        match one_restore(&device, &clock) {
            Ok(()) => println!("PASS restored: marker {mark}, then {}", device.mark()),
            Err(why) => println!("FAIL restored: {why}"),
        }
        println!("GUEST watches marker {}", device.mark());
    }
}

fn opened() -> Result<Clock, String> {
    let begin = Instant::now();
    loop {
        let clock = Clock::open();
        if let Ok(clock) = clock
            && clock.wait_until(Bound::of(Span::from_millis(100)), Duration::from_secs(1)).is_ok()
            && clock.status() == Status::Synchronised
        {
            return Ok(clock);
        }
        Found(begin.elapsed() < PATIENCE).or_fail(|| "the page is not synchronised".to_owned())?;
        thread::sleep(Duration::from_millis(200));
    }
}

fn one_restore(device: &SharedVmClock, clock: &Clock) -> Outcome {
    let before = until_restored(device, clock)?;
    // The machine went on in between; ffclockd cannot have asked its server yet.
    let first = clock.now();
    let stamp = clock.stamp();
    Found(first.is_err()).or_fail(|| format!("a time at once after the restore: {first:?}"))?;
    let asked = Exchanges::so_far()?;
    let (again, refused, last_refused) = until_time(clock)?;
    let took = Exchanges::so_far()?.since(asked);
    let unseen = last_refused.elapsed();
    figure("restored.exchanges_counted_after_ms", unseen.as_secs_f64() * 1e3);
    figure("restored.readings_refused", refused as f64);
    println!("FIGURE restored.exchanges_to_a_time {}, {} used, of {} requests", took.complete, took.used, took.sent);
    // Where the guest was held up in between, exchanges after the one that brought the time are among them.
    let later = unseen.as_millis() / EXCHANGES_APART.as_millis();
    Found(u128::from(took.used) <= 1 + later)
        .or_fail(|| format!("{} exchanges were needed for a time, seen to within {unseen:?}", took.used))?;
    figure("restored.bound_after_ms", again.bound.as_span().as_seconds() * 1e3);
    let now = device.mark();
    // QEMU adds one to what was saved.
    Found(now == MachineMark::of_disruption(before.mark.disruption + 1))
        .or_fail(|| format!("marker {now} after {}", before.mark))?;
    for (stamp, is_old) in [(before.stamp, true), (stamp, false)] {
        let time = clock.at(stamp);
        let is_refused = time == Err(ReadError::OtherEpoch);
        // The one from between is of no epoch, or of the new one where ffclockd was as quick.
        Found(is_refused || !is_old && time.is_ok_and(|time| is_close(&time, &again)))
            .or_fail(|| format!("a stamp from before the new epoch has {time:?}"))?;
    }
    let interval = clock.elapsed(before.stamp, clock.stamp());
    Found(interval == Err(ReadError::OtherEpoch))
        .or_fail(|| format!("an interval across the restore: {interval:?}"))?;
    rate_is_kept(clock, &before)?;
    doctor()
}

/// Every reading until then has a time.
fn until_restored(device: &SharedVmClock, clock: &Clock) -> Result<Before, String> {
    loop {
        let snapshot = clock.snapshot().map_err(text)?;
        let estimate = snapshot.estimate().ok_or("a page without an estimate")?;
        let before = Before { mark: device.mark(), stamp: clock.stamp(), estimate };
        let reading = clock.now();
        if device.mark() != before.mark {
            continue_after(&reading)?;
            return Ok(before);
        }
        reading.map_err(|why| format!("nothing has happened, and no time: {why}"))?;
        thread::sleep(PAUSE);
        if device.mark() != before.mark {
            return Ok(before);
        }
    }
}

/// A reading that the restore came into is of the old epoch, or refused.
fn continue_after(reading: &Result<Reading, ReadError>) -> Outcome {
    Found(matches!(reading, Ok(_) | Err(ReadError::Disrupted | ReadError::NoEstimate)))
        .or_fail(|| format!("the reading around the restore: {reading:?}"))
}

/// The first reading with a time, how many were refused before it, and when the last of these was asked for.
fn until_time(clock: &Clock) -> Result<(Reading, usize, Instant), String> {
    let begin = Instant::now();
    let mut last_refused = begin;
    let mut refused = 0;
    loop {
        let look = Instant::now();
        match clock.now() {
            Ok(reading) if reading.status != Status::Unsynchronised => return Ok((reading, refused, last_refused)),
            _ => (refused, last_refused) = (refused + 1, look),
        }
        Found(begin.elapsed() < PATIENCE).or_fail(|| format!("no time in {PATIENCE:?} after the restore"))?;
        thread::sleep(PAUSE);
    }
}

fn is_close(one: &Reading, other: &Reading) -> bool {
    (one.time - other.time).abs() < Span::from_secs(10)
}

fn rate_is_kept(clock: &Clock, before: &Before) -> Outcome {
    let after = clock.snapshot().map_err(text)?.estimate().ok_or("no estimate")?;
    // The machine goes on with the counter that it had. Where nothing is known of one, its rate is within 500 ppm.
    let [known, knows] = [&before.estimate, &after].map(|estimate| estimate.difference_bound.as_rate().as_ppm());
    let ppm = (after.period.as_seconds() / before.estimate.period.as_seconds() - 1.0) * 1e6;
    figure("restored.rate_changed_ppm", ppm);
    figure("restored.rate_known_before_to_ppm", known);
    figure("restored.rate_known_after_to_ppm", knows);
    Found(ppm.abs() <= known && knows <= 2.0 * known)
        .or_fail(|| format!("another rate, by {ppm:.3} ppm, and known to {knows:.3} ppm after {known:.3} ppm"))
}

/// A guest whose VMClock is watched is no finding; one whose device is away is.
fn doctor() -> Outcome {
    let says_unwatched = || {
        let said = Command::new("ffclock").args(["doctor", "--json"]).output().map_err(text)?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        Found(text.contains("\"faults\"") || text.trim_start().starts_with(['{', '[']))
            .or_fail(|| format!("the doctor said {text}{}", String::from_utf8_lossy(&said.stderr)))?;
        Ok::<_, String>(text.contains("guest-unwatched"))
    };
    Found(!says_unwatched()?).or_fail(|| "the doctor calls a watched guest unwatched".to_owned())?;
    let away = "/dev/vmclock0.away";
    fs::rename(places::VM_CLOCK, away).map_err(text)?;
    let found = says_unwatched();
    fs::rename(away, places::VM_CLOCK).map_err(text)?;
    Found(found?).or_fail(|| "without the device the doctor does not call the guest unwatched".to_owned())
}
