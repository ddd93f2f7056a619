//! Decimal numbers, read and written without floating point.
//!
//! Traces hold times with up to 12 decimals around 1.7e9 s: more digits than a float carries. Here they become
//! multiples of 2^-64 s directly. One step of 2^-64 s is 5e-20 s, so a number with 12 decimals, read and written again,
//! is the same number.

use ffclock_units::Span;
use std::io::{self, Write};

/// Why a text is not a number of the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalFault {
    /// Something other than digits, a sign and a point.
    #[error("not a decimal number")]
    NotANumber,
    /// More than 18 digits before or after the point, or beyond 64 bits.
    #[error("too many digits")]
    TooLong,
    /// A whole number was expected.
    #[error("not a whole number")]
    NotWhole,
}

/// The longest run of digits that always fits 64 bits.
const DIGITS_MAX: usize = 18;

const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut index = 1;
    while index < 20 {
        powers[index] = powers[index - 1] * 10;
        index += 1;
    }
    powers
};

/// The digits at the front of `text`: their value modulo 2^64, their number, and the rest of the text.
#[inline]
fn leading_digits(text: &[u8]) -> (u64, usize, &[u8]) {
    let mut value = 0u64;
    let mut rest = text;
    while let Some((eight, after)) = rest.split_first_chunk::<8>() {
        let Some(digits) = eight_digits(u64::from_le_bytes(*eight)) else { break };
        value = value.wrapping_mul(POWERS[8]).wrapping_add(digits);
        rest = after;
    }
    while let [byte @ b'0'..=b'9', after @ ..] = rest {
        value = value.wrapping_mul(10).wrapping_add((byte - b'0') as u64);
        rest = after;
    }
    (value, text.len() - rest.len(), rest)
}

/// The value of eight characters at once, the first in the lowest byte; `None` unless all are digits.
#[inline]
fn eight_digits(characters: u64) -> Option<u64> {
    const HIGH: u64 = 0xf0f0_f0f0_f0f0_f0f0;
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let beyond_nine = characters.wrapping_add(0x0606_0606_0606_0606);
    if characters & HIGH != ZEROS || beyond_nine & HIGH != ZEROS {
        return None;
    }
    let digits = characters - ZEROS;
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours & 0xffff) * 10_000 + (fours >> 32))
}

#[inline]
fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

/// `fraction / 10^decimals` s in units of 2^-64 s, rounded down; `fraction` is below `10^decimals`.
#[inline]
fn fraction_units(fraction: u64, decimals: usize) -> u64 {
    match decimals {
        0 => 0,
        9 => (((fraction as u128) << 64) / 1_000_000_000) as u64,
        12 => (((fraction as u128) << 64) / 1_000_000_000_000) as u64,
        _ => POWERS.get(decimals).map_or(0, |power| (((fraction as u128) << 64) / *power as u128) as u64),
    }
}

/// A whole number of at most 64 bits without a sign.
///
/// # Errors
/// Anything but digits; more than 64 bits.
#[inline]
pub fn whole(text: &[u8]) -> Result<u64, DecimalFault> {
    let (value, count, rest) = leading_digits(text);
    if count == 0 || !rest.is_empty() {
        let fractional = rest.first() == Some(&b'.') && seconds(text).is_ok();
        return Err(if fractional { DecimalFault::NotWhole } else { DecimalFault::NotANumber });
    }
    if count <= DIGITS_MAX { Ok(value) } else { long_whole(text) }
}

#[cold]
fn long_whole(text: &[u8]) -> Result<u64, DecimalFault> {
    text.iter()
        .try_fold(0u64, |sum, byte| sum.checked_mul(10)?.checked_add(byte.wrapping_sub(b'0') as u64))
        .ok_or(DecimalFault::TooLong)
}

/// The digits around the point of a number without a sign.
struct Parts {
    whole: u64,
    fraction: u64,
    decimals: usize,
}

