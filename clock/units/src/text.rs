//! The text forms of measures: "250 us", "0.1 ppm". Parsed and printed here only.

use crate::{Bound, Rate, Span, StandardUncertainty, Ticks};
use core::fmt;
use core::str::FromStr;

/// Why a text is not a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// No number where one was expected.
    Number,
    /// The unit is missing or unknown; the units that are known.
    Unit(&'static str),
    /// The number is too large, or negative where only sizes make sense.
    Range,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseError::Number => f.write_str("not a decimal number"),
            ParseError::Unit(known) => write!(f, "the unit must be one of {known}"),
            ParseError::Range => f.write_str("out of range"),
        }
    }
}

impl core::error::Error for ParseError {}

const SPAN_UNITS: [(&str, i128, i128); 8] = [
    ("ps", 1, 1_000_000_000_000),
    ("ns", 1, 1_000_000_000),
    ("us", 1, 1_000_000),
    ("ms", 1, 1_000),
    ("s", 1, 1),
    ("min", 60, 1),
    ("h", 3600, 1),
    ("d", 86_400, 1),
];
const SPAN_UNIT_NAMES: &str = "ps, ns, us, ms, s, min, h, d";
const RATE_UNITS: [(&str, f64); 3] = [("ppm", 1e-6), ("ppb", 1e-9), ("%", 1e-2)];
const RATE_UNIT_NAMES: &str = "ppm, ppb, %";

const UNKNOWN_BOUND: &str = "unknown";

fn split_number_and_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

/// A decimal number as `digits * 10^-decimals`, exact, with at most 18 decimals.
fn parse_decimal(text: &str) -> Result<(i128, u32), ParseError> {
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, decimals) = body.split_once('.').unwrap_or((body, ""));
    let digits_only = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + decimals.len() == 0 || !digits_only(whole) || !digits_only(decimals) {
        return Err(ParseError::Number);
    }
    if whole.len() > 18 || decimals.len() > 18 {
        return Err(ParseError::Range);
    }
    let digits = whole.bytes().chain(decimals.bytes()).fold(0i128, |sum, b| sum * 10 + (b - b'0') as i128);
    Ok((if negative { -digits } else { digits }, decimals.len() as u32))
}

impl FromStr for Span {
    type Err = ParseError;
    /// A decimal number with a unit, such as `250 us`; at most 18 digits before and 18 after the point.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = split_number_and_unit(text);
        let (digits, decimals) = parse_decimal(number)?;
        let &(_, times, per_second) =
            SPAN_UNITS.iter().find(|(name, ..)| *name == unit).ok_or(ParseError::Unit(SPAN_UNIT_NAMES))?;
        let mut denominator = per_second;
        let mut digits = digits;
        for _ in 0..decimals {
            if denominator < 1_000_000_000_000_000_000 {
                denominator *= 10;
            } else {
                digits /= 10;
            }
        }
        Ok(Span::from_fraction(digits * times, denominator))
    }
}

impl fmt::Display for Span {
    /// In the largest unit that keeps the number at or above one, with up to four significant decimals trimmed of
    /// zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.abs();
        let (unit, per_unit) = if size >= Span::from_secs(1) {
            ("s", 1.0)
        } else if size >= Span::from_millis(1) {
            ("ms", 1e3)
        } else if size >= Span::from_micros(1) {
            ("us", 1e6)
        } else {
            ("ns", 1e9)
        };
        write_trimmed(f, self.as_seconds() * per_unit)?;
        write!(f, " {unit}")
    }
}

impl FromStr for Bound {
    type Err = ParseError;
    /// As a span that is not negative; `unknown` is the bound that says nothing.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.trim() == UNKNOWN_BOUND {
            return Ok(Bound::UNKNOWN);
        }
        let span: Span = text.parse()?;
        if span.is_negative() { Err(ParseError::Range) } else { Ok(Bound::of(span)) }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Bound::UNKNOWN { f.write_str(UNKNOWN_BOUND) } else { self.as_span().fmt(f) }
    }
}

