//! `ffclock-lab sim`: the simulated laboratory.
//!
//! Runs scenarios in virtual time and shows the error of each clock against the truth, and whether the checks of the
//! scenario hold. The models are in `ffclock_sim`; this file reads the options and prints the results.

mod campaign;
mod goals;
mod happenings;
mod kept;
mod list;
mod once;
mod past;
mod pool;
mod series;
mod sweep;
mod table;
#[cfg(test)]
mod tests;
mod trace_file;

use crate::{Failure, GlobalOptions};
use ffclock_sim::{RunResult, Scenario, ScenarioError};
use pool::Job;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab sim`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim list
  $ ffclock-lab sim run lan-16 --seed 3 --oracle
  $ ffclock-lab sim run lan-16 --trace lan.trace && ffclock-lab replay lan.trace
  $ ffclock-lab sim run lan-16 --series lan.csv && ffclock-lab report lan.csv -o lan.html
  $ ffclock-lab sim past lan-16
  $ ffclock-lab sim sweep route-up-forward --seeds 1..100 --jobs 2
  $ ffclock-lab sim goals --seeds 1..20 --jobs 2
  $ ffclock-lab sim campaign --seeds 1..100

A scenario is a short TOML file; docs/sim.md describes what it may say. Errors are clock minus true time, read between exchanges.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(clap::Subcommand)]
enum SimCommand {
    /// Name the built-in scenarios
    List(list::Args),
    /// Run one scenario once
    Run(once::Args),
    /// Show how old stamps and long intervals fare in one scenario
    Past(past::Args),
    /// Run one scenario with many seeds
    Sweep(sweep::Args),
    /// Judge the learned estimator by its goals, over all scenarios and many seeds
    Goals(goals::Args),
    /// Judge the strict bound in worlds of chance in which a minority of the servers lies
    Campaign(campaign::Args),
}

pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.command {
        SimCommand::List(args) => list::run(global, args),
        SimCommand::Run(args) => once::run(global, args),
        SimCommand::Past(args) => past::run(global, args),
        SimCommand::Sweep(args) => sweep::run(global, args),
        SimCommand::Goals(args) => goals::run(global, args),
        SimCommand::Campaign(args) => campaign::run(global, args),
    }
}

/// A scenario and what to call it.
struct NamedScenario {
    name: String,
    scenario: Scenario,
}

impl NamedScenario {
    fn job(&self, seed: u64) -> Job<'_> {
        Job { name: &self.name, scenario: &self.scenario, seed }
    }
}

/// What ends in `.toml` is a file, anything else a built-in scenario.
fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}

/// A built-in scenario, or one in a file.
fn open(name: &str) -> Result<NamedScenario, Failure> {
    if !is_file(name) {
        let scenario =
            Scenario::named(name).map_err(|error| Failure::usage(format!("{error}; see ffclock-lab sim list")))?;
        return Ok(NamedScenario { name: name.to_owned(), scenario });
    }
    let path = PathBuf::from(name);
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::from(format!("{name}: {error}")))?;
    let stem = path.file_stem().unwrap_or(Path::new(name).as_os_str()).to_string_lossy().into_owned();
    let scenario = Scenario::parse(&stem, &text).map_err(|error: ScenarioError| Failure::from(error.to_string()))?;
    Ok(NamedScenario { name: stem, scenario })
}

/// What the learned estimator was run without, for a heading.
fn without(parts: &[String]) -> String {
    if parts.is_empty() { String::new() } else { format!(", learned without {}", parts.join(", ")) }
}

/// A command whose checks do not all hold has failed.
fn verdict(results: &[RunResult]) -> Result<(), Failure> {
    let passed = results.iter().all(|result| result.passed);
    if passed { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}
