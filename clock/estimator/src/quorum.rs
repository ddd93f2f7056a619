//! Which servers to believe, from what each of them proves about the true time, and what that proves together.
//!
//! Each server gives a closed interval that holds the true time as long as the server's claim about itself is true.
//! Where more than half of the electorate share an instant, that instant can be the true time with a minority wrong. A
//! server that shares none of these instants is a falseticker. The intersection is that of K. Marzullo (Maintaining the
//! Time in a Distributed System, thesis, Stanford University, 1984), the ancestor of RFC 5905 section 11.2.1, over
//! proven intervals instead of midpoints.
//!
//! Two intervals come out of a vote ([`vote`]). The strict one holds the true time with any few false claims; the
//! believed one is what all believed servers share. `bounds` makes error bounds of them that hold between votes.

mod bounds;
mod selection;
#[cfg(test)]
mod tests;

pub use bounds::{VotedBounds, growth_beside, interval_growth};
pub use selection::{ServerClock, select, without_majority};

use crate::ProvenInterval;
use alloc::vec::Vec;
use ffclock_units::{GrowthRate, Moment, Period, Tai};

/// How a server's interval stands to those of the majorities. A majority is a set of more than half of the electorate
/// whose intervals share an instant, and to which no further server can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Belief {
    /// It belongs to every majority.
    Truechimer,
    /// It belongs to one majority and not to another: no vote can say which of them is wrong.
    Undecided,
    /// It belongs to no majority: its claim about itself is false.
    Falseticker,
}

/// A server with a vote, at one counter reading that is common to all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voter {
    /// What its exchanges prove of the true time.
    pub interval: ProvenInterval,
    /// The period of its clock.
    pub period: Period,
    /// The largest relative error of `period` from that reading on.
    pub growth: GrowthRate,
    /// Whether trusted servers, of which this is one, decide before all others.
    pub is_trusted: bool,
}

/// Servers without an interval that have a vote all the same, because their first answer is still awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unheard {
    /// Trusted ones.
    pub trusted: usize,
    /// All others.
    pub others: usize,
}

/// What the operator demands of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VotingRules {
    /// How many servers may be false at most; `None` for the largest minority, which it never exceeds.
    pub tolerate: Option<usize>,
    /// How many servers must share an instant at least, beside a majority.
    pub quorum: usize,
}

impl Default for VotingRules {
    /// A majority decides.
    fn default() -> Self {
        VotingRules { tolerate: None, quorum: 1 }
    }
}

impl VotingRules {
    /// How many of `servers` may be false: never half of them.
    pub fn tolerated(&self, servers: usize) -> usize {
        let minority = servers.saturating_sub(1) / 2;
        self.tolerate.map_or(minority, |most| most.min(minority))
    }

    /// How many of `servers` must agree, so that those which may be false are not needed.
    fn needed(&self, servers: usize) -> usize {
        servers.saturating_sub(self.tolerated(servers))
    }
}

/// How a vote ended that has a majority.
#[derive(Clone, Debug, PartialEq)]
pub struct VoteResult {
    /// The belief in each voter, in their order.
    pub beliefs: Vec<Belief>,
    /// Holds the true time if no more than `tolerated` of the `deciders` are false, in whatever way: the smallest and
    /// the largest instant that all but `tolerated` of them share.
    pub strict: ProvenInterval,
    /// Holds the true time if no believed server is false by less than the others can see: what all truechimers share,
    /// within `strict`.
    pub believed: ProvenInterval,
    /// How many voters decided: the trusted ones where there are any, otherwise all.
    pub deciders: usize,
    /// How many of them may be false.
    pub tolerated: usize,
}

/// Counts the votes. `None` without a majority of the electorate, which is the voters and the unheard, or where fewer
/// than the quorum agree.
///
/// Where there are trusted servers, these alone decide, by a majority of theirs, and the others are judged by what the
/// trusted ones leave possible: a server that contradicts it is a falseticker, and the rest vote within it, where every
/// believed trusted server agrees with all.
///
/// Where the liars are a minority of the deciders and each false interval misses that of at least one honest server,
/// every truechimer's interval holds the true time. One more server that leaves a majority, and the number that is
/// tolerated, never widens `strict`: what all but f of n + 1 servers share, all but f of the n share too. Nor does it
/// widen `believed` where no server is false; a false one can be heard again when its opponent meets another.
pub fn vote(voters: &[Voter], unheard: Unheard, rules: &VotingRules) -> Option<VoteResult> {
    let trust = unheard.trusted > 0 || voters.iter().any(|voter| voter.is_trusted);
    let deciders: Vec<ProvenInterval> =
        voters.iter().filter(|voter| voter.is_trusted || !trust).map(|voter| voter.interval).collect();
    let silent = if trust { unheard.trusted } else { unheard.others };
    let judged = judge(&deciders, rules.needed(deciders.len() + silent))?;
    let tolerated = rules.tolerated(deciders.len());
    let strict = shared_by(&deciders, deciders.len() - tolerated)?;
    let decision = VoteDecision { shared: judged.shared.meet(&strict)?, ..judged };
    let VoteDecision { beliefs, shared, agreeing } =
        if trust { decision.extended(voters, unheard.others, rules) } else { decision };
    debug_assert!(beliefs.contains(&Belief::Truechimer), "two majorities share a member");
    let result = VoteResult { beliefs, strict, believed: shared, deciders: deciders.len(), tolerated };
    (agreeing >= rules.quorum).then_some(result)
}

