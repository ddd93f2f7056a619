//! What a server's state looks like from outside.

use super::{Link, Peer, STAMPS_MISSED};
use ffclock_control::protocol::SourceReport;
use ffclock_estimator::Estimator;
use ffclock_source::{Reachability, Statistics};
use ffclock_sys::StampMode;
use ffclock_units::Span;

/// Where a server's packets are stamped, beside what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamping {
    /// As asked for.
    AsWanted,
    /// In user space, since the kernel refuses.
    Refused,
    /// In user space, since the kernel's stamps do not come or contradict the order of events.
    Missing,
}

impl Peer {
    /// Where packets are stamped.
    pub(crate) fn stamping(&self) -> Stamping {
        match (self.ground.stamps.is_in_kernel(), self.link.as_ref().map(Link::mode)) {
            (true, Some(StampMode::User)) => Stamping::Refused,
            (true, _) if self.last.without_kernel_stamps >= STAMPS_MISSED => Stamping::Missing,
            _ => Stamping::AsWanted,
        }
    }

    /// The state for people; what depends on the present moment is left open.
    pub(crate) fn report(&self) -> SourceReport {
        let statistics = self.source.statistics();
        let summary = self.estimator.summary();
        // Without a single exchange that was not refused there is no floor.
        let has_floor = summary.exchanges > summary.rejected;
        SourceReport {
            name: self.name.clone(),
            address: self.link.as_ref().map(|link| link.address().to_string()),
            state: self.state_name().to_owned(),
            selected: false,
            estimator: self.basis.options.which.estimator.name().to_owned(),
            agreement: summary.agreement.name().to_owned(),
            poll_s: self.source.poll_interval().as_seconds(),
            stratum: self.last.server.map(|server| server.identity.stratum),
            root_distance_s: self.last.server.map(|server| server.root_distance.as_seconds()),
            sent: statistics.sent,
            exchanges: statistics.accepted,
            used: self.tally.used + summary.used,
            lost: statistics.lost,
            rejected: rejections(statistics),
            floor_s: has_floor.then(|| summary.floor.as_seconds()),
            round_trip_s: self.last.round_trip.map(Span::as_seconds),
            shifts: (self.tally.shifts_up + summary.shifts_up, self.tally.shifts_down + summary.shifts_down),
            bound_s: None,
            uncertainty_s: None,
            offset_s: None,
        }
    }

    fn state_name(&self) -> &'static str {
        match (self.link.is_some(), self.source.reachability()) {
            (false, _) => "resolving",
            (true, Reachability::Untried) => "waiting",
            (true, Reachability::Reachable) => "reachable",
            (true, Reachability::Unreachable) => "unreachable",
            (true, Reachability::Denied) => "refused",
        }
    }
}

fn rejections(statistics: &Statistics) -> Vec<(String, u64)> {
    let counted = statistics.rejections().filter(|(_, count)| *count > 0);
    counted.map(|(reason, count)| (reason.name().to_owned(), count)).collect()
}
