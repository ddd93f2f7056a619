//! Which counter a clock runs on: one name and one number for each, wherever it is stated.

use core::fmt;

/// A raw counter that a clock can run on. Which of them this machine can read, the crate `counter` knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterId {
    /// The time stamp counter of x86 processors.
    Tsc,
    /// The clock `CLOCK_MONOTONIC_RAW` of the kernel in ticks of 1 ns; on Linux alone.
    MonotonicRaw,
    /// The virtual counter of ARM processors, `CNTVCT_EL0`.
    ArmVirtual,
    /// A counter of the kernel module `ffcounter` (docs/kernel.md), 64 bits wide whatever the hardware.
    Module(ModuleCounter),
}

/// A counter of the kernel module `ffcounter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleCounter {
    /// The counter that the kernel keeps time with; another one begins a new epoch.
    Active,
    /// The TSC.
    Tsc,
    /// The HPET, its lower 32 bits.
    Hpet,
    /// The ACPI power management timer, read once.
    AcpiPm,
    /// The same, read until three reads are in order.
    AcpiPmSafe,
    /// The clock that KVM offers its guests.
    KvmClock,
}

impl CounterId {
    /// All of them, in the order of their numbers.
    pub const ALL: [CounterId; 9] = [
        CounterId::Tsc,
        CounterId::MonotonicRaw,
        CounterId::ArmVirtual,
        CounterId::Module(ModuleCounter::Tsc),
        CounterId::Module(ModuleCounter::Hpet),
        CounterId::Module(ModuleCounter::AcpiPm),
        CounterId::Module(ModuleCounter::AcpiPmSafe),
        CounterId::Module(ModuleCounter::KvmClock),
        CounterId::Module(ModuleCounter::Active),
    ];

    /// The counter of the processors that this program is compiled for.
    pub const CPU: CounterId = if cfg!(target_arch = "aarch64") { CounterId::ArmVirtual } else { CounterId::Tsc };

    /// The number that stands for it in a page (docs/page.md); never 0.
    pub const fn code(self) -> u8 {
        match self {
            CounterId::Tsc => 1,
            CounterId::MonotonicRaw => 2,
            CounterId::ArmVirtual => 3,
            CounterId::Module(ModuleCounter::Tsc) => 4,
            CounterId::Module(ModuleCounter::Hpet) => 5,
            CounterId::Module(ModuleCounter::AcpiPm) => 6,
            CounterId::Module(ModuleCounter::AcpiPmSafe) => 7,
            CounterId::Module(ModuleCounter::KvmClock) => 8,
            CounterId::Module(ModuleCounter::Active) => 9,
        }
    }

    /// The counter of a number in a page.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(CounterId::Tsc),
            2 => Some(CounterId::MonotonicRaw),
            3 => Some(CounterId::ArmVirtual),
            4 => Some(CounterId::Module(ModuleCounter::Tsc)),
            5 => Some(CounterId::Module(ModuleCounter::Hpet)),
            6 => Some(CounterId::Module(ModuleCounter::AcpiPm)),
            7 => Some(CounterId::Module(ModuleCounter::AcpiPmSafe)),
            8 => Some(CounterId::Module(ModuleCounter::KvmClock)),
            9 => Some(CounterId::Module(ModuleCounter::Active)),
            _ => None,
        }
    }

    /// The name in configurations, traces, states and messages.
    pub const fn name(self) -> &'static str {
        match self {
            CounterId::Tsc => "tsc",
            CounterId::MonotonicRaw => "monotonic-raw",
            CounterId::ArmVirtual => "arm-virtual",
            CounterId::Module(ModuleCounter::Tsc) => "module:tsc",
            CounterId::Module(ModuleCounter::Hpet) => "module:hpet",
            CounterId::Module(ModuleCounter::AcpiPm) => "module:acpi_pm",
            CounterId::Module(ModuleCounter::AcpiPmSafe) => "module:acpi_pm_safe",
            CounterId::Module(ModuleCounter::KvmClock) => "module:kvm-clock",
            CounterId::Module(ModuleCounter::Active) => "module:active",
        }
    }

    /// The counter of a name.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == text)
    }

    /// Whether each CPU has its own, so that those of two may disagree, through whatever they are read.
    pub const fn is_per_cpu(self) -> bool {
        match self {
            CounterId::Tsc | CounterId::ArmVirtual => true,
            CounterId::Module(ModuleCounter::Tsc | ModuleCounter::KvmClock) => true,
            CounterId::MonotonicRaw | CounterId::Module(_) => false,
        }
    }
}

impl fmt::Display for CounterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ModuleCounter {
    /// All of them, in the order of their numbers, whether the machine has them or not.
    pub const ALL: [ModuleCounter; 6] = [
        ModuleCounter::Active,
        ModuleCounter::Tsc,
        ModuleCounter::Hpet,
        ModuleCounter::AcpiPm,
        ModuleCounter::AcpiPmSafe,
        ModuleCounter::KvmClock,
    ];

    /// The number by which the kernel module knows it, which is not that of a page.
    pub const fn code(self) -> u16 {
        self as u16
    }

    /// The counter of a number of the module.
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }

    /// The name after `module:`.
    pub const fn name(self) -> &'static str {
        match self {
            ModuleCounter::Active => "active",
            ModuleCounter::Tsc => "tsc",
            ModuleCounter::Hpet => "hpet",
            ModuleCounter::AcpiPm => "acpi_pm",
            ModuleCounter::AcpiPmSafe => "acpi_pm_safe",
            ModuleCounter::KvmClock => "kvm-clock",
        }
    }
}

impl fmt::Display for ModuleCounter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_belong_to_one_counter_each() {
        for (place, counter) in CounterId::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(counter.code()), place + 1);
            assert_eq!(CounterId::from_code(counter.code()), Some(counter));
            assert_eq!(CounterId::named(counter.name()), Some(counter));
        }
        assert_eq!((CounterId::from_code(0), CounterId::from_code(10)), (None, None));
        assert_eq!((CounterId::named("hpet"), CounterId::named("")), (None, None));
    }

    #[test]
    fn the_modules_counters_have_numbers_and_names_of_their_own() {
        for counter in ModuleCounter::ALL {
            assert_eq!(ModuleCounter::from_code(counter.code().into()), Some(counter));
            assert_eq!(CounterId::Module(counter).name().strip_prefix("module:"), Some(counter.name()));
        }
        assert_eq!(ModuleCounter::from_code(6), None);
    }
}
