//! What the grandmaster states of the page: its time, and its claim.
//!
//! Pure functions of a publication and of counter readings, but for [`StatedClock`], which holds the page open.

use super::options::PtpPolicy;
use crate::options::ServedBound;
use crate::served_clock::ServedClock;
use ffclock::Snapshot;
use ffclock_counter::CounterId;
use ffclock_ptp::{GrandmasterClaim, GrandmasterLimits, TimeSource};
use ffclock_units::{Bound, Counter, Moment, ServerIdentity, Stamp, Status, Tai, TaiReading, Ticks};
use std::path::Path;

/// Where the time comes from that no code of the standard names (IEEE 1588-2019, table 6).
const OTHER_SOURCE: TimeSource = TimeSource(0x90);

/// What of the whole server's options the claim rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClaimOptions {
    pub(crate) ptp: PtpPolicy,
    pub(crate) bound: ServedBound,
    /// A larger bound is not served as time.
    pub(crate) bound_max: Bound,
}

/// The latest publication of the page.
pub(crate) struct StatedClock {
    page: ServedClock,
    snapshot: Option<Snapshot>,
}

impl StatedClock {
    pub(crate) fn new(page: &Path) -> Self {
        StatedClock { page: ServedClock::new(page), snapshot: None }
    }

    /// Takes the latest publication. Whether it is another one than the last.
    pub(crate) fn look(&mut self) -> bool {
        let before = self.snapshot.as_ref().map(Snapshot::count);
        self.snapshot = self.page.snapshot();
        before != self.snapshot.as_ref().map(Snapshot::count)
    }

    /// The page says nothing of use: it is opened again.
    pub(crate) fn renew(&mut self) {
        self.page.renew();
    }

    /// The publication; `None` where there is none, or the machine was disrupted since.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        self.page.undisrupted(self.snapshot.as_ref())
    }

    /// The counter that the page is about.
    pub(crate) fn counter_id(&self) -> Option<CounterId> {
        self.snapshot.as_ref().map(Snapshot::counter_id)
    }

    /// TAI before which a message with this stamp did not leave, where the page vouches for it. A follower knows that a
    /// message came after it had left: that stays true of the earliest departure.
    pub(crate) fn departure(&self, stamp: &Stamp) -> Option<Moment<Tai>> {
        self.tai_at(stamp.counter - half_width(stamp))
    }

    /// TAI after which a message with this stamp did not arrive, where the page vouches for it: a follower knows that
    /// the message arrived after it was sent.
    pub(crate) fn arrival(&self, stamp: &Stamp) -> Option<Moment<Tai>> {
        self.tai_at(stamp.counter + half_width(stamp))
    }

    /// TAI at a counter reading, where the page vouches for it.
    fn tai_at(&self, counter: Counter) -> Option<Moment<Tai>> {
        let snapshot = self.snapshot()?;
        let is_vouched = snapshot.status_at(counter) != Status::Unsynchronised;
        snapshot.tai_at(counter).ok().filter(|_| is_vouched)
    }
}

/// Half the range of a stamp, rounded up.
fn half_width(stamp: &Stamp) -> Ticks {
    (stamp.width.abs() + Ticks::from_raw(1)).halved()
}

/// What may be claimed now, and until the counter reads `until`: the bound is that of the later moment.
pub(crate) fn claim_of(snapshot: &Snapshot, [now, until]: [Counter; 2], options: &ClaimOptions) -> GrandmasterClaim {
    let Ok(time) = snapshot.time_at(now) else { return GrandmasterClaim::NONE };
    let bound = match options.bound {
        ServedBound::Bound => snapshot.reading_at(until).map_or(Bound::UNKNOWN, |reading| reading.bound),
        ServedBound::Strict => snapshot.strict_bound_at(until),
    };
    if bound > options.bound_max {
        return GrandmasterClaim::NONE;
    }
    let has_majority = snapshot.vote().is_none_or(|vote| vote.believed > 0);
    let status = match time.reading.status {
        Status::Synchronised if !has_majority => Status::WarmingUp,
        status => status,
    };
    let uncertainty = time.reading.uncertainty;
    let reading = TaiReading { time: time.tai, uncertainty, noise: time.noise, bound, status };
    let time_source = options.ptp.time_source.unwrap_or_else(|| source_of(snapshot.server()));
    let limits = GrandmasterLimits { time_source, ..options.ptp.limits };
    GrandmasterClaim::of(&reading, &limits, snapshot.leap())
}

/// A card that follows PTP, another reference at this host (stratum 0), or a server of NTP.
fn source_of(server: Option<ServerIdentity>) -> TimeSource {
    match server.map(|server| (server.stratum, server.reference_id.to_be_bytes())) {
        Some((0, [b'P', b'H', b'C', _])) => TimeSource::PTP,
        Some((0, _)) => OTHER_SOURCE,
        _ => TimeSource::NTP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_at_this_host_is_named_and_a_server_is_ntp() {
        let named = |stratum, name: &[u8; 4]| {
            source_of(Some(ServerIdentity { stratum, reference_id: u32::from_be_bytes(*name) }))
        };
        assert_eq!([named(0, b"PHC\0"), named(0, b"PPS\0")], [TimeSource::PTP, OTHER_SOURCE]);
        assert_eq!([named(1, b"PHC\0"), source_of(None)], [TimeSource::NTP; 2]);
    }
}
