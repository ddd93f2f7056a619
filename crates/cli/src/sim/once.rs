//! `ffclock sim run`.

use super::{open, table, verdict};
use crate::ablation::Ablation;
use crate::{Failure, Global, output};
use ffclock_estimator::LearnedConfig;
use ffclock_sim::{Run, RunResult};
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
    #[command(flatten)]
    ablation: Ablation,
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let learned = args.ablation.learned()?;
    let life = Life { run, learned: &learned };
    let result = match &args.trace {
        Some(path) => life.traced(path).map_err(|error| Failure::from(format!("{}: {error}", path.display())))?,
        None => life.run.execute_learned(life.learned, None),
    };
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

/// A run, and the learned estimator in it.
struct Life<'a> {
    run: Run<'a>,
    learned: &'a LearnedConfig,
}

impl Life<'_> {
    fn traced(&self, path: &Path) -> io::Result<RunResult> {
        let header = self.run.trace_header();
        if path.extension().is_some_and(|extension| extension == "csv") {
            let mut writer = CsvWriter::new(BufWriter::new(File::create_new(path)?), &header)?;
            let result = self.keep(|row| writer.append(row))?;
            writer.flush()?;
            Ok(result)
        } else {
            let mut recorder = Recorder::create(path, &header)?;
            let result = self.keep(|row| recorder.append(row))?;
            recorder.sync()?;
            Ok(result)
        }
    }

    fn keep(&self, append: impl FnMut(&TraceRow) -> io::Result<()>) -> io::Result<RunResult> {
        let mut keeping = Keeping { append, outcome: Ok(()) };
        let result = self.run.execute_learned(self.learned, Some(&mut |row: &TraceRow| keeping.take(row)));
        keeping.outcome.map(|()| result)
    }
}
