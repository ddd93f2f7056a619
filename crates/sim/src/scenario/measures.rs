//! Measures in scenario files: text with a unit.

use ffclock_units::{ParseError, Rate, Span};
use serde::Deserialize;

/// A length of time, such as `"16 s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Length(pub Span);

impl Length {
    /// In seconds.
    pub fn seconds(self) -> f64 {
        self.0.as_seconds()
    }
}

impl TryFrom<String> for Length {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse().map(Length)
    }
}

/// A relative rate, such as `"0.1 ppm"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "String")]
pub struct Fraction(pub Rate);

impl Fraction {
    /// In s/s.
    pub fn fraction(self) -> f64 {
        self.0.as_fraction()
    }
}

impl TryFrom<String> for Fraction {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse().map(Fraction)
    }
}
