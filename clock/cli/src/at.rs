//! `ffclock at`: the time of stamps that were taken earlier.

use crate::failure::Failure;
use crate::now::{self, TimeForm};
use crate::stamp::StampText;
use crate::{Global, page};

/// Options of `ffclock at`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ stamp=$(ffclock stamp); run-the-experiment; ffclock at $stamp
  2026-11-22T18:21:28.459568768Z  +- 2.323 us  synchronised (standard uncertainty 148.3131 ns, noise 57.9748 ns)
  $ ffclock at --json 77546726195886@1 | jq .utc_ns
  $ ffclock at --format unix $(cat stamps.txt)

A stamp is COUNTER@EPOCH, as `ffclock stamp` prints it. One of the last day is converted by the lines
of the clock around it, and so as well as a fresh one; an older one by the newest line, with a bound
that has grown since. The true time lies within the bound (after +-) as `ffclock now --help` says.")]
pub(crate) struct Args {
    #[command(flatten)]
    form: TimeForm,
    /// Stamps, as `ffclock stamp` printed them
    #[arg(value_name = "STAMP", required = true)]
    stamps: Vec<StampText>,
}

/// Prints the time of each stamp.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let clock = page::open(global)?;
    args.stamps.iter().try_for_each(|stamp| now::print(global, &args.form, &page::read_at(&clock, stamp.0)?))
}
