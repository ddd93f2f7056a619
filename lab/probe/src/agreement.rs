//! What the kernel's tracing and eBPF say of the same packets at the same sites.

use crate::ebpf::{Known, SitePassage};
use crate::events::PacketEvent;
use crate::kind::StampedSites;
use crate::pairs::MappingError;
use crate::passages::{PacketPassages, Placement};
use crate::payload::Direction;
use crate::site::{Site, Sites};
use ffclock_statistics::Spread;
use ffclock_units::{Counter, Period, Ticks};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A site that both ways stamped, over all packets that have both stamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodAgreement {
    /// The site.
    pub site: Site,
    /// How many packets have both stamps.
    pub count: usize,
    /// The median of the time from user space to the site, or from the site to user space, by the kernel's tracing
    /// [ns].
    pub tracing_ns: f64,
    /// The same by eBPF [ns].
    pub ebpf_ns: f64,
    /// Stamp by eBPF minus stamp by tracing [ns]. At a tracepoint the tracing is called first, so that its own cost is
    /// part of it.
    pub difference_ns: Spread,
}

/// Where the stamps of a phase come from, and how the methods agree. Old records do not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Methods {
    /// What the two ways to take kernel stamps say of the same packets, by site.
    #[serde(default, deserialize_with = "of_known_sites")]
    pub agreements: Vec<MethodAgreement>,
    /// How wrong the stamps by eBPF can be, where there are any.
    #[serde(default)]
    pub mapping: Option<MappingError>,
    /// Which sites each kind of probe stamped.
    #[serde(default)]
    pub stamped: StampedSites,
}

/// Without those of sites that this program does not know.
fn of_known_sites<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<MethodAgreement>, D::Error> {
    let mut all = Vec::<Value>::deserialize(input)?;
    all.retain(|one| one["site"].as_str().is_none_or(|name| Site::from_key(name).is_some()));
    all.iter().map(|one| MethodAgreement::deserialize(one).map_err(D::Error::custom)).collect()
}

/// Stamps by eBPF, by site and packet. The first of several of one packet at one site counts.
#[derive(Debug, Default)]
pub(crate) struct SecondStamps {
    by_site: BTreeMap<Site, BTreeMap<u64, Counter>>,
    unplaced: u64,
}

impl SecondStamps {
    /// Takes a stamp in, if it belongs to one of the packets.
    pub(crate) fn place(&mut self, passage: &SitePassage, counter: Counter, packets: &PacketPassages) {
        let site = passage.site;
        let sequence = match passage.known {
            Known::Sequence(sequence) => Some(sequence).filter(|sequence| *sequence < packets.len() as u64),
            Known::Code(code) => packets.sequence_of(&PacketEvent { site, counter, code }),
        };
        let Some(sequence) = sequence else {
            self.unplaced += 1;
            return;
        };
        let stamps = self.by_site.entry(site).or_default();
        let first = stamps.entry(sequence).or_insert(counter);
        if first.is_after(counter) {
            *first = counter;
        }
    }

    /// How many stamps belong to no packet.
    pub(crate) fn unplaced(&self) -> u64 {
        self.unplaced
    }

    /// Where there are stamps.
    pub(crate) fn sites(&self) -> Sites {
        self.by_site.keys().fold(Sites::NONE, |set, site| set.with(*site))
    }

    /// Compares with the stamps that there are.
    pub(crate) fn compare(&self, packets: &PacketPassages, period: Period) -> Vec<MethodAgreement> {
        let traced = self.by_site.iter().filter(|(site, _)| Sites::TRACED.contains(**site));
        traced.filter_map(|(site, stamps)| agreement(*site, stamps, packets, period)).collect()
    }

    /// Adds the stamps of sites that have no others.
    pub(crate) fn fill(&self, packets: &mut PacketPassages) {
        for (site, stamps) in &self.by_site {
            if packets.count(*site) == 0 {
                for (sequence, counter) in stamps {
                    let placed = packets.note(*sequence, *site, *counter);
                    debug_assert_ne!(placed, Placement::Nowhere, "it was looked up");
                }
            }
        }
    }
}

