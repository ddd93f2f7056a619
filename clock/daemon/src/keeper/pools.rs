//! Servers of pools: each gets an address of the pool's name, and another one when it is of no use.
//!
//! A server is of no use while it does not answer, after it refused, and after the vote has called it a falseticker for
//! long. It is replaced only by an address that is at hand: until then it is still asked, because the fault may as well
//! be ours.
//!
//! The addresses of one name may be one operator's. Where other servers vote, the servers of a pool that vote are
//! therefore always fewer than the others together ([`Keeper::within_shares`]); the rest are spare: asked and measured,
//! so that they can step in at once.

use super::Keeper;
use crate::config::{PoolVotes, ServerConfig};
use crate::journal::{Entry, Weight};
use crate::peer::Peer;
use crate::pool::Pool;
use ffclock_control::protocol::BeliefReport;
use ffclock_units::{Moment, Mono, Span};
use std::net::SocketAddr;

/// A falseticker is replaced after this time: the majority may be the one that is wrong for a while, after a step of
/// the true time that reaches one server before the others.
const FALSE_FOR: Span = Span::from_secs(600);

/// All pools, and the servers of pools that are in doubt.
#[derive(Default)]
pub(super) struct Pools {
    pools: Vec<Pool>,
    /// By server: since when it has been a falseticker.
    false_since: Vec<Option<Moment<Mono>>>,
}

impl Pools {
    /// Takes over the pools of the configuration; those that were there already go on.
    pub(super) fn reconfigure(&mut self, servers: &[ServerConfig], now: Moment<Mono>) {
        let mut before = std::mem::take(&mut self.pools);
        for server in servers.iter().filter(|server| server.slot == Some(1)) {
            let known = before.iter().position(|pool| *pool.address() == server.address);
            let fresh = || Pool::new(server.address.clone(), server.look_up.family, now);
            let mut pool = known.map_or_else(fresh, |place| before.remove(place));
            pool.set_family(server.look_up.family);
            self.pools.push(pool);
        }
        // The servers are numbered otherwise.
        self.false_since = vec![None; servers.len()];
    }

    /// The addresses of a pool's name, as the resolver calls it. Returns whether there is such a pool.
    pub(super) fn resolved(&mut self, name: &str, addresses: &[SocketAddr]) -> bool {
        let mut pools = self.pools.iter_mut().filter(|pool| pool.address().to_string() == name);
        pools.next().map(|pool| pool.resolved(addresses)).is_some()
    }

    /// Whether the server has been a falseticker for long at `now`.
    fn is_false_for_long(&mut self, server: usize, belief: BeliefReport, now: Moment<Mono>) -> bool {
        let Some(since) = self.false_since.get_mut(server) else { return false };
        *since = (belief == BeliefReport::Falseticker).then(|| since.unwrap_or(now));
        since.is_some_and(|since| now - since >= FALSE_FOR)
    }
}

