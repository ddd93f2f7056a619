//! `ffclock-lab theta report`.

use super::analyse;
use super::results::Results;
use crate::drawing::{self, Drawing};
use crate::{Failure, GlobalOptions, output};
use std::path::PathBuf;

/// Options of `ffclock-lab theta report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta report run-1 --output out
  out/theta.png
  out/theta.html
  $ ffclock-lab theta report run-1 --output out --json
  {\"written\":[\"out/theta.png\",\"out/theta.html\"]}
  $ ffclock-lab theta analyse run-1 --json        (the same figures, for programs)

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

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let results: Results = analyse::for_figures(&args.log)?;
    let drawing = Drawing { module: "ffclock.theta_report", python: &args.python, output: &args.output };
    let title = format!("Message delay correlation: {}", args.log.display());
    let files = drawing::draw(&drawing, &title, &output::to_json(&results)?)?;
    let written: Vec<&str> = files.lines().collect();
    global.answer(&serde_json::json!({ "written": written }), || files.clone())?;
    analyse::verdict(&results.report)
}
