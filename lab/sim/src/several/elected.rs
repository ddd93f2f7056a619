//! The clock of the selected server: an estimator for each, a vote with their proven intervals, and of the
//! truechimers the estimate with the smallest bound.
//!
//! The vote is the product's own (`ffclock_estimator::beliefs`). What follows from it repeats the rules of the daemon
//! (`keeper/electing.rs`, `selection.rs`), which stand among its sockets and timers.

use super::{Credence, MultiServerClock, ServerChange};
use ffclock_estimator::{
    Belief, ClassicConfig, Estimator, Learned, LearnedConfig, ProvenInterval, Verdict, Voter, beliefs,
};
use ffclock_units::{
    Bound, Counter, Estimate, Exchange, GrowthRate, Period, Rate, Span, StandardUncertainty, Status, TaiReading,
};

/// How long servers without an interval keep their vote, how long a first majority waits for them, and the longest time
/// between two votes.
const UNHEARD_FOR: Span = Span::from_secs(16);
const HEARD_WITHIN: Span = Span::from_secs(4);
const HEARTBEAT: Span = Span::from_secs(20);
/// A challenger's bound must be smaller by a quarter of the holder's.
const MARGIN_SHIFT: u32 = 2;
/// More than the rounding error of the ratio of two periods as a float [s/s].
const RATE_ROUNDING: f64 = 1e-14;

/// One server's clock.
struct Elector {
    estimator: Learned,
    is_asked: bool,
    is_reachable: bool,
    credence: Credence,
}

/// A server's clock at the moment of a vote.
#[derive(Clone, Copy)]
struct Ballot {
    server: usize,
    now: Estimate,
    proven: ProvenInterval,
}

/// The clock.
pub(crate) struct Elected {
    electors: Vec<Elector>,
    nominal: Period,
    /// Since when servers have had intervals.
    begin: Option<Counter>,
    selected: Option<usize>,
    /// What was published when a majority last agreed.
    agreed: Option<Estimate>,
    published: Option<Estimate>,
    voted: Option<Counter>,
}

impl Elected {
    /// A clock of this many servers, none of which has answered.
    pub(crate) fn new(learned: &LearnedConfig, nominal: Period, servers: usize) -> Self {
        let elector = |_| Elector {
            estimator: Learned::new(learned.clone(), ClassicConfig::default(), nominal, None),
            is_asked: false,
            is_reachable: false,
            credence: Credence::Unknown,
        };
        let electors = (0..servers).map(elector).collect();
        Elected { electors, nominal, begin: None, selected: None, agreed: None, published: None, voted: None }
    }

    /// Whether a majority has ever agreed.
    pub(super) fn has_published(&self) -> bool {
        self.agreed.is_some()
    }

    /// A server's own estimator.
    pub(super) fn estimator(&self, server: usize) -> Option<&Learned> {
        self.electors.get(server).map(|elector| &elector.estimator)
    }

    /// The servers that vote at `counter`.
    pub(super) fn voters(&self, counter: Counter) -> Vec<Voter> {
        let voter = |ballot: Ballot| {
            let Estimate { period, bound_growth: growth, .. } = ballot.now;
            Voter { interval: ballot.proven, period, growth, is_trusted: false }
        };
        self.ballots(counter).into_iter().map(voter).collect()
    }

    fn since(&self, earlier: Counter, counter: Counter) -> Span {
        self.nominal * (counter - earlier)
    }

    fn ballots(&self, counter: Counter) -> Vec<Ballot> {
        let asked = self.electors.iter().enumerate().filter(|(_, elector)| elector.is_asked);
        let ballot = |(server, elector): (usize, &Elector)| {
            let (estimate, proven) = (elector.estimate()?, elector.estimator.proven(counter)?);
            Some(Ballot { server, now: carried(&estimate, counter), proven })
        };
        asked.filter_map(ballot).collect()
    }

    /// Lets the servers vote, and publishes what follows.
    fn vote(&mut self, counter: Counter) {
        self.voted = Some(counter);
        let ballots = self.ballots(counter);
        let believed = self.count(&ballots, counter);
        self.selected = select(&believed, self.selected);
        let followed = self.selected.and_then(|server| self.electors.get(server)).and_then(Elector::estimate);
        self.agreed = followed.or(self.agreed);
        self.published = match (followed, self.agreed) {
            (None, Some(agreed)) => Some(without_majority(&carried(&agreed, counter), &ballots)),
            (followed, _) => followed,
        };
    }

    /// Counts the votes; the ballots that may be followed.
    fn count(&mut self, ballots: &[Ballot], counter: Counter) -> Vec<Ballot> {
        let has_vote = |one: &&Ballot| one.now.status != Status::Unsynchronised && one.now.bound < Bound::UNKNOWN;
        let voters: Vec<Ballot> = ballots.iter().filter(has_vote).copied().collect();
        let intervals: Vec<ProvenInterval> = voters.iter().map(|voter| voter.proven).collect();
        let unheard = if voters.is_empty() { 0 } else { self.unheard(counter) };
        let verdict = beliefs(&intervals, unheard).filter(|_| !self.may_yet_turn(unheard, counter));
        let verdict = verdict.unwrap_or_else(|| vec![Belief::Undecided; voters.len()]);
        self.electors.iter_mut().for_each(|elector| elector.credence = Credence::Unknown);
        for (voter, belief) in voters.iter().zip(&verdict) {
            if let Some(elector) = self.electors.get_mut(voter.server) {
                elector.credence = credence(*belief);
            }
        }
        voters.into_iter().filter(|voter| self.credence(voter.server) == Credence::Believed).collect()
    }

