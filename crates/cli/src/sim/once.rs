//! `ffclock sim run`.

use super::series::Series;
use super::{open, table, verdict};
use crate::ablation::Ablation;
use crate::{Failure, Global, output};
use ffclock_sim::{CLOCKS, Cast, ORACLES, Run, RunResult, Sample, SampleSink, Sinks};
use ffclock_trace::{CsvWriter, Recorder, TraceRow};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

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
    let life = Life { run, cast: Cast { clocks: &clocks, learned: &learned } };
    let trace = args.trace.as_deref();
    let mut series = args.series.as_deref().map(|path| Series::create(path, &life.run, trace)).transpose()?;
    let mut note = |sample: &Sample| series.iter_mut().for_each(|series| series.take(sample));
    let samples: SampleSink = &mut note;
    let result = match &args.trace {
        Some(path) => {
            life.traced(path, samples).map_err(|error| Failure::from(format!("{}: {error}", path.display())))?
        }
        None => life.run.execute_as(&life.cast, Sinks { rows: None, samples: Some(samples) }),
    };
    series.map_or(Ok(()), Series::finish)?;
    if global.json {
        output::json(&result)?;
    } else {
        output::write(&table::render(&named.scenario.about, &result))?;
    }
    verdict(&[result])
}

/// A writer of rows that keeps the first error for the end.
struct Keeping<F> {
    append: F,
    outcome: io::Result<()>,
}

impl<F: FnMut(&TraceRow) -> io::Result<()>> Keeping<F> {
    fn take(&mut self, row: &TraceRow) {
        if self.outcome.is_ok() {
            self.outcome = (self.append)(row);
        }
    }
}

/// A run, and who takes part in it.
struct Life<'a> {
    run: Run<'a>,
    cast: Cast<'a>,
}

impl Life<'_> {
    fn traced(&self, path: &Path, samples: SampleSink) -> io::Result<RunResult> {
        let header = self.run.trace_header();
        if path.extension().is_some_and(|extension| extension == "csv") {
            let mut writer = CsvWriter::new(BufWriter::new(File::create_new(path)?), &header)?;
            let result = self.keep(samples, |row| writer.append(row))?;
            writer.flush()?;
            Ok(result)
        } else {
            let mut recorder = Recorder::create(path, &header)?;
            let result = self.keep(samples, |row| recorder.append(row))?;
            recorder.sync()?;
            Ok(result)
        }
    }

    fn keep(&self, samples: SampleSink, append: impl FnMut(&TraceRow) -> io::Result<()>) -> io::Result<RunResult> {
        let mut keeping = Keeping { append, outcome: Ok(()) };
        let mut take = |row: &TraceRow| keeping.take(row);
        let result = self.run.execute_as(&self.cast, Sinks { rows: Some(&mut take), samples: Some(samples) });
        keeping.outcome.map(|()| result)
    }
}
