//! `ffclock-lab replay`: runs the estimator over a recorded trace, and shows how good its clock was where the trace
//! knows the truth.
//!
//! The replay itself and its figures are in `ffclock_replay`; this file reads the options and writes the results.

mod exchanges;
mod rows;
mod stamps;
mod table;

use crate::ablation::Ablation;
use crate::failure::Failure;
use crate::progress::RowProgress;
use crate::{GlobalOptions, algorithm};
use exchanges::Exchanges;
use ffclock_estimator::{Algorithm, Configs};
use ffclock_replay::{
    Detail, Hindsight, ReplayError, ReplayObserver, ReplayPlan, ReplayStep, ReplayTrack, Replayed, Report, SettledStep,
};
use ffclock_trace::{TraceError, TraceReader, TraceRow};
use ffclock_units::{Period, Span};
use rows::{ReplayColumns, RowWriter};
use serde::Serialize;
use stamps::StampFile;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Options of `ffclock-lab replay`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab replay site.trace
  $ ffclock-lab replay --json lab.csv.zst | jq '.error.iqr, .containment'
  $ ffclock-lab replay --smooth --output clock.csv lab.trace
  $ ffclock-lab replay --smooth --stamps stamps.txt lab.trace
  $ ffclock-lab replay --output clock.csv --from '1 h' --set 'offset_window=512 s' lab.csv

FILE is a recording of ffclockd, CSV with a header (Ta, Tb, Te, Tf and optional columns), RADclock stamps, ntpd rawstats or chrony
measurements, plain or compressed with gzip or zstd; docs/trace.md describes them. Errors are clock minus true time, in seconds.")]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    file: PathBuf,
    /// Ticks per second of the counter, where the trace does not state it or is wrong; a remembered rate in the trace
    /// does not count then
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    counter_frequency: Option<Period>,
    /// Begin the statistics this long after the first exchange, instead of at the end of the warm-up; a bare number is
    /// seconds
    #[arg(long, value_name = "SPAN", value_parser = beginning)]
    from: Option<Span>,
    /// Write the clock after each exchange as CSV, in place of what is in FILE
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each exchange as CSV, in place of what is in FILE: round trip, floor, offset and, where known, the true
    /// delays
    #[arg(long, value_name = "FILE")]
    exchanges: Option<PathBuf>,
    /// Replay this server, by the name in the trace or its number from 0, instead of the first
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Count rows that cannot be read and go on, instead of stopping
    #[arg(long)]
    keep_going: bool,
    /// The algorithm
    #[arg(long, value_name = "NAME", default_value = "learned", value_parser = algorithm::named())]
    estimator: Algorithm,
    /// Set an option of the algorithm, such as `offset_window=512 s`
    #[arg(long, value_name = "OPTION=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    ablation: Ablation,
    /// Work out the clock in retrospect too, from the past and the future of each exchange
    #[arg(long)]
    smooth: bool,
    /// Convert the stamps in this file, one a line as `ffclock stamp` prints them, by the clock in retrospect, instead
    /// of the report
    #[arg(long, value_name = "FILE", requires = "smooth")]
    stamps: Option<PathBuf>,
}

fn hertz(text: &str) -> Result<Period, String> {
    let hertz: f64 = text.parse().map_err(|_| "must be a number of ticks per second, between 1 and 2^60".to_owned())?;
    Period::from_hertz(hertz).ok_or_else(|| "must lie between 1 Hz and 2^60 Hz".to_owned())
}

/// A span with its unit, or seconds.
fn beginning(text: &str) -> Result<Span, String> {
    let seconds = ffclock_trace::decimal::seconds(text.as_bytes());
    seconds.or_else(|_| text.parse()).map_err(|error: ffclock_units::ParseError| error.to_string())
}

/// A replay as `--json` prints it.
#[derive(Debug, Serialize)]
struct ReplayAnswer {
    #[serde(flatten)]
    report: Report,
    /// Rows of the trace read and replayed in a second of this run.
    exchanges_per_s: f64,
    /// What a reader should know about the trace.
    notes: Vec<String>,
}

/// Replays the trace and prints the report.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let configs = configs(args)?;
    // A replay may take minutes, and overwrites what it writes: stamps that cannot be read are refused first.
    let stamps = args.stamps.as_deref().map(StampFile::read).transpose()?;
    let reader = if args.file == Path::new("-") {
        TraceReader::from_reader(Box::new(std::io::stdin()))
    } else {
        TraceReader::open(&args.file)
    };
    let reader = reader.map_err(|error| with_file(&args.file, &error))?;
    let (answer, hindsight) = replay(args, configs, reader)?;
    match (stamps, hindsight) {
        (Some(stamps), Some(hindsight)) => stamps.convert(&hindsight, global)?,
        _ => global.answer(&answer, || table::render(&answer))?,
    }
    if answer.report.exchanges.used == 0 {
        return Err(Failure::from("no exchange of the trace could be used, so there is no clock"));
    }
    Ok(())
}

