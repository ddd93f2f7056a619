//! The metrics of the daemon, from its report.

use ffclock_control::metrics::{self, Family};
use ffclock_control::protocol::{
    Agreement, Algorithm, BeliefReport, QuorumReport, SourceReport, SourceState, Status, StatusReport,
};
use ffclock_service::Exposition;

/// The lines of all servers.
trait OfSources {
    fn of_sources(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> Option<f64>);
    fn counts(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> u64);
}

impl OfSources for Exposition {
    fn of_sources(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> Option<f64>) {
        self.describe(family);
        for source in sources {
            if let Some(value) = value(source) {
                self.labelled(family, ("source", &source.name), &value);
            }
        }
    }

    fn counts(&mut self, family: &Family, sources: &[SourceReport], value: fn(&SourceReport) -> u64) {
        self.describe(family);
        for source in sources {
            self.labelled(family, ("source", &source.name), &value(source));
        }
    }
}

/// The whole text, with the ending that OpenMetrics demands.
pub(crate) fn exposition(status: &StatusReport) -> String {
    let mut text = Exposition::default();
    describe_clock(&mut text, status);
    describe_sources(&mut text, &status.sources);
    text.end()
}

fn describe_clock(text: &mut Exposition, status: &StatusReport) {
    let clock = status.clock.as_ref();
    let synchronised = clock.is_some_and(|clock| clock.status == Status::Synchronised);
    text.value(&metrics::SYNCHRONISED, Some(f64::from(synchronised)));
    let is_majority = status.quorum.map(|quorum| f64::from(quorum == QuorumReport::Majority));
    text.value(&metrics::MAJORITY, is_majority);
    text.value(&metrics::BOUND, clock.map(|clock| clock.bound_s));
    text.value(&metrics::BOUND_STRICT, clock.and_then(|clock| clock.bound_strict_s));
    let vote = status.vote.as_ref();
    text.value(&metrics::DECIDERS, vote.map(|vote| vote.deciders as f64));
    text.value(&metrics::TOLERATED, vote.map(|vote| vote.tolerated as f64));
    text.value(&metrics::BELIEVED, vote.map(|vote| vote.believed as f64));
    text.value(&metrics::UNCERTAINTY, clock.map(|clock| clock.uncertainty_s));
    text.value(&metrics::NOISE, clock.and_then(|clock| clock.noise_s));
    text.value(&metrics::SYSTEM_CLOCK_BEHIND, clock.map(|clock| clock.system_clock_behind_s));
    text.value(&metrics::RATE, clock.map(|clock| clock.rate_ppm));
    text.value(&metrics::RATE_BOUND, clock.map(|clock| clock.rate_bound_ppm));
    text.value(&metrics::COUNTER_EPOCH, Some(status.counter.epoch as f64));
    text.value(&metrics::KEEP_NOISE, status.keep_noise_s);
    text.value(&metrics::UPTIME, Some(status.uptime_s));
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
    text.of_sources(&metrics::SOURCE_COOKIES, sources, |s| s.authentication.cookies.map(|left| left as f64));
    text.of_sources(&metrics::SOURCE_CERTIFICATE_END, sources, |s| {
        s.authentication.certificate_end_unix_s.map(|end| end as f64)
    });
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
    use super::super::Reporter;
    use super::super::tests::Idle;
    use super::*;
    use ffclock_control::protocol::{ClockReport, VoteReport};

    #[test]
    fn what_is_not_known_is_absent() {
        let body = exposition(&Idle.status());
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
}
