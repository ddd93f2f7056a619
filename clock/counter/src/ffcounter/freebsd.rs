//! The counter of FreeBSD's feed-forward clock in place of the module's: cumulative ticks of the timecounter in use.

use super::{FfcounterError, ModuleCounter, Sample, layout};
use crate::sysctl;
use core::sync::atomic::{AtomicI64, Ordering};
use ffclock_freebsd::kernel;
use ffclock_units::Counter;
use std::ffi::CString;
use std::io;

/// The hardware counter under the kernel's clocks.
struct Timecounter {
    /// The nominal frequency [Hz].
    hertz: u64,
    /// The bits that it has.
    mask: u64,
}

/// The timecounter in use, as the kernel describes it.
fn read_timecounter() -> io::Result<Timecounter> {
    let name = sysctl::text(c"kern.timecounter.hardware")?;
    let of = |what: &str| sysctl::number(&CString::new(format!("kern.timecounter.tc.{name}.{what}"))?);
    Ok(Timecounter { hertz: of("frequency")?, mask: of("mask")? })
}

/// The frequency of the timecounter when it was last asked for, Hz; 0 before that.
static HERTZ: AtomicI64 = AtomicI64::new(0);

fn timecounter() -> Result<Timecounter, FfcounterError> {
    let found = read_timecounter().map_err(refused)?;
    HERTZ.store(i64::try_from(found.hertz).unwrap_or(i64::MAX), Ordering::Relaxed);
    Ok(found)
}

/// A reading that another one confirms from 1 to 100 us later.
fn confirmed() -> io::Result<Counter> {
    let hertz = HERTZ.load(Ordering::Relaxed);
    kernel::read_counter(&((hertz / 1_000_000).max(1)..=(hertz / 10_000).max(2)))
}

/// Reads the counter with what is known of it.
pub(crate) fn sample(counter: ModuleCounter) -> Result<Sample, FfcounterError> {
    let timecounter = timecounter()?;
    let value = try_value(counter)?.raw();
    Ok(Sample {
        value,
        frequency_millihertz: timecounter.hertz.saturating_mul(1000),
        // A change of timecounter shows in its name.
        epoch: 0,
        id: counter.code(),
        width: timecounter.mask.count_ones() as u16,
        flags: layout::ACTIVE,
        underlying: ModuleCounter::Active.code().into(),
    })
}

/// Reads the counter. Where it cannot be read the value is 0, which a comparison sees as a jump backwards; the reason
/// is in [`try_value`].
#[inline]
pub(crate) fn value(counter: ModuleCounter) -> Counter {
    try_value(counter).unwrap_or(Counter::from_raw(0))
}

/// Reads the counter, or says why it cannot be read.
#[inline]
pub(crate) fn try_value(counter: ModuleCounter) -> Result<Counter, FfcounterError> {
    if counter != ModuleCounter::Active {
        return Err(FfcounterError::NoCounter(counter));
    }
    match confirmed() {
        Ok(counter) => Ok(counter),
        // The timecounter may be another than when its frequency was asked for.
        Err(_) => {
            timecounter()?;
            confirmed().map_err(refused)
        }
    }
}

#[cold]
fn refused(error: io::Error) -> FfcounterError {
    FfcounterError::Io { path: "the kernel's feed-forward clock".into(), error }
}
