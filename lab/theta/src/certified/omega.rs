//! The bounds on Omega.

use super::CertifyOptions;
use super::corrections::Corrections;
use super::gather::{ClockStamp, GatheredMessage, GatheredSwitch, JoinedLog};
use crate::analysis::{self, Ratio, SwitchStamping, ThetaMode};
use serde::Serialize;
use std::collections::BTreeMap;

/// A value lies between these, if every clock kept its promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OmegaBounds {
    /// The lower bound.
    pub low: Ratio,
    /// The upper bound.
    pub high: Ratio,
}

/// Bounds on Omega, and how good the clocks were.
#[derive(Clone, Debug, Serialize)]
pub struct Certified {
    /// Omega over first switches; absent without switches.
    pub first: Option<OmegaBounds>,
    /// Omega over all switches.
    pub all: Option<OmegaBounds>,
    /// The largest ratio at any time, first switches.
    pub throughout: Option<OmegaBounds>,
    /// Theta; only when asked for.
    pub theta: Option<OmegaBounds>,
    /// g_r = Theta_ro / Omega over first switches, at least and at most.
    pub g_r_first: Option<(f64, f64)>,
    /// The same over all switches.
    pub g_r_all: Option<(f64, f64)>,
    /// Half the widest range of a difference of two hosts' clocks after tightening, in picoseconds.
    pub half_width_max_ps: i64,
    /// Epochs of the corrections.
    pub epochs: usize,
}

/// A range of a delay, picoseconds.
#[derive(Clone, Copy)]
pub(super) struct DelayRange {
    pub(super) least: i64,
    pub(super) most: i64,
}

pub(super) struct OmegaJudge<'a> {
    pub(super) gathered: &'a JoinedLog,
    pub(super) corrections: &'a Corrections,
    pub(super) stamping: SwitchStamping,
    pub(super) range: analysis::TimeRange,
    /// Clocks of two hosts do not differ by more than this from the truth of each other.
    pub(super) reach_ps: i64,
}

/// A round, and the switches of which one reached it first.
pub(super) struct CertifiedRound {
    pub(super) number: u64,
    /// By their number among the switches.
    pub(super) may_be_first: Vec<usize>,
}

impl Certified {
    pub(super) fn new(gathered: &JoinedLog, corrections: &Corrections, options: &CertifyOptions) -> Self {
        let reach_ps =
            corrections.half_width_max_ps().saturating_mul(4).saturating_add(reach_of_offsets(gathered, corrections));
        let CertifyOptions { stamping, range, .. } = *options;
        let judge = OmegaJudge { gathered, corrections, stamping, range, reach_ps };
        let ratios = judge.ratios();
        let rounds = judge.rounds();
        let first = judge.first(&rounds, &ratios);
        let all =
            largest(ratios.iter().enumerate().filter(|&(index, _)| judge.counts(index)).filter_map(|(_, &of)| of));
        Certified {
            throughout: judge.throughout(&rounds, first),
            theta: (options.theta == ThetaMode::Compute).then(|| judge.theta()).flatten(),
            g_r_first: first.and_then(|omega| judge.g_r(judge.relevant_at_first(&rounds), omega)),
            g_r_all: all.and_then(|omega| judge.g_r(judge.relevant_at_all(), omega)),
            first,
            all,
            half_width_max_ps: corrections.half_width_max_ps(),
            epochs: corrections.epochs(),
        }
    }
}

/// How far the clocks of two hosts may be apart: what `between` makes of stamps that show the same time.
fn reach_of_offsets(gathered: &JoinedLog, corrections: &Corrections) -> i64 {
    let hosts =
        || gathered.turns.iter().map(|turn| turn.at).chain(gathered.messages.iter().map(|message| message.sent));
    let mut apart = 0;
    let mut one_of_host = BTreeMap::new();
    for stamp in hosts() {
        one_of_host.entry(stamp.host).or_insert(stamp);
    }
    for &from in one_of_host.values() {
        for &to in one_of_host.values() {
            for clock_ps in corrections.edges_ps() {
                let (least, most) = corrections.between(ClockStamp { clock_ps, ..from }, ClockStamp { clock_ps, ..to });
                apart = apart.max(least.saturating_abs()).max(most.saturating_abs());
            }
        }
    }
    apart
}

/// The largest of values that are known by bounds.
pub(super) fn largest(bounds: impl Iterator<Item = OmegaBounds>) -> Option<OmegaBounds> {
    bounds.reduce(|a, b| OmegaBounds { low: a.low.max(b.low), high: a.high.max(b.high) })
}