    /// How many servers without an interval have a vote.
    fn unheard(&mut self, counter: Counter) -> usize {
        let begin = *self.begin.get_or_insert(counter);
        let silent = |elector: &&Elector| elector.is_asked && elector.estimator.proven(counter).is_none();
        let silent = self.electors.iter().filter(silent).count();
        if self.since(begin, counter) < UNHEARD_FOR { silent } else { 0 }
    }

    /// Whether it is too early for a first majority.
    fn may_yet_turn(&self, unheard: usize, counter: Counter) -> bool {
        let is_early = self.begin.is_none_or(|begin| self.since(begin, counter) < HEARD_WITHIN);
        self.agreed.is_none() && unheard > 0 && is_early
    }
}

impl Elector {
    /// A server that does not answer leaves its clock in holdover.
    fn estimate(&self) -> Option<Estimate> {
        let mut estimate = self.estimator.estimate()?;
        if !self.is_reachable && estimate.status != Status::Unsynchronised {
            estimate.status = Status::Holdover;
        }
        Some(estimate)
    }
}

impl MultiServerClock for Elected {
    fn take(&mut self, server: usize, exchange: &Exchange) {
        let Some(elector) = self.electors.get_mut(server) else { return };
        let outcome = elector.estimator.update(exchange);
        if !matches!(outcome.verdict, Verdict::Rejected(_)) {
            self.vote(exchange.received.counter);
        }
    }

    fn note(&mut self, server: usize, change: ServerChange, counter: Counter) {
        let Some(elector) = self.electors.get_mut(server) else { return };
        match change {
            ServerChange::Joined => {
                elector.is_asked = true;
                if self.begin.is_some() {
                    self.begin = Some(counter);
                }
            }
            ServerChange::Left => {
                elector.is_asked = false;
                elector.estimator.restart();
                self.selected = self.selected.filter(|selected| *selected != server);
                self.vote(counter);
            }
            ServerChange::Reachable => elector.is_reachable = true,
            ServerChange::Unreachable => elector.is_reachable = false,
        }
    }

    fn broke(&mut self) {
        for elector in &mut self.electors {
            elector.estimator.restart();
            (elector.is_reachable, elector.credence) = (false, Credence::Unknown);
        }
        (self.begin, self.selected, self.agreed, self.published, self.voted) = (None, None, None, None, None);
    }

    fn estimate(&mut self, counter: Counter) -> Option<Estimate> {
        if self.voted.is_some_and(|voted| self.since(voted, counter) > HEARTBEAT) {
            self.vote(counter);
        }
        self.published
    }

    fn credence(&self, server: usize) -> Credence {
        self.electors.get(server).map(|elector| elector.credence).unwrap_or_default()
    }
}

fn credence(belief: Belief) -> Credence {
    match belief {
        Belief::Truechimer => Credence::Believed,
        Belief::Undecided => Credence::Undecided,
        Belief::Falseticker => Credence::Disbelieved,
    }
}

/// The estimate at `counter`, with its errors as they have grown until then.
fn carried(estimate: &Estimate, counter: Counter) -> Estimate {
    let TaiReading { time, uncertainty, bound, .. } = estimate.at(counter);
    Estimate { counter, time, uncertainty, bound, ..*estimate }
}

/// The clock while the servers disagree: on its oscillator, with a bound that covers every server.
fn without_majority(agreed: &Estimate, ballots: &[Ballot]) -> Estimate {
    let mut held = Estimate { status: Status::Holdover, ..*agreed };
    for Ballot { now, .. } in ballots {
        let apart = Bound::of(now.time - agreed.time);
        held.bound = held.bound.max(apart + now.bound);
        held.bound_growth = held.bound_growth.max(growth_beside(agreed.period, now.period, now.bound_growth));
        let difference = growth_beside(agreed.difference_period, now.difference_period, now.difference_bound);
        held.difference_bound = held.difference_bound.max(difference);
        held.difference_uncertainty = held.difference_bound;
    }
    Estimate {
        uncertainty: StandardUncertainty::of(held.bound.as_span()),
        uncertainty_growth: held.bound_growth,
        ..held
    }
}

/// How fast the bound of a clock at `period` grows when it is to cover another from now on.
fn growth_beside(period: Period, other: Period, other_growth: GrowthRate) -> GrowthRate {
    let apart = other.relative_to(period).abs().as_fraction();
    let growth = other_growth.as_rate().as_fraction() * (1.0 + apart);
    GrowthRate::of(Rate::from_fraction(apart + growth + RATE_ROUNDING))
}

/// The server to follow among those that may be: synchronised before holdover, then the smallest bound, with
/// hysteresis.
fn select(ballots: &[Ballot], holder: Option<usize>) -> Option<usize> {
    let class = |one: &Ballot| matches!(one.now.status, Status::WarmingUp | Status::Synchronised);
    let best = ballots.iter().min_by_key(|one| (!class(one), one.now.bound, one.server))?;
    let held = ballots.iter().find(|one| Some(one.server) == holder);
    match held {
        Some(held) if class(held) == class(best) && !clearly_smaller(best.now.bound, held.now.bound) => holder,
        _ => Some(best.server),
    }
}

fn clearly_smaller(challenger: Bound, held: Bound) -> bool {
    let held = held.as_span().units();
    challenger.as_span().units() < held - (held >> MARGIN_SHIFT)
}
