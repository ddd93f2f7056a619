//! A counter read beside the base, which is the CPU's counter: every counter is known at moments of one scale.

use ffclock_counter::{CounterId, read_ordered};
use ffclock_units::Counter;
use serde::{Deserialize, Serialize};

/// Tries for one point: the narrowest counts.
const TRIES: usize = 10;

/// A reading and when it was made by the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BracketedReading {
    /// The base in the middle of the reading, ticks.
    pub base: u64,
    /// The whole width of the range in which it was made, ticks.
    pub width: u64,
    /// What the counter showed: its ticks, or ns of a reference.
    pub value: i128,
}

/// A reading between two of the base, the narrowest of [`TRIES`]; `None` where it cannot be read.
pub(crate) fn narrowest(mut read: impl FnMut() -> Option<i128>) -> Option<BracketedReading> {
    (0..TRIES).map(|_| bracket(&mut read)).min_by_key(|point| point.map_or(0, |point| point.width))?
}

fn bracket(read: &mut impl FnMut() -> Option<i128>) -> Option<BracketedReading> {
    let before = read_ordered(CounterId::CPU);
    let value = read()?;
    let after = read_ordered(CounterId::CPU);
    Some(point(before, after, value))
}

fn point(before: Counter, after: Counter, value: i128) -> BracketedReading {
    let width = after - before;
    BracketedReading { base: (before + width.halved()).raw(), width: u64::try_from(width.raw()).unwrap_or(0), value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_cannot_be_read_gives_no_point() {
        assert_eq!(narrowest(|| None), None);
        let mut tries = 0;
        let vanishing = narrowest(|| {
            tries += 1;
            (tries < 4).then_some(1)
        });
        assert_eq!(vanishing, None);
    }
}
