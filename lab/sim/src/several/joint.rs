//! One clock from all believed servers: the elected clock's vote, with the common filter of the product.

use super::{Credence, Elected, MultiServerClock, ServerChange};
use ffclock_estimator::{
    ClassicConfig, Ensemble, Learned, LearnedConfig, ServerClock, Unheard, Voter, VotingRules, vote,
};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Period};

/// The clock. While no majority agrees, it is the elected one.
pub(crate) struct Joint {
    elected: Elected<Learned>,
    ensemble: Ensemble,
    /// Whether the common filter found a change.
    is_upset: bool,
}

impl Joint {
    /// A clock of this many servers, none of which has answered.
    pub(crate) fn new(learned: &LearnedConfig, nominal: Period, servers: usize) -> Self {
        let ensemble = Ensemble::new(learned.clone(), &ClassicConfig::default(), nominal, servers);
        Joint { elected: Elected::learned(learned, nominal, servers), ensemble, is_upset: false }
    }

    /// How each server stands: what the vote says of it, whether it is suspect, and its weight.
    pub(crate) fn standings(&self) -> Vec<(Credence, bool, f64)> {
        let members = self.ensemble.members().iter().enumerate();
        members.map(|(server, member)| (self.elected.credence(server), member.is_suspect, member.weight)).collect()
    }

    /// Whether an exchange since the last call showed a change that the clock has yet to learn.
    pub(crate) fn take_upset(&mut self) -> bool {
        self.elected.take_upset() | std::mem::take(&mut self.is_upset)
    }

    /// Lets the common filter know what the vote says. Before the first vote all are believed.
    fn believe(&mut self) {
        let beliefs = (0..self.ensemble.members().len()).map(|server| self.elected.credence(server));
        let is_decided = beliefs.clone().any(|credence| credence == Credence::Believed);
        let has_clock = is_decided || self.elected.has_published();
        let believed: Vec<bool> = beliefs.map(|credence| !has_clock || credence == Credence::Believed).collect();
        self.ensemble.believe(believed);
    }

    /// The common clock at `counter` and its strict bound, while a majority agrees. Of a single server it is that
    /// server's.
    fn agreed(&self, counter: Counter) -> Option<(Estimate, Bound)> {
        let clocks = self.elected.voting(counter);
        let voters: Vec<Voter> = clocks.iter().map(ServerClock::voter).collect();
        let result = vote(&voters, Unheard::default(), &VotingRules::default()).filter(|_| voters.len() > 1)?;
        self.ensemble.members().iter().find(|member| member.weight > 0.0)?;
        let now = self.ensemble.estimate()?.carried_to(counter);
        let suspects: Vec<bool> = clocks.iter().map(|one| self.is_suspect(one.server)).collect();
        let bounds = result.bounds_beside(&suspects, &now, &voters);
        Some((now.bounded_by(bounds.believed), bounds.strict.bound))
    }

    fn is_suspect(&self, server: usize) -> bool {
        self.ensemble.members().get(server).is_some_and(|member| member.is_suspect)
    }
}

impl MultiServerClock for Joint {
    fn take(&mut self, server: usize, exchange: &Exchange) {
        self.elected.take(server, exchange);
        if let Some(own) = self.elected.estimator(server) {
            self.is_upset |= self.ensemble.update(server, exchange, own).events.is_upset();
        }
        self.believe();
    }

    fn note(&mut self, server: usize, change: ServerChange, counter: Counter) {
        self.elected.note(server, change, counter);
        if change == ServerChange::Left {
            self.ensemble.leave(server);
        }
        self.believe();
    }

    fn broke(&mut self) {
        self.elected.broke();
        self.ensemble.restart();
    }

    fn estimate(&mut self, counter: Counter) -> Option<Estimate> {
        let elected = self.elected.estimate(counter)?;
        self.believe();
        let servers = 0..self.ensemble.members().len();
        let has_majority = servers.into_iter().any(|one| self.elected.credence(one) == Credence::Believed);
        let agreed = self.agreed(counter).filter(|_| has_majority);
        Some(
            agreed
                .map_or(elected, |(estimate, _)| Estimate { status: estimate.status.min(elected.status), ..estimate }),
        )
    }

    fn bound_strict(&self, counter: Counter) -> Option<Bound> {
        self.agreed(counter).map(|(_, strict)| strict)
    }

    fn credence(&self, server: usize) -> Credence {
        match self.elected.credence(server) {
            Credence::Believed if self.is_suspect(server) => Credence::Suspect,
            credence => credence,
        }
    }
}
