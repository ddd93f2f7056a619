//! Measures in scenario files: text with a unit.

use ffclock_units::{ParseError, Rate, Span};
use serde::Deserialize;

/// The longest time that a scenario may speak of, and the earliest and the latest: 3650 days. Whatever is made of such
/// times (sums of them, ticks of a counter, times of a server) fits the types that hold it.
const LONGEST: Span = Span::from_secs(3650 * 86_400);

/// The longest that chance may hold up a packet [s]. The tails of some laws have no end, and what comes after the world
/// is lost in any case.
pub(crate) const LONGEST_S: f64 = 3650.0 * 86_400.0;

/// A length of time, such as `"16 s"`, at most ten years.
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
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let span: Span = text.parse().map_err(|error: ParseError| format!("{text:?}: {error}"))?;
        if span.abs() > LONGEST {
            return Err(format!("{text:?} is too long: it must lie between -3650 d and 3650 d"));
        }
        Ok(Length(span))
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
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Fraction).map_err(|error: ParseError| format!("{text:?}: {error}"))
    }
}
