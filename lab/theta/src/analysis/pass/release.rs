//! Releasing broadcasts and switches in the order of time, as soon as nothing earlier can come.

use super::flight::Flight;
use super::judge::SwitchEvidence;
use super::timeline::{Broadcast, Next, TimedSwitch};
use super::{Certainty, LogPass};
use crate::analysis::options::{PairMode, ThetaMode};
use crate::analysis::ratio::Ratio;
use crate::analysis::recent::RecentFigures;
use crate::analysis::tally::{JudgedSwitch, PassTally, Peak, SwitchPair, keep_larger};
use crate::analysis::window::NEVER;
use crate::record::{ProcessId, Round};

/// Whether to wait for what is outstanding.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// A broadcast waits until all correct processes have perceived it.
    Wait,
    /// A message that has not been perceived by now is taken as lost.
    GiveUp,
}

/// All switches at one time.
struct Together {
    at_ps: i64,
    /// tau_r- at this time, if one of the switches is an advance that gives it.
    relevant_ps: Option<i64>,
    /// One of the switches.
    any: TimedSwitch,
    /// The first one to a round that no process had reached before.
    leader: Option<TimedSwitch>,
}

impl LogPass {
    /// Ends the pass: messages that are outstanding count as unperceived.
    pub fn finish(self) -> PassTally {
        self.finish_shard().0
    }

    /// The same, with what the pass knows of the part of the log that it has not read.
    pub(in crate::analysis) fn finish_shard(mut self) -> (PassTally, Certainty) {
        self.end();
        (self.tally.settled(), self.certainty)
    }

    /// The same, with the figures of the last seconds before the end.
    pub fn finish_watched(mut self) -> (PassTally, Option<RecentFigures>) {
        self.end();
        let recent = self.recent();
        (self.tally.settled(), recent)
    }

    fn end(&mut self) {
        while let Some(process) = self.positions.holder() {
            self.release_held(process, i64::MIN);
        }
        self.streams.end();
        while self.step(Patience::GiveUp) {}
        self.see_begin_of_range(i64::MAX);
        while !self.window.is_empty() {
            self.retire();
        }
    }

    pub(super) fn release(&mut self) {
        while self.step(Patience::Wait) {}
        while self.oldest_is_done() {
            self.retire();
        }
    }

    /// Gives the oldest round up, with messages of it outstanding.
    pub(super) fn give_up_oldest(&mut self) {
        while self.window.front().is_some_and(|round| round.unreleased > 0) && self.step(Patience::GiveUp) {}
        self.look_for_forgeries();
        self.window.give_up();
    }

    /// Releases what comes next in time; false if that must wait, or nothing is left.
    fn step(&mut self, patience: Patience) -> bool {
        // No message may enter before a held switch that precedes it, nor leave before that switch has seen it.
        let watermark = self.streams.watermark_ps().min(self.positions.held_ps());
        if patience == Patience::GiveUp {
            self.release_held_before_next();
        }
        match self.timeline.next(self.rules.options.stamping) {
            None => return false,
            Some(Next::Broadcast { at_ps, broadcast }) => {
                if patience == Patience::Wait && !(at_ps <= watermark && self.is_complete(&broadcast)) {
                    return false;
                }
                self.timeline.pop_broadcast();
                self.see_begin_of_range(at_ps);
                self.release_broadcast(at_ps, &broadcast);
            }
            Some(Next::Switches { at_ps }) => {
                if patience == Patience::Wait && at_ps >= watermark && watermark != i64::MAX {
                    return false;
                }
                self.see_begin_of_range(at_ps);
                self.release_switches(at_ps);
            }
        }
        true
    }

    /// Switches that are older than what is given up will not see their broadcasts.
    fn release_held_before_next(&mut self) {
        let Some(next_ps) = self.timeline.first_ps() else { return };
        while let Some(holder) = self.positions.holder_before(next_ps) {
            self.release_held(holder, i64::MIN);
        }
    }

    fn is_complete(&self, broadcast: &Broadcast) -> bool {
        let messages = self.window.round(broadcast.round);
        messages.is_none_or(|messages| messages.arrived(broadcast.sender) >= self.rules.listeners)
    }

    fn oldest_is_done(&self) -> bool {
        self.window.front().is_some_and(|round| round.unreleased == 0)
            && self.positions.have_left(self.window.oldest(), &self.rules)
    }

    fn retire(&mut self) {
        self.look_for_forgeries();
        self.window.retire();
    }

    /// Counts messages of the oldest round that were perceived and never sent.
    fn look_for_forgeries(&mut self) {
        let Some(round) = self.window.front() else { return };
        let is_unsent = |&sender: &usize| self.rules.correct[sender] && round.sent(sender) == NEVER;
        for sender in (0..self.rules.processes()).filter(is_unsent) {
            let forged = round.arrived(sender);
            let last = round.perceived(sender).iter().copied().max().filter(|&last| last != NEVER);
            self.certainty.miss_broadcast(last);
            let first = round.perceived(sender).iter().copied().filter(|&at| at != NEVER).min();
            if forged > 0 && first.is_some_and(|first| self.rules.counts(first)) {
                self.tally.counts.forged += u64::from(forged);
                let number = self.window.oldest();
                self.tally.unsent[sender].count(u64::from(forged), || {
                    format!("round {number} was perceived {forged} times from process {sender}, which never sent it")
                });
            }
        }
    }

