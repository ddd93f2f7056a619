//! `ffclock-lab owd`: one-way delays between hosts that have pages.

mod reflect;
mod report;
mod send;
mod table;

pub(crate) use reflect::is_asked_to_end;

use crate::GlobalOptions;
use crate::failure::Failure;
use ffclock_owd::OwdError;

/// Options of `ffclock-lab owd`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab owd reflect                                (on another host)
  $ ffclock-lab owd send 192.0.2.7 --record delays.parquet
  $ ffclock-lab owd report delays.parquet --output out

Both hosts run ffclockd. docs/owd.md explains the protocol, the bounds and the columns.")]
pub(crate) struct Args {
    #[command(subcommand)]
    part: OwdCommand,
}

/// The parts of the instrument.
#[derive(clap::Subcommand)]
enum OwdCommand {
    /// Send test packets to a reflector and measure the delay of each direction
    Send(send::Args),
    /// Answer test packets with the times at which they came and left
    Reflect(reflect::Args),
    /// Show the figures of a record, and draw it
    Report(report::Args),
}

/// Runs a part.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.part {
        OwdCommand::Send(args) => send::run(global, args),
        OwdCommand::Reflect(args) => reflect::run(global, args),
        OwdCommand::Report(args) => report::run(global, args),
    }
}

/// How a measurement fails.
fn failure(error: OwdError) -> Failure {
    match error {
        OwdError::Unsynchronised { .. } => Failure::unsynchronised(error.to_string()),
        error => Failure::from(error.to_string()),
    }
}
