//! What the stamps of a run say: delays by location, causality, and the host's own asymmetry.
//!
//! Names and signs are the paper's (sections III and IV): a delay is the time between a location and the boundary to
//! the driver, d_out = T_driver - T_location and d_in = T_location - T_driver, positive in the order of causes. The
//! asymmetry of a location is A = min d_out - min d_in (section V); all that round trips alone can say is that it lies
//! within +-r, r = min d_out + min d_in. The paper's minimum is the packet that waited least. Behind the boundary that
//! is the largest delay ([`BoundaryDistances`]).

mod mixed;
mod wire;

pub use mixed::MixedPair;
pub use wire::WireTrip;

use crate::distances::{BoundaryDistances, SampledNs};
use crate::passages::PacketPassages;
use crate::payload::{Direction, DirectionInFiles};
use crate::site::{Site, TimestampingLocation};
use crate::timeline::PacketTimeline;
use ffclock_statistics::{Spread, percentile};
use ffclock_units::{Period, Span, Ticks};
use serde::{Deserialize, Serialize};

/// The order of two events is violated only beyond this: reading clocks in pairs can shift two mapped stamps as far,
/// since no pair that leaves open more than half of it on either side maps any (pairs.rs).
const SLACK: Span = Span::from_micros(1);
/// A reference needs the stamps of this share of the packets.
const ENOUGH: f64 = 0.5;
/// Examples of a violation that are kept.
const EXAMPLES: usize = 3;

/// Sites whose order no packet can change: the first before the second.
const ORDERED: [(Site, Site); 28] = [
    (Site::UserSend, Site::QueueOut),
    (Site::QueueOut, Site::DriverOut),
    (Site::UserSend, Site::TapOut),
    (Site::TapOut, Site::DriverOut),
    (Site::DriverOut, Site::DoneOut),
    (Site::DriverOut, Site::WireOut),
    (Site::WireOut, Site::WireIn),
    (Site::WireIn, Site::DriverIn),
    (Site::UserSend, Site::LoopOut),
    (Site::LoopOut, Site::DriverIn),
    (Site::LoopOut, Site::SocketIn),
    (Site::UserSend, Site::SocketOut),
    (Site::SocketOut, Site::DriverIn),
    (Site::SocketOut, Site::SocketIn),
    (Site::DriverIn, Site::SocketIn),
    (Site::DriverIn, Site::TapIn),
    (Site::SocketIn, Site::UserReceive),
    (Site::TapIn, Site::UserReceive),
    (Site::UserSend, Site::TcOut),
    (Site::TcOut, Site::DriverOut),
    (Site::DriverOut, Site::XdpIn),
    (Site::XdpIn, Site::UserReceive),
    (Site::DriverIn, Site::TcIn),
    (Site::DriverIn, Site::QueueIn),
    (Site::TcIn, Site::UserReceive),
    (Site::QueueIn, Site::ReadIn),
    (Site::QueueIn, Site::CopyIn),
    (Site::ReadIn, Site::UserReceive),
];

/// The delays of one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteDelay {
    /// The direction of the packets.
    #[serde(with = "DirectionInFiles")]
    pub direction: Direction,
    /// The site.
    pub site: Site,
    /// How many packets have both stamps.
    pub count: usize,
    /// The delay to the reference site [ns].
    pub delay_ns: Spread,
    /// The 90th percentile [ns], where the paper's whiskers end.
    pub p90_ns: f64,
    /// The delay nearest to the boundary, with its 98 % interval.
    pub nearest: SampledNs,
    /// How far 99 % of the delays reach beyond it, with the 95 % interval.
    pub reach: SampledNs,
    /// The median, with the 95 % interval.
    pub median: SampledNs,
    /// The distance between the quartiles, with the 95 % interval.
    pub iqr: SampledNs,
}

/// Stamps that contradict the order of causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OrderViolation {
    /// What must be first.
    pub first: Site,
    /// What must follow.
    pub second: Site,
    /// How many packets have both stamps.
    pub count: usize,
    /// How many of them in the wrong order, by more than a microsecond.
    pub violations: usize,
    /// The largest of these violations [ns].
    pub worst_ns: f64,
    /// Some of these packets, as (number, ns).
    pub examples: Vec<(usize, f64)>,
}