fn agreement(
    site: Site,
    stamps: &BTreeMap<u64, Counter>,
    packets: &PacketPassages,
    period: Period,
) -> Option<MethodAgreement> {
    let ns = |ticks: Ticks| (period * ticks).as_seconds() * 1e9;
    let (mut tracing, mut ebpf, mut differences) = (Vec::new(), Vec::new(), Vec::new());
    for (sequence, counter) in stamps {
        let packet = usize::try_from(*sequence).ok()?;
        let user = match site.direction() {
            Direction::Outgoing => Site::UserSend,
            Direction::Incoming => Site::UserReceive,
        };
        let (Some(first), Some(user)) = (packets.at(packet, site), packets.at(packet, user)) else { continue };
        let second = packets.since_begin(*counter);
        differences.push(ns(second - first));
        tracing.push(ns(first - user).abs());
        ebpf.push(ns(second - user).abs());
    }
    let median = |values: &[f64]| Spread::of(values).map(|spread| spread.median);
    Some(MethodAgreement {
        site,
        count: differences.len(),
        tracing_ns: median(&tracing)?,
        ebpf_ns: median(&ebpf)?,
        difference_ns: Spread::of(&differences)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Moment;

    fn at(ticks: u64) -> Counter {
        Counter::from_raw(ticks)
    }

    fn packets() -> PacketPassages {
        let mut packets = PacketPassages::new(at(0));
        for sequence in 0..100 {
            let begin = sequence * 10_000;
            packets.send(at(begin));
            packets.note(sequence, Site::DriverOut, at(begin + 1_000));
            packets.note(sequence, Site::DriverIn, at(begin + 5_000));
            packets.note(sequence, Site::UserReceive, at(begin + 7_000));
        }
        packets
    }

    fn passage(site: Site, known: Known) -> SitePassage {
        SitePassage { site, stamped: Moment::from_origin(ffclock_units::Span::ZERO), known }
    }

    #[test]
    fn the_same_packets_are_compared_site_by_site() {
        let (packets, mut second) = (packets(), SecondStamps::default());
        for sequence in 0..100 {
            let out = passage(Site::DriverOut, Known::Sequence(sequence));
            second.place(&out, at(sequence * 10_000 + 1_150), &packets);
            let back = passage(Site::DriverIn, Known::Code(sequence));
            second.place(&back, at(sequence * 10_000 + 5_400), &packets);
            second.place(&back, at(sequence * 10_000 + 5_300), &packets);
        }
        second.place(&passage(Site::DriverOut, Known::Sequence(100)), at(5), &packets);
        assert_eq!(second.unplaced(), 1);
        let period = Period::from_hertz(1e9).expect("a frequency");
        let agreements = second.compare(&packets, period);
        let medians: Vec<_> = agreements
            .iter()
            .map(|one| [one.tracing_ns, one.ebpf_ns, one.difference_ns.median].map(f64::round))
            .collect();
        assert_eq!(medians, [[1_000.0, 1_150.0, 150.0], [2_000.0, 1_700.0, 300.0]]);
        assert!(agreements.iter().all(|one| one.count == 100));
    }

    #[test]
    fn only_sites_without_stamps_are_filled() {
        let (mut packets, mut second) = (packets(), SecondStamps::default());
        second.place(&passage(Site::DriverOut, Known::Sequence(3)), at(31_150), &packets);
        second.place(&passage(Site::TcOut, Known::Sequence(3)), at(30_500), &packets);
        second.fill(&mut packets);
        assert_eq!(packets.at(3, Site::DriverOut), Some(Ticks::from_raw(31_000)));
        assert_eq!(packets.at(3, Site::TcOut), Some(Ticks::from_raw(30_500)));
        assert_eq!(packets.count(Site::TcOut), 1);
    }
}
