//! `ffclock theta analyse`.

use super::table;
use crate::replay::progress::Progress;
use crate::{Failure, Global, output};
use ffclock_theta::analysis::{Options, Range, Report, Stamping, Wanted, Watcher, analyse, trimmed};
use ffclock_theta::log::LogReader;
use ffclock_units::Span;
use std::path::{Path, PathBuf};

/// Options of `ffclock theta analyse`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock theta analyse run-1
  $ ffclock theta analyse run-1 --trim '1 s' --theta
  $ ffclock theta analyse run-1 --json | jq '.first.omega.ratio.value, .first.g_r'

DIR is a log as docs/theta-log.md describes it. Exit code 1 if the log is damaged, contradicts itself or breaks the rules of the algorithm: the
results are printed all the same, and marked as partial.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// Where a switch is put in time, against the broadcast of its new round
    #[arg(long, value_name = "WHERE", default_value = "after")]
    stamp: Stamp,
    /// Leave out so much at the start and at the end
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    trim: Option<Span>,
    /// Work out Theta too, the largest ratio of the largest to the smallest delay in transit; slower
    #[arg(long)]
    theta: bool,
    /// Work out the histograms too, and put them into the JSON; slower
    #[arg(long)]
    histograms: bool,
    /// Width of the bins of delays
    #[arg(long, value_name = "SPAN", default_value = "1 us", value_parser = not_negative)]
    bin: Span,
    /// About how many messages make a block, of which the largest Omega is taken
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    block_messages: u64,
    /// How many rounds are held at most while messages of older ones are outstanding
    #[arg(long, value_name = "N", default_value_t = 1 << 17)]
    window_rounds: u64,
}

/// Where a switch is put in time.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Stamp {
    /// The messages just being sent are not yet in transit, as in the paper's histograms
    Before,
    /// They are, as the theorem needs
    After,
}

fn not_negative(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error: ffclock_units::ParseError| error.to_string())?;
    if span.is_negative() { Err("must not be negative".to_owned()) } else { Ok(span) }
}

fn picoseconds(span: Span) -> u64 {
    (span.as_seconds() * 1e12).round() as u64
}

pub(super) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let log = open(&args.log)?;
    let range = match args.trim {
        Some(trim) => trimmed(&log, picoseconds(trim)).map_err(|error| failure(&args.log, &error))?,
        None => Range::ALL,
    };
    let tally =
        analyse(&log, options(args, range), &mut Shown(Progress::new())).map_err(|error| failure(&args.log, &error))?;
    let report = Report::new(log.run(), &tally, log.damage());
    if global.json {
        output::json(&report)?;
    } else {
        output::write(&table::render(&report))?;
    }
    verdict(&report)
}

fn open(path: &Path) -> Result<LogReader, Failure> {
    LogReader::open(path).map_err(|error| Failure::from(error.to_string()))
}

fn failure(log: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::from(format!("{}: {error}", log.display()))
}

fn options(args: &Args, range: Range) -> Options {
    let wanted = |wanted| if wanted { Wanted::Yes } else { Wanted::No };
    Options {
        stamping: if args.stamp == Stamp::Before { Stamping::BeforeBroadcast } else { Stamping::AfterBroadcast },
        theta: wanted(args.theta),
        delays: wanted(args.histograms),
        delay_bin_ps: picoseconds(args.bin),
        block_messages: args.block_messages,
        window_rounds: args.window_rounds,
        range,
    }
}

fn verdict(report: &Report) -> Result<(), Failure> {
    if !report.whole {
        return Err(Failure::from("the results are partial: see the remarks"));
    }
    if !report.conformance.kept {
        return Err(Failure::from("the run breaks the rules of the algorithm: see its conformance"));
    }
    Ok(())
}

/// Shows how many events have been read.
struct Shown(Progress);

impl Watcher for Shown {
    fn events(&mut self, more: u64) {
        self.0.advance_by(more);
    }
}
