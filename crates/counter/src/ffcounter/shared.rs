//! The one open device of this process, for readings that must be quick.

use super::{CounterPage, Ffcounter, FfcounterError, ModuleCounter, Sample, layout};
use ffclock_units::Counter;
use std::sync::OnceLock;

static DEVICE: OnceLock<Ffcounter> = OnceLock::new();
static TSC_PAGE: OnceLock<Option<CounterPage>> = OnceLock::new();

/// The device, opened at the first call; a call that found none leaves it to the next.
fn device() -> Result<&'static Ffcounter, FfcounterError> {
    if let Some(device) = DEVICE.get() {
        return Ok(device);
    }
    let opened = Ffcounter::open()?;
    Ok(DEVICE.get_or_init(|| opened))
}

/// Reads a counter with what is known of it.
pub(crate) fn sample(counter: ModuleCounter) -> Result<Sample, FfcounterError> {
    device()?.read(counter)
}

/// Reads a counter. Where it cannot be read the value is 0, which is a jump backwards for whoever compares; the reason is in
/// [`sample`].
#[inline]
pub(crate) fn value(counter: ModuleCounter) -> Counter {
    if counter == ModuleCounter::Tsc
        && let Some(Some(page)) = TSC_PAGE.get()
        && let Some(reading) = page.read()
    {
        return reading.counter;
    }
    value_by_call(counter)
}

#[cold]
fn value_by_call(counter: ModuleCounter) -> Counter {
    let Ok(device) = device() else { return Counter::from_raw(0) };
    let Ok(sample) = device.read(counter) else { return Counter::from_raw(0) };
    if counter == ModuleCounter::Tsc {
        TSC_PAGE.get_or_init(|| if sample.has(layout::PAGE) { device.page(counter).ok() } else { None });
    }
    sample.counter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_module_the_value_is_zero_and_the_reason_is_told() {
        match sample(ModuleCounter::AcpiPm) {
            Ok(sample) => assert!(sample.width == 24 && value(ModuleCounter::AcpiPm).raw() >= sample.value),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert_eq!(value(ModuleCounter::AcpiPm), Counter::from_raw(0));
            }
        }
    }
}
