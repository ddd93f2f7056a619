//! `ffclock-lab counters show`: the tables of a recording.

use super::{clock, latency, record, stability};
use crate::failure::Failure;
use crate::{GlobalOptions, output, text};
use std::path::PathBuf;

/// Options of `ffclock-lab counters show`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab counters latency --for '1 min' --record latency.jsonl
  $ ffclock-lab counters show latency.jsonl
  $ ffclock-lab counters show latency.jsonl --json

A recording without its end is refused: the measurement was killed, or the copy is incomplete.")]
pub(super) struct Args {
    /// What a measurement recorded
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,
}

/// Prints the tables of the recording.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let recorded = record::open(&args.recording)?;
    if global.json {
        return recorded.records.iter().try_for_each(output::json);
    }
    let failed = |error| Failure::from(format!("{} {error}", args.recording.display()));
    let page = match recorded.instrument.as_str() {
        "latency" => latency::LatencyRun::of(&recorded).map_err(failed)?.page(),
        "clock" => clock::ClockRun::of(&recorded).map_err(failed)?.page(),
        "stability" => stability::StabilityRun::of(&recorded).map_err(failed)?.page(),
        "probe" => {
            return Err(format!(
                "{0} is a recording of ffclock-lab probe: `ffclock-lab probe show {0}` prints it",
                args.recording.display()
            )
            .into());
        }
        other => {
            return Err(format!("{}: nothing is known of the instrument {other:?}", args.recording.display()).into());
        }
    };
    output::write(&page)?;
    match record::why_broken(&recorded).map_err(failed)? {
        Some(reason) => output::line(&format!("\nended before its time: {}", text::printable(&reason))),
        None => Ok(()),
    }
}
