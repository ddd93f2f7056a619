//! A counter reading kept for later.

use core::cmp::Ordering;
use ffclock_units::{Counter, CounterEpoch};

/// A raw reading of the counter, and the epoch in which it was taken. Not yet a time: [`Clock::at`](crate::Clock::at)
/// makes it one. Two stamps of one clock are ordered where they are of one epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    counter: Counter,
    epoch: CounterEpoch,
}

/// The epoch of a stamp taken while the page named none. No page ever has it, so such a stamp is refused.
pub(crate) const NO_EPOCH: CounterEpoch = CounterEpoch::from_raw(u64::MAX);

impl Stamp {
    /// From the parts of a stamp that was written down.
    pub const fn from_parts(counter: Counter, epoch: CounterEpoch) -> Self {
        Stamp { counter, epoch }
    }

    /// The reading.
    pub const fn counter(self) -> Counter {
        self.counter
    }

    /// The epoch of the counter in which it was taken.
    pub const fn epoch(self) -> CounterEpoch {
        self.epoch
    }

    /// The stamp in the middle between two. Of two epochs there is none, and the result is refused wherever it is used.
    #[must_use]
    pub fn midpoint(self, other: Stamp) -> Stamp {
        let epoch = if self.epoch == other.epoch { self.epoch } else { NO_EPOCH };
        Stamp { counter: self.counter + (other.counter - self.counter).halved(), epoch }
    }
}

impl PartialOrd for Stamp {
    /// Right across a turn of the counter: a stamp is after those of the last half turn.
    fn partial_cmp(&self, other: &Stamp) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        let is_known = self.epoch == other.epoch && self.epoch != NO_EPOCH;
        // Half a turn apart neither is after the other.
        match (self.counter.is_after(other.counter), other.counter.is_after(self.counter)) {
            (true, false) if is_known => Some(Ordering::Greater),
            (false, true) if is_known => Some(Ordering::Less),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(counter: u64, epoch: u64) -> Stamp {
        Stamp::from_parts(Counter::from_raw(counter), CounterEpoch::from_raw(epoch))
    }

    #[test]
    fn the_midpoint_lies_between_in_the_same_epoch() {
        assert_eq!(stamp(10, 1).midpoint(stamp(20, 1)), stamp(15, 1));
        assert_eq!(stamp(20, 1).midpoint(stamp(10, 1)), stamp(15, 1));
    }

    #[test]
    fn stamps_are_ordered_within_an_epoch() {
        assert!(stamp(10, 1) < stamp(20, 1) && stamp(20, 1) > stamp(10, 1));
        assert!(stamp(u64::MAX, 1) < stamp(3, 1), "across the turn of the counter");
        assert_eq!(stamp(10, 1).partial_cmp(&stamp(10, 1)), Some(Ordering::Equal));
        for (one, other) in [
            (stamp(10, 1), stamp(20, 2)),
            (stamp(10, 1), stamp(10, 2)),
            (stamp(0, 1), stamp(1 << 63, 1)),
            (stamp(10, NO_EPOCH.raw()), stamp(20, NO_EPOCH.raw())),
        ] {
            assert_eq!((one.partial_cmp(&other), other.partial_cmp(&one)), (None, None), "{one:?}, {other:?}");
        }
    }

    #[test]
    fn between_epochs_there_is_no_stamp() {
        assert_eq!(stamp(10, 1).midpoint(stamp(20, 2)).epoch(), NO_EPOCH);
    }
}
