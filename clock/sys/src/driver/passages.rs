//! The passages of the last moments in one direction, in the order of time.
//!
//! Each direction has its own list: what comes to a busy host must not drive out the one packet that we sent. Passages
//! arrive CPU by CPU, so the oldest are dropped by their counter and not by the order of arrival.

use ffclock_units::{Counter, Direction, Ticks};

/// A packet passed the boundary to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DriverPassage {
    pub(super) counter: Counter,
    pub(super) direction: Direction,
    /// Bytes with the IP header.
    pub(super) ip_length: usize,
}

/// Passages remembered, the newest.
const REMEMBERED: usize = 4096;
/// How far from the present one may lie, s. What lies further is of another epoch of the counter, or of no use.
const LONGEST_S: i64 = 10;

/// Passages of one direction.
#[derive(Debug)]
pub(super) struct Passages {
    kept: Vec<DriverPassage>,
    longest: Ticks,
}

impl Passages {
    /// None yet; `second`: about a second, in ticks.
    pub(super) fn within(second: Ticks) -> Self {
        Passages { kept: Vec::new(), longest: Ticks::from_raw(second.raw().saturating_mul(LONGEST_S)) }
    }

    /// One more, of any time; [`settle`](Self::settle) follows.
    pub(super) fn add(&mut self, passage: DriverPassage) {
        self.kept.push(passage);
    }

    /// Puts them in order and forgets those that are no longer of use.
    pub(super) fn settle(&mut self, now: Counter) {
        let longest = self.longest;
        self.kept.retain(|passage| (passage.counter - now).abs() <= longest);
        self.kept.sort_by_key(|passage| passage.counter - now);
        let superfluous = self.kept.len().saturating_sub(REMEMBERED);
        self.kept.drain(..superfluous);
    }

    /// Those from one reading to another, both included, oldest first.
    pub(super) fn between(&self, from: Counter, to: Counter) -> impl DoubleEndedIterator<Item = &DriverPassage> {
        let first = self.kept.partition_point(|passage| from.is_after(passage.counter));
        let end = self.kept.partition_point(|passage| !passage.counter.is_after(to));
        self.kept.get(first..end).unwrap_or_default().iter()
    }
}
