//! The counter that stamps the events of a rank.

use ffclock_counter::{CounterId, read_ordered};
use ffclock_units::{Counter, Period};

/// A counter, and how long its ticks last nominally.
#[derive(Clone, Copy, Debug)]
pub(super) struct StampingCounter {
    pub(super) kind: CounterId,
    pub(super) period: Period,
}

impl StampingCounter {
    pub(super) fn read(self) -> Counter {
        read_ordered(self.kind)
    }
}
