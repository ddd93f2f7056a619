//! Results for people.

use super::results::{Results, XiReport};
use ffclock_theta::abc::{CycleWitness, Hop};
use ffclock_theta::analysis::{ConformanceReport, Omega, Peak, Ratio, ThetaReport};
use ffclock_theta::certified::{Certified, OmegaBounds};
use ffclock_theta::round_trip::{DelayView, RoundTripReport};
use ffclock_units::Span;
use std::fmt::Write;

/// The results of an analysis.
pub(super) fn render(results: &Results) -> String {
    let report = &results.report;
    let mut text = String::new();
    let ThetaReport { processes, tolerated, correct, counts, rounds, .. } = report;
    let (wait, lasted) = (span(Some(report.delay_ps as i64)), span(Some(report.duration_ps as i64)));
    let _ =
        writeln!(text, "n = {processes}, f = {tolerated}, {correct} correct, D = {wait}; {rounds} rounds in {lasted}");
    if results.by_truth {
        text.push_str("by the true times, not by the clocks\n");
    }
    let _ = writeln!(
        text,
        "{} messages counted, {} never perceived, {} perceived again",
        counts.messages, counts.unperceived, counts.duplicates
    );
    let delays = [("tau+", report.delay_max_ps), ("tau-", report.delay_min_ps)];
    for (name, delay) in delays {
        let _ = writeln!(text, "{name:<9} {}", span(delay));
    }
    let _ = writeln!(text, "Theta_po  {}", ratio(report.theta_po));
    if report.theta.is_some() {
        let _ = writeln!(text, "Theta     {}", ratio(report.theta));
    }
    omega(&mut text, "first switches of a round", &report.first);
    let _ = writeln!(text, "  throughout  {}", peak(report.throughout));
    omega(&mut text, "all switches", &report.all);
    certified(&mut text, results.certified.as_ref());
    round_trips(&mut text, results.round_trips.as_ref());
    xi(&mut text, results.xi.as_ref());
    conformance(&mut text, &report.conformance);
    for remark in &report.remarks {
        let _ = writeln!(text, "partial: {remark}");
    }
    text
}

fn omega(text: &mut String, title: &str, seen: &Omega) {
    let _ = writeln!(
        text,
        "\n{title}: {} ({} with nothing in transit, {} at 1 or less)",
        seen.switches, seen.idle, seen.at_most_one
    );
    let _ = writeln!(text, "  Omega       {}", peak(seen.omega));
    let _ = writeln!(text, "  with D      {}", ratio(seen.omega_with_delay));
    let _ = writeln!(text, "  tau_r-      {} to {}", span(seen.relevant_min_ps), span(seen.relevant_max_ps));
    let _ = writeln!(text, "  Theta_ro    {}", ratio(seen.theta_ro));
    let _ = writeln!(text, "  g, g_r      {}, {}", number(seen.g), number(seen.g_r));
    if let Some(block) = seen.per_block {
        let (mean, low, high) = (block.mean, block.low, block.high);
        let _ = writeln!(
            text,
            "  per block   {mean:.4} ({low:.4} to {high:.4}, {} blocks of {} rounds)",
            block.blocks, seen.block_rounds
        );
    }
    if let Some(tail) = seen.tail {
        let ten_fold = tail.return_level(10.0 * seen.switches as f64);
        let _ = writeln!(text, "  tail        shape {:.3}; in ten times as many switches {ten_fold:.4}", tail.shape);
    }
}

fn certified(text: &mut String, certified: Option<&Certified>) {
    let Some(Certified { first, all, throughout, theta, half_width_max_ps, .. }) = certified else { return };
    let _ = writeln!(
        text,
        "\ncertain if every clock kept its promise (clocks of two hosts known to +- {}):",
        span(Some(*half_width_max_ps))
    );
    let omegas = [
        ("Omega over first switches", first),
        ("Omega over all switches", all),
        ("largest ratio throughout", throughout),
        ("Theta", theta),
    ];
    for (name, bounds) in omegas {
        if let Some(OmegaBounds { low, high }) = bounds {
            let _ = writeln!(text, "  {name} between {:.4} and {:.4}", low.as_f64(), high.as_f64());
        }
    }
    for (name, bounds) in
        [("first", certified.and_then(|of| of.g_r_first)), ("all", certified.and_then(|of| of.g_r_all))]
    {
        if let Some((low, high)) = bounds {
            let _ = writeln!(text, "  g_r over {name} switches between {low:.4} and {high:.4}");
        }
    }
}

