//! Servers of pools: each gets an address of the pool's name, and another one when it is of no use.
//!
//! A server is of no use while it does not answer, after it refused, and after the vote has called it a falseticker for
//! long. It is replaced only by an address that is at hand: until then it is still asked, because the fault may as well
//! be ours.
//!
//! The addresses of one name may be one operator's. Where other servers vote, the servers of a pool that vote are
//! therefore always fewer than the others together, and of two pools alone as many of the one as of the other
//! ([`Keeper::within_shares`]); the rest are spare: asked and measured, so that they can step in at once.

use super::Keeper;
use crate::config::{PoolVotes, ServerAddress, ServerConfig};
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

/// The name of the pool that a server votes for with others of it, unless each of them votes for itself.
fn shared_name(config: &ServerConfig) -> Option<&ServerAddress> {
    config.pool().filter(|_| config.pool.pool_votes == PoolVotes::Minority)
}

/// How many servers of a pool vote beside others, given the number of voices of each other pool and of each server by
/// itself: fewer than these together, or as many where there is only one other; `None` for all, where there is none.
///
/// It is enough to compare each pool with all voices of the others, spare ones too: only the largest can have as many
/// as all others together, and where it votes with one fewer than these have, each of them is in the minority as well.
fn most_votes(others: &[usize]) -> Option<usize> {
    match others {
        [] => None,
        [one] => Some(*one),
        _ => Some(others.iter().sum::<usize>().saturating_sub(1)),
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
                pool.postpone(address, now);
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

    /// Of these servers, which may vote, those that do: of a pool as many as [`most_votes`] says, unless it may vote
    /// with each. Those that answer come first.
    pub(super) fn within_shares(&self, servers: &[usize]) -> Vec<usize> {
        servers.iter().copied().filter(|server| !self.is_beyond_share(*server, servers)).collect()
    }

    fn is_beyond_share(&self, server: usize, servers: &[usize]) -> bool {
        let Some(pool) = self.peers.get(server).and_then(|peer| shared_name(peer.config())) else { return false };
        let is_mate = |other: &usize| self.peers.get(*other).is_some_and(|peer| peer.config().pool() == Some(pool));
        let Some(most) = most_votes(&self.voices_beside(server, servers)) else { return false };
        let mut mates: Vec<usize> = servers.iter().copied().filter(is_mate).collect();
        let worth = |mate: &usize| {
            let peer = self.peers.get(*mate);
            (!peer.is_some_and(Peer::answers), !peer.is_some_and(Peer::was_heard), *mate)
        };
        mates.sort_by_key(worth);
        mates.iter().skip(most).any(|mate| *mate == server)
    }

    /// The numbers of voices beside the pool of `server`: of each other pool, and one for each server by itself. Only
    /// those that are as trusted as it is vote with it.
    fn voices_beside(&self, server: usize, servers: &[usize]) -> Vec<usize> {
        let Some(own) = self.peers.get(server).map(Peer::config) else { return Vec::new() };
        let peers = servers.iter().filter_map(|other| self.peers.get(*other));
        let is_beside = |peer: &&Peer| peer.config().pool() != own.pool() && peer.config().vote.trust == own.vote.trust;
        let mut voices = Vec::new();
        let mut pools: Vec<(&ServerAddress, usize)> = Vec::new();
        for peer in peers.filter(is_beside).filter(|peer| self.has_voice(peer)) {
            match (shared_name(peer.config()), pools.last_mut()) {
                (None, _) => voices.push(1),
                (Some(name), Some((last, count))) if *last == name => *count += 1,
                (Some(name), _) => pools.push((name, 1)),
            }
        }
        voices.extend(pools.iter().map(|(_, count)| *count));
        voices
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

#[cfg(test)]
mod tests {
    use super::*;

    /// How many servers of each pool vote, beside this many servers by themselves.
    fn votes<const POOLS: usize>(pools: [usize; POOLS], alone: usize) -> [usize; POOLS] {
        let beside = |own: usize| {
            let others = pools.iter().enumerate().filter(|(pool, _)| *pool != own).map(|(_, voices)| *voices);
            others.chain(std::iter::repeat_n(1, alone)).collect::<Vec<_>>()
        };
        std::array::from_fn(|pool| most_votes(&beside(pool)).map_or(pools[pool], |most| most.min(pools[pool])))
    }

    #[test]
    fn a_pool_alone_votes_with_all_and_two_share_the_votes() {
        assert_eq!(votes([4], 0), [4]);
        assert_eq!(votes([4, 4], 0), [4, 4]);
        assert_eq!(votes([4, 2], 0), [2, 2]);
        assert_eq!(votes([1, 4], 0), [1, 1]);
        assert_eq!(votes([4], 1), [1]);
        assert_eq!(votes([4], 2), [1]);
        assert_eq!(votes([4], 5), [4]);
        assert_eq!(votes([4, 2], 1), [2, 2]);
        assert_eq!(votes([4, 4], 1), [4, 4]);
        assert_eq!(votes([6, 3, 2], 0), [4, 3, 2]);
    }

    #[test]
    fn no_pool_outvotes_the_others_together_and_none_is_without_a_vote() {
        for number in 0..5_usize.pow(4) {
            let [one, two, three, alone] = std::array::from_fn(|place| number / 5_usize.pow(place as u32) % 5);
            let voices = [one + 1, two + 1, three + 1];
            let shares = votes(voices, alone);
            let all = shares.iter().sum::<usize>() + alone;
            assert!(shares.iter().all(|share| *share > 0 && 2 * share < all), "{voices:?} {alone}: {shares:?}");
            let pair = votes([one + 1, two + 1], 0);
            assert_eq!(pair, [one.min(two) + 1; 2], "two alone");
        }
    }
}