    /// Theta at the first time that counts, when what comes next is at `next_ps`. Afterwards it can only rise when a
    /// message is sent.
    fn see_begin_of_range(&mut self, next_ps: i64) {
        if let Some(begin_ps) = self.range_begin_ps.take_if(|begin_ps| *begin_ps < next_ps) {
            self.tally.theta = self.tally.theta.max(self.transit.theta_at(begin_ps));
        }
    }

    fn release_broadcast(&mut self, at_ps: i64, broadcast: &Broadcast) {
        let before = self.tally.counts.messages;
        let end_ps = self.count_messages(at_ps, broadcast);
        if let Some(end_ps) = end_ps {
            self.transit.send_broadcast(end_ps - at_ps, end_ps);
        }
        if let Some(recent) = &mut self.recent {
            recent.send(at_ps, end_ps, self.tally.counts.messages - before);
        }
        if self.rules.options.theta == ThetaMode::Compute && self.rules.counts(at_ps) {
            self.tally.theta = self.tally.theta.max(self.transit.theta_at(at_ps));
        }
        self.advance_clock(at_ps, broadcast);
    }

    /// The time at which the last message of a broadcast was perceived.
    fn count_messages(&mut self, at_ps: i64, broadcast: &Broadcast) -> Option<i64> {
        let messages = self.window.open(broadcast.round)?;
        debug_assert!(messages.unreleased > 0, "a broadcast is released once");
        messages.unreleased -= 1;
        let flight = Flight { rules: &self.rules, messages, at_ps, sender: broadcast.sender };
        flight.count(&mut self.tally, &mut self.transit)
    }

    /// The sender's clock shows the round it sent. Notes how far apart the clocks of correct processes are now.
    fn advance_clock(&mut self, at_ps: i64, broadcast: &Broadcast) {
        let Broadcast { sender, round, first_of_process } = *broadcast;
        if first_of_process {
            self.positions.reach(sender, round);
            self.judge.reach(round);
        }
        // It has jumped over these rounds and sends them afterwards; its clock never showed them.
        if round < self.positions.began_in(sender) {
            return;
        }
        if let Some(spread) = self.round_clocks.advance(sender, round)
            && self.rules.counts(at_ps)
        {
            let spread_max = &mut self.tally.conformance.spread_max;
            *spread_max = (*spread_max).max(spread);
        }
    }

    /// Releases all switches of this time, which come next.
    fn release_switches(&mut self, at_ps: i64) {
        let switches = self.timeline.pop_switches(at_ps);
        let evidence = SwitchEvidence { rules: &self.rules, window: &self.window };
        let examine = |switch| self.judge.examine(switch, at_ps, &evidence, &mut self.tally);
        let relevant_ps = switches.iter().filter_map(examine).max();
        let leader = self.judge.leader(&switches);
        self.count_switches(&Together { at_ps, relevant_ps, any: switches[0], leader });
        for switch in &switches {
            self.positions.reach(switch.process, switch.to);
            self.judge.reach(switch.to);
        }
        self.timeline.give_back(switches);
    }

    fn count_switches(&mut self, together: &Together) {
        let &Together { at_ps, relevant_ps, any, leader } = together;
        let longest_ps = self.transit.longest_at(at_ps);
        if let Some(relevant_ps) = relevant_ps.filter(|_| self.rules.counts(at_ps)) {
            let wait_ps = self.rules.wait_ps;
            let judged = |switch: &TimedSwitch| JudgedSwitch {
                at_ps,
                process: ProcessId(switch.process as u32),
                round: Round(switch.to),
                longest_ps,
                relevant_ps,
                wait_ps,
            };
            let block_rounds = self.tally.block_rounds;
            self.tally.all.count(&judged(&any), any.to / block_rounds);
            if let Some(leader) = &leader {
                self.tally.first.count(&judged(leader), leader.to / block_rounds);
                self.keep_pair(&judged(leader));
                if let Some(recent) = &mut self.recent {
                    recent.switch(&judged(leader));
                }
                self.judge_throughout(&judged(leader));
            }
        }
        if leader.is_some() {
            self.transit.first_switch(longest_ps);
            if !self.certainty.is_settled() && self.round_clocks.are_known(&self.rules.correct) {
                self.certainty.settle(at_ps);
            }
        }
    }

    fn keep_pair(&mut self, judged: &JudgedSwitch) {
        let JudgedSwitch { at_ps, longest_ps, relevant_ps, .. } = *judged;
        let longest_ps = longest_ps.filter(|_| self.rules.options.pairs == PairMode::Keep);
        self.tally.pairs.extend(longest_ps.map(|longest_ps| SwitchPair { at_ps, relevant_ps, longest_ps }));
    }

    /// tau_r- holds since the last first switch, and tau+ may have been larger at some time since then than it is now.
    fn judge_throughout(&mut self, now: &JudgedSwitch) {
        let longest = self.transit.longest_since_first().and_then(|longest| Ratio::of(longest, now.relevant_ps));
        let ratio = longest.map_or(Ratio::ONE, |ratio| ratio.max(Ratio::ONE));
        let JudgedSwitch { at_ps, process, round, .. } = *now;
        keep_larger(&mut self.tally.throughout, Peak { ratio, at_ps, process, round });
    }
}
