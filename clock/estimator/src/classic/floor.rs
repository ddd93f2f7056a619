//! The floor: the round trip of the present path without queueing.
//!
//! It is the smallest net round trip of the last week. A shorter path shows at once. A longer one must first fill the
//! shift window with round trips that are all longer, several of them nearly as short as the shortest: a false
//! detection, which takes a congested hour for a new path, is worse than a late one.

use super::minimum::SlidingMinimum;
use super::thresholds::Thresholds;
use crate::frame::Move;
use crate::tuning::classic::{
    FLOOR_CANDIDATES, GAP_PART, GAP_POLLS, POLL_MEMORY, POLL_REACH, SETTLED, SHIFT_CANDIDATES,
};

/// What happened to the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FloorChange {
    /// Nothing that concerns older exchanges.
    None,
    /// It fell; everything older is now compared with the lower one.
    Lowered,
    /// It fell by more than noise: the path became shorter.
    Shortened,
    /// It rose: the path is longer since this position.
    Raised { since: f64 },
}

/// The floor and the windows that it is taken over.
#[derive(Clone, Debug)]
pub struct Floor {
    week: SlidingMinimum,
    recent: SlidingMinimum,
    value: f64,
    poll: f64,
    last: f64,
    /// Since when exchanges have come without a gap.
    run: f64,
    /// When the path changed last.
    changed: f64,
    exchanges: u64,
}

impl Floor {
    pub fn new() -> Self {
        Floor {
            week: SlidingMinimum::new(FLOOR_CANDIDATES),
            recent: SlidingMinimum::new(SHIFT_CANDIDATES),
            value: f64::INFINITY,
            poll: 0.0,
            last: 0.0,
            run: 0.0,
            changed: 0.0,
            exchanges: 0,
        }
    }

    /// The bytes that its windows occupy.
    pub fn bytes(&self) -> usize {
        self.week.bytes() + self.recent.bytes()
    }

    /// The smallest net round trip, s.
    pub fn value(&self) -> f64 {
        if self.value.is_finite() { self.value } else { 0.0 }
    }

    /// The smoothed time between exchanges, s.
    pub fn poll(&self) -> f64 {
        self.poll
    }

    /// How long before `x` the path last changed, or the history began.
    pub fn steady_for(&self, x: f64) -> f64 {
        x - self.changed
    }

    /// Takes the net round trip of an exchange that ended at `x`. `confirms` is asked whether several exchanges since a
    /// position were nearly as short as the shortest, before a longer path is believed.
    pub fn add(
        &mut self,
        x: f64,
        net: f64,
        thresholds: &Thresholds,
        confirms: impl FnOnce(f64) -> bool,
    ) -> FloorChange {
        self.note_gap(x, thresholds);
        self.exchanges = self.exchanges.saturating_add(1);
        let before = self.value;
        let window = thresholds.shift_window_at(self.poll);
        let recent = self.recent.add(x, net, window);
        self.value = self.week.add(x, net, thresholds.floor_window());
        if self.value < before {
            return self.fell(x, before, thresholds);
        }
        let longer = x - self.run >= window.length && recent > self.value + thresholds.shift(self.value);
        if !(longer && confirms(x - window.length)) {
            return FloorChange::None;
        }
        self.week.raise(x, recent);
        (self.value, self.changed) = (recent, x);
        FloorChange::Raised { since: x - window.length - window.block }
    }

    fn fell(&mut self, x: f64, before: f64, thresholds: &Thresholds) -> FloorChange {
        let shorter = before - self.value > thresholds.shift(self.value) && self.exchanges > SETTLED;
        if !shorter {
            return FloorChange::Lowered;
        }
        self.changed = x;
        FloorChange::Shortened
    }

