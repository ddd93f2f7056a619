//! Who has sent which round: a window of rounds from the present one on, one bit for each sender and round.
//!
//! Memory is bounded whatever faulty processes send. Of rounds beyond the window only the newest of each sender is kept. That is enough: a correct
//! process sends all rounds up to its own, so f + 1 senders whose newest round is at least l prove that a correct one has sent (init, l).

/// Senders by round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tally {
    /// The lowest round kept.
    first: u64,
    /// 64-bit words for the senders of one round.
    words: usize,
    /// Rounds kept, less one; a power of two less one.
    mask: u64,
    counts: Box<[u32]>,
    seen: Box<[u64]>,
    senders: u32,
    /// By sender: the newest round beyond the window, 0 if none. Empty while there is no such message.
    beyond: Vec<u64>,
    beyond_senders: u32,
}

/// Words for the bits of one window: 8 KiB. A window has at least [`LEAST_ROUNDS`] rounds all the same.
const WINDOW_WORDS: usize = 1024;
const LEAST_ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 64;

impl Tally {
    pub(super) fn new(processes: u32) -> Self {
        let words = (processes as usize).div_ceil(64);
        let rounds = (WINDOW_WORDS / words).clamp(LEAST_ROUNDS, MOST_ROUNDS).next_power_of_two();
        Tally {
            first: 1,
            words,
            mask: rounds as u64 - 1,
            counts: vec![0; rounds].into(),
            seen: vec![0; rounds * words].into(),
            senders: processes,
            beyond: Vec::new(),
            beyond_senders: 0,
        }
    }

    /// The lowest round kept.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    fn slot(&self, round: u64) -> usize {
        (round & self.mask) as usize
    }

    fn end(&self) -> u64 {
        self.first.saturating_add(self.mask + 1)
    }

    /// How many senders have sent a round of the window.
    pub(super) fn count(&self, round: u64) -> u32 {
        if round < self.first || round >= self.end() { 0 } else { self.counts[self.slot(round)] }
    }

    /// Takes a message in. How many senders have sent its round by now, if the message is new, within the window and from a sender that exists.
    pub(super) fn record(&mut self, sender: u32, round: u64) -> Recorded {
        if round < self.first || sender >= self.senders {
            return Recorded::Nothing;
        }
        if round >= self.end() {
            return self.record_beyond(sender, round);
        }
        let slot = self.slot(round);
        let word = &mut self.seen[slot * self.words + sender as usize / 64];
        let bit = 1 << (sender % 64);
        if *word & bit != 0 {
            return Recorded::Nothing;
        }
        *word |= bit;
        self.counts[slot] += 1;
        Recorded::Counted(self.counts[slot])
    }

    #[cold]
    fn record_beyond(&mut self, sender: u32, round: u64) -> Recorded {
        self.beyond.resize(self.senders as usize, 0);
        let newest = &mut self.beyond[sender as usize];
        self.beyond_senders += u32::from(*newest == 0);
        *newest = round.max(*newest);
        Recorded::Beyond
    }

    /// The highest round that `senders` have reached beyond the window.
    pub(super) fn reached_beyond(&self, senders: u32) -> Option<u64> {
        if self.beyond_senders < senders {
            return None;
        }
        let mut newest = self.beyond.clone();
        let (_, nth, _) = newest.select_nth_unstable_by(senders as usize - 1, |a, b| b.cmp(a));
        Some(*nth)
    }

    /// Forgets the rounds before `round`.
    pub(super) fn forget_before(&mut self, round: u64) {
        let kept_rounds = self.mask + 1;
        for passed in self.first..round.min(self.first.saturating_add(kept_rounds)) {
            let slot = self.slot(passed);
            self.counts[slot] = 0;
            self.seen[slot * self.words..(slot + 1) * self.words].fill(0);
        }
        self.first = self.first.max(round);
        if self.beyond_senders > 0 {
            self.take_in();
        }
    }

    /// Rounds that were beyond the window and lie in it now become ordinary ones.
    #[cold]
    fn take_in(&mut self) {
        let end = self.end();
        for sender in 0..self.beyond.len() {
            let newest = self.beyond[sender];
            if newest != 0 && newest < end {
                self.beyond[sender] = 0;
                self.beyond_senders -= 1;
                self.record(sender as u32, newest);
            }
        }
        if self.beyond_senders == 0 {
            self.beyond = Vec::new();
        }
    }

    /// Whether a sender's message of a round of the window was counted.
    pub(super) fn has(&self, sender: u32, round: u64) -> bool {
        let is_kept = round >= self.first && round < self.end() && sender < self.senders;
        is_kept && self.seen[self.slot(round) * self.words + sender as usize / 64] >> (sender % 64) & 1 == 1
    }

    /// The highest round after `round` that at least `senders` have sent, within the window.
    pub(super) fn highest_with(&self, senders: u32, round: u64) -> Option<u64> {
        (round + 1..self.end()).rev().find(|&later| self.count(later) >= senders)
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recorded {
    /// Old, seen before, or from nobody.
    Nothing,
    /// So many senders have sent its round.
    Counted(u32),
    /// Its round is beyond the window.
    Beyond,
}
