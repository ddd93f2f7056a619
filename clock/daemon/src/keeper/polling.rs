//! When servers are asked: each at its place in the poll, and at polls that keep an uncertainty if one is configured.
//!
//! [`AdaptivePoll`] computes; this module shows it the published clock and the weights of the servers, and says when
//! something is upset: by the events of an exchange, or by another standing of a server.

use super::Keeper;
use crate::config::{PollConfig, ServerConfig};
use crate::peer::Peer;
use ffclock_control::protocol::{BeliefReport, QuorumReport};
use ffclock_source::{AdaptivePoll, PollPlace};
use ffclock_units::{Span, StandardUncertainty};

/// How a server stands: what the vote says of it, whether it is suspect, whether it answers.
type PollStanding = (BeliefReport, bool, bool);

/// The choice of the polls.
#[derive(Default)]
pub(super) struct Polling {
    /// What is to be kept, and the range of the polls.
    kept: Option<(StandardUncertainty, [Span; 2])>,
    adaptive: Option<AdaptivePoll>,
    /// The standings of the servers when the polls were last chosen.
    standings: Vec<PollStanding>,
}

impl Polling {
    pub(super) fn new(config: PollConfig, servers: &[ServerConfig]) -> Self {
        let kept = config.kept(servers);
        Polling { kept, adaptive: kept.map(|(keep, range)| AdaptivePoll::new(keep, range)), standings: Vec::new() }
    }

    /// Another configuration holds from now on. What it does not change goes on.
    pub(super) fn reconfigure(&mut self, config: PollConfig, servers: &[ServerConfig]) {
        if config.kept(servers) != self.kept {
            *self = Polling::new(config, servers);
        }
    }

    /// The uncertainty to be kept.
    pub(super) fn kept(&self) -> Option<StandardUncertainty> {
        self.kept.map(|(keep, _)| keep)
    }
}

impl Keeper<'_> {
    /// Gives each server its place. Called when the servers are others.
    pub(super) fn arrange_polls(&mut self) {
        let of = self.peers.len() as u32;
        for (number, peer) in self.peers.iter_mut().enumerate() {
            peer.set_place(PollPlace::new(number as u32, of));
        }
        self.choose_polls();
    }

    /// Something happened after which every server is to be asked at its shortest poll.
    pub(super) fn hurry_polls(&mut self) {
        if let Some(adaptive) = &mut self.polling.adaptive {
            adaptive.upset();
        }
        self.choose_polls();
    }

    /// Chooses the polls after an exchange that was published.
    pub(super) fn adapt_polls(&mut self) {
        let is_upset = std::mem::take(&mut self.context.is_upset);
        let Some(mut adaptive) = self.polling.adaptive else { return };
        let standings = self.poll_standings();
        let is_agreed = self.election.quorum() == QuorumReport::Majority;
        if is_upset || standings != self.polling.standings || !is_agreed {
            adaptive.upset();
        } else if let Some(publication) = &self.published {
            adaptive.follow(&publication.estimate, self.largest_weight().unwrap_or(1.0));
        }
        self.polling.standings = standings;
        self.polling.adaptive = Some(adaptive);
        self.choose_polls();
    }

    fn choose_polls(&mut self) {
        let parts: Vec<f64> = (0..self.peers.len()).map(|server| self.part_of_largest(server)).collect();
        for (peer, part) in self.peers.iter_mut().zip(parts) {
            peer.choose_poll(self.polling.adaptive.map(|adaptive| adaptive.poll(part)));
        }
    }

    fn poll_standings(&self) -> Vec<PollStanding> {
        let standing = |(server, peer): (usize, &Peer)| {
            let is_suspect = self.member(server).is_some_and(|member| member.is_suspect);
            (self.election.standing(server).belief, is_suspect, peer.answers())
        };
        self.peers.iter().enumerate().map(standing).collect()
    }

    /// The largest weight of a server in the common clock; `None` where there is none, or none has a weight.
    fn largest_weight(&self) -> Option<f64> {
        let members = self.context.ensemble.as_ref()?.members();
        members.iter().map(|member| member.weight).max_by(f64::total_cmp).filter(|weight| *weight > 0.0)
    }

    /// A server's weight as a part of the largest one. Without a common clock one server's clock is published, and any
    /// that is believed may be the next.
    fn part_of_largest(&self, server: usize) -> f64 {
        match (self.largest_weight(), self.member(server)) {
            (Some(largest), Some(member)) => member.weight / largest,
            _ if self.election.is_truechimer(server) || self.peers.len() == 1 => 1.0,
            _ => 0.0,
        }
    }
}
