//! Values that options of a daemon have, each with its one text form.

use ffclock_units::{Bound, OptionValue};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// Gives an enumeration its words in configuration files.
#[macro_export]
macro_rules! words {
    ($name:ident { $($variant:ident: $word:literal),+ }) => {
        impl std::str::FromStr for $name {
            type Err = $crate::Unrecognised;
            fn from_str(text: &str) -> Result<Self, $crate::Unrecognised> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::Unrecognised),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self {
                    $($name::$variant => $word,)+
                })
            }
        }

        impl $crate::OptionValue for $name {
            const KIND: &'static str = $crate::words!(@list $($word)+);
        }
    };
    (@list $last:literal) => { concat!("\"", $last, "\"") };
    (@list $one:literal $last:literal) => { concat!("\"", $one, "\" or \"", $last, "\"") };
    (@list $one:literal $($more:literal)+) => { concat!("\"", $one, "\", ", $crate::words!(@list $($more)+)) };
}

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

impl OptionValue for Switchable<Bound> {
    const KIND: &'static str = "\"off\" or a non-negative span with its unit, such as \"2 us\"";
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
    pub fn fixed(path: &'static str) -> Self {
        FilePath { text: path.to_owned(), is_usual: true }
    }

    /// The path.
    pub fn as_path(&self) -> &std::path::Path {
        std::path::Path::new(&self.text)
    }

    /// Whether the program named it, and may name another.
    pub fn is_usual(&self) -> bool {
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

/// The text is none of the accepted forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unrecognised;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!("off".parse::<Switchable<FilePath>>().unwrap(), Switchable::Off);
        assert_eq!("127.0.0.1:1".parse::<Switchable<LoopbackAddress>>().unwrap().to_string(), "127.0.0.1:1");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["somewhere", "127.0.0.1", "127.0.0.1:0", "192.0.2.1:80", "[::]:80"] {
            assert_eq!(text.parse::<Switchable<LoopbackAddress>>(), Err(Unrecognised), "{text}");
        }
        for text in ["", "a\0b"] {
            assert_eq!(text.parse::<FilePath>(), Err(Unrecognised));
        }
    }
}
