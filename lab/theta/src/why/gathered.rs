//! The first switches of a log in memory, with both delays.

use super::WhyOptions;
use crate::analysis::{Longest, Ratio};
use crate::certified::gather::{GatheredSwitch, JoinedLog};

/// A first switch with a tau_r-.
pub(super) struct JudgedTurn<'a> {
    /// The one that gives tau_r-.
    pub(super) turn: &'a GatheredSwitch,
    /// The round that the first of those who switch now comes to, by either rule.
    pub(super) round: u64,
    pub(super) relevant_ps: i64,
    longest_ps: Option<i64>,
}

impl JudgedTurn<'_> {
    /// At least 1, as in the definition of Omega.
    pub(super) fn ratio(&self) -> Ratio {
        let longest = self.longest_ps.and_then(|longest_ps| Ratio::of(longest_ps, self.relevant_ps));
        longest.map_or(Ratio::ONE, |ratio| ratio.max(Ratio::ONE))
    }
}

/// Those that count, in the order of time.
pub(super) fn judged_turns<'a>(joined: &'a JoinedLog, options: &WhyOptions) -> Vec<JudgedTurn<'a>> {
    let (mut judged, mut frontier, mut transit) = (vec![], 0, Longest::default());
    let mut messages = joined.messages.iter().peekable();
    for together in joined.turns.chunk_by(|one, other| one.at.clock_ps == other.at.clock_ps) {
        let at_ps = together[0].at.clock_ps;
        while let Some(message) = messages.next_if(|message| options.is_sent_by(message.sent.clock_ps, at_ps)) {
            let (sent_ps, end_ps) = (message.sent.clock_ps, message.perceived.clock_ps);
            if end_ps > sent_ps {
                transit.push(end_ps - sent_ps, end_ps);
            }
        }
        let leader = together.iter().find(|turn| turn.to > frontier).filter(|_| options.range.holds(at_ps));
        // tau_r- is the largest of those that switch now; the story is about the one that has it.
        let relevant = together.iter().filter_map(|turn| Some((relevant_ps(turn, joined.threshold)?, turn)));
        if let (Some(leader), Some((relevant_ps, turn))) =
            (leader, relevant.max_by_key(|(relevant_ps, _)| *relevant_ps))
        {
            judged.push(JudgedTurn { turn, round: leader.to, relevant_ps, longest_ps: transit.at(at_ps) });
        }
        frontier = together.iter().map(|turn| turn.to).fold(frontier, u64::max);
    }
    judged
}

/// The delay of the (n-f)-th fastest of the messages that made a process switch, or of the slowest if there are fewer.
fn relevant_ps(turn: &GatheredSwitch, threshold: usize) -> Option<i64> {
    let contributors = turn.contributors.iter();
    let delays = contributors.map(|message| message.perceived.clock_ps.saturating_sub(message.sent.clock_ps));
    let mut delays: Vec<i64> = delays.filter(|&delay_ps| delay_ps > 0).collect();
    delays.sort_unstable();
    delays.get(delays.len().min(threshold).checked_sub(1)?).copied()
}
