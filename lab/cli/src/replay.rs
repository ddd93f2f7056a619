//! `ffclock-lab replay`: runs the estimator over a recorded trace, and says how good its clock was where the trace knows the truth.
//!
//! The estimator is fed as the daemon feeds it, so the same trace gives the same estimates. Two clocks are judged at each reply, both
//! as a reader of the page would have seen them: the one published right after the exchange (`error`), and the one published before
//! it, run on to the same reading (`error_before`), which is the honest figure for whoever asks at an arbitrary moment.
//! Error is clock minus truth: positive when our clock is ahead. Memory does not grow with the trace.

mod distribution;
mod exchanges;
mod frequency;
pub(crate) mod progress;
mod report;
mod retrospect;
mod rows;
mod selection;
mod stamps;
mod table;
mod track;

use crate::ablation::Ablation;
use crate::failure::Failure;
use crate::{Global, output};
use exchanges::Exchanges;
use ffclock_estimator::{Chosen, Configs, Estimator};
use ffclock_trace::{TraceError, TraceReader, TraceRow};
use ffclock_units::{Period, Span};
use frequency::{Nominal, NominalSource};
use progress::Progress;
use report::Report;
use retrospect::{Hindsight, Retrospect};
use rows::{Columns, Rows};
use selection::Selection;
use stamps::Stamps;
use std::path::{Path, PathBuf};
use std::time::Instant;
use track::{Steps, Track};

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
    /// Ticks per second of the counter, where the trace does not tell or is wrong
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    counter_frequency: Option<Period>,
    /// Begin the statistics so long after the first exchange, instead of at the end of the warm-up; a bare number is seconds
    #[arg(long, value_name = "SPAN", value_parser = beginning)]
    from: Option<Span>,
    /// Write the clock after each exchange as CSV, in place of what is in FILE
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write each exchange as CSV, in place of what is in FILE: round trip, floor, offset and, where known, the true delays
    #[arg(long, value_name = "FILE")]
    exchanges: Option<PathBuf>,
    /// Replay this server, by the name in the trace or its number from 0, instead of the first
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Count rows that cannot be read and go on, instead of stopping
    #[arg(long)]
    keep_going: bool,
    /// The algorithm
    #[arg(long, value_name = "NAME", default_value = "learned")]
    estimator: Algorithm,
    /// Set an option of the algorithm, such as `offset_window=512 s`
    #[arg(long, value_name = "OPTION=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    ablation: Ablation,
    /// Work out the clock in retrospect too, from the past and the future of each exchange
    #[arg(long)]
    smooth: bool,
    /// Convert the stamps in this file, one a line as `ffclock stamp` prints them, by the clock in retrospect, instead of the report
    #[arg(long, value_name = "FILE", requires = "smooth")]
    stamps: Option<PathBuf>,
}

/// The algorithms that can be replayed.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    /// The algorithm of the RADclock papers
    Classic,
    /// One-sided evidence, two directions and a bank of oscillators
    Learned,
}

impl From<Algorithm> for ffclock_estimator::Algorithm {
    fn from(named: Algorithm) -> Self {
        match named {
            Algorithm::Classic => ffclock_estimator::Algorithm::Classic,
            Algorithm::Learned => ffclock_estimator::Algorithm::Learned,
        }
    }
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

/// Replays the trace and prints the report.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let configs = configs(args)?;
    // A replay may take minutes, and overwrites what it writes: whatever is wrong with the stamps is told before.
    let stamps = args.stamps.as_deref().map(Stamps::read).transpose()?;
    let begun = Instant::now();
    let reader = if args.file == Path::new("-") {
        TraceReader::from_reader(Box::new(std::io::stdin()))
    } else {
        TraceReader::open(&args.file)
    };
    let reader = reader.map_err(|error| with_file(&args.file, &error))?;
    let (report, hindsight) = Replay::new(args, reader, configs)?.run(begun)?;
    match (stamps, hindsight) {
        (Some(stamps), Some(hindsight)) => stamps.convert(&hindsight, global),
        _ if global.json => output::json(&report),
        _ => output::write(&table::render(&report)),
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

/// How many rows the counter's frequency is judged by.
const FREQUENCY_ROWS: usize = 100;

/// One replay under way.
struct Replay<'a> {
    args: &'a Args,
    reader: TraceReader,
    configs: Configs,
    selection: Selection,
    output: Option<Rows>,
    exchanges: Option<Exchanges>,
    retrospect: Option<Retrospect>,
    progress: Progress,
    trouble: Trouble,
}

/// What went wrong on the way and did not stop the replay.
#[derive(Default)]
struct Trouble {
    bad_rows: u64,
    told: Vec<String>,
}

/// How much of it is told.
const TOLD_MAX: usize = 5;

impl Trouble {
    fn note(&mut self, error: &TraceError) {
        self.bad_rows += u64::from(error.is_one_row());
        if self.told.len() < TOLD_MAX || !error.is_one_row() {
            self.told.push(error.to_string());
        }
    }
}

impl<'a> Replay<'a> {
    fn new(args: &'a Args, reader: TraceReader, configs: Configs) -> Result<Self, Failure> {
        check_files(args)?;
        let columns = if args.smooth { Columns::Smoothed } else { Columns::Causal };
        let output = args.output.as_deref().map(|path| Rows::create(path, columns)).transpose()?;
        let exchanges = args.exchanges.as_deref().map(Exchanges::create).transpose()?;
        let selection = Selection::new(args.server.clone());
        let (progress, trouble) = (Progress::new(), Trouble::default());
        Ok(Replay { args, reader, configs, selection, output, exchanges, retrospect: None, progress, trouble })
    }

