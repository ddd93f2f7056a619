//! What stands on the screen: a pure function of a look, the looks before it, and the size of the terminal.

use super::look::Look;
use super::terminal::Size;
use crate::page::PublishedTime;
use crate::{sources, status, text};
use ffclock_control::protocol::StatusReport;
use ffclock_units::{Reading, Span, Status};

/// Looks that a graph can show.
const MOST_KEPT: usize = 500;
/// Columns before a graph and after it.
const BESIDE_GRAPH: usize = 54;
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The figures of the looks so far, oldest first.
#[derive(Default)]
pub(super) struct LookHistory {
    offset_s: Vec<f64>,
    bound_s: Vec<f64>,
}

impl LookHistory {
    /// Remembers what a look showed.
    pub(super) fn push(&mut self, look: &Look) {
        keep(&mut self.offset_s, look.offset.map(Span::as_seconds));
        keep(&mut self.bound_s, look.published.as_ref().ok().map(|time| time.reading.bound.as_seconds()));
    }
}

fn keep(values: &mut Vec<f64>, value: Option<f64>) {
    values.extend(value);
    if values.len() > MOST_KEPT {
        values.remove(0);
    }
}

/// The lines to show, none wider than the terminal, no more than it has.
pub(super) fn render(look: &Look, history: &LookHistory, size: Size) -> Vec<String> {
    let mut lines = Vec::new();
    match &look.published {
        Ok(time) => published(&mut lines, &time.reading),
        Err(failure) => lines.push(ColouredText::coloured(RED, &failure.message)),
    }
    lines.push(ColouredText::plain(""));
    figures(&mut lines, look, history, size);
    lines.push(ColouredText::plain(""));
    match &look.daemon {
        Ok(report) => servers(&mut lines, report),
        Err(failure) => lines.push(ColouredText::coloured(RED, &failure.message)),
    }
    lines.push(ColouredText::plain(""));
    lines.push(ColouredText::plain("q or Ctrl-C to leave"));
    lines.truncate(size.lines);
    lines.into_iter().map(|line| line.cut(size.columns)).collect()
}

/// Text of one colour: colours take no columns, so they are added after the text was cut.
struct ColouredText {
    colour: &'static str,
    text: String,
}

impl ColouredText {
    fn plain(text: &str) -> Self {
        ColouredText::coloured("", text)
    }

    fn coloured(colour: &'static str, text: &str) -> Self {
        ColouredText { colour, text: text::printable(text) }
    }

    fn cut(self, columns: usize) -> String {
        let text: String = self.text.chars().take(columns).collect();
        if self.colour.is_empty() { text } else { format!("{}{text}{PLAIN}", self.colour) }
    }
}

fn published(lines: &mut Vec<ColouredText>, reading: &Reading) {
    let colour = match reading.status {
        Status::Synchronised => GREEN,
        Status::WarmingUp | Status::Holdover => YELLOW,
        Status::Unsynchronised => RED,
    };
    lines.push(ColouredText::coloured(BOLD, &format!("{}  +- {}", text::utc(reading.time), reading.bound)));
    lines.push(ColouredText::coloured(colour, reading.status.name()));
}

fn figures(lines: &mut Vec<ColouredText>, look: &Look, history: &LookHistory, size: Size) {
    let width = size.columns.saturating_sub(BESIDE_GRAPH);
    if let Some(offset) = look.offset {
        lines.push(graph("offset", offset, &history.offset_s, width));
    }
    if let Ok(PublishedTime { reading, noise, .. }) = &look.published {
        lines.push(graph("bound", reading.bound.as_span(), &history.bound_s, width));
        lines.push(figure("uncertainty", &reading.uncertainty.to_string()));
        lines.push(figure("noise", &noise.to_string()));
    }
    let Ok(report) = &look.daemon else {
        return;
    };
    if let Some(clock) = &report.clock {
        lines.push(figure("rate", &status::rate(clock)));
    }
    if let Some(followed) = look.followed() {
        lines.push(figure("floor", &text::span_or_dash(followed.floor_s)));
    }
}

