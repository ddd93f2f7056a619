//! The report for people.

use super::distribution::Figures;
use super::frequency::NominalSource;
use super::report::Report;
use super::retrospect;
use ffclock_units::{Rate, Span};

/// The report as lines.
pub(super) fn render(report: &Report) -> String {
    let mut text = field("Trace", &origin(report));
    text += &field("Exchanges", &exchanges(report));
    text += &field("Path", &path(report));
    text += &field("Counter", &counter(report));
    text += &field("Clock", &clock(report));
    text += &errors("after", report.error.as_ref(), (report.containment, report.outside));
    text += &errors("before", report.error_before.as_ref(), (report.containment_before, report.outside_before));
    text += &report.smooth.as_ref().map_or_else(String::new, smoothed);
    if report.error.is_none() {
        text += &field("Error", "not known: no reference times in the trace, or none after the warm-up (see --from)");
    }
    for note in &report.notes {
        text += &field("Note", note);
    }
    text + &field("Speed", &speed(report.exchanges_per_s))
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
    let name = report.server_name.clone().unwrap_or_else(|| report.server.to_string());
    let server = if report.servers > 1 { format!(", server {name} of {}", report.servers) } else { String::new() };
    let epochs = if report.epochs > 1 { format!(", {} counter epochs", report.epochs) } else { String::new() };
    format!("{}{server}{epochs}, {}", report.format, or_dash(report.span_s))
}

fn exchanges(report: &Report) -> String {
    let mut parts = vec![format!("{} with a reply, {} used", report.exchanges, report.used)];
    for (count, what) in [
        (report.lost, "lost"),
        (report.rejected, "rejected"),
        (report.contradictions, "contradicting"),
        (report.server_steps, "steps of the server accepted"),
        (report.bad_rows, "rows unreadable"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    parts.join(", ")
}

fn path(report: &Report) -> String {
    let shifts = format!("{} shifts up, {} down", report.shifts_up, report.shifts_down);
    format!("smallest round trip {}, {shifts}", or_dash(report.floor_s))
}

fn counter(report: &Report) -> String {
    let name = report.counter.as_deref().unwrap_or("counter");
    let source = match report.nominal_source {
        NominalSource::Given => "as given",
        NominalSource::Trace => "by the trace",
        NominalSource::Estimated => "by the first exchanges",
    };
    let mut text = format!("{name}, {:.3} MHz nominal {source}", 1e-6 / report.nominal_period_s);
    if let Some(period) = report.period_s {
        text += &format!(", measured {}", Rate::from_fraction(period / report.nominal_period_s - 1.0));
    }
    if let Some(error) = report.rate_error_ppm {
        text += &format!(", {} off the truth", Rate::from_ppm(error));
    }
    text
}

fn clock(report: &Report) -> String {
    let (bound, uncertainty) = (or_dash(report.bound_s), or_dash(report.uncertainty_s));
    format!(
        "{}, bound {bound}, standard uncertainty {uncertainty}, warm after {}",
        report.status,
        or_dash(report.warmup_s)
    )
}

fn percentiles(figures: &Figures) -> String {
    let [p1, p25, median, p75, p99] = [figures.p1, figures.p25, figures.median, figures.p75, figures.p99].map(span);
    format!("median {median}, IQR {}, [1 25 75 99] % {p1}, {p25}, {p75}, {p99}", span(figures.iqr))
}

fn extremes(figures: &Figures) -> String {
    format!("largest {}, rms {}, {} readings", span(figures.max_abs), span(figures.rms), figures.count)
}

/// The clock in retrospect: percentiles, then whether what it says of itself holds.
fn smoothed(report: &retrospect::Report) -> String {
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
fn errors(moment: &str, figures: Option<&Figures>, (containment, outside): (Option<f64>, u64)) -> String {
    let (Some(figures), Some(containment)) = (figures, containment) else { return String::new() };
    let (first, second) = (percentiles(figures), extremes(figures));
    let third = format!("{outside} outside the bound ({:.4} % inside)", containment * 100.0);
    field("Error", &format!("of the clock {moment} each exchange:"))
        + &field("", &first)
        + &field("", &format!("{second}, {third}"))
}
