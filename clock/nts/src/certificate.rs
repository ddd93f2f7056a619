//! When a certificate ends (RFC 5280, section 4.1.2.5): all that is shown of it. Whether it is valid is for TLS to say.

use core::fmt;

/// A second of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateTime {
    /// Seconds since 1970, without leap seconds.
    pub unix_seconds: i64,
}

/// Tags of DER (X.690).
mod tags {
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const VERSION: u8 = 0xa0;
    pub(super) const UTC_TIME: u8 = 0x17;
    pub(super) const GENERALIZED_TIME: u8 = 0x18;
}

const SECONDS_A_DAY: i64 = 86_400;

/// The end of a certificate's validity; `None` if the octets are no certificate.
pub fn certificate_end(der: &[u8]) -> Option<CertificateTime> {
    let (_, certificate, _) = element(der).filter(|(tag, ..)| *tag == tags::SEQUENCE)?;
    let (_, body, _) = element(certificate).filter(|(tag, ..)| *tag == tags::SEQUENCE)?;
    let after_version = match element(body)? {
        (tags::VERSION, _, rest) => rest,
        _ => body,
    };
    // Serial number, algorithm of the signature, issuer.
    let validity = (0..3).try_fold(after_version, |rest, _| element(rest).map(|(_, _, rest)| rest))?;
    let (_, validity, _) = element(validity).filter(|(tag, ..)| *tag == tags::SEQUENCE)?;
    let (_, _, end) = element(validity)?;
    match element(end)? {
        (tags::UTC_TIME, text, _) => {
            let (year, rest) = digits(text, 2)?;
            // Two digits stand for 1950 to 2049.
            time(if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        (tags::GENERALIZED_TIME, text, _) => digits(text, 4).and_then(|(year, rest)| time(year, rest)),
        _ => None,
    }
}

/// The first element: its tag, its content, and what follows it.
fn element(octets: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = octets.split_first_chunk()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        0x82 => rest.split_first_chunk().map(|(length, rest)| (usize::from(u16::from_be_bytes(*length)), rest))?,
        _ => return None,
    };
    rest.split_at_checked(length).map(|(content, rest)| (tag, content, rest))
}

fn digits(text: &[u8], count: usize) -> Option<(i64, &[u8])> {
    let (number, rest) = text.split_at_checked(count)?;
    let value =
        number.iter().try_fold(0, |value, digit| Some(10 * value + i64::from(char::from(*digit).to_digit(10)?)));
    value.map(|value| (value, rest))
}

/// Month, day, hour, minute and second, then Z.
fn time(year: i64, text: &[u8]) -> Option<CertificateTime> {
    let mut numbers = [0; 5];
    let mut rest = text;
    for number in &mut numbers {
        (*number, rest) = digits(rest, 2)?;
    }
    let [month, day, hour, minute, second] = numbers;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
    let days = days_before(year, month) + day - 1;
    let unix_seconds = days * SECONDS_A_DAY + hour * 3600 + minute * 60 + second;
    (is_date && rest == b"Z").then_some(CertificateTime { unix_seconds })
}

/// Days from 1970-01-01 to the first of a month in the Gregorian calendar, counted in years that begin in March.
const fn days_before(year: i64, month: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 - 719_468
}

impl fmt::Display for CertificateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.unix_seconds.div_euclid(SECONDS_A_DAY), self.unix_seconds.rem_euclid(SECONDS_A_DAY));
        // A year has 365.2425 days, so the quotient is right or one too small or large.
        let guess = 1970 + days * 10_000 / 3_652_425;
        let year = (guess - 1..=guess + 1).rev().find(|year| days_before(*year, 1) <= days).unwrap_or(guess);
        let month = (1..=12).rev().find(|month| days_before(year, *month) <= days).unwrap_or(1);
        let day = days - days_before(year, month) + 1;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn der(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x82], &(content.len() as u16).to_be_bytes()[..], content].concat()
    }

    fn certificate(version: &[u8], end: &[u8]) -> Vec<u8> {
        let validity = der(tags::SEQUENCE, &[&der(tags::UTC_TIME, b"200101000000Z"), end].concat());
        let head = [version, &[2, 1, 7], &[0x30, 0], &[0x30, 0x81, 1, 0]].concat();
        der(tags::SEQUENCE, &der(tags::SEQUENCE, &[head, validity].concat()))
    }

    /// Seconds from `date -u -d DATE +%s` of GNU coreutils.
    #[test]
    fn both_forms_of_a_date_are_read() {
        for (tag, text, unix_seconds, shown) in [
            (tags::UTC_TIME, &b"261122214202Z"[..], 1_795_383_722, "2026-11-22T21:42:02Z"),
            (tags::UTC_TIME, b"491231235959Z", 2_524_607_999, "2049-12-31T23:59:59Z"),
            (tags::UTC_TIME, b"500101000000Z", -631_152_000, "1950-01-01T00:00:00Z"),
            (tags::GENERALIZED_TIME, b"40960101000000Z", 67_090_118_400, "4096-01-01T00:00:00Z"),
            (tags::GENERALIZED_TIME, b"20240229120000Z", 1_709_208_000, "2024-02-29T12:00:00Z"),
        ] {
            let end = CertificateTime { unix_seconds };
            for version in [&[0xa0, 3, 2, 1, 2][..], &[]] {
                let made = certificate(version, &der(tag, text));
                assert_eq!(certificate_end(&made), Some(end), "{shown}");
                for cut in 0..made.len() {
                    assert_eq!(certificate_end(&made[..cut]), None);
                }
            }
            assert_eq!(end.to_string(), shown);
        }
        for text in [&b"261322214202Z"[..], b"261122214202", b"261122214202+0100", b"26112221420xZ", b""] {
            assert_eq!(certificate_end(&certificate(&[], &der(tags::UTC_TIME, text))), None);
        }
    }

    proptest! {
        #[test]
        fn any_octets_are_read_to_an_end(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(certificate_end(&octets).is_none_or(|end| !end.to_string().is_empty()));
        }

        #[test]
        fn a_date_shown_is_the_date_read(unix_seconds in -631_152_000i64..2_524_608_000) {
            let shown = CertificateTime { unix_seconds }.to_string();
            let text: Vec<u8> = shown[2..].bytes().filter(|octet| octet.is_ascii_digit() || *octet == b'Z').collect();
            let made = certificate(&[], &der(tags::UTC_TIME, &text));
            prop_assert_eq!(certificate_end(&made), Some(CertificateTime { unix_seconds }));
        }
    }
}
