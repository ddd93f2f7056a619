//! Which sender has sent which round: a window of rounds from the present one on, one bit for each sender and round.
//!
//! Memory is bounded whatever faulty processes send. Of rounds beyond the window only the newest of each sender is
//! kept. That is enough: a correct process of the repaired form sends all rounds up to its own, so (init, m) says that
//! it has sent every (init, l), l <= m. So f + 1 senders whose newest round is at least l prove that a correct one has
//! sent (init, l), and a round that comes into the window counts for each sender whose newest round is at least that.
//! The printed form skips rounds, so there only the newest round itself counts, and those that were passed over are
//! lost. docs/theta-run.md, theorem 3, says why the repaired form cannot stop for it.

use super::AlgorithmForm;

/// Senders by round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SenderWindow {
    /// The lowest round kept.
    first: u64,
    form: AlgorithmForm,
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

impl SenderWindow {
    pub(super) fn new(processes: u32, form: AlgorithmForm) -> Self {
        let words = (processes as usize).div_ceil(64);
        Self::with_window(processes, form, (WINDOW_WORDS / words).clamp(LEAST_ROUNDS, MOST_ROUNDS))
    }

    /// With a window of `rounds`, rounded up to a power of two.
    pub(super) fn with_window(processes: u32, form: AlgorithmForm, rounds: usize) -> Self {
        let words = (processes as usize).div_ceil(64);
        let rounds = rounds.clamp(1, MOST_ROUNDS).next_power_of_two();
        SenderWindow {
            first: 1,
            form,
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

    /// Takes a message in. How many senders have sent its round by now, if the message is new, within the window and
    /// from a sender that exists.
    pub(super) fn record(&mut self, sender: u32, round: u64) -> Recording {
        if round < self.first || sender >= self.senders {
            return Recording::Nothing;
        }
        if round >= self.end() {
            return self.record_beyond(sender, round);
        }
        let slot = self.slot(round);
        let word = &mut self.seen[slot * self.words + sender as usize / 64];
        let bit = 1 << (sender % 64);
        if *word & bit != 0 {
            return Recording::Nothing;
        }
        *word |= bit;
        self.counts[slot] += 1;
        Recording::Counted(self.counts[slot])
    }

    #[cold]
    fn record_beyond(&mut self, sender: u32, round: u64) -> Recording {
        self.beyond.resize(self.senders as usize, 0);
        let newest = &mut self.beyond[sender as usize];
        self.beyond_senders += u32::from(*newest == 0);
        *newest = round.max(*newest);
        Recording::Beyond
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

    /// Forgets the rounds before `round`. Whether others have come into the window, so that any rule may apply.
    pub(super) fn forget_before(&mut self, round: u64) -> bool {
        let end_before = self.end();
        let kept_rounds = self.mask + 1;
        for passed in self.first..round.min(self.first.saturating_add(kept_rounds)) {
            let slot = self.slot(passed);
            self.counts[slot] = 0;
            self.seen[slot * self.words..(slot + 1) * self.words].fill(0);
        }
        self.first = self.first.max(round);
        if self.beyond_senders == 0 {
            return false;
        }
        self.take_in(end_before.max(self.first));
        true
    }

    /// What was beyond the window, which used to end before the round `entered`, and lies in it now becomes ordinary.
    #[cold]
    fn take_in(&mut self, entered: u64) {
        let end = self.end();
        for sender in 0..self.beyond.len() {
            let newest = self.beyond[sender];
            if newest == 0 {
                continue;
            }
            let from = if self.form == AlgorithmForm::Repaired { entered } else { newest.max(entered) };
            for round in from..newest.saturating_add(1).min(end) {
                self.record(sender as u32, round);
            }
            if newest < end {
                self.beyond[sender] = 0;
                self.beyond_senders -= 1;
            }
        }
        if self.beyond_senders == 0 {
            self.beyond = Vec::new();
        }
    }

    /// Whether a sender's message of this round would be nothing new: it was counted, or is beyond the window and not
    /// the newest.
    pub(super) fn has(&self, sender: u32, round: u64) -> bool {
        if round < self.first || sender >= self.senders {
            return false;
        }
        if round >= self.end() {
            return self.beyond.get(sender as usize).is_some_and(|&newest| round <= newest);
        }
        self.seen[self.slot(round) * self.words + sender as usize / 64] >> (sender % 64) & 1 == 1
    }

    /// The highest round after `round` that at least `senders` have sent, within the window.
    pub(super) fn highest_with(&self, senders: u32, round: u64) -> Option<u64> {
        (round.saturating_add(1)..self.end()).rev().find(|&later| self.count(later) >= senders)
    }
}

/// The effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recording {
    /// None: it is old, known, or from an unknown sender.
    Nothing,
    /// It was counted; this many senders have sent its round.
    Counted(u32),
    /// Its round is beyond the window.
    Beyond,
}
