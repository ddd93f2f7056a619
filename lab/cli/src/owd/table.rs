//! The figures of a run for people.

use crate::columns::{counted, table, us};
use crate::failure::Failure;
use ffclock_owd::judge::PacketFate;
use ffclock_owd::sender::{StrayCounts, UnstampedCounts};
use ffclock_owd::summary::{DirectionFigures, OwdFigures};
use ffclock_owd::truth::TruthFigures;
use ffclock_statistics::Spread;
use serde_json::Value;
use std::fmt::Write as _;

const HEADING: &str = "IN US|>MIN|>25 %|>MEDIAN|>75 %|>95 %|>99 %|>99.9 %|>MAX";

/// Counts and percentiles.
pub(super) fn page(about: &Value, figures: &OwdFigures) -> String {
    let to = about["to"].as_str().unwrap_or("a reflector");
    let count = |fate: PacketFate| figures.fates.get(fate.name()).copied().unwrap_or(0);
    let mut page = format!("{} packets to {to}, {} measured", figures.packets, count(PacketFate::Measured));
    page += &counted([
        (count(PacketFate::Lost), "lost"),
        (count(PacketFate::Unsynchronised), "with a clock that is not synchronised"),
        (count(PacketFate::Unstamped), "without a stamp of the kernel"),
        (figures.contradictions, "whose times contradict one another"),
        (figures.reordered, "reordered"),
    ]);
    page.push('\n');
    page += &losses(figures, count(PacketFate::Lost));
    let row = |name: &str, spread: Option<Spread>| spread.map(|spread| cells(name, &spread));
    let delay = |figures: DirectionFigures| figures.delay_ns;
    let bound = |figures: DirectionFigures| figures.bound_ns;
    let rows = [
        row("forward", figures.forward.map(delay)),
        row("  its bound +-", figures.forward.map(bound)),
        row("backward", figures.backward.map(delay)),
        row("  its bound +-", figures.backward.map(bound)),
        row("round trip", figures.round_trip_ns),
        row("in the reflector", figures.held_ns),
    ];
    if rows.iter().any(Option::is_some) {
        page.push('\n');
        page += &table(HEADING, rows.into_iter().flatten());
    }
    for (name, direction) in [("forward", figures.forward), ("backward", figures.backward)] {
        if let Some(DirectionFigures { below_zero: below @ 1.., least_ns, .. }) = direction {
            let _ =
                writeln!(page, "{name}: {below} delays below zero, within their bounds; the least {} us", us(least_ns));
        }
    }
    if figures.round_trips_below_zero > 0 {
        let _ = writeln!(page, "round trip: {} below zero, by what clocks may err", figures.round_trips_below_zero);
    }
    page
}

/// In which direction packets were lost, where that is known.
fn losses(figures: &OwdFigures, lost: u64) -> String {
    match (figures.lost_forward, figures.lost_backward) {
        _ if lost == 0 || lost == figures.packets => String::new(),
        (Some(forward), Some(backward)) => {
            let after = lost.saturating_sub(forward + backward);
            let after = if after > 0 { format!(", after the last reply {after}") } else { String::new() };
            format!("lost on the way there {forward}, on the way back {backward}{after}\n")
        }
        _ => "the direction of the losses is not known: the reflector's numbers do not show it\n".to_owned(),
    }
}

/// Which stamps are missing.
pub(super) fn unstamped(counts: &UnstampedCounts) -> String {
    let text = counted([
        (counts.sent, "of requests that left (T1)"),
        (counts.reflected, "of requests at the reflector (T2)"),
        (counts.received, "of replies (T4)"),
    ]);
    let line =
        |text| format!("stamps of the kernel missing: {text}; no delay is made of the readings in their place\n");
    text.strip_prefix(", ").map_or_else(String::new, line)
}

/// What else came.
pub(super) fn strays(strays: &StrayCounts) -> String {
    let text = counted([
        (strays.duplicates, "duplicates"),
        (strays.not_awaited, "replies too late or never asked for"),
        (strays.other_sessions, "replies to other sessions"),
        (strays.altered, "replies that do not repeat what was sent"),
        (strays.foreign, "packets that are no replies"),
        (strays.unreachable, "times unreachable"),
    ]);
    text.strip_prefix(", ").map_or_else(String::new, |text| format!("also: {text}\n"))
}

/// The error against the shared counter.
pub(super) fn truth(figures: &TruthFigures) -> String {
    let TruthFigures { compared, outside, forward_error_ns, backward_error_ns } = figures;
    let mut page =
        format!("\n{compared} packets compared with the shared counter, {outside} delays outside their bounds\n");
    let rows = [("error forward", forward_error_ns), ("error backward", backward_error_ns)];
    let rows = rows.into_iter().filter_map(|(name, spread)| spread.as_ref().map(|spread| cells(name, spread)));
    page += &table(HEADING, rows);
    page
}

fn cells(name: &str, spread: &Spread) -> Vec<String> {
    let Spread { min, p25, median, p75, p95, p99, p999, max } = *spread;
    let figures = [min, p25, median, p75, p95, p99, p999, max].map(us);
    std::iter::once(name.to_owned()).chain(figures).collect()
}

/// Fails where a clock is proven false, or no reply came at all.
pub(super) fn verdict(figures: &OwdFigures) -> Result<(), Failure> {
    let contradictory: Vec<String> = PacketFate::ALL
        .into_iter()
        .filter(|fate| fate.is_contradiction())
        .filter_map(|fate| figures.fates.get(fate.name()).map(|count| format!("{count} {}", fate.name())))
        .collect();
    if !contradictory.is_empty() {
        let reasons = contradictory.join(", ");
        return Err(format!("a clock or its claim is false: {reasons} (docs/owd.md, \"Contradictions\")").into());
    }
    let lost = figures.fates.get(PacketFate::Lost.name()).copied().unwrap_or(0);
    if figures.packets > 0 && lost == figures.packets {
        return Err("no reply came: is `ffclock-lab owd reflect` running there, and its port open?".into());
    }
    Ok(())
}
