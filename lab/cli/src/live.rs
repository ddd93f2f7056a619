//! The live laboratory: running daemons on this host, each with a system clock and an oscillator of its own, one
//! server, and one monitor that reads every clock from outside.
//!
//! The truth is the host's system clock, which the server serves and which no daemon can touch: each runs with the
//! interposer (`interposer.c`) between it and its C library and without the right to set clocks. The monitor knows each
//! oscillator as a function of the truth and reads each clock where it lies, in a mapped file or in ffclockd's page, so
//! it sends no packet and asks no daemon. docs/live.md has the design and its limits.

mod clock_bound;
mod clock_file;
mod contestant;
mod figures;
mod interposer;
mod monitor;
mod netem;
mod network;
mod oscillator_file;
mod path_file;
mod plan;
mod record;
mod relay;
mod router;
mod session;
#[cfg(test)]
mod uml;
mod witness;

use crate::GlobalOptions;
use crate::failure::Failure;
use clap::Subcommand;
use ffclock_cli::waiting_time;
use ffclock_units::Span;
use plan::{LivePath, LivePlan, Load, PLANS};
use record::RunRecord;
use router::RouterKind;
use serde::Serialize;
use std::path::PathBuf;
use witness::WitnessKind;

/// Arguments of `ffclock-lab live`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab live list
  $ ffclock-lab live run quiet-16 --for '5 min' --output out/live
  $ ffclock-lab live run --resume out/live
  $ ffclock-lab live report out/live

It needs the rights of root for network namespaces, and a C compiler. No clock of the host is touched.")]
pub(crate) struct Args {
    #[command(subcommand)]
    part: LiveCommand,
}

#[derive(Subcommand)]
enum LiveCommand {
    /// List the plans: what the network does, and how often the daemons ask
    #[command(after_help = "Example:
  $ ffclock-lab live list --json")]
    List,
    /// Run daemons side by side, or go on with a run that was broken off
    Run(Box<LiveRunArgs>),
    /// Compare the daemons of one run, or of several repetitions
    Report(LiveReportArgs),
}

/// Arguments of `ffclock-lab live run`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab live run quiet-16 --for '5 min' --output out/live
  $ ffclock-lab live run quiet-16 --only ffclockd-learned,chronyd-tuned --seed 7
  $ ffclock-lab live run quiet-1 --witness=guest
  $ ffclock-lab live run shift-16 --router uml --poll 1
  $ ffclock-lab live run --resume out/live")]
struct LiveRunArgs {
    /// The plan, by its name in `live list`
    #[arg(value_name = "NAME", required_unless_present = "resume", conflicts_with = "resume")]
    plan: Option<String>,
    /// How long to watch, in all sessions together
    #[arg(long = "for", value_name = "SPAN", default_value = "5 min", value_parser = waiting_time, conflicts_with = "resume")]
    length: Span,
    /// The polling interval in place of the plan's [s]: 0.125, 0.25, ... 1024
    #[arg(long, value_name = "SECONDS", value_parser = power_of_two, conflicts_with = "resume")]
    poll: Option<i32>,
    /// How long after each start errors do not count [default: two fifths of the run, at most 30 min; with phases until
    /// the first]
    #[arg(long, value_name = "SPAN", value_parser = waiting_time, conflicts_with = "resume")]
    settle: Option<Span>,
    /// Chooses the realisation of the oscillator
    #[arg(long, value_name = "NUMBER", default_value_t = 1, conflicts_with = "resume")]
    seed: u64,
    /// The contestants, by name [default: all that can run here]
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "resume")]
    only: Vec<String>,
    /// What burns on the host during the whole run, beside what the plan has
    #[arg(long, value_name = "LOAD", value_delimiter = ',', value_enum, conflicts_with = "resume")]
    load: Vec<Load>,
    /// A witness for each contestant: the report says how wrong the monitor was
    #[arg(long, value_name = "WHERE", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "host",
        conflicts_with = "resume")]
    witness: Option<WitnessKind>,
    /// What stands between server and daemons where the plan has a router
    #[arg(long, value_enum, default_value = "own", conflicts_with = "resume")]
    router: RouterKind,
    /// What netem does, in place of the plan: lines `SECONDS to|from WORDS...`, the words those of tc-netem(8)
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    netem: Option<PathBuf>,
    /// What boots a guest of user-mode Linux: tests/uml/guest
    #[arg(long, value_name = "FILE", default_value = "tests/uml/guest")]
    guest: PathBuf,
    /// Where the other daemons are: the wrappers of tools/peers, or a directory of the same names
    #[arg(long, value_name = "DIR", default_value = "tools/peers")]
    peers: PathBuf,
    /// Where the results go; a run that is there already is not overwritten
    #[arg(long, value_name = "DIR", default_value = "out/live", conflicts_with = "resume")]
    output: PathBuf,
    /// Go on with the run of this directory, for what is left of its time
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
}

