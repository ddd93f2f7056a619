//! `ffclock sim run`.

use super::series::Series;
use super::trace_file::TraceFile;
use super::{open, table, verdict};
use crate::ablation::Ablation;
use crate::replay::is_same_file;
use crate::{Failure, Global, output};
use ffclock_sim::{CLOCKS, Cast, ORACLES, Run, Sample, Sinks};
use ffclock_trace::TraceRow;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in `.toml`
    name: String,
    /// Where all chance comes from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what the clocks saw, with the truth, for `ffclock replay`: CSV if the name ends in `.csv`, otherwise our own format,
    /// which alone keeps every bit
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write what each clock showed, and its error, at every reading as CSV, for `ffclock report`
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Run the oracles as well, which know the laws of the world: how well a clock could do. Takes some ten times as long
    #[arg(long)]
    oracle: bool,
    #[command(flatten)]
    ablation: Ablation,
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let learned = args.ablation.learned()?;
    let oracles = ORACLES.into_iter().filter(|_| args.oracle);
    let clocks: Vec<&str> = CLOCKS.into_iter().chain(oracles).collect();
    let cast = Cast { clocks: &clocks, learned: &learned };
    let (mut trace, mut series) = files(args, &run)?;
    let mut rows = |row: &TraceRow| trace.iter_mut().for_each(|trace| trace.take(row));
    let mut samples = |sample: &Sample| series.iter_mut().for_each(|series| series.take(sample));
    let result = run.execute_as(&cast, Sinks { rows: Some(&mut rows), samples: Some(&mut samples) });
    trace.map_or(Ok(()), TraceFile::finish)?;
    series.map_or(Ok(()), Series::finish)?;
    if global.json {
        output::json(&result)?;
    } else {
        output::write(&table::render(&named.scenario.about, &result))?;
    }
    verdict(&[result])
}

/// The files that the run leaves. The trace comes first: it is never overwritten, and what refuses it must not have emptied the series.
fn files(args: &Args, run: &Run) -> Result<(Option<TraceFile>, Option<Series>), Failure> {
    let trace = args.trace.as_deref().map(|path| TraceFile::create(path, run)).transpose()?;
    match open_series(args, run) {
        Ok(series) => Ok((trace, series)),
        Err(failure) => {
            trace.into_iter().for_each(TraceFile::discard);
            Err(failure)
        }
    }
}

fn open_series(args: &Args, run: &Run) -> Result<Option<Series>, Failure> {
    let (Some(path), trace) = (args.series.as_deref(), args.trace.as_deref()) else { return Ok(None) };
    if trace.is_some_and(|trace| is_same_file(trace, path)) {
        return Err(Failure::usage("--trace and --series name the same file"));
    }
    Series::create(path, run, trace).map(Some)
}
