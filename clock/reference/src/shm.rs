//! The shared memory of ntpd's driver 28, as gpsd and others write it.
//!
//! The segment is a C structure with the native types of the machine (`struct shmTime` in ntpd's `refclock_shm.c`).
//! Here its layout is that of 64-bit Linux, of 96 octets:
//! ```text
//! word   holds
//! 0      mode: 0 or 1
//! 1      count: in mode 1 the writer counts before and after it writes
//! 2, 3   seconds of the true time
//! 4      microseconds of it
//! 6, 7   seconds of the system clock when it was received
//! 8      microseconds of it
//! 9      leap indicator
//! 10     precision
//! 11     samples
//! 12     valid: set by the writer, cleared by readers that may write
//! 13     nanoseconds of the true time, or zero from old writers
//! 14     nanoseconds of the system clock
//! ```
//! A writer can be stopped at any point of its work. In mode 1 the count shows that it wrote meanwhile: a copy counts
//! only if a second one, made after it, has the same count. In mode 0 there is no count, and a half that is of another
//! sample cannot always be known from a whole; so two copies must be the same in all words.

use crate::sample::{ForeignSample, moment};
use ffclock_units::Leap;

/// The words of the segment.
pub const SHM_WORDS: usize = 24;

/// A copy of the segment, each of its words loaded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShmWords(pub [u32; SHM_WORDS]);

/// Why a copy gives no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShmRefused {
    /// No writer has set the mark since the last reading.
    NotValid,
    /// The writer was at work: a later copy will be whole.
    Torn,
    /// The mode is neither 0 nor 1.
    UnknownMode,
    /// What is there is no time: a part of a second beyond a second, or two parts that contradict each other.
    NoTime,
    /// The writer says that it is not synchronised (leap indicator 3).
    Unsynchronised,
}

impl ShmRefused {
    /// The name in counts.
    pub const fn name(self) -> &'static str {
        match self {
            ShmRefused::NotValid => "not-valid",
            ShmRefused::Torn => "torn",
            ShmRefused::UnknownMode => "unknown-mode",
            ShmRefused::NoTime => "no-time",
            ShmRefused::Unsynchronised => "unsynchronised",
        }
    }
}

const MODE: usize = 0;
const COUNT: usize = 1;
const LEAP: usize = 9;
const VALID: usize = 12;

impl ShmWords {
    fn word(&self, place: usize) -> u32 {
        self.0.get(place).copied().unwrap_or_default()
    }

    /// A time: the word of its seconds, of its microseconds, and of its nanoseconds.
    fn time(&self, [seconds, micros, nanos]: [usize; 3]) -> Option<ffclock_units::Moment<ffclock_units::Utc>> {
        let seconds = i64::from(self.word(seconds)) | i64::from(self.word(seconds + 1).cast_signed()) << 32;
        let (micros, nanos) = (i64::from(self.word(micros).cast_signed()), i64::from(self.word(nanos).cast_signed()));
        // Old writers leave the nanoseconds alone, which then contradict the microseconds or are zero.
        let is_finer = (0..1_000_000_000).contains(&nanos) && nanos / 1000 == micros;
        moment(seconds, if is_finer { nanos } else { micros.checked_mul(1000)? })
    }

    /// The sample of this copy, of which `later` is one made after it.
    ///
    /// # Errors
    /// There is no new sample, or the two copies show that it is not whole.
    pub fn sample(&self, later: &ShmWords) -> Result<ForeignSample, ShmRefused> {
        if self.word(VALID) == 0 {
            return Err(ShmRefused::NotValid);
        }
        let is_whole = match self.word(MODE) {
            0 => self == later,
            1 => self.word(COUNT) == later.word(COUNT) && self == later,
            _ => return Err(ShmRefused::UnknownMode),
        };
        if !is_whole {
            return Err(ShmRefused::Torn);
        }
        let time = self.time([2, 4, 13]).ok_or(ShmRefused::NoTime)?;
        let received = self.time([6, 8, 14]).ok_or(ShmRefused::NoTime)?;
        let leap = match self.word(LEAP) {
            1 => Leap::Insert,
            2 => Leap::Delete,
            3 => return Err(ShmRefused::Unsynchronised),
            _ => Leap::None,
        };
        Ok(ForeignSample { received, time, leap })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::{Moment, Span};

    fn words() -> ShmWords {
        let mut words = [0; SHM_WORDS];
        (words[0], words[1], words[12]) = (1, 8, 1);
        (words[2], words[4], words[13]) = (1_700_000_000, 250_000, 250_000_321);
        (words[6], words[8], words[14]) = (1_700_000_000, 250_010, 250_010_999);
        ShmWords(words)
    }

    fn with(place: usize, value: u32) -> ShmWords {
        let ShmWords(mut words) = words();
        words[place] = value;
        ShmWords(words)
    }

    #[test]
    fn a_whole_sample_is_read_to_the_nanosecond() {
        let sample = words().sample(&words()).unwrap();
        let at = |nanos| Moment::from_origin(Span::from_secs(1_700_000_000) + Span::from_nanos(nanos));
        assert_eq!(sample, ForeignSample { received: at(250_010_999), time: at(250_000_321), leap: Leap::None });
        let old = with(13, 0);
        assert_eq!(old.sample(&old).unwrap().time, at(250_000_000), "writers that know microseconds alone");
        let after_2038 = with(3, 1);
        assert!(after_2038.sample(&after_2038).unwrap().time > at(0) + Span::from_secs(1 << 31));
    }

    #[test]
    fn what_is_not_whole_or_no_time_is_refused() {
        let refused = |words: ShmWords| words.sample(&words).unwrap_err();
        assert_eq!(refused(with(12, 0)), ShmRefused::NotValid);
        assert_eq!(refused(with(0, 2)), ShmRefused::UnknownMode);
        assert_eq!(refused(with(4, 1_000_000)), ShmRefused::NoTime);
        assert_eq!(refused(with(8, u32::MAX)), ShmRefused::NoTime);
        assert_eq!(refused(with(9, 3)), ShmRefused::Unsynchronised);
        assert_eq!(words().sample(&with(1, 9)), Err(ShmRefused::Torn), "the writer counted meanwhile");
        for mode in 0..2 {
            let half = with(0, mode);
            let ShmWords(mut other) = half;
            other[2] += 1;
            assert_eq!(half.sample(&ShmWords(other)), Err(ShmRefused::Torn));
        }
    }
}
