//! `ffclock sim run`.

use super::{open, table, verdict};
use crate::{Failure, Global, output};
use ffclock_sim::{CLOCKS, ORACLES, RowSink, Run, RunResult};
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
    /// Run the oracles as well, which know the laws of the world: how well a clock could do. Takes some ten times as long
    #[arg(long)]
    oracle: bool,
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let result = match &args.trace {
        Some(path) => {
            traced(&run, args, path).map_err(|error| Failure::from(format!("{}: {error}", path.display())))?
        }
        None => lived(&run, args, None),
    };
    if global.json {
        output::json(&result)?;
    } else {
        output::write(&table::render(&named.scenario.about, &result))?;
    }
    verdict(&[result])
}

fn lived<'a>(run: &'a Run, args: &Args, sink: Option<RowSink<'a>>) -> RunResult {
    let oracles = ORACLES.into_iter().filter(|_| args.oracle);
    let clocks: Vec<&str> = CLOCKS.into_iter().chain(oracles).collect();
    run.execute_with(&clocks, sink)
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

fn traced(run: &Run, args: &Args, path: &Path) -> io::Result<RunResult> {
    if path.extension().is_some_and(|extension| extension == "csv") {
        let mut writer = CsvWriter::new(BufWriter::new(File::create_new(path)?), &run.trace_header())?;
        let result = keep((run, args), |row| writer.append(row))?;
        writer.flush()?;
        Ok(result)
    } else {
        let mut recorder = Recorder::create(path, &run.trace_header())?;
        let result = keep((run, args), |row| recorder.append(row))?;
        recorder.sync()?;
        Ok(result)
    }
}

fn keep((run, args): (&Run, &Args), append: impl FnMut(&TraceRow) -> io::Result<()>) -> io::Result<RunResult> {
    let mut keeping = Keeping { append, outcome: Ok(()) };
    let result = lived(run, args, Some(&mut |row: &TraceRow| keeping.take(row)));
    keeping.outcome.map(|()| result)
}
