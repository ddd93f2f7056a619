//! `ffclock-lab theta correlate`.

use super::input::{failure, open, range, whole};
use crate::progress::Progress;
use crate::{Failure, GlobalOptions};
use ffclock_theta::analysis::SwitchPair;
use ffclock_theta::correlation::{AgainstNull, Correlation, CorrelationOptions, CorrelationVerdict, correlate};
use ffclock_theta::log::LogReader;
use ffclock_units::Span;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab theta correlate`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta correlate run-1
  $ ffclock-lab theta correlate run-1 --trim '1 s' --redraws 999 --json | jq .verdict
  $ ffclock-lab theta correlate run-1 --pairs pairs.csv

At each first switch, tau_r- comes from messages that were perceived and tau+ from messages in transit. Their rank correlation is shown if it is
larger than by chance (circular shifts) and larger than the algorithm makes of independent delays (runs with the delays of each link drawn again),
both at the level of 0.05. docs/theta.md explains the test. Exit code 1 if it could not be made, or if
the log is damaged or a clock of it is known to be wrong.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// Leave out this much at the start and at the end
    #[arg(long, value_name = "SPAN", value_parser = super::input::not_negative)]
    trim: Option<Span>,
    /// Runs with the delays of each link drawn again
    #[arg(long, value_name = "COUNT", default_value_t = 199, value_parser = clap::value_parser!(u32).range(19..=100_000))]
    redraws: u32,
    /// The seed of shifts, resamples and redrawn runs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the pairs of delays here too, as CSV
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
}

/// What the test found, and the pairs that it rests on.
#[derive(serde::Serialize)]
pub(super) struct TestedRun {
    pub(super) correlation: Correlation,
    pairs: Vec<SwitchPair>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let log = open(&args.log)?;
    let range = range(&args.log, &log, args.trim)?;
    let messages_max = CorrelationOptions::MESSAGES_MAX;
    let options = CorrelationOptions { redraws: args.redraws, seed: args.seed, range, messages_max };
    let tested = tested(&log, &options).map_err(|error| failure(&args.log, &error))?;
    if let Some(file) = &args.pairs {
        write_pairs(&tested.pairs, file)?;
    }
    global.answer(&tested.correlation, || render(&tested.correlation))?;
    match (tested.correlation.verdict, tested.correlation.reason) {
        (CorrelationVerdict::NotTested, Some(reason)) => Err(Failure::from(format!("not tested: {reason}"))),
        _ => whole(&args.log, &log),
    }
}

/// Tests a run and shows how far it is.
pub(super) fn tested(
    log: &LogReader,
    options: &CorrelationOptions,
) -> Result<TestedRun, ffclock_theta::analysis::AnalysisError> {
    let mut progress = Progress::new();
    let (correlation, pairs) = correlate(log, options, &mut |number| {
        progress.show(|| format!("{number} of {} redrawn runs", options.redraws))
    })?;
    Ok(TestedRun { correlation, pairs })
}

fn write_pairs(pairs: &[SwitchPair], file: &Path) -> Result<(), Failure> {
    let mut text = String::from("at_ps,relevant_ps,longest_ps\n");
    for SwitchPair { at_ps, relevant_ps, longest_ps } in pairs {
        let _ = writeln!(text, "{at_ps},{relevant_ps},{longest_ps}");
    }
    std::fs::write(file, text).map_err(|error| Failure::from(format!("{}: {error}", file.display())))
}

fn render(found: &Correlation) -> String {
    let words = match found.verdict {
        CorrelationVerdict::Shown => "shown",
        CorrelationVerdict::NotShown => "not shown",
        CorrelationVerdict::NotTested => "not tested",
    };
    let mut text = format!("correlation of tau_r- and tau+: {words}\n");
    let _ = writeln!(text, "  pairs     {} first switches with something in transit", found.pairs);
    if let (Some(rho), Some((low, high))) = (found.rho, found.interval) {
        let _ =
            writeln!(text, "  rho       {rho:.3} (95 %: {low:.3} to {high:.3}, blocks of {} switches)", found.block);
    }
    let mut null = |name: &str, found: Option<AgainstNull>, of: &str| {
        if let Some(AgainstNull { median, p }) = found {
            let _ = writeln!(text, "  {name:<9} {median:.3} in the median of {of}, p = {p:.3}");
        }
    };
    null("shifted", found.shifted, "circular shifts");
    let redrawn = format!("{} runs with the delays of each link drawn again", found.redraws);
    null("redrawn", found.redrawn, &redrawn);
    if let Some(g_r) = found.g_r {
        let _ = writeln!(text, "  g_r       {g_r:.3}");
    }
    if let Some(AgainstNull { median, p }) = found.g_r_redrawn {
        let _ = writeln!(text, "            {median:.3} in the median of the redrawn runs, p = {p:.3}");
    }
    text
}