/// The host's own asymmetry at a location.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asymmetry {
    /// The location.
    pub location: TimestampingLocation,
    /// The delay out that is nearest to the boundary [ns].
    pub out_ns: f64,
    /// The delay in that is nearest to the boundary [ns].
    pub in_ns: f64,
    /// Where the delays begin in bulk, out and in: a tenth of them lies nearer to the boundary [ns]. A clock follows
    /// them; one packet alone may be nearer.
    pub edges_ns: (f64, f64),
    /// Nearest delay out minus nearest delay in [ns]; half of it is the error of a clock that takes it for 0.
    pub asymmetry_ns: f64,
    /// The 95 % interval of the asymmetry by the bootstrap [ns].
    pub interval_ns: (f64, f64),
    /// What round trips alone say: the asymmetry lies within +- this [ns].
    pub limit_ns: f64,
    /// Whether the figures are physically possible.
    pub verdict: Plausibility,
}

/// Whether an asymmetry can be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plausibility {
    /// It lies within its limit.
    Possible,
    /// It lies outside its limit although no order of events is violated: the location is nearer to the wire than the
    /// reference, as the socket's transmit stamp is, which the driver takes.
    BeyondReference,
    /// Some of its stamps contradict the order of causes, so that no minimum of them means anything (section V of the
    /// paper).
    CausalityFault,
}

/// Everything that one phase of a run says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The site that stands for the wire, on the way out and on the way in.
    pub reference: (Site, Site),
    /// Delays by site.
    pub delays: Vec<SiteDelay>,
    /// Round trips by location [ns], and what of them lies within the host (round trip minus that of the reference).
    pub round_trips: Vec<LocationTrip>,
    /// Order of events.
    pub causality: Vec<OrderViolation>,
    /// Asymmetry by location.
    pub asymmetries: Vec<Asymmetry>,
    /// What lies outside the host; `None` without stamps of the wire.
    pub wire: Option<WireTrip>,
    /// The asymmetry of every site out with every site in.
    pub mixed: Vec<MixedPair>,
    /// One packet on its way; `None` where none came back.
    pub timeline: Option<PacketTimeline>,
}

/// Round trips seen from one location.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocationTrip {
    /// The location.
    pub location: TimestampingLocation,
    /// T_in - T_out [ns].
    pub whole_ns: Spread,
    /// Its 90th percentile [ns].
    pub whole_p90_ns: f64,
    /// Without the round trip of the reference: the paper's partial round trip [ns].
    pub partial_ns: Option<Spread>,
    /// Its 90th percentile [ns].
    pub partial_p90_ns: Option<f64>,
}

impl Findings {
    /// Looks at all packets of a run; `period` is that of the counter.
    pub fn of(passages: &PacketPassages, period: Period) -> Self {
        let reference = reference(passages);
        let view = PassageView { passages, period, reference };
        let causality: Vec<OrderViolation> =
            ORDERED.into_iter().filter_map(|(first, second)| view.order(first, second)).collect();
        Findings {
            reference,
            delays: Site::ALL.into_iter().filter_map(|site| view.delay(site)).collect(),
            round_trips: TimestampingLocation::ALL
                .into_iter()
                .filter_map(|location| view.round_trip(location))
                .collect(),
            asymmetries: TimestampingLocation::ALL
                .into_iter()
                .filter_map(|location| view.asymmetry(location, &causality))
                .collect(),
            wire: WireTrip::of(&view, &causality),
            mixed: mixed::pairs(&view, &causality),
            causality,
            timeline: PacketTimeline::of(passages, period),
        }
    }
}

/// The driver's events where the kernel traces for us; otherwise the socket's stamps, which are taken next to them.
fn reference(passages: &PacketPassages) -> (Site, Site) {
    // Not every packet of a service that is merely watched has both ways.
    let most = |direction| Site::ALL.into_iter().filter(move |site| site.direction() == direction);
    let most = |direction| most(direction).map(|site| passages.count(site)).max().unwrap_or(0) as f64;
    let most = [most(Direction::Outgoing), most(Direction::Incoming)];
    let has_enough = |site: &Site| {
        passages.count(*site) as f64 >= ENOUGH * most[usize::from(site.direction() == Direction::Incoming)].max(1.0)
    };
    let first = |sites: &[Site], otherwise| sites.iter().copied().find(has_enough).unwrap_or(otherwise);
    (
        first(&[Site::DriverOut, Site::SocketOut], Site::TapOut),
        first(&[Site::DriverIn, Site::StackIn, Site::SocketIn], Site::TapIn),
    )
}

struct PassageView<'a> {
    passages: &'a PacketPassages,
    period: Period,
    reference: (Site, Site),
}