impl Keeper<'_> {
    /// Gives an address to each server of a pool that has none or one that is of no use.
    pub(super) fn keep_pools(&mut self) {
        let mut pools = std::mem::take(&mut self.pools);
        for server in 0..self.peers.len() {
            let Some(name) = self.peers.get(server).and_then(|peer| peer.config().pool().cloned()) else { continue };
            let Some(place) = pools.pools.iter().position(|pool| *pool.address() == name) else { continue };
            let reason = self.why_useless(server, &mut pools);
            if let (Some(reason), Some(pool)) = (reason, pools.pools.get_mut(place)) {
                self.replace(server, pool, reason);
            }
        }
        self.pools = pools;
    }

    /// Why the server needs another address, if it does.
    fn why_useless(&mut self, server: usize, pools: &mut Pools) -> Option<&'static str> {
        let belief = self.election.standing(server).belief;
        let is_false_for_long = pools.is_false_for_long(server, belief, self.context.now);
        let peer = self.peers.get(server)?;
        if peer.address().is_none() {
            Some("it has no address")
        } else if !peer.may_answer() {
            Some("the server refuses")
        } else if peer.is_unreachable() {
            Some("the server does not answer")
        } else {
            is_false_for_long.then_some("a falseticker for long")
        }
    }

    fn replace(&mut self, server: usize, pool: &mut Pool, reason: &'static str) {
        let now = self.context.now;
        let in_use: Vec<SocketAddr> = self.peers.iter().filter_map(Peer::address).collect();
        while let Some(address) = pool.take(&in_use, now) {
            let Some(peer) = self.peers.get_mut(server) else { return };
            let before = peer.address();
            peer.resolved(vec![address], &mut self.context);
            if peer.address() != Some(address) {
                pool.give_up(address, now);
                continue;
            }
            if let Some(before) = before {
                pool.give_up(before, now);
                let (name, detail) = (peer.name().to_owned(), format!("{before}: {reason}"));
                let kind = "another address of the pool takes the place of one";
                let entry = Entry { weight: Weight::Notice, source: Some(&name), kind, detail: &detail };
                self.context.journal.log(&entry);
                if self.election.standing(server).belief == BeliefReport::Falseticker {
                    peer.begin_as_another(&self.context);
                }
                self.renew_member(server);
            }
            return;
        }
        if pool.begins_look_up(now) {
            let name = pool.address().clone();
            if let Err(error) = self.resolver.start(&name.to_string(), name.address.as_str(), name.port) {
                self.context.journal.warn("cannot look the name up", &error.to_string());
            }
        }
    }

    /// Another server has this number now: the common clock knows nothing of its path.
    fn renew_member(&mut self, server: usize) {
        let origins: Vec<Option<usize>> =
            (0..self.peers.len()).map(|number| (number != server).then_some(number)).collect();
        self.regroup_common_clock(&origins);
    }

    /// When a pool that wants an address may look its name up.
    pub(super) fn next_pool_look_up(&self) -> Option<Moment<Mono>> {
        let wants = |pool: &&Pool| {
            let of_pool = |peer: &&Peer| peer.config().pool() == Some(pool.address());
            self.peers.iter().filter(of_pool).any(|peer| peer.address().is_none())
        };
        self.pools.pools.iter().filter(wants).map(Pool::next_look_up).min()
    }

    /// Of these servers, which may vote, those that do: of a pool fewer than the others together (at least one), unless
    /// it may vote with each or stands alone. Those that answer come first.
    pub(super) fn within_shares(&self, servers: &[usize]) -> Vec<usize> {
        servers.iter().copied().filter(|server| !self.is_beyond_share(*server, servers)).collect()
    }

    fn is_beyond_share(&self, server: usize, servers: &[usize]) -> bool {
        let Some(config) = self.peers.get(server).map(Peer::config) else { return false };
        let Some(pool) = config.pool().filter(|_| config.pool.pool_votes == PoolVotes::Minority) else { return false };
        let is_mate = |other: &usize| self.peers.get(*other).is_some_and(|peer| peer.config().pool() == Some(pool));
        let is_equal =
            |other: &usize| self.peers.get(*other).is_some_and(|peer| peer.config().vote.trust == config.vote.trust);
        let has_voice = |other: &usize| self.peers.get(*other).is_some_and(|peer| self.has_voice(peer));
        let others = servers.iter().filter(|other| !is_mate(other) && is_equal(other) && has_voice(other)).count();
        if others == 0 {
            return false;
        }
        let mut mates: Vec<usize> = servers.iter().copied().filter(is_mate).collect();
        let worth = |mate: &usize| {
            let peer = self.peers.get(*mate);
            (!peer.is_some_and(Peer::answers), !peer.is_some_and(Peer::was_heard), *mate)
        };
        mates.sort_by_key(worth);
        mates.iter().skip((others - 1).max(1)).any(|mate| *mate == server)
    }

    /// Whether a server votes or is still waited for.
    fn has_voice(&self, peer: &Peer) -> bool {
        peer.was_heard() || (peer.may_answer() && self.election.is_patient(self.context.now))
    }

    /// Whether the server has no vote because others of its pool have theirs.
    pub(super) fn is_spare(&self, server: usize) -> bool {
        let servers = self.electable();
        servers.contains(&server) && self.is_beyond_share(server, &servers)
    }
}
