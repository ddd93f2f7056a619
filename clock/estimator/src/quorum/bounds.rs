//! From the intervals of a vote to bounds that hold until the next one, and beyond.
//!
//! At the vote the true time lies in an interval, so a clock is off by no more than the distance to the farther end.
//! From then on the error changes by no more than the two rates differ. The true rate of the one counter lies within
//! what each honest server proves of it, so the interval of true *rates* follows from the servers' claims in the same
//! way as the interval of true times. The bound at an age is the first, plus the age times the second.

use super::{Belief, VoteResult, Voter, covered, shared_by};
use crate::ProvenInterval;
use crate::tuning::quorum::RATE_ROUNDING;
use alloc::vec::Vec;
use ffclock_units::{Bound, Estimate, GrowingBound, GrowthRate, Moment, Period, Rate, Tai};

/// How far a clock can be off, by two premises. `believed` is never larger than `strict`, now and later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotedBounds {
    /// Holds as long as no believed server is false by less than the others can see.
    pub believed: GrowingBound,
    /// Holds with as many false servers as are tolerated, whatever these claim.
    pub strict: GrowingBound,
}

impl VoteResult {
    /// The bounds of `clock` as by [`VoteResult::bounds`], but none is narrower by what a suspect claims: the believed
    /// one is that of the others, and the strict one holds without the suspects as well as with them, with as many
    /// false servers. Where the others are no majority of the truechimers, one that leads the clock away may have made
    /// suspects of those that are right, so what these share is covered too. Where no believed or no deciding voter is
    /// left without them, they count like the others.
    pub fn bounds_beside(&self, suspects: &[bool], clock: &Estimate, voters: &[Voter]) -> VotedBounds {
        let all = self.bounds(clock, voters);
        let Some((vote, rest)) = self.without(suspects, voters) else { return all };
        let beside = vote.bounds(clock, &rest);
        let others: Vec<bool> = suspects.iter().map(|is_suspect| !is_suspect).collect();
        let is_minority = 2 * vote.believed_deciders(&rest) <= self.believed_deciders(voters);
        let of_suspects = self.without(&others, voters).filter(|_| is_minority);
        let believed = of_suspects.map_or(beside.believed, |(vote, suspects)| {
            larger(beside.believed, vote.bounds(clock, &suspects).believed)
        });
        VotedBounds { believed, strict: larger(believed, larger(beside.strict, all.strict)) }
    }

    /// How many of the believed voters decide: none of the others can be suspect, so they acquit no one.
    fn believed_deciders(&self, voters: &[Voter]) -> usize {
        let decides = deciding(voters);
        let believed = voters.iter().zip(&self.beliefs).filter(|(_, belief)| **belief == Belief::Truechimer);
        believed.filter(|(voter, _)| decides(voter)).count()
    }

    /// What all truechimers share that are not suspect, or all where none would be left.
    pub fn believed_beside(&self, suspects: &[bool], voters: &[Voter]) -> ProvenInterval {
        self.without(suspects, voters).map_or(self.believed, |(vote, _)| vote.believed)
    }

    /// This vote and its voters without those that are suspect, if some are. Who is believed stays as it is, and so
    /// does the number of false servers that is tolerated, as long as more are left.
    fn without(&self, suspects: &[bool], voters: &[Voter]) -> Option<(VoteResult, Vec<Voter>)> {
        let decides = deciding(voters);
        let kept = || voters.iter().zip(&self.beliefs).zip(suspects).filter(|(_, is_suspect)| !**is_suspect);
        let rest: Vec<Voter> = kept().map(|((voter, _), _)| *voter).collect();
        if rest.len() == voters.len() {
            return None;
        }
        let beliefs: Vec<Belief> = kept().map(|((_, belief), _)| *belief).collect();
        let deciders: Vec<ProvenInterval> =
            rest.iter().filter(|voter| decides(voter)).map(|voter| voter.interval).collect();
        let tolerated = self.tolerated.min(deciders.len().checked_sub(1)?);
        let strict = shared_by(&deciders, deciders.len() - tolerated)?;
        let truechimers = rest.iter().zip(&beliefs).filter(|(_, belief)| **belief == Belief::Truechimer);
        let mut shared = truechimers.map(|(voter, _)| voter.interval);
        let first = shared.next()?;
        let believed = shared.try_fold(first, |shared, interval| shared.meet(&interval))?.meet(&strict)?;
        Some((VoteResult { beliefs, strict, believed, deciders: deciders.len(), tolerated }, rest))
    }

