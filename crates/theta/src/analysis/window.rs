//! The rounds that are not yet done with: who sent what when, and when it was perceived.

use std::collections::VecDeque;

/// No such event. No clock shows this.
pub(super) const NEVER: i64 = i64::MIN;

/// The messages of one round.
#[derive(Clone, Debug)]
pub(super) struct RoundMessages {
    processes: usize,
    /// When each process sent its message.
    sent: Vec<i64>,
    /// When it was perceived: a row for each sender, a column for each receiver.
    perceived: Vec<i64>,
    /// How many correct processes have perceived the message of each sender.
    arrived: Vec<u32>,
    /// Messages that are sent and not released.
    pub(super) unreleased: u32,
}

/// What became of an event that was put into its round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    New,
    Duplicate,
}

impl RoundMessages {
    fn new(processes: usize) -> Self {
        let (sent, arrived) = (vec![NEVER; processes], vec![0; processes]);
        RoundMessages { processes, sent, perceived: vec![NEVER; processes * processes], arrived, unreleased: 0 }
    }

    fn clear(&mut self) {
        self.sent.fill(NEVER);
        self.perceived.fill(NEVER);
        self.arrived.fill(0);
        self.unreleased = 0;
    }

    pub(super) fn send(&mut self, sender: usize, at: i64) -> Entry {
        let slot = &mut self.sent[sender];
        if *slot != NEVER {
            return Entry::Duplicate;
        }
        *slot = at;
        self.unreleased += 1;
        Entry::New
    }

    /// `weight` is 1 for a correct receiver, 0 for another.
    #[inline]
    pub(super) fn perceive(&mut self, sender: usize, receiver: usize, at: i64, weight: u32) -> Entry {
        let slot = &mut self.perceived[sender * self.processes + receiver];
        if *slot != NEVER {
            return Entry::Duplicate;
        }
        *slot = at;
        self.arrived[sender] += weight;
        Entry::New
    }

    pub(super) fn sent(&self, sender: usize) -> i64 {
        self.sent[sender]
    }

    /// When each receiver perceived the message of `sender`.
    pub(super) fn perceived(&self, sender: usize) -> &[i64] {
        &self.perceived[sender * self.processes..][..self.processes]
    }

    pub(super) fn perceived_by(&self, sender: usize, receiver: usize) -> i64 {
        self.perceived[sender * self.processes + receiver]
    }

    pub(super) fn arrived(&self, sender: usize) -> u32 {
        self.arrived[sender]
    }
}

/// Rounds in a row, from the oldest that may still matter.
#[derive(Clone, Debug)]
pub(super) struct Window {
    processes: usize,
    oldest: u64,
    /// Rounds from here to the oldest were finished; of those before, some may not have been.
    finished_from: u64,
    rounds: VecDeque<RoundMessages>,
    spare: Vec<RoundMessages>,
    rounds_max: u64,
}

/// Where a round lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// In the window, maybe after growing.
    Inside,
    /// Given up already.
    Past,
    /// So far ahead that older rounds must be given up first.
    Ahead,
}

impl Window {
    pub(super) fn new(processes: usize, rounds_max: u64) -> Self {
        Window {
            processes,
            oldest: 0,
            finished_from: 0,
            rounds: VecDeque::new(),
            spare: vec![],
            rounds_max: rounds_max.max(2),
        }
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rounds.is_empty()
    }

    /// An empty window begins wherever the log does.
    pub(super) fn begin_at(&mut self, round: u64) {
        self.oldest = self.oldest.max(round);
        self.finished_from = self.oldest;
    }

    #[inline]
    pub(super) fn reach(&self, round: u64) -> Reach {
        match round.checked_sub(self.oldest) {
            None => Reach::Past,
            Some(ahead) if ahead < self.rounds_max => Reach::Inside,
            Some(_) => Reach::Ahead,
        }
    }

    /// Whether `round` can be what comes after the rounds in the window, rather than a number out of the blue.
    pub(super) fn may_follow(&self, round: u64) -> bool {
        round - self.oldest < self.rounds_max.saturating_add(self.rounds.len() as u64)
    }

    /// The messages of `round`, which is inside.
    #[inline]
    pub(super) fn round_mut(&mut self, round: u64) -> &mut RoundMessages {
        let index = (round - self.oldest) as usize;
        while self.rounds.len() <= index {
            let fresh = self.spare.pop().unwrap_or_else(|| RoundMessages::new(self.processes));
            self.rounds.push_back(fresh);
        }
        &mut self.rounds[index]
    }

    pub(super) fn round(&self, round: u64) -> Option<&RoundMessages> {
        self.rounds.get(usize::try_from(round.checked_sub(self.oldest)?).ok()?)
    }

    pub(super) fn front(&self) -> Option<&RoundMessages> {
        self.rounds.front()
    }

    /// Whether `round` was retired with nothing outstanding.
    pub(super) fn was_finished(&self, round: u64) -> bool {
        (self.finished_from..self.oldest).contains(&round)
    }

    /// Drops the oldest round, with messages of it outstanding.
    pub(super) fn give_up(&mut self) {
        self.retire();
        self.finished_from = self.oldest;
    }

    /// Drops the oldest round, which is finished.
    pub(super) fn retire(&mut self) {
        if let Some(mut round) = self.rounds.pop_front() {
            round.clear();
            self.spare.push(round);
        }
        self.oldest += 1;
    }
}
