//! Option values that only the daemon knows, each with its one text form.

use ffclock_counter::Choice;
use ffclock_service::words;
pub use ffclock_service::{FilePath, LoopbackAddress, Switchable, Unrecognised};
use ffclock_units::OptionValue;
use std::fmt;
use std::str::FromStr;

/// Which counter to keep time with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterChoice(pub Choice);

impl FromStr for CounterChoice {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        text.parse().map(CounterChoice).map_err(|_| Unrecognised)
    }
}

impl fmt::Display for CounterChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OptionValue for CounterChoice {
    const KIND: &'static str = "\"auto\", \"tsc\", \"monotonic-raw\" or a counter of the kernel module: \"module:tsc\", \"module:hpet\", \
         \"module:acpi_pm\", \"module:acpi_pm_safe\", \"module:kvm-clock\"";
}

/// Where packets are stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampChoice {
    /// In the kernel, with user-space stamps where the kernel gives none.
    Kernel,
    /// In user space, around the system calls.
    User,
    /// As `Kernel`, and at the boundary to the driver by the kernel's tracepoints, with the raw TSC as their clock.
    Trace,
    /// As `Kernel`, and at the boundary to the driver by the kernel module `ffcounter`.
    Module,
    /// As `Kernel`, and in the network card by its own clock.
    Hardware,
}

impl StampChoice {
    /// Whether they are wanted at the boundary to the driver, by the raw counter itself.
    pub fn is_at_driver(self) -> bool {
        matches!(self, StampChoice::Trace | StampChoice::Module)
    }
}

words!(StampChoice { Kernel: "kernel", User: "user", Trace: "trace", Module: "module", Hardware: "hardware" });

/// What the daemon knows of the host's own asymmetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAsymmetry {
    /// The asymmetry is unknown.
    Unknown,
    /// It was measured by `ffclock-lab probe calibrate`.
    Calibrated,
}

words!(HostAsymmetry { Unknown: "unknown", Calibrated: "calibrated" });

/// The use of the kernel's feed-forward clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelClockUse {
    /// The kernel's clock is left alone.
    Leave,
    /// Every estimate is handed to it.
    Drive,
}

words!(KernelClockUse { Leave: "leave", Drive: "drive" });

/// A DNS name or a literal address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// The default; a configuration must replace it.
    pub(crate) fn unset() -> Self {
        HostName(String::new())
    }

    /// Whether no name was given.
    pub(crate) fn is_unset(&self) -> bool {
        self.0.is_empty()
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// DNS names are at most this long (RFC 1035 section 2.3.4).
const LONGEST_NAME: usize = 253;

impl FromStr for HostName {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let plausible = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_' | '%');
        let fits = !text.is_empty() && text.len() <= LONGEST_NAME;
        (fits && text.chars().all(plausible)).then(|| HostName(text.to_owned())).ok_or(Unrecognised)
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl OptionValue for HostName {
    const KIND: &'static str = "a host name or an IP address";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_back_as_itself() {
        assert_eq!("auto".parse::<CounterChoice>().unwrap().to_string(), "auto");
        assert_eq!("monotonic-raw".parse::<CounterChoice>().unwrap().to_string(), "monotonic-raw");
        for name in ["kernel", "user", "trace", "module"] {
            assert_eq!(name.parse::<StampChoice>().unwrap().to_string(), name);
        }
        for name in ["unknown", "calibrated"] {
            assert_eq!(name.parse::<HostAsymmetry>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!("hpet".parse::<CounterChoice>(), Err(Unrecognised));
        assert_eq!("".parse::<HostName>(), Err(Unrecognised));
        assert_eq!("a b".parse::<HostName>(), Err(Unrecognised));
        assert_eq!("x".repeat(254).parse::<HostName>(), Err(Unrecognised));
    }
}
