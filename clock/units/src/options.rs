//! One declaration for each configuration option: its name, type, default, range and help.
//!
//! [`options!`](crate::options) turns the declaration into the struct, its defaults, the parser that refuses what is
//! out of range and the reference documentation, so none of these can disagree.

use crate::{Bound, Rate, Span};
use core::fmt;

/// A type that an option can have.
pub trait OptionValue: core::str::FromStr + fmt::Display {
    /// What a value looks like, for the reference: "a span such as 250 us".
    const KIND: &'static str;
}

impl OptionValue for Span {
    const KIND: &'static str = "a span with its unit, such as \"250 us\"";
}
impl OptionValue for Bound {
    const KIND: &'static str = "a non-negative span with its unit, such as \"2 us\"";
}
impl OptionValue for Rate {
    const KIND: &'static str = "a rate with its unit, such as \"0.1 ppm\"";
}
impl OptionValue for u32 {
    const KIND: &'static str = "a whole number";
}
impl OptionValue for u16 {
    const KIND: &'static str = "a whole number";
}
impl OptionValue for f64 {
    const KIND: &'static str = "a number";
}
impl OptionValue for bool {
    const KIND: &'static str = "true or false";
}

/// One option as the reference documentation shows it.
pub struct OptionDoc<'a> {
    /// The key.
    pub name: &'static str,
    /// What a value looks like.
    pub kind: &'static str,
    /// The value when the key is absent.
    pub default: &'a dyn fmt::Display,
    /// The smallest and the largest value that are accepted.
    pub range: Option<(&'a dyn fmt::Display, &'a dyn fmt::Display)>,
    /// The help, a line each.
    pub help: &'static [&'static str],
}

/// Why an option was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// No option has this name.
    Unknown,
    /// The value is not of the option's kind, which is named.
    Malformed(&'static str),
    /// The value is outside the option's range.
    OutOfRange,
    /// The option exists, but cannot be set here; the text says where.
    Elsewhere(&'static str),
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown => f.write_str("unknown option"),
            OptionError::Malformed(kind) => write!(f, "the value must be {kind}"),
            OptionError::OutOfRange => f.write_str("the value is out of range"),
            OptionError::Elsewhere(place) => f.write_str(place),
        }
    }
}

impl core::error::Error for OptionError {}

/// Declares a configuration struct. Each field is `name: type = default` with an optional `, low => high` range; its
/// documentation comment is its help.
/// ```
/// ffclock_units::options! {
///     /// How to poll.
///     pub struct Polling {
///         /// Time between two requests.
///         poll: ffclock_units::Span = ffclock_units::Span::from_secs(16),
///             ffclock_units::Span::from_millis(125) => ffclock_units::Span::from_secs(1024);
///         /// Whether to start with a burst.
///         burst: bool = true;
///     }
/// }
/// let mut polling = Polling::default();
/// polling.set("poll", "2 s").unwrap();
/// assert_eq!(polling.poll, ffclock_units::Span::from_secs(2));
/// assert!(polling.set("poll", "1 h").is_err());
/// assert!(polling.set("pool", "2 s").is_err());
/// ```
#[macro_export]
macro_rules! options {
    ($(#[$story:meta])* pub struct $config:ident {
        $($(#[doc = $help:literal])+ $name:ident : $kind:ty = $default:expr $(, $low:expr => $high:expr)?;)*
    }) => {
        $(#[$story])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $config { $($(#[doc = $help])+ pub $name: $kind,)* }

        impl Default for $config {
            fn default() -> Self { $config { $($name: $default,)* } }
        }

        impl $config {
            /// Sets the option called `name` from its text form.
            ///
            /// # Errors
            /// An unknown name, a value of the wrong kind, a value out of range; the configuration is then unchanged.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::OptionError> {
                match name {
                    $(stringify!($name) => {
                        let parsed: $kind = value.parse().map_err(|_| {
                            $crate::OptionError::Malformed(<$kind as $crate::OptionValue>::KIND)
                        })?;
                        $(if !($low..=$high).contains(&parsed) {
                            return Err($crate::OptionError::OutOfRange);
                        })?
                        self.$name = parsed;
                        Ok(())
                    })*
                    _ => Err($crate::OptionError::Unknown),
                }
            }

            /// Shows every option to `visit`, in the order of declaration.
            pub fn describe(visit: &mut dyn FnMut($crate::OptionDoc<'_>)) {
                $({
                    let default: $kind = $default;
                    visit($crate::OptionDoc {
                        name: stringify!($name),
                        kind: <$kind as $crate::OptionValue>::KIND,
                        default: &default,
                        range: $crate::options!(@range $($low => $high)?),
                        help: &[$($help),+],
                    });
                })*
            }
        }
    };
    (@range) => { None };
    (@range $low:expr => $high:expr) => { Some((&$low, &$high)) };
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    crate::options! {
        /// For the tests.
        pub struct Sample {
            /// How long.
            length: Span = Span::from_secs(1), Span::ZERO => Span::from_secs(10);
            /// How many.
            count: u32 = 4;
        }
    }

    #[test]
    fn bad_values_leave_the_configuration_alone() {
        let mut sample = Sample::default();
        assert_eq!(sample.set("length", "11 s"), Err(OptionError::OutOfRange));
        assert_eq!(sample.set("length", "fish"), Err(OptionError::Malformed(Span::KIND)));
        assert_eq!(sample.set("width", "1 s"), Err(OptionError::Unknown));
        assert_eq!(sample, Sample::default());
        sample.set("count", "7").unwrap();
        assert_eq!(sample.count, 7);
    }

    #[test]
    fn the_reference_comes_from_the_declaration() {
        let mut lines: Vec<String> = Vec::new();
        Sample::describe(&mut |doc| {
            let range = doc.range.map(|(low, high)| std::format!("{low}..{high}"));
            lines.push(std::format!("{} {} {range:?} {}", doc.name, doc.default, doc.help[0]));
        });
        assert_eq!(lines, ["length 1 s Some(\"0 ns..10 s\")  How long.", "count 4 None  How many."]);
        assert!(OptionError::OutOfRange.to_string().contains("range"));
    }
}
