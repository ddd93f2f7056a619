//! The figures of a replay. Times are in seconds; a figure that is not known is null.
//!
//! The parts are flat in the serialised form: each field keeps its name and place there.

use crate::nominal::{StartPeriod, StartPeriodSource};
use crate::selection::Selection;
use crate::track::{Account, ReplayTrack};
use ffclock_statistics::ErrorFigures;
use ffclock_trace::TraceReader;
use ffclock_units::{Span, Status};
use serde::{Serialize, Serializer};

/// The report.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Where the exchanges come from.
    #[serde(flatten)]
    pub origin: TraceOrigin,
    /// Exchanges by what happened to them.
    #[serde(flatten)]
    pub exchanges: ExchangeCounts,
    /// From the first to the last exchange.
    pub span_s: Option<f64>,
    /// From the first exchange to the end of the warm-up.
    pub warmup_s: Option<f64>,
    /// The rate of the counter.
    #[serde(flatten)]
    pub rate: CounterRate,
    /// The path to the server.
    #[serde(flatten)]
    pub path: PathFigures,
    /// The clock at the last reply.
    #[serde(flatten)]
    pub last: LastClock,
    /// The clock as published right after each exchange, against the truth at its reply.
    #[serde(flatten)]
    pub after: ClockErrors,
    /// The clock as published before each exchange, run on to the same moment.
    #[serde(flatten, serialize_with = "with_names_of_before")]
    pub before: ClockErrors,
    /// The clock in retrospect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smooth: Option<RetrospectReport>,
}

/// Where the exchanges come from.
#[derive(Debug, Serialize)]
pub struct TraceOrigin {
    /// The format of the trace.
    pub format: String,
    /// The counter's name, if the trace states it.
    pub counter: Option<String>,
    /// The number of the server that was replayed.
    pub server: u32,
    /// Its name, if the trace states it.
    pub server_name: Option<String>,
    /// The number of servers in the trace.
    pub servers: u32,
}

/// Exchanges by what happened to them.
#[derive(Debug, Serialize)]
pub struct ExchangeCounts {
    /// With a reply.
    pub exchanges: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Rows that could not be read.
    pub bad_rows: u64,
    /// Used by all stages of the estimator.
    pub used: u64,
    /// Not used at all.
    pub rejected: u64,
    /// In contradiction to what was proven before.
    pub contradictions: u64,
    /// Steps of the server that were accepted.
    pub server_steps: u64,
    /// Epochs of the counter.
    pub epochs: u64,
}

/// The rate of the counter.
#[derive(Debug, Serialize)]
pub struct CounterRate {
    /// The period at the start.
    pub nominal_period_s: f64,
    /// Where that comes from.
    pub nominal_source: StartPeriodSource,
    /// The long-term period at the end.
    pub period_s: Option<f64>,
    /// Its error against the truth.
    pub rate_error_ppm: Option<f64>,
}

/// The path to the server.
#[derive(Debug, Serialize)]
pub struct PathFigures {
    /// The smallest round trip.
    pub floor_s: Option<f64>,
    /// Changes of the path that made it longer.
    pub shifts_up: u64,
    /// Changes that made it shorter.
    pub shifts_down: u64,
}

/// The clock at the last reply.
#[derive(Debug, Serialize)]
pub struct LastClock {
    /// Its status.
    #[serde(serialize_with = "by_name")]
    pub status: Status,
    /// The uncorrected clock minus the absolute one.
    pub offset_s: Option<f64>,
    /// The combined standard uncertainty.
    pub uncertainty_s: Option<f64>,
    /// The part of it that exchanges show.
    pub noise_s: Option<f64>,
    /// The bound.
    pub bound_s: Option<f64>,
}

/// The errors of one clock at all replies that count.
#[derive(Debug, Serialize)]
pub struct ClockErrors {
    /// Their distribution; none without a truth.
    pub error: Option<ErrorFigures>,
    /// The share of readings with the truth inside the bound.
    pub containment: Option<f64>,
    /// The number of readings with the truth outside the bound.
    pub outside: u64,
}

