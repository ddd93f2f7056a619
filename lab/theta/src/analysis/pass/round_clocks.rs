//! The clocks of the algorithm: the round that each process shows, and how far apart they are.

/// By process: the round it is in, by the broadcasts that have been released; 0 before the first.
pub(super) struct RoundClocks {
    rounds: Vec<u64>,
    highest: u64,
}

impl RoundClocks {
    pub(super) fn new(processes: usize) -> Self {
        RoundClocks { rounds: vec![0; processes], highest: 0 }
    }

    /// Notes that a process shows a round. The distance between the highest and the lowest clock, if this may have
    /// made it larger than it ever was: only a process that begins or leads can do that.
    pub(super) fn advance(&mut self, process: usize, round: u64) -> Option<u64> {
        let before = self.rounds[process];
        self.rounds[process] = before.max(round);
        if before >= round || (before != 0 && round <= self.highest) {
            return None;
        }
        self.highest = self.highest.max(round);
        let lowest = self.rounds.iter().copied().filter(|&round| round > 0).min().unwrap_or(self.highest);
        debug_assert!(lowest <= self.highest);
        Some(self.highest - lowest)
    }

    /// Whether the rounds of all correct processes are known.
    pub(super) fn are_known(&self, correct: &[bool]) -> bool {
        self.rounds.iter().zip(correct).all(|(&round, &correct)| !correct || round > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_that_of_leader_and_last() {
        let mut clocks = RoundClocks::new(3);
        assert_eq!(clocks.advance(0, 5), Some(0));
        assert_eq!(clocks.advance(1, 3), Some(2), "a process begins behind");
        assert_eq!(clocks.advance(1, 4), None, "a follower brings them closer");
        assert_eq!(clocks.advance(0, 8), Some(4));
        assert_eq!(clocks.advance(0, 7), None, "a clock does not go back");
        assert!(!clocks.are_known(&[true; 3]));
        assert!(clocks.are_known(&[true, true, false]));
    }
}
