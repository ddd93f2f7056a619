//! `ffclock sources`: the servers of the daemon and how each is doing.

use crate::failure::Failure;
use crate::text::Align::{Left, Right};
use crate::{Global, control, output, text};
use ffclock_control::protocol::{Agreement, BeliefReport, SourceReport};

/// Options of `ffclock sources`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock sources
  $ ffclock sources --json | jq '.[] | select(.selected) | .floor_s'

The first column marks the server whose clock is published (*), others that agree with the majority
(+), falsetickers, which the majority contradicts (x), and servers on which no vote can decide (?).
POLL is the time between two requests, with (RATE) where the server asked for a longer one. OFFSET is
its clock minus the published one, BOUND the largest error that its clock can have and
UNCERTAINTY its standard uncertainty (k = 1); FLOOR is the smallest
round trip in force and RTT the latest round trip. USED/ALL counts the exchanges that moved the
estimate, and all of them; LOST counts requests without a reply, REFUSED packets that were no
replies. ESTIMATOR is the algorithm, with a word where the learned one has too little data yet or
contradicts the classic one.")]
pub(crate) struct Args {}

/// Prints the table.
pub(crate) fn run(global: &Global, _: &Args) -> Result<(), Failure> {
    let report = control::status(global)?;
    if global.json { output::json(&report.sources) } else { output::write(&table(&report.sources)) }
}

/// The servers as a table for people.
pub(crate) fn table(sources: &[SourceReport]) -> String {
    let heading = [
        ("  SERVER", Left),
        ("STATE", Left),
        ("POLL", Right),
        ("STRATUM", Right),
        ("OFFSET", Right),
        ("BOUND", Right),
        ("UNCERTAINTY", Right),
        ("FLOOR", Right),
        ("RTT", Right),
        ("USED/ALL", Right),
        ("LOST", Right),
        ("REFUSED", Right),
        ("ESTIMATOR", Left),
    ];
    let rows: Vec<Vec<String>> = sources.iter().map(row).collect();
    text::table(&heading, &rows)
}

fn row(source: &SourceReport) -> Vec<String> {
    vec![
        format!("{} {}", mark(source), text::printable(&source.name)),
        source.state.name().to_owned(),
        poll(source),
        source.stratum.map_or_else(|| "-".to_owned(), |stratum| stratum.to_string()),
        text::span_or_dash(source.offset_s),
        text::span_or_dash(source.bound_s),
        text::span_or_dash(source.uncertainty_s),
        text::span_or_dash(source.floor_s),
        text::span_or_dash(source.round_trip_s),
        format!("{}/{}", source.used, source.exchanges),
        source.lost.to_string(),
        source.rejected.iter().map(|(_, count)| count).sum::<u64>().to_string(),
        text::printable(&estimator(source)),
    ]
}

/// The time between requests, and whether it is the server's wish.
fn poll(source: &SourceReport) -> String {
    let asked_for = if source.slowed { " (RATE)" } else { "" };
    format!("{}{asked_for}", text::span(source.poll_s))
}

/// What the vote of the servers says, as chronyc and ntpq mark it.
fn mark(source: &SourceReport) -> char {
    match source.belief {
        _ if source.selected => '*',
        BeliefReport::Truechimer => '+',
        BeliefReport::Falseticker => 'x',
        BeliefReport::Undecided => '?',
        BeliefReport::Unknown => ' ',
    }
}

/// The algorithm, and what should be known about it.
fn estimator(source: &SourceReport) -> String {
    let doubt = match source.agreement {
        Agreement::TooLittleData => ", too little data",
        Agreement::Disagree => ", contradicts classic",
        Agreement::Alone | Agreement::Agree => "",
    };
    format!("{}{doubt}", source.estimator.name())
}
