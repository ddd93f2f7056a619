//! The vote of the servers: which are believed, which one the published clock follows, and what is published while no
//! majority agrees.

use super::Keeper;
use super::election_log::{ElectionLog, ElectionOutcome};
use crate::peer::Peer;
use crate::selection::{Candidate, carried, select, without_majority};
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_estimator::{Belief, beliefs};
use ffclock_units::{Counter, Estimate, Moment, Mono, ServerIdentity, Span};

/// How long the servers without an interval keep their vote after the first interval of an epoch: a look-up and several
/// requests long, so that the first answer alone decides nothing.
const UNHEARD_FOR: Span = Span::from_secs(16);

/// How long a first majority waits for the answers of the other servers, which may yet turn the vote: two requests of a
/// burst long.
const HEARD_WITHIN: Span = Span::from_secs(4);

/// The estimate to publish.
#[derive(Clone, Copy)]
pub(super) struct Published {
    /// The reference that the followed server follows.
    pub(super) server: Option<ServerIdentity>,
    pub(super) estimate: Estimate,
}

/// The state of the vote since the counter's epoch began.
pub(super) struct Election {
    /// How long servers without an interval keep their vote.
    patience: Span,
    /// When the first server had an interval.
    begin: Option<Moment<Mono>>,
    quorum: QuorumReport,
    /// By server; a server beyond the end has no interval.
    beliefs: Vec<BeliefReport>,
    selected: Option<usize>,
    /// The estimate that was published when a majority last agreed.
    agreed: Option<Published>,
    log: ElectionLog,
}

impl Election {
    /// Before the first interval of an epoch. `delay` is how long requests wait at its beginning.
    pub(super) fn new(delay: Span) -> Self {
        Election {
            patience: UNHEARD_FOR + delay,
            begin: None,
            quorum: QuorumReport::Waiting,
            beliefs: Vec::new(),
            selected: None,
            agreed: None,
            log: ElectionLog::default(),
        }
    }

    /// The counter began another epoch: nothing is known but what the log says.
    pub(super) fn begin_epoch(&mut self, delay: Span) {
        *self = Election { log: std::mem::take(&mut self.log), ..Election::new(delay) };
    }

    /// Servers were added: they have a vote before they have answered.
    pub(super) fn wait_for_added(&mut self, now: Moment<Mono>) {
        (self.patience, self.begin) = (UNHEARD_FOR, Some(now));
    }

    /// The server whose clock is published.
    pub(super) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Follows this server until the next vote; used when the servers were renumbered.
    pub(super) fn follow(&mut self, server: Option<usize>) {
        self.selected = server;
        self.beliefs.clear();
    }

    pub(super) fn quorum(&self) -> QuorumReport {
        self.quorum
    }

    pub(super) fn belief(&self, server: usize) -> BeliefReport {
        self.beliefs.get(server).copied().unwrap_or_default()
    }

    pub(super) fn is_truechimer(&self, server: usize) -> bool {
        self.belief(server) == BeliefReport::Truechimer
    }

    /// Counts the votes at `now`; `silent` servers have no interval yet. Returns the candidates that may be followed.
    fn count(&mut self, candidates: &[Candidate], silent: usize, now: Moment<Mono>) -> Vec<Candidate> {
        let voters: Vec<Candidate> = candidates.iter().copied().filter(Candidate::has_vote).collect();
        let intervals: Vec<_> = voters.iter().map(|voter| voter.proven).collect();
        let unheard = if voters.is_empty() { 0 } else { self.unheard(silent, now) };
        let verdict = beliefs(&intervals, unheard).filter(|_| !self.may_yet_turn(unheard, now));
        self.quorum = match verdict {
            Some(_) => QuorumReport::Majority,
            None if unheard > 0 || voters.is_empty() => QuorumReport::Waiting,
            None => QuorumReport::Disagreement,
        };
        let verdict = verdict.unwrap_or_else(|| vec![Belief::Undecided; voters.len()]);
        self.beliefs.clear();
        for (voter, belief) in voters.iter().zip(&verdict) {
            self.beliefs.resize(self.beliefs.len().max(voter.server + 1), BeliefReport::Unknown);
            if let Some(place) = self.beliefs.get_mut(voter.server) {
                *place = reported(*belief);
            }
        }
        voters.into_iter().filter(|voter| self.is_truechimer(voter.server)).collect()
    }

    /// How many of the silent servers have a vote.
    fn unheard(&mut self, silent: usize, now: Moment<Mono>) -> usize {
        let begin = *self.begin.get_or_insert(now);
        if now - begin < self.patience { silent } else { 0 }
    }

    /// Whether it is too early for a first majority: servers whose answers are due may be against it.
    fn may_yet_turn(&self, unheard: usize, now: Moment<Mono>) -> bool {
        let is_early = self.begin.is_none_or(|begin| now - begin < HEARD_WITHIN);
        self.agreed.is_none() && unheard > 0 && is_early
    }
}

fn reported(belief: Belief) -> BeliefReport {
    match belief {
        Belief::Truechimer => BeliefReport::Truechimer,
        Belief::Falseticker => BeliefReport::Falseticker,
        Belief::Undecided => BeliefReport::Undecided,
    }
}

impl Keeper<'_> {
    /// The server whose clock is published.
    pub(super) fn selected_peer(&self) -> Option<&Peer> {
        self.peers.get(self.election.selected?)
    }

    /// Lets the servers vote. Returns the estimate to publish at `counter`, if any.
    pub(super) fn elect(&mut self, counter: Counter) -> Option<Published> {
        let candidates = self.candidates(counter);
        let silent = self.peers.iter().filter(|peer| peer.may_answer() && peer.proven(counter).is_none()).count();
        let believed = self.election.count(&candidates, silent, self.context.now);
        self.election.selected = select(&believed, self.election.selected);
        self.log_election();
        if let Some(followed) = self.selected_peer() {
            let published = Published { server: followed.server_identity(), estimate: followed.estimate()? };
            self.election.agreed = Some(published);
            return Some(published);
        }
        let agreed = self.election.agreed?;
        let estimate = without_majority(&carried(&agreed.estimate, counter), &candidates);
        Some(Published { estimate, ..agreed })
    }

    /// The servers with an estimate. Two names of one address are one server, and have one vote.
    fn candidates(&self, counter: Counter) -> Vec<Candidate> {
        let is_first = |(server, peer): &(usize, &Peer)| {
            let earlier = self.peers.iter().take(*server);
            peer.address().is_none_or(|address| earlier.filter_map(Peer::address).all(|other| other != address))
        };
        let clocks = self.peers.iter().enumerate().filter(is_first);
        let candidate = |(server, peer): (usize, &Peer)| {
            let (estimate, proven) = (peer.estimate()?, peer.proven(counter)?);
            Some(Candidate { server, now: carried(&estimate, counter), proven })
        };
        clocks.filter_map(candidate).collect()
    }

    fn log_election(&mut self) {
        let servers = self.peers.iter().enumerate();
        let beliefs = servers.map(|(server, peer)| (peer.name().to_owned(), self.election.belief(server))).collect();
        let selected = self.selected_peer().map(|peer| peer.name().to_owned());
        let outcome = ElectionOutcome { quorum: self.election.quorum, selected, beliefs };
        self.election.log.follow(&mut self.context.journal, outcome);
    }
}
