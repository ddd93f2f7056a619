//! The report for people.

use super::ReplayAnswer;
use crate::columns::counted;
use ffclock_replay::{ClockErrors, ExchangeCounts, PathFigures, Report, RetrospectReport, StartPeriodSource};
use ffclock_statistics::ErrorFigures;
use ffclock_units::{Rate, Span};

/// The report as lines.
pub(super) fn render(answer: &ReplayAnswer) -> String {
    let report = &answer.report;
    let mut text = field("Trace", &origin(report));
    text += &field("Exchanges", &exchanges(&report.exchanges));
    text += &field("Path", &path(&report.path));
    text += &field("Counter", &counter(report));
    text += &field("Clock", &clock(report));
    text += &errors("after", &report.after);
    text += &errors("before", &report.before);
    text += &report.smooth.as_ref().map_or_else(String::new, smoothed);
    if report.after.error.is_none() {
        text += &field("Error", "not known: no reference times in the trace, or none after the warm-up (see --from)");
    }
    for note in &answer.notes {
        text += &field("Note", note);
    }
    text + &field("Speed", &speed(answer.exchanges_per_s))
}

fn speed(rows_per_second: f64) -> String {
    if rows_per_second < 1e5 {
        format!("{rows_per_second:.0} rows/s")
    } else {
        format!("{:.2} million rows/s", rows_per_second / 1e6)
    }
}

fn field(name: &str, value: &str) -> String {
    format!("{name:<12}{value}\n")
}

fn span(seconds: f64) -> String {
    Span::from_seconds(seconds).to_string()
}

fn or_dash(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), span)
}

fn origin(report: &Report) -> String {
    let origin = &report.origin;
    let name = origin.server_name.clone().unwrap_or_else(|| origin.server.to_string());
    let server = if origin.servers > 1 { format!(", server {name} of {}", origin.servers) } else { String::new() };
    let epochs = report.exchanges.epochs;
    let epochs = if epochs > 1 { format!(", {epochs} counter epochs") } else { String::new() };
    format!("{}{server}{epochs}, {}", origin.format, or_dash(report.span_s))
}

fn exchanges(counts: &ExchangeCounts) -> String {
    let rest = counted([
        (counts.lost, "lost"),
        (counts.rejected, "rejected"),
        (counts.contradictions, "contradicting"),
        (counts.server_steps, "steps of the server accepted"),
        (counts.bad_rows, "rows unreadable"),
    ]);
    format!("{} with a reply, {} used{rest}", counts.exchanges, counts.used)
}

fn path(path: &PathFigures) -> String {
    let shifts = format!("{} shifts up, {} down", path.shifts_up, path.shifts_down);
    format!("smallest round trip {}, {shifts}", or_dash(path.floor_s))
}

fn counter(report: &Report) -> String {
    let name = report.origin.counter.as_deref().unwrap_or("counter");
    let rate = &report.rate;
    let source = match rate.nominal_source {
        StartPeriodSource::Given => "as given",
        StartPeriodSource::Trace => "by the trace",
        StartPeriodSource::Estimated => "by the first exchanges",
    };
    let mut text = format!("{name}, {:.3} MHz nominal {source}", 1e-6 / rate.nominal_period_s);
    if let Some(period) = rate.period_s {
        text += &format!(", measured {}", Rate::from_fraction(period / rate.nominal_period_s - 1.0));
    }
    if let Some(error) = rate.rate_error_ppm {
        text += &format!(", {} off the truth", Rate::from_ppm(error));
    }
    text
}

fn clock(report: &Report) -> String {
    let last = &report.last;
    let [bound, uncertainty, noise] = [last.bound_s, last.uncertainty_s, last.noise_s].map(or_dash);
    let (status, warm) = (last.status.name(), or_dash(report.warmup_s));
    format!("{status}, bound {bound}, standard uncertainty {uncertainty}, noise {noise}, warm after {warm}")
}

fn percentiles(figures: &ErrorFigures) -> String {
    let [p1, p25, median, p75, p99] = [figures.p1, figures.p25, figures.median, figures.p75, figures.p99].map(span);
    format!("median {median}, IQR {}, [1 25 75 99] % {p1}, {p25}, {p75}, {p99}", span(figures.iqr))
}

fn extremes(figures: &ErrorFigures) -> String {
    format!("largest {}, rms {}, {} readings", span(figures.max_abs), span(figures.rms), figures.count)
}

/// The clock in retrospect: percentiles, then whether its uncertainty holds.
fn smoothed(report: &RetrospectReport) -> String {
    let claim = |share: Option<f64>, said: Option<f64>| {
        let share = share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        format!("{share} within twice the standard uncertainty of {}", or_dash(said))
    };
    let (ours, causal) =
        (claim(report.within_2u, report.uncertainty_s), claim(report.causal_within_2u, report.causal_uncertainty_s));
    let Some(figures) = &report.error else {
        return field("Retrospect", &format!("standard uncertainty {}", or_dash(report.uncertainty_s)));
    };
    field("Retrospect", "error of the clock by past and future, at the same replies:")
        + &field("", &percentiles(figures))
        + &field("", &extremes(figures))
        + &field("", &format!("less the median, {ours}"))
        + &field("", &format!("of the clock as it was, {causal}"))
}

/// The errors of one clock: percentiles, then whether the bound held.
fn errors(moment: &str, clock: &ClockErrors) -> String {
    let (Some(figures), Some(containment)) = (&clock.error, clock.containment) else { return String::new() };
    let (first, second) = (percentiles(figures), extremes(figures));
    let third = format!("{} outside the bound ({:.4} % inside)", clock.outside, containment * 100.0);
    field("Error", &format!("of the clock {moment} each exchange:"))
        + &field("", &first)
        + &field("", &format!("{second}, {third}"))
}
