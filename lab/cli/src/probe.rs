//! `ffclock-lab probe`: where packets wait in this host.

mod advise;
mod answer;
mod calibrate;
mod echo;
mod methods;
mod network;
mod own;
mod probe_effect;
mod run;
mod show;
mod table;
mod watch;
mod wire;

use crate::GlobalOptions;
use crate::failure::Failure;

/// Options of `ffclock-lab probe`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab probe run --netns --packets 2000
  $ ffclock-lab probe echo                      (on another host)
  $ ffclock-lab probe run --to 192.0.2.7 --record probe.parquet
  $ ffclock-lab probe show probe.parquet
  $ ffclock-lab probe advise --from probe.parquet

docs/probe.md explains the locations, the signs and the tables.")]
pub(crate) struct Args {
    #[command(subcommand)]
    part: ProbeCommand,
}

/// The parts of the instrument.
#[derive(clap::Subcommand)]
enum ProbeCommand {
    /// Send test packets to an echo server and stamp them at every location of this host
    Run(run::Args),
    /// Show the tables of a record
    Show(show::Args),
    /// Say in plain words where to stamp on this host
    Advise(advise::Args),
    /// Watch the real traffic of a running UDP service
    Watch(watch::Args),
    /// Measure this host's own delays, for ffclockd to take them off its stamps
    Calibrate(calibrate::Args),
    /// Send test packets back
    Echo(echo::Args),
}

/// Runs a part.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.part {
        ProbeCommand::Run(args) => run::run(global, args),
        ProbeCommand::Show(args) => show::run(global, args),
        ProbeCommand::Advise(args) => advise::run(global, args),
        ProbeCommand::Watch(args) => watch::run(global, args),
        ProbeCommand::Calibrate(args) => calibrate::run(global, args),
        ProbeCommand::Echo(args) => echo::run(global, args),
    }
}
