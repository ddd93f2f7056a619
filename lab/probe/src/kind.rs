//! The kinds of probes, and which sites each of them stamped.

use crate::payload::Direction;
use crate::plan::{PacketTap, Probes};
use crate::site::{Site, Sites};
use ffclock_counters::named;
use serde::{Deserialize, Serialize};

named! {
    /// A kind of probe that can be added, in the order in which they are added: the cheapest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ProbeKind {
        /// An event of the kernel's tracing.
        Tracing = "tracing event",
        /// An eBPF program at a tracepoint.
        Ebpf = "eBPF at a tracepoint",
        /// An eBPF program at tc.
        Tc = "eBPF at tc",
        /// The packet tap.
        Tap = "packet tap",
    }
}

impl ProbeKind {
    /// Adds one of this kind between user space and the driver on one way; a tap is on both.
    pub(crate) fn add_to(self, mut probes: Probes, way: Direction) -> Probes {
        let (stack, tc) = match way {
            Direction::Outgoing => (Site::QueueOut, Site::TcOut),
            Direction::Incoming => (Site::StackIn, Site::TcIn),
        };
        match self {
            ProbeKind::Tracing => probes.tracing = probes.tracing.with(stack),
            ProbeKind::Ebpf => probes.ebpf = probes.ebpf.with(stack),
            ProbeKind::Tc => probes.ebpf = probes.ebpf.with(tc),
            ProbeKind::Tap => probes.tap = PacketTap::Open,
        }
        probes
    }

    /// Whether a run with these probes has one of this kind.
    pub(crate) fn is_in(self, probes: &Probes) -> bool {
        match self {
            ProbeKind::Tracing => !probes.tracing.is_empty(),
            ProbeKind::Ebpf => Sites::TRACED.iter().any(|site| probes.ebpf.contains(site)),
            ProbeKind::Tc => probes.ebpf.contains(Site::TcOut),
            ProbeKind::Tap => probes.tap == PacketTap::Open,
        }
    }
}

/// Which sites each kind of probe stamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StampedSites {
    /// The sites that the kernel's tracing stamped.
    pub tracing: Sites,
    /// The sites that eBPF programs stamped.
    pub ebpf: Sites,
    /// The sites that the tap stamped.
    pub tap: Sites,
}

impl StampedSites {
    pub(crate) fn by_kind(&self) -> [(ProbeKind, Sites); 4] {
        let tc = |wanted: bool| {
            let is_tc = |site: &Site| matches!(site, Site::TcOut | Site::TcIn) == wanted;
            self.ebpf.iter().filter(is_tc).fold(Sites::NONE, |set, site| set.with(site))
        };
        [
            (ProbeKind::Tracing, self.tracing),
            (ProbeKind::Ebpf, tc(false)),
            (ProbeKind::Tc, tc(true)),
            (ProbeKind::Tap, self.tap),
        ]
    }
}
