//! Taking the time of readings, on one CPU and on all at once.

use crate::ways::{CounterWay, KernelTicks, ReadingTask};
use core::fmt;
use core::hint::black_box;
use ffclock_counter::{CounterId, pin_to, read_ordered};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Barrier, OnceLock};
use std::thread::Builder;
use std::time::Duration;

/// Readings between two looks at the CPU's counter, back to back: the instrument's own cost is shared among them.
pub const BATCH: usize = 32;

/// How long the thread sleeps before each reading of [`Arrangement::First`].
const PAUSE: Duration = Duration::from_millis(2);

/// How readings follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// The first one after a pause, with whatever that left in the caches: as the papers measure it.
    First,
    /// Each by itself, right after others of its kind.
    Single,
    /// [`BATCH`] without a look at the CPU's counter in between; figures are per reading.
    BackToBack,
    /// Each by itself while all CPUs read.
    AllCpus,
    /// Measured inside the kernel by the module ffcounter.
    Kernel,
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arrangement::First => "first",
            Arrangement::Single => "single",
            Arrangement::BackToBack => "back-to-back",
            Arrangement::AllCpus => "all-cpus",
            Arrangement::Kernel => "kernel",
        })
    }
}

impl Arrangement {
    /// Readings between two looks at the CPU's counter.
    pub const fn readings(self) -> usize {
        match self {
            Arrangement::BackToBack => BATCH,
            Arrangement::First | Arrangement::Single | Arrangement::AllCpus | Arrangement::Kernel => 1,
        }
    }
}

/// Brackets of one way on one CPU.
#[derive(Debug)]
pub(super) struct Burst {
    pub(super) way: usize,
    pub(super) cpu: usize,
    pub(super) arrangement: Arrangement,
    /// Ticks of each bracket, its own cost included; `None` where the counter could not be read.
    pub(super) ticks: Option<Vec<u64>>,
}

/// Times brackets of `readings` each.
struct ReadingBursts {
    brackets: usize,
    readings: usize,
}

impl ReadingTask for ReadingBursts {
    type Output = Option<Vec<u64>>;

    #[inline(always)]
    fn run<F: FnMut() -> Option<u64>>(self, mut read: F) -> Option<Vec<u64>> {
        let mut ticks = Vec::with_capacity(self.brackets);
        for _ in 0..self.brackets {
            let mut last = None;
            let before = read_ordered(CounterId::CPU);
            for _ in 0..self.readings {
                last = black_box(read());
            }
            let after = read_ordered(CounterId::CPU);
            last?;
            ticks.push(u64::try_from((after - before).raw()).unwrap_or(0));
        }
        Some(ticks)
    }
}

/// Times brackets of one reading each, which the compiler then knows.
struct SingleReadings(usize);

impl ReadingTask for SingleReadings {
    type Output = Option<Vec<u64>>;

    fn run<F: FnMut() -> Option<u64>>(self, read: F) -> Option<Vec<u64>> {
        ReadingBursts { brackets: self.0, readings: 1 }.run(read)
    }
}

/// One bracket after a pause of its own, which the instrument's own cost has as well. As in case-for-feed-forward,
/// section V-A, the CPU's counter is read twice before: what the caches lack for the instrument is fetched by the first
/// of the two, not within the bracket.
struct Paused;

impl ReadingTask for Paused {
    type Output = Option<Vec<u64>>;

    fn run<F: FnMut() -> Option<u64>>(self, mut read: F) -> Option<Vec<u64>> {
        std::thread::sleep(PAUSE);
        black_box(read_ordered(CounterId::CPU));
        let before = read_ordered(CounterId::CPU);
        let last = black_box(read());
        let after = read_ordered(CounterId::CPU);
        last?;
        Some(vec![u64::try_from((after - before).raw()).unwrap_or(0)])
    }
}

/// Every way on one CPU, one after the other; `round` decides the order of the first readings.
pub(super) fn burst_on(cpu: usize, ways: &[CounterWay], burst: usize, round: usize) -> io::Result<Vec<Burst>> {
    in_thread(|| {
        pin_to(cpu)?;
        // The stack of a new thread is not in memory yet: the first one to write there would pay for the page.
        CounterWay::nothing().with(SingleReadings(1));
        let mut bursts = firsts(cpu, ways, round);
        bursts.extend(ways.iter().enumerate().flat_map(|(number, way)| bursts_of(number, way, cpu, burst)));
        Ok(bursts)
    })
}

/// One reading of every way, each after a pause. Ways share code, as the kernel's entry and the vDSO: in another order
/// each round, none of them finds what the same other one has left in the caches.
fn firsts(cpu: usize, ways: &[CounterWay], round: usize) -> Vec<Burst> {
    let outside = order(ways.len(), round).into_iter().filter(|&number| ways[number].kernel_ticks().is_none());
    let first =
        |number: usize| Burst { way: number, cpu, arrangement: Arrangement::First, ticks: ways[number].with(Paused) };
    outside.map(first).collect()
}

