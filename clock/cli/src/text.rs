//! How the command writes times, tables and small graphs. Measures with units print themselves (`ffclock_units`).

use ffclock_units::{Moment, Span, Timescale, Utc};

/// A moment as ISO 8601 with nanoseconds: `2026-11-21T09:30:00.123456789`, without a mark of the scale.
fn iso_8601<S: Timescale>(moment: Moment<S>) -> String {
    let nanos = moment.since_origin().as_nanos();
    let (seconds, fraction) = (nanos.div_euclid(1_000_000_000), nanos.rem_euclid(1_000_000_000));
    let second = seconds.rem_euclid(86_400);
    let (year, month, day) = moment.civil_date();
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:09}")
}

/// UTC as ISO 8601 with nanoseconds and the mark of UTC.
pub fn utc(moment: Moment<Utc>) -> String {
    iso_8601(moment) + "Z"
}

/// TAI as ISO 8601 with nanoseconds. ISO 8601 has no mark for TAI, so its name follows.
pub fn tai(moment: Moment<ffclock_units::Tai>) -> String {
    iso_8601(moment) + " TAI"
}

/// Seconds since the origin of the scale with nine decimals, for programs.
pub fn seconds<S>(moment: Moment<S>) -> String {
    let nanos = moment.since_origin().as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let size = nanos.unsigned_abs();
    format!("{sign}{}.{:09}", size / 1_000_000_000, size % 1_000_000_000)
}

/// A number of seconds in a fitting unit.
pub fn span(seconds: f64) -> String {
    Span::from_seconds(seconds).to_string()
}

/// A number of seconds in a fitting unit, or a dash where it is not known.
pub fn span_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), span)
}

/// A frequency in the largest unit that keeps it above one, to a millionth of that unit.
pub fn hertz(hertz: f64) -> String {
    let (per_unit, unit) = match hertz {
        1e9.. => (1e9, "GHz"),
        1e6.. => (1e6, "MHz"),
        _ => (1.0, "Hz"),
    };
    format!("{} {unit}", (hertz / per_unit * 1e6).round() / 1e6)
}

/// How long something has run, in the two largest units.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// Which side of a column its cells stand on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// At the left, for words.
    Left,
    /// At the right, for numbers.
    Right,
}

/// Rows below a heading, each column as wide as its widest cell, two spaces apart.
pub fn table(heading: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = heading.iter().map(|(name, _)| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(heading.iter().zip(&widths))
            .map(|(cell, ((_, align), &width))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            })
            .collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = line(&mut heading.iter().map(|(name, _)| *name));
    for row in rows {
        text += &line(&mut row.iter().map(String::as_str));
    }
    text
}

/// Removes what could drive a terminal from text that came from elsewhere (names of servers, reasons, events).
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A line of `width` columns with the latest values at its right end, from the smallest to the largest of them.
pub fn sparkline(values: &[f64], width: usize) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = &values[values.len().saturating_sub(width)..];
    let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let scale = if high > low { 7.0 / (high - low) } else { 0.0 };
    shown.iter().map(|value| LEVELS[(((value - low) * scale).round() as usize).min(7)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: i128) -> Moment<Utc> {
        Moment::from_origin(Span::from_secs(seconds) + Span::from_nanos(nanos))
    }

    /// Expected values from GNU `date -u -d @N`.
    #[test]
    fn dates_agree_with_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000000Z"),
            (1_483_228_799, "2016-12-31T23:59:59.000000000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000000Z"),
            (-1, "1969-12-31T23:59:59.000000000Z"),
        ] {
            assert_eq!(utc(at(seconds, 0)), text);
        }
    }

    #[test]
    fn nanoseconds_are_kept() {
        assert_eq!(utc(at(1, 7)), "1970-01-01T00:00:01.000000007Z");
        assert_eq!(seconds(at(1, 7)), "1.000000007");
        assert_eq!(seconds(at(-1, 250_000_000)), "-0.750000000");
    }

    #[test]
    fn columns_line_up() {
        let heading = [("NAME", Align::Left), ("N", Align::Right)];
        let rows = [vec!["a".to_owned(), "100".to_owned()], vec!["longer".to_owned(), "1".to_owned()]];
        assert_eq!(table(&heading, &rows), "NAME      N\na       100\nlonger    1\n");
    }

    #[test]
    fn a_graph_shows_the_latest_values() {
        assert_eq!(sparkline(&[9.0, 0.0, 3.5, 7.0], 3), "▁▅█");
        assert_eq!(sparkline(&[2.0, 2.0], 8), "▁▁");
        assert_eq!(sparkline(&[], 8), "");
    }

    #[test]
    fn frequencies_are_as_long_as_they_are_of_use() {
        assert_eq!(hertz(2_699_999_906.882_116), "2.7 GHz");
        assert_eq!(hertz(3_579_545.0), "3.579545 MHz");
        assert_eq!(hertz(32_768.0), "32768 Hz");
    }

    #[test]
    fn durations_use_two_units() {
        assert_eq!(duration(59.9), "59 s");
        assert_eq!(duration(3_725.0), "1 h 2 min");
        assert_eq!(duration(-1.0), "0 s");
    }

    #[test]
    fn foreign_text_cannot_drive_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a?[2Jb?");
    }
}
