//! `ffclock theta`: message delay correlation between hosts, measured, simulated and checked.

mod check;
mod progress;
mod simulate;

use crate::{Failure, Global};

/// Options of `ffclock theta`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock theta simulate --n 4 --f 1 --rounds 1000 --seed 1 --log run-1
  $ ffclock theta check --n 4 --f 1
  $ ffclock theta check --printed --n 7 --f 2

How the delays of messages that are in transit together relate to one another (the Theta-Model), for a clock synchronisation that
tolerates f Byzantine processes among n >= 3f + 1. docs/theta-run.md describes runs and checks.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Explore what the algorithm does under every fault
    Check(check::Args),
    /// Run the algorithm in virtual time, with the truth known
    Simulate(simulate::Args),
}

pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Check(args) => check::run(global, args),
        Command::Simulate(args) => simulate::run(global, args),
    }
}

/// n and f, as the command line has them.
#[derive(clap::Args, Clone, Copy)]
struct Sizes {
    /// Processes
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    n: u32,
    /// Byzantine processes tolerated: n must be at least 3f + 1
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    f: u32,
}
