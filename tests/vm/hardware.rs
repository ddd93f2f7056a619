//! The clock that stamps of a network card make, against the truth: the guest's own system clock, which the server
//! serves, or the clock of the other card of the pair.

use super::{Found, Outcome, figure, median, open};
use ffclock::{Clock, Stamp, Status, VotedTime};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter};
use ffclock_counter::{ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_units::Counter;
use std::fs;
use std::thread;
use std::time::Duration;

/// The interquartile range of normal noise in standard deviations.
const RANGE_OF_NORMAL: f64 = 1.349;

/// What the published clock is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// The system clock of the guest, on UTC.
    SystemClock,
    /// The clock of the card hp1 without its noise, on TAI.
    ClockOfMaster,
}

/// For `seconds`, ten times a second: the published clock of ffclockd against the truth, both at one reading of the
/// TSC. Its errors must scatter by no more than `most` times as much as one stamp of the card does, of which the
/// standard deviation is `noise` [ns], and none may be larger than its bound.
pub(crate) fn error(seconds: f64, [noise, most]: [f64; 2], truth: Truth) -> Outcome {
    let device = open()?;
    let clock = Clock::open().map_err(|error| error.to_string())?;
    let mut errors = Vec::new();
    let mut outside = 0;
    for _ in 0..(seconds * 10.0) as usize {
        thread::sleep(Duration::from_millis(100));
        let (counter, true_time) = truth.read(&device)?;
        let stamp = Stamp::from_parts(Counter::from_raw(counter), clock.stamp().epoch());
        let VotedTime { reading, tai, .. } = clock.time_of(stamp).map_err(|error| error.to_string())?;
        Found(reading.status == Status::Synchronised).or_fail(|| format!("the clock is {}", reading.status.name()))?;
        let shown = match truth {
            Truth::SystemClock => reading.time.since_origin(),
            Truth::ClockOfMaster => tai.since_origin(),
        };
        let error = shown.as_nanos() - true_time;
        outside += usize::from(error.abs() > reading.bound.as_span().as_nanos());
        errors.push(error as f64);
    }
    let outcome = scatter("hardware.error", &mut errors, [noise, most]);
    figure("hardware.bracket_side_ns", bracket_side(&device)?);
    Found(outside == 0).or_fail(|| format!("{outside} of {} readings are outside of their bound", errors.len()))?;
    outcome
}

/// For `seconds`, ten times a second: the clock of hp0, which another program steers after that of hp1.
pub(crate) fn pair(seconds: f64, [noise, most]: [f64; 2]) -> Outcome {
    let mut errors = Vec::new();
    for _ in 0..(seconds * 10.0) as usize {
        thread::sleep(Duration::from_millis(100));
        let [_, follower, master] = clocks_of_pair()?;
        errors.push((follower - master) as f64);
    }
    scatter("hardware.pair", &mut errors, [noise, most])
}

/// The figures of these errors [ns], and whether they scatter by no more than they may.
fn scatter(name: &str, errors: &mut [f64], [noise, most]: [f64; 2]) -> Outcome {
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors.get(errors.len() * part / 4).copied().unwrap_or(f64::NAN);
    let (median, range) = (at(2), at(3) - at(1));
    let share = range / (RANGE_OF_NORMAL * noise);
    figure(&format!("{name}_median_ns"), median);
    figure(&format!("{name}_range_ns"), range);
    figure(&format!("{name}_range_over_noise"), share);
    Found(share <= most).or_fail(|| format!("the errors range over {range} ns, {share:.2} times the noise of a stamp"))
}

impl Truth {
    /// A reading of the TSC, and the true time at that moment [ns].
    fn read(self, device: &Ffcounter) -> Result<(u64, i128), String> {
        let paired = || device.read_paired(ModuleCounter::Tsc).map_err(|error| error.to_string());
        match self {
            Truth::SystemClock => paired().map(|pair| (pair.sample.value, i128::from(pair.realtime_ns))),
            Truth::ClockOfMaster => {
                let (before, pair, after) = (clocks_of_pair()?, paired()?, clocks_of_pair()?);
                let ([raw, _, shown], [raw_after, _, shown_after]) = (before, after);
                let since = i128::from(pair.monotonic_raw_ns) - raw;
                Ok((pair.sample.value, shown + since * (shown_after - shown) / (raw_after - raw).max(1)))
            }
        }
    }
}

/// `CLOCK_MONOTONIC_RAW`, and what the clocks of hp0 and hp1 showed at that moment without their noise [ns].
fn clocks_of_pair() -> Result<[i128; 3], String> {
    let text = fs::read_to_string("/sys/module/hwpair/parameters/truth").map_err(|error| error.to_string())?;
    let numbers: Vec<i128> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("the pair says {text:?}"))
}

/// How far the middle of a bracket of the counter around the kernel's clock is behind what the clock shows [ns]: every
/// stamp that is placed by such brackets is late by this. The module reads both at one moment.
fn bracket_side(device: &Ffcounter) -> Result<f64, String> {
    let exact = || device.read_paired(ModuleCounter::Tsc).map_err(|error| error.to_string());
    let mut sides = Vec::new();
    for _ in 0..200 {
        let (before, bracket, after) = (exact()?, clock_in_bracket(), exact()?);
        let ticks = after.sample.value.wrapping_sub(before.sample.value) as f64;
        let each = (after.monotonic_raw_ns - before.monotonic_raw_ns) as f64 / ticks;
        let middle = bracket.0.wrapping_sub(before.sample.value) as f64;
        sides.push(before.monotonic_raw_ns as f64 - bracket.1 + middle * each);
    }
    Ok(median(&mut sides))
}

/// The middle of the bracket, and the kernel's clock [ns].
fn clock_in_bracket() -> (u64, f64) {
    let read = || HostClock::MonotonicRaw.read().map_or(0, |shown: ClockReading| shown.since_origin().as_nanos());
    let bracket = read_narrowest(CounterId::Tsc, 3, read);
    (bracket.middle().raw(), bracket.value as f64)
}
