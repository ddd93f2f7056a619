//! The counters that a clock of this kind of machine can run on, and how they are read.

use crate::ffcounter::{FfcounterError, ModuleCounter, shared};
use crate::{clocks, cpu};
use ffclock_units::{Counter, CounterId};

/// A text names no counter of this kind of machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(
    target_os = "linux",
    error(
        "the counter must be {}, monotonic-raw, module:tsc, module:hpet, module:acpi_pm, module:acpi_pm_safe or module:kvm-clock",
        CounterId::CPU
    )
)]
#[cfg_attr(target_os = "freebsd", error("the counter must be {} or module:active", CounterId::CPU))]
pub struct UnknownCounter;

/// Every counter that a clock can run on here. The module's [`ModuleCounter::Active`] is not among them: it changes its
/// frequency with the kernel's clocksource.
#[cfg(target_os = "linux")]
pub const USABLE: [CounterId; 7] = [
    CounterId::CPU,
    CounterId::MonotonicRaw,
    CounterId::Module(ModuleCounter::Tsc),
    CounterId::Module(ModuleCounter::Hpet),
    CounterId::Module(ModuleCounter::AcpiPm),
    CounterId::Module(ModuleCounter::AcpiPmSafe),
    CounterId::Module(ModuleCounter::KvmClock),
];
/// Every counter that a clock can run on here. The module is the kernel itself, and its counter the one of its
/// feed-forward clock; a clock that is never slewed does not exist.
#[cfg(target_os = "freebsd")]
pub const USABLE: [CounterId; 2] = [CounterId::CPU, CounterId::Module(ModuleCounter::Active)];

/// What remains where the counter of the CPU cannot be trusted.
pub const SECOND_BEST: CounterId =
    if cfg!(target_os = "freebsd") { CounterId::Module(ModuleCounter::Active) } else { CounterId::MonotonicRaw };

/// The usable counter of a name.
///
/// # Errors
/// The text names none; the message lists those that there are.
pub fn usable_counter(name: &str) -> Result<CounterId, UnknownCounter> {
    CounterId::named(name).filter(|counter| USABLE.contains(counter)).ok_or(UnknownCounter)
}

/// The value of a counter that cannot be read; [`try_read`] says why it cannot.
const UNREADABLE: Counter = Counter::from_raw(0);

/// Reads the counter, after everything that the program loaded before has arrived: a page read first is older than the
/// reading. A counter that cannot be read shows 0, which [`Continuity`](crate::Continuity) reports with the reason.
#[inline]
pub fn read_ordered(counter: CounterId) -> Counter {
    match counter {
        CounterId::CPU => cpu::read_ordered(),
        CounterId::MonotonicRaw => clocks::raw_clock(),
        CounterId::Module(of_module) => shared::value(of_module),
        _foreign => UNREADABLE,
    }
}

/// Reads the counter as [`read_ordered`] does, or says why it cannot be read.
///
/// # Errors
/// The counter is that of another kind of machine; or it is one of the kernel module's, and the module is not there,
/// its device may not be opened, it has no such counter, or that is asleep.
#[inline]
pub fn try_read(counter: CounterId) -> Result<Counter, FfcounterError> {
    match counter {
        CounterId::CPU | CounterId::MonotonicRaw => Ok(read_ordered(counter)),
        CounterId::Module(of_module) => shared::try_value(of_module),
        foreign => Err(FfcounterError::Foreign(foreign)),
    }
}

/// Reads the counter without waiting for what the program did before: the CPU may read it some tens of ns earlier or
/// later than the place in the program says. A third cheaper, for where that does not matter. (The kernel's clock is
/// always ordered.)
#[inline]
pub fn read_unordered(counter: CounterId) -> Counter {
    match counter {
        CounterId::CPU => cpu::read_unordered(),
        CounterId::MonotonicRaw => clocks::raw_clock(),
        CounterId::Module(of_module) => shared::value(of_module),
        _foreign => UNREADABLE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_this_kind_of_machine_are_found_by_name_and_no_others() {
        for counter in CounterId::ALL {
            let expected = if USABLE.contains(&counter) { Ok(counter) } else { Err(UnknownCounter) };
            assert_eq!(usable_counter(counter.name()), expected);
        }
        assert_eq!(usable_counter("hpet"), Err(UnknownCounter));
        assert!(UnknownCounter.to_string().contains(CounterId::CPU.name()));
    }

    #[test]
    fn a_counter_of_another_kind_of_machine_shows_nothing_and_says_why() {
        let foreign = [CounterId::Tsc, CounterId::ArmVirtual].into_iter().find(|counter| *counter != CounterId::CPU);
        let foreign = foreign.expect("one of two is another");
        assert_eq!((read_ordered(foreign), read_unordered(foreign)), (UNREADABLE, UNREADABLE));
        assert!(matches!(try_read(foreign), Err(FfcounterError::Foreign(named)) if named == foreign));
    }

    #[test]
    fn readings_of_one_thread_never_go_back() {
        for counter in [CounterId::CPU, CounterId::MonotonicRaw] {
            let mut last = read_ordered(counter);
            for _ in 0..100_000 {
                let next = read_ordered(counter);
                assert!(!last.is_after(next), "{counter}: {last:?} then {next:?}");
                last = next;
            }
        }
    }
}
