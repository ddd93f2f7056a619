//! ntpd's shared memory reference clock (driver 28, `refclock_shm.c`), which chronyd reads as `refclock SHM`: a segment
//! of System V memory that holds the latest sample. Its key is "NTP0" plus the unit.
//!
//! The reader takes a sample once `valid` is set, and clears it; `count`, which is counted up before and after a
//! sample is written, shows it a sample that changed meanwhile (mode 1).

use super::{Feed, FeedSample, halves, seconds_and_nanos};
use crate::failure::Failure;
use core::sync::atomic::{AtomicU64, Ordering};
use ffclock::Clock;
use ffclock_sys::SystemVWords;
use ffclock_units::{Bound, Moment, Span, Utc};

/// "NTP0".
const KEY: i32 = 0x4e54_5030;
/// `struct shmTime` with a time_t of 64 bits: 96 octets.
const WORDS: usize = 12;
/// Units from this one on may be written by every user, as ntpd makes them.
const FIRST_OPEN_UNIT: u16 = 2;

/// Where its fields are, in words.
mod place {
    /// The mode, and the count of halves of updates.
    pub(super) const MODE_AND_COUNT: usize = 0;
    /// The true time: seconds; microseconds in the next word.
    pub(super) const CLOCK: usize = 1;
    /// The system's time at that moment: seconds; microseconds and the leap indicator in the next word.
    pub(super) const RECEIVED: usize = 3;
    /// The precision as a power of 2, and a number that readers ignore.
    pub(super) const PRECISION: usize = 5;
    /// Whether there is a sample, and the nanoseconds of the true time.
    pub(super) const VALID_AND_CLOCK_NANOS: usize = 6;
    /// The nanoseconds of the system's time.
    pub(super) const RECEIVED_NANOS: usize = 7;
}

/// A unit of shared memory.
pub(super) struct ShmFeed {
    memory: SystemVWords<WORDS>,
    count: i32,
    limit: Bound,
}

impl ShmFeed {
    pub(super) fn attach(unit: u16, limit: Bound) -> Result<Self, Failure> {
        let mode = if unit < FIRST_OPEN_UNIT { 0o600 } else { 0o666 };
        let memory = SystemVWords::attach(KEY + i32::from(unit), mode)
            .map_err(|error| Failure::from(format!("the shared memory of unit {unit}: {error}")))?;
        Ok(ShmFeed { memory, count: 0, limit })
    }
}

impl Feed for ShmFeed {
    fn give(&mut self, _: &Clock, sample: &FeedSample) -> Result<(), Failure> {
        sample.within(self.limit)?;
        write(self.memory.words(), self.count, sample);
        self.count = self.count.wrapping_add(2);
        Ok(())
    }

    /// A sample that was not read yet is not read any more.
    fn withhold(&mut self) {
        self.memory.words()[place::VALID_AND_CLOCK_NANOS].store(halves(0, 0), Ordering::Release);
    }
}

/// Each store is a release: who sees it, sees those before it.
fn write(words: &[AtomicU64; WORDS], count: i32, sample: &FeedSample) {
    let store = |place: usize, first: i32, second: i32| words[place].store(halves(first, second), Ordering::Release);
    let (seconds, nanos) = seconds_and_nanos(sample.published());
    let system = Moment::<Utc>::from_origin(Span::from_nanos(sample.system.as_nanos().cast_signed()));
    let (system_seconds, system_nanos) = seconds_and_nanos(system);
    store(place::VALID_AND_CLOCK_NANOS, 0, 0);
    store(place::MODE_AND_COUNT, 1, count.wrapping_add(1));
    words[place::CLOCK].store(seconds.cast_unsigned(), Ordering::Release);
    store(place::CLOCK + 1, (nanos / 1000).cast_signed(), 0);
    words[place::RECEIVED].store(system_seconds.cast_unsigned(), Ordering::Release);
    store(place::RECEIVED + 1, (system_nanos / 1000).cast_signed(), sample.leap_indicator());
    store(place::PRECISION, precision(sample.width), 0);
    store(place::RECEIVED_NANOS, system_nanos.cast_signed(), 0);
    store(place::MODE_AND_COUNT, 1, count.wrapping_add(2));
    store(place::VALID_AND_CLOCK_NANOS, 1, nanos.cast_signed());
}

/// The power of 2 [s] that is not below the width of the comparison.
fn precision(width: Span) -> i32 {
    (width.as_seconds().max(1e-9).log2().ceil() as i32).clamp(-30, 0)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use ffclock_units::LeapStep;
    use std::time::Duration;

    #[test]
    fn a_sample_is_laid_out_as_ntpd_has_it() {
        let words = [const { AtomicU64::new(0) }; WORDS];
        write(&words, 40, &example(Duration::new(1_800_000_000, 999_999_900), Span::from_nanos(250)));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let int = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let long = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!((int(0), int(4), int(48)), (1, 42, 1), "mode, count, valid");
        assert_eq!((long(8), int(16), int(52)), (1_800_000_001, 0, 150), "the true time");
        assert_eq!((long(24), int(32), int(56)), (1_800_000_000, 999_999, 999_999_900), "the system's time");
        assert_eq!((int(36), int(40)), (0, -23), "leap indicator; 2^-23 s are 119 ns");
        assert!(bytes[60..].iter().all(|byte| *byte == 0));
        let mut before = example(Duration::new(7, 0), Span::ZERO);
        before.leap.1 = LeapStep { before: 37, after: 38, at: before.leap.0.whole_seconds() + 10 };
        write(&words, 42, &before);
        assert_eq!(words[place::RECEIVED + 1].load(Ordering::Relaxed), halves(0, 1), "ntpd's LEAP_ADDSECOND");
    }
}
