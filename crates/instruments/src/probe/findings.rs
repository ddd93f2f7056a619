//! What the stamps of a run say: delays by location, causality, and the host's own asymmetry.
//!
//! Names and signs are the paper's (sections III and IV): a delay is the time between a location and the boundary to the driver,
//! d_out = T_driver - T_location and d_in = T_location - T_driver, positive in the order of causes. The asymmetry of a location is
//! A = min d_out - min d_in (section V); all that round trips alone can say is that it lies within +-r, r = min d_out + min d_in.

use super::passages::Passages;
use super::payload::Direction;
use super::site::{Location, Site};
use crate::spread::Spread;
use ffclock_units::{Period, Span, Ticks};
use serde::{Deserialize, Serialize};

/// Order of events that is told to be violated only beyond this: twice what mapping a software stamp to the counter may err.
const SLACK: Span = Span::from_nanos(500);
/// A reference needs the stamps of so many packets.
const ENOUGH: f64 = 0.5;
/// Examples of a violation that are kept.
const EXAMPLES: usize = 3;

/// Sites whose order no packet can change: the first before the second.
const ORDERED: [(Site, Site); 22] = [
    (Site::UserSend, Site::QueueOut),
    (Site::QueueOut, Site::DriverOut),
    (Site::UserSend, Site::TapOut),
    (Site::TapOut, Site::DriverOut),
    (Site::DriverOut, Site::DoneOut),
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
pub struct Delay {
    /// Which way.
    pub direction: Direction,
    /// Where.
    pub site: Site,
    /// How many packets have both stamps.
    pub count: usize,
    /// The delay to the reference site [ns].
    pub delay_ns: Spread,
    /// The 90th percentile [ns], where the paper's whiskers end.
    pub p90_ns: f64,
}

/// Stamps that contradict the order of causes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// What must be first.
    pub first: Site,
    /// What must follow.
    pub second: Site,
    /// How many packets have both stamps.
    pub count: usize,
    /// How many of them in the wrong order, by more than half a microsecond.
    pub violations: usize,
    /// By how much at most [ns].
    pub worst_ns: f64,
    /// Some of these packets, as (number, ns).
    pub examples: Vec<(usize, f64)>,
}

/// The host's own asymmetry at a location.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asymmetry {
    /// Where.
    pub location: Location,
    /// The smallest delay out [ns].
    pub out_ns: f64,
    /// The smallest delay in [ns].
    pub in_ns: f64,
    /// Smallest delay out minus smallest delay in [ns]; half of it is the error of a clock that takes it for 0.
    pub asymmetry_ns: f64,
    /// The 95 % interval of the asymmetry by the bootstrap [ns].
    pub interval_ns: (f64, f64),
    /// What round trips alone say: the asymmetry lies within +- this [ns].
    pub limit_ns: f64,
    /// Whether the figures are possible at all.
    pub verdict: Plausibility,
}

/// Whether an asymmetry can be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plausibility {
    /// It lies within its limit.
    Possible,
    /// It lies outside its limit although no order of events is violated: the location is nearer to the wire than the reference, as the
    /// socket's transmit stamp is, which the driver takes.
    BeyondReference,
    /// Some of its stamps contradict the order of causes, so that no minimum of them means anything (section V of the paper).
    CausalityFault,
}

/// Everything that one phase of a run says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The site that stands for the wire, on the way out and on the way in.
    pub reference: (Site, Site),
    /// Delays by site.
    pub delays: Vec<Delay>,
    /// Round trips by location [ns], and what of them lies within the host (round trip minus that of the reference).
    pub round_trips: Vec<RoundTrip>,
    /// Order of events.
    pub causality: Vec<Violation>,
    /// Asymmetry by location.
    pub asymmetries: Vec<Asymmetry>,
}

/// Round trips seen from one location.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Where.
    pub location: Location,
    /// T_in - T_out [ns].
    pub whole_ns: Spread,
    /// Without the round trip of the reference: the paper's partial round trip [ns].
    pub partial_ns: Option<Spread>,
}

impl Findings {
    /// Looks at all packets of a run; `period` is that of the counter.
    pub fn of(passages: &Passages, period: Period) -> Self {
        let reference = reference(passages);
        let view = View { passages, period, reference };
        let causality: Vec<Violation> =
            ORDERED.into_iter().filter_map(|(first, second)| view.order(first, second)).collect();
        Findings {
            reference,
            delays: Site::ALL.into_iter().filter_map(|site| view.delay(site)).collect(),
            round_trips: Location::ALL.into_iter().filter_map(|location| view.round_trip(location)).collect(),
            asymmetries: Location::ALL
                .into_iter()
                .filter_map(|location| view.asymmetry(location, &causality))
                .collect(),
            causality,
        }
    }
}

