//! Judging switches: by the rules, and by the delays.

use super::super::ratio::Ratio;
use super::super::tally::{Judged, Peak, keep_larger};
use super::super::window::NEVER;
use super::{Pass, Turn};
use crate::record::{Form, Origin, ProcessId, Round, SwitchRule};

impl Pass {
    /// Works on all switches at the same time: the first in line and those that stand there with it.
    pub(super) fn release_turns(&mut self) {
        let Some((at, turn)) = self.turns.pop() else { return };
        if self.turns.first().is_none_or(|&(time, _)| time != at) {
            return self.release_turns_at(at, &[turn]);
        }
        let mut turns = std::mem::take(&mut self.turn_scratch);
        turns.clear();
        turns.push(turn);
        while self.turns.first().is_some_and(|&(time, _)| time == at) {
            turns.extend(self.turns.pop().map(|(_, turn)| turn));
        }
        self.release_turns_at(at, &turns);
        self.turn_scratch = turns;
    }

    #[inline]
    fn release_turns_at(&mut self, at: i64, turns: &[Turn]) {
        let relevant = turns.iter().filter_map(|turn| self.examine(at, turn)).max();
        let leader = turns.iter().find(|turn| turn.to > self.frontier).copied();
        self.judge(at, relevant, (turns[0], leader));
        for turn in turns {
            let position = &mut self.positions[turn.process];
            position.reached = position.reached.max(turn.to);
            self.frontier = self.frontier.max(turn.to);
        }
    }

    /// `relevant` is tau_r- at this time, if a switch by the advance rule gives one; of the switches one, and the one to a new round.
    fn judge(&mut self, at: i64, relevant: Option<i64>, (any, leader): (Turn, Option<Turn>)) {
        let longest = self.longest.at(at);
        if let Some(relevant_ps) = relevant.filter(|_| self.options.range.holds(at)) {
            let judged = |turn: &Turn| Judged {
                at_ps: at,
                process: ProcessId(turn.process as u32),
                round: Round(turn.to),
                longest_ps: longest,
                relevant_ps,
                wait_ps: self.wait_ps,
            };
            let block = |turn: &Turn| turn.to / self.tally.block_rounds;
            let (block_of_any, block_of_leader) = (block(&any), leader.as_ref().map(block));
            self.tally.all.count(&judged(&any), block_of_any);
            if let (Some(leader), Some(block)) = (&leader, block_of_leader) {
                self.tally.first.count(&judged(leader), block);
                self.judge_throughout(&judged(leader));
            }
        }
        if leader.is_some() {
            self.longest_since_first = longest;
            if self.certainty.settled_ps.is_none() {
                let known = self.rounds_in.iter().zip(&self.correct).all(|(&round, &correct)| !correct || round > 0);
                self.certainty.settled_ps = known.then_some(at);
            }
        }
    }

    /// tau_r- holds since the last first switch, and tau+ may have been larger in between than now.
    fn judge_throughout(&mut self, now: &Judged) {
        let longest = self.longest_since_first.and_then(|longest| Ratio::of(longest, now.relevant_ps));
        let ratio = longest.map_or(Ratio::ONE, |ratio| ratio.max(Ratio::ONE));
        let Judged { at_ps, process, round, .. } = *now;
        keep_larger(&mut self.tally.throughout, Peak { ratio, at_ps, process, round });
    }

    /// Checks a switch against its rule. The delay of the (n-f)-th fastest correct message that made it happen, for an advance.
    fn examine(&mut self, at: i64, turn: &Turn) -> Option<i64> {
        let in_range = self.options.range.holds(at);
        let (round, threshold) = match turn.rule {
            SwitchRule::Advance => (turn.from, self.advance_threshold),
            SwitchRule::CatchUp => (turn.to, self.catch_up_threshold),
        };
        let Some(found) = self.contributors(turn, round) else {
            self.tally.counts.out_of_order += u64::from(in_range);
            return None;
        };
        // Whose algorithm is not known breaks no rule.
        if in_range && self.origin != Origin::Imported {
            let is_proven = found.senders >= threshold || self.senders_from(turn, round) >= threshold;
            self.check_rule(turn, found.senders, (threshold, is_proven));
        }
        if turn.rule == SwitchRule::CatchUp || found.correct == 0 {
            return None;
        }
        if self.tally.delays.is_none() && found.correct <= self.advance_threshold {
            return Some(found.slowest);
        }
        self.contributed_delays(turn, round);
        let rank = self.scratch.len().min(self.advance_threshold);
        if let Some(delays) = self.tally.delays.as_mut().filter(|_| in_range) {
            for (histogram, &delay) in delays.by_rank.iter_mut().zip(&self.scratch[..rank]) {
                histogram.count(delay as u64);
            }
        }
        Some(self.scratch[rank - 1])
    }

