//! What the probes themselves cost: the probe effect, after section III-B of the paper.
//!
//! The delay between user space and the driver is measured with the driver's probes alone, then with one more probe
//! between them, and one more, in blocks that take turns (up, then down again), so that every drift goes through all of
//! them. In each block a burst of packets without replies is sent as well, and the wall time of every send is taken: it
//! holds each probe of the way out once, and has far less noise than a delay across two threads. What one probe adds to
//! it, block against block of the same round, is its cost. Of a burst the tenth percentile counts: a send that wakes
//! the server, or that is interrupted, takes longer than any probe.

use crate::agreement::Methods;
use crate::error::ProbeError;
use crate::kind::ProbeKind;
use crate::outcome::ProbeOutcome;
use crate::payload::Direction;
use crate::plan::{PacketTap, ProbePlan, Probes, QueueHook};
use crate::run::run;
use crate::site::{Site, Sites};
use core::ops::ControlFlow;
use ffclock_statistics::{Spread, percentile};
use ffclock_units::Ticks;
use serde::{Deserialize, Serialize};

/// Packets of a block that are answered, and of its burst.
const BLOCK_PACKETS: u64 = 100;
const BURST: u64 = 400;
/// Of the sends of a burst, the share that is faster than the one that counts.
const FAST: f64 = 0.1;
/// The share of delays that a box of the paper's shows.
const WHISKER: f64 = 0.9;

/// What was measured with this number of probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectLevel {
    /// Probes between user space and the driver, each way.
    pub probes: usize,
    /// The one that the level before does not have.
    pub added: Option<ProbeKind>,
    /// From user space to the driver [ns].
    pub out_ns: Spread,
    /// Their 90th percentile [ns], where the paper's whiskers end.
    pub out_p90_ns: f64,
    /// From the driver to user space [ns].
    pub in_ns: Spread,
    /// Their 90th percentile [ns].
    pub in_p90_ns: f64,
    /// The wall time of one send [ns].
    pub send_ns: Spread,
    /// What the added probe costs by the wall time of sends.
    pub cost: Option<Cost>,
}

/// What one probe costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The median over all rounds [ns].
    pub median_ns: f64,
    /// The 95 % interval of that median [ns], by the order of the rounds' values.
    pub interval_ns: (f64, f64),
}

/// The probe effect of this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// By the number of probes.
    pub levels: Vec<EffectLevel>,
    /// How often every level was measured.
    pub rounds: usize,
}

/// A median delay without what the probes between its two stamps cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Corrected {
    /// The site.
    pub site: Site,
    /// The median as measured [ns].
    pub median_ns: f64,
    /// Probes between the location and the driver.
    pub probes: usize,
    /// The cost of these probes [ns].
    pub cost_ns: f64,
    /// The median without that cost [ns].
    pub corrected_ns: f64,
}

/// What was seen in the blocks of one level.
#[derive(Default)]
struct SeenPackets {
    out_ns: Vec<f64>,
    in_ns: Vec<f64>,
    send_ns: Vec<f64>,
    /// By round: the tenth percentile of the wall time of a send [ns].
    fast_ns: Vec<f64>,
}

/// The probes of each level: the driver's alone, then one more of each kind.
fn levels(kinds: &[ProbeKind], way: Direction) -> Vec<Probes> {
    let mut levels = vec![Probes {
        tap: PacketTap::LeftOut,
        tracing: Sites::DRIVER,
        ebpf: Sites::NONE,
        queue_hook: QueueHook::Kprobe,
    }];
    for kind in kinds {
        levels.push(kind.add_to(levels[levels.len() - 1], way));
    }
    levels
}

