//! The names in a page: which counter it is about, and in which boot it was written.

/// The counter that a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterId {
    /// The time stamp counter of x86 processors.
    Tsc,
    /// The clock `CLOCK_MONOTONIC_RAW` of the kernel, in ns.
    MonotonicRaw,
    /// The virtual counter of ARM processors, `CNTVCT_EL0`.
    ArmVirtual,
    /// The TSC through the kernel module `ffcounter`.
    ModuleTsc,
    /// The HPET through the module.
    ModuleHpet,
    /// The ACPI power management timer through the module, read once.
    ModuleAcpiPm,
    /// The same, read until three reads are in order.
    ModuleAcpiPmSafe,
    /// The clock of KVM through the module.
    ModuleKvmClock,
    /// Whichever counter the kernel keeps time with, through the module.
    ModuleActive,
}

impl CounterId {
    /// The number that stands for it in a page; never 0.
    pub const fn code(self) -> u8 {
        match self {
            CounterId::Tsc => 1,
            CounterId::MonotonicRaw => 2,
            CounterId::ArmVirtual => 3,
            CounterId::ModuleTsc => 4,
            CounterId::ModuleHpet => 5,
            CounterId::ModuleAcpiPm => 6,
            CounterId::ModuleAcpiPmSafe => 7,
            CounterId::ModuleKvmClock => 8,
            CounterId::ModuleActive => 9,
        }
    }

    /// The counter of a number in a page.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(CounterId::Tsc),
            2 => Some(CounterId::MonotonicRaw),
            3 => Some(CounterId::ArmVirtual),
            4 => Some(CounterId::ModuleTsc),
            5 => Some(CounterId::ModuleHpet),
            6 => Some(CounterId::ModuleAcpiPm),
            7 => Some(CounterId::ModuleAcpiPmSafe),
            8 => Some(CounterId::ModuleKvmClock),
            9 => Some(CounterId::ModuleActive),
            _ => None,
        }
    }

    /// Its name, as in configurations and messages.
    pub const fn name(self) -> &'static str {
        match self {
            CounterId::Tsc => "tsc",
            CounterId::MonotonicRaw => "monotonic-raw",
            CounterId::ArmVirtual => "arm-virtual",
            CounterId::ModuleTsc => "module:tsc",
            CounterId::ModuleHpet => "module:hpet",
            CounterId::ModuleAcpiPm => "module:acpi_pm",
            CounterId::ModuleAcpiPmSafe => "module:acpi_pm_safe",
            CounterId::ModuleKvmClock => "module:kvm-clock",
            CounterId::ModuleActive => "module:active",
        }
    }
}

/// One run of the machine from start to stop: counters of different runs have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BootId(u128);

impl BootId {
    /// From the 128 bits of an identifier; `None` for all ones, which a page uses for "not stated".
    pub const fn from_bits(bits: u128) -> Option<Self> {
        if bits == u128::MAX { None } else { Some(BootId(bits)) }
    }

    /// The 128 bits.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// From the text of Linux's `/proc/sys/kernel/random/boot_id`: 32 hexadecimal digits with hyphens among them.
    pub fn parse(text: &str) -> Option<Self> {
        let mut bits = 0u128;
        let mut digits = 0;
        for symbol in text.trim().chars().filter(|symbol| *symbol != '-') {
            bits = (bits << 4) | u128::from(symbol.to_digit(16)?);
            digits += 1;
        }
        if digits == 32 { Self::from_bits(bits) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_counters_belong_together() {
        for code in 1..=9 {
            assert_eq!(CounterId::from_code(code).map(CounterId::code), Some(code));
        }
        assert_eq!(CounterId::from_code(10), None);
        assert_eq!(CounterId::from_code(0), None);
    }

    #[test]
    fn a_boot_identifier_is_read_as_linux_writes_it() {
        let id = BootId::parse("01234567-89ab-cdef-0123-456789abcdef\n").unwrap();
        assert_eq!(id.bits(), 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for wrong in ["", "0123", "x1234567-89ab-cdef-0123-456789abcdef", "ffffffff-ffff-ffff-ffff-ffffffffffff"] {
            assert_eq!(BootId::parse(wrong), None, "{wrong}");
        }
    }
}
