//! The laboratory: a reference server with a known truth, and hosts made of network namespaces.

mod ask;
pub(crate) mod link;
mod server;
mod traffic;
pub(crate) mod truth;
pub(crate) mod worker;

use crate::{Failure, GlobalOptions};

/// Arguments of `ffclock-lab lab`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: LabCommand,
}

#[derive(clap::Subcommand)]
enum LabCommand {
    /// Serve NTP with a time that is a known function of this machine's raw counter.
    Server(server::Args),
    /// Ask servers again and again, and judge each reply by this machine's system clock.
    Ask(ask::AskArgs),
    /// Send packets as fast as the link takes them.
    Flood(traffic::FloodArgs),
    /// Capture every packet.
    Capture(traffic::CaptureArgs),
}

/// Runs a part of the laboratory.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    if global.json {
        return Err(Failure::usage("the parts of the laboratory have no answer in JSON: leave --json out"));
    }
    match &args.part {
        LabCommand::Server(args) => server::run(args),
        LabCommand::Ask(args) => ask::run(args),
        LabCommand::Flood(args) => traffic::flood(args),
        LabCommand::Capture(args) => traffic::capture(args),
    }
}
