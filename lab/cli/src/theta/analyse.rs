//! `ffclock-lab theta analyse`.

use super::input::{StampingChoice, failure, not_negative, open, picoseconds, range};
use super::results::{Results, XiReport};
use super::{correlate, table};
use crate::progress::RowProgress;
use crate::{Failure, GlobalOptions};
use ffclock_theta::abc::{SpaceTime, xi};
use ffclock_theta::analysis::{DelayMode, Options, PairMode, ReadWatcher, ThetaMode, ThetaReport, TimeRange, analyse};
use ffclock_theta::certified::{CertifyOptions, certify};
use ffclock_theta::correlation::CorrelationOptions;
use ffclock_theta::log::{LogReader, WayInColumns, read_round_trips};
use ffclock_theta::round_trip::{Compared, RoundTripReport, compare};
use ffclock_units::Span;
use std::path::{Path, PathBuf};

/// Options of `ffclock-lab theta analyse`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta analyse run-1
  $ ffclock-lab theta analyse run-1 --trim '1 s' --theta --certify
  $ ffclock-lab theta analyse run-1 --json | jq '.first.omega.ratio.value, .first.g_r'

DIR is a log as docs/theta-log.md describes it. Exit code 1 if the log is damaged, contradicts itself or breaks the rules of the algorithm: the
results are printed nevertheless, and marked as partial.")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "DIR")]
    log: PathBuf,
    /// Place a switch before or after the broadcast of its new round
    #[arg(long, value_name = "WHERE", default_value = "after")]
    stamp: StampingChoice,
    /// Leave out this much at the start and at the end, also for --certify and the comparison with round trips; not
    /// together with --xi
    #[arg(long, value_name = "SPAN", value_parser = not_negative)]
    trim: Option<Span>,
    /// Compute Theta too, the largest ratio of the largest to the smallest delay in transit; slower
    #[arg(long)]
    theta: bool,
    /// Compute bounds on Omega, g_r and, with --theta, on Theta that hold if every clock kept its bound; needs the
    /// messages in memory
    #[arg(long)]
    certify: bool,
    /// Use the true times instead of those of the clocks; only simulated logs have them
    #[arg(long)]
    truth: bool,
    /// Compute Xi* too, which needs no clock, with a cycle that has it; needs the events in memory
    #[arg(long)]
    xi: bool,
    /// Compute the histograms too, and put them into the JSON; slower
    #[arg(long)]
    histograms: bool,
    /// Width of the bins of delays
    #[arg(long, value_name = "SPAN", default_value = "1 us", value_parser = not_negative)]
    bin: Span,
    /// Size of a block in messages, approximately; the largest Omega of each block is kept
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    block_messages: u64,
    /// Largest number of rounds held while messages of older ones are outstanding
    #[arg(long, value_name = "N", default_value_t = 1 << 17)]
    window_rounds: u64,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    if args.xi && args.trim.is_some() {
        return Err(Failure::usage(
            "--xi and --trim do not go together: Xi* uses the order of events alone, and where clocks cut a run, chains of messages break; \
             run analyse once for each",
        ));
    }
    let log = open(&args.log)?;
    let log = if args.truth { log.by_truth().map_err(|error| failure(&args.log, &error))? } else { log };
    let range = range(&args.log, &log, args.trim)?;
    let tally = analyse(&log, options(args, range), &mut ReadProgress(RowProgress::new()))
        .map_err(|error| failure(&args.log, &error))?;
    let mut results = Results {
        report: ThetaReport::new(log.run(), &tally, log.damage()),
        by_truth: args.truth,
        certified: None,
        round_trips: round_trips(args, &log, range)?,
        xi: args.xi.then(|| xi_of(&log)).transpose().map_err(|error| failure(&args.log, &*error))?,
        correlation: None,
    };
    let lie = match args.certify.then(|| certify(&log, &certify_options(args, range))).transpose() {
        Ok(certified) => {
            results.certified = certified;
            None
        }
        // The other results are still worth showing.
        Err(error) => {
            results.report.whole = false;
            results.report.remarks.push(error.to_string());
            Some(failure(&args.log, &error))
        }
    };
    global.answer(&results, || table::render(&results))?;
    lie.map_or_else(|| verdict(&results.report), Err)
}

