//! Metrics in OpenMetrics 1.0 text, over the smallest HTTP that scrapers accept.

use super::Reporter;
use super::report::{
    Agreement, Algorithm, BeliefReport, QuorumReport, SourceReport, SourceState, Status, StatusReport,
};
use std::fmt::Write;

/// The answer to an HTTP request head.
pub(super) fn http_answer(head: &[u8], daemon: &mut dyn Reporter) -> String {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => {
            let body = exposition(&daemon.status());
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            )
        }
        (Some(b"GET"), Some(_)) => http_error("404 Not Found"),
        _ => http_error("405 Method Not Allowed"),
    }
}

/// An answer without a body.
pub(super) fn http_error(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let unit = name.rsplit('_').next().filter(|unit| matches!(*unit, "seconds" | "ppm"));
        let _ = writeln!(self.0, "# TYPE ffclock_{name} {kind}");
        if let Some(unit) = unit {
            let _ = writeln!(self.0, "# UNIT ffclock_{name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP ffclock_{name} {help}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.family(name, "gauge", help);
            let _ = writeln!(self.0, "ffclock_{name} {value}");
        }
    }

    fn per_source(
        &mut self,
        name: &str,
        help: &str,
        sources: &[SourceReport],
        value: fn(&SourceReport) -> Option<f64>,
    ) {
        self.family(name, "gauge", help);
        for source in sources {
            if let Some(value) = value(source) {
                let _ = writeln!(self.0, "ffclock_{name}{{source=\"{}\"}} {value}", escaped(&source.name));
            }
        }
    }

    fn count_per_source(&mut self, name: &str, help: &str, sources: &[SourceReport], value: fn(&SourceReport) -> u64) {
        self.family(name, "counter", help);
        for source in sources {
            let _ = writeln!(self.0, "ffclock_{name}_total{{source=\"{}\"}} {}", escaped(&source.name), value(source));
        }
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole text, ended as OpenMetrics wants it.
fn exposition(status: &StatusReport) -> String {
    let mut text = Exposition(String::new());
    let clock = status.clock.as_ref();
    let synchronised = clock.is_some_and(|clock| clock.status == Status::Synchronised);
    text.gauge("synchronised", "Whether the published clock is synchronised.", Some(f64::from(synchronised)));
    let is_majority = status.quorum.map(|quorum| f64::from(quorum == QuorumReport::Majority));
    text.gauge("majority", "Whether more than half of the servers agree.", is_majority);
    text.gauge("bound_seconds", "Largest possible error of the published clock.", clock.map(|clock| clock.bound_s));
    text.gauge(
        "uncertainty_seconds",
        "Standard uncertainty (k = 1) of the published clock, without the unknown asymmetry.",
        clock.map(|clock| clock.uncertainty_s),
    );
    text.gauge(
        "system_clock_behind_seconds",
        "Published clock - system clock.",
        clock.map(|clock| clock.system_clock_behind_s),
    );
    text.gauge(
        "rate_ppm",
        "Long-term rate of the counter against its nominal frequency.",
        clock.map(|clock| clock.rate_ppm),
    );
    text.gauge("rate_bound_ppm", "Largest error of the long-term rate.", clock.map(|clock| clock.rate_bound_ppm));
    text.gauge("counter_epoch", "Number of the counter's present epoch.", Some(status.counter.epoch as f64));
    text.gauge("uptime_seconds", "Time since the daemon started.", Some(status.uptime_s));
    let sources = &status.sources;
    text.per_source("source_selected", "Whether this source is published.", sources, |s| Some(f64::from(s.selected)));
    text.per_source(
        "source_falseticker",
        "Whether the majority of the servers contradicts this source.",
        sources,
        |s| Some(f64::from(s.belief == BeliefReport::Falseticker)),
    );
    text.per_source("source_reachable", "Whether this source answers.", sources, |s| {
        Some(f64::from(s.state == SourceState::Reachable))
    });
    text.per_source("source_stratum", "Distance from a primary source.", sources, |s| s.stratum.map(f64::from));
    text.per_source("source_root_distance_seconds", "The server's claim of its error.", sources, |s| s.root_distance_s);
    text.per_source("source_floor_seconds", "Smallest round trip in force.", sources, |s| s.floor_s);
    text.per_source("source_round_trip_seconds", "Round trip of the last exchange.", sources, |s| s.round_trip_s);
    text.per_source("source_bound_seconds", "Largest possible error of this source's clock.", sources, |s| s.bound_s);
    text.per_source("source_offset_seconds", "This source's clock - the published clock.", sources, |s| s.offset_s);
    text.per_source(
        "source_learned_agrees",
        "Whether the learned estimator has enough data and agrees with the classic.",
        sources,
        |s| (s.estimator == Algorithm::Learned).then(|| f64::from(s.agreement == Agreement::Agree)),
    );
    text.per_source(
        "source_learned_contradicts",
        "Whether the learned and the classic time contradict each other.",
        sources,
        |s| (s.estimator == Algorithm::Learned).then(|| f64::from(s.agreement == Agreement::Disagree)),
    );
    text.count_per_source("source_requests", "Requests sent.", sources, |s| s.sent);
    text.count_per_source("source_exchanges", "Replies accepted.", sources, |s| s.exchanges);
    text.count_per_source("source_used", "Exchanges that moved the estimate.", sources, |s| s.used);
    text.count_per_source("source_lost", "Requests without a reply.", sources, |s| s.lost);
    text.count_per_source("source_rejected", "Packets refused.", sources, |s| s.rejected.iter().map(|(_, n)| n).sum());
    text.0.push_str("# EOF\n");
    text.0
}

#[cfg(test)]
mod tests {
    use super::super::connection::tests::Idle;
    use super::super::report::ClockReport;
    use super::*;

    #[test]
    fn the_text_is_complete_and_counts_its_length() {
        let answer = http_answer(b"GET /metrics HTTP/1.1", &mut Idle);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(body.ends_with("# EOF\n"));
        assert!(body.contains("\nffclock_synchronised 0\n"));
        assert!(!body.contains("bound_seconds 0"), "what is not known is absent, not zero");
    }

    #[test]
    fn every_metric_stands_in_the_document() {
        let document = include_str!("../../../../docs/operations.md");
        let text = exposition(&full_report());
        let families: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(families.len(), 25, "{families:?}");
        for family in families {
            let (name, kind) = family.split_once(' ').unwrap();
            let sample = if kind == "counter" { format!("`{name}_total`") } else { format!("`{name}`") };
            assert!(document.contains(&sample), "docs/operations.md does not explain {sample}");
        }
    }

    fn full_report() -> StatusReport {
        let clock = ClockReport {
            status: Status::Synchronised,
            utc_ns: 0,
            system_clock_behind_s: 0.0,
            bound_s: 0.0,
            uncertainty_s: 0.0,
            period_s: 1e-9,
            rate_ppm: 0.0,
            rate_bound_ppm: 0.0,
            tai_offset_s: 37,
            leap: None,
        };
        StatusReport { clock: Some(clock), quorum: Some(QuorumReport::Majority), ..Idle.status() }
    }

    #[test]
    fn other_requests_are_refused() {
        assert!(http_answer(b"GET / HTTP/1.1", &mut Idle).starts_with("HTTP/1.1 404"));
        assert!(http_answer(b"POST /metrics HTTP/1.1", &mut Idle).starts_with("HTTP/1.1 405"));
        assert!(http_answer(b"", &mut Idle).starts_with("HTTP/1.1 405"));
    }

    #[test]
    fn labels_cannot_break_out() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
