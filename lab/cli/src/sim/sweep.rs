//! `ffclock-lab sim sweep`: one scenario with many seeds, on several threads.
//!
//! Results come in the order of the seeds, whatever the order in which the threads finish.

use super::pool::{Job, Jobs, Judges, Making, Seeds, jobs, run_all};
use super::{NamedScenario, open, verdict, without};
use crate::ablation::Ablation;
use crate::{Failure, GlobalOptions, output};
use ffclock_sim::{Cast, Run, RunResult, Sinks, clocks_in};
use ffclock_statistics::percentile;
use serde::Serialize;
use std::fmt::Write as _;
use std::ops::Range;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim sweep route-up-forward --seeds 1..100 --jobs 2
  $ ffclock-lab sim sweep lan-16 --seeds 1..20 --json | jq -c '[.seed, .passed]'

Exit code 1 if a check of the scenario does not hold with some seed. With --json each run is a line, in the order of the seeds.")]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in `.toml`
    name: String,
    /// The seeds, first and last, such as `1..100`
    #[arg(long, default_value = "1..20")]
    seeds: Seeds,
    /// How many runs at a time [default: as many as there are processors]
    #[arg(long)]
    jobs: Option<Jobs>,
    #[command(flatten)]
    ablation: Ablation,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let learned = args.ablation.learned()?;
    let clocks: &Judges = &|job| clocks_in(job.scenario);
    let making = Making { jobs: jobs(args.jobs), clocks, learned: &learned, execute };
    let results = sweep(&named, args.seeds.0.clone(), &making);
    if global.json {
        results.iter().try_for_each(output::json)?;
    } else {
        output::write(&render(&summarise(&results), &results))?;
    }
    verdict(&results)
}

fn execute(run: &Run<'_>, cast: &Cast<'_>) -> RunResult {
    run.execute_as(cast, Sinks::default())
}

/// Runs every seed; sorted by seed.
fn sweep(named: &NamedScenario, seeds: Range<u64>, making: &Making) -> Vec<RunResult> {
    let work: Vec<Job> = seeds.map(|seed| named.job(seed)).collect();
    let mut results = Vec::new();
    run_all(&work, making, |result| results.push(result));
    results.sort_by_key(|result| result.seed);
    results
}

/// The medians over the seeds of one clock in one window, and the worst seed.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SweepRow {
    clock: String,
    window: String,
    iqr: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    rate_p99: Option<f64>,
    containment: Option<f64>,
    worst_seed: u64,
}

fn summarise(results: &[RunResult]) -> Vec<SweepRow> {
    let Some(first) = results.first() else { return Vec::new() };
    let mut lines = Vec::new();
    for (clock_index, clock) in first.clocks.iter().enumerate() {
        for (window_index, window) in clock.windows.iter().enumerate() {
            let each = || {
                results
                    .iter()
                    .filter_map(move |run| Some((run.seed, run.clocks.get(clock_index)?.windows.get(window_index)?)))
            };
            let figure = |name: &str| {
                let values: Vec<f64> = each().filter_map(|(_, window)| window.figure(name)).collect();
                percentile(&values, 0.5)
            };
            let worst = each().max_by(|one, other| one.1.max.unwrap_or(0.0).total_cmp(&other.1.max.unwrap_or(0.0)));
            lines.push(SweepRow {
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

fn render(lines: &[SweepRow], results: &[RunResult]) -> String {
    let without = without(results.first().map_or(&[], |run| &run.without));
    let mut text = format!(
        "{} seeds{without}; medians [us], rate [ppb], the smallest share inside the bound, the worst seed\n",
        results.len()
    );
    let _ = writeln!(
        text,
        "{:<14}{:<14}{:>10}{:>10}{:>11}{:>10}{:>12}{:>8}",
        "clock", "window", "iqr", "p99", "largest", "rate", "inside [%]", "seed"
    );
    for line in lines {
        let number = |value: Option<f64>, (scale, digits): (f64, usize)| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value * scale))
        };
        let micros = |value| number(value, (1e6, 2));
        let _ = writeln!(
            text,
            "{:<14}{:<14}{:>10}{:>10}{:>11}{:>10}{:>12}{:>8}",
            line.clock,
            line.window,
            micros(line.iqr),
            micros(line.p99),
            micros(line.max),
            number(line.rate_p99, (1e9, 2)),
            number(line.containment, (100.0, 3)),
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
    use ffclock_estimator::LearnedConfig;
    use ffclock_units::Span;

    #[test]
    fn threads_do_not_change_the_results() {
        let named = open("lan-16").unwrap();
        let mut named = NamedScenario { name: "short".into(), ..named };
        named.scenario.from.0 = Span::ZERO;
        named.scenario.duration.0 = Span::from_secs(3600);
        let whole = LearnedConfig::default();
        let clocks: &Judges = &|job| clocks_in(job.scenario);
        let all = |jobs, learned| sweep(&named, 1..5, &Making { jobs, clocks, learned, execute });
        assert_eq!(all(1, &whole), all(3, &whole));
        let mut part = whole.clone();
        part.leave_out("directions").unwrap();
        let (with, without) = (all(2, &whole), all(2, &part));
        assert!(with.iter().all(|run| run.without.is_empty()));
        assert!(without.iter().all(|run| run.without == ["directions"]));
        assert_ne!(with[0].clocks, without[0].clocks);
        let text = render(&summarise(&without), &without);
        assert!(text.starts_with("4 seeds, learned without directions;"), "{text}");
    }
}