/// The driver's events where the kernel traces for us; otherwise the socket's stamps, which are taken next to them.
fn reference(passages: &Passages) -> (Site, Site) {
    let has_enough = |site: &Site| passages.count(*site) as f64 >= ENOUGH * passages.len() as f64;
    let first = |sites: &[Site], otherwise| sites.iter().copied().find(has_enough).unwrap_or(otherwise);
    (
        first(&[Site::DriverOut, Site::SocketOut], Site::TapOut),
        first(&[Site::DriverIn, Site::StackIn, Site::SocketIn], Site::TapIn),
    )
}

struct View<'a> {
    passages: &'a Passages,
    period: Period,
    reference: (Site, Site),
}

impl View<'_> {
    fn ns(&self, ticks: Ticks) -> f64 {
        (self.period * ticks).as_seconds() * 1e9
    }

    /// The delays of a site [ns], by packet.
    fn delays_ns(&self, site: Site) -> Vec<f64> {
        let (from, to) = match site.direction() {
            Direction::Outgoing => (site, self.reference.0),
            Direction::Incoming => (self.reference.1, site),
        };
        self.passages.between(from, to).map(|(_, ticks)| self.ns(ticks)).collect()
    }

    fn delay(&self, site: Site) -> Option<Delay> {
        if site == self.reference.0 || site == self.reference.1 {
            return None;
        }
        let mut delays = self.delays_ns(site);
        let delay_ns = Spread::of(&delays)?;
        delays.sort_by(f64::total_cmp);
        let p90_ns = delays[(0.9 * (delays.len() - 1) as f64) as usize];
        Some(Delay { direction: site.direction(), site, count: delays.len(), delay_ns, p90_ns })
    }

    fn round_trip(&self, location: Location) -> Option<RoundTrip> {
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
        let partial_ns = if is_reference { None } else { Spread::of(&partial) };
        Some(RoundTrip { location, whole_ns: Spread::of(&whole)?, partial_ns })
    }

    fn order(&self, first: Site, second: Site) -> Option<Violation> {
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
        (count > 0).then_some(Violation { first, second, count, violations, worst_ns, examples })
    }

    fn asymmetry(&self, location: Location, causality: &[Violation]) -> Option<Asymmetry> {
        let (out, back) = location.sites();
        if (out, back) == self.reference {
            return None;
        }
        let is_ours = |order: &&Violation| [order.first, order.second].iter().any(|site| *site == out || *site == back);
        let is_violated = causality.iter().filter(is_ours).any(|order| order.violations > 0);
        let (out, back) = (Smallest::of(self.delays_ns(out))?, Smallest::of(self.delays_ns(back))?);
        let (asymmetry_ns, limit_ns) = (out.min - back.min, out.min + back.min);
        let is_possible = limit_ns >= 0.0 && asymmetry_ns.abs() <= limit_ns;
        Some(Asymmetry {
            location,
            out_ns: out.min,
            in_ns: back.min,
            asymmetry_ns,
            interval_ns: (out.min - back.high, out.high - back.min),
            limit_ns,
            verdict: match (is_violated, is_possible) {
                (true, _) => Plausibility::CausalityFault,
                (false, true) => Plausibility::Possible,
                (false, false) => Plausibility::BeyondReference,
            },
        })
    }
}

/// The smallest of many delays, and how large it could have come out.
struct Smallest {
    min: f64,
    high: f64,
}

