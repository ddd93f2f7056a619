//! Readings of a counter of which one in very many is wrong.

use core::ops::RangeInclusive;
use ffclock_units::Counter;

/// Readings tried before the counter is called unsteady.
const TRIES: usize = 64;

/// A reading that lies after another one by as many ticks as `apart` has; `None` where there is none.
///
/// At each tick FreeBSD's kernel publishes the count of the tick a moment before the hardware reading that belongs to
/// it. A reading in between is ahead by a whole tick, for as long as the publishing CPU is held up. Two readings from
/// that moment lie too close together; one from it and one that is right lie too far apart.
///
/// # Errors
/// As `read`.
pub fn steady<E>(
    mut read: impl FnMut() -> Result<Counter, E>,
    apart: &RangeInclusive<i64>,
) -> Result<Option<Counter>, E> {
    let mut first = read()?;
    for _ in 0..TRIES {
        let next = read()?;
        let ticks = (next - first).raw();
        if apart.contains(&ticks) {
            return Ok(Some(next));
        }
        if ticks < 0 || ticks > *apart.end() {
            first = next;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of these counts, one after the other.
    fn read_of(counts: &[u64]) -> Result<Option<u64>, &'static str> {
        let mut counts = counts.iter();
        let read = || counts.next().map(|count| Counter::from_raw(*count)).ok_or("nothing left");
        steady(read, &(1_000..=100_000)).map(|found| found.map(Counter::raw))
    }

    #[test]
    fn a_reading_is_confirmed_by_one_a_little_later() {
        assert_eq!(read_of(&[5_000, 5_300, 5_900, 6_000]), Ok(Some(6_000)));
        // Interrupted for long.
        assert_eq!(read_of(&[5_000, 900_000, 900_500, 901_000]), Ok(Some(901_000)));
    }

    /// Ahead by a tick of a million.
    #[test]
    fn a_torn_reading_is_never_given() {
        assert_eq!(read_of(&[1_005_000, 5_300, 5_900, 6_300]), Ok(Some(6_300)));
        assert_eq!(read_of(&[5_000, 1_005_300, 5_600, 6_700]), Ok(Some(6_700)));
        assert_eq!(read_of(&[1_005_000, 1_005_300, 5_600, 6_700]), Ok(Some(6_700)));
    }

    #[test]
    fn a_counter_that_stands_or_leaps_is_unsteady() {
        assert_eq!(read_of(&[7; 100]), Ok(None));
        let leaps: Vec<u64> = (0..100).map(|count| count * 1_000_000).collect();
        assert_eq!(read_of(&leaps), Ok(None));
        assert_eq!(read_of(&[7]), Err("nothing left"));
    }
}