impl fmt::Display for StandardUncertainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bound::of(self.as_span()).fmt(f)
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    /// A decimal number with a unit, such as `0.1 ppm`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (number, unit) = split_number_and_unit(text);
        let (digits, decimals) = parse_decimal(number)?;
        let &(_, scale) = RATE_UNITS.iter().find(|(name, _)| *name == unit).ok_or(ParseError::Unit(RATE_UNIT_NAMES))?;
        let divisor = 10i128.pow(decimals) as f64;
        Ok(Rate::from_fraction(digits as f64 / divisor * scale))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.as_ppm().abs() >= 0.01 || *self == Rate::ZERO {
            write_trimmed(f, self.as_ppm())?;
            f.write_str(" ppm")
        } else {
            write_trimmed(f, self.as_ppb())?;
            f.write_str(" ppb")
        }
    }
}

impl fmt::Display for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ticks", self.raw())
    }
}

/// Up to four decimals, without zeros at the end.
fn write_trimmed(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    if value.abs() >= 1e15 || !value.is_finite() {
        return write!(f, "{value:e}");
    }
    let ten_thousandths = (value * 1e4 + if value < 0.0 { -0.5 } else { 0.5 }) as i64;
    let (whole, mut rest) = ((ten_thousandths / 10_000).abs(), (ten_thousandths % 10_000).abs());
    let sign = if ten_thousandths < 0 { "-" } else { "" };
    if rest == 0 {
        return write!(f, "{sign}{whole}");
    }
    let mut places = 4;
    while rest % 10 == 0 {
        rest /= 10;
        places -= 1;
    }
    write!(f, "{sign}{whole}.{rest:0places$}")
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn spans_parse_exactly() {
        for (text, nanos) in [
            ("250 us", 250_000),
            ("1.5ms", 1_500_000),
            ("-3 ns", -3),
            ("2 min", 120_000_000_000),
            ("0.125 s", 125_000_000),
        ] {
            assert_eq!(text.parse::<Span>().unwrap(), Span::from_nanos(nanos), "{text}");
        }
        assert_eq!("1 d".parse::<Span>().unwrap(), Span::from_secs(86_400));
    }

    #[test]
    fn a_number_needs_its_unit() {
        assert_eq!("5".parse::<Span>(), Err(ParseError::Unit(SPAN_UNIT_NAMES)));
        assert_eq!("5 parsec".parse::<Span>(), Err(ParseError::Unit(SPAN_UNIT_NAMES)));
        assert_eq!("us".parse::<Span>(), Err(ParseError::Number));
        assert_eq!("1..5 us".parse::<Span>(), Err(ParseError::Number));
        assert_eq!("1234567890123456789 s".parse::<Span>(), Err(ParseError::Range));
        assert_eq!("-1 us".parse::<Bound>(), Err(ParseError::Range));
        assert_eq!("unknown".parse::<Bound>(), Ok(Bound::UNKNOWN));
        assert_eq!("unknown".parse::<Span>(), Err(ParseError::Number));
        assert_eq!("0.1".parse::<Rate>(), Err(ParseError::Unit(RATE_UNIT_NAMES)));
    }

    #[test]
    fn measures_print_in_fitting_units() {
        assert_eq!(Span::from_micros(250).to_string(), "250 us");
        assert_eq!((-Span::from_nanos(1_500)).to_string(), "-1.5 us");
        assert_eq!(Span::from_secs(1024).to_string(), "1024 s");
        assert_eq!(Rate::from_ppm(0.5).to_string(), "0.5 ppm");
        assert_eq!(Rate::from_ppb(2.0).to_string(), "2 ppb");
        assert_eq!(Bound::UNKNOWN.to_string(), "unknown");
    }

    #[test]
    fn what_is_printed_parses_back() {
        for text in ["16 s", "150 us", "1.25 ms", "-12 us", "999 ns"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string(), text);
        }
    }
}
