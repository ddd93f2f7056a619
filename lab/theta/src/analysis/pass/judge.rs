//! Judging a switch: whether its rule permitted it, and the delays of the messages that caused it.

use super::rules::Rules;
use super::timeline::TimedSwitch;
use crate::analysis::tally::{Conformance, PassTally};
use crate::analysis::window::{NEVER, RoundWindow, Times};
use crate::record::{RecordedForm, SwitchRule};

/// Judges switches in the order of time.
#[derive(Default)]
pub(super) struct SwitchJudge {
    /// The highest round that any correct process has reached.
    frontier: u64,
    /// Memory for the delays of one switch.
    delays: Vec<i64>,
}

/// What a switch is judged by.
pub(super) struct SwitchEvidence<'a> {
    pub(super) rules: &'a Rules,
    pub(super) window: &'a RoundWindow,
}

/// The messages that made a process switch.
#[derive(Clone, Copy, Debug, Default)]
struct Contributors {
    /// How many there are.
    senders: usize,
    /// How many of them come from correct processes, with a positive delay: these have delays that count.
    correct: usize,
    /// The longest delay among these.
    slowest: i64,
}

/// What the rule of a switch asks for, and what the log shows.
struct RuleCheck {
    senders: usize,
    threshold: usize,
    is_proven: bool,
}

impl SwitchJudge {
    /// The first of the switches that leads to a round no correct process had reached before.
    pub(super) fn leader(&self, switches: &[TimedSwitch]) -> Option<TimedSwitch> {
        switches.iter().find(|switch| switch.to > self.frontier).copied()
    }

    /// Notes that a correct process has reached a round.
    pub(super) fn reach(&mut self, round: u64) {
        self.frontier = self.frontier.max(round);
    }

    /// Checks a switch at time `at_ps` against its rule. For an advance, tau_r-: the delay of the (n-f)-th fastest
    /// correct message that caused it.
    pub(super) fn examine(
        &mut self,
        switch: &TimedSwitch,
        at_ps: i64,
        evidence: &SwitchEvidence<'_>,
        tally: &mut PassTally,
    ) -> Option<i64> {
        let rules = evidence.rules;
        let in_range = rules.counts(at_ps);
        let threshold = rules.threshold(switch.rule);
        let Some(found) = evidence.contributors(switch) else {
            tally.counts.out_of_order += u64::from(in_range);
            return None;
        };
        // An imported log is one of no known algorithm, so it breaks no rule.
        if in_range && !rules.is_imported() {
            let is_proven = found.senders >= threshold || evidence.proven_senders(switch) >= threshold;
            RuleCheck { senders: found.senders, threshold, is_proven }.apply(switch, &mut tally.conformance);
        }
        if switch.rule == SwitchRule::CatchUp || found.correct == 0 {
            return None;
        }
        if tally.delays.is_none() && found.correct <= rules.advance_threshold {
            return Some(found.slowest);
        }
        evidence.contributed_delays(switch, &mut self.delays);
        debug_assert_eq!(self.delays.len(), found.correct, "both look at the same messages");
        let rank = self.delays.len().min(rules.advance_threshold);
        if let Some(delays) = tally.delays.as_mut().filter(|_| in_range) {
            for (histogram, &delay) in delays.by_rank.iter_mut().zip(&self.delays[..rank]) {
                histogram.count(delay as u64);
            }
        }
        Some(self.delays[rank - 1])
    }
}

impl RuleCheck {
    fn apply(&self, switch: &TimedSwitch, conformance: &mut Conformance) {
        let TimedSwitch { process, from, to, rule, .. } = *switch;
        let RuleCheck { senders, threshold, is_proven } = *self;
        conformance.switches += 1;
        conformance.catch_ups += u64::from(rule == SwitchRule::CatchUp);
        if !is_proven {
            conformance.breach(|| {
                format!(
                    "process {process} switched from {from} to {to} ({rule:?}) with {senders} of {threshold} messages"
                )
            });
        }
        if rule == SwitchRule::Advance && to != from.saturating_add(1) {
            conformance.breach(|| format!("process {process} advanced from {from} to {to}: not the next round"));
        }
    }
}

/// The round whose messages the rule of a switch counts.
fn counted_round(switch: &TimedSwitch) -> u64 {
    match switch.rule {
        SwitchRule::Advance => switch.from,
        SwitchRule::CatchUp => switch.to,
    }
}

impl SwitchEvidence<'_> {
    /// The messages that had been perceived when the switch was decided. `None` if their round has been given up.
    #[inline]
    fn contributors(&self, switch: &TimedSwitch) -> Option<Contributors> {
        let mut found = Contributors::default();
        let messages = self.window.round(counted_round(switch))?.to(switch.process);
        // Without branches: which message comes too late is chance, and no processor predicts it.
        for (Times { sent, perceived }, &correct) in messages.zip(&self.rules.correct) {
            let came = (perceived != NEVER) & (perceived <= switch.decided_ps);
            let counts = came & correct & (sent != NEVER) & (perceived > sent);
            found.senders += usize::from(came);
            found.correct += usize::from(counts);
            let delay = if counts { perceived.wrapping_sub(sent) } else { 0 };
            found.slowest = found.slowest.max(delay);
        }
        Some(found)
    }

    /// Replaces `delays` with the delays of the same messages, as far as they count, the fastest first.
    fn contributed_delays(&self, switch: &TimedSwitch, delays: &mut Vec<i64>) {
        delays.clear();
        let Some(messages) = self.window.round(counted_round(switch)) else { return };
        let counts = |times: &Times| {
            let Times { sent, perceived } = *times;
            perceived != NEVER && perceived <= switch.decided_ps && sent != NEVER && perceived > sent
        };
        let correct = messages.to(switch.process).zip(&self.rules.correct);
        let correct = correct.filter(|(times, correct)| **correct && counts(times));
        delays.extend(correct.map(|(times, _)| times.perceived - times.sent));
        delays.sort_unstable();
    }

    /// The number of senders whose messages, of the counted round or a later one, prove that they had come to it when
    /// the switch was decided. Of a sender far ahead a process keeps only the newest round: docs/theta-run.md, theorem
    /// 3.
    #[cold]
    fn proven_senders(&self, switch: &TimedSwitch) -> usize {
        // In another form a process that jumps has not sent the rounds it jumped over, so an advance needs the round
        // itself.
        if switch.rule == SwitchRule::Advance && self.rules.form != RecordedForm::Repaired {
            return 0;
        }
        let mut heard = vec![false; self.rules.processes()];
        let rounds = counted_round(switch)..self.window.end();
        for messages in rounds.filter_map(|later| self.window.round(later)) {
            for (heard, Times { perceived, .. }) in heard.iter_mut().zip(messages.to(switch.process)) {
                *heard |= perceived != NEVER && perceived <= switch.decided_ps;
            }
        }
        heard.into_iter().filter(|&heard| heard).count()
    }
}
