//! One clock from all believed servers: the elected clock's vote, with the common filter of the product.

use super::{Credence, Elected, MultiServerClock, ServerChange};
use ffclock_estimator::{ClassicConfig, Ensemble, LearnedConfig, Unheard, VotingRules, vote};
use ffclock_units::{Bound, Counter, Estimate, Exchange, Period};

/// The clock. While no majority agrees, it is the elected one.
pub(crate) struct Joint {
    elected: Elected,
    ensemble: Ensemble,
}

impl Joint {
    /// A clock of this many servers, none of which has answered.
    pub(crate) fn new(learned: &LearnedConfig, nominal: Period, servers: usize) -> Self {
        let ensemble = Ensemble::new(learned.clone(), &ClassicConfig::default(), nominal, servers);
        Joint { elected: Elected::new(learned, nominal, servers), ensemble }
    }

    /// Lets the common filter know what the vote says. Before the first vote all are believed.
    fn believe(&mut self) {
        let beliefs = (0..self.ensemble.members().len()).map(|server| self.elected.credence(server));
        let is_decided = beliefs.clone().any(|credence| credence == Credence::Believed);
        let has_clock = is_decided || self.elected.has_published();
        let believed: Vec<bool> = beliefs.map(|credence| !has_clock || credence == Credence::Believed).collect();
        self.ensemble.believe(believed);
    }

    /// The common clock at `counter` and its strict bound, while a majority agrees.
    fn agreed(&self, counter: Counter) -> Option<(Estimate, Bound)> {
        let voters = self.elected.voters(counter);
        let result = vote(&voters, Unheard::default(), &VotingRules::default())?;
        self.ensemble.members().iter().find(|member| member.weight > 0.0)?;
        let now = self.ensemble.estimate()?.carried_to(counter);
        let bounds = result.bounds(&now, &voters);
        Some((now.bounded_by(bounds.believed), bounds.strict.bound))
    }
}

impl MultiServerClock for Joint {
    fn take(&mut self, server: usize, exchange: &Exchange) {
        self.elected.take(server, exchange);
        if let Some(own) = self.elected.estimator(server) {
            self.ensemble.update(server, exchange, own);
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
        let has_majority = (0..self.ensemble.members().len()).any(|one| self.credence(one) == Credence::Believed);
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
        self.elected.credence(server)
    }
}
