//! `ffclock-lab probe show`: the tables of a record.

use super::answer::ProbeAnswer;
use super::table;
use crate::GlobalOptions;
use crate::failure::Failure;
use ffclock_probe::record::{ProbeRecord, ProbeWriter, RecordError, read};
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab probe show`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe run --netns --record probe.parquet
  $ ffclock-lab probe show probe.parquet
  $ ffclock-lab probe show probe.parquet --json | jq '.phases[0].findings.asymmetries'
  $ ffclock-lab probe show freebsd.txt --record freebsd.parquet    (what packaging/freebsd/probe.d printed)

A record without its end, or one whose parts contradict one another, is refused.")]
pub(super) struct Args {
    /// What `ffclock-lab probe run --record` wrote, or what the DTrace script for FreeBSD printed
    #[arg(value_name = "RECORD")]
    source: PathBuf,
    /// Write it again into another file: Parquet if its name ends so, JSON lines otherwise
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

/// Prints the tables of the record.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let record = read(&args.source).map_err(|error| format!("{} {error}", args.source.display()))?;
    if let Some(path) = &args.record {
        write(path, &record).map_err(|error| format!("the record {} cannot be written: it {error}", path.display()))?;
    }
    table::print(&ProbeAnswer::of(record), global)
}

fn write(path: &Path, record: &ProbeRecord) -> Result<(), RecordError> {
    let mut writer = ProbeWriter::create(path, &record.about)?;
    record.effect.iter().try_for_each(|effect| writer.effect(effect))?;
    record.phases.iter().try_for_each(|phase| writer.again(phase))?;
    writer.finish()
}