fn figure(name: &str, value: &str) -> ColouredText {
    ColouredText::plain(&format!("{name:<14}{value}"))
}

/// A figure with the looks before it and the range that they cover.
fn graph(name: &str, value: Span, values: &[f64], width: usize) -> ColouredText {
    let graph = text::sparkline(values, width);
    let shown = &values[values.len().saturating_sub(width)..];
    let low = shown.iter().copied().reduce(f64::min);
    let high = shown.iter().copied().reduce(f64::max);
    let range =
        low.zip(high).map_or_else(String::new, |(low, high)| format!("{} .. {}", text::span(low), text::span(high)));
    figure(name, &format!("{:<14}{graph}  {range}", value.to_string()))
}

fn servers(lines: &mut Vec<ColouredText>, report: &StatusReport) {
    for (index, row) in sources::table(&report.sources).lines().enumerate() {
        lines.push(if index == 0 { ColouredText::coloured(BOLD, row) } else { ColouredText::plain(row) });
    }
    if let Some(latest) = report.events.last() {
        lines.push(ColouredText::plain(""));
        let age = text::duration(report.uptime_s - latest.at_s);
        lines.push(ColouredText::plain(&format!("{age} ago: {}", latest.text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;
    use crate::page::PublishedTime;
    use ffclock_units::{Bound, LeapTable, Moment, StandardUncertainty};

    fn look() -> Look {
        let time = Moment::from_origin(Span::from_secs(1_795_253_400));
        let bound = Bound::of(Span::from_micros(812));
        let uncertainty = StandardUncertainty::of(Span::from_micros(14));
        let reading = Reading { time, uncertainty, bound, status: Status::Synchronised };
        let noise = StandardUncertainty::of(Span::from_micros(9));
        let published = PublishedTime { reading, noise, strict: bound, tai: LeapTable::built_in().tai_from_utc(time) };
        Look {
            published: Ok(published),
            offset: Some(-Span::from_micros(3)),
            daemon: Err(Failure::from("nothing\x1b[2J listens")),
        }
    }

    /// What is seen of a line: all but the colours.
    fn seen(line: &str) -> String {
        [GREEN, YELLOW, RED, BOLD, PLAIN].iter().fold(line.to_owned(), |line, colour| line.replace(colour, ""))
    }

    #[test]
    fn the_latest_look_and_those_before_are_shown() {
        let mut history = LookHistory::default();
        (0..5).for_each(|_| history.push(&look()));
        let lines: Vec<String> =
            render(&look(), &history, Size { columns: 100, lines: 40 }).iter().map(|line| seen(line)).collect();
        assert_eq!(lines[0], "2026-11-21T09:30:00.000000000Z  +- 812 us");
        assert_eq!(lines[1], "synchronised");
        assert!(lines.contains(&"offset        -3 us         ▁▁▁▁▁  -3 us .. -3 us".to_owned()), "{lines:?}");
        assert!(lines.contains(&"uncertainty   14 us".to_owned()), "{lines:?}");
        assert!(lines.contains(&"noise         9 us".to_owned()), "{lines:?}");
        assert!(lines.contains(&"nothing?[2J listens".to_owned()), "{lines:?}");
    }

    #[test]
    fn nothing_leaves_the_screen() {
        for (columns, lines) in [(1, 1), (20, 5), (80, 24), (0, 0)] {
            let mut history = LookHistory::default();
            (0..MOST_KEPT + 10).for_each(|_| history.push(&look()));
            let shown = render(&look(), &history, Size { columns, lines });
            assert!(shown.len() <= lines);
            assert!(shown.iter().all(|line| seen(line).chars().count() <= columns), "{shown:?}");
            assert_eq!(history.bound_s.len(), MOST_KEPT);
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_is_said_in_red() {
        let blind = Look { published: Err(Failure::from("no page")), offset: None, ..look() };
        let lines = render(&blind, &LookHistory::default(), Size { columns: 80, lines: 24 });
        assert_eq!(lines[0], format!("{RED}no page{PLAIN}"));
    }
}
