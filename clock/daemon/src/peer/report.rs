//! A server's state as reported to clients.

use super::{Link, Peer};
use crate::config::ServerVote;
use ffclock_control::protocol::{BeliefReport, SourceReport, SourceState, SourceVote};
use ffclock_estimator::{Estimator, Summary};
use ffclock_source::{Reachability, Statistics};
use ffclock_sys::StampQuality;
use ffclock_units::Span;

impl Peer {
    /// Where packets are stamped, beside the configured location.
    pub(crate) fn stamp_quality(&self) -> StampQuality {
        let of_link = || self.link.as_ref().map_or(StampQuality::AsWanted, Link::quality);
        self.feed.as_ref().map_or_else(of_link, |feed| feed.quality())
    }

    /// The state for clients; fields that depend on the present moment are left unset.
    pub(crate) fn report(&self) -> SourceReport {
        let statistics = self.source.statistics();
        let summary = self.estimator.summary();
        // Without a single exchange that was not refused there is no floor.
        let has_floor = summary.exchanges > summary.rejected;
        let report = SourceReport {
            name: self.name.clone(),
            address: self.link.as_ref().map(|link| link.address().to_string()),
            state: self.state(),
            selected: false,
            belief: BeliefReport::Unknown,
            estimator: self.basis.options.which.estimator,
            agreement: summary.agreement,
            wander_ppm: Some(summary.wander.as_ppm()),
            poll_s: self.source.poll_interval().as_seconds(),
            slowed: self.source.is_slowed(),
            stratum: self.last.server.map(|server| server.identity.stratum),
            root_distance_s: self.last.server.map(|server| server.root_distance.as_seconds()),
            sent: statistics.sent,
            exchanges: statistics.accepted,
            used: self.tally.used + summary.used,
            interleaved: statistics.interleaved,
            lost: statistics.lost,
            rejected: rejections(statistics),
            floor_s: has_floor.then(|| summary.floor.as_seconds()),
            round_trip_s: self.last.round_trip.map(Span::as_seconds),
            shifts: (self.tally.shifts_up + summary.shifts_up, self.tally.shifts_down + summary.shifts_down),
            bound_s: None,
            uncertainty_s: None,
            noise_s: None,
            offset_s: None,
            vote: self.vote_report(&summary),
            authentication: self.guard.report(),
            ptp: None,
            why: String::new(),
        };
        match &self.feed {
            Some(feed) => feed.report(report),
            None => report,
        }
    }

    /// Its part in the vote; what depends on the present moment or on other servers is left unset.
    fn vote_report(&self, summary: &Summary) -> SourceVote {
        let ServerVote { trust, prefer, no_select } = self.config.vote;
        SourceVote { trust, prefer, no_select, warming_up: summary.warming_up, ..SourceVote::default() }
    }

    fn state(&self) -> SourceState {
        let is_open = self.feed.as_ref().map_or(self.link.is_some(), |feed| feed.is_open());
        match (is_open, self.reachability()) {
            (false, _) => SourceState::Resolving,
            (true, Reachability::Untried) => SourceState::Waiting,
            (true, Reachability::Reachable) if self.is_fruitless() => SourceState::Unreachable,
            (true, Reachability::Reachable) => SourceState::Reachable,
            (true, Reachability::Unreachable) => SourceState::Unreachable,
            (true, Reachability::Denied) => SourceState::Refused,
        }
    }
}

fn rejections(statistics: &Statistics) -> Vec<(String, u64)> {
    let counted = statistics.rejections().filter(|(_, count)| *count > 0);
    counted.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}
