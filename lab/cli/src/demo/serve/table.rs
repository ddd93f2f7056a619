//! The outcome of the chain: a row for each stage, and each client behind us against the same one behind chronyd.

use super::logs::{LogKind, LogMark, LogSample};
use super::{ChainSummary, FOLLOWERS, OURS, RIVAL, WAYS};
use crate::demo::sampler::ObservedClock;
use crate::failure::Failure;
use ffclock_cli::text::{self, Align};
use ffclock_statistics::{Containment, Spread, percentile};
use serde::Serialize;

/// One stage of the chain.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChainRow {
    /// Whose time it is.
    pub(super) clock: &'static str,
    /// Whom it follows, or who serves it.
    pub(super) behind: &'static str,
    /// "nts" or "none".
    pub(super) authentication: &'static str,
    pub(super) samples: usize,
    /// Of the size of the error [s].
    pub(super) error_median_s: Option<f64>,
    /// Of the size of the error [s].
    pub(super) error_p99_s: Option<f64>,
    /// The distance between the quartiles of the error [s].
    pub(super) error_iqr_s: Option<f64>,
    /// The median of what was claimed as the largest error [s].
    pub(super) claim_median_s: Option<f64>,
    /// How many claims were compared with the truth.
    pub(super) claims: u64,
    /// How many of them did not contain it.
    pub(super) claims_broken: u64,
    /// Whether the claim is ours to keep.
    pub(super) is_ours: bool,
}

/// A client behind us against the same kind behind chronyd.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ChainRatio {
    pub(super) clock: &'static str,
    pub(super) authentication: &'static str,
    pub(super) error_median_ratio: f64,
    pub(super) error_iqr_ratio: f64,
}

/// What was seen of one stage.
#[derive(Default)]
struct StageSeries {
    errors: Vec<f64>,
    claims: Vec<f64>,
    held: Containment,
}

impl StageSeries {
    fn of_page(clock: &ObservedClock) -> Self {
        let mut series = StageSeries::default();
        for sample in &clock.run.samples {
            series.add(sample.error_s, Some((sample.bound_s, sample.contained)));
        }
        series
    }

    fn of_log(samples: &[LogSample]) -> Self {
        let mut series = StageSeries::default();
        for sample in samples {
            series.add(sample.error_s, sample.claim.map(|claim| (claim.claim_s, claim.held)));
        }
        series
    }

    fn add(&mut self, error_s: f64, claim: Option<(f64, bool)>) {
        self.errors.push(error_s);
        if let Some((claim_s, held)) = claim {
            self.claims.push(claim_s);
            self.held.judge_size(if held { 0.0 } else { f64::INFINITY }, claim_s);
        }
    }

    fn row(&self, clock: &'static str, behind: &'static str, authentication: &'static str) -> ChainRow {
        let sizes: Vec<f64> = self.errors.iter().map(|error| error.abs()).collect();
        ChainRow {
            clock,
            behind,
            authentication,
            samples: sizes.len(),
            error_median_s: percentile(&sizes, 0.5),
            error_p99_s: percentile(&sizes, 0.99),
            error_iqr_s: Spread::of(&self.errors).map(|spread| spread.iqr()),
            claim_median_s: percentile(&self.claims, 0.5),
            claims: self.held.readings(),
            claims_broken: self.held.outside(),
            is_ours: behind != RIVAL,
        }
    }
}

impl ChainRow {
    /// Whether it gave a time, and kept its claim if that is ours.
    pub(super) fn is_good(&self) -> bool {
        self.samples > 0 && !(self.is_ours && self.claims_broken > 0)
    }
}

fn authentication(way: usize) -> &'static str {
    if WAYS[way].is_protected { "nts" } else { "none" }
}

/// A row for each stage: the host's clock, what is served, and the clients of each kind.
///
/// # Errors
/// A log is not there.
pub(super) fn rows(clocks: &[ObservedClock], logs: &[LogMark]) -> Result<Vec<ChainRow>, Failure> {
    let (host, followers) = clocks.split_first().ok_or("no page was looked at")?;
    let mut rows = vec![StageSeries::of_page(host).row("ffclockd", "the reference", "none")];
    let of = |kind: LogKind| logs.iter().find(|log| log.kind() == kind);
    if let Some(log) = of(LogKind::Replies) {
        for way in log.ways().filter(|way| !WAYS[*way].is_protected) {
            rows.push(StageSeries::of_log(&log.samples(way)?).row("a reply", WAYS[way].server, "none"));
        }
    }
    if let (Some(estimates), Some(claims)) = (of(LogKind::ChronydEstimates), of(LogKind::ChronydClaims)) {
        for way in estimates.ways() {
            let mut series = StageSeries::of_log(&estimates.samples(way)?);
            let judged = StageSeries::of_log(&claims.samples(way)?);
            (series.claims, series.held) = (judged.claims, judged.held);
            rows.push(series.row("chronyd", WAYS[way].server, authentication(way)));
        }
    }
    if let Some(log) = of(LogKind::NtpdPeers) {
        for way in log.ways() {
            rows.push(StageSeries::of_log(&log.samples(way)?).row("ntpd", WAYS[way].server, authentication(way)));
        }
    }
    for clock in followers {
        let way = FOLLOWERS.iter().position(|name| *name == clock.run.name).ok_or("a page without a way")?;
        rows.push(StageSeries::of_page(clock).row("ffclockd", WAYS[way].server, authentication(way)));
    }
    Ok(rows)
}

