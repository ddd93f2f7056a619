//! The vote of the servers: which are believed, which one the published clock follows, and what is published while no
//! majority agrees.

use super::Keeper;
use super::election_log::{ElectionLog, ElectionOutcome, Standing};
use crate::config::{PublishedBound, VoteConfig};
use crate::peer::Peer;
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_estimator::{
    Belief, ServerClock, Unheard, VoteResult, Voter, interval_growth, select, vote, without_majority,
};
use ffclock_page::{VoteCounts, VotedPart};
use ffclock_units::{Counter, Estimate, GrowingBound, Moment, Mono, ServerIdentity, Span};

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
    /// What the vote adds to it.
    pub(super) voted: VotedPart,
}

/// Who takes part in a vote.
pub(super) struct Ballot {
    /// The servers with an estimate, of each address the first.
    candidates: Vec<ServerClock>,
    /// How many servers may yet answer for the first time.
    silent: Unheard,
    /// How many answer.
    usable: usize,
}

impl Ballot {
    pub(super) fn candidates(&self) -> &[ServerClock] {
        &self.candidates
    }
}

/// The state of the vote since the counter's epoch began.
pub(super) struct Election {
    rules: VoteConfig,
    /// How long servers without an interval keep their vote.
    patience: Span,
    /// When the first server had an interval.
    begin: Option<Moment<Mono>>,
    quorum: QuorumReport,
    /// The last vote, if it had a majority.
    result: Option<VoteResult>,
    counts: VoteCounts,
    /// Whether trusted servers decide.
    is_by_trust: bool,
    usable: usize,
    /// By server; a server beyond the end has no interval.
    standings: Vec<Standing>,
    selected: Option<usize>,
    /// Whether the published time lies outside of what the believed servers share.
    is_outside: bool,
    /// The estimate that was published when a majority last agreed.
    agreed: Option<Published>,
    log: ElectionLog,
}

impl Election {
    /// Before the first interval of an epoch. `delay` is how long requests wait at its beginning.
    pub(super) fn new(rules: VoteConfig, delay: Span) -> Self {
        Election {
            rules,
            patience: UNHEARD_FOR + delay,
            begin: None,
            quorum: QuorumReport::Waiting,
            result: None,
            counts: VoteCounts::default(),
            is_by_trust: false,
            usable: 0,
            standings: Vec::new(),
            selected: None,
            is_outside: false,
            agreed: None,
            log: ElectionLog::default(),
        }
    }

    /// The counter began another epoch: nothing is known but what the log says.
    pub(super) fn begin_epoch(&mut self, delay: Span) {
        *self = Election { log: std::mem::take(&mut self.log), ..Election::new(self.rules.clone(), delay) };
    }

    /// Votes by other rules from now on.
    pub(super) fn set_rules(&mut self, rules: VoteConfig) {
        self.rules = rules;
    }

    /// Servers were added: they have a vote before they have answered.
    pub(super) fn wait_for_added(&mut self, now: Moment<Mono>) {
        (self.patience, self.begin) = (UNHEARD_FOR, Some(now));
    }

    /// The selected server.
    pub(super) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Follows this server until the next vote; used when the servers were renumbered.
    pub(super) fn follow(&mut self, server: Option<usize>) {
        self.selected = server;
        self.standings.clear();
    }

    pub(super) fn rules(&self) -> &VoteConfig {
        &self.rules
    }

    pub(super) fn quorum(&self) -> QuorumReport {
        self.quorum
    }

    pub(super) fn counts(&self) -> VoteCounts {
        self.counts
    }

    pub(super) fn is_by_trust(&self) -> bool {
        self.is_by_trust
    }

    /// How many servers answer and may be believed.
    pub(super) fn usable(&self) -> usize {
        self.usable
    }

    pub(super) fn standing(&self, server: usize) -> Standing {
        self.standings.get(server).copied().unwrap_or_default()
    }

    pub(super) fn is_truechimer(&self, server: usize) -> bool {
        self.standing(server).belief == BeliefReport::Truechimer
    }

