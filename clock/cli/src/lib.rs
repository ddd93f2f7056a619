//! The `ffclock` command: one file for each subcommand, each thin over the crates that do the work.
//!
//! Times are read from the page that `ffclockd` publishes, so reading needs no daemon to answer; the state of servers
//! is asked from the daemon's control socket. Exit codes are part of the interface: 0 done, 1 failed, 2 wrong usage, 3
//! not synchronised.
//!
//! It is a library so that `ffclock-lab` answers in the same manner ([`output`], [`text`], [`Failure`]) and can write
//! the manual pages of both commands ([`command`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod at;
mod control;
mod doctor;
mod elapsed;
pub mod failure;
mod feed;
mod marks;
mod moved;
mod now;
pub mod output;
mod page;
mod reload;
mod serve;
mod sources;
mod stamp;
mod status;
pub mod text;
mod wait;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};
pub use control::status_at;
pub use failure::Failure;
use ffclock_units::Span;
pub use stamp::StampText;
use std::path::PathBuf;
use std::process::ExitCode;

/// Read and watch the feed-forward clock of this host
///
/// Reads the time that ffclockd publishes, with a bound on its error, converts stamps of the last day, measures
/// intervals, and shows how the daemon and its servers are doing.
#[derive(Parser)]
#[command(
    name = "ffclock",
    version,
    max_term_width = 100,
    after_help = "Example:
  $ ffclock now
  2026-11-22T18:21:28.422946096Z  +- 2.2848 us  synchronised (standard uncertainty 147.6146 ns, noise 57.2763 ns)

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 the clock is not synchronised, or was not good
enough in time."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    subcommand: Subcommands,
}

/// Where the help lists the options that every subcommand has.
pub const FOR_ALL: &str = "Options of every subcommand";

/// What every subcommand understands.
#[derive(clap::Args)]
struct Global {
    /// The page that ffclockd publishes [default: $FFCLOCK_PAGE, /run/ffclock/page or $XDG_RUNTIME_DIR/ffclock/page]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "FILE")]
    page: Option<PathBuf>,
    /// The control socket of ffclockd [default: `control` beside the page, or in the usual directories of the page]
    #[arg(long, global = true, help_heading = FOR_ALL, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Answer in JSON, one object a line
    #[arg(long, global = true, help_heading = FOR_ALL)]
    json: bool,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Show the time with its bound
    Now(now::Args),
    /// Take a raw stamp, to be converted later
    Stamp(stamp::Args),
    /// Show the time of stamps that were taken earlier
    At(at::Args),
    /// Measure how long a command takes, or the time between two stamps
    Elapsed(elapsed::Args),
    /// Show the state of the daemon and its clock
    Status(status::Args),
    /// Show the servers and how each is doing
    Sources(sources::Args),
    /// Watch the clock live
    Watch(watch::Args),
    /// Wait until the clock is synchronised, or its bound small enough
    Wait(wait::Args),
    /// Have the daemon read its configuration again
    Reload(reload::Args),
    /// Find what is wrong with the clock on this host
    Doctor(doctor::Args),
    /// Give the time to another clock daemon of this host
    Feed(feed::Args),
    /// Show the state of ffclock-serve, the NTP server
    Serve(serve::Args),
}

/// Runs the command that the arguments of this process ask for.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => match moved::answer(&error) {
            Some(failure) => return failure.end("ffclock"),
            None => error.exit(),
        },
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.end("ffclock"),
    }
}

/// The whole command line, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let global = &cli.global;
    match &cli.subcommand {
        Subcommands::Now(args) => now::run(global, args),
        Subcommands::Stamp(args) => stamp::run(global, args),
        Subcommands::At(args) => at::run(global, args),
        Subcommands::Elapsed(args) => elapsed::run(global, args),
        Subcommands::Status(args) => status::run(global, args),
        Subcommands::Sources(args) => sources::run(global, args),
        Subcommands::Watch(args) => watch::run(global, args),
        Subcommands::Wait(args) => wait::run(global, args),
        Subcommands::Reload(args) => reload::run(global, args),
        Subcommands::Doctor(args) => doctor::run(global, args),
        Subcommands::Feed(args) => feed::run(global, args),
        Subcommands::Serve(args) => serve::run(global, args),
    }
}

/// A time to wait for, from the command line.
///
/// # Errors
/// It is no span, negative, or longer than 366 days.
pub fn waiting_time(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
    let longest = Span::from_secs(366 * 86_400);
    if span.is_negative() || span > longest { Err("must lie between 0 s and 366 d".to_owned()) } else { Ok(span) }
}

/// The same length of time for the standard library.
pub fn std_duration(span: Span) -> std::time::Duration {
    std::time::Duration::from_nanos(u64::try_from(span.as_nanos()).unwrap_or(0))
}