fn round_trips(text: &mut String, report: Option<&RoundTripReport>) {
    let Some(RoundTripReport { answered, unanswered, one_way, averaged, .. }) = report else { return };
    let _ = writeln!(text, "\nround trips, of {answered} messages that were answered ({unanswered} were not):");
    let _ = writeln!(text, "                        one way   averaged as in the paper");
    let row = |name: &str, value: fn(&DelayView) -> String, bias: Option<f64>| {
        let bias = bias.map(|bias| format!("  ({bias:+.1} %)")).unwrap_or_default();
        format!("  {name:<16} {:>12} {:>12}{bias}\n", value(one_way), value(averaged))
    };
    let mean_bias = one_way.mean.zip(averaged.mean).map(|(one_way, averaged)| 100.0 * (averaged / one_way - 1.0));
    let report = report.map(|report| (report.bias_first_percent, report.bias_all_percent)).unwrap_or_default();
    text.push_str(&row("Omega, first", |seen| ratio(seen.first), report.0));
    text.push_str(&row("Omega, all", |seen| ratio(seen.all), report.1));
    text.push_str(&row("mean of all", |seen| number(seen.mean), mean_bias));
    text.push_str(&row("tau+", |seen| span(seen.delay_max_ps), None));
    text.push_str(&row("tau_r-, least", |seen| span(seen.relevant_min_ps), None));
}

fn xi(text: &mut String, xi: Option<&XiReport>) {
    let Some(XiReport { witness, steps }) = xi else { return };
    let Some(witness) = witness else {
        let _ = writeln!(text, "\nXi* at most 1");
        return;
    };
    let (CycleWitness { backward, forward, .. }, ratio) = (witness, witness.ratio());
    let _ = writeln!(text, "\nXi* = {backward}/{forward} = {ratio:.4}, on this cycle:");
    for (hop, (_, step)) in witness.hops.iter().zip(steps) {
        let what = step.perceived.map_or_else(
            || "sends of its own accord".to_owned(),
            |(sender, round)| format!("perceives round {} of process {}", round.0, sender.0),
        );
        let way = match hop {
            Hop::Forward { .. } => "forward along a message it sends",
            Hop::Backward { .. } => "back along that message",
            Hop::Local { .. } => "back to its step before",
        };
        let _ = writeln!(text, "  process {} {what}; {way}", step.process.0);
    }
}

fn conformance(text: &mut String, seen: &ConformanceReport) {
    let kept = if seen.kept { "kept" } else { "BROKEN" };
    let bound = seen.spread_bound.map_or_else(|| "no bound".to_owned(), |bound| format!("at most {bound} allowed"));
    let _ = writeln!(
        text,
        "\nrules {kept}: {} switches checked, {} by the catch-up rule, {} breaches; {} rounds apart ({bound})",
        seen.switches, seen.catch_ups, seen.breaches, seen.spread_max
    );
    if seen.not_judged > 0 {
        let _ = writeln!(
            text,
            "  not judged: whether {} rounds that were perceived had been sent; the log of who would have sent them is missing",
            seen.not_judged
        );
    }
    for example in &seen.examples {
        let _ = writeln!(text, "  {example}");
    }
}

fn peak(peak: Option<Peak>) -> String {
    peak.map_or_else(
        || "-".to_owned(),
        |peak| {
            let (over, under) = peak.ratio.parts();
            let (over, under) = (span(Some(over as i64)), span(Some(under as i64)));
            let delays = if peak.ratio == Ratio::ONE { String::new() } else { format!(" ({over} / {under})") };
            format!("{:.4}  at round {} of process {}{delays}", peak.ratio.as_f64(), peak.round.0, peak.process.0)
        },
    )
}

fn ratio(ratio: Option<Ratio>) -> String {
    number(ratio.map(Ratio::as_f64))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"))
}

pub(super) fn span(picoseconds: Option<i64>) -> String {
    picoseconds.map_or_else(|| "-".to_owned(), |picoseconds| Span::from_seconds(picoseconds as f64 * 1e-12).to_string())
}