impl Smallest {
    /// The bootstrap in closed form: of n delays drawn again with repetition, the k smallest are all missed with probability
    /// (1 - k/n)^n, about e^-k, so that the smallest one drawn is at most the fourth smallest in 98 % of all draws.
    fn of(mut delays: Vec<f64>) -> Option<Self> {
        const RANK: usize = 3;
        delays.sort_by(f64::total_cmp);
        let high = *delays.get(RANK.min(delays.len().checked_sub(1)?))?;
        Some(Smallest { min: delays[0], high })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Counter;

    /// The product of ticks and a period is rounded.
    fn assert_near(ns: f64, expected: f64) {
        assert!((ns - expected).abs() < 1e-6, "{ns} is not {expected}");
    }

    /// A counter of 1 GHz: a tick is 1 ns.
    fn findings(packets: &[[(Site, u64); 6]]) -> Findings {
        let mut passages = Passages::new(Counter::from_raw(0));
        for (sequence, stamps) in packets.iter().enumerate() {
            let begin = 1_000_000 * sequence as u64;
            passages.send(Counter::from_raw(begin + stamps[0].1));
            for (site, ticks) in &stamps[1..] {
                passages.note(sequence as u64, *site, Counter::from_raw(begin + ticks));
            }
        }
        Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"))
    }

    const fn packet(user: u64, socket: u64) -> [(Site, u64); 6] {
        [
            (Site::UserSend, 10_000 - user),
            (Site::DriverOut, 10_000),
            (Site::SocketOut, socket),
            (Site::DriverIn, 60_000),
            (Site::SocketIn, 60_400),
            (Site::UserReceive, 60_000 + 2 * user),
        ]
    }

    #[test]
    fn delays_and_asymmetries_have_the_signs_of_the_paper() {
        let findings = findings(&[packet(3_000, 9_800), packet(4_000, 9_700), packet(5_000, 9_900)]);
        assert_eq!(findings.reference, (Site::DriverOut, Site::DriverIn));
        let delay = |site| findings.delays.iter().find(|delay| delay.site == site).expect("it was stamped").delay_ns;
        assert_near(delay(Site::UserSend).min, 3_000.0);
        assert_near(delay(Site::UserSend).median, 4_000.0);
        assert_near(delay(Site::UserReceive).min, 6_000.0);
        assert_near(delay(Site::SocketOut).max, 300.0);
        let user = findings.asymmetries.iter().find(|one| one.location == Location::User).expect("it was stamped");
        assert_near(user.asymmetry_ns, -3_000.0);
        assert_near(user.limit_ns, 9_000.0);
        assert_near(user.interval_ns.0, -7_000.0);
        assert_near(user.interval_ns.1, -1_000.0);
        assert_eq!(user.verdict, Plausibility::Possible);
        let trip = findings.round_trips.iter().find(|trip| trip.location == Location::User).expect("it was stamped");
        assert_near(trip.whole_ns.min, 59_000.0);
        assert_near(trip.partial_ns.expect("not the reference itself").min, 9_000.0);
    }

    #[test]
    fn a_stamp_taken_after_the_packet_is_back_breaks_causality() {
        let findings = findings(&[packet(3_000, 9_800), packet(3_000, 356_000)]);
        let broken: Vec<_> = findings.causality.iter().filter(|order| order.violations > 0).collect();
        assert_eq!(broken.len(), 2, "{broken:?}");
        assert_eq!((broken[0].first, broken[0].second), (Site::SocketOut, Site::DriverIn));
        assert_eq!((broken[0].count, broken[0].violations), (2, 1));
        assert_near(broken[0].worst_ns, -296_000.0);
        assert_eq!(broken[0].examples.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [1]);
        let socket = findings.asymmetries.iter().find(|one| one.location == Location::Socket).expect("it was stamped");
        assert_eq!(socket.verdict, Plausibility::CausalityFault);
    }

    #[test]
    fn a_stamp_nearer_to_the_wire_than_the_driver_breaks_nothing() {
        let findings = findings(&[packet(3_000, 10_300), packet(3_000, 10_350)]);
        let socket = findings.asymmetries.iter().find(|one| one.location == Location::Socket).expect("it was stamped");
        assert_near(socket.out_ns, -350.0);
        assert_eq!(socket.verdict, Plausibility::BeyondReference);
    }

    #[test]
    fn without_tracing_the_sockets_stamps_stand_for_the_wire() {
        let mut passages = Passages::new(Counter::from_raw(0));
        passages.send(Counter::from_raw(1_000));
        for (site, ticks) in [(Site::SocketOut, 3_000), (Site::SocketIn, 60_000), (Site::UserReceive, 65_000)] {
            passages.note(0, site, Counter::from_raw(ticks));
        }
        let findings = Findings::of(&passages, Period::from_hertz(1e9).expect("a frequency"));
        assert_eq!(findings.reference, (Site::SocketOut, Site::SocketIn));
        assert_eq!(findings.asymmetries.len(), 1);
        assert_near(findings.asymmetries[0].asymmetry_ns, 2_000.0 - 5_000.0);
    }

    #[test]
    fn a_run_without_packets_says_nothing() {
        let findings =
            Findings::of(&Passages::new(Counter::from_raw(0)), Period::from_hertz(1e9).expect("a frequency"));
        assert!(findings.delays.is_empty() && findings.asymmetries.is_empty() && findings.causality.is_empty());
    }
}
