//! Option values that only the daemon knows, each with its one text form.

use ffclock_counter::Choice;
use ffclock_units::OptionValue;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Gives an enumeration its words in configuration files.
macro_rules! words {
    ($name:ident { $($variant:ident: $word:literal),+ }) => {
        impl FromStr for $name {
            type Err = Unrecognised;
            fn from_str(text: &str) -> Result<Self, Unrecognised> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err(Unrecognised),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $($name::$variant => $word,)+
                })
            }
        }

        impl OptionValue for $name {
            const KIND: &'static str = words!(@list $($word)+);
        }
    };
    (@list $last:literal) => { concat!("\"", $last, "\"") };
    (@list $one:literal $last:literal) => { concat!("\"", $one, "\" or \"", $last, "\"") };
    (@list $one:literal $($more:literal)+) => { concat!("\"", $one, "\", ", words!(@list $($more)+)) };
}

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
}

impl StampChoice {
    /// Whether the sockets' own stamps of the kernel are wanted.
    pub fn is_in_kernel(self) -> bool {
        self != StampChoice::User
    }
}

words!(StampChoice { Kernel: "kernel", User: "user", Trace: "trace", Module: "module" });

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

/// A value that the word `off` can switch off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switchable<T> {
    /// Switched off.
    Off,
    /// Switched on, with this value.
    On(T),
}

impl<T> Switchable<T> {
    /// The value, if it is switched on.
    pub fn value(&self) -> Option<&T> {
        match self {
            Switchable::Off => None,
            Switchable::On(value) => Some(value),
        }
    }
}

impl<T: FromStr> FromStr for Switchable<T> {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        match text {
            "off" => Ok(Switchable::Off),
            value => value.parse().map(Switchable::On).map_err(|_| Unrecognised),
        }
    }
}

impl<T: fmt::Display> fmt::Display for Switchable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Switchable::Off => f.write_str("off"),
            Switchable::On(value) => value.fmt(f),
        }
    }
}

/// An address of this host that no other host can reach, with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopbackAddress(SocketAddr);

impl LoopbackAddress {
    /// The socket address.
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

impl FromStr for LoopbackAddress {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let address: SocketAddr = text.parse().map_err(|_| Unrecognised)?;
        // Port 0 would be another one with each start, which no scraper finds.
        let is_fixed = address.ip().is_loopback() && address.port() != 0;
        is_fixed.then_some(LoopbackAddress(address)).ok_or(Unrecognised)
    }
}

impl fmt::Display for LoopbackAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl OptionValue for Switchable<LoopbackAddress> {
    const KIND: &'static str = "\"off\" or a loopback address with a port, such as \"127.0.0.1:9975\"";
}

impl OptionValue for Switchable<FilePath> {
    const KIND: &'static str = "\"off\" or a path";
}

/// A path, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    text: String,
    /// Whether the configuration does not name it.
    is_usual: bool,
}

impl FilePath {
    /// A path that the program itself names, for want of another.
    pub(crate) fn fixed(path: &'static str) -> Self {
        FilePath { text: path.to_owned(), is_usual: true }
    }

    /// The path.
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(&self.text)
    }

    /// Whether the program named it, and may name another.
    pub(crate) fn is_usual(&self) -> bool {
        self.is_usual
    }
}

impl FromStr for FilePath {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let is_path = !text.is_empty() && !text.contains('\0');
        is_path.then(|| FilePath { text: text.to_owned(), is_usual: false }).ok_or(Unrecognised)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl OptionValue for FilePath {
    const KIND: &'static str = "a path";
}

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

/// The text is none of the accepted forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecognised;

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
        assert_eq!("off".parse::<Switchable<FilePath>>().unwrap(), Switchable::Off);
        assert_eq!("127.0.0.1:1".parse::<Switchable<LoopbackAddress>>().unwrap().to_string(), "127.0.0.1:1");
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!("hpet".parse::<CounterChoice>(), Err(Unrecognised));
        assert_eq!("".parse::<HostName>(), Err(Unrecognised));
        assert_eq!("a b".parse::<HostName>(), Err(Unrecognised));
        assert_eq!("x".repeat(254).parse::<HostName>(), Err(Unrecognised));
        for text in ["somewhere", "127.0.0.1", "127.0.0.1:0", "192.0.2.1:80", "[::]:80"] {
            assert_eq!(text.parse::<Switchable<LoopbackAddress>>(), Err(Unrecognised), "{text}");
        }
        for text in ["", "a\0b"] {
            assert_eq!(text.parse::<FilePath>(), Err(Unrecognised));
        }
    }
}
