//! What a run measured: the stamps of every packet, from every source, in one table.

use crate::agreement::{Methods, SecondStamps};
use crate::collect::Collected;
use crate::kind::StampedSites;
use crate::passages::{PacketPassages, Placement};
use crate::payload::Direction;
use crate::plan::ProbePlan;
use crate::site::{Site, Sites};
use ffclock_units::Ticks;
use serde::{Deserialize, Serialize};

/// What happened to packets and stamps, all of it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketCounts {
    /// Requests that left user space.
    pub sent: u64,
    /// Replies that reached it.
    pub received: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Replies that came more than once.
    pub duplicated: u64,
    /// Replies that came after one of a later request.
    pub reordered: u64,
    /// Packets to our port that are no reply to this run.
    pub foreign: u64,
    /// Errors that the network reported (ICMP).
    pub unreachable: u64,
    /// Requests that the kernel refused to take.
    pub refused: u64,
    /// Socket stamps that were discarded: the system clock was set, or they contradict the order of events.
    pub socket_stamps_discarded: u64,
    /// Packets that the tap could not hand over.
    pub tap_dropped: u64,
    /// Stamps of the tap that cannot be mapped to the counter.
    pub tap_stamps_discarded: u64,
    /// Events that the kernel's tracing lost.
    pub events_lost: u64,
    /// Events that belong to no packet of the run.
    pub events_unplaced: u64,
    /// Stamps by eBPF that the kernel could not keep.
    #[serde(default)]
    pub ebpf_lost: u64,
    /// Stamps by eBPF that belong to no packet of the run.
    #[serde(default)]
    pub ebpf_unplaced: u64,
    /// Stamps by eBPF that cannot be mapped to the counter.
    #[serde(default)]
    pub ebpf_discarded: u64,
}

/// What was measured.
#[derive(Debug)]
pub struct ProbeOutcome {
    /// Every stamp.
    pub passages: PacketPassages,
    /// What happened to packets and stamps.
    pub counts: PacketCounts,
    /// What the host does not offer, each with the reason.
    pub unavailable: Vec<String>,
    /// How long it took [s].
    pub length_s: f64,
    /// How long each send of the burst took.
    pub sends: Vec<Ticks>,
    /// Where the stamps come from.
    pub methods: Methods,
}

impl ProbeOutcome {
    pub(crate) fn take_in(&mut self, collected: &Collected, run: u64) {
        let counts = &mut self.counts;
        (counts.tap_dropped, counts.events_lost) = (collected.tap_dropped, collected.events_lost);
        counts.lost = counts.sent - counts.received;
        for packet in collected.tapped.iter().filter(|packet| packet.identity.run == run) {
            let site = match (packet.identity.direction, packet.passed) {
                (Direction::Outgoing, Direction::Outgoing) => Site::TapOut,
                (Direction::Incoming, Direction::Incoming) => Site::TapIn,
                // Where both ends are on this host, the tap sees each packet twice.
                _ => continue,
            };
            match collected.pairs.counter_at(packet.stamped) {
                Some(counter) => drop(self.passages.note(packet.identity.sequence, site, counter)),
                None => counts.tap_stamps_discarded += 1,
            }
        }
        for event in &collected.events {
            counts.events_unplaced += u64::from(self.passages.note_event(event) == Placement::Nowhere);
        }
    }

    /// Stamps by eBPF count where the tracing has none, and are compared with its stamps where it has.
    pub(crate) fn compare(&mut self, collected: &Collected, plan: &ProbePlan) {
        let mut second = SecondStamps::default();
        for passage in &collected.passages {
            match collected.mono_pairs.counter_at(passage.stamped) {
                Some(counter) => second.place(passage, counter, &self.passages),
                None => self.counts.ebpf_discarded += 1,
            }
        }
        (self.counts.ebpf_lost, self.counts.ebpf_unplaced) = (collected.passages_lost, second.unplaced());
        self.methods.agreements = second.compare(&self.passages, plan.period);
        self.methods.stamped = StampedSites {
            tracing: collected.events.iter().fold(Sites::NONE, |set, event| set.with(event.site)),
            ebpf: second.sites(),
            tap: [Site::TapOut, Site::TapIn]
                .into_iter()
                .fold(Sites::NONE, |set, site| if self.passages.count(site) > 0 { set.with(site) } else { set }),
        };
        second.fill(&mut self.passages);
        let wanted = plan.probes.tracing.contains(Site::CopyIn) || plan.probes.ebpf.contains(Site::CopyIn);
        if wanted && self.counts.received > 0 && self.passages.count(Site::CopyIn) == 0 {
            let reason =
                "no packet passed skb_copy_datagram_iovec (this kernel copies packets without fragments another way)";
            self.unavailable.push(format!("copy: {reason}"));
        }
        if let Some(device) = plan.wire.as_ref().filter(|_| self.passages.count(Site::WireOut) == 0) {
            self.unavailable.push(format!("wire: the kernel's tracing saw no request arrive at {device}"));
        }
        if plan.to.ip().is_multicast() && self.passages.count(Site::LoopOut) == 0 {
            self.unavailable.push("multicast copy: no copy of a request came back to this host".to_owned());
        }
        self.methods.mapping = collected.mono_pairs.error().filter(|_| !collected.passages.is_empty());
    }
}
