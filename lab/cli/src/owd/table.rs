//! The figures of a run for people.

use crate::columns::{counted, table, us};
use crate::failure::Failure;
use ffclock_owd::judge::PacketFate;
use ffclock_owd::last_minute::MinuteFigures;
use ffclock_owd::reflector;
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
    if let (1.., Some(forward), Some(backward)) =
        (figures.reordered, figures.reordered_forward, figures.reordered_backward)
    {
        let _ = writeln!(page, "reordered on the way there {forward}, on the way back {backward}");
    }
    let rows = delays([figures.forward, figures.backward], [figures.round_trip_ns, figures.held_ns]);
    if !rows.is_empty() {
        page.push('\n');
        page += &table(HEADING, rows);
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

/// A row for each figure that is known: of both directions, of the round trip and of the time in the reflector.
fn delays(ways: [Option<DirectionFigures>; 2], both: [Option<Spread>; 2]) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (name, figures) in ["forward", "backward"].into_iter().zip(ways) {
        if let Some(figures) = figures {
            rows.push(cells(name, &figures.delay_ns));
            rows.push(cells("  its bound +-", &figures.bound_ns));
        }
    }
    for (name, spread) in ["round trip", "in the reflector"].into_iter().zip(both) {
        rows.extend(spread.map(|spread| cells(name, &spread)));
    }
    rows
}

/// The end of a long run.
pub(super) fn minute(figures: &MinuteFigures) -> String {
    let count = |fate: PacketFate| figures.fates.get(fate.name()).copied().unwrap_or(0);
    let mut page = format!("\nthe last minute: {} packets, {} measured", figures.packets, count(PacketFate::Measured));
    page += &counted([
        (count(PacketFate::Lost), "lost"),
        (count(PacketFate::Unsynchronised), "with a clock that is not synchronised"),
        (count(PacketFate::Unstamped), "without a stamp of the kernel"),
        (figures.contradictions, "whose times contradict one another"),
    ]);
    page.push('\n');
    let rows = delays([figures.forward, figures.backward], [figures.round_trip_ns, None]);
    if !rows.is_empty() {
        page += &table(HEADING, rows);
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
            let limited = if figures.is_limited_to(reflector::RATE) {
                format!(
                    "; a reflector with --rate {}, as it is by default, answers as many as arrived",
                    reflector::RATE
                )
            } else {
                String::new()
            };
            format!("lost on the way there {forward}, on the way back {backward}{after}{limited}\n")
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
    let text = came(strays) + &counted([(strays.unreachable, "times unreachable")]);
    text.strip_prefix(", ").map_or_else(String::new, |text| format!("also: {text}\n"))
}

/// Packets that are no first reply, each count after a comma.
fn came(strays: &StrayCounts) -> String {
    counted([
        (strays.duplicates, "duplicates"),
        (strays.not_awaited, "replies too late or never asked for"),
        (strays.other_sessions, "replies to other sessions"),
        (strays.altered, "replies that do not repeat what was sent"),
        (strays.foreign, "packets that are no replies"),
    ])
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

/// Fails where a clock is proven false, or no packet had a reply.
pub(super) fn verdict(figures: &OwdFigures, strays: &StrayCounts) -> Result<(), Failure> {
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
        if let Some(came) = came(strays).strip_prefix(", ") {
            let why = "docs/owd.md says why they do not";
            return Err(format!("no packet had a reply that counts, but these came: {came} ({why})").into());
        }
        return Err("no reply came: is `ffclock-lab owd reflect` running there, and its port open?".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_owd::record::OwdRow;
    use ffclock_owd::summary::OwdSummary;
    use ffclock_units::{Counter, Moment, Span};

    /// All packets at once, of which the first `arrived` and the last one have a reply.
    fn page_of(packets: u32, arrived: u32) -> String {
        let mut summary = OwdSummary::default();
        let row = |number: u32, reflector_sequence: Option<u32>| OwdRow {
            number: number.into(),
            fate: if reflector_sequence.is_some() { PacketFate::Unsynchronised } else { PacketFate::Lost },
            sent: Moment::from_origin(Span::from_micros(number.into())),
            forward: None,
            backward: None,
            round_trip: None,
            held: None,
            reflector_sequence,
            sent_counter: Counter::from_raw(0),
            received_counter: None,
        };
        (0..arrived).for_each(|number| summary.add(&row(number, Some(number))));
        (arrived..packets - 1).for_each(|number| summary.add(&row(number, None)));
        summary.add(&row(packets - 1, Some(arrived)));
        page(&Value::Null, &summary.figures())
    }

    /// 20 000 packets within 20 ms are twice what a reflector answers by default.
    #[test]
    fn a_loss_that_the_limit_of_the_reflector_explains_names_it() {
        let limited = page_of(20_000, 10_199);
        assert!(limited.contains("lost on the way there 9800") && limited.contains("--rate 10000"), "{limited}");
        let lossy = page_of(20_000, 15_000);
        assert!(lossy.contains("lost on the way there 4999") && !lossy.contains("--rate"), "{lossy}");
    }
}
