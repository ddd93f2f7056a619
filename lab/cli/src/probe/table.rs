//! The tables of `ffclock-lab probe run`.

use super::answer::ProbeAnswer;
use super::{methods, probe_effect, wire};
use crate::columns::{counted, table, us, way};
use crate::failure::Failure;
use crate::{GlobalOptions, output, text};
use ffclock_probe::findings::{Asymmetry, Findings, LocationTrip, OrderViolation, Plausibility, SiteDelay};
use ffclock_probe::outcome::PacketCounts;
use ffclock_probe::paper::{self, PaperClaim};
use ffclock_probe::timeline::TimelineStep;
use ffclock_statistics::Spread;
use serde_json::json;
use std::fmt::Write;

const DELAYS: &str = "WAY|LOCATION|>PACKETS|>MIN|>25 %|>MEDIAN|>75 %|>90 %|>99 %|>99.9 %|>MAX";

const TRIPS: &str = "ROUND TRIP||>MIN|>25 %|>MEDIAN|>75 %|>90 %|>99 %|>99.9 %|>MAX";

const TIMELINE: &str = "ONE PACKET|LOCATION|>AT|>MEDIAN OF ALL";

const ASYMMETRIES: &str = "LOCATION|>MIN OUT|>MIN IN|>ASYMMETRY|>95 % INTERVAL|>LIMIT|";

/// Prints tables or JSON.
pub(super) fn print(answer: &ProbeAnswer, global: &GlobalOptions) -> Result<(), Failure> {
    let claims = paper::claims(&answer.digest());
    if global.json {
        return output::json(&json!({
            "about": answer.about,
            "phases": answer.phases,
            "paper": claims,
            "probe_effect": answer.effect,
        }));
    }
    output::write(&format!("{}\n{}", page(answer), paper_page(&claims)))
}

/// Everything, phase by phase.
fn page(answer: &ProbeAnswer) -> String {
    let way = answer.about["way"].as_str().unwrap_or("of a record");
    let mut page = format!("packets {way}; delays in us against the boundary to the driver\n");
    if let Some(effect) = &answer.effect {
        page += &probe_effect::text(effect);
    }
    for measured in &answer.phases {
        let _ = write!(page, "\nphase {}: {}\n", measured.phase.number + 1, measured.phase.name());
        page += &counts_line(&measured.counts, measured.length_s);
        for reason in &measured.unavailable {
            let _ = writeln!(page, "not available: {}", text::printable(reason));
        }
        page.push('\n');
        tables(&measured.findings, &mut page);
        page += &probe_effect::corrected(&measured.corrected);
        page += &methods::text(&measured.methods.agreements, measured.methods.mapping, answer.effect.as_ref());
    }
    page
}

fn counts_line(counts: &PacketCounts, length_s: f64) -> String {
    let line = format!("{} sent in {}, {} received", counts.sent, text::duration(length_s), counts.received);
    let rest = counted([
        (counts.lost, "lost"),
        (counts.duplicated, "duplicated"),
        (counts.reordered, "reordered"),
        (counts.foreign, "foreign packets"),
        (counts.unreachable, "times unreachable"),
        (counts.refused, "refused by the kernel"),
        (counts.socket_stamps_discarded, "socket stamps discarded"),
        (counts.tap_dropped, "dropped by the tap"),
        (counts.tap_stamps_discarded, "tap stamps discarded"),
        (counts.events_lost, "events lost by the kernel"),
        (counts.events_unplaced, "events of no packet"),
        (counts.ebpf_lost, "stamps by eBPF lost by the kernel"),
        (counts.ebpf_unplaced, "stamps by eBPF of no packet"),
        (counts.ebpf_discarded, "stamps by eBPF discarded"),
    ]);
    line + &rest + "\n"
}

