//! Recognises the format of a file by its beginning.

use crate::error::{Fault, shortened};
use crate::fields::words;
use std::fmt;

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Our own binary recording.
    Native,
    /// Comma-separated columns with a header that names them.
    Csv,
    /// The ASCII stamps of the original RADclock.
    Radclock,
    /// The `rawstats` of ntpd and NTPsec.
    Rawstats,
    /// The `measurements.log` of chrony (from `log measurements` or `log rawmeasurements`).
    Chrony,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Native => "ffclock trace",
            Format::Csv => "CSV",
            Format::Radclock => "RADclock stamps",
            Format::Rawstats => "ntpd rawstats",
            Format::Chrony => "chrony measurements",
        })
    }
}

/// The first bytes of every native trace; the version follows.
const FAMILY: &[u8] = b"ffclock trace ";

/// The format of a file that begins with `head`.
pub(crate) fn sniff(head: &[u8]) -> Result<Format, Fault> {
    if head.starts_with(FAMILY) {
        return Ok(Format::Native);
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let first = lines.next().ok_or(Fault::Empty)?;
    if first.starts_with(b"%") {
        return Ok(Format::Radclock);
    }
    if first.starts_with(b"===") || first.starts_with(b"Date (UTC)") {
        return Ok(Format::Chrony);
    }
    let first = std::iter::once(first).chain(lines).find(|line| !line.starts_with(b"#")).ok_or(Fault::RemarksOnly)?;
    of_line(first).ok_or_else(|| Fault::Format(shortened(first)))
}

fn of_line(line: &[u8]) -> Option<Format> {
    let is_number = |word: &[u8]| crate::decimal::seconds(word).is_ok();
    let is_whole = |word: &[u8]| crate::decimal::whole(word).is_ok();
    if line.contains(&b',') {
        let names = !is_number(line.split(|byte| *byte == b',').next()?.trim_ascii());
        return names.then_some(Format::Csv);
    }
    let cells: Vec<&[u8]> = words(line).take(9).collect();
    match cells[..] {
        [date, time, _, ..] if is_date(date) && time.contains(&b':') => Some(Format::Chrony),
        [day, second, from, to, ..] if cells.len() >= 8 && is_whole(day) && is_number(second) && !is_number(from) => {
            (!is_number(to)).then_some(Format::Rawstats)
        }
        [sent, server_in, server_out, received, ..] => {
            let stamps = is_whole(sent) && is_number(server_in) && is_number(server_out) && is_whole(received);
            stamps.then_some(Format::Radclock)
        }
        _ => None,
    }
}

/// Whether `word` looks like 2016-11-09.
fn is_date(word: &[u8]) -> bool {
    matches!(word, [a, b, c, d, b'-', _, _, b'-', _, _] if [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_first_line() {
        for (head, format) in [
            ("ffclock trace 1\n", Format::Native),
            ("seq,Ta,Tb,Te,Tf\n", Format::Csv),
            ("# counter=tsc\nTa,Tb,Te,Tf\n", Format::Csv),
            ("\u{feff}Ta,Tb\n", Format::Csv),
            ("% BEGIN_HEADER\n", Format::Radclock),
            ("\n10 1.5 1.6 20\n", Format::Radclock),
            ("59786 36302.768 2001:db8::27 192.0.2.1 1.1 2.2 3.3 4.4 0\n", Format::Rawstats),
            ("==========\n   Date (UTC) Time\n", Format::Chrony),
            ("2016-11-09 05:40:50 203.0.113.15 N  2 111\n", Format::Chrony),
        ] {
            assert_eq!(sniff(head.as_bytes()), Ok(format), "{head}");
        }
    }

    #[test]
    fn anything_else_is_shown_back() {
        assert_eq!(sniff(b"hello world\n"), Err(Fault::Format("hello world".into())));
        assert_eq!(sniff(b" \n\n"), Err(Fault::Empty));
        assert_eq!(sniff(&b"# a remark\n".repeat(6000)), Err(Fault::RemarksOnly));
        assert!(matches!(sniff(b"1,2,3,4\n"), Err(Fault::Format(_))));
    }
}