/// Measures in `rounds` rounds (at least 2) what each of the probes of `plan` costs, each way for itself: where both
/// ends are on this host, a send passes the incoming probes of the other end as well. `watch` gets the share that is
/// done; `None` where it broke.
///
/// # Errors
/// Those of a run; and the tracing is missing, by which the driver is seen.
pub fn measure(
    plan: &ProbePlan,
    rounds: usize,
    watch: &mut dyn FnMut(f64) -> ControlFlow<()>,
) -> Result<Option<Effect>, ProbeError> {
    let kinds: Vec<ProbeKind> = ProbeKind::ALL.into_iter().filter(|kind| kind.is_in(&plan.probes)).collect();
    let mut probes = levels(&kinds, Direction::Outgoing);
    probes.extend(levels(&kinds, Direction::Incoming).into_iter().skip(1));
    let mut seen: Vec<SeenPackets> = probes.iter().map(|_| SeenPackets::default()).collect();
    let mut done = 0;
    for round in 0..rounds {
        for place in 0..probes.len() {
            let level = if round % 2 == 0 { place } else { probes.len() - 1 - place };
            let block = ProbePlan { packets: BLOCK_PACKETS, burst: BURST, probes: probes[level], ..plan.clone() };
            let mut is_broken = false;
            let outcome = run(&block, &mut |_| {
                let flow = watch(done as f64 / (rounds * probes.len()) as f64);
                is_broken |= flow.is_break();
                flow
            })?;
            if is_broken {
                return Ok(None);
            }
            seen[level].take(&outcome, plan)?;
            done += 1;
        }
    }
    Ok(Effect::of(&kinds, &seen, rounds))
}

impl SeenPackets {
    fn take(&mut self, outcome: &ProbeOutcome, plan: &ProbePlan) -> Result<(), ProbeError> {
        let ns = |ticks: Ticks| (plan.period * ticks).as_seconds() * 1e9;
        let between = |from, to| outcome.passages.between(from, to).map(|(_, ticks)| ns(ticks));
        if outcome.passages.count(Site::DriverOut) == 0 {
            let reason = outcome.unavailable.join("; ");
            return Err(ProbeError::Collector(format!(
                "the probe effect takes the kernel's tracing at the driver ({reason})"
            )));
        }
        self.out_ns.extend(between(Site::UserSend, Site::DriverOut));
        self.in_ns.extend(between(Site::DriverIn, Site::UserReceive));
        let sends: Vec<f64> = outcome.sends.iter().copied().map(ns).collect();
        self.fast_ns.extend(percentile(&sends, FAST));
        self.send_ns.extend(sends);
        Ok(())
    }
}

impl Effect {
    /// `seen`: with the driver's probes alone, with one more of each kind on the way out, and the same on the way in.
    fn of(kinds: &[ProbeKind], seen: &[SeenPackets], rounds: usize) -> Option<Self> {
        let (outgoing, incoming) = seen.split_at_checked(kinds.len() + 1)?;
        let mut levels = Vec::new();
        for (probes, level) in outgoing.iter().enumerate() {
            let incoming = if probes == 0 { level } else { incoming.get(probes - 1)? };
            let before = probes.checked_sub(1);
            let cost = before.and_then(|before| Cost::of(&seen[before].fast_ns, &level.fast_ns));
            levels.push(EffectLevel {
                probes,
                added: before.and_then(|before| kinds.get(before).copied()),
                out_ns: Spread::of(&level.out_ns)?,
                out_p90_ns: percentile(&level.out_ns, WHISKER)?,
                in_ns: Spread::of(&incoming.in_ns)?,
                in_p90_ns: percentile(&incoming.in_ns, WHISKER)?,
                send_ns: Spread::of(&level.send_ns)?,
                cost,
            });
        }
        Some(Effect { levels, rounds })
    }

    /// What one probe of this kind costs [ns]; 0 where it was not measured.
    pub fn cost_ns(&self, kind: ProbeKind) -> f64 {
        let level = self.levels.iter().find(|level| level.added == Some(kind));
        level.and_then(|level| level.cost).map_or(0.0, |cost| cost.median_ns)
    }

    /// What a probe of this kind costs at a site [ns]. Where eBPF stamps behind the tracing at one tracepoint, what
    /// lies between their stamps is the cost of the tracing at this very place, where the kernel's caches are as they
    /// are there; elsewhere the wall time of sends stands for it, which is that of the first probe on a packet's way
    /// and finds them cold.
    fn cost_at_ns(&self, kind: ProbeKind, site: Site, methods: &Methods) -> f64 {
        let here = methods.agreements.iter().find(|one| one.site == site && kind == ProbeKind::Tracing);
        here.map_or_else(|| self.cost_ns(kind), |one| one.difference_ns.median.max(0.0))
    }

