//! `ffclock sim sweep`: one scenario with many seeds, on several threads.
//!
//! Results come in the order of the seeds, whatever the order in which the threads finish.

use super::{Named, open, verdict};
use crate::{Failure, Global, output};
use ffclock_sim::{Run, RunResult};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write, stderr};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(clap::Args)]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in `.toml`
    name: String,
    /// The seeds, first and last, such as `1..100`
    #[arg(long, default_value = "1..20")]
    seeds: Seeds,
    /// How many runs at a time [default: as many as there are processors]
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
}

/// A range of seeds, both ends within.
#[derive(Clone, Debug, PartialEq)]
struct Seeds(Range<u64>);

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

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let results = run_all(&named, args.seeds.0.clone(), jobs);
    if global.json {
        results.iter().try_for_each(output::json)?;
    } else {
        output::write(&render(&summarise(&results), &results))?;
    }
    verdict(&results)
}

/// Runs every seed; sorted by seed.
fn run_all(named: &Named, seeds: Range<u64>, jobs: usize) -> Vec<RunResult> {
    let next = AtomicU64::new(seeds.start);
    let results = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let result = Run { name: &named.name, scenario: &named.scenario, seed }.execute(None);
            // A thread that panicked has ended the program's work anyhow; what the others have is still whole.
            let mut results = results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            results.push(result);
            show_progress(results.len() as u64, seeds.end - seeds.start);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|result| result.seed);
    results
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

/// The medians over the seeds of one clock in one window, and the worst seed.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Line {
    clock: String,
    window: String,
    iqr: f64,
    p99: f64,
    max: f64,
    rate_p99: f64,
    containment: Option<f64>,
    worst_seed: u64,
}

fn summarise(results: &[RunResult]) -> Vec<Line> {
    let Some(first) = results.first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (clock_index, clock) in first.clocks.iter().enumerate() {
        for (window_index, window) in clock.windows.iter().enumerate() {
            let each = || {
                results
                    .iter()
                    .filter_map(move |run| Some((run.seed, run.clocks.get(clock_index)?.windows.get(window_index)?)))
            };
            let figure = |name: &str| median(each().filter_map(|(_, window)| window.figure(name)).collect());
            let worst = each().max_by(|one, other| one.1.max.unwrap_or(0.0).total_cmp(&other.1.max.unwrap_or(0.0)));
            lines.push(Line {
                clock: clock.name.clone(),
                window: window.name.clone(),
                iqr: figure("iqr"),
                p99: figure("p99"),
                max: figure("max"),
                rate_p99: figure("rate-p99"),
                containment: each().filter_map(|(_, window)| window.containment).reduce(f64::min),
                worst_seed: worst.map_or(0, |worst| worst.0),
            });
        }
    }
    lines
}

/// The middle value; NaN of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.get(middle.wrapping_sub(1))) {
        (Some(upper), Some(lower)) if values.len().is_multiple_of(2) => (upper + lower) / 2.0,
        (Some(upper), _) => *upper,
        _ => f64::NAN,
    }
}

fn render(lines: &[Line], results: &[RunResult]) -> String {
    let mut text = format!(
        "{} seeds; medians [us], rate [ppb], the smallest share inside the bound, the worst seed\n",
        results.len()
    );
    let _ = writeln!(
        text,
        "{:<14}{:<14}{:>10}{:>10}{:>11}{:>10}{:>12}{:>8}",
        "clock", "window", "iqr", "p99", "largest", "rate", "inside [%]", "seed"
    );
    for line in lines {
        let inside = line.containment.map_or_else(|| "-".to_owned(), |share| format!("{:.3}", share * 100.0));
        let _ = writeln!(
            text,
            "{:<14}{:<14}{:>10.2}{:>10.2}{:>11.2}{:>10.2}{inside:>12}{:>8}",
            line.clock,
            line.window,
            line.iqr * 1e6,
            line.p99 * 1e6,
            line.max * 1e6,
            line.rate_p99 * 1e9,
            line.worst_seed
        );
    }
    let failed: Vec<String> = results.iter().filter(|run| !run.passed).map(|run| run.seed.to_string()).collect();
    if !failed.is_empty() {
        let _ = writeln!(text, "checks FAILED with the seeds {}", failed.join(" "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    #[test]
    fn seeds_are_ranges_with_both_ends() {
        assert_eq!("1..100".parse(), Ok(Seeds(1..101)));
        assert_eq!("7".parse(), Ok(Seeds(7..8)));
        for wrong in ["", "5..1", "a..b", "1..", "18446744073709551615"] {
            assert!(wrong.parse::<Seeds>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn threads_do_not_change_the_results() {
        let named = open("lan-16").unwrap();
        let mut named = Named { name: "short".into(), ..named };
        named.scenario.from.0 = Span::ZERO;
        named.scenario.duration.0 = Span::from_secs(3600);
        let all = |jobs| run_all(&named, 1..5, jobs);
        assert_eq!(all(1), all(3));
    }
}
