//! Floor ambiguity: how far the floors of the two directions can be misplaced relative to each other.
//!
//! Where queueing begins softly, the floor that the packets show lies above the true one, by about what the fastest
//! tenth of them queues. If both directions begin alike this is common to both and does not move the clock; otherwise
//! up to half the difference is an error of the clock that no filter sees, since symmetric floors are all that is known
//! of asymmetry. The ambiguity ends when both directions have shown equally sharp edges: a floor once seen stays known.

use crate::bank::Densities;
use crate::tuning::learned::{AMBIGUITY_LEARNED, AMBIGUITY_MEMORY, AMBIGUOUS_PART, MISPLACED, MISPLACED_AT_FIRST};

/// The ambiguity, us.
#[derive(Clone, Copy, Debug)]
pub struct FloorAmbiguity {
    exchanges: u64,
    mean: f64,
    /// The smallest mean since the densities are learned.
    least: Option<f64>,
}

impl FloorAmbiguity {
    pub const NEW: FloorAmbiguity = FloorAmbiguity { exchanges: 0, mean: 0.0, least: None };

    /// Another exchange was learned from. The densities are those of the steep shapes, whose floor is where they rise.
    pub fn pass(&mut self, [[forward, backward], _]: Densities<'_>) {
        self.exchanges = self.exchanges.saturating_add(1);
        let present = AMBIGUOUS_PART * (forward.first_decile - backward.first_decile).abs();
        self.mean += (present - self.mean) / AMBIGUITY_MEMORY.min(self.exchanges as f64);
        if self.exchanges >= AMBIGUITY_LEARNED {
            self.least = Some(self.least.map_or(self.mean, |least| least.min(self.mean)));
        }
    }

    /// Whether packets that are `shift` from the floor, us, negative before it, show that it had never been seen,
    /// rather than that the path became shorter; `ninth_decile` is that way's, us.
    pub fn explains(&self, shift: f64, ninth_decile: f64) -> bool {
        let reach = self.least.map_or(MISPLACED_AT_FIRST * ninth_decile, |least| MISPLACED * least);
        (-reach..0.0).contains(&shift)
    }

    /// How far the clock can be off because of it, us.
    pub fn deviation(&self) -> f64 {
        self.least.unwrap_or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beyond what is open, packets before a floor show that the path became shorter.
    #[test]
    fn a_floor_that_was_never_seen_is_off_by_a_few_ambiguities_at_most() {
        let seen = FloorAmbiguity { exchanges: 500, mean: 5.0, least: Some(2.0) };
        let young = FloorAmbiguity { exchanges: 50, mean: 5.0, least: None };
        for (ambiguity, reach) in [(seen, 12.0), (young, 60.0)] {
            assert!(ambiguity.explains(-0.99 * reach, 30.0) && !ambiguity.explains(-1.01 * reach, 30.0));
            assert!(!ambiguity.explains(1.0, 30.0));
        }
    }
}
