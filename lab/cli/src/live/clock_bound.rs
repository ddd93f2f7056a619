//! What ClockBound's daemon says of the clock beside it: the largest error, in a file of 72 bytes in its shared memory
//! (clock-bound-shm 2.0.3, layout 2). Only layouts that are known are read.

use ffclock_units::Span;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const MAGIC: [u8; 8] = [0x4e, 0x5a, 0x4d, 0x41, 0x00, 0x02, 0x42, 0x43];
const VERSION: u16 = 2;
/// The header, and the part of the record that is read.
const SIZE: usize = 72;
/// Synchronised, and free running: with any other status nothing is claimed.
const TRUSTED: [u32; 2] = [1, 2];
/// How often a reader tries when the daemon writes meanwhile.
const TRIES: usize = 10;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BoundRecord {
    /// By the monotonic clock [ns].
    as_of_ns: i128,
    void_after_ns: i128,
    bound_ns: i64,
    drift_ppb: u32,
}

/// The file, which is not there at once.
pub(super) struct ClockBoundFile {
    path: PathBuf,
}

impl ClockBoundFile {
    /// Where it will be.
    pub(super) fn at(path: PathBuf) -> Self {
        ClockBoundFile { path }
    }

    /// The bound now [ns], where one is claimed.
    pub(super) fn bound_ns(&self) -> Option<i64> {
        let file = File::open(&self.path).ok()?;
        let snapshot = || {
            let mut bytes = [0; SIZE];
            file.read_exact_at(&mut bytes, 0).ok().map(|()| bytes)
        };
        let found = (0..TRIES).find_map(|_| snapshot().filter(|first| snapshot() == Some(*first)))?;
        BoundRecord::parse(&found)?.at(ffclock_sys::mono_now().since_origin())
    }
}

impl BoundRecord {
    fn parse(bytes: &[u8; SIZE]) -> Option<Self> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(i64::from_ne_bytes);
        let half = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let short = |at: usize| bytes.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
        let is_written = short(14)?.is_multiple_of(2) && short(14)? > 0;
        if !bytes.starts_with(&MAGIC) || short(12)? != VERSION || !is_written || !TRUSTED.contains(&half(68)?) {
            return None;
        }
        let moment = |at: usize| Some(i128::from(word(at)?) * 1_000_000_000 + i128::from(word(at + 8)?));
        let record = BoundRecord {
            as_of_ns: moment(16)?,
            void_after_ns: moment(32)?,
            bound_ns: word(48)?,
            drift_ppb: half(64)?,
        };
        // A negative bound is none, and a clock that drifts by its own rate is refused by the client library too.
        (record.bound_ns >= 0 && record.drift_ppb < 1_000_000_000).then_some(record)
    }

    /// As its client library computes it.
    fn at(&self, monotonic: Span) -> Option<i64> {
        let since = monotonic.as_nanos() - self.as_of_ns;
        if monotonic.as_nanos() >= self.void_after_ns {
            return None;
        }
        let drift = since.max(0).saturating_mul(i128::from(self.drift_ppb)) / 1_000_000_000;
        i64::try_from(i128::from(self.bound_ns).saturating_add(drift)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..14].copy_from_slice(&2_u16.to_ne_bytes());
        bytes[14..16].copy_from_slice(&4_u16.to_ne_bytes());
        for (at, word) in [(16, 100), (32, 1100), (48, 7_000_i64)] {
            bytes[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes[64..68].copy_from_slice(&50_000_u32.to_ne_bytes());
        bytes[68..72].copy_from_slice(&1_u32.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_bound_grows_by_the_drift_and_ends() {
        let record = BoundRecord::parse(&written()).unwrap();
        assert_eq!(record.at(Span::from_secs(100)), Some(7_000));
        assert_eq!(record.at(Span::from_secs(102)), Some(107_000));
        assert_eq!(record.at(Span::from_secs(1100)), None);
    }

    #[test]
    fn what_is_being_written_is_of_another_layout_or_claims_nothing_is_not_read() {
        for at in [0, 12, 14, 68] {
            let mut bytes = written();
            bytes[at] = bytes[at].wrapping_add(5);
            assert_eq!(BoundRecord::parse(&bytes), None, "octet {at}");
        }
        let mut extreme = written();
        extreme[16..48].fill(0xff);
        let record = BoundRecord::parse(&extreme).unwrap();
        assert_eq!(record.at(Span::from_secs(1)), None);
        for at in [55, 67] {
            let mut bytes = written();
            bytes[at] = 0xff;
            assert_eq!(BoundRecord::parse(&bytes), None, "octet {at}: a negative bound, a drift beyond all clocks");
        }
    }

    /// The 16-bit generation turns over; 0 is that of a file that was never written.
    #[test]
    fn every_even_generation_but_zero_is_read() {
        for generation in 0..=u16::MAX {
            let mut bytes = written();
            bytes[14..16].copy_from_slice(&generation.to_ne_bytes());
            assert_eq!(BoundRecord::parse(&bytes).is_some(), generation != 0 && generation.is_multiple_of(2));
        }
    }

    /// Whatever stands in the file, at whatever time: a bound of some length, or none.
    #[test]
    fn any_record_gives_a_bound_or_none() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Every second word is near an end of its range.
            let word = state >> 8 & 0xff;
            if state >> 63 == 0 {
                state.rotate_left(29)
            } else {
                [word, u64::MAX - word, i64::MAX as u64 - word][state as usize % 3]
            }
        };
        let mut bounds = 0;
        for _ in 0..200_000 {
            let mut bytes = written();
            for at in (16..64).step_by(8) {
                bytes[at..at + 8].copy_from_slice(&next().to_ne_bytes());
            }
            bytes[64..68].copy_from_slice(&(next() as u32).to_ne_bytes());
            let now = Span::from_units(i128::from(next().cast_signed()) << 63);
            if let Some(bound) = BoundRecord::parse(&bytes).and_then(|record| record.at(now)) {
                assert!(bound >= 0, "{bytes:?}");
                bounds += 1;
            }
        }
        assert!(bounds > 1_000, "{bounds}");
    }
}
