//! The `ffclock-lab` command: one file or directory for each subcommand, each thin over the crates that do the work.
//!
//! What one does with a clock is `ffclock`; this measures, simulates and draws. Exit codes are those of `ffclock`: 0
//! done, 1 failed, 2 wrong usage, 3 not synchronised.
#![forbid(unsafe_code)]

mod ablation;
mod algorithm;
mod columns;
mod counters;
mod csv_file;
mod demo;
mod drawing;
mod exporter;
mod files;
mod generate;
mod lab;
mod live;
mod owd;
mod probe;
mod progress;
mod replay;
mod report;
mod sim;
mod theta;

use clap::{Parser, Subcommand};
// The laboratory answers in the same manner as `ffclock`.
use ffclock_cli::{FOR_ALL, Failure, failure, output, std_duration, text, waiting_time};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure, simulate and prove feed-forward clocks
///
/// Replays recorded traces, runs clocks in simulated worlds, characterises the counters of this machine and the delays
/// of its packets, and demonstrates the clock against a server with a known time. `ffclock` reads the clock itself.
#[derive(Parser)]
#[command(
    name = "ffclock-lab",
    version,
    max_term_width = 100,
    after_help = "Example:
  $ ffclock-lab sim run lan-16

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the clock is not synchronised, or was not in time."
)]
pub(crate) struct LabCli<C: Subcommand> {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(subcommand)]
    command: C,
}

/// What every subcommand understands.
#[derive(clap::Args)]
pub(crate) struct GlobalOptions {
    /// The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long, global = true, help_heading = FOR_ALL)]
    pub(crate) json: bool,
}

impl GlobalOptions {
    /// Prints an answer: `value` as JSON, or the text for people.
    pub(crate) fn answer(&self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.json { output::json(value) } else { output::write(&text()) }
    }
}

/// Subcommands for people and subcommands for the project itself.
#[derive(Subcommand)]
enum Everything {
    #[command(flatten)]
    Public(Public),
    #[command(flatten)]
    Hidden(Hidden),
}

/// Subcommands with a man page.
#[derive(Subcommand)]
pub(crate) enum Public {
    /// Run the estimator over a recorded trace
    Replay(replay::Args),
    /// Draw a page that shows how well a clock did
    Report(report::Args),
    /// Run clocks in simulated worlds, with the truth known
    Sim(sim::Args),
    /// List and characterise the counters of this machine
    Counters(counters::Args),
    /// Measure where packets wait in this host, and what that does to a clock
    Probe(probe::Args),
    /// Measure one-way delays between hosts, each with a bound
    Owd(owd::Args),
    /// Measure how message delays between hosts correlate: the Theta-Model
    Theta(theta::Args),
    /// Compare running daemons side by side, each with a clock of its own
    Live(live::Args),
    /// Synchronise to servers with a known time and show how well, in minutes
    Demo(demo::Args),
}

/// Tools that build and test the project.
#[derive(Subcommand)]
enum Hidden {
    /// Write man pages, completions and the configuration reference
    #[command(hide = true)]
    Generate(generate::Args),
    /// Parts of the laboratory
    #[command(hide = true)]
    Lab(lab::Args),
}

fn main() -> ExitCode {
    let cli = LabCli::<Everything>::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end("ffclock-lab"),
    }
}

fn run(cli: &LabCli<Everything>) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Everything::Public(command) => match command {
            Public::Replay(args) => replay::run(global, args),
            Public::Report(args) => report::run(global, args),
            Public::Sim(args) => sim::run(global, args),
            Public::Counters(args) => counters::run(global, args),
            Public::Probe(args) => probe::run(global, args),
            Public::Owd(args) => owd::run(global, args),
            Public::Theta(args) => theta::run(global, args),
            Public::Live(args) => live::run(global, args),
            Public::Demo(args) => demo::run(global, args),
        },
        Everything::Hidden(Hidden::Generate(args)) => generate::run(global, args),
        Everything::Hidden(Hidden::Lab(args)) => lab::run(global, args),
    }
}
