//! The outcome of a simulated run.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SimulationOutcome {
    /// Messages sent, one for each receiver.
    pub sent: u64,
    /// Messages that their receivers have processed.
    pub perceived: u64,
    /// Messages that links lost.
    pub lost: u64,
    /// Messages that arrived more than once.
    pub duplicated: u64,
    /// Messages that links held back.
    pub held: u64,
    /// Messages that came to a process that had crashed or had not started.
    pub missed: u64,
    /// Broadcasts.
    pub broadcasts: u64,
    /// Switches.
    pub switches: u64,
    /// When the last message had been processed, in picoseconds since the origin.
    pub end_ps: u64,
    /// The least round of a correct process at the end.
    pub least_round: u64,
    /// The greatest round of a correct process at the end.
    pub greatest_round: u64,
    /// The largest difference between the clocks of correct processes, from the moment on when all had started.
    pub precision: u64,
    /// Correct processes that did not reach the last round: the system has stopped.
    pub unfinished: Vec<u32>,
}

/// Follows the distance between the clocks of correct processes.
pub(super) struct RoundSpread {
    correct: Vec<bool>,
    rounds: Vec<u64>,
    /// Switches that are known and have not happened yet: (when, who, to which round).
    coming: BinaryHeap<Reverse<(u64, u32, u64)>>,
    /// How many correct processes are in each round.
    counts: BTreeMap<u64, u32>,
    largest: u64,
}

impl RoundSpread {
    pub(super) fn new(correct: Vec<bool>) -> Self {
        let sound = correct.iter().filter(|&&is_correct| is_correct).count() as u32;
        let rounds = vec![0; correct.len()];
        RoundSpread { correct, rounds, coming: BinaryHeap::new(), counts: BTreeMap::from([(0, sound)]), largest: 0 }
    }

    /// `process` is in round `to` from `at` on; nothing that happens before `now` is still to come.
    pub(super) fn switched(&mut self, process: u32, to: u64, at: u64, now: u64) {
        if self.correct.get(process as usize) == Some(&true) {
            self.coming.push(Reverse((at, process, to)));
        }
        self.follow(now);
    }

    fn follow(&mut self, now: u64) {
        while let Some(&Reverse((at, process, to))) = self.coming.peek() {
            if at > now {
                return;
            }
            self.coming.pop();
            self.apply(process, to);
        }
    }

    fn apply(&mut self, process: u32, to: u64) {
        let from = std::mem::replace(&mut self.rounds[process as usize], to);
        *self.counts.entry(to).or_default() += 1;
        if let Some(count) = self.counts.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&from);
            }
        }
        if let (Some((&least, _)), Some((&greatest, _))) = (self.counts.first_key_value(), self.counts.last_key_value())
        {
            // Before all have started there is no precision to speak of.
            let apart = if least == 0 { 0 } else { greatest - least };
            self.largest = self.largest.max(apart);
        }
    }

    pub(super) fn finish(&mut self) -> u64 {
        self.follow(u64::MAX);
        self.largest
    }
}