/// Splits a number at its point; at most 18 digits before and 18 after it.
#[inline]
fn parts(body: &[u8]) -> Result<Parts, DecimalFault> {
    let (whole, whole_digits, rest) = leading_digits(body);
    let (fraction, decimals, rest) = match rest {
        [b'.', rest @ ..] => leading_digits(rest),
        _ => (0, 0, rest),
    };
    if !rest.is_empty() || whole_digits + decimals == 0 {
        return Err(DecimalFault::NotANumber);
    }
    if whole_digits > DIGITS_MAX || decimals > DIGITS_MAX {
        return Err(DecimalFault::TooLong);
    }
    Ok(Parts { whole, fraction, decimals })
}

/// Decimal seconds, such as `-1.25`, as a span, exact to 2^-64 s and rounded towards zero; at most 18 digits before and
/// 18 after the point.
///
/// # Errors
/// Any other text.
#[inline]
pub fn seconds(text: &[u8]) -> Result<Span, DecimalFault> {
    let (negative, body) = split_sign(text);
    let Parts { whole, fraction, decimals } = parts(body)?;
    let units = ((whole as i128) << 64) | fraction_units(fraction, decimals) as i128;
    Ok(Span::from_units(if negative { -units } else { units }))
}

/// Whole nanoseconds as a span, exact to 2^-64 s and rounded towards zero.
///
/// # Errors
/// Anything but a whole number of at most 64 bits, with or without a sign.
#[inline]
pub fn nanoseconds(text: &[u8]) -> Result<Span, DecimalFault> {
    let (negative, body) = split_sign(text);
    let nanos = whole(body)?;
    let span = Span::from_nanos(nanos as i128);
    Ok(if negative { -span } else { span })
}

/// Seconds with an optional power of ten, such as `-4.966e-03`.
///
/// # Errors
/// A text that [`seconds`] refuses; an exponent beyond +-18; a result beyond 10^18 s.
pub fn scientific_seconds(text: &[u8]) -> Result<Span, DecimalFault> {
    let Some(split) = text.iter().position(|byte| matches!(byte, b'e' | b'E')) else { return seconds(text) };
    let (mantissa, exponent) = text.split_at(split);
    let (down, exponent) = split_sign(exponent.get(1..).unwrap_or(&[]));
    let exponent = whole(exponent)? as usize;
    let (negative, body) = split_sign(mantissa);
    let Parts { whole, fraction, decimals } = parts(body)?;
    let power = POWERS.get(decimals).copied().unwrap_or(1);
    let digits = whole.checked_mul(power).and_then(|whole| whole.checked_add(fraction));
    let digits = digits.filter(|_| exponent <= DIGITS_MAX).ok_or(DecimalFault::TooLong)?;
    let shift = if down { -(exponent as i64) } else { exponent as i64 } - decimals as i64;
    let span = scaled(digits, shift).ok_or(DecimalFault::TooLong)?;
    Ok(if negative { -span } else { span })
}

/// `digits * 10^shift` s, rounded down; `None` where that is too large.
fn scaled(digits: u64, shift: i64) -> Option<Span> {
    let power = 10u128.checked_pow(shift.unsigned_abs() as u32)?;
    if shift >= 0 {
        let whole = (digits as u128).checked_mul(power).filter(|whole| *whole < 1 << 62)?;
        return Some(Span::from_secs(whole as i64));
    }
    Some(Span::from_units((((digits as u128) << 64) / power) as i128))
}

/// Picoseconds of `span`, rounded to the nearest.
fn picoseconds(span: Span) -> (bool, u128, u64) {
    let units = span.units().unsigned_abs();
    let rounded = ((units as u64 as u128) * POWERS[12] as u128 + (1 << 63)) >> 64;
    let carried = (units >> 64) + rounded / POWERS[12] as u128;
    (span.is_negative(), carried, (rounded % POWERS[12] as u128) as u64)
}

