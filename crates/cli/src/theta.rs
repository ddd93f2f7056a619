//! `ffclock theta`: message delay correlation between hosts.
//!
//! The work is done in `ffclock_theta`; here are the ways in and out, one file each.

mod analyse;
mod import;
mod report;
mod table;
#[cfg(test)]
mod tests;

use crate::{Failure, Global};

/// Options of `ffclock theta`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock theta analyse run-1 --trim '1 s'
  $ ffclock theta report run-1 --output out

docs/theta.md tells what is measured, docs/theta-log.md the format of a log.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say how the delays in a log hang together: Omega, Theta and what they are made of
    Analyse(analyse::Args),
    /// Draw a log: histograms of delays and ratios on a page
    Report(report::Args),
    /// Make a log from a capture of another system's requests
    Import(import::Args),
}

pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Analyse(args) => analyse::run(global, args),
        Command::Report(args) => report::run(global, args),
        Command::Import(args) => import::run(global, args),
    }
}