    /// The bounds of `clock`, that of a believed server, at the counter reading that `voters` voted about.
    ///
    /// `believed` is never wider than the clock's own bound, at any later reading, as long as that bound reaches a time
    /// that the believed servers allow, and these allow a rate in common. Where the bound does not reach, the clock's
    /// own claim is disproven and only theirs counts; where their rates contradict one another, `believed` grows as
    /// `strict` does. A single voter leaves the clock's bound as it is, if it has one.
    pub fn bounds(&self, clock: &Estimate, voters: &[Voter]) -> VotedBounds {
        let own = clock.growing_bound();
        if voters.len() == 1 && own.bound < Bound::UNKNOWN {
            return VotedBounds { believed: own, strict: own };
        }
        let strict = GrowingBound {
            bound: farther_end(&self.strict, clock.time),
            growth: self.strict_growth(clock.period, voters),
        };
        let shared_growth = self.believed_growth(clock.period, voters).map(|growth| growth.min(own.growth));
        let claimed = ProvenInterval::around(clock.time, own.bound);
        let own_bound = claimed.meet(&self.believed).map_or(Bound::UNKNOWN, |_| own.bound);
        let believed = GrowingBound {
            bound: farther_end(&self.believed, clock.time).min(own_bound).min(strict.bound),
            growth: shared_growth.map_or(strict.growth, |growth| growth.min(strict.growth)),
        };
        let published = ProvenInterval::around(clock.time, believed.bound);
        debug_assert!(
            published.meet(&self.believed).is_some(),
            "no bound excludes all that the believed servers allow"
        );
        VotedBounds { believed, strict }
    }

    /// How fast a clock at `period` can leave the true time while no believed server is false: the farther end of the
    /// rates that all of them allow, which one more honest server can only narrow. `None` where they allow none in
    /// common although they share a time: one of them is false, and it may be any, the clock's own included.
    fn believed_growth(&self, period: Period, voters: &[Voter]) -> Option<GrowthRate> {
        let believed = voters.iter().zip(&self.beliefs).filter(|(_, belief)| **belief == Belief::Truechimer);
        let rates: Vec<[f64; 2]> = believed.map(|(voter, _)| rates_beside(period, voter)).collect();
        covered(&rates, rates.len().max(1)).map(reach)
    }

    /// How fast a clock at `period` can leave the true time while no more than the tolerated number is false: the
    /// farther end of the rates that all other deciders allow. Where the rates have no such place although the times
    /// have one, more than that is false, and every rate is covered.
    fn strict_growth(&self, period: Period, voters: &[Voter]) -> GrowthRate {
        let decides = deciding(voters);
        let deciders = voters.iter().filter(|voter| decides(voter));
        let rates: Vec<[f64; 2]> = deciders.map(|voter| rates_beside(period, voter)).collect();
        debug_assert!(rates.len() == self.deciders && self.tolerated < self.deciders, "the voters of this vote");
        let least = self.deciders.saturating_sub(self.tolerated).max(1);
        let range = covered(&rates, least).or_else(|| covered(&rates, 1));
        reach(range.unwrap_or([f64::NAN; 2]))
    }
}

/// The bound that is never smaller than either of these.
fn larger(one: GrowingBound, other: GrowingBound) -> GrowingBound {
    GrowingBound { bound: one.bound.max(other.bound), growth: one.growth.max(other.growth) }
}

/// Which of these voters decide: the trusted ones, or all where none is trusted.
fn deciding(voters: &[Voter]) -> impl Fn(&Voter) -> bool + use<> {
    let trust = voters.iter().any(|voter| voter.is_trusted);
    move |voter| voter.is_trusted || !trust
}

/// How far `time` is at most from a true time within `interval`, wherever it lies itself.
fn farther_end(interval: &ProvenInterval, time: Moment<Tai>) -> Bound {
    Bound::of(interval.farthest_from(time))
}

/// The range of the true rate against a clock at `period`, as a voter proves it [s/s].
fn rates_beside(period: Period, voter: &Voter) -> [f64; 2] {
    range_beside(period, voter.period, voter.growth)
}

fn range_beside(period: Period, other: Period, other_growth: GrowthRate) -> [f64; 2] {
    let apart = other.relative_to(period).as_fraction();
    let growth = other_growth.as_rate().as_fraction() * (1.0 + apart.abs()) + RATE_ROUNDING;
    [apart - growth, apart + growth]
}

/// How fast a clock leaves the true time at most, if the true rate against its own lies between these [s/s].
fn reach([low, high]: [f64; 2]) -> GrowthRate {
    GrowthRate::of(Rate::from_fraction(low.abs().max(high.abs())))
}

/// How fast an interval measured at `period` can leave the true one, by what each of the believed servers proves of the
/// rate: a period and its largest relative error. The narrowest counts, as long as all of them share a rate; where they
/// do not, one of them is false, and all are covered. `None` without any.
pub fn interval_growth(period: Period, proven: impl Iterator<Item = (Period, GrowthRate)>) -> Option<GrowthRate> {
    let proven: Vec<(Period, GrowthRate)> = proven.collect();
    let rates: Vec<[f64; 2]> = proven.iter().map(|(other, growth)| range_beside(period, *other, *growth)).collect();
    let growths = proven.iter().map(|(other, growth)| growth_beside(period, *other, *growth));
    let shares_a_rate = covered(&rates, rates.len().max(1)).is_some();
    if shares_a_rate { growths.min() } else { growths.max() }
}

/// How fast the bound of a clock at `period` grows when it is to cover another clock from now on: by what the two rates
/// differ, and by the growth of the other's bound, which counts by the other's time.
pub fn growth_beside(period: Period, other: Period, other_growth: GrowthRate) -> GrowthRate {
    let apart = other.relative_to(period).abs().as_fraction();
    let growth = other_growth.as_rate().as_fraction() * (1.0 + apart);
    GrowthRate::of(Rate::from_fraction(apart + growth + RATE_ROUNDING))
}
