//! What a replay found, as `--json` prints it. Times are in seconds; a figure that is not known is null.

use super::distribution::Figures;
use super::frequency::{Nominal, NominalSource};
use super::retrospect;
use super::selection::Selection;
use super::track::Track;
use ffclock_trace::TraceReader;
use ffclock_units::{Span, Status};
use serde::Serialize;

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Where the exchanges came from.
    pub(super) format: String,
    pub(super) counter: Option<String>,
    /// The server that was replayed, and how many the trace has.
    pub(super) server: u32,
    pub(super) server_name: Option<String>,
    pub(super) servers: u32,
    /// Exchanges with a reply, requests without one, rows that could not be read.
    pub(super) exchanges: u64,
    pub(super) lost: u64,
    pub(super) bad_rows: u64,
    /// What the estimator made of them.
    pub(super) used: u64,
    pub(super) rejected: u64,
    pub(super) contradictions: u64,
    pub(super) server_steps: u64,
    pub(super) epochs: u64,
    pub(super) span_s: Option<f64>,
    pub(super) warmup_s: Option<f64>,
    /// The period at the start, who named it, the long-term period at the end, and its error against the truth.
    pub(super) nominal_period_s: f64,
    pub(super) nominal_source: NominalSource,
    pub(super) period_s: Option<f64>,
    pub(super) rate_error_ppm: Option<f64>,
    pub(super) floor_s: Option<f64>,
    pub(super) shifts_up: u64,
    pub(super) shifts_down: u64,
    /// The clock at the last reply.
    pub(super) status: &'static str,
    pub(super) offset_s: Option<f64>,
    pub(super) uncertainty_s: Option<f64>,
    pub(super) bound_s: Option<f64>,
    /// The clock as published right after each exchange, against the truth at its reply.
    pub(super) error: Option<Figures>,
    pub(super) containment: Option<f64>,
    pub(super) outside: u64,
    /// The clock as published before each exchange, run on to the same moment.
    pub(super) error_before: Option<Figures>,
    pub(super) containment_before: Option<f64>,
    pub(super) outside_before: u64,
    /// The clock in retrospect, with `--smooth`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) smooth: Option<retrospect::Report>,
    /// Rows of the trace read and replayed in a second of this run.
    pub(super) exchanges_per_s: f64,
    /// What should be known about the trace.
    pub(super) notes: Vec<String>,
}

/// What the run as a whole knows.
pub(super) struct Run {
    pub(super) nominal: Nominal,
    pub(super) bad_rows: u64,
    pub(super) told: Vec<String>,
    pub(super) rows_per_second: f64,
}

/// Puts the report together.
pub(super) fn make(
    reader: &TraceReader,
    selection: &Selection,
    track: &Track,
    (run, smooth): (Run, Option<retrospect::Report>),
) -> Report {
    let server = selection.chosen().unwrap_or_default();
    let counts = track.counts;
    let last = track.last();
    let period = last.map(|(estimate, _)| estimate.difference_period);
    Report {
        format: reader.format().to_string(),
        counter: reader.header().counter.clone(),
        server: server.0,
        server_name: reader.server_name(server).map(str::to_owned),
        servers: selection.servers(),
        exchanges: counts.exchanges,
        lost: counts.lost,
        bad_rows: run.bad_rows,
        used: counts.used,
        rejected: counts.rejected,
        contradictions: counts.contradictions,
        server_steps: counts.server_steps,
        epochs: counts.epochs,
        span_s: track.span().map(Span::as_seconds),
        warmup_s: track.warmup().map(Span::as_seconds),
        nominal_period_s: run.nominal.period.as_seconds(),
        nominal_source: run.nominal.source,
        period_s: period.map(|period| period.as_seconds()),
        rate_error_ppm: period.and_then(|period| track.rate_error(period)).map(|rate| rate.as_ppm()),
        floor_s: track.floor().map(Span::as_seconds),
        shifts_up: counts.shifts_up,
        shifts_down: counts.shifts_down,
        status: last.map_or(Status::Unsynchronised, |(estimate, _)| estimate.status).name(),
        offset_s: track.offset().map(Span::as_seconds),
        uncertainty_s: last.and_then(|(estimate, counter)| known(estimate.at(counter).uncertainty.as_span())),
        bound_s: last.and_then(|(estimate, counter)| known(estimate.at(counter).bound.as_span())),
        error: track.after.errors.figures(),
        containment: track.after.containment(),
        outside: track.after.outside,
        error_before: track.before.errors.figures(),
        containment_before: track.before.containment(),
        outside_before: track.before.outside,
        smooth,
        exchanges_per_s: run.rows_per_second,
        notes: reader.notes().into_iter().chain(run.told).collect(),
    }
}

fn known(figure: Span) -> Option<f64> {
    (figure != Span::MAX).then(|| figure.as_seconds())
}
