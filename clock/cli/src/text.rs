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

/// A number of seconds in a fitting unit with three digits that count, or a dash where it is not known.
pub fn span_or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| rounded_span(seconds, 3))
}

/// A number of seconds in a fitting unit, rounded to this many digits that count.
pub fn rounded_span(seconds: f64, digits: i32) -> String {
    if seconds == 0.0 || !seconds.is_finite() {
        return span(seconds);
    }
    let last_digit = 10_f64.powi(digits - 1 - seconds.abs().log10().floor() as i32);
    span((seconds * last_digit).round() / last_digit)
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

/// The most columns of a terminal that a table takes.
pub const WIDEST: usize = 120;
/// Names are shortened to this many letters before a column is left out.
const SHORTEST_NAME: usize = 16;

/// As [`table`], within [`WIDEST`] columns of the terminal: the names in the first column are shortened in their
/// middle, and then columns are left out from the right.
pub fn table_within(heading: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(heading.get(column).map(|(name, _)| name.chars().count())).max().unwrap_or_default()
    };
    let others = |columns: usize| (1..columns).map(|column| widest(column) + 2).sum::<usize>();
    let fits = |columns: &usize| others(*columns) + widest(0).min(SHORTEST_NAME) <= WIDEST;
    let columns = (1..=heading.len()).rev().find(fits).unwrap_or(1);
    let room = WIDEST - others(columns).min(WIDEST);
    let cut = |row: &Vec<String>| -> Vec<String> {
        let name = row.first().map(|name| shortened(name, room));
        name.into_iter().chain(row.iter().take(columns).skip(1).cloned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.iter().map(cut).collect();
    table(heading.get(..columns).unwrap_or(heading), &rows)
}

/// A text of at most `room` letters, with dots in the place of its middle.
fn shortened(text: &str, room: usize) -> String {
    const DOTS: &str = "...";
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= room || room <= DOTS.len() {
        return text.to_owned();
    }
    let kept = room - DOTS.len();
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let part = |letters: &[char]| letters.iter().collect::<String>();
    part(&letters[..head]) + DOTS + &part(&letters[letters.len() - tail..])
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
    fn figures_of_a_table_have_three_digits() {
        for (seconds, text) in [
            (0.0, "0 ns"),
            (1.234_567e-3, "1.23 ms"),
            (-22.083_7e-3, "-22.1 ms"),
            (999.7e-6, "1 ms"),
            (4.2e-9, "4.2 ns"),
            (123_456.0, "123000 s"),
        ] {
            assert_eq!(span_or_dash(Some(seconds)), text);
        }
        assert_eq!((rounded_span(187.342_1, 4), rounded_span(1024.0, 4)), ("187.3 s".to_owned(), "1024 s".to_owned()));
    }

    #[test]
    fn a_table_takes_no_more_columns_than_a_terminal_has() {
        let heading = [("NAME", Align::Left), ("N", Align::Right), ("WORDS", Align::Left)];
        let row = |name: usize, words: usize| vec!["n".repeat(name), "1".to_owned(), "w".repeat(words)];
        let widths = |text: &str| text.lines().map(str::len).max();
        let wide = |name, words| table_within(&heading, &[row(name, words), row(1, 1)]);
        assert_eq!(wide(30, 50), table(&heading, &[row(30, 50), row(1, 1)]), "what fits is not touched");
        assert!(wide(60, 80).contains("n...n") && wide(60, 80).contains("WORDS"));
        assert_eq!(widths(&wide(60, 80)), Some(WIDEST));
        assert!(!wide(60, 100).contains("WORDS"), "there is no room for that column");
        assert!((30..=WIDEST).contains(&widths(&wide(60, 100)).unwrap()));
        assert_eq!(shortened("2001:db8:85a3::8a2e:370:7334", 19), "2001:db8...370:7334");
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
