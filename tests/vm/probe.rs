//! The memory that a guest and its host both have mapped, the file of an `ivshmem-plain` device: the host asks in it
//! for readings of the guest, and has each within a microsecond, while a packet takes a millisecond.
//!
//! The host stores a request; the guest stores what it was asked for, and then the request's number. The guest looks
//! every 20 ms, and for 2 ms after each answer: so the first request wakes it, and those that follow at once are quick.

use super::clocks::now;
use super::{Found, Outcome, tsc};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

const REQUEST: usize = 0;
const ANSWERED: usize = 1;
const FIRST_VALUE: usize = 2;
/// Values of an answer.
pub(crate) const VALUES: usize = 3;
const WORDS: usize = FIRST_VALUE + VALUES;

const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOK_FOR: Duration = Duration::from_millis(2);
/// A guest that has not answered by then is stopped or away.
const PATIENCE: Duration = Duration::from_millis(500);
/// One that just has answered is still looking, unless another process has its place.
const QUICK: Duration = Duration::from_millis(50);
/// Requests one after the other, of which the one with the quickest answer counts.
const TRIES: usize = 20;
/// The offset of the counters is taken for known where this is more than half the time that the answer took.
const OFFSET_HALF_MAX: Duration = Duration::from_micros(20);

/// What is asked for; the last two bits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The guest's counter.
    Counter,
    /// The clock of the ffclockd that asks a server.
    Independent,
    /// The clock of the ffclockd that has its host's page alone.
    Dependent,
    /// The guest's system clock.
    System,
}

impl Wanted {
    fn of(request: u64) -> Self {
        [Wanted::Counter, Wanted::Independent, Wanted::Dependent, Wanted::System][(request & 3) as usize]
    }
}

/// The mapped memory.
struct Memory(NonNull<[AtomicU64; WORDS]>, File);

impl Memory {
    fn open(path: &str) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(|error| format!("{path}: {error}"))?;
        let (length, protection) = (size_of::<[AtomicU64; WORDS]>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: the kernel chooses a free place, so no memory in use is touched; the descriptor is open.
        let start =
            unsafe { libc::mmap(core::ptr::null_mut(), length, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let words = NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED);
        words.map(|words| Memory(words, file)).ok_or_else(|| format!("{path}: {}", std::io::Error::last_os_error()))
    }

    fn lock(&self, operation: i32) -> Outcome {
        // SAFETY: no memory is handed over; the descriptor is open.
        let code = unsafe { libc::flock(self.1.as_raw_fd(), operation) };
        Found(code == 0).or_fail(|| std::io::Error::last_os_error().to_string())
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: it is mapped to the end of the process, and the other side changes it at any time, which atomics
        // allow. The file and the device's memory have a page, and neither is ever cut off.
        unsafe { &self.0.as_ref()[place] }
    }
}

/// In the guest: answers each request with the values that `reading` has for it, until the process is killed.
pub(crate) fn answer(path: &str, mut reading: impl FnMut(Wanted) -> [u64; VALUES]) -> Outcome {
    let memory = Memory::open(path)?;
    let mut last = memory.word(REQUEST).load(Ordering::Acquire);
    loop {
        let mut looking = Instant::now();
        while looking.elapsed() < LOOK_FOR {
            let request = memory.word(REQUEST).load(Ordering::Acquire);
            if request == last {
                continue;
            }
            for (place, value) in reading(Wanted::of(request)).into_iter().enumerate() {
                memory.word(FIRST_VALUE + place).store(value, Ordering::Relaxed);
            }
            memory.word(ANSWERED).store(request, Ordering::Release);
            last = request;
            looking = Instant::now();
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// An answer, between two readings of this machine's system clock [ns since 1970] and of its counter.
pub(crate) struct Answer {
    pub(crate) time: [i128; 2],
    counter: [u64; 2],
    pub(crate) values: [u64; VALUES],
}

impl Answer {
    /// Half the time that it took [ns].
    pub(crate) fn half(&self) -> i128 {
        (self.time[1] - self.time[0]) / 2
    }
}

/// The guest, for its host.
pub(crate) struct Guest {
    memory: Memory,
    number: u64,
}

impl Guest {
    pub(crate) fn open(path: &str) -> Result<Self, String> {
        Ok(Guest { memory: Memory::open(path)?, number: tsc() })
    }

    /// Wakes the guest and then asks for all of these as often as `tries` says; of each the quickest answer, none where
    /// none came. One process at a time has the guest to itself.
    pub(crate) fn ask<const COUNT: usize>(
        &mut self,
        wanted: [Wanted; COUNT],
        tries: usize,
    ) -> Result<[Option<Answer>; COUNT], String> {
        let mut found = [const { None }; COUNT];
        self.memory.lock(libc::LOCK_EX)?;
        if self.request(Wanted::Counter, PATIENCE)?.is_some() {
            for _ in 0..tries {
                for (best, wanted) in found.iter_mut().zip(wanted) {
                    let answers = best.take().into_iter().chain(self.request(wanted, QUICK)?);
                    *best = answers.min_by_key(Answer::half);
                }
            }
        }
        self.memory.lock(libc::LOCK_UN)?;
        Ok(found)
    }

    fn request(&mut self, wanted: Wanted, patience: Duration) -> Result<Option<Answer>, String> {
        self.number = self.number.wrapping_add(1);
        let request = self.number << 2 | wanted as u64;
        let (begin, before) = (now()?, tsc());
        self.memory.word(REQUEST).store(request, Ordering::Release);
        let asked = Instant::now();
        while self.memory.word(ANSWERED).load(Ordering::Acquire) != request {
            let passed = asked.elapsed();
            if passed > patience {
                return Ok(None);
            }
            // The answer of a guest that has to be woken need not be seen at once.
            if passed > LOOK_FOR {
                thread::sleep(Duration::from_micros(200));
            }
        }
        let (after, end) = (tsc(), now()?);
        let values = core::array::from_fn(|place| self.memory.word(FIRST_VALUE + place).load(Ordering::Relaxed));
        Ok(Some(Answer { time: [begin, end], counter: [before, after], values }))
    }
}

/// The guest's counter minus this machine's, in ticks, and how far from it the truth may be [us]. The one is read
/// between two readings of the other.
pub(crate) fn offset(path: &str) -> Outcome {
    let mut guest = Guest::open(path)?;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(20) {
        let [Some(answer)] = guest.ask([Wanted::Counter], TRIES)? else { continue };
        if answer.half() > OFFSET_HALF_MAX.as_nanos().cast_signed() {
            continue;
        }
        let [before, after] = answer.counter.map(|host| answer.values[0].wrapping_sub(host).cast_signed());
        let half_us = answer.half() as f64 * 1e-3;
        println!("{} {half_us:.3}", after + (before - after) / 2);
        return Ok(());
    }
    Found(false).or_fail(|| format!("no answer within {OFFSET_HALF_MAX:?} on each side"))
}