fn replay(args: &Args, configs: Configs, reader: TraceReader) -> Result<(ReplayAnswer, Option<Hindsight>), Failure> {
    let begun = Instant::now();
    let mut outputs = Outputs::create(args)?;
    let replayed = plan(args, configs).run(reader, &mut outputs);
    let Replayed { report, notes, hindsight } = replayed.map_err(|error| failure(args, error))?;
    let rows = outputs.finish()?;
    let exchanges_per_s = rows as f64 / begun.elapsed().as_secs_f64();
    Ok((ReplayAnswer { report, exchanges_per_s, notes }, hindsight))
}

fn plan(args: &Args, configs: Configs) -> ReplayPlan {
    let shows_every = args.output.is_some() || args.exchanges.is_some();
    ReplayPlan {
        algorithm: args.estimator,
        configs,
        server: args.server.clone(),
        nominal: args.counter_frequency,
        from: args.from,
        detail: if shows_every { Detail::EveryExchange } else { Detail::ReportOnly },
        in_retrospect: args.smooth,
        skips_bad_rows: args.keep_going,
    }
}

/// Nothing that is read may be written to.
fn check_files(args: &Args) -> Result<(), Failure> {
    let file = if args.file == Path::new("-") { Path::new("/dev/stdin") } else { &args.file };
    crate::files::check(
        &[("trace", Some(file)), ("stamps", args.stamps.as_deref())],
        &[("--output", args.output.as_deref()), ("--exchanges", args.exchanges.as_deref())],
    )
}

fn configs(args: &Args) -> Result<Configs, Failure> {
    let mut configs = Configs { learned: args.ablation.learned()?, ..Configs::default() };
    for setting in &args.set {
        let pair =
            setting.split_once('=').ok_or_else(|| Failure::usage(format!("--set {setting}: must be OPTION=VALUE")))?;
        let outcome = configs.set(pair.0.trim(), pair.1.trim());
        outcome.map_err(|error| Failure::usage(format!("--set {setting}: {error}")))?;
    }
    Ok(configs)
}

fn with_file(file: &Path, error: &TraceError) -> Failure {
    match error {
        TraceError::Open { .. } => Failure::from(error.to_string()),
        _ => Failure::from(format!("{}: {error}", file.display())),
    }
}

fn failure(args: &Args, error: ReplayError<Failure>) -> Failure {
    let reason = match error {
        ReplayError::Trace(error) => return with_file(&args.file, &error),
        ReplayError::Observer(failure) => return failure,
        ReplayError::NoRows(reason) => reason,
        ReplayError::UnknownFrequency => {
            "its first rows do not show the frequency of the counter; give --counter-frequency".to_owned()
        }
    };
    Failure::from(format!("{}: {reason}", args.file.display()))
}

/// The files that a replay writes, and its progress line.
struct Outputs {
    rows: Option<RowWriter>,
    exchanges: Option<Exchanges>,
    progress: RowProgress,
}

impl Outputs {
    fn create(args: &Args) -> Result<Self, Failure> {
        check_files(args)?;
        let columns = if args.smooth { ReplayColumns::Smoothed } else { ReplayColumns::Causal };
        Ok(Outputs {
            rows: args.output.as_deref().map(|path| RowWriter::create(path, columns)).transpose()?,
            exchanges: args.exchanges.as_deref().map(Exchanges::create).transpose()?,
            progress: RowProgress::new(),
        })
    }

    /// Hands the last rows to the system; returns the number of rows that were read.
    fn finish(self) -> Result<u64, Failure> {
        self.rows.map_or(Ok(()), RowWriter::finish)?;
        self.exchanges.map_or(Ok(()), Exchanges::finish)?;
        Ok(self.progress.rows())
    }
}

impl ReplayObserver for Outputs {
    type Error = Failure;

    fn row_read(&mut self) {
        self.progress.advance();
    }

    fn fed(&mut self, row: &TraceRow, track: &ReplayTrack, step: Option<&ReplayStep>) -> Result<(), Failure> {
        self.exchanges.as_mut().map_or(Ok(()), |exchanges| exchanges.write(row, track, step))
    }

    fn settled(&mut self, step: &SettledStep) -> Result<(), Failure> {
        self.rows.as_mut().map_or(Ok(()), |rows| rows.write(step))
    }

    fn looking_back(&mut self, done: usize, all: usize) {
        self.progress.show_share(done, all);
    }
}

#[cfg(test)]
mod tests;
