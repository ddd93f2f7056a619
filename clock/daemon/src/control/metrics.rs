//! Metrics in OpenMetrics 1.0 text, over the smallest HTTP that scrapers accept.

use super::Reporter;
use ffclock_control::metrics::{self, Family};
use ffclock_control::protocol::{
    Agreement, Algorithm, BeliefReport, QuorumReport, SourceReport, SourceState, Status, StatusReport,
};
use std::fmt::Write;

/// The answer to the head of an HTTP request.
pub(super) fn http_answer(head: &[u8], daemon: &mut dyn Reporter) -> String {
    let line = head.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    // What follows a question mark are parameters, and none of them changes the answer.
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET" | b"HEAD", b"/metrics") => {
            let body = exposition(&daemon.status());
            format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{}",
                body.len(),
                if method == b"HEAD" { "" } else { &body }
            )
        }
        (b"GET" | b"HEAD", _) => http_error("404 Not Found"),
        _ => http_error("405 Method Not Allowed"),
    }
}

/// An answer without a body.
pub(super) fn http_error(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

struct Exposition(String);

impl Exposition {
    fn describe(&mut self, family: &Family) {
        let Family { name, kind, unit, help } = family;
        let _ = writeln!(self.0, "# TYPE {name} {}", kind.name());
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    fn of_daemon(&mut self, family: &Family, value: Option<f64>) {
        if let Some(value) = value {
            self.describe(family);
            let _ = writeln!(self.0, "{} {value}", family.sample());
        }
    }

    fn of_sources(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> Option<f64>) {
        self.describe(family);
        for source in sources {
            if let Some(value) = value(source) {
                let _ = writeln!(self.0, "{}{{source=\"{}\"}} {value}", family.sample(), escaped(&source.name));
            }
        }
    }

    fn counts(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> u64) {
        self.describe(family);
        for source in sources {
            let _ = writeln!(self.0, "{}{{source=\"{}\"}} {}", family.sample(), escaped(&source.name), value(source));
        }
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The whole text, with the ending that OpenMetrics demands.
fn exposition(status: &StatusReport) -> String {
    let mut text = Exposition(String::new());
    describe_clock(&mut text, status);
    describe_sources(&mut text, &status.sources);
    text.0.push_str("# EOF\n");
    text.0
}

fn describe_clock(text: &mut Exposition, status: &StatusReport) {
    let clock = status.clock.as_ref();
    let synchronised = clock.is_some_and(|clock| clock.status == Status::Synchronised);
    text.of_daemon(&metrics::SYNCHRONISED, Some(f64::from(synchronised)));
    let is_majority = status.quorum.map(|quorum| f64::from(quorum == QuorumReport::Majority));
    text.of_daemon(&metrics::MAJORITY, is_majority);
    text.of_daemon(&metrics::BOUND, clock.map(|clock| clock.bound_s));
    text.of_daemon(&metrics::BOUND_STRICT, clock.and_then(|clock| clock.bound_strict_s));
    let vote = status.vote.as_ref();
    text.of_daemon(&metrics::DECIDERS, vote.map(|vote| vote.deciders as f64));
    text.of_daemon(&metrics::TOLERATED, vote.map(|vote| vote.tolerated as f64));
    text.of_daemon(&metrics::BELIEVED, vote.map(|vote| vote.believed as f64));
    text.of_daemon(&metrics::UNCERTAINTY, clock.map(|clock| clock.uncertainty_s));
    text.of_daemon(&metrics::NOISE, clock.and_then(|clock| clock.noise_s));
    text.of_daemon(&metrics::SYSTEM_CLOCK_BEHIND, clock.map(|clock| clock.system_clock_behind_s));
    text.of_daemon(&metrics::RATE, clock.map(|clock| clock.rate_ppm));
    text.of_daemon(&metrics::RATE_BOUND, clock.map(|clock| clock.rate_bound_ppm));
    text.of_daemon(&metrics::COUNTER_EPOCH, Some(status.counter.epoch as f64));
    text.of_daemon(&metrics::KEEP_NOISE, status.keep_noise_s);
    text.of_daemon(&metrics::UPTIME, Some(status.uptime_s));
}

fn describe_sources(text: &mut Exposition, sources: &[SourceReport]) {
    text.of_sources(&metrics::SOURCE_SELECTED, sources, |s| Some(f64::from(s.selected)));
    text.of_sources(&metrics::SOURCE_FALSETICKER, sources, |s| Some(f64::from(s.belief == BeliefReport::Falseticker)));
    text.of_sources(&metrics::SOURCE_TRUECHIMER, sources, truechimer);
    text.of_sources(&metrics::SOURCE_SUSPECT, sources, |s| Some(f64::from(s.vote.suspect)));
    text.of_sources(&metrics::SOURCE_WEIGHT, sources, |s| s.vote.weight);
    text.of_sources(&metrics::SOURCE_UNDECIDED, sources, |s| Some(f64::from(s.belief == BeliefReport::Undecided)));
    text.of_sources(&metrics::SOURCE_MISSES, sources, |s| s.vote.misses_s);
    text.of_sources(&metrics::SOURCE_HEARD, sources, |s| s.vote.heard_s);
    text.of_sources(&metrics::SOURCE_REACHABLE, sources, |s| Some(f64::from(s.state == SourceState::Reachable)));
    text.of_sources(&metrics::SOURCE_POLL, sources, |s| Some(s.poll_s));
    text.of_sources(&metrics::SOURCE_WANDER, sources, |s| s.wander_ppm);
    text.of_sources(&metrics::SOURCE_STRATUM, sources, |s| s.stratum.map(f64::from));
    text.of_sources(&metrics::SOURCE_ROOT_DISTANCE, sources, |s| s.root_distance_s);
    text.of_sources(&metrics::SOURCE_FLOOR, sources, |s| s.floor_s);
    text.of_sources(&metrics::SOURCE_ROUND_TRIP, sources, |s| s.round_trip_s);
    text.of_sources(&metrics::SOURCE_BOUND, sources, |s| s.bound_s);
    text.of_sources(&metrics::SOURCE_OFFSET, sources, |s| s.offset_s);
    text.of_sources(&metrics::SOURCE_LEARNED_AGREES, sources, |s| agreement_is(s, Agreement::Agree));
    text.of_sources(&metrics::SOURCE_LEARNED_CONTRADICTS, sources, |s| agreement_is(s, Agreement::Disagree));
    text.counts(&metrics::SOURCE_REQUESTS, sources, |s| s.sent);
    text.counts(&metrics::SOURCE_EXCHANGES, sources, |s| s.exchanges);
    text.counts(&metrics::SOURCE_USED, sources, |s| s.used);
    text.counts(&metrics::SOURCE_INTERLEAVED, sources, |s| s.interleaved);
    text.counts(&metrics::SOURCE_LOST, sources, |s| s.lost);
    text.counts(&metrics::SOURCE_REJECTED, sources, |s| s.rejected.iter().map(|(_, n)| n).sum());
}

/// Whether the learned time has this agreement with the classic one; `None` where the learned estimator does not judge
/// the source.
fn agreement_is(source: &SourceReport, agreement: Agreement) -> Option<f64> {
    (source.estimator == Algorithm::Learned).then(|| f64::from(source.agreement == agreement))
}

/// Whether the server agrees with every majority; nothing before it has an interval.
fn truechimer(source: &SourceReport) -> Option<f64> {
    (source.belief != BeliefReport::Unknown).then(|| f64::from(source.belief == BeliefReport::Truechimer))
}

#[cfg(test)]
mod tests {
    use super::super::connection::tests::Idle;
    use super::*;
    use ffclock_control::protocol::{ClockReport, VoteReport};

    #[test]
    fn the_text_is_complete_and_counts_its_length() {
        let answer = http_answer(b"GET /metrics HTTP/1.1", &mut Idle);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Length: {}", body.len())));
        assert!(body.ends_with("# EOF\n"));
        assert!(body.contains("\nffclock_synchronised 0\n"));
        assert!(!body.contains("bound_seconds 0"), "what is not known is absent, not zero");
    }

    /// The names are checked against the document where they are listed.
    #[test]
    fn every_listed_family_is_served_in_order() {
        let text = exposition(&full_report());
        let served: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let listed: Vec<String> =
            metrics::ALL.iter().map(|family| format!("{} {}", family.name, family.kind.name())).collect();
        assert_eq!(served, listed);
    }

    fn full_report() -> StatusReport {
        let clock = ClockReport {
            status: Status::Synchronised,
            utc_ns: 0,
            system_clock_behind_s: 0.0,
            bound_s: 0.0,
            bound_strict_s: Some(0.0),
            uncertainty_s: 0.0,
            noise_s: Some(0.0),
            period_s: 1e-9,
            rate_ppm: 0.0,
            rate_bound_ppm: 0.0,
            tai_offset_s: 37,
            leap: None,
        };
        let vote = Some(VoteReport::default());
        let keep_noise_s = Some(2e-6);
        StatusReport { clock: Some(clock), keep_noise_s, quorum: Some(QuorumReport::Majority), vote, ..Idle.status() }
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