    /// What the probes between a site and the driver cost the delay of the site; `methods` says which sites were
    /// stamped by each kind.
    pub fn correct(&self, site: Site, median_ns: f64, methods: &Methods) -> Corrected {
        let reference = match site.direction() {
            Direction::Outgoing => Site::DriverOut,
            Direction::Incoming => Site::DriverIn,
        };
        // A probe stamps first and costs afterwards, so that the one at the earlier end counts, and the one at the
        // later end does not. A tap's own work belongs to the tap.
        let (from, to) = if site < reference { (site, reference) } else { (reference, site) };
        let (mut probes, mut cost_ns) = (0, 0.0);
        for (kind, sites) in methods.stamped.by_kind() {
            for between in sites.iter().filter(|between| (from..to).contains(between)) {
                if kind == ProbeKind::Tap && between == site {
                    continue;
                }
                probes += 1;
                cost_ns += self.cost_at_ns(kind, between, methods);
            }
        }
        // A location on the wire's side of the reference has a negative delay: behind the driver on the way out, before
        // it on the way in.
        let is_outgoing = site.direction() == Direction::Outgoing;
        let cost_ns = if site != reference && (site > reference) == is_outgoing { -cost_ns } else { cost_ns };
        Corrected { site, median_ns, probes, cost_ns, corrected_ns: median_ns - cost_ns }
    }
}

