//! `ffclock-lab owd report`: figures and pictures of a record.

use super::table;
use crate::drawing::{self, Drawing};
use crate::failure::Failure;
use crate::{GlobalOptions, output};
use ffclock_owd::record::{self, OwdRecord};
use ffclock_owd::sender::StrayCounts;
use ffclock_owd::summary::{HeatMap, OwdSummary};
use ffclock_owd::truth::{self, TruthFigures};
use ffclock_units::{Direction, Period};
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab owd report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab owd report delays.parquet
  $ ffclock-lab owd report delays.parquet --output out        (out/owd.png, out/owd.html)
  $ ffclock-lab owd report delays.csv --truth passages.csv    (both ends read the same counter)
  $ ffclock-lab owd report delays.parquet --json | jq .figures.forward.delay_ns.median

Pictures need the Python package ffclock with numpy and matplotlib: pip install 'ffclock[analysis]'.")]
pub(super) struct Args {
    /// A record of `owd send --record`
    #[arg(value_name = "FILE")]
    record: PathBuf,
    /// What `owd reflect --passages` wrote on the same host: the error of every delay is shown as well
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Draw owd.png and owd.html into this directory
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// The interpreter that has the package
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

/// Shows, and draws.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let path = args.record.display();
    let record = record::read(&args.record).map_err(|error| format!("{path} {error}"))?;
    let mut summary = OwdSummary::default();
    record.rows.iter().for_each(|row| summary.add(row));
    let figures = summary.figures();
    let truth = args.truth.as_ref().map(|path| compare(&record, path)).transpose()?;
    let heat = |way| HeatMap::of(&record.rows, way);
    let answer = json!({
        "about": record.about, "figures": figures, "truth": truth,
        "heat": { "forward": heat(Direction::Outgoing), "backward": heat(Direction::Incoming) },
    });
    if let Some(directory) = &args.output {
        let drawing = Drawing { module: "ffclock.owd_report", python: &args.python, output: directory };
        drawing::draw(&drawing, &format!("One-way delays: {path}"), &output::to_json(&answer)?)?;
    }
    global.answer(&answer, || {
        let truth = truth.as_ref().map(table::truth).unwrap_or_default();
        table::page(&record.about, &figures) + &truth
    })?;
    if truth.is_some_and(|truth| truth.outside > 0) {
        return Err("the bound of a delay did not hold its true value".into());
    }
    // What else came is not recorded.
    table::verdict(&figures, &StrayCounts::default())
}

fn compare(record: &OwdRecord, path: &Path) -> Result<TruthFigures, Failure> {
    let named = |error: std::io::Error| Failure::from(format!("{}: {error}", path.display()));
    let session = record.about["session"].as_u64().and_then(|session| u16::try_from(session).ok());
    let session = session.ok_or("the record does not name its session")?;
    let period = record.about["counter_hz"].as_f64().and_then(Period::from_hertz);
    let period = period.ok_or("the record does not say how fast its counter runs")?;
    let file = File::open(path).map_err(named)?;
    let passages = truth::read_passages(BufReader::new(file), session).map_err(named)?;
    Ok(truth::compare(&record.rows, &passages, period))
}
