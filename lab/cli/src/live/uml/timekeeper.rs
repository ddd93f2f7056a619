//! The clock of a guest's kernel, read in its memory (`struct timekeeper` of Linux 6.1). That costs the guest nothing,
//! and has no width, because both of its clocks are straight lines over one counter.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Words of `struct timekeeper`, each of 64 bits, from `tkr_mono` on: the address and the mask of the clocksource, the
/// counter at the last update, multiplier with shift, nanoseconds above the second; of the clock and of the raw clock.
const MASKS: [usize; 2] = [1, 8];
const SOURCES: [usize; 2] = [0, 7];
const CYCLE_LAST: usize = 2;
const RATE: usize = 3;
const PART: usize = 4;
const RAW_RATE: usize = 10;
const RAW_PART: usize = 11;
const SECOND: usize = 14;
const RAW_SECOND: usize = 24;
const CYCLE_INTERVAL: usize = 27;
const WORDS: usize = 33;
/// `tk_core` begins with its sequence counter.
const SEQUENCE: u64 = 8;
/// The counter is the host's CLOCK_MONOTONIC in steps of 256 ns, 100 times a second.
const INTERVALS: std::ops::RangeInclusive<u64> = 39_062..=39_063;
/// Where a kernel of user-mode Linux keeps its data.
const DATA: std::ops::Range<u64> = 0x6000_0000..0x7000_0000;
const NS: i128 = 1_000_000_000;

/// The two clocks as lines over the counter. Times are in parts of a nanosecond, 2^-`SHIFT`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lines {
    pub(super) sequence: u32,
    /// The counter where `shown` and `raw` hold.
    pub(super) cycle: i128,
    pub(super) shown: i128,
    pub(super) raw: i128,
    /// Parts for each step of the counter.
    pub(super) slope: i128,
    pub(super) raw_slope: i128,
}

/// Of the multipliers of the clocksource.
pub(super) const SHIFT: u32 = 23;

/// The timekeeper of a running guest.
#[derive(Debug)]
pub(super) struct Timekeeper {
    memory: File,
    at: u64,
}

impl Timekeeper {
    /// Finds it, by what it looks like: Debian's kernel has no symbol for it.
    pub(super) fn find(kernel: u32) -> Timekeeper {
        let memory = File::open(format!("/proc/{kernel}/mem")).unwrap();
        for _ in 0..100 {
            if let Some(at) = areas(kernel).into_iter().find_map(|area| find_in(&memory, area)) {
                return Timekeeper { memory, at };
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the guest's kernel has no timekeeper that looks like one of Linux 6.1");
    }

    /// The lines as they are now; none while they are written, or when the guest has ended.
    pub(super) fn read(&self) -> Option<Lines> {
        let mut bytes = [0; SEQUENCE as usize + 8 * WORDS];
        self.memory.read_exact_at(&mut bytes, self.at - SEQUENCE).ok()?;
        let sequence = sequence_at(&self.memory, self.at)?;
        let word = |index: usize| words(&bytes[SEQUENCE as usize..])[index];
        if sequence % 2 == 1 || u64::from_ne_bytes(bytes[..8].try_into().unwrap()) as u32 != sequence {
            return None;
        }
        assert!((word(RATE) >> 32, word(RAW_RATE) >> 32) == (SHIFT.into(), SHIFT.into()));
        let whole = |second: usize, part: usize| ((i128::from(word(second)) * NS) << SHIFT) + i128::from(word(part));
        Some(Lines {
            sequence,
            cycle: word(CYCLE_LAST).into(),
            shown: whole(SECOND, PART),
            raw: whole(RAW_SECOND, RAW_PART),
            slope: (word(RATE) & 0xffff_ffff).into(),
            raw_slope: (word(RAW_RATE) & 0xffff_ffff).into(),
        })
    }
}

impl Lines {
    /// Whether the kernel has updated its clock since the other reading.
    pub(super) fn is_later_than(&self, other: &Lines) -> bool {
        self.sequence != other.sequence
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
}

fn sequence_at(memory: &File, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read_exact_at(&mut bytes, at - SEQUENCE).ok()?;
    Some(u32::from_ne_bytes(bytes))
}

/// The parts of its memory that may hold data.
fn areas(kernel: u32) -> Vec<std::ops::Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{kernel}/maps")).unwrap();
    let areas = maps.lines().filter(|line| line.contains(" rw")).filter_map(|line| {
        let (begin, end) = line.split_whitespace().next()?.split_once('-')?;
        Some(u64::from_str_radix(begin, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    });
    areas.filter(|area| DATA.contains(&area.start)).collect()
}

/// Beside the one that is used lies a shadow, whose sequence counter does not move.
fn find_in(memory: &File, area: std::ops::Range<u64>) -> Option<u64> {
    let mut bytes = vec![0; (area.end - area.start) as usize];
    memory.read_exact_at(&mut bytes, area.start).ok()?;
    let words = words(&bytes);
    let found = (1..words.len().saturating_sub(WORDS)).filter(|&index| looks_like_one(&words[index..index + WORDS]));
    found.map(|index| area.start + 8 * index as u64).find(|&at| {
        let before = sequence_at(memory, at);
        std::thread::sleep(Duration::from_millis(50));
        before != sequence_at(memory, at)
    })
}

fn looks_like_one(words: &[u64]) -> bool {
    MASKS.iter().all(|&index| words[index] == u64::MAX)
        && words[SOURCES[0]] == words[SOURCES[1]]
        && INTERVALS.contains(&words[CYCLE_INTERVAL])
}
