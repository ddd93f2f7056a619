//! Results for people.

use super::without;
use ffclock_sim::{BeliefResult, CheckResult, OracleRatio, RunResult, WindowResult};
use std::fmt::Write;

/// A table of the clocks for each window, and the checks.
pub(super) fn render(about: &str, result: &RunResult) -> String {
    let way = match result.servers.len() {
        0 => format!("asymmetry {:.1} us", result.asymmetry_s * 1e6),
        servers => format!("{servers} servers"),
    };
    let mut text = format!(
        "{}: {about}\nseed {}, {} requests, {} exchanges, {way}{}\n",
        result.scenario,
        result.seed,
        result.requests,
        result.exchanges,
        without(&result.without)
    );
    text.push_str(&render_servers(result));
    let windows = result.clocks.first().map_or(0, |clock| clock.windows.len());
    for index in 0..windows {
        render_window(&mut text, index, result);
    }
    text.push_str(&render_ratios(&result.oracle_ratios));
    text.push_str(&render_checks(&result.checks));
    text
}

/// Each of several servers, and how often the clocks believed it.
fn render_servers(result: &RunResult) -> String {
    if result.servers.is_empty() {
        return String::new();
    }
    let choosers = || result.clocks.iter().filter_map(|clock| Some((&clock.name, clock.beliefs.as_ref()?)));
    let mut text = format!("\n{:<14}{:>10}{:>11}{:>16}", "server", "requests", "exchanges", "asymmetry [us]");
    choosers().for_each(|(name, _)| _ = write!(text, "{:>24}", format!("believed by {name} [%]")));
    text.push('\n');
    for (index, server) in result.servers.iter().enumerate() {
        let asymmetry = scaled(Some(server.asymmetry_s), 1e6);
        let _ = write!(text, "{:<14}{:>10}{:>11}{asymmetry:>16}", server.name, server.requests, server.exchanges);
        for (_, beliefs) in choosers() {
            let believed = beliefs.servers.get(index).map(|one| one.believed);
            let _ = write!(text, "{:>24}", scaled(believed, 100.0));
        }
        text.push('\n');
    }
    choosers().for_each(|(name, beliefs)| render_beliefs(&mut text, name, beliefs));
    text
}

/// Whom a clock disbelieved, and what its changes of mind did to readers.
fn render_beliefs(text: &mut String, clock: &str, beliefs: &BeliefResult) {
    for server in &beliefs.servers {
        if let Some(since) = server.out_since_s {
            let wrong = scaled(Some(server.disbelieved), 100.0);
            let _ = writeln!(
                text,
                "{clock}: {} is not believed from {since:.0} s on, held to be wrong at {wrong} % of the readings",
                server.name
            );
        }
    }
    if beliefs.changes > 0 {
        let step = scaled(Some(beliefs.largest_step_s), 1e6);
        let over = scaled(Some(beliefs.largest_step_over_uncertainty), 1.0);
        let _ = writeln!(
            text,
            "{clock}: the believed servers changed {} times; largest step of the time {step} us, {over} of the uncertainty",
            beliefs.changes
        );
    }
}

fn render_window(text: &mut String, index: usize, result: &RunResult) {
    let rows = || result.clocks.iter().filter_map(|clock| Some((&clock.name, clock.windows.get(index)?)));
    let name = rows().next().map_or("", |(_, window)| window.name.as_str());
    let title = if name.is_empty() { "error [us]" } else { name };
    let _ = writeln!(
        text,
        "\n{title:<14}{:>10}{:>10}{:>10}{:>11}{:>12}{:>12}{:>12}{:>12}",
        "median", "iqr", "p99", "largest", "rate [ppb]", "bound", "inside [%]", "within 2u"
    );
    for (clock, window) in rows() {
        render_row(text, clock, window);
    }
}

fn render_row(text: &mut String, clock: &str, window: &WindowResult) {
    let micros = |value: Option<f64>| scaled(value, 1e6);
    let _ = writeln!(
        text,
        "{clock:<14}{:>10}{:>10}{:>10}{:>11}{:>12}{:>12}{:>12}{:>12}",
        micros(window.median),
        micros(window.iqr),
        micros(window.p99),
        micros(window.max),
        scaled(window.rate_p99, 1e9),
        micros(window.bound),
        scaled(window.containment, 100.0),
        scaled(window.calibration, 100.0)
    );
}

/// How far each clock is from what could be reached.
fn render_ratios(ratios: &[OracleRatio]) -> String {
    if ratios.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{:<14}{:<14}{:>20}{:>20}\n", "iqr over", "window", "causal oracle", "smoother");
    for ratio in ratios.iter().filter(|ratio| ratio.figure == "iqr") {
        let (causal, smoother) = (scaled(ratio.over_causal, 1.0), scaled(ratio.over_smoother, 1.0));
        let _ = writeln!(text, "{:<14}{:<14}{causal:>20}{smoother:>20}", ratio.clock, ratio.window);
    }
    text
}

fn scaled(value: Option<f64>, scale: f64) -> String {
    match value.map(|value| value * scale) {
        None => "-".to_owned(),
        Some(value) if value.abs() >= 1000.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    }
}

fn render_checks(checks: &[CheckResult]) -> String {
    let mut text = String::from(if checks.is_empty() { "" } else { "\n" });
    for check in checks {
        let mark = if check.passed { "ok    " } else { "FAILED" };
        let measured = check.measured.map_or_else(|| "nothing".to_owned(), |value| format!("{value:.3e}"));
        let _ = writeln!(text, "{mark} {}: {} (measured {measured})", check.name, check.check);
    }
    text
}
