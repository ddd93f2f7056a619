//! What the kernel keeps time with is followed although the module knows no such counter: its rate is found out at
//! once, and its width where it turns. For this the module is loaded with `blind=1`, without any hardware of its own.

use super::{Followed, Found, Outcome, choose_clocksource, follow, judge_rate, number, open, read, tsc};
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter, Sample};
use std::thread;
use std::time::Duration;

/// How long the rate may take.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// Follows `active` over this clocksource, of this width [bits] and rate [Hz], for so long [s].
pub(crate) fn active(clocksource: &str, [width, hertz, seconds]: [&str; 3]) -> Outcome {
    let device = open()?;
    let others: Vec<ModuleCounter> = device.counters().into_iter().map(|(counter, _)| counter).collect();
    Found(others.iter().all(|counter| *counter == ModuleCounter::Active))
        .or_fail(|| format!("the module is not blind: {others:?}"))?;
    choose_clocksource(clocksource)?;
    let first = once_found(&device)?;
    let off = (first.hertz() / number(hertz) - 1.0) * 1e6;
    println!("FIGURE found.{clocksource}.rate_error_ppm {off:.3}");
    Found(off.abs() < 20.0).or_fail(|| format!("{clocksource}: {} Hz were found", first.hertz()))?;
    let tsc_hertz = 1e9;
    let begun = tsc();
    let first = read(&device, ModuleCounter::Active)?;
    let mut one = Followed { counter: ModuleCounter::Active, first, last: first, tsc: begun };
    let end = one.tsc + (number(seconds) * tsc_hertz) as u64;
    while tsc() < end {
        thread::sleep(Duration::from_millis(1300));
        follow(&device, &mut one)?;
    }
    Found(f64::from(one.last.width) == number(width))
        .or_fail(|| format!("{clocksource}: {} bits were found", one.last.width))?;
    judge_rate(&device, &one, tsc_hertz)
}

/// The first reading.
fn once_found(device: &Ffcounter) -> Result<Sample, String> {
    let mut refused = String::new();
    for _ in 0..PATIENCE.as_millis() / STEP.as_millis() {
        match read(device, ModuleCounter::Active) {
            Ok(sample) => return Ok(sample),
            Err(error) => refused = error,
        }
        thread::sleep(STEP);
    }
    Err(format!("its rate was not found out: {refused}"))
}
