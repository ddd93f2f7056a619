//! The clock that all believed servers make together, where there are several with the learned filter.

use super::Keeper;
use crate::peer::Peer;
use ffclock_control::protocol::QuorumReport;
use ffclock_estimator::{Ensemble, EnsembleMember, LearnedConfig, MOST_SERVERS, ServerClock};
use ffclock_units::{Estimate, Status};

impl Keeper<'_> {
    /// Begins the common clock without history: at the start, and with each epoch of the counter.
    pub(super) fn begin_common_clock(&mut self) {
        let first = self.peers.first().filter(|_| self.can_share_a_clock());
        let nominal = self.host_counter.nominal.period;
        self.context.ensemble = first.map(|peer| {
            Ensemble::new(LearnedConfig::default(), &peer.config().estimator.options, nominal, self.peers.len())
        });
    }

    /// Goes on with another list of servers. `origins` has the number that each had before, or `None` of a new one.
    pub(super) fn regroup_common_clock(&mut self, origins: &[Option<usize>]) {
        if !self.can_share_a_clock() {
            self.context.ensemble = None;
        } else if let Some(ensemble) = &mut self.context.ensemble {
            ensemble.renumber(origins);
        } else {
            self.begin_common_clock();
            let clocks = self.peers.iter().enumerate().filter(|(_, peer)| peer.estimate().is_some());
            let own = clocks.filter_map(|(server, peer)| Some((server, peer.learned()?))).next();
            if let Some((server, own)) = own {
                self.context.ensemble = Some(Ensemble::of(own, server, self.peers.len()));
            }
        }
    }

    fn can_share_a_clock(&self) -> bool {
        (2..=MOST_SERVERS).contains(&self.peers.len()) && self.peers.iter().all(|peer| peer.learned().is_some())
    }

    /// Lets the common clock know whom the vote believes. Where trusted servers decide, these alone make the clock, and
    /// of them the preferred ones alone where one is believed.
    pub(super) fn believe(&mut self) {
        let Some(mut ensemble) = self.context.ensemble.take() else { return };
        let (election, by_trust) = (&self.election, self.election.is_by_trust());
        let vote_of = |server: usize| self.peers.get(server).map(|peer| &peer.config().vote);
        let speaks = |server: usize| {
            let trusted = vote_of(server).is_some_and(|vote| vote.trust);
            election.is_truechimer(server) && (trusted || !by_trust)
        };
        let prefers = |server: usize| speaks(server) && vote_of(server).is_some_and(|vote| vote.prefer);
        let servers = 0..self.peers.len();
        let is_preferred = servers.clone().any(prefers);
        ensemble.believe(servers.map(|server| match election.quorum() {
            QuorumReport::Majority => {
                if is_preferred {
                    prefers(server)
                } else {
                    speaks(server)
                }
            }
            QuorumReport::Waiting => self.may_be_believed(server),
            QuorumReport::TooFew | QuorumReport::Disagreement => false,
        }));
        self.context.ensemble = Some(ensemble);
    }

    /// The common clock at the reading that `followed` is carried to, without bounds. It is in holdover with the
    /// server that is followed: that one is the last to be lost.
    pub(super) fn common_clock(&self, followed: &ServerClock) -> Option<Estimate> {
        let ensemble = self.context.ensemble.as_ref()?;
        ensemble.members().iter().find(|member| member.weight > 0.0)?;
        let clock = ensemble.estimate()?.carried_to(followed.now.counter);
        let is_held = followed.now.status == Status::Holdover;
        let status = if is_held { Status::Holdover } else { clock.status };
        Some(Estimate { status, ..clock })
    }

    /// By clock, whether the common clock suspects its server.
    pub(super) fn suspects(&self, clocks: &[ServerClock]) -> Vec<bool> {
        clocks.iter().map(|one| self.member(one.server).is_some_and(|member| member.is_suspect)).collect()
    }

    /// Those of these clocks whose server is not suspect, or all where none would be left.
    pub(super) fn beside_suspects(&self, clocks: &[ServerClock]) -> Vec<ServerClock> {
        let suspects = self.suspects(clocks);
        let rest: Vec<ServerClock> =
            clocks.iter().zip(&suspects).filter(|(_, suspect)| !**suspect).map(|(one, _)| *one).collect();
        if rest.is_empty() { clocks.to_vec() } else { rest }
    }

    /// A server's part in the common clock, if there is one.
    pub(super) fn member(&self, server: usize) -> Option<&EnsembleMember> {
        self.context.ensemble.as_ref()?.members().get(server)
    }

    fn may_be_believed(&self, server: usize) -> bool {
        let peer: Option<&Peer> = self.peers.get(server);
        peer.is_some_and(|peer| !peer.config().vote.no_select)
            && self.same_as(server).is_none()
            && !self.is_spare(server)
    }
}
