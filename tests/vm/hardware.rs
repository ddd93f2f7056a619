//! The clock that stamps of a network card make, against the truth: the server serves the guest's own system clock.

use super::{Found, Outcome, figure, median, open};
use ffclock_client::{Clock, Stamp, Status};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter};
use ffclock_counter::{ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_units::Counter;
use std::thread;
use std::time::Duration;

/// The interquartile range of normal noise in standard deviations.
const RANGE_OF_NORMAL: f64 = 1.349;

/// For `seconds`, ten times a second: the published clock of ffclockd against the system clock, both at one reading of
/// the TSC. Its errors must scatter by no more than `most` times as much as one stamp of the card does, of which the
/// standard deviation is `noise` [ns], and none may be larger than its bound.
pub(crate) fn error(seconds: f64, noise: f64, most: f64) -> Outcome {
    let device = open()?;
    let clock = Clock::open().map_err(|error| error.to_string())?;
    let mut errors = Vec::new();
    let mut outside = 0;
    for _ in 0..(seconds * 10.0) as usize {
        thread::sleep(Duration::from_millis(100));
        let pair = device.read_paired(ModuleCounter::Tsc).map_err(|error| error.to_string())?;
        let stamp = Stamp::from_parts(Counter::from_raw(pair.sample.value), clock.stamp().epoch());
        let reading = clock.at(stamp).map_err(|error| error.to_string())?;
        Found(reading.status == Status::Synchronised).or_fail(|| format!("the clock is {}", reading.status.name()))?;
        let error = reading.time.since_origin().as_nanos() - i128::from(pair.realtime_ns);
        outside += usize::from(error.abs() > reading.bound.as_span().as_nanos());
        errors.push(error as f64);
    }
    errors.sort_by(f64::total_cmp);
    let at = |part: usize| errors.get(errors.len() * part / 4).copied().unwrap_or(f64::NAN);
    let (median, range) = (at(2), at(3) - at(1));
    let share = range / (RANGE_OF_NORMAL * noise);
    figure("hardware.error_median_ns", median);
    figure("hardware.error_range_ns", range);
    figure("hardware.error_range_over_noise", share);
    figure("hardware.bracket_side_ns", bracket_side(&device)?);
    Found(outside == 0).or_fail(|| format!("{outside} of {} readings are outside of their bound", errors.len()))?;
    Found(share <= most).or_fail(|| format!("the errors range over {range} ns, {share:.2} times the noise of a stamp"))
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