/// Each client behind us against the same kind behind chronyd.
pub(super) fn ratios(rows: &[ChainRow]) -> Vec<ChainRatio> {
    let ours = rows.iter().filter(|row| row.behind == OURS);
    ours.filter_map(|row| {
        let is_rival = |other: &&ChainRow| {
            (other.clock, other.behind, other.authentication) == (row.clock, RIVAL, row.authentication)
        };
        let rival = rows.iter().find(is_rival)?;
        Some(ChainRatio {
            clock: row.clock,
            authentication: row.authentication,
            error_median_ratio: row.error_median_s? / rival.error_median_s?,
            error_iqr_ratio: row.error_iqr_s? / rival.error_iqr_s?,
        })
    })
    .collect()
}

/// The tables for people.
pub(super) fn text(summary: &ChainSummary) -> String {
    let heading = [
        ("CLOCK", Align::Left),
        ("BEHIND", Align::Left),
        ("AUTH", Align::Left),
        ("SAMPLES", Align::Right),
        ("MEDIAN", Align::Right),
        ("P99", Align::Right),
        ("IQR", Align::Right),
        ("CLAIM", Align::Right),
        ("HELD", Align::Right),
    ];
    let stages: Vec<Vec<String>> = summary.stages.iter().map(cells).collect();
    let ratio_heading =
        [("CLIENT", Align::Left), ("AUTH", Align::Left), ("MEDIAN RATIO", Align::Right), ("IQR RATIO", Align::Right)];
    let ratio = |ratio: &ChainRatio| {
        let [median, iqr] = [ratio.error_median_ratio, ratio.error_iqr_ratio].map(|value| format!("{value:.2}"));
        vec![ratio.clock.to_owned(), ratio.authentication.to_owned(), median, iqr]
    };
    let ratios: Vec<Vec<String>> = summary.ratios.iter().map(ratio).collect();
    let verdict = if summary.claims_held { "every claim of ours held" } else { "A CLAIM OF OURS DID NOT HOLD" };
    format!(
        "\n{}\n\n{}\nBehind {OURS}, against the same client behind {RIVAL}:\n\n{}\n{verdict}\n",
        summary.conditions,
        text::table(&heading, &stages),
        text::table(&ratio_heading, &ratios)
    )
}

fn cells(row: &ChainRow) -> Vec<String> {
    let span = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |seconds| text::rounded_span(seconds, 3));
    let held = match (row.claims, row.claims_broken) {
        (0, _) => "-".to_owned(),
        (claims, broken) => format!("{} of {claims}", claims - broken),
    };
    vec![
        row.clock.to_owned(),
        row.behind.to_owned(),
        row.authentication.to_owned(),
        row.samples.to_string(),
        span(row.error_median_s),
        span(row.error_p99_s),
        span(row.error_iqr_s),
        span(row.claim_median_s),
        held,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(behind: &'static str, errors: &[f64], claim: Option<(f64, bool)>) -> ChainRow {
        let mut series = StageSeries::default();
        errors.iter().for_each(|error| series.add(*error, claim));
        series.row("chronyd", behind, "none")
    }

    #[test]
    fn a_broken_claim_is_a_failure_where_it_is_ours() {
        let broken = Some((1e-6, false));
        assert!(row(OURS, &[1e-6], Some((1e-6, true))).is_good());
        assert!(!row(OURS, &[2e-6], broken).is_good());
        assert!(row(RIVAL, &[2e-6], broken).is_good(), "chronyd's claims are its own");
        assert!(!row(OURS, &[], None).is_good(), "a stage without a time");
    }

    #[test]
    fn a_client_is_compared_with_its_like() {
        let rows = [row(OURS, &[1e-6, -3e-6, 2e-6], None), row(RIVAL, &[2e-6, -6e-6, 4e-6], None)];
        let ratios = ratios(&rows);
        assert_eq!(ratios.len(), 1);
        assert!((ratios[0].error_median_ratio - 0.5).abs() < 1e-12);
        assert!((ratios[0].error_iqr_ratio - 0.5).abs() < 1e-12);
    }
}