    /// The next row of the chosen server; `None` at the end.
    fn next_row(&mut self) -> Result<Option<TraceRow>, Failure> {
        loop {
            match self.reader.next() {
                None => return Ok(None),
                Some(Ok(row)) => {
                    self.progress.advance();
                    if self.selection.takes(&self.reader, row.server) {
                        return Ok(Some(row));
                    }
                }
                Some(Err(error)) if self.args.keep_going => self.trouble.note(&error),
                Some(Err(error)) => return Err(with_file(&self.args.file, &error)),
            }
        }
    }

    /// Feeds one row to the track, and what came of it to the output, unless that waits for the end.
    fn feed(&mut self, track: &mut Track, row: &TraceRow) -> Result<(), Failure> {
        let step = track.feed(row);
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.write(row, track, step.as_ref())?;
        }
        let floor = track.floor().unwrap_or_default();
        if let Some(retrospect) = &mut self.retrospect {
            retrospect.feed(row, step, floor);
            return Ok(());
        }
        let (Some(output), Some(step)) = (&mut self.output, step) else { return Ok(()) };
        output.write(&step, floor)
    }

    fn run(mut self, begun: Instant) -> Result<(Report, Option<Hindsight>), Failure> {
        let first = self.first_rows()?;
        let nominal = self.nominal(&first)?;
        if self.args.smooth {
            self.retrospect = Some(Retrospect::new(self.configs.clone(), nominal.period));
        }
        let mut track = self.track(&nominal);
        for row in first {
            self.feed(&mut track, &row)?;
        }
        while let Some(row) = self.next_row()? {
            self.feed(&mut track, &row)?;
        }
        let hindsight = self.look_back()?;
        if let Some(output) = self.output.take() {
            output.finish()?;
        }
        if let Some(exchanges) = self.exchanges.take() {
            exchanges.finish()?;
        }
        let rows_per_second = self.progress.rows() as f64 / begun.elapsed().as_secs_f64();
        let run = report::Run { nominal, bad_rows: self.trouble.bad_rows, told: self.trouble.told, rows_per_second };
        let smooth = hindsight.as_ref().map(Hindsight::report);
        Ok((report::make(&self.reader, &self.selection, &track, (run, smooth)), hindsight))
    }

    fn track(&self, nominal: &Nominal) -> Track {
        let estimator = estimator(self.args, &self.configs, nominal);
        let all = self.output.is_some() || self.exchanges.is_some() || self.args.smooth;
        Track::new(estimator, self.args.from, if all { Steps::All } else { Steps::None })
    }

    /// Works out the clock in retrospect where that is wanted, and writes the rows that waited for it.
    fn look_back(&mut self) -> Result<Option<Hindsight>, Failure> {
        let Some(retrospect) = self.retrospect.take() else { return Ok(None) };
        let hindsight = retrospect.finish(&mut |done, all| self.progress.show_share(done, all));
        if let Some(output) = &mut self.output {
            hindsight.steps.iter().try_for_each(|settled| output.write_settled(settled))?;
        }
        Ok(Some(hindsight))
    }

    /// What must be read before the estimator can begin: nothing where the counter's frequency is known, the first row to know whether
    /// there is one.
    fn first_rows(&mut self) -> Result<Vec<TraceRow>, Failure> {
        let known = self.args.counter_frequency.or(self.reader.header().nominal).is_some();
        let wanted = if known { 1 } else { FREQUENCY_ROWS };
        let mut rows = Vec::new();
        while rows.len() < wanted {
            match self.next_row()? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        if rows.is_empty() {
            return Err(with_reason(self.args, &self.selection.explain(&self.reader)));
        }
        Ok(rows)
    }

    fn nominal(&self, first: &[TraceRow]) -> Result<Nominal, Failure> {
        if let Some(period) = self.args.counter_frequency {
            return Ok(Nominal { period, source: NominalSource::Given });
        }
        if let Some(period) = self.reader.header().nominal {
            return Ok(Nominal { period, source: NominalSource::Trace });
        }
        let period = frequency::estimate(first).ok_or_else(|| {
            with_reason(self.args, "its first rows do not tell the frequency of the counter; give --counter-frequency")
        })?;
        Ok(Nominal { period, source: NominalSource::Estimated })
    }
}

/// The estimator that is asked for.
fn estimator(args: &Args, configs: &Configs, nominal: &Nominal) -> Box<dyn Estimator> {
    match Chosen::new(args.estimator.into(), configs.clone(), nominal.period, None) {
        Chosen::Classic(classic) => classic,
        Chosen::Learned(learned) => learned,
    }
}

fn with_reason(args: &Args, reason: &str) -> Failure {
    Failure::from(format!("{}: {reason}", args.file.display()))
}

#[cfg(test)]
mod tests;
