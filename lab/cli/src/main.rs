//! The `ffclock` command: one file for each subcommand, each thin over the crates that do the work.
//!
//! Times are read from the page that `ffclockd` publishes, so reading needs no daemon to answer; the state of servers is asked
//! from the daemon's control socket. Exit codes are part of the interface: 0 done, 1 failed, 2 wrong usage, 3 not synchronised.
#![forbid(unsafe_code)]

mod ablation;
mod algorithm;
mod control;
mod counters;
mod csv_file;
mod demo;
mod elapsed;
mod failure;
mod files;
mod generate;
mod lab;
mod now;
mod output;
mod page;
mod probe;
mod reload;
mod replay;
mod report;
mod sim;
mod sources;
mod stamp;
mod status;
mod text;
mod theta;
mod wait;
mod watch;

use clap::{Parser, Subcommand};
pub(crate) use failure::Failure;
use ffclock_units::Span;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read and watch the feed-forward clock of this host
///
/// Reads the time that ffclockd publishes, with a bound on its error, measures intervals with the difference clock, and shows how
/// the daemon and its servers are doing.
#[derive(Parser)]
#[command(
    name = "ffclock",
    version,
    max_term_width = 100,
    after_help = "Example:
  $ ffclock now
  2026-11-21T09:30:00.123456789Z  +- 812.4 us  synchronised (standard uncertainty 14.2 us)

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the clock is not synchronised, or was not in time."
)]
pub(crate) struct Cli<C: Subcommand> {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: C,
}

/// Where the help lists the options that every subcommand has.
const FOR_ALL: &str = "Options of every subcommand";

/// What every subcommand understands.
#[derive(clap::Args)]
pub(crate) struct Global {
    /// The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
    /// The control socket of ffclockd [default: `control` beside the page]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long, global = true, help_heading = FOR_ALL)]
    pub(crate) json: bool,
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
    /// Tell the time with its bound
    Now(now::Args),
    /// Take a raw stamp, to be converted later
    Stamp(stamp::Args),
    /// Measure how long a command takes, or the time between two stamps
    Elapsed(elapsed::Args),
    /// Show the state of the daemon and its clock
    Status(status::Args),
    /// Show the servers and how each is doing
    Sources(sources::Args),
    /// Watch the clock live
    Watch(watch::Args),
    /// Wait until the clock is synchronised
    Wait(wait::Args),
    /// Have the daemon read its configuration again
    Reload(reload::Args),
    /// List and characterise the counters of this machine
    Counters(counters::Args),
    /// Run the estimator over a recorded trace
    Replay(replay::Args),
    /// Draw a page that shows how well a clock did
    Report(report::Args),
    /// Run clocks in simulated worlds, with the truth known
    Sim(sim::Args),
    /// Measure where packets wait in this host, and what that does to a clock
    Probe(probe::Args),
    /// Measure how message delays between hosts hang together: the Theta-Model
    Theta(theta::Args),
    /// Synchronise to a server with a known time and show how well, in two minutes
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
    let cli = Cli::<Everything>::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("ffclock: {failure}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(cli: &Cli<Everything>) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.command {
        Everything::Public(command) => match command {
            Public::Now(args) => now::run(global, args),
            Public::Stamp(args) => stamp::run(global, args),
            Public::Elapsed(args) => elapsed::run(global, args),
            Public::Status(args) => status::run(global, args),
            Public::Sources(args) => sources::run(global, args),
            Public::Watch(args) => watch::run(global, args),
            Public::Wait(args) => wait::run(global, args),
            Public::Reload(args) => reload::run(global, args),
            Public::Counters(args) => counters::run(global, args),
            Public::Probe(args) => probe::run(global, args),
            Public::Replay(args) => replay::run(global, args),
            Public::Report(args) => report::run(global, args),
            Public::Sim(args) => sim::run(global, args),
            Public::Theta(args) => theta::run(global, args),
            Public::Demo(args) => demo::run(global, args),
        },
        Everything::Hidden(Hidden::Generate(args)) => generate::run(global, args),
        Everything::Hidden(Hidden::Lab(args)) => lab::run(args),
    }
}

/// A time to wait for, from the command line.
pub(crate) fn waiting_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
    let longest = Span::from_secs(366 * 86_400);
    if span.is_negative() || span > longest { Err("must lie between 0 s and 366 d".to_owned()) } else { Ok(span) }
}

/// The same length of time for the standard library.
pub(crate) fn std_duration(span: Span) -> std::time::Duration {
    std::time::Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(0))
}
