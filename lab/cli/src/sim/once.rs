//! `ffclock-lab sim run`.

use super::series::Series;
use super::trace_file::TraceFile;
use super::{open, table, verdict};
use crate::ablation::Ablation;
use crate::files;
use crate::{Failure, GlobalOptions};
use ffclock_sim::{Cast, ORACLES, Run, ShownReading, Sinks, clocks_in};
use ffclock_trace::TraceRow;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim run lan-16 --seed 3 --oracle
  $ ffclock-lab sim run my-world.toml --series world.csv && ffclock-lab report world.csv -o world.html
  $ ffclock-lab sim run lan-16 --trace lan.trace && ffclock-lab replay lan.trace
  $ ffclock-lab sim run lan-16x3 --json | jq '.clocks[] | select(.name == \"joint\").beliefs'
  $ ffclock-lab sim run lan-16 --json | jq '.clocks[] | select(.name == \"learned\").windows[0].iqr'

Exit code 1 if a check of the scenario does not hold. docs/sim.md explains the figures.")]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in `.toml`
    name: String,
    /// The seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write what the clocks saw, with the truth, for `ffclock-lab replay`: CSV if the name ends in `.csv`, otherwise
    /// our own format, which alone keeps every bit. FILE must not be there yet
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write what each clock showed, and its error, at every reading as CSV, for `ffclock-lab report`, in place of what
    /// is in FILE
    #[arg(long, value_name = "FILE")]
    series: Option<PathBuf>,
    /// Run the oracles as well: they know the laws of the world, and show how well any clock could do. Takes about ten
    /// times as long. For worlds of one server
    #[arg(long)]
    oracle: bool,
    #[command(flatten)]
    ablation: Ablation,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let learned = args.ablation.learned()?;
    let has_signals = named.scenario.ptp.is_some() || named.scenario.pulses.is_some();
    if args.oracle && (has_signals || !named.scenario.servers.is_empty()) {
        return Err(Failure::usage("--oracle: the oracles know worlds of one server only"));
    }
    let oracles = ORACLES.into_iter().filter(|_| args.oracle);
    let clocks: Vec<&str> = clocks_in(&named.scenario).into_iter().chain(oracles).collect();
    let cast = Cast { clocks: &clocks, learned: &learned };
    let (mut trace, mut series) = make_files(args, &run)?;
    let mut rows = |row: &TraceRow| trace.iter_mut().for_each(|trace| trace.take(row));
    let mut samples = |sample: &ShownReading| series.iter_mut().for_each(|series| series.take(sample));
    let result = run.execute_as(&cast, Sinks { rows: Some(&mut rows), samples: Some(&mut samples) });
    trace.map_or(Ok(()), TraceFile::finish)?;
    series.map_or(Ok(()), Series::finish)?;
    global.answer(&result, || table::render(&named.scenario.about, &result))?;
    verdict(&[result])
}

/// The files that the run leaves. The trace comes first: it is never overwritten, and what refuses it must not have
/// emptied the series.
fn make_files(args: &Args, run: &Run) -> Result<(Option<TraceFile>, Option<Series>), Failure> {
    let scenario = super::is_file(&args.name).then_some(Path::new(&args.name));
    let (trace, series) = (args.trace.as_deref(), args.series.as_deref());
    files::check(&[("scenario", scenario)], &[("--trace", trace), ("--series", series)])?;
    let trace = args.trace.as_deref().map(|path| TraceFile::create(path, run)).transpose()?;
    match args.series.as_deref().map(|path| Series::create(path, run, args.trace.as_deref())).transpose() {
        Ok(series) => Ok((trace, series)),
        Err(failure) => {
            trace.into_iter().for_each(TraceFile::discard);
            Err(failure)
        }
    }
}