    /// Counts the votes at `now`. Returns the candidates that may be followed.
    fn count(&mut self, ballot: &Ballot, now: Moment<Mono>) -> Vec<ServerClock> {
        let candidates: Vec<ServerClock> = ballot.candidates.iter().copied().filter(ServerClock::has_vote).collect();
        let voters: Vec<Voter> = candidates.iter().map(ServerClock::voter).collect();
        let unheard = if voters.is_empty() { Unheard::default() } else { self.unheard(ballot.silent, now) };
        self.is_by_trust = unheard.trusted > 0 || voters.iter().any(|voter| voter.is_trusted);
        let awaited = if self.is_by_trust { unheard.trusted } else { unheard.others };
        let too_few = self.rules.min_servers > 1 && ballot.usable < self.rules.min_servers as usize;
        let rules = self.rules.rules();
        self.result = vote(&voters, unheard, &rules).filter(|_| !too_few && !self.may_yet_turn(awaited, now));
        self.quorum = match self.result {
            Some(_) => QuorumReport::Majority,
            None if awaited > 0 || voters.is_empty() => QuorumReport::Waiting,
            None if too_few => QuorumReport::TooFew,
            None => QuorumReport::Disagreement,
        };
        self.usable = ballot.usable;
        self.counts = match &self.result {
            Some(result) => counts(result.deciders, result.tolerated, result),
            None => {
                let deciders = deciders(&voters);
                VoteCounts { believed: 0, ..counts_of(deciders, rules.tolerated(deciders)) }
            }
        };
        self.note_standings(&candidates);
        candidates.into_iter().filter(|candidate| self.is_truechimer(candidate.server)).collect()
    }

    fn note_standings(&mut self, voters: &[ServerClock]) {
        self.standings.clear();
        for (position, voter) in voters.iter().enumerate() {
            self.standings.resize(self.standings.len().max(voter.server + 1), Standing::default());
            let result = self.result.as_ref();
            let belief =
                result.and_then(|result| result.beliefs.get(position)).map_or(BeliefReport::Undecided, reported);
            let gap = result.map(|result| result.believed.gap(&voter.claimed));
            if let Some(place) = self.standings.get_mut(voter.server) {
                *place = Standing { belief, misses: gap.filter(|gap| *gap > Span::ZERO), is_suspect: false };
            }
        }
    }

    /// Whether servers that have not answered yet are still waited for.
    pub(super) fn is_patient(&self, now: Moment<Mono>) -> bool {
        self.begin.is_none_or(|begin| now - begin < self.patience)
    }

    /// How many of the silent servers have a vote.
    fn unheard(&mut self, silent: Unheard, now: Moment<Mono>) -> Unheard {
        let begin = *self.begin.get_or_insert(now);
        if now - begin < self.patience { silent } else { Unheard::default() }
    }

    /// Whether it is too early for a first majority: servers whose answers are due may be against it.
    fn may_yet_turn(&self, awaited: usize, now: Moment<Mono>) -> bool {
        let is_early = self.begin.is_none_or(|begin| now - begin < HEARD_WITHIN);
        self.agreed.is_none() && awaited > 0 && is_early
    }

    /// The clock to publish while a believed server is followed. `own` is its estimate, `candidate` the same carried to
    /// the present reading, and of the voters some are suspect.
    fn bounded(
        &self,
        own: Estimate,
        candidate: &ServerClock,
        (voters, suspects): (&[Voter], &[bool]),
    ) -> (Estimate, VotedPart) {
        let (Some(result), true) = (&self.result, voters.len() > 1) else {
            return (own, VotedPart { counts: self.counts, ..VotedPart::alone(&own) });
        };
        let bounds = result.bounds_beside(suspects, &candidate.now, voters);
        let bound = match self.rules.bound {
            PublishedBound::Believed => bounds.believed,
            PublishedBound::Strict => bounds.strict,
        };
        (candidate.now.bounded_by(bound), VotedPart { strict: bounds.strict, counts: self.counts })
    }

    /// The clock to publish at `counter` while no majority agrees.
    fn held(&self, counter: Counter, candidates: &[ServerClock]) -> Option<Published> {
        let agreed = self.agreed?;
        let Published { estimate: last, voted, .. } = agreed;
        let estimate = without_majority(&last.carried_to(counter), candidates);
        let strict = GrowingBound {
            bound: voted.strict.after(last.period * (counter - last.counter)).max(estimate.bound),
            growth: voted.strict.growth.max(estimate.bound_growth),
        };
        Some(Published { estimate, voted: VotedPart { strict, counts: self.counts }, ..agreed })
    }
}

/// The clock with the bound of its intervals by what the believed servers prove of the rate.
fn with_interval_bound(clock: Estimate, believed: &[ServerClock]) -> Estimate {
    let proven = believed.iter().map(|one| (one.now.difference_period, one.now.difference_bound));
    let difference_bound = interval_growth(clock.difference_period, proven).unwrap_or(clock.difference_bound);
    let difference_uncertainty = clock.difference_uncertainty.min(difference_bound);
    Estimate { difference_bound, difference_uncertainty, ..clock }
}

/// How many of the voters decide.
fn deciders(voters: &[Voter]) -> usize {
    let trusted = voters.iter().filter(|voter| voter.is_trusted).count();
    if trusted > 0 { trusted } else { voters.len() }
}

fn counts(deciders: usize, tolerated: usize, result: &VoteResult) -> VoteCounts {
    let believed = result.beliefs.iter().filter(|belief| **belief == Belief::Truechimer).count();
    VoteCounts { believed: small(believed), ..counts_of(deciders, tolerated) }
}