    /// Follows the poll; a window with a gap in it proves nothing about the path, so the run of exchanges starts again.
    fn note_gap(&mut self, x: f64, thresholds: &Thresholds) {
        let gap = x - self.last;
        self.last = x;
        if self.exchanges == 0 {
            (self.run, self.changed) = (x, x);
            return;
        }
        if self.exchanges == 1 {
            self.poll = gap.min(thresholds.shift_window);
            return;
        }
        if gap > (GAP_POLLS * self.poll).max(GAP_PART * thresholds.shift_window) {
            self.run = x;
        }
        self.poll += (gap.min(POLL_REACH * self.poll + POLL_REACH) - self.poll) / POLL_MEMORY;
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.week.follow(step.x_step);
        self.recent.follow(step.x_step);
        for x in [&mut self.last, &mut self.run, &mut self.changed] {
            *x -= step.x_step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassicConfig;

    fn thresholds() -> Thresholds {
        Thresholds::new(&ClassicConfig::default())
    }

    /// "Upward shift that never fired (history one element short)": it fires, and within one poll and one block of the
    /// window.
    #[test]
    fn an_upward_shift_fires_when_the_window_is_full_of_it() {
        let thresholds = thresholds();
        for poll in [0.25, 1.0, 16.0, 64.0, 256.0] {
            let window = thresholds.shift_window_at(poll).length;
            let shift_at = 2.0 * window;
            let mut floor = Floor::new();
            let mut raised = None;
            let mut x = 0.0;
            while raised.is_none() && x < 4.0 * window {
                x += poll;
                let net = if x < shift_at { 300e-6 } else { 1200e-6 };
                if let FloorChange::Raised { .. } = floor.add(x, net, &thresholds, |_| true) {
                    raised = Some(x);
                }
            }
            let waited = raised.unwrap() - shift_at;
            assert!(waited > 0.9 * window && waited < 1.1 * window + 2.0 * poll, "{poll}: {waited}");
            assert_eq!(floor.value(), 1200e-6);
        }
    }

    #[test]
    fn a_congested_spell_is_no_shift() {
        let thresholds = thresholds();
        let mut floor = Floor::new();
        for step in 0..1_000 {
            let congested = (300..380).contains(&step) || (500..590).contains(&step);
            let net = if congested { 2e-3 } else { 300e-6 };
            assert!(!matches!(floor.add(16.0 * step as f64, net, &thresholds, |_| true), FloorChange::Raised { .. }));
        }
        assert_eq!(floor.value(), 300e-6);
    }

    #[test]
    fn a_gap_followed_by_congestion_is_no_shift() {
        let thresholds = thresholds();
        let mut floor = Floor::new();
        for step in 0..200 {
            floor.add(16.0 * step as f64, 300e-6, &thresholds, |_| true);
        }
        for step in 0..60 {
            let change = floor.add(10_400.0 + 16.0 * step as f64, 2e-3, &thresholds, |_| true);
            assert_eq!(change, FloorChange::None, "{step}");
        }
    }

    #[test]
    fn an_unconfirmed_shift_waits() {
        let thresholds = thresholds();
        let mut floor = Floor::new();
        let mut raised = None;
        for step in 0..1_000 {
            let (x, net) = (16.0 * step as f64, if step < 300 { 300e-6 } else { 2e-3 });
            if let FloorChange::Raised { .. } = floor.add(x, net, &thresholds, |since| since > 12_000.0) {
                raised = Some(x);
            }
        }
        assert_eq!(raised, Some(12_000.0 + 1_600.0 + 16.0));
        assert_eq!(floor.value(), 2e-3);
    }

    #[test]
    fn a_downward_shift_shows_at_once() {
        let thresholds = thresholds();
        let mut floor = Floor::new();
        for step in 0..100 {
            floor.add(16.0 * step as f64, 1200e-6, &thresholds, |_| true);
        }
        assert_eq!(floor.add(1_600.0, 1199e-6, &thresholds, |_| true), FloorChange::Lowered);
        assert_eq!(floor.add(1_616.0, 300e-6, &thresholds, |_| true), FloorChange::Shortened);
        assert_eq!(floor.add(1_632.0, 310e-6, &thresholds, |_| true), FloorChange::None);
        assert_eq!(floor.value(), 300e-6);
    }

    #[test]
    fn the_floor_is_forgotten_after_its_window() {
        let thresholds = thresholds();
        let mut floor = Floor::new();
        floor.add(0.0, 100e-6, &thresholds, |_| true);
        let mut forgotten = 0.0;
        for step in 1..11_000 {
            let x = 64.0 * step as f64;
            floor.add(x, 200e-6, &thresholds, |_| true);
            if floor.value() > 150e-6 && forgotten == 0.0 {
                forgotten = x;
            }
        }
        assert!((604_800.0..606_500.0).contains(&forgotten), "{forgotten}");
    }
}