impl PassageView<'_> {
    fn ns(&self, ticks: Ticks) -> f64 {
        (self.period * ticks).as_seconds() * 1e9
    }

    /// From one site to another by packet [ns].
    fn spans(&self, from: Site, to: Site) -> Vec<(usize, f64)> {
        self.passages.between(from, to).map(|(packet, ticks)| (packet, self.ns(ticks))).collect()
    }

    /// The delays of a site [ns], by packet.
    fn delays_ns(&self, site: Site) -> Vec<f64> {
        let (from, to) = match site.direction() {
            Direction::Outgoing => (site, self.reference.0),
            Direction::Incoming => (self.reference.1, site),
        };
        self.passages.between(from, to).map(|(_, ticks)| self.ns(ticks)).collect()
    }

    fn delay(&self, site: Site) -> Option<SiteDelay> {
        if site == self.reference.0 || site == self.reference.1 {
            return None;
        }
        let delays = self.delays_ns(site);
        let delay_ns = Spread::of(&delays)?;
        let distances = BoundaryDistances::of(&delays)?;
        Some(SiteDelay {
            direction: site.direction(),
            site,
            count: delays.len(),
            delay_ns,
            p90_ns: percentile(&delays, 0.9)?,
            nearest: distances.nearest(),
            reach: distances.reach(),
            median: distances.median(),
            iqr: distances.iqr(),
        })
    }

    fn round_trip(&self, location: TimestampingLocation) -> Option<LocationTrip> {
        let (out, back) = location.sites();
        let whole: Vec<(usize, Ticks)> = self.passages.between(out, back).collect();
        let inner = |sequence: usize| {
            let (out, back) =
                (self.passages.at(sequence, self.reference.0)?, self.passages.at(sequence, self.reference.1)?);
            Some(back - out)
        };
        let partial = whole.iter().filter_map(|(sequence, ticks)| Some(self.ns(*ticks - inner(*sequence)?)));
        let partial: Vec<f64> = partial.collect();
        let whole: Vec<f64> = whole.iter().map(|(_, ticks)| self.ns(*ticks)).collect();
        let is_reference = (out, back) == self.reference;
        let partial = if is_reference { Vec::new() } else { partial };
        Some(LocationTrip {
            location,
            whole_ns: Spread::of(&whole)?,
            whole_p90_ns: percentile(&whole, 0.9)?,
            partial_ns: Spread::of(&partial),
            partial_p90_ns: percentile(&partial, 0.9),
        })
    }

    fn order(&self, first: Site, second: Site) -> Option<OrderViolation> {
        let slack = SLACK.as_seconds() * 1e9;
        let (mut count, mut violations, mut worst_ns, mut examples) = (0, 0, 0.0_f64, Vec::new());
        for (sequence, ticks) in self.passages.between(first, second) {
            count += 1;
            let ns = self.ns(ticks);
            if ns < -slack {
                violations += 1;
                worst_ns = worst_ns.min(ns);
                if examples.len() < EXAMPLES {
                    examples.push((sequence, ns));
                }
            }
        }
        (count > 0).then_some(OrderViolation { first, second, count, violations, worst_ns, examples })
    }

    fn asymmetry(&self, location: TimestampingLocation, causality: &[OrderViolation]) -> Option<Asymmetry> {
        let (out, back) = location.sites();
        if (out, back) == self.reference {
            return None;
        }
        let is_violated = is_violated(causality, out, back);
        let (out, back) = (self.delays_ns(out), self.delays_ns(back));
        let (out, back) = (BoundaryDistances::of(&out)?, BoundaryDistances::of(&back)?);
        let edges_ns = (out.edge_ns(), back.edge_ns());
        let (out, back) = (out.nearest(), back.nearest());
        let (asymmetry_ns, limit_ns) = (out.ns - back.ns, out.ns + back.ns);
        let is_possible = limit_ns >= 0.0 && asymmetry_ns.abs() <= limit_ns;
        Some(Asymmetry {
            location,
            edges_ns,
            out_ns: out.ns,
            in_ns: back.ns,
            asymmetry_ns,
            interval_ns: (out.interval_ns.0 - back.interval_ns.1, out.interval_ns.1 - back.interval_ns.0),
            limit_ns,
            verdict: match (is_violated, is_possible) {
                (true, _) => Plausibility::CausalityFault,
                (false, true) => Plausibility::Possible,
                (false, false) => Plausibility::BeyondReference,
            },
        })
    }
}

/// Whether stamps of either site contradict the order of events.
fn is_violated(causality: &[OrderViolation], out: Site, back: Site) -> bool {
    let is_ours =
        |order: &&OrderViolation| [order.first, order.second].iter().any(|site| *site == out || *site == back);
    causality.iter().filter(is_ours).any(|order| order.violations > 0)
}

#[cfg(test)]
mod tests;
