//! Options of PTP and of network cards that both daemons have.

use crate::{Unrecognised, words};
use ffclock_sys::DeviceSetup;
use ffclock_units::{OptionValue, Span};
use std::fmt;
use std::str::FromStr;

/// The name of a network device; empty where none is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName(String);

/// Names have at most this many bytes (IFNAMSIZ - 1).
const LONGEST_DEVICE: usize = 15;

impl DeviceName {
    /// None.
    pub const fn none() -> Self {
        DeviceName(String::new())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeviceName {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let plausible = |c: char| c.is_ascii_graphic() && !matches!(c, '/' | ':' | '"');
        let fits = (1..=LONGEST_DEVICE).contains(&text.len()) && !matches!(text, "." | "..");
        (fits && text.chars().all(plausible)).then(|| DeviceName(text.to_owned())).ok_or(Unrecognised)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl OptionValue for DeviceName {
    const KIND: &'static str = "the name of a network device, such as \"eth0\"";
}

/// The time between two messages, as messages state it: log2 of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageInterval(pub i8);

/// What the profiles of PTP use.
const LOG_RANGE: std::ops::RangeInclusive<i8> = -7..=6;

impl MessageInterval {
    /// As a span.
    pub fn as_span(self) -> Span {
        Span::from_units(1 << (64 + i32::from(self.0)))
    }
}

impl FromStr for MessageInterval {
    type Err = Unrecognised;
    fn from_str(text: &str) -> Result<Self, Unrecognised> {
        let span: Span = text.parse().map_err(|_| Unrecognised)?;
        LOG_RANGE.map(MessageInterval).find(|interval| interval.as_span() == span).ok_or(Unrecognised)
    }
}

impl fmt::Display for MessageInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.as_span(), f)
    }
}

impl OptionValue for MessageInterval {
    const KIND: &'static str = "a power of two of a second from \"7.8125 ms\" to \"64 s\", such as \"125 ms\"";
}

/// What may be done to the network devices for `stamps = "hardware"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStamps {
    /// They are left as they are.
    Leave,
    /// Their stamps are switched on.
    SwitchOn,
}

words!(DeviceStamps { Leave: "leave", SwitchOn: "switch-on" });

impl From<DeviceStamps> for DeviceSetup {
    fn from(stamps: DeviceStamps) -> Self {
        match stamps {
            DeviceStamps::Leave => DeviceSetup::Leave,
            DeviceStamps::SwitchOn => DeviceSetup::SwitchOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back() {
        for (text, log) in [("7.8125 ms", -7), ("125 ms", -3), ("1 s", 0), ("64 s", 6)] {
            assert_eq!(text.parse(), Ok(MessageInterval(log)));
            assert_eq!(MessageInterval(log).to_string(), text);
        }
        for text in ["0 s", "3 s", "128 s", "1", ""] {
            assert_eq!(text.parse::<MessageInterval>(), Err(Unrecognised), "{text}");
        }
        for text in ["", ".", "a b", "a234567890123456"] {
            assert_eq!(text.parse::<DeviceName>(), Err(Unrecognised), "{text}");
        }
    }
}