fn counts_of(deciders: usize, tolerated: usize) -> VoteCounts {
    VoteCounts { deciders: small(deciders), tolerated: small(tolerated), believed: 0 }
}

/// A number of servers, of which there are 16 at most.
fn small(count: usize) -> u8 {
    u8::try_from(count).unwrap_or(u8::MAX)
}

fn reported(belief: &Belief) -> BeliefReport {
    match belief {
        Belief::Truechimer => BeliefReport::Truechimer,
        Belief::Falseticker => BeliefReport::Falseticker,
        Belief::Undecided => BeliefReport::Undecided,
    }
}

impl Keeper<'_> {
    /// The selected server.
    pub(super) fn selected_peer(&self) -> Option<&Peer> {
        self.peers.get(self.election.selected?)
    }

    /// Lets the servers vote. Returns the estimate to publish at `counter`, if any.
    pub(super) fn elect(&mut self, counter: Counter) -> Option<Published> {
        let ballot = self.ballot(counter);
        self.context.numbers = self.clock_of_numbers(&ballot);
        let believed = self.election.count(&ballot, self.context.now);
        self.believe();
        let believed = self.beside_suspects(&believed);
        self.election.selected = select(&believed, self.election.selected);
        let published = self.followed(&ballot, &believed);
        if published.is_some() {
            self.election.agreed = published;
        }
        let published = published.or_else(|| self.election.held(counter, &ballot.candidates));
        self.log_election();
        published
    }

    /// The clock of the followed server, if one is followed, or the one that all believed servers make together.
    fn followed(&mut self, ballot: &Ballot, believed: &[ServerClock]) -> Option<Published> {
        let selected = self.election.selected?;
        let candidate = ballot.candidates.iter().find(|candidate| candidate.server == selected)?;
        let peer = self.peers.get(selected)?;
        let candidates: Vec<ServerClock> = ballot.candidates.iter().copied().filter(ServerClock::has_vote).collect();
        let voters: Vec<Voter> = candidates.iter().map(ServerClock::voter).collect();
        let suspects = self.suspects(&candidates);
        let now = self.common_clock(candidate).unwrap_or(candidate.now);
        let candidate = ServerClock { now: with_interval_bound(now, believed), ..*candidate };
        let (estimate, voted) = self.election.bounded(peer.estimate()?, &candidate, (&voters, &suspects));
        let server = peer.server_identity();
        let shared = self.election.result.as_ref().map(|result| result.believed_beside(&suspects, &voters));
        self.election.is_outside = shared.is_some_and(|shared| !shared.contains(candidate.now.time));
        Some(Published { server, estimate, voted })
    }

    /// The servers that may be believed.
    fn ballot(&self, counter: Counter) -> Ballot {
        let servers = self.within_shares(&self.electable());
        let peers = || servers.iter().filter_map(|server| Some((*server, self.peers.get(*server)?)));
        let clocks = peers().filter(|(_, peer)| peer.estimate().is_some()).count();
        let candidate = |(server, peer): (usize, &Peer)| {
            let claimed = peer.ballot(counter, clocks)?;
            let estimate = peer.estimate()?;
            let vote = &peer.config().vote;
            let now = estimate.carried_to(counter);
            Some(ServerClock { server, now, claimed, is_trusted: vote.trust, is_preferred: vote.prefer })
        };
        let silent = |trust: bool| {
            let is_silent = |peer: &Peer| peer.may_answer() && peer.proven(counter).is_none();
            peers().filter(|(_, peer)| is_silent(peer) && peer.config().vote.trust == trust).count()
        };
        Ballot {
            silent: Unheard { trusted: silent(true), others: silent(false) },
            usable: peers().filter(|(_, peer)| peer.answers() && peer.proven(counter).is_some()).count(),
            candidates: peers().filter_map(candidate).collect(),
        }
    }

    /// The servers that may have a vote.
    pub(super) fn electable(&self) -> Vec<usize> {
        let is_electable = |server: &usize| {
            let peer = self.peers.get(*server);
            peer.is_some_and(|peer| !peer.config().vote.no_select) && self.same_as(*server).is_none()
        };
        (0..self.peers.len()).filter(is_electable).collect()
    }

    fn log_election(&mut self) {
        let standing = |(server, peer): (usize, &Peer)| {
            let is_suspect = self.member(server).is_some_and(|member| member.is_suspect);
            (peer.name().to_owned(), Standing { is_suspect, ..self.election.standing(server) })
        };
        let standings = self.peers.iter().enumerate().map(standing).collect();
        let selected = self.selected_peer().map(|peer| peer.name().to_owned());
        let Election { quorum, is_outside, .. } = self.election;
        let has_clock = self.election.agreed.is_some();
        let outcome = ElectionOutcome { quorum, selected, standings, is_outside, has_clock };
        self.election.log.follow(&mut self.context.journal, outcome);
    }
}
