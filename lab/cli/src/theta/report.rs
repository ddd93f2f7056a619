//! `ffclock-lab theta report`.

use super::analyse::{self, Results};
use crate::{Failure, GlobalOptions, output};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Options of `ffclock-lab theta report`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab theta report run-1 --output out
  out/theta.png
  out/theta.html

Needs the Python package ffclock with numpy and matplotlib: pip install 'ffclock[analysis]'.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// Where to put theta.png and theta.html
    #[arg(long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// The interpreter that has the package
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

pub(super) fn run(_: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let results: Results = analyse::for_figures(&args.log)?;
    let json = output::to_json(&results)?;
    let failed = |error: std::io::Error| format!("cannot run {}: {error}", args.python.display());
    let mut python = Command::new(&args.python)
        .args(["-m", "ffclock.theta_report", "-", "--title"])
        .arg(format!("Message delay correlation: {}", args.log.display()))
        .arg("--output")
        .arg(&args.output)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // It may end before it has read everything; then its own message and exit code say why.
    let written = python.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(json.as_bytes()));
    let ended = python.wait().map_err(failed)?;
    if !ended.success() {
        return Err(Failure::from(
            "the report was not drawn; it needs the Python package: pip install 'ffclock[analysis]'",
        ));
    }
    written.map_err(|error| Failure::from(failed(error)))?;
    analyse::verdict(&results.report)
}