impl Cost {
    fn of(before_ns: &[f64], after_ns: &[f64]) -> Option<Self> {
        let mut added: Vec<f64> = before_ns.iter().zip(after_ns).map(|(before, after)| after - before).collect();
        added.sort_by(f64::total_cmp);
        let last = added.len().checked_sub(1)?;
        // The median lies between the k-th smallest and the k-th largest with 95 %, k = n/2 - 0.98 sqrt(n) (the
        // binomial's normal form).
        let rank = (added.len() as f64 / 2.0 - 0.98 * (added.len() as f64).sqrt()).floor().max(0.0) as usize;
        let interval_ns = (added[rank.min(last)], added[last - rank.min(last)]);
        Some(Cost { median_ns: Spread::of(&added)?.median, interval_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::MethodAgreement;
    use crate::kind::StampedSites;

    fn seen(send_ns: f64, out_ns: f64) -> SeenPackets {
        // Ten rounds that drift by far more than a probe costs.
        let drift = |round: usize| 500.0 * round as f64;
        SeenPackets {
            out_ns: vec![out_ns; 10],
            in_ns: vec![out_ns; 10],
            send_ns: (0..10).map(|round| send_ns + drift(round)).collect(),
            fast_ns: (0..10).map(|round| send_ns + drift(round) + if round == 3 { 9_000.0 } else { 0.0 }).collect(),
        }
    }

    fn effect() -> Effect {
        let outgoing = [seen(4_000.0, 3_000.0), seen(4_150.0, 3_150.0), seen(4_250.0, 3_250.0), seen(4_500.0, 3_500.0)];
        let incoming = [seen(4_000.0, 3_100.0), seen(4_000.0, 3_200.0), seen(4_000.0, 3_300.0)];
        let levels: Vec<SeenPackets> = outgoing.into_iter().chain(incoming).collect();
        Effect::of(&[ProbeKind::Tracing, ProbeKind::Ebpf, ProbeKind::Tap], &levels, 10).expect("there are delays")
    }

    #[test]
    fn drift_and_a_disturbed_round_do_not_show_in_the_costs() {
        let effect = effect();
        assert_eq!(effect.levels.iter().map(|level| level.probes).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(effect.levels[0].cost, None);
        let median =
            |of: fn(&EffectLevel) -> &Spread| effect.levels.iter().map(|level| of(level).median).collect::<Vec<_>>();
        assert_eq!(median(|level| &level.out_ns), [3_000.0, 3_150.0, 3_250.0, 3_500.0]);
        assert_eq!(median(|level| &level.in_ns), [3_000.0, 3_100.0, 3_200.0, 3_300.0]);
        assert_eq!(effect.cost_ns(ProbeKind::Tracing), 150.0);
        assert_eq!(effect.cost_ns(ProbeKind::Ebpf), 100.0);
        assert_eq!(effect.cost_ns(ProbeKind::Tap), 250.0);
        assert_eq!(effect.cost_ns(ProbeKind::Tc), 0.0, "it was not measured");
        let cost = effect.levels[1].cost.expect("there is one before it");
        assert_eq!(cost.interval_ns, (150.0, 150.0));
    }

    #[test]
    fn slow_sends_of_a_burst_do_not_count() {
        let sends: Vec<f64> = (0..100).map(|number| if number % 3 == 0 { 900.0 } else { 5_000.0 }).collect();
        assert_eq!(percentile(&sends, FAST), Some(900.0));
    }

    #[test]
    fn only_what_lies_between_is_taken_off() {
        let effect = effect();
        let stamped = StampedSites {
            tracing: Sites::TRACED,
            ebpf: Sites::of(&[Site::QueueOut, Site::DriverOut, Site::DriverIn]),
            tap: Sites::of(&[Site::TapOut, Site::TapIn]),
        };
        let methods = Methods { stamped, ..Methods::default() };
        let of = |site| effect.correct(site, 5_000.0, &methods);
        // From user space: tracing and eBPF in the queue, and the tap.
        assert_eq!((of(Site::UserSend).probes, of(Site::UserSend).corrected_ns), (3, 4_500.0));
        assert_eq!((of(Site::TapOut).probes, of(Site::TapOut).corrected_ns), (0, 5_000.0));
        // Behind the driver a delay is negative, and the probes at the driver make it more so.
        assert_eq!(effect.correct(Site::SocketOut, -600.0, &methods).corrected_ns, -350.0);
        // On the way in: both at the driver; then the stack's, the tap, and what lies in the socket.
        assert_eq!((of(Site::SocketIn).probes, of(Site::SocketIn).corrected_ns), (2, 4_750.0));
        assert_eq!(of(Site::UserReceive).probes, 6);
    }

    #[test]
    fn where_both_methods_stamp_the_cost_of_that_place_counts() {
        let stamped = StampedSites { tracing: Sites::DRIVER, ebpf: Sites::DRIVER, tap: Sites::NONE };
        let difference_ns = Spread::of(&[60.0, 70.0, 80.0]).expect("there are some");
        let agreement =
            MethodAgreement { site: Site::DriverIn, count: 3, tracing_ns: 0.0, ebpf_ns: 70.0, difference_ns };
        let methods = Methods { stamped, agreements: vec![agreement], mapping: None };
        let corrected = effect().correct(Site::SocketIn, 5_000.0, &methods);
        assert_eq!((corrected.probes, corrected.cost_ns), (2, 70.0 + 100.0));
    }

    #[test]
    fn before_the_driver_a_delay_on_the_way_in_is_negative() {
        let effect = effect();
        let stamped = StampedSites { tracing: Sites::DRIVER, ebpf: Sites::of(&[Site::XdpIn]), tap: Sites::NONE };
        let methods = Methods { stamped, ..Methods::default() };
        let at_xdp = effect.correct(Site::XdpIn, -2_000.0, &methods);
        assert_eq!((at_xdp.probes, at_xdp.cost_ns, at_xdp.corrected_ns), (1, -100.0, -1_900.0));
        let at_driver = effect.correct(Site::DriverIn, 0.0, &methods);
        assert_eq!((at_driver.probes, at_driver.corrected_ns), (0, 0.0));
    }

    #[test]
    fn every_level_adds_one_probe_on_its_way() {
        let levels = levels(&ProbeKind::ALL, Direction::Incoming);
        assert_eq!(levels.len(), 5);
        assert_eq!(
            (levels[0].tracing, levels[0].ebpf, levels[0].tap),
            (Sites::DRIVER, Sites::NONE, PacketTap::LeftOut)
        );
        assert_eq!(levels[1].tracing, Sites::DRIVER.with(Site::StackIn));
        assert_eq!(levels[3].ebpf.iter().collect::<Vec<_>>(), [Site::StackIn, Site::TcIn]);
        assert!(!ProbeKind::Tc.is_in(&levels[2]) && ProbeKind::Ebpf.is_in(&levels[2]));
        assert_eq!(levels[4].tap, PacketTap::Open);
    }
}
