//! The system clock of one program, in the file that the interposer keeps: straight lines over the raw counter, also
//! those of the coming seconds. Reading it disturbs neither the program nor its clock.

use crate::failure::Failure;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

const MAGIC: u64 = u64::from_le_bytes(*b"FFLIVEC1");
/// Of the ring; the interposer's `SEGMENTS`.
const SEGMENTS: usize = 4096;
/// Where the ring begins.
const RING: usize = 4096;
/// One segment: raw, shown, part, slope, and four words that only the interposer needs.
const SEGMENT: usize = 64;
/// Words of the header: magic number, sequence, first, count, and then the discipline with tick, frequency, constant
/// and status first.
const TICK: usize = 4;
const FREQUENCY: usize = 5;
const CONSTANT: usize = 6;
const STATUS: usize = 7;
/// Of the header too: whether the programs that write have made their lock.
const LOCK_IS_MADE: usize = 13;
/// The kernel's tick [us], and its status before anything synchronised the clock (`STA_UNSYNC`).
const TICK_US: i64 = 10_000;
/// `time_constant` before anything set it.
const FIRST_CONSTANT: i64 = 2;
const UNSYNCHRONISED: i64 = 0x40;
/// `NTP_PHASE_LIMIT` [us], in the words for the largest and the estimated error.
const ERROR_WORDS: [usize; 2] = [10, 11];
const PHASE_LIMIT_US: i64 = 16_000_000;
/// How often a reader tries when the program writes meanwhile, and how long it waits in between: the program may have
/// been interrupted in the middle, on a machine that does much else.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(1);

/// A straight line from its begin on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FileSegment {
    raw_ns: i64,
    shown_ns: i64,
    shown_part_ns: f64,
    slope: f64,
}

impl FileSegment {
    fn shown_at(&self, raw_ns: i64) -> i64 {
        let since = raw_ns - self.raw_ns;
        self.shown_ns + since + (self.shown_part_ns + self.slope * since as f64).floor() as i64
    }
}

/// How a clock begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockStart {
    /// The raw counter [ns].
    pub(super) raw_ns: i64,
    /// What the clock shows then [ns].
    pub(super) shown_ns: i64,
    /// Its frequency against the raw counter, as an earlier program left it; relative.
    pub(super) frequency: f64,
}

/// Makes the file of a clock that nothing has synchronised yet.
pub(super) fn create(path: &Path, start: ClockStart) -> Result<(), Failure> {
    let mut bytes = vec![0; RING + SEGMENTS * SEGMENT];
    let mut put = |offset: usize, word: [u8; 8]| bytes[offset..offset + 8].copy_from_slice(&word);
    put(0, MAGIC.to_ne_bytes());
    put(24, 1_u64.to_ne_bytes());
    put(8 * TICK, TICK_US.to_ne_bytes());
    put(8 * CONSTANT, FIRST_CONSTANT.to_ne_bytes());
    put(8 * STATUS, UNSYNCHRONISED.to_ne_bytes());
    ERROR_WORDS.into_iter().for_each(|word| put(8 * word, PHASE_LIMIT_US.to_ne_bytes()));
    put(8 * FREQUENCY, start.frequency.to_ne_bytes());
    put(RING, start.raw_ns.to_ne_bytes());
    put(RING + 8, start.shown_ns.to_ne_bytes());
    put(RING + 24, start.frequency.to_ne_bytes());
    fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Before the programs of another session have this clock: the lock in it is of programs that are gone, perhaps with
/// the machine's last boot, and the first of them makes another.
pub(super) fn forget_lock(path: &Path) -> Result<(), Failure> {
    let file = fs::OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.write_all_at(&[0; 8], 8 * LOCK_IS_MADE as u64))
        .map_err(|error| format!("{}: {error}", path.display()).into())
}

/// A clock that is looked at from outside.
#[derive(Debug)]
pub(super) struct OutsideClock {
    file: File,
}

impl OutsideClock {
    /// Opens the file of a clock.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let clock = OutsideClock { file };
        match clock.header()?[0] {
            MAGIC => Ok(clock),
            _ => Err(format!("{}: not a clock file", path.display()).into()),
        }
    }

    /// What the clock shows [ns] when its raw counter is `raw_ns`.
    pub(super) fn shown_at(&self, raw_ns: i64) -> Result<i64, Failure> {
        for _ in 0..TRIES {
            let before = self.header()?;
            let segment = self.segment_at(&before, raw_ns)?;
            if before[1].is_multiple_of(2) && self.header()? == before {
                return Ok(segment.shown_at(raw_ns));
            }
            std::thread::sleep(PAUSE);
        }
        Err("a clock file is being written all the time".into())
    }

    fn header(&self) -> Result<[u64; 4], Failure> {
        let mut bytes = [0; 32];
        self.file.read_exact_at(&mut bytes, 0)?;
        let (words, _) = bytes.as_chunks::<8>();
        Ok(core::array::from_fn(|index| words.get(index).copied().map_or(0, u64::from_ne_bytes)))
    }

    /// The last segment that begins at or before `raw_ns`; the first where there is none.
    fn segment_at(&self, header: &[u64; 4], raw_ns: i64) -> Result<FileSegment, Failure> {
        let [_, _, first, count] = *header;
        let (mut low, mut high) = (0, count.min(SEGMENTS as u64));
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.segment(first.wrapping_add(middle))?.raw_ns <= raw_ns { low = middle } else { high = middle }
        }
        self.segment(first.wrapping_add(low))
    }

    fn segment(&self, index: u64) -> Result<FileSegment, Failure> {
        let mut bytes = [0; 32];
        let index = index % SEGMENTS as u64;
        self.file.read_exact_at(&mut bytes, RING as u64 + index * SEGMENT as u64)?;
        let (words, _) = bytes.as_chunks::<8>();
        let word = |index: usize| words.get(index).copied().unwrap_or_default();
        Ok(FileSegment {
            raw_ns: i64::from_ne_bytes(word(0)),
            shown_ns: i64::from_ne_bytes(word(1)),
            shown_part_ns: f64::from_ne_bytes(word(2)),
            slope: f64::from_ne_bytes(word(3)),
        })
    }
}

#[cfg(test)]
#[path = "clock_file_tests.rs"]
mod tests;
