//! `ffclock sim run`.

use super::series::Series;
use super::{open, table, verdict};
use crate::{Failure, Global, output};
use ffclock_sim::{CLOCKS, ORACLES, Run, Sample, Sinks};
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
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let mut outputs = Outputs::open(args, &run)?;
    let oracles = ORACLES.into_iter().filter(|_| args.oracle);
    let clocks: Vec<&str> = CLOCKS.into_iter().chain(oracles).collect();
    let Outputs { trace, series } = &mut outputs;
    let mut rows = |row: &TraceRow| trace.iter_mut().for_each(|trace| trace.take(row));
    let mut samples = |sample: &Sample| series.iter_mut().for_each(|series| series.take(sample));
    let result = run.execute_into(&clocks, Sinks { rows: Some(&mut rows), samples: Some(&mut samples) });
    outputs.finish()?;
    if global.json {
        output::json(&result)?;
    } else {
        output::write(&table::render(&named.scenario.about, &result))?;
    }
    verdict(&[result])
}

/// What a run leaves in files.
struct Outputs {
    trace: Option<TraceFile>,
    series: Option<Series>,
}

impl Outputs {
    fn open(args: &Args, run: &Run) -> Result<Self, Failure> {
        let trace = args.trace.as_deref();
        Ok(Outputs {
            trace: trace.map(|path| TraceFile::create(path, run)).transpose()?,
            series: args.series.as_deref().map(|path| Series::create(path, run, trace)).transpose()?,
        })
    }

    fn finish(self) -> Result<(), Failure> {
        self.trace.map_or(Ok(()), TraceFile::finish)?;
        self.series.map_or(Ok(()), Series::finish)
    }
}

/// The format of a trace, by its name.
enum Writer {
    Csv(CsvWriter<BufWriter<File>>),
    Native(Recorder),
}

/// A trace under way, which keeps the first error for the end.
struct TraceFile {
    path: PathBuf,
    writer: Writer,
    outcome: io::Result<()>,
}

impl TraceFile {
    /// A file that is there already is left alone.
    fn create(path: &Path, run: &Run) -> Result<Self, Failure> {
        let header = run.trace_header();
        let writer = if path.extension().is_some_and(|extension| extension == "csv") {
            let file = File::create_new(path);
            file.and_then(|file| CsvWriter::new(BufWriter::new(file), &header)).map(Writer::Csv)
        } else {
            Recorder::create(path, &header).map(Writer::Native)
        };
        let writer = writer.map_err(|error| complaint(path, &error))?;
        Ok(TraceFile { path: path.to_owned(), writer, outcome: Ok(()) })
    }

    fn take(&mut self, row: &TraceRow) {
        if self.outcome.is_ok() {
            self.outcome = match &mut self.writer {
                Writer::Csv(writer) => writer.append(row),
                Writer::Native(recorder) => recorder.append(row),
            };
        }
    }

    fn finish(self) -> Result<(), Failure> {
        let written = match self.writer {
            Writer::Csv(mut writer) => writer.flush(),
            Writer::Native(mut recorder) => recorder.sync(),
        };
        self.outcome.and(written).map_err(|error| complaint(&self.path, &error))
    }
}

fn complaint(path: &Path, error: &io::Error) -> Failure {
    Failure::from(format!("{}: {error}", path.display()))
}