impl OmegaJudge<'_> {
    /// Whether a switch lies in the range.
    pub(super) fn counts(&self, index: usize) -> bool {
        self.range.holds(self.gathered.turns[index].at.clock_ps)
    }

    pub(super) fn delay(&self, message: &GatheredMessage) -> DelayRange {
        let (least, most) = self.corrections.between(message.sent, message.perceived);
        DelayRange { least: least.max(1), most: most.max(1) }
    }

    /// tau_r- of one switch: an order statistic rises with each of its delays, so its bounds are those of the bounds.
    pub(super) fn relevant(&self, turn: &GatheredSwitch) -> Option<DelayRange> {
        let delays: Vec<DelayRange> = turn.contributors.iter().map(|message| self.delay(message)).collect();
        let rank = delays.len().min(self.gathered.threshold).checked_sub(1)?;
        let ranked = |bound: fn(&DelayRange) -> i64| {
            let mut bounds: Vec<i64> = delays.iter().map(bound).collect();
            bounds.sort_unstable();
            bounds[rank]
        };
        Some(DelayRange { least: ranked(|delay| delay.least), most: ranked(|delay| delay.most) })
    }

    /// Bounds on tau+(e) / tau_r-(e) for each switch; none for those by the catch-up rule.
    fn ratios(&self) -> Vec<Option<OmegaBounds>> {
        let turns = &self.gathered.turns;
        let relevant: Vec<Option<DelayRange>> = turns.iter().map(|turn| self.relevant(turn)).collect();
        let mut active: Vec<&GatheredMessage> = Vec::new();
        let mut coming = self.gathered.messages.iter().peekable();
        let mut ratios = Vec::with_capacity(turns.len());
        for (index, turn) in turns.iter().enumerate() {
            let near = turn.at.clock_ps.saturating_add(self.reach_ps);
            let gone = turn.at.clock_ps.saturating_sub(self.reach_ps);
            while let Some(message) = coming.next_if(|message| message.sent.clock_ps <= near) {
                active.push(message);
            }
            active.retain(|message| message.perceived.clock_ps >= gone);
            let bounds = relevant[index].map(|own| {
                let (certain, possible) = self.longest(turn.at, &active);
                let slowest = self.slowest_at_once(index, &relevant).max(own.most);
                let over =
                    |longest: i64, relevant: i64| Ratio::of(longest, relevant).unwrap_or(Ratio::ONE).max(Ratio::ONE);
                OmegaBounds { low: over(certain, slowest), high: over(possible, own.least) }
            });
            ratios.push(bounds);
        }
        ratios
    }

    /// The largest delay that is certainly in transit, at least; and that is possibly in transit, at most. 0 where
    /// there is none.
    fn longest(&self, at: ClockStamp, active: &[&GatheredMessage]) -> (i64, i64) {
        let (mut certain, mut possible) = (0, 0);
        for message in active {
            let delay = self.delay(message);
            let (since_least, since_most) = self.corrections.between(message.sent, at);
            let (left_least, left_most) = self.corrections.between(at, message.perceived);
            let strict = i64::from(self.stamping == SwitchStamping::BeforeBroadcast);
            if since_most >= strict && left_most > 0 {
                possible = possible.max(delay.most);
            }
            if since_least >= strict && left_least > 0 {
                certain = certain.max(delay.least);
            }
        }
        (certain, possible)
    }

    /// tau_r- is the maximum over all that switch at the same time: at most the largest over those that may.
    pub(super) fn slowest_at_once(&self, index: usize, relevant: &[Option<DelayRange>]) -> i64 {
        let turns = &self.gathered.turns;
        let at = turns[index].at;
        let near = |other: &usize| (turns[*other].at.clock_ps - at.clock_ps).abs() <= self.reach_ps;
        let later = (index + 1..turns.len()).take_while(near);
        let earlier = (0..index).rev().take_while(near);
        let at_once = |other: &usize| {
            let (least, most) = self.corrections.between(at, turns[*other].at);
            least <= 0 && most >= 0
        };
        later
            .chain(earlier)
            .filter(at_once)
            .filter_map(|other| relevant[other])
            .map(|range| range.most)
            .max()
            .unwrap_or(0)
    }

    /// Omega over first switches. Which process was first is not always certain: the true one is among those that are
    /// not certainly later than another, so its ratio is at least the least and at most the most of theirs. Where it
    /// may be one that lies outside the range, the round may give no ratio at all.
    fn first(&self, rounds: &[CertifiedRound], ratios: &[Option<OmegaBounds>]) -> Option<OmegaBounds> {
        let of_round = |round: &CertifiedRound| {
            round.may_be_first.iter().find(|&&index| self.counts(index))?;
            let bounds = round.may_be_first.iter().map(|&index| ratios[index].filter(|_| self.counts(index)));
            // A switch without n-f messages has no ratio, and then only that a ratio is at least 1 is known.
            bounds
                .map(|bounds| bounds.unwrap_or(OmegaBounds { low: Ratio::ONE, high: Ratio::ONE }))
                .reduce(|a, b| OmegaBounds { low: a.low.min(b.low), high: a.high.max(b.high) })
        };
        largest(rounds.iter().filter_map(of_round))
    }

    /// The rounds, with those that may have reached each first.
    fn rounds(&self) -> Vec<CertifiedRound> {
        let mut reaching: BTreeMap<u64, BTreeMap<usize, usize>> = BTreeMap::new();
        for (index, turn) in self.gathered.turns.iter().enumerate() {
            for round in turn.from + 1..=turn.to {
                reaching.entry(round).or_default().entry(turn.process).or_insert(index);
            }
        }
        let of_round = |(number, candidates): (u64, BTreeMap<usize, usize>)| {
            let is_preceded = |&one: &usize| candidates.values().any(|&other| self.is_before(other, one));
            let may_be_first = candidates.values().copied().filter(|one| !is_preceded(one)).collect();
            CertifiedRound { number, may_be_first }
        };
        reaching.into_iter().map(of_round).collect()
    }

    /// Whether a switch was certainly before another.
    pub(super) fn is_before(&self, one: usize, other: usize) -> bool {
        let turns = &self.gathered.turns;
        self.corrections.between(turns[one].at, turns[other].at).0 > 0
    }
}