    /// How many senders had been heard from in `round` or a later one when the switch was decided, as far as that proves that they had come to `round`.
    /// A process that others have left far behind keeps only the newest round of each: docs/theta-run.md, theorem 3.
    #[cold]
    fn senders_from(&self, turn: &Turn, round: u64) -> usize {
        // Who jumps in another form has not sent what it jumped over, so an advance takes the round itself.
        if turn.rule == SwitchRule::Advance && self.form != Form::Repaired {
            return 0;
        }
        let mut heard = vec![false; self.correct.len()];
        for messages in (round..self.window.end()).filter_map(|later| self.window.round(later)) {
            for (heard, (_, perceived)) in heard.iter_mut().zip(messages.to(turn.process)) {
                *heard |= perceived != NEVER && perceived <= turn.decided_ps;
            }
        }
        heard.into_iter().filter(|&heard| heard).count()
    }

    fn check_rule(&mut self, turn: &Turn, senders: usize, (threshold, is_proven): (usize, bool)) {
        let Turn { process, from, to, rule, .. } = *turn;
        let conformance = &mut self.tally.conformance;
        conformance.switches += 1;
        conformance.catch_ups += u64::from(rule == SwitchRule::CatchUp);
        if !is_proven {
            let words = || {
                format!(
                    "process {process} switched from {from} to {to} ({rule:?}) with {senders} of {threshold} messages"
                )
            };
            conformance.breach(words);
        }
        if rule == SwitchRule::Advance && to != from.saturating_add(1) {
            conformance.breach(|| format!("process {process} advanced from {from} to {to}: not the next round"));
        }
    }

    /// The messages of `round` that had been perceived when the switch was decided. `None` if the round has been given up.
    #[inline]
    fn contributors(&self, turn: &Turn, round: u64) -> Option<Contributors> {
        let mut found = Contributors::default();
        let messages = self.window.round(round)?.to(turn.process);
        // Without branches: whose message came too late is chance, which no processor foresees.
        for ((sent, perceived), &correct) in messages.zip(&self.correct) {
            let came = (perceived != NEVER) & (perceived <= turn.decided_ps);
            let counts = came & correct & (sent != NEVER) & (perceived > sent);
            found.senders += usize::from(came);
            found.correct += usize::from(counts);
            let delay = if counts { perceived.wrapping_sub(sent) } else { 0 };
            found.slowest = found.slowest.max(delay);
        }
        Some(found)
    }

    /// Puts the delays of the same messages, as far as correct processes sent them, into the scratch, the fastest first.
    fn contributed_delays(&mut self, turn: &Turn, round: u64) {
        self.scratch.clear();
        let Some(messages) = self.window.round(round) else { return };
        let counts =
            |(sent, perceived)| perceived != NEVER && perceived <= turn.decided_ps && sent != NEVER && perceived > sent;
        let correct =
            messages.to(turn.process).zip(&self.correct).filter(|&(times, &correct)| correct && counts(times));
        self.scratch.extend(correct.map(|((sent, perceived), _)| perceived - sent));
        self.scratch.sort_unstable();
    }
}

/// Messages that made a process switch.
#[derive(Clone, Copy, Debug, Default)]
struct Contributors {
    /// How many there are.
    senders: usize,
    /// How many of them count: those of correct processes.
    correct: usize,
    /// The longest delay among these.
    slowest: i64,
}
