//! The vote of the servers: which are believed, which one the published clock follows, and what is published while no
//! majority agrees.

use super::Keeper;
use crate::journal::{Entry, Journal, Weight};
use crate::peer::Peer;
use crate::selection::{Candidate, carried, select, without_majority};
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_estimator::{Belief, beliefs};
use ffclock_units::{Counter, Estimate, Moment, Mono, ServerIdentity, Span};

/// How long after a start the servers that have not answered yet keep their vote: twice the time of a look-up and the
/// first burst of requests, so that the first answer alone decides nothing.
const EXPECTED_FOR: Span = Span::from_secs(16);

/// The estimate to publish.
#[derive(Clone, Copy)]
pub(super) struct Published {
    /// The reference that the followed server follows.
    pub(super) server: Option<ServerIdentity>,
    pub(super) estimate: Estimate,
}

/// The state of the vote since the counter's epoch began.
pub(super) struct Election {
    begin: Moment<Mono>,
    quorum: QuorumReport,
    /// By server; a server beyond the end has no interval.
    beliefs: Vec<BeliefReport>,
    selected: Option<usize>,
    /// The estimate that was published when a majority last agreed.
    agreed: Option<Published>,
    logged: Logged,
}

/// The state as logged. The limiter may delay a change by a minute; a change that lasts is logged then.
#[derive(Default)]
struct Logged {
    is_disagreement: bool,
    selected: Option<String>,
    falsetickers: Vec<String>,
}

impl Election {
    pub(super) fn new(begin: Moment<Mono>) -> Self {
        Election {
            begin,
            quorum: QuorumReport::Waiting,
            beliefs: Vec::new(),
            selected: None,
            agreed: None,
            logged: Logged::default(),
        }
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

    /// Counts the votes. `expected` servers have not answered yet. Returns the candidates that may be followed.
    fn count(&mut self, candidates: &[Candidate], expected: usize) -> Vec<Candidate> {
        let voters: Vec<Candidate> = candidates.iter().copied().filter(Candidate::has_vote).collect();
        let intervals: Vec<_> = voters.iter().map(|voter| voter.proven).collect();
        let verdict = beliefs(&intervals, intervals.len() + expected);
        self.quorum = match &verdict {
            Some(_) => QuorumReport::Majority,
            None if beliefs(&intervals, 0).is_some() || intervals.is_empty() => QuorumReport::Waiting,
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
        let believed = self.election.count(&candidates, self.expected());
        self.election.selected = select(&believed, self.election.selected);
        self.log_election();
        if let Some(followed) = self.selected_peer() {
            let published = Published { server: followed.server_identity(), estimate: followed.estimate()? };
            self.election.agreed = Some(published);
            return Some(published);
        }
        let agreed = self.election.agreed.filter(|_| !candidates.is_empty())?;
        let estimate = without_majority(&carried(&agreed.estimate, counter), &candidates);
        Some(Published { estimate, ..agreed })
    }

    fn candidates(&self, counter: Counter) -> Vec<Candidate> {
        let clocks = self.peers.iter().enumerate();
        let candidate = |(server, peer): (usize, &Peer)| {
            let (estimate, proven) = (peer.estimate()?, peer.proven(counter)?);
            Some(Candidate { server, now: carried(&estimate, counter), proven })
        };
        clocks.filter_map(candidate).collect()
    }

    /// The number of servers that have a vote but have not answered yet. Once a majority has agreed, a server that was
    /// added waits for its answer.
    fn expected(&self) -> usize {
        if self.election.agreed.is_some() || self.context.now - self.election.begin >= EXPECTED_FOR {
            return 0;
        }
        self.peers.iter().filter(|peer| peer.estimate().is_none() && peer.is_expected()).count()
    }

    fn log_election(&mut self) {
        let selected = self.selected_peer().map(|peer| peer.name().to_owned());
        let believed: Vec<(String, BeliefReport)> =
            self.peers.iter().enumerate().map(|(s, peer)| (peer.name().to_owned(), self.election.belief(s))).collect();
        let quorum = self.election.quorum;
        self.election.logged.follow(&mut self.context.journal, quorum, selected, &believed);
    }
}

impl Logged {
    fn follow(
        &mut self,
        journal: &mut Journal,
        quorum: QuorumReport,
        selected: Option<String>,
        beliefs: &[(String, BeliefReport)],
    ) {
        for (name, belief) in beliefs {
            self.follow_belief(journal, name, *belief);
        }
        self.falsetickers.retain(|name| beliefs.iter().any(|(known, _)| known == name));
        self.follow_quorum(journal, quorum);
        if let Some(name) = selected.filter(|name| Some(name) != self.selected.as_ref()) {
            let entry =
                Entry { weight: Weight::Notice, source: Some(&name), kind: "published from now on", detail: "" };
            if journal.log_state(&entry) {
                self.selected = Some(name);
            }
        }
    }

    fn follow_quorum(&mut self, journal: &mut Journal, quorum: QuorumReport) {
        let (is_disagreement, weight, kind) = match quorum {
            QuorumReport::Waiting => return,
            QuorumReport::Majority => (false, Weight::Notice, "a majority of the servers agrees again"),
            QuorumReport::Disagreement => {
                (true, Weight::Warning, "the servers disagree and none has a majority: no server is followed")
            }
        };
        let is_news = is_disagreement != self.is_disagreement;
        if is_news && journal.log_state(&Entry { weight, source: None, kind, detail: "" }) {
            *self = Logged { is_disagreement, selected: None, ..std::mem::take(self) };
        }
    }

    fn follow_belief(&mut self, journal: &mut Journal, name: &str, belief: BeliefReport) {
        let position = self.falsetickers.iter().position(|known| known == name);
        let (weight, kind) = match (position, belief) {
            (None, BeliefReport::Falseticker) => (Weight::Warning, "falseticker: its time contradicts the majority's"),
            (Some(_), BeliefReport::Truechimer) => {
                (Weight::Notice, "no longer a falseticker: it agrees with the majority")
            }
            _ => return,
        };
        if journal.log_state(&Entry { weight, source: Some(name), kind, detail: "" }) {
            match position {
                Some(position) => drop(self.falsetickers.remove(position)),
                None => self.falsetickers.push(name.to_owned()),
            }
        }
    }
}