/// Writes a span as seconds with 12 decimals, rounded to the nearest.
///
/// # Errors
/// An error of the writer.
pub fn write_seconds(out: &mut dyn Write, span: Span) -> io::Result<()> {
    let (negative, whole, fraction) = picoseconds(span);
    let sign = if negative && (whole > 0 || fraction > 0) { "-" } else { "" };
    write!(out, "{sign}{whole}.{fraction:012}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn printed(span: Span) -> String {
        let mut out = Vec::new();
        write_seconds(&mut out, span).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn seconds_are_exact() {
        for (text, nanos) in [
            ("1.5", 1_500_000_000),
            ("-0.000000001", -1),
            ("1700000000.123456789", 1_700_000_000_123_456_789),
            ("+7", 7_000_000_000),
            (".25", 250_000_000),
            ("3.", 3_000_000_000),
        ] {
            assert_eq!(seconds(text.as_bytes()).unwrap().as_nanos(), nanos, "{text}");
        }
        assert_eq!(seconds(b"0.5").unwrap(), Span::from_units(1 << 63));
    }

    #[test]
    fn a_text_that_is_no_number_is_refused() {
        for text in ["", "-", ".", "1.2.3", "12x", "0x10", "1e3", " 1", "1 ", "nan", "inf", "--1"] {
            assert_eq!(seconds(text.as_bytes()), Err(DecimalFault::NotANumber), "{text}");
        }
        assert_eq!(seconds(b"1.1234567890123456789"), Err(DecimalFault::TooLong));
        assert_eq!(seconds(b"1234567890123456789"), Err(DecimalFault::TooLong));
        assert_eq!(whole(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), Err(DecimalFault::TooLong));
        assert_eq!(whole(b"1.5"), Err(DecimalFault::NotWhole));
        assert_eq!(whole(b"-1"), Err(DecimalFault::NotANumber));
        assert_eq!(nanoseconds(b"-1700000000000000001").unwrap().as_nanos(), -1_700_000_000_000_000_001);
    }

    #[test]
    fn powers_of_ten_shift_the_point() {
        for (text, nanos) in
            [("-4.966e-03", -4_966_000), ("2.296E+01", 22_960_000_000), ("1e0", 1_000_000_000), ("0.5", 500_000_000)]
        {
            assert_eq!(scientific_seconds(text.as_bytes()).unwrap().as_nanos(), nanos, "{text}");
        }
        assert_eq!(scientific_seconds(b"1e99"), Err(DecimalFault::TooLong));
        assert_eq!(scientific_seconds(b"1e18").unwrap(), Span::from_secs(1_000_000_000_000_000_000));
        assert_eq!(scientific_seconds(b"e5"), Err(DecimalFault::NotANumber));
        assert_eq!(scientific_seconds(b"1e"), Err(DecimalFault::NotANumber));
    }

    #[test]
    fn rounding_carries_into_the_seconds() {
        assert_eq!(printed(Span::from_secs(2) - Span::from_units(1)), "2.000000000000");
        assert_eq!(printed(-Span::from_units(1)), "0.000000000000");
        assert_eq!(printed(Span::from_millis(-1500)), "-1.500000000000");
    }

    proptest! {
        #[test]
        fn twelve_decimals_survive(whole_part in -4_000_000_000i64..4_000_000_000, picos in 0u64..1_000_000_000_000) {
            let text = format!("{whole_part}.{picos:012}");
            let expected = if whole_part == 0 && text.starts_with('-') && picos == 0 { "0.000000000000".into() } else { text.clone() };
            prop_assert_eq!(printed(seconds(text.as_bytes()).unwrap()), expected);
        }

        #[test]
        fn eight_at_once_are_the_same_digits(bytes in proptest::collection::vec(0x2eu8..0x3c, 0..40)) {
            let count = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = bytes[..count].iter().fold(0u64, |sum, byte| sum.wrapping_mul(10).wrapping_add((byte - b'0') as u64));
            prop_assert_eq!(leading_digits(&bytes), (value, count, &bytes[count..]));
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (whole(&bytes), seconds(&bytes), nanoseconds(&bytes), scientific_seconds(&bytes));
        }
    }
}
