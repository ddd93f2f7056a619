//! What lies outside the host, by stamps at the other end of the link: the stand-in for the paper's capture card.

use super::{OrderViolation, PassageView, is_violated};
use crate::distances::BoundaryDistances;
use crate::site::Site;
use ffclock_statistics::Spread;
use serde::{Deserialize, Serialize};

/// The round trip that the wire sees, and how the reference lies to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WireTrip {
    /// From the wire out to the wire in: the network and the server [ns].
    pub network_ns: Spread,
    /// What the device adds: the round trip of the reference without that of the wire [ns].
    pub device_ns: Spread,
    /// From the reference to the wire, out [ns].
    pub out_ns: Spread,
    /// From the wire to the reference, in [ns].
    pub in_ns: Spread,
    /// The asymmetry of the reference itself: its smallest distance out minus its smallest in [ns]. It is in the
    /// asymmetry of every location.
    pub asymmetry_ns: f64,
    /// The 95 % interval of that by the bootstrap [ns].
    pub interval_ns: (f64, f64),
    /// How far 99 % of both distances together reach beyond the smallest [ns]: what the reference adds to the variation
    /// of every delay.
    pub reach_ns: f64,
    /// Whether the stamps of the wire and of the reference keep the order of events.
    pub is_ordered: bool,
}

impl WireTrip {
    /// `None` where the wire, or the reference, was not stamped.
    pub(super) fn of(view: &PassageView<'_>, causality: &[OrderViolation]) -> Option<Self> {
        let (out, back) = view.reference;
        let (outgoing, incoming) = (view.spans(out, Site::WireOut), view.spans(Site::WireIn, back));
        let between = |from, to| view.passages.between(from, to);
        let network: Vec<f64> = view.spans(Site::WireOut, Site::WireIn).into_iter().map(|(_, ns)| ns).collect();
        let device = between(out, back).filter_map(|(packet, whole)| {
            let (left, came) = (view.passages.at(packet, Site::WireOut)?, view.passages.at(packet, Site::WireIn)?);
            Some(view.ns(whole - (came - left)))
        });
        let [outgoing, incoming] =
            [outgoing, incoming].map(|spans| spans.into_iter().map(|(_, ns)| ns).collect::<Vec<_>>());
        let (far, near) = (BoundaryDistances::of(&outgoing)?, BoundaryDistances::of(&incoming)?);
        let (nearest_out, nearest_in) = (far.nearest(), near.nearest());
        Some(WireTrip {
            network_ns: Spread::of(&network)?,
            device_ns: Spread::of(&device.collect::<Vec<_>>())?,
            out_ns: Spread::of(&outgoing)?,
            in_ns: Spread::of(&incoming)?,
            asymmetry_ns: nearest_out.ns - nearest_in.ns,
            interval_ns: (
                nearest_out.interval_ns.0 - nearest_in.interval_ns.1,
                nearest_out.interval_ns.1 - nearest_in.interval_ns.0,
            ),
            reach_ns: far.reach().ns + near.reach().ns,
            is_ordered: !is_violated(causality, Site::WireOut, Site::WireIn),
        })
    }
}
