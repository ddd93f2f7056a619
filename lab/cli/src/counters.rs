//! `ffclock-lab counters`: which counters there are, how long a reading takes, how steadily they run, and how good a
//! clock each of them makes.

mod campaign;
mod clock;
pub(crate) mod conditions;
mod latency;
mod list;
mod record;
mod show;
mod stability;
pub(crate) mod stress;
mod watch;

use crate::GlobalOptions;
use crate::failure::Failure;

/// Options of `ffclock-lab counters`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab counters
  $ ffclock-lab counters latency --for '30 s' --record latency.jsonl
  $ ffclock-lab counters stability --for '10 min' --stress cpu,network --phase '2 min'
  $ ffclock-lab counters watch --json

Without a subcommand, lists what this machine has and which counter ffclock would use. The recordings
are described in docs/counters.md; `make figures-counters` draws them beside the papers' figures.")]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Option<CountersCommand>,
}

/// The instruments, a subcommand each.
#[derive(clap::Subcommand)]
enum CountersCommand {
    /// Measure how long it takes to read each counter, in each way there is
    Latency(latency::Args),
    /// Measure how steadily the counters run, against one another and a reference
    Stability(stability::Args),
    /// Compare the clocks made from each counter and each kind of packet stamp, on the same packets
    Clock(clock::Args),
    /// Watch for counters that jump, stall, run backwards or lose the kernel's trust
    Watch(watch::Args),
    /// Show a recording again
    Show(show::Args),
}

/// Runs an instrument.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.part {
        None => list::run(global),
        Some(CountersCommand::Latency(args)) => latency::run(global, args),
        Some(CountersCommand::Stability(args)) => stability::run(global, args),
        Some(CountersCommand::Clock(args)) => clock::run(global, args),
        Some(CountersCommand::Watch(args)) => watch::run(global, args),
        Some(CountersCommand::Show(args)) => show::run(global, args),
    }
}