/// The redrawn runs of a report have about this many messages together: some ten seconds.
const REDRAWN_MESSAGES: u64 = 20_000_000;
/// The fewest redrawn runs that can show anything at the level of the test, and the most that a report takes.
const REDRAWS: (u32, u32) = (19, 199);
/// The fewest redrawn runs of a run with more messages would take more than a minute: a report does not test it.
const TESTED_MESSAGES_MAX: u64 = 5_000_000;

/// The data of the figures.
pub(super) fn for_figures(path: &Path) -> Result<Results, Failure> {
    figures(path, TESTED_MESSAGES_MAX)
}

fn figures(path: &Path, messages_max: u64) -> Result<Results, Failure> {
    let log = open(path)?;
    let options = Options { theta: ThetaMode::Compute, delays: DelayMode::Histograms, ..Options::default() };
    let tally = analyse(&log, options, &mut ReadProgress(RowProgress::new())).map_err(|error| failure(path, &error))?;
    let report = ThetaReport::new(log.run(), &tally, log.damage());
    let affordable = REDRAWN_MESSAGES / tally.counts.messages.max(1);
    let redraws = affordable.clamp(u64::from(REDRAWS.0), u64::from(REDRAWS.1)) as u32;
    let options = CorrelationOptions { redraws, seed: 1, range: TimeRange::ALL, messages_max };
    let correlation = Some(correlate::tested(&log, &options).map_err(|error| failure(path, &error))?);
    Ok(Results { report, by_truth: false, certified: None, round_trips: None, xi: None, correlation })
}

fn xi_of(log: &LogReader) -> Result<XiReport, Box<dyn std::error::Error>> {
    let mut builder = SpaceTime::builder(log.run());
    log.each_event::<Box<dyn std::error::Error>>(WayInColumns::Skip, Box::from, |event| Ok(builder.take(event)?))?;
    let graph = builder.build()?;
    let witness = xi(&graph);
    let starts = witness.iter().flat_map(|witness| &witness.hops).map(|hop| hop.from());
    let steps = starts.filter_map(|step| Some((step, graph.step(step)?))).collect();
    Ok(XiReport { witness, steps })
}

/// The results by averaged round trips, if the run measured any.
fn round_trips(args: &Args, log: &LogReader, range: TimeRange) -> Result<Option<RoundTripReport>, Failure> {
    let trips = read_round_trips(&args.log).map_err(|error| failure(&args.log, &error))?;
    let compared = Compared { stamping: args.stamp.into(), range };
    let report = trips.map(|trips| compare(log, &trips, compared)).transpose();
    report.map_err(|error| failure(&args.log, &error))
}

fn certify_options(args: &Args, range: TimeRange) -> CertifyOptions {
    let theta = if args.theta { ThetaMode::Compute } else { ThetaMode::Omit };
    CertifyOptions { stamping: args.stamp.into(), theta, range, ..CertifyOptions::default() }
}

fn options(args: &Args, range: TimeRange) -> Options {
    Options {
        stamping: args.stamp.into(),
        theta: if args.theta { ThetaMode::Compute } else { ThetaMode::Omit },
        delays: if args.histograms { DelayMode::Histograms } else { DelayMode::Extremes },
        delay_bin_ps: picoseconds(args.bin),
        block_messages: args.block_messages,
        window_rounds: args.window_rounds,
        pairs: PairMode::Omit,
        range,
    }
}

pub(super) fn verdict(report: &ThetaReport) -> Result<(), Failure> {
    if !report.whole {
        return Err(Failure::from("the results are partial: see the remarks"));
    }
    if !report.conformance.kept {
        return Err(Failure::from("the run breaks the rules of the algorithm: see its conformance"));
    }
    Ok(())
}

/// Shows how many events have been read.
struct ReadProgress(RowProgress);

impl ReadWatcher for ReadProgress {
    fn events(&mut self, more: u64) {
        self.0.advance_by(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theta::tests::simulated;

    #[test]
    fn a_report_of_a_long_run_says_why_it_does_not_test() {
        let log = simulated("long", |_| ());
        let reason = |messages_max| figures(&log.0, messages_max).unwrap().correlation.unwrap().correlation.reason;
        assert_eq!(reason(200 * 16), None);
        let why = reason(200 * 16 - 1).unwrap();
        assert!(why.contains("3200 messages") && why.contains("theta correlate --trim"), "{why}");
    }
}
