//! A run cut at its first switches: what was in transit, how long, and beside which tau_r-.

use super::{BoundModel, CoveredLength};
use crate::analysis::{SwitchStamping, TimeRange};
use crate::certified::gather::{GatheredSwitch, JoinedLog};
use std::collections::VecDeque;

/// The time from a first switch to the next one, which decides the round: tau_r- of a time is that of the first switch
/// that comes next (docs/theta.md, "At switches or at all times").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoveredRound {
    /// tau+ at the switch; 0 where nothing is in transit.
    pub(super) longest_ps: i64,
    /// tau_r- of the switch.
    pub(super) relevant_ps: i64,
}

/// A time for which tau+(t) stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransitSpell {
    pub(super) round: usize,
    pub(super) longest_ps: i64,
    pub(super) lasts_ps: i64,
}

/// A message beside the least tau_r- of the rounds in which it is in transit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CarriedMessage {
    /// The round in which it was sent.
    pub(super) round: usize,
    pub(super) delay_ps: i64,
    pub(super) relevant_ps: i64,
}

/// What is judged of a run.
#[derive(Debug, Default)]
pub(super) struct CoveredRun {
    pub(super) rounds: Vec<CoveredRound>,
    pub(super) spells: Vec<TransitSpell>,
    pub(super) messages: Vec<CarriedMessage>,
}

impl BoundModel {
    /// What the model bounds, of the largest delay and the tau_r- beside it. Ratios are at least 1, as Omega is.
    pub(super) fn value(self, longest_ps: i64, relevant_ps: i64, wait_ps: i64) -> f64 {
        let over = longest_ps as f64;
        match self {
            BoundModel::Timeout => over,
            BoundModel::Ratio => (over / relevant_ps as f64).max(1.0),
            BoundModel::RatioWithDelay => (over / relevant_ps.saturating_add(wait_ps) as f64).max(1.0),
        }
    }
}

/// The first process to reach a round, with those that switch at the same time.
struct FirstSwitch {
    at_ps: i64,
    /// tau_r-, unless only the catch-up rule was used.
    relevant_ps: Option<i64>,
    /// Its number among the rounds that are judged.
    judged: Option<usize>,
}

/// The delays in transit, the longest first; as the queue of the analysis, but asked when the longest one ends.
#[derive(Default)]
struct TransitQueue {
    flights: VecDeque<(i64, i64)>,
    now_ps: i64,
}

impl TransitQueue {
    fn send(&mut self, delay_ps: i64, end_ps: i64) {
        while self.flights.back().is_some_and(|&(delay, _)| delay <= delay_ps) {
            self.flights.pop_back();
        }
        self.flights.push_back((delay_ps, end_ps));
    }

    /// tau+ now; 0 where nothing is in transit.
    fn longest_ps(&mut self) -> i64 {
        while self.flights.front().is_some_and(|&(_, end_ps)| end_ps <= self.now_ps) {
            self.flights.pop_front();
        }
        self.flights.front().map_or(0, |&(delay_ps, _)| delay_ps)
    }

    /// Lets time pass, and hands over each tau+ with how long it held.
    fn pass(&mut self, until_ps: i64, mut held: impl FnMut(i64, i64)) {
        while self.now_ps < until_ps {
            let longest_ps = self.longest_ps();
            let end_ps = self.flights.front().map_or(until_ps, |&(_, end_ps)| end_ps.min(until_ps));
            held(longest_ps, end_ps - self.now_ps);
            self.now_ps = end_ps;
        }
    }
}

impl CoveredRun {
    pub(super) fn new(joined: &JoinedLog, stamping: SwitchStamping, range: TimeRange) -> Self {
        let switches = first_switches(joined, range);
        let mut run = CoveredRun::default();
        run.sweep(joined, &switches, stamping);
        run.carry(joined, &switches, stamping);
        run
    }

    pub(super) fn length(&self) -> CoveredLength {
        CoveredLength {
            rounds: self.rounds.len(),
            messages: self.messages.len(),
            time_ps: self.spells.iter().map(|spell| spell.lasts_ps as f64).sum(),
            block: self.block(),
        }
    }

    /// How many rounds may depend on each other: the square root of their number, as in the test of correlation.
    pub(super) fn block(&self) -> usize {
        (self.rounds.len() as f64).sqrt().ceil() as usize
    }

