//! A list without an end whose time goes back: a clock was set back, or a line far ahead was wrong.
//!
//! What was perceived later than all that follows must not hide what follows. So the list starts again from there: its
//! times count from an earlier origin, and for the analysis time goes on.

use super::{DAY_NS, IN_A_ROW, MessageRounds, SECOND_NS};
use crate::import::MessageLine;

/// Lines that are out of order by less are only that: time comes up with the latest one soon enough.
const STEP_NS_MIN: i64 = SECOND_NS;

impl MessageRounds {
    /// Starts again before this message if as many in a row agree that time has gone back.
    pub(crate) fn follow_back(&mut self, message: &MessageLine<'_>) {
        let (Some(origin_ns), Some(perceived_ns)) = (self.origin_ns, message.perceived_ns) else { return };
        // A first line that could not be used has set the origin.
        let latest_ns = if self.newest_ns == i64::MIN { 0 } else { self.newest_ns };
        let is_behind = perceived_ns.saturating_sub(origin_ns) < latest_ns.saturating_sub(STEP_NS_MIN);
        if !is_behind || !self.is_possible(message, perceived_ns) {
            return;
        }
        // One line may be wrong by anything; many that follow each other are not.
        let agrees = perceived_ns >= self.behind.0.saturating_sub(STEP_NS_MIN);
        self.behind = (perceived_ns, if agrees { self.behind.1 + 1 } else { 1 });
        if self.behind.1 < IN_A_ROW {
            return;
        }
        // Nothing that is on its way before the step meets what comes after it.
        let pause_ns = self.options.longest_ns.min(DAY_NS) as i64;
        self.origin_ns = Some(perceived_ns.saturating_sub(latest_ns.saturating_add(pause_ns)));
        (self.behind, self.remote) = ((0, 0), (0, 0));
        self.steps_back += 1;
    }

    /// How often time has gone back.
    pub(crate) fn steps_back(&self) -> u64 {
        self.steps_back
    }
}
