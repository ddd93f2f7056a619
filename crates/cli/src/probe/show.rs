//! `ffclock probe show`: the tables of a record.

use super::answer::Told;
use crate::Global;
use crate::failure::Failure;
use std::path::PathBuf;

/// Options of `ffclock probe show`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock probe run --netns --record probe.parquet
  $ ffclock probe show probe.parquet
  $ ffclock probe show probe.parquet --json | jq '.phases[0].findings.asymmetries'
  $ ffclock probe show freebsd.txt                 (what packaging/freebsd/probe.d printed)

A record without its end, or one whose parts contradict one another, is refused.")]
pub(super) struct Args {
    /// What `ffclock probe run --record` wrote, or what the DTrace script for FreeBSD printed
    #[arg(value_name = "RECORD")]
    record: PathBuf,
}

/// Shows.
pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    Told::recorded(&args.record)?.print(global)
}