    /// Through all times, from the first broadcast to the last switch.
    fn sweep(&mut self, joined: &JoinedLog, switches: &[FirstSwitch], stamping: SwitchStamping) {
        let mut coming = delays(joined).peekable();
        let now_ps = coming.peek().map_or(i64::MIN, |message| message.sent_ps);
        let mut transit = TransitQueue { now_ps, ..TransitQueue::default() };
        for switch in switches {
            let spells = &mut self.spells;
            let mut held = |longest_ps, lasts_ps| {
                spells.extend(switch.judged.map(|round| TransitSpell { round, longest_ps, lasts_ps }));
            };
            while let Some(message) = coming.next_if(|message| is_sent_by(message.sent_ps, switch.at_ps, stamping)) {
                transit.pass(message.sent_ps, &mut held);
                transit.send(message.delay_ps, message.sent_ps.saturating_add(message.delay_ps));
            }
            transit.pass(switch.at_ps, &mut held);
            if let (Some(_), Some(relevant_ps)) = (switch.judged, switch.relevant_ps) {
                self.rounds.push(CoveredRound { longest_ps: transit.longest_ps(), relevant_ps });
            }
        }
    }

    /// Each message beside the rounds in which it is in transit.
    fn carry(&mut self, joined: &JoinedLog, switches: &[FirstSwitch], stamping: SwitchStamping) {
        for message in delays(joined) {
            let begin = switches.partition_point(|switch| !is_sent_by(message.sent_ps, switch.at_ps, stamping));
            let end_ps = message.sent_ps.saturating_add(message.delay_ps);
            let end = switches.partition_point(|switch| switch.at_ps < end_ps).min(switches.len().saturating_sub(1));
            let Some(round) = switches.get(begin).and_then(|switch| switch.judged) else { continue };
            let beside = switches[begin..=end.max(begin)].iter().filter_map(|switch| switch.relevant_ps);
            let relevant_ps = beside.min();
            let delay_ps = message.delay_ps;
            self.messages.extend(relevant_ps.map(|relevant_ps| CarriedMessage { round, delay_ps, relevant_ps }));
        }
    }
}

/// A message by the clocks.
struct TimedDelay {
    sent_ps: i64,
    delay_ps: i64,
}

/// The messages in the order in which they were sent. Those that arrive before they are sent count nowhere.
fn delays(joined: &JoinedLog) -> impl Iterator<Item = TimedDelay> {
    let timed = joined.messages.iter().map(|message| {
        let sent_ps = message.sent.clock_ps;
        TimedDelay { sent_ps, delay_ps: message.perceived.clock_ps.saturating_sub(sent_ps) }
    });
    timed.filter(|message| message.delay_ps > 0)
}

fn is_sent_by(sent_ps: i64, at_ps: i64, stamping: SwitchStamping) -> bool {
    match stamping {
        SwitchStamping::AfterBroadcast => sent_ps <= at_ps,
        SwitchStamping::BeforeBroadcast => sent_ps < at_ps,
    }
}

fn first_switches(joined: &JoinedLog, range: TimeRange) -> Vec<FirstSwitch> {
    let (mut frontier, mut judged) = (1, 0..);
    let mut switches = Vec::new();
    for together in joined.turns.chunk_by(|one, other| one.at.clock_ps == other.at.clock_ps) {
        let reached = together.iter().map(|turn| turn.to).max().unwrap_or(0);
        if reached <= frontier {
            continue;
        }
        frontier = reached;
        let at_ps = together[0].at.clock_ps;
        let relevant_ps = together.iter().filter_map(|turn| relevant_ps(turn, joined.threshold)).max();
        let judged = relevant_ps.filter(|_| range.holds(at_ps)).and_then(|_| judged.next());
        switches.push(FirstSwitch { at_ps, relevant_ps, judged });
    }
    switches
}

/// The delay of the (n-f)-th fastest message that made a process advance.
fn relevant_ps(turn: &GatheredSwitch, threshold: usize) -> Option<i64> {
    let delay_ps = |message: &crate::certified::gather::GatheredMessage| {
        message.perceived.clock_ps.saturating_sub(message.sent.clock_ps)
    };
    let mut delays: Vec<i64> = turn.contributors.iter().map(delay_ps).filter(|&delay_ps| delay_ps > 0).collect();
    delays.sort_unstable();
    delays.truncate(threshold);
    delays.last().copied()
}