/// The account of the clock in retrospect.
#[derive(Debug, Serialize)]
pub struct RetrospectReport {
    /// The errors at the same replies as those of the causal clock.
    pub error: Option<ErrorFigures>,
    /// The median standard uncertainty of the smoothed clock, by what exchanges show, in seconds.
    pub uncertainty_s: Option<f64>,
    /// The same of the causal clock.
    pub causal_uncertainty_s: Option<f64>,
    /// The share of errors, less their median, within twice the standard uncertainty.
    pub within_2u: Option<f64>,
    /// The same of the causal clock.
    pub causal_within_2u: Option<f64>,
}

impl Report {
    /// The figures of a track; rows that could not be read and the clock in retrospect are added by the caller.
    pub(crate) fn of(track: &ReplayTrack, nominal: &StartPeriod, origin: TraceOrigin) -> Self {
        Report {
            origin,
            exchanges: ExchangeCounts::of(track),
            span_s: track.span().map(Span::as_seconds),
            warmup_s: track.warmup().map(Span::as_seconds),
            rate: CounterRate::of(track, nominal),
            path: PathFigures::of(track),
            last: LastClock::of(track),
            after: ClockErrors::of(&track.after),
            before: ClockErrors::of(&track.before),
            smooth: None,
        }
    }
}

impl TraceOrigin {
    pub(crate) fn of(reader: &TraceReader, selection: &Selection) -> Self {
        let server = selection.chosen().unwrap_or_default();
        TraceOrigin {
            format: reader.format().to_string(),
            counter: reader.header().counter.clone(),
            server: server.0,
            server_name: reader.server_name(server).map(str::to_owned),
            servers: selection.servers(),
        }
    }
}

impl ExchangeCounts {
    fn of(track: &ReplayTrack) -> Self {
        let counts = track.counts;
        ExchangeCounts {
            exchanges: counts.exchanges,
            lost: counts.lost,
            bad_rows: 0,
            used: counts.used,
            rejected: counts.rejected,
            contradictions: counts.contradictions,
            server_steps: counts.server_steps,
            epochs: counts.epochs,
        }
    }
}

impl CounterRate {
    fn of(track: &ReplayTrack, nominal: &StartPeriod) -> Self {
        let period = track.last().map(|(estimate, _)| estimate.difference_period);
        CounterRate {
            nominal_period_s: nominal.period.as_seconds(),
            nominal_source: nominal.source,
            period_s: period.map(|period| period.as_seconds()),
            rate_error_ppm: period.and_then(|period| track.rate_error(period)).map(|rate| rate.as_ppm()),
        }
    }
}

impl PathFigures {
    fn of(track: &ReplayTrack) -> Self {
        PathFigures {
            floor_s: track.floor().map(Span::as_seconds),
            shifts_up: track.counts.shifts_up,
            shifts_down: track.counts.shifts_down,
        }
    }
}

impl LastClock {
    fn of(track: &ReplayTrack) -> Self {
        let last = track.last();
        LastClock {
            status: last.map_or(Status::Unsynchronised, |(estimate, _)| estimate.status),
            offset_s: track.offset().map(Span::as_seconds),
            uncertainty_s: last.and_then(|(estimate, counter)| known(estimate.at(counter).uncertainty.as_span())),
            noise_s: last.and_then(|(estimate, counter)| known(estimate.at(counter).noise.as_span())),
            bound_s: last.and_then(|(estimate, counter)| known(estimate.at(counter).bound.as_span())),
        }
    }
}

impl ClockErrors {
    fn of(account: &Account) -> Self {
        ClockErrors {
            error: account.errors.figures(),
            containment: account.containment.share(),
            outside: account.containment.outside(),
        }
    }
}

fn known(figure: Span) -> Option<f64> {
    (figure != Span::MAX).then(|| figure.as_seconds())
}

fn by_name<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.name())
}

/// Beside the errors of the clock after each exchange, so their names must differ.
fn with_names_of_before<S: Serializer>(errors: &ClockErrors, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Before {
        error_before: Option<ErrorFigures>,
        containment_before: Option<f64>,
        outside_before: u64,
    }
    let ClockErrors { error, containment, outside } = *errors;
    Before { error_before: error, containment_before: containment, outside_before: outside }.serialize(serializer)
}