/// The belief in each server, in the order of `intervals`, all at the same counter reading, by a plain majority of the
/// electorate, which is these servers and `unheard` others that have no interval yet. `None` without one.
pub fn beliefs(intervals: &[ProvenInterval], unheard: usize) -> Option<Vec<Belief>> {
    let least = VotingRules::default().needed(intervals.len() + unheard);
    judge(intervals, least).map(|decision| decision.beliefs)
}

/// What a group of servers decided.
struct VoteDecision {
    beliefs: Vec<Belief>,
    /// What all truechimers share.
    shared: ProvenInterval,
    /// How many servers share the instant that most of them share.
    agreeing: usize,
}

/// Judges servers of which at least `least`, more than half, must share an instant.
///
/// With a majority there is always a truechimer: two majorities share a member, and since the sets are of intervals,
/// what the outermost majorities share belongs to all between them.
fn judge(intervals: &[ProvenInterval], least: usize) -> Option<VoteDecision> {
    let is_majority_at = |instant| sharing(intervals, instant).count() >= least && is_largest_at(intervals, instant);
    let majorities: Vec<Moment<Tai>> =
        intervals.iter().map(|interval| interval.earliest).filter(|&instant| is_majority_at(instant)).collect();
    let agreeing = majorities.iter().map(|&instant| sharing(intervals, instant).count()).max()?;
    let belief = |interval: &ProvenInterval| match majorities.iter().filter(|&&at| interval.contains(at)).count() {
        0 => Belief::Falseticker,
        shared if shared == majorities.len() => Belief::Truechimer,
        _ => Belief::Undecided,
    };
    let beliefs: Vec<Belief> = intervals.iter().map(belief).collect();
    let truechimers = intervals.iter().zip(&beliefs).filter(|(_, belief)| **belief == Belief::Truechimer);
    let mut shared = truechimers.map(|(interval, _)| *interval);
    let first = shared.next()?;
    let shared = shared.try_fold(first, |shared, interval| shared.meet(&interval))?;
    Some(VoteDecision { beliefs, shared, agreeing })
}

impl VoteDecision {
    /// The decision of the trusted servers, extended to all `voters`.
    ///
    /// Every believed trusted server has the whole of what they share in its interval, so it belongs to every majority
    /// of this second vote (intervals that meet one another in pairs share an instant).
    fn extended(&self, voters: &[Voter], unheard: usize, rules: &VotingRules) -> VoteDecision {
        debug_assert_eq!(self.beliefs.len(), voters.iter().filter(|voter| voter.is_trusted).count());
        let trusted = self.beliefs.iter().filter(|belief| **belief == Belief::Truechimer).count();
        let mut within: Vec<ProvenInterval> = (0..trusted).map(|_| self.shared).collect();
        let untrusted = voters.iter().filter(|voter| !voter.is_trusted);
        within.extend(untrusted.filter_map(|voter| voter.interval.meet(&self.shared)));
        let judged = judge(&within, rules.needed(within.len() + unheard));
        let mut own = self.beliefs.iter().copied();
        let mut others = judged.iter().flat_map(|judged| judged.beliefs.iter().copied()).skip(trusted);
        let belief = |voter: &Voter| match voter.interval.meet(&self.shared) {
            _ if voter.is_trusted => own.next().unwrap_or(Belief::Undecided),
            None => Belief::Falseticker,
            Some(_) => others.next().unwrap_or(Belief::Undecided),
        };
        VoteDecision {
            beliefs: voters.iter().map(belief).collect(),
            shared: judged.as_ref().map_or(self.shared, |judged| judged.shared),
            agreeing: judged.map_or(trusted, |judged| judged.agreeing),
        }
    }
}

fn sharing(intervals: &[ProvenInterval], instant: Moment<Tai>) -> impl Iterator<Item = &ProvenInterval> {
    intervals.iter().filter(move |interval| interval.contains(instant))
}

/// Whether no interval can be added to those that share `instant`, where one of them begins: none begins between it and
/// the earliest of their ends.
fn is_largest_at(intervals: &[ProvenInterval], instant: Moment<Tai>) -> bool {
    let end = sharing(intervals, instant).map(|interval| interval.latest).min();
    !intervals.iter().any(|other| instant < other.earliest && end.is_some_and(|end| other.earliest <= end))
}

fn shared_by(intervals: &[ProvenInterval], least: usize) -> Option<ProvenInterval> {
    let ends: Vec<[Moment<Tai>; 2]> = intervals.iter().map(|interval| [interval.earliest, interval.latest]).collect();
    covered(&ends, least).map(|[earliest, latest]| ProvenInterval { earliest, latest })
}

/// The smallest and the largest point that at least `least` of these closed intervals cover; `None` without such a
/// point (Marzullo 1984).
fn covered<P: PartialOrd + Copy>(intervals: &[[P; 2]], least: usize) -> Option<[P; 2]> {
    debug_assert!(least > 0, "nothing covers everything");
    let is_covered = |point: &P| {
        let covering = |[low, high]: &&[P; 2]| low <= point && point <= high;
        intervals.iter().filter(covering).count() >= least
    };
    let lows = intervals.iter().map(|[low, _]| *low).filter(is_covered);
    let highs = intervals.iter().map(|[_, high]| *high).filter(is_covered);
    let low = lows.reduce(|least, low| if low < least { low } else { least })?;
    let high = highs.reduce(|most, high| if high > most { high } else { most })?;
    Some([low, high])
}
