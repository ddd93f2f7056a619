//! The clock that stamps of a network card make, against the truth: the guest's own system clock, which the server
//! serves, or the clock of the other card of the pair.

use super::{Found, Outcome, figure, median, open};
use ffclock::{Clock, Stamp, Status, VotedTime};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter, PairedSample};
use ffclock_counter::{Bracketed, ClockReading, CounterId, HostClock, read_narrowest};
use ffclock_units::Counter;
use std::fs;
use std::thread;
use std::time::Duration;

/// The interquartile range of normal noise in standard deviations.
const RANGE_OF_NORMAL: f64 = 1.349;
/// Pairs of the module of which the narrowest counts.
const PAIRS: usize = 5;

/// What the published clock is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    /// The system clock of the guest, on UTC.
    SystemClock,
    /// The clock of the card hp0 or hp1 without its noise, on TAI.
    ClockOf(usize),
}

/// For `seconds`, ten times a second: the published clock of ffclockd against the truth, both at the middle of a pair
/// of the module. Its errors must scatter by no more than `most` times as much as one stamp of the card does, of which
/// the standard deviation is `noise` [ns]. None may be larger than its bound and half the width of the pair together:
/// the truth is not known any better.
pub(crate) fn error(seconds: f64, [noise, most]: [f64; 2], truth: Truth) -> Outcome {
    let device = open()?;
    let clock = Clock::open().map_err(|error| error.to_string())?;
    let (mut errors, mut widths) = (Vec::new(), Vec::new());
    let (mut outside, mut worst) = (0, [0; 2]);
    for _ in 0..(seconds * 10.0) as usize {
        thread::sleep(Duration::from_millis(100));
        let (pair, true_time) = truth.read(&device)?;
        let width = pair.width().raw() as f64 * 1e9 / pair.value.sample.hertz();
        let stamp = Stamp::from_parts(pair.middle(), clock.stamp().epoch());
        let VotedTime { reading, tai, .. } = clock.time_of(stamp).map_err(|error| error.to_string())?;
        Found(reading.status == Status::Synchronised).or_fail(|| format!("the clock is {}", reading.status.name()))?;
        let shown = match truth {
            Truth::SystemClock => reading.time.since_origin(),
            Truth::ClockOf(_) => tai.since_origin(),
        };
        let (error, bound) = (shown.as_nanos() - true_time, reading.bound.as_span().as_nanos());
        outside += usize::from(error.abs() as f64 > bound as f64 + width / 2.0);
        if error.abs() >= worst[0] {
            worst = [error.abs(), bound];
        }
        errors.push(error as f64);
        widths.push(width);
    }
    let outcome = scatter("hardware.error", &mut errors, [noise, most]);
    figure("hardware.error_largest_ns", worst[0] as f64);
    figure("hardware.error_largest_bound_ns", worst[1] as f64);
    figure("hardware.pair_width_ns", median(&mut widths));
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
    /// A pair of the module, and the true time [ns] when the kernel's clocks showed what it says.
    fn read(self, device: &Ffcounter) -> Result<(Bracketed<PairedSample>, i128), String> {
        match self {
            Truth::SystemClock => narrowest_pair(device).map(|pair| (pair, i128::from(pair.value.realtime_ns))),
            Truth::ClockOf(card) => {
                let clock = |[raw, first, second]: [i128; 3]| [raw, if card == 0 { first } else { second }];
                let (before, pair, after) = (clocks_of_pair()?, narrowest_pair(device)?, clocks_of_pair()?);
                let ([raw, shown], [raw_after, shown_after]) = (clock(before), clock(after));
                let since = i128::from(pair.value.monotonic_raw_ns) - raw;
                Ok((pair, shown + since * (shown_after - shown) / (raw_after - raw).max(1)))
            }
        }
    }
}

/// The TSC before and after the kernel's clocks, as close around them as can be had. The module reads the TSC, the
/// clocks and the TSC again, and the first reading is some 100 instructions ahead of the clocks. Where the kernel keeps
/// time with the TSC, it has all three of one reading: then the active counter is the TSC, and its pair has no width.
fn narrowest_pair(device: &Ffcounter) -> Result<Bracketed<PairedSample>, String> {
    let is_tsc = device.read(ModuleCounter::Active).is_ok_and(|active| {
        active.underlying == u32::from(ModuleCounter::Tsc.code()) && active.width == u64::BITS as u16
    });
    let counter = if is_tsc { ModuleCounter::Active } else { ModuleCounter::Tsc };
    let pairs = (0..PAIRS).map(|_| {
        let pair = device.read_paired(counter).map_err(|error| error.to_string())?;
        Ok(Bracketed { before: pair.sample.counter(), value: pair, after: Counter::from_raw(pair.value_after) })
    });
    let pairs: Vec<Bracketed<PairedSample>> = pairs.collect::<Result<_, String>>()?;
    pairs.into_iter().min_by_key(Bracketed::width).ok_or_else(|| "no pair".to_owned())
}

/// `CLOCK_MONOTONIC_RAW`, and what the clocks of hp0 and hp1 showed at that moment without their noise [ns].
fn clocks_of_pair() -> Result<[i128; 3], String> {
    let text = fs::read_to_string("/sys/module/hwpair/parameters/truth").map_err(|error| error.to_string())?;
    let numbers: Vec<i128> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().map_err(|_| format!("the pair says {text:?}"))
}

/// How far the middle of a bracket of the counter around the kernel's clock is behind what the clock shows [ns]: every
/// stamp that is placed by such brackets is late by this. The line between two pairs of the module says what the clock
/// shows.
fn bracket_side(device: &Ffcounter) -> Result<f64, String> {
    let mut sides = Vec::new();
    for _ in 0..200 {
        let (before, bracket, after) = (narrowest_pair(device)?, clock_in_bracket(), narrowest_pair(device)?);
        let shown = |pair: &Bracketed<PairedSample>| pair.value.monotonic_raw_ns as f64;
        let ticks = (after.middle() - before.middle()).raw() as f64;
        let each = (after.value.monotonic_raw_ns - before.value.monotonic_raw_ns) as f64 / ticks;
        let middle = (bracket.0 - before.middle()).raw() as f64;
        sides.push(shown(&before) - bracket.1 + middle * each);
    }
    Ok(median(&mut sides))
}

/// The middle of the bracket, and the kernel's clock [ns].
fn clock_in_bracket() -> (Counter, f64) {
    let read = || HostClock::MonotonicRaw.read().map_or(0, |shown: ClockReading| shown.since_origin().as_nanos());
    let bracket = read_narrowest(CounterId::Tsc, 3, read);
    (bracket.middle(), bracket.value as f64)
}
