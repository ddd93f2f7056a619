//! Which clock gives pulses the numbers of their seconds.
//!
//! Pulses vote like servers, and what they say rests on the number that they were given. Were that always the published
//! clock's, then a server that was alone with them at first and is wrong by whole seconds would have their voice beside
//! its own for ever. So where two servers or more agree without any pulses, theirs is the number. Where any are
//! trusted, be it the pulses, trusted servers alone say it: others must not move what decides over them.

use super::Keeper;
use super::electing::Ballot;
use crate::peer::Peer;
use ffclock_estimator::{Belief, ServerClock, Unheard, Voter, vote};
use ffclock_units::Estimate;

/// One server alone against the pulses may be the one that is wrong.
const NUMBERED_BY: usize = 2;

impl Keeper<'_> {
    /// The clock of the servers that say themselves which second it is, where a majority of them agrees.
    pub(super) fn clock_of_numbers(&self, ballot: &Ballot) -> Option<Estimate> {
        let is_numbered = |one: &&ServerClock| self.peers.get(one.server).is_some_and(Peer::is_numbered);
        let candidates = ballot.candidates();
        if !candidates.iter().any(|one| is_numbered(&one)) {
            return None;
        }
        let trust = candidates.iter().any(|one| one.has_vote() && one.is_trusted);
        let decides = |one: &&ServerClock| one.has_vote() && (one.is_trusted || !trust);
        let others: Vec<&ServerClock> = candidates.iter().filter(decides).filter(|one| !is_numbered(one)).collect();
        let voters: Vec<Voter> = others.iter().map(|one| one.voter()).collect();
        let result = vote(&voters, Unheard::default(), &self.election.rules().rules())?;
        let believed = others.iter().zip(&result.beliefs).filter(|(_, belief)| **belief == Belief::Truechimer);
        let believed: Vec<&ServerClock> = believed.map(|(one, _)| *one).collect();
        let narrowest = believed.iter().min_by_key(|one| one.now.bound).filter(|_| believed.len() >= NUMBERED_BY)?;
        Some(narrowest.now.bounded_by(result.bounds(&narrowest.now, &voters).believed))
    }
}
