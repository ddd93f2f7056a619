//! Many runs on several threads, with a bar of progress.

use ffclock_sim::{Run, RunResult, Scenario};
use std::io::{IsTerminal, Write, stderr};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A range of seeds, both ends within.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seeds(pub(super) Range<u64>);

impl FromStr for Seeds {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "not FIRST..LAST".to_owned();
        let (first, last) = text.split_once("..").unwrap_or((text, text));
        let (first, last): (u64, u64) = (first.parse().map_err(|_| wrong())?, last.parse().map_err(|_| wrong())?);
        let end = last.checked_add(1).filter(|end| *end > first).ok_or_else(wrong)?;
        Ok(Seeds(first..end))
    }
}

/// As many as were asked for, or as there are processors.
pub(super) fn jobs(asked: Option<NonZeroUsize>) -> usize {
    asked.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
}

/// The clocks to run with a seed.
pub(super) type Judges<'a> = dyn Fn(u64) -> Vec<&'static str> + Sync + 'a;

/// One run to be made.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) scenario: &'a Scenario,
    pub(super) seed: u64,
}

/// Makes all runs, each with the clocks that `clocks` names for its seed. Hands each result to `take` as soon as it is there, in whichever order.
pub(super) fn run_all(work: &[Job], (jobs, clocks): (usize, &Judges), take: impl FnMut(RunResult) + Send) {
    let next = AtomicUsize::new(0);
    let take = Mutex::new((take, 0_u64));
    let all = work.len() as u64;
    let one = || {
        while let Some(job) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
            let result =
                Run { name: job.name, scenario: job.scenario, seed: job.seed }.execute_with(&clocks(job.seed), None);
            // A thread that panicked has ended the program's work anyhow; what the others have is still whole.
            let mut taking = take.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            (taking.0)(result);
            taking.1 += 1;
            show_progress(taking.1, all);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(one);
        }
    });
}

const BAR: u64 = 40;

fn show_progress(done: u64, all: u64) {
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
}
