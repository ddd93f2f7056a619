//! Many runs on several threads, with a progress bar.

use ffclock_estimator::LearnedConfig;
use ffclock_sim::{Cast, Run, RunResult, Scenario};
use std::io::{IsTerminal, Write, stderr};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// At most this many seeds at a time: every run is kept until the end, some kilobytes each.
const SEEDS_MAX: u64 = 100_000;
/// More threads than any computer has processors for.
const JOBS_MAX: usize = 1024;

/// A range of seeds, both ends within.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seeds(pub(super) Range<u64>);

impl FromStr for Seeds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "must be FIRST..LAST with FIRST not above LAST, such as 1..20, or one number".to_owned();
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last): (u64, u64) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        let end = last.checked_add(1).filter(|end| *end > first).ok_or_else(wrong)?;
        if end - first > SEEDS_MAX {
            return Err(format!("at most {SEEDS_MAX} seeds at a time"));
        }
        Ok(Seeds(first..end))
    }
}

/// How many runs at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Jobs(NonZeroUsize);

impl FromStr for Jobs {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let jobs: Option<NonZeroUsize> = text.parse().ok().filter(|jobs: &NonZeroUsize| jobs.get() <= JOBS_MAX);
        jobs.map(Jobs).ok_or_else(|| format!("must be a number from 1 to {JOBS_MAX}"))
    }
}

/// As many as were asked for, or as there are processors.
pub(super) fn jobs(asked: Option<Jobs>) -> usize {
    let asked = asked.map(|jobs| jobs.0);
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// The clocks of a run.
pub(super) type Judges<'a> = dyn for<'j> Fn(&Job<'j>) -> Vec<&'j str> + Sync + 'a;

/// How runs are made.
pub(super) struct Making<'a> {
    /// How many at a time.
    pub(super) jobs: usize,
    pub(super) clocks: &'a Judges<'a>,
    pub(super) learned: &'a LearnedConfig,
    /// Makes one.
    pub(super) execute: fn(&Run<'_>, &Cast<'_>) -> RunResult,
}

/// One run to be made.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) scenario: &'a Scenario,
    pub(super) seed: u64,
}

/// Makes all runs. Hands each result to `take` as soon as it is there, in whichever order.
pub(super) fn run_all(work: &[Job], making: &Making, take: impl FnMut(RunResult) + Send) {
    let next = AtomicUsize::new(0);
    let take = Mutex::new((take, 0_u64));
    let all = work.len() as u64;
    let one = || {
        while let Some(job) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let clocks = (making.clocks)(job);
            let run = Run { name: job.name, scenario: job.scenario, seed: job.seed };
            let result = (making.execute)(&run, &Cast { clocks: &clocks, learned: making.learned });
            // A thread that panicked has ended the program's work anyhow; what the others have is still whole.
            let mut taking = take.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (taking.0)(result);
            taking.1 += 1;
            show_progress(taking.1, all);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..making.jobs.min(work.len()) {
            scope.spawn(one);
        }
    });
}

const BAR: u64 = 40;

pub(super) fn show_progress(done: u64, all: u64) {
    if !stderr().is_terminal() {
        return;
    }
    let full = (done * BAR / all.max(1)) as usize;
    let end = if done == all { "\n" } else { "" };
    let _ = write!(stderr(), "\r[{:<40}] {done}/{all}{end}", "#".repeat(full));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_ranges_with_both_ends() {
        assert_eq!("1..100".parse(), Ok(Seeds(1..101)));
        assert_eq!("7".parse(), Ok(Seeds(7..8)));
        for wrong in ["", "5..1", "a..b", "1..", "18446744073709551615"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn more_than_any_memory_holds_is_refused() {
        assert_eq!("5..100004".parse(), Ok(Seeds(5..100_005)));
        for wrong in ["5..100005", "1..18446744073709551614"] {
            assert!(wrong.parse::<Seeds>().is_err_and(|why| why.contains("at most 100000 seeds")), "{wrong}");
        }
        assert_eq!("3".parse::<Jobs>().map(|asked| jobs(Some(asked))), Ok(3));
        for wrong in ["0", "1025", "1000000", "x"] {
            assert!(wrong.parse::<Jobs>().is_err(), "{wrong}");
        }
    }
}
