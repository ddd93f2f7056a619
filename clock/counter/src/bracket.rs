//! Something read between two readings of the counter.

use crate::{CounterId, read_ordered};
use ffclock_units::{Counter, Ticks};

/// A value and the counter before and after it was obtained: whatever it shows, it was so at some moment in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bracketed<T> {
    /// The counter before.
    pub before: Counter,
    /// What was read.
    pub value: T,
    /// The counter after.
    pub after: Counter,
}

impl<T> Bracketed<T> {
    /// How far apart the two readings are: the whole width of the range.
    pub fn width(&self) -> Ticks {
        self.after - self.before
    }

    /// The middle of the range.
    pub fn middle(&self) -> Counter {
        self.before + self.width().halved()
    }
}

/// Reads something between two ordered readings of the counter.
#[inline]
pub fn read_bracketed<T>(kind: CounterId, read: impl FnOnce() -> T) -> Bracketed<T> {
    let before = read_ordered(kind);
    let value = read();
    let after = read_ordered(kind);
    Bracketed { before, value, after }
}

/// The narrowest of `tries` (at least one) brackets: an interrupt between the readings widens one try, rarely all.
pub fn read_narrowest<T>(kind: CounterId, tries: usize, mut read: impl FnMut() -> T) -> Bracketed<T> {
    let mut best = read_bracketed(kind, &mut read);
    for _ in 1..tries {
        let next = read_bracketed(kind, &mut read);
        if next.width() < best.width() {
            best = next;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_lies_within_even_across_a_turn_of_the_counter() {
        let bracket = Bracketed { before: Counter::from_raw(u64::MAX - 4), value: (), after: Counter::from_raw(5) };
        assert_eq!(bracket.width(), Ticks::from_raw(10));
        assert_eq!(bracket.middle(), Counter::from_raw(0));
    }

    #[test]
    fn the_narrowest_bracket_is_kept() {
        let mut delays = [200_u64, 1, 200].into_iter();
        let mut shown = 0;
        let best = read_narrowest(CounterId::MonotonicRaw, 3, || {
            shown += 1;
            std::thread::sleep(std::time::Duration::from_millis(delays.next().unwrap()));
            shown
        });
        assert_eq!(best.value, 2);
        assert!(best.width() < Ticks::from_raw(200_000_000));
    }
}
