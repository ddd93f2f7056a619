//! The way of one packet through the host (figure 1 of the paper).

use crate::passages::PacketPassages;
use crate::payload::{Direction, DirectionInFiles};
use crate::site::Site;
use ffclock_statistics::upper_median_by;
use ffclock_units::{Period, Ticks};
use serde::{Deserialize, Serialize};

/// One packet that is like most of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PacketTimeline {
    /// Its number: of those with the most stamps, the one whose round trip is the median.
    pub packet: usize,
    /// The sites in the order in which this packet passed them.
    pub steps: Vec<TimelineStep>,
}

/// A site on the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineStep {
    /// The direction of the packet.
    #[serde(with = "DirectionInFiles")]
    pub direction: Direction,
    /// The site.
    pub site: Site,
    /// When this packet passed it, since it left user space [ns].
    pub packet_ns: f64,
    /// The median of all packets, since each left user space [ns].
    pub median_ns: f64,
}

impl PacketTimeline {
    /// `None` where no packet came back to user space.
    pub fn of(passages: &PacketPassages, period: Period) -> Option<Self> {
        let packet = typical(passages)?;
        let ns = |ticks: Ticks| (period * ticks).as_seconds() * 1e9;
        let left = passages.at(packet, Site::UserSend)?;
        let step = |site: Site| {
            let since = passages.between(Site::UserSend, site).map(|(_, ticks)| ticks);
            let median_ns = ns(upper_median_by(since, Ticks::cmp)?);
            let packet_ns = ns(passages.at(packet, site)? - left);
            Some(TimelineStep { direction: site.direction(), site, packet_ns, median_ns })
        };
        let mut steps: Vec<TimelineStep> = Site::ALL.into_iter().filter_map(step).collect();
        steps.sort_by(|a, b| a.packet_ns.total_cmp(&b.packet_ns));
        Some(PacketTimeline { packet, steps })
    }
}

fn typical(passages: &PacketPassages) -> Option<usize> {
    let stamps = |packet: usize| Site::ALL.iter().filter(|site| passages.at(packet, **site).is_some()).count();
    let trips: Vec<(usize, Ticks)> = passages.between(Site::UserSend, Site::UserReceive).collect();
    let most = trips.iter().map(|(packet, _)| stamps(*packet)).max()?;
    let mut best: Vec<(Ticks, usize)> =
        trips.into_iter().filter(|(packet, _)| stamps(*packet) == most).map(|(packet, trip)| (trip, packet)).collect();
    best.sort_unstable();
    best.get(best.len() / 2).map(|(_, packet)| *packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_in_the_middle_is_shown_in_its_order() {
        let mut passages = PacketPassages::default();
        for (driver, receive) in [(30, 100), (20, 300), (25, 200)] {
            passages
                .restore([
                    (Site::UserSend, 1000),
                    (Site::DriverOut, 1000 + driver),
                    (Site::UserReceive, 1000 + receive),
                ])
                .unwrap();
        }
        // Without the driver's stamp it cannot be the example, though its round trip is nearer to the middle.
        passages.restore([(Site::UserSend, 5000), (Site::UserReceive, 5190)]).unwrap();
        let timeline = PacketTimeline::of(&passages, Period::from_hertz(1e9).unwrap()).unwrap();
        assert_eq!(timeline.packet, 2);
        let sites: Vec<_> = timeline.steps.iter().map(|step| (step.site, step.packet_ns.round() as i64)).collect();
        assert_eq!(sites, [(Site::UserSend, 0), (Site::DriverOut, 25), (Site::UserReceive, 200)]);
        assert_eq!(timeline.steps[1].median_ns.round() as i64, 25);
    }

    #[test]
    fn without_a_reply_there_is_no_way_back() {
        let mut passages = PacketPassages::default();
        passages.restore([(Site::UserSend, 0), (Site::DriverOut, 5)]).unwrap();
        assert_eq!(PacketTimeline::of(&passages, Period::from_hertz(1e9).unwrap()), None);
    }
}
