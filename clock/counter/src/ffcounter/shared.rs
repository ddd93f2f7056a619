//! The one open device of this process, for readings that must be quick.

use super::{CounterPage, Ffcounter, FfcounterError, ModuleCounter, Sample, layout};
use ffclock_units::Counter;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

static DEVICE: OnceLock<Ffcounter> = OnceLock::new();
static TSC_PAGE: OnceLock<Option<CounterPage>> = OnceLock::new();

/// Why it could not be opened, and when that was tried.
static REFUSED: Mutex<Option<(Instant, FfcounterError)>> = Mutex::new(None);
/// How long that answer is kept, so that a loop that reads a clock does not open a file each time.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// The device, opened at the first call; where there was none, again after [`TRY_AGAIN`].
fn device() -> Result<&'static Ffcounter, FfcounterError> {
    DEVICE.get().map_or_else(open, Ok)
}

#[cold]
fn open() -> Result<&'static Ffcounter, FfcounterError> {
    let mut refused = REFUSED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((when, error)) = refused.as_ref()
        && when.elapsed() < TRY_AGAIN
    {
        return Err(error.repeated());
    }
    match Ffcounter::open() {
        Ok(opened) => Ok(DEVICE.get_or_init(|| opened)),
        Err(error) => {
            *refused = Some((Instant::now(), error.repeated()));
            Err(error)
        }
    }
}

/// Reads a counter with what is known of it.
pub(crate) fn sample(counter: ModuleCounter) -> Result<Sample, FfcounterError> {
    device()?.read(counter)
}

/// Reads a counter. Where it cannot be read the value is 0, which a comparison sees as a jump backwards; the reason is
/// in [`try_value`].
#[inline]
pub(crate) fn value(counter: ModuleCounter) -> Counter {
    try_value(counter).unwrap_or(Counter::from_raw(0))
}

/// Reads a counter, or says why it cannot be read.
#[inline]
pub(crate) fn try_value(counter: ModuleCounter) -> Result<Counter, FfcounterError> {
    if counter == ModuleCounter::Tsc
        && let Some(Some(page)) = TSC_PAGE.get()
        && let Some(reading) = page.read()
    {
        return Ok(reading.counter);
    }
    value_by_call(counter)
}

#[cold]
fn value_by_call(counter: ModuleCounter) -> Result<Counter, FfcounterError> {
    let device = device()?;
    let sample = device.read(counter)?;
    if counter == ModuleCounter::Tsc {
        TSC_PAGE.get_or_init(|| if sample.has(layout::PAGE) { device.page(counter).ok() } else { None });
    }
    Ok(sample.counter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_module_the_value_is_zero_and_the_reason_is_given() {
        match sample(ModuleCounter::AcpiPm) {
            Ok(sample) => assert!(sample.width == 24 && value(ModuleCounter::AcpiPm).raw() >= sample.value),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(value(ModuleCounter::AcpiPm), Counter::from_raw(0));
                assert_eq!(try_value(ModuleCounter::Tsc).unwrap_err().to_string(), error.to_string());
            }
        }
    }

    #[test]
    fn a_device_that_cannot_be_opened_is_not_tried_at_every_reading() {
        let Err(first) = device() else {
            println!("SKIP: the module is here");
            return;
        };
        let begin = Instant::now();
        let mut times = Vec::new();
        while begin.elapsed() < 2 * TRY_AGAIN {
            assert_eq!(device().unwrap_err().to_string(), first.to_string());
            times.extend(REFUSED.lock().unwrap().as_ref().map(|(when, _)| *when));
        }
        times.dedup();
        assert!((2..=4).contains(&times.len()), "{} attempts in {:?}", times.len(), begin.elapsed());
    }
}