/// Arguments of `ffclock-lab live report`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab live report out/live out/live-2
  $ ffclock-lab live report --settle '20 min' out/live")]
struct LiveReportArgs {
    /// How long after each start errors do not count, in place of what the runs were begun with
    #[arg(long, value_name = "SPAN", value_parser = waiting_time)]
    settle: Option<Span>,
    /// Directories of runs; of several, the medians are shown
    #[arg(value_name = "DIR", required = true)]
    runs: Vec<PathBuf>,
}

/// Runs a part of the live laboratory.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.part {
        LiveCommand::List => list(global),
        LiveCommand::Run(args) => run_plan(global, args),
        LiveCommand::Report(args) => report(global, &args.runs, args.settle),
    }
}

#[derive(Serialize)]
struct PlanRow {
    name: &'static str,
    about: &'static str,
    poll_s: f64,
}

fn list(global: &GlobalOptions) -> Result<(), Failure> {
    PLANS.iter().try_for_each(|plan| {
        let row = PlanRow { name: plan.name, about: plan.about, poll_s: plan.poll_s() };
        global.answer(&row, || format!("{:<12}  {}\n", plan.name, plan.about))
    })
}

fn run_plan(global: &GlobalOptions, args: &LiveRunArgs) -> Result<(), Failure> {
    let directory = match &args.resume {
        Some(directory) => directory.clone(),
        None => begin(args)?,
    };
    let ended = session::run(&directory, &args.peers, &args.guest);
    // What was measured until then is worth a table, however the session ended.
    report(global, std::slice::from_ref(&directory), None)?;
    ended
}

/// A polling interval as the power of two that it is.
fn power_of_two(text: &str) -> Result<i32, String> {
    let is_asked = |power: &i32| text.parse() == Ok(2_f64.powi(*power));
    (-3..=10).find(is_asked).ok_or_else(|| "a power of two from 0.125 to 1024 is wanted".to_owned())
}

/// Writes down what is to be run.
fn begin(args: &LiveRunArgs) -> Result<PathBuf, Failure> {
    let name = args.plan.as_deref().unwrap_or_default();
    let plan = LivePlan::named(name)?;
    let start = plan.phases.first().map_or(0.4, |phase| phase.shares[0]);
    let settle_s = args.settle.map_or_else(|| (args.length.as_seconds() * start).min(1800.0), Span::as_seconds);
    if settle_s >= args.length.as_seconds() {
        return Err(Failure::usage("--settle leaves nothing of --for"));
    }
    let of_plan = || plan.contestants.iter().map(|name| (*name).to_owned()).collect();
    let contestants = contestant::chosen(&if args.only.is_empty() { of_plan() } else { args.only.clone() })?;
    let record = RunRecord {
        format: record::FORMAT,
        plan: plan.name.to_owned(),
        duration_s: args.length.as_seconds(),
        settle_s,
        seed: args.seed,
        poll_log2: args.poll,
        load: plan.load.iter().chain(args.load.iter().filter(|load| !plan.load.contains(load))).copied().collect(),
        witnesses: args.witness,
        router: args.router,
        netem: netem_of(args, &plan)?,
        contestants: contestants.iter().map(|contestant| contestant.name.to_owned()).collect(),
    };
    record.create(&args.output)?;
    Ok(args.output.clone())
}

/// The timetable of the router that the user wrote, if it can be followed.
fn netem_of(args: &LiveRunArgs, plan: &LivePlan) -> Result<Option<String>, Failure> {
    match (&args.netem, args.router) {
        (Some(_), RouterKind::Own) => Err(Failure::usage("--netem is for --router uml")),
        (None, RouterKind::Uml) if plan.path == LivePath::Direct => {
            Err(Failure::usage(format!("the links of {} are direct; --router uml needs --netem there", plan.name)))
        }
        (None, _) => Ok(None),
        (Some(file), RouterKind::Uml) => {
            let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            netem::Timetable::parse(&text).map(|_| Some(text))
        }
    }
}

fn report(global: &GlobalOptions, runs: &[PathBuf], settle: Option<Span>) -> Result<(), Failure> {
    let summary = figures::summary(runs, settle)?;
    global.answer(&summary, || figures::text(&summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_powers_of_two_are_polling_intervals() {
        assert_eq!(["1", "16", "1024", "0.125"].map(power_of_two), [Ok(0), Ok(4), Ok(10), Ok(-3)]);
        assert!(["0", "3", "2048", "-1", "", "16 s"].into_iter().all(|text| power_of_two(text).is_err()));
        let plan = LivePlan::named("cut-16").unwrap();
        assert_eq!([plan.polled(Some(0)), plan.polled(None)].map(|plan| plan.poll_s()), [1.0, 16.0]);
    }
}
