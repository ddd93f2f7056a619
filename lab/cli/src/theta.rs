//! `ffclock-lab theta`: message delay correlation between hosts.
//!
//! The work is done in `ffclock_theta` and `ffclock_theta_live`. Each command parses, calls and prints, in a file of
//! its own.

mod advise;
mod analyse;
mod check;
mod correlate;
mod coverage;
mod import;
mod input;
mod load;
mod rank;
mod report;
mod results;
mod run;
mod simulate;
mod table;
mod taps;
#[cfg(test)]
mod tests;
mod watch;
mod why;

use crate::{Failure, GlobalOptions};
use ffclock_theta::algorithm::Quorum;

/// Options of `ffclock-lab theta`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta simulate --n 4 --f 1 --rounds 1000 --seed 1 --log run-1
  $ ffclock-lab theta run --netns 4 --f 1 --log run-2
  $ ffclock-lab theta analyse run-1
  Omega 2.718  at round 17 of process 2 (tau+ 120 us, tau_r- 44.14 us)
  $ ffclock-lab theta correlate run-1
  $ ffclock-lab theta coverage run-1 --under run-2
  $ ffclock-lab theta why run-1 --round 17
  $ ffclock-lab theta watch messages.csv --receiver leader --sender a --sender b
  $ ffclock-lab theta check --printed --n 7 --f 2
  $ ffclock-lab theta analyse run-1 --trim '1 s'
  $ ffclock-lab theta report run-1 --output out

docs/theta.md defines what is measured. docs/theta-live.md describes live runs, docs/theta-run.md simulation and checking, docs/theta-log.md
the format of a log.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: ThetaCommand,
}

#[derive(clap::Subcommand)]
enum ThetaCommand {
    /// Analyse how the delays in a log relate to each other: Omega, Theta and their parts
    Analyse(analyse::Args),
    /// Test whether long and short delays go together
    Correlate(correlate::Args),
    /// Hold the bounds that suit a calm run against a run under load: a timeout, or a ratio of delays
    Coverage(coverage::Args),
    /// Choose when a failure detector may suspect: by a timeout, or by a number of messages
    Advise(advise::Args),
    /// Explore what the algorithm does under every fault
    Check(check::Args),
    /// Run the algorithm live, on this machine or on several
    Run(run::Args),
    /// Run one process of a live run, started by mpirun, srun or another launcher
    Rank(rank::Args),
    /// Keep network, processor or disk busy during a measurement
    Load(load::Args),
    /// Run the algorithm in virtual time, where the truth is known
    Simulate(simulate::Args),
    /// Draw histograms of the delays and ratios of a log, on one page
    Report(report::Args),
    /// Make a log from a packet capture of another system's requests, or from a list of its messages
    Import(import::Args),
    /// Watch the messages of a running system: Omega of the last minute and of the run
    Watch(watch::Args),
    /// Compare a run of several hosts with captures of their links
    Taps(taps::Args),
    /// Say why the ratio was largest: the slow message, its way and its siblings
    Why(why::Args),
}

pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.command {
        ThetaCommand::Analyse(args) => analyse::run(global, args),
        ThetaCommand::Correlate(args) => correlate::run(global, args),
        ThetaCommand::Coverage(args) => coverage::run(global, args),
        ThetaCommand::Advise(args) => advise::run(global, args),
        ThetaCommand::Check(args) => check::run(global, args),
        ThetaCommand::Run(args) => run::run(global, args),
        ThetaCommand::Rank(args) => rank::run(global, args),
        ThetaCommand::Load(args) => load::run(global, args),
        ThetaCommand::Simulate(args) => simulate::run(global, args),
        ThetaCommand::Report(args) => report::run(global, args),
        ThetaCommand::Import(args) => import::run(global, args),
        ThetaCommand::Watch(args) => watch::run(global, args),
        ThetaCommand::Taps(args) => taps::run(global, args),
        ThetaCommand::Why(args) => why::run(global, args),
    }
}

/// n and f on the command line.
#[derive(clap::Args, Clone, Copy)]
struct Sizes {
    /// Processes
    #[arg(long, value_name = "COUNT", default_value_t = 4)]
    n: u32,
    /// Byzantine processes tolerated: n must be at least 3f + 1 [default: the most that n allows]
    #[arg(long, value_name = "COUNT")]
    f: Option<u32>,
}

impl Sizes {
    fn quorum(self) -> Result<Quorum, Failure> {
        let f = self.f.unwrap_or(Quorum::most_faulty(self.n));
        Quorum::new(self.n, f).map_err(|error| Failure::usage(error.to_string()))
    }
}