/// The numbers below `count` in an order that depends on the round alone (Fisher and Yates, with numbers of
/// splitmix64).
fn order(count: usize, round: usize) -> Vec<usize> {
    let mut state = round as u64;
    let mut below = |limit: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    };
    let mut numbers: Vec<usize> = (0..count).collect();
    (1..count).rev().for_each(|last| numbers.swap(last, below(last + 1)));
    numbers
}

fn bursts_of(number: usize, way: &CounterWay, cpu: usize, burst: usize) -> Vec<Burst> {
    if way.kernel_ticks().is_some() {
        return bursts_in_kernel(number, way, cpu, burst);
    }
    let made = |arrangement, ticks| Burst { way: number, cpu, arrangement, ticks };
    let single = way.with(SingleReadings(burst));
    let batches = way.with(ReadingBursts { brackets: burst.div_ceil(BATCH).max(2), readings: BATCH });
    vec![made(Arrangement::Single, single), made(Arrangement::BackToBack, batches)]
}

/// As the module measured it; its own cost counts for the way that reads nothing, which is the first one.
fn bursts_in_kernel(number: usize, way: &CounterWay, cpu: usize, burst: usize) -> Vec<Burst> {
    let samples: Option<Vec<KernelTicks>> = (0..burst).map(|_| way.kernel_ticks().flatten()).collect();
    let made = |way, ticks| Burst { way, cpu, arrangement: Arrangement::Kernel, ticks };
    let of = |part: fn(&KernelTicks) -> u64| samples.as_ref().map(|samples| samples.iter().map(part).collect());
    // A counter that is gone is reported under its own name only.
    vec![made(0, of(|sample| sample.own).or_else(|| Some(Vec::new()))), made(number, of(|sample| sample.bracket))]
}

/// Every way on all CPUs at once, all at the same way at the same time.
pub(super) fn bursts_everywhere(cpus: &[usize], ways: &[CounterWay], burst: usize) -> io::Result<Vec<Burst>> {
    let barrier = Barrier::new(cpus.len());
    let bursts = at_once(cpus.iter().map(|&cpu| (Builder::new(), cpu)), |cpu| {
        // A thread that cannot be pinned still meets the others, which would wait for ever.
        let pinned = pin_to(cpu);
        let outside = ways.iter().enumerate().filter(|(_, way)| way.kernel_ticks().is_none());
        let bursts: Vec<Burst> = outside
            .map(|(number, way)| {
                barrier.wait();
                let ticks = way.with(SingleReadings(burst));
                Burst { way: number, cpu, arrangement: Arrangement::AllCpus, ticks }
            })
            .collect();
        pinned.map(|()| bursts)
    })?;
    Ok(bursts.into_iter().flatten().collect())
}

/// Does `work` in a thread each, once all of them are there: where one cannot be started none begins, since those that
/// meet in `work` would wait for it for ever.
fn at_once<N: Send, T: Send>(
    threads: impl Iterator<Item = (Builder, N)>,
    work: impl Fn(N) -> io::Result<T> + Sync,
) -> io::Result<Vec<T>> {
    let all_are_there: OnceLock<bool> = OnceLock::new();
    std::thread::scope(|scope| {
        let (work, all_are_there) = (&work, &all_are_there);
        let started: io::Result<Vec<_>> = threads
            .map(|(thread, number)| {
                thread.spawn_scoped(scope, move || all_are_there.wait().then(|| work(number)).transpose())
            })
            .collect();
        all_are_there.get_or_init(|| started.is_ok());
        let ended =
            started?.into_iter().map(|worker| worker.join().map_err(|_| io::Error::other("a thread failed"))?);
        Ok(ended.collect::<io::Result<Vec<Option<T>>>>()?.into_iter().flatten().collect())
    })
}

/// The caller's thread keeps its freedom to move.
fn in_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let worker = Builder::new().spawn_scoped(scope, work)?;
        worker.join().map_err(|_| io::Error::other("a thread failed"))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn every_way_comes_first_as_often_as_any_other() {
        let mut leads = [0; 20];
        for round in 0..2000 {
            let mut numbers = order(20, round);
            leads[numbers[0]] += 1;
            numbers.sort_unstable();
            assert_eq!(numbers, (0..20).collect::<Vec<usize>>());
        }
        // 100 each: four standard deviations of a binomial distribution are 39.
        assert!(leads.iter().all(|lead| (60..140).contains(lead)), "{leads:?}");
        assert_eq!((order(0, 1), order(1, 1)), (vec![], vec![0]));
    }

    #[test]
    fn a_thread_that_cannot_be_started_keeps_no_other_waiting() {
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let barrier = Barrier::new(3);
            // No machine has the memory for the stack of the last one.
            let threads = [0, 0, 1 << 60].into_iter().enumerate();
            let threads = threads.map(|(number, stack)| (Builder::new().stack_size(stack), number));
            let meet = |number| {
                barrier.wait();
                Ok(number)
            };
            sender.send(at_once(threads, meet).map_err(|error| error.kind()))
        });
        let ended = receiver.recv_timeout(Duration::from_secs(20)).expect("no thread waits for one that never starts");
        assert!(ended.is_err(), "{ended:?}");
        let all = at_once((0..3).map(|number| (Builder::new(), number)), Ok).unwrap();
        assert_eq!(all, [0, 1, 2]);
    }
}
