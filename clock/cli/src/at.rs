//! `ffclock at`: the time of stamps that were taken earlier.

use crate::failure::Failure;
use crate::now::{self, TimeForm};
use crate::stamp::StampText;
use crate::{Global, output, page};
use serde::Serialize;

/// Options of `ffclock at`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ stamp=$(ffclock stamp); run-the-experiment; ffclock at $stamp
  2026-11-22T18:21:28.459568768Z  +- 2.323 us  synchronised (standard uncertainty 148.3131 ns, noise 57.9748 ns)
  $ ffclock at --json 77546726195886@2893105772 | jq .utc_ns
  $ ffclock at --format unix $(cat stamps.txt)

A stamp is COUNTER@EPOCH, as `ffclock stamp` prints it. One of the last day is converted by the lines
of the clock around it, and so as well as a fresh one; an older one by the newest line, with a bound
that has grown since. The true time lies within the bound (after +-) as `ffclock now --help` says.

A stamp that is refused is named on standard error, and the others are converted. Exit code: 0 when
all were; 1 when one was refused; else 3 when one is from after the page's date, so unsynchronised.")]
pub(crate) struct Args {
    #[command(flatten)]
    form: TimeForm,
    /// Stamps, as `ffclock stamp` printed them
    #[arg(value_name = "STAMP", required = true)]
    stamps: Vec<StampText>,
}

/// What `--json` shows of a stamp that has no time, in its place.
#[derive(Serialize)]
struct RefusedStamp<'a> {
    stamp: String,
    error: &'a str,
}

/// Prints the time of each stamp.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let clock = page::open(global)?;
    let mut codes = Vec::new();
    for stamp in &args.stamps {
        let converted = page::read_at(&clock, stamp.0);
        if let Ok(time) = &converted {
            now::show(global, &args.form, time)?;
        }
        let Err(failure) = converted.as_ref().map_err(Failure::clone).and_then(|time| page::judge(time.reading.status))
        else {
            continue;
        };
        if converted.is_err() && global.json {
            output::json(&RefusedStamp { stamp: stamp.to_string(), error: &failure.message })?;
        }
        output::complain(&format!("ffclock: {stamp}: {failure}"));
        codes.push(failure.code);
    }
    // That one was refused is worse than that one is not to be relied on.
    codes.into_iter().min().map_or(Ok(()), |code| Err(Failure::silent(code)))
}