/// Everything about one phase.
pub(super) fn tables(findings: &Findings, page: &mut String) {
    *page += &table(DELAYS, findings.delays.iter().map(delay_row));
    page.push('\n');
    let trips: Vec<_> = findings.round_trips.iter().flat_map(trip_rows).collect();
    if !trips.is_empty() {
        *page += &table(TRIPS, trips);
    }
    page.push('\n');
    *page += &table(ASYMMETRIES, findings.asymmetries.iter().map(asymmetry_row));
    page.push('\n');
    *page += &wire::mixed(&findings.mixed);
    *page += &findings.wire.as_ref().map(wire::text).unwrap_or_default();
    *page += &causality(&findings.causality);
    if let Some(timeline) = &findings.timeline {
        let steps = table(TIMELINE, timeline.steps.iter().map(step_row));
        let _ = write!(page, "\npacket {}, since it left user space:\n{steps}", timeline.packet);
    }
}

/// The paper's findings beside what was found here: each with its evidence on a line of its own, which is too long for
/// a column.
fn paper_page(claims: &[PaperClaim]) -> String {
    let mut lines = "THE PAPER'S FINDINGS, AND THIS HOST\n".to_owned();
    for claim in claims {
        let _ = writeln!(lines, "{:18}  {}\n{:20}{}", claim.verdict.name(), claim.claim, "", claim.evidence);
    }
    lines
}

fn step_row(step: &TimelineStep) -> Vec<String> {
    vec![way(step.direction), step.site.name().to_owned(), us(step.packet_ns), us(step.median_ns)]
}

fn delay_row(delay: &SiteDelay) -> Vec<String> {
    let Spread { min, p25, median, p75, p99, p999, max, .. } = delay.delay_ns;
    let mut row = vec![way(delay.direction), delay.site.name().to_owned(), delay.count.to_string()];
    row.extend([min, p25, median, p75, delay.p90_ns, p99, p999, max].map(us));
    row
}

/// The whole round trip, and what of it lies within the host (the paper's partial round trip).
fn trip_rows(trip: &LocationTrip) -> Vec<Vec<String>> {
    let row = |name: &str, what: &str, spread: &Spread, p90: f64| {
        let Spread { min, p25, median, p75, p99, p999, max, .. } = *spread;
        let mut row = vec![name.to_owned(), what.to_owned()];
        row.extend([min, p25, median, p75, p90, p99, p999, max].map(us));
        row
    };
    let mut rows = vec![row(trip.location.name(), "whole", &trip.whole_ns, trip.whole_p90_ns)];
    if let (Some(partial), Some(p90)) = (&trip.partial_ns, trip.partial_p90_ns) {
        rows.push(row("", "in the host", partial, p90));
    }
    rows
}

fn asymmetry_row(one: &Asymmetry) -> Vec<String> {
    let verdict = match one.verdict {
        Plausibility::Possible => "",
        Plausibility::BeyondReference => "nearer to the wire than the reference",
        Plausibility::CausalityFault => "impossible: its stamps break causality",
    };
    vec![
        one.location.name().to_owned(),
        us(one.out_ns),
        us(one.in_ns),
        us(one.asymmetry_ns),
        format!("{} to {}", us(one.interval_ns.0), us(one.interval_ns.1)),
        if one.limit_ns < 0.0 { "-".to_owned() } else { format!("+-{}", us(one.limit_ns)) },
        verdict.to_owned(),
    ]
}

fn causality(orders: &[OrderViolation]) -> String {
    let mut lines = String::new();
    for order in orders.iter().filter(|order| order.violations > 0) {
        let examples: Vec<String> =
            order.examples.iter().map(|(sequence, ns)| format!("packet {sequence} by {} us", us(-ns))).collect();
        let _ = writeln!(
            lines,
            "causality: {} {} before {} {} in {} of {} packets, by up to {} us ({})",
            way(order.second.direction()),
            order.second.name(),
            way(order.first.direction()),
            order.first.name(),
            order.violations,
            order.count,
            us(-order.worst_ns),
            examples.join(", ")
        );
    }
    if lines.is_empty() {
        lines = format!("causality: kept in all {} orders of events\n", orders.len());
    }
    lines
}
