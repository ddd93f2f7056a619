//! The clock of the selected server: an estimator for each, a vote with their proven intervals, and of the
//! truechimers the estimate with the smallest bound.
//!
//! The vote and the selection are the product's own (`ffclock_estimator`). How long servers are waited for repeats the
//! rules of the daemon (`keeper/electing.rs`), which stand among its sockets and timers.

use super::{Credence, MultiServerClock, ServerChange};
use ffclock_estimator::{
    Belief, Classic, ClassicConfig, Estimator, Learned, LearnedConfig, ProvenInterval, ServerClock, Unheard, Verdict,
    Voter, VotingRules, beliefs, select, vote, without_majority,
};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Period, Span, Status};

/// How long servers without an interval keep their vote, how long a first majority waits for them, and the longest time
/// between two votes.
const UNHEARD_FOR: Span = Span::from_secs(16);
const HEARD_WITHIN: Span = Span::from_secs(4);
const HEARTBEAT: Span = Span::from_secs(20);

/// One server's clock.
struct Elector<E> {
    estimator: E,
    is_asked: bool,
    is_reachable: bool,
    credence: Credence,
}

/// The clock.
pub(crate) struct Elected<E> {
    electors: Vec<Elector<E>>,
    nominal: Period,
    /// Since when servers have had intervals.
    begin: Option<Counter>,
    selected: Option<usize>,
    /// What was published when a majority last agreed.
    agreed: Option<Estimate>,
    published: Option<Estimate>,
    voted: Option<Counter>,
    /// Whether an exchange showed a change that the clock has yet to learn.
    is_upset: bool,
}

impl Elected<Learned> {
    /// A clock of this many servers with the learned filter, none of which has answered.
    pub(crate) fn learned(learned: &LearnedConfig, nominal: Period, servers: usize) -> Self {
        Elected::of(|| Learned::new(learned.clone(), ClassicConfig::default(), nominal, None), nominal, servers)
    }
}

impl Elected<Classic> {
    /// The same with the classic filter, of which the guard asks nothing.
    pub(crate) fn classic(nominal: Period, servers: usize) -> Self {
        Elected::of(|| Classic::new(ClassicConfig::default(), nominal, None), nominal, servers)
    }
}

impl<E: Estimator> Elected<E> {
    fn of(estimator: impl Fn() -> E, nominal: Period, servers: usize) -> Self {
        let elector =
            |_| Elector { estimator: estimator(), is_asked: false, is_reachable: false, credence: Credence::Unknown };
        let electors = (0..servers).map(elector).collect();
        Elected {
            electors,
            nominal,
            begin: None,
            selected: None,
            agreed: None,
            published: None,
            voted: None,
            is_upset: false,
        }
    }

    /// Whether an exchange since the last call showed a change that the clock has yet to learn.
    pub(super) fn take_upset(&mut self) -> bool {
        std::mem::take(&mut self.is_upset)
    }

    /// Whether a majority has ever agreed.
    pub(super) fn has_published(&self) -> bool {
        self.agreed.is_some()
    }

    /// A server's own estimator.
    pub(super) fn estimator(&self, server: usize) -> Option<&E> {
        self.electors.get(server).map(|elector| &elector.estimator)
    }

    /// The servers that vote at `counter`.
    pub(super) fn voting(&self, counter: Counter) -> Vec<ServerClock> {
        self.ballots(counter).into_iter().filter(ServerClock::has_vote).collect()
    }

    fn since(&self, earlier: Counter, counter: Counter) -> Span {
        self.nominal * (counter - earlier)
    }

    fn ballots(&self, counter: Counter) -> Vec<ServerClock> {
        let asked = || self.electors.iter().enumerate().filter(|(_, elector)| elector.is_asked);
        let clocks = asked().filter(|(_, elector)| elector.estimate().is_some()).count();
        let ballot = |(server, elector): (usize, &Elector<E>)| {
            let claimed = elector.estimator.ballot(counter, clocks)?;
            let now = elector.estimate()?.carried_to(counter);
            Some(ServerClock { server, now, claimed, is_trusted: false, is_preferred: false })
        };
        asked().filter_map(ballot).collect()
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
            (None, Some(agreed)) => Some(without_majority(&agreed.carried_to(counter), &ballots)),
            (followed, _) => followed,
        };
    }

    /// Counts the votes; the ballots that may be followed.
    fn count(&mut self, ballots: &[ServerClock], counter: Counter) -> Vec<ServerClock> {
        let voters: Vec<ServerClock> = ballots.iter().copied().filter(ServerClock::has_vote).collect();
        let intervals: Vec<ProvenInterval> = voters.iter().map(|voter| voter.claimed).collect();
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
        let silent = |elector: &&Elector<E>| elector.is_asked && elector.estimator.proven(counter).is_none();
        let silent = self.electors.iter().filter(silent).count();
        if self.since(begin, counter) < UNHEARD_FOR { silent } else { 0 }
    }

    /// Whether it is too early for a first majority.
    fn may_yet_turn(&self, unheard: usize, counter: Counter) -> bool {
        let is_early = self.begin.is_none_or(|begin| self.since(begin, counter) < HEARD_WITHIN);
        self.agreed.is_none() && unheard > 0 && is_early
    }
}

impl<E: Estimator> Elector<E> {
    /// A server that does not answer leaves its clock in holdover.
    fn estimate(&self) -> Option<Estimate> {
        let mut estimate = self.estimator.estimate()?;
        if !self.is_reachable && estimate.status != Status::Unsynchronised {
            estimate.status = Status::Holdover;
        }
        Some(estimate)
    }
}

impl<E: Estimator> MultiServerClock for Elected<E> {
    fn take(&mut self, server: usize, exchange: &Exchange) {
        let Some(elector) = self.electors.get_mut(server) else { return };
        let outcome = elector.estimator.update(exchange);
        self.is_upset |= outcome.events.is_upset();
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

    fn bound_strict(&self, counter: Counter) -> Option<Bound> {
        let voters: Vec<Voter> = self.voting(counter).iter().map(ServerClock::voter).collect();
        let now = self.published?.carried_to(counter);
        let result = vote(&voters, Unheard::default(), &VotingRules::default())?;
        Some(result.bounds(&now, &voters).strict.bound)
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
