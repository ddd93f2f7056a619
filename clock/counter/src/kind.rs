//! Which counter.

use crate::ffcounter::{FfcounterError, ModuleCounter, shared};
use crate::{clocks, cpu};
use core::fmt;
use core::str::FromStr;
use ffclock_units::Counter;

/// A counter that the clock can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterKind {
    /// The counter of the CPU: the TSC on x86-64, the virtual counter (`cntvct_el0`) on aarch64.
    Tsc,
    /// `CLOCK_MONOTONIC_RAW` of the kernel in ticks of 1 ns; on Linux alone.
    MonotonicRaw,
    /// A counter of the kernel module `ffcounter` (docs/kernel.md): any hardware, 64 bits wide. Where it cannot be read its value is
    /// 0, which [`Continuity`](crate::Continuity) reports with the reason.
    Module(ModuleCounter),
}

/// A text names no counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(
    target_os = "linux",
    error(
        "the counter must be tsc, monotonic-raw, module:tsc, module:hpet, module:acpi_pm, module:acpi_pm_safe or module:kvm-clock"
    )
)]
#[cfg_attr(target_os = "freebsd", error("the counter must be tsc or module:active"))]
pub struct UnknownCounter;

impl CounterKind {
    /// Every counter that can be named. The module's [`ModuleCounter::Active`] is not among them: it changes its frequency with the
    /// kernel's clocksource.
    #[cfg(target_os = "linux")]
    pub const ALL: [CounterKind; 7] = [
        CounterKind::Tsc,
        CounterKind::MonotonicRaw,
        CounterKind::Module(ModuleCounter::Tsc),
        CounterKind::Module(ModuleCounter::Hpet),
        CounterKind::Module(ModuleCounter::AcpiPm),
        CounterKind::Module(ModuleCounter::AcpiPmSafe),
        CounterKind::Module(ModuleCounter::KvmClock),
    ];
    /// Every counter that can be named. The module is the kernel itself, and its counter the one of its feed-forward clock; there is no
    /// clock that nobody slews.
    #[cfg(target_os = "freebsd")]
    pub const ALL: [CounterKind; 2] = [CounterKind::Tsc, CounterKind::Module(ModuleCounter::Active)];

    /// What remains where the counter of the CPU cannot be trusted.
    pub const SECOND_BEST: CounterKind = if cfg!(target_os = "freebsd") {
        CounterKind::Module(ModuleCounter::Active)
    } else {
        CounterKind::MonotonicRaw
    };

    /// Whether each CPU has its own, so that those of two may disagree, through whatever they are read.
    pub const fn is_per_cpu(self) -> bool {
        matches!(
            self,
            CounterKind::Tsc | CounterKind::Module(ModuleCounter::Tsc) | CounterKind::Module(ModuleCounter::KvmClock)
        )
    }

    /// The name in configuration files and in the status.
    pub const fn name(self) -> &'static str {
        match self {
            CounterKind::Tsc => "tsc",
            CounterKind::MonotonicRaw => "monotonic-raw",
            CounterKind::Module(ModuleCounter::Active) => "module:active",
            CounterKind::Module(ModuleCounter::Tsc) => "module:tsc",
            CounterKind::Module(ModuleCounter::Hpet) => "module:hpet",
            CounterKind::Module(ModuleCounter::AcpiPm) => "module:acpi_pm",
            CounterKind::Module(ModuleCounter::AcpiPmSafe) => "module:acpi_pm_safe",
            CounterKind::Module(ModuleCounter::KvmClock) => "module:kvm-clock",
        }
    }
}

impl fmt::Display for CounterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CounterKind {
    type Err = UnknownCounter;
    fn from_str(text: &str) -> Result<Self, UnknownCounter> {
        CounterKind::ALL.into_iter().find(|kind| kind.name() == text).ok_or(UnknownCounter)
    }
}

/// Reads the counter, after everything that the program loaded before has arrived: a page read first is older than the
/// reading.
#[inline]
pub fn read_ordered(kind: CounterKind) -> Counter {
    match kind {
        CounterKind::Tsc => cpu::read_ordered(),
        CounterKind::MonotonicRaw => clocks::raw_clock(),
        CounterKind::Module(counter) => shared::value(counter),
    }
}

/// Reads the counter as [`read_ordered`] does, or says why it cannot be read, which happens to those of the kernel module only.
///
/// # Errors
/// The module is not there, its device may not be opened, it has no such counter, or that is asleep.
#[inline]
pub fn try_read(kind: CounterKind) -> Result<Counter, FfcounterError> {
    match kind {
        CounterKind::Tsc | CounterKind::MonotonicRaw => Ok(read_ordered(kind)),
        CounterKind::Module(counter) => shared::try_value(counter),
    }
}

/// Reads the counter without waiting for what the program did before: the CPU may read it some tens of ns earlier or later than the
/// place in the program says. A third cheaper, for where that does not matter. (The kernel's clock is always ordered.)
#[inline]
pub fn read_unordered(kind: CounterKind) -> Counter {
    match kind {
        CounterKind::Tsc => cpu::read_unordered(),
        CounterKind::MonotonicRaw => clocks::raw_clock(),
        CounterKind::Module(counter) => shared::value(counter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for kind in CounterKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("hpet".parse::<CounterKind>(), Err(UnknownCounter));
    }

    #[test]
    fn readings_of_one_thread_never_go_back() {
        for kind in [CounterKind::Tsc, CounterKind::MonotonicRaw] {
            let mut last = read_ordered(kind);
            for _ in 0..100_000 {
                let next = read_ordered(kind);
                assert!(!last.is_after(next), "{kind}: {last:?} then {next:?}");
                last = next;
            }
        }
    }
}
