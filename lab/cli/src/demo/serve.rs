//! A chain: a reference server of the system clock, a host that follows it and serves the time on, and clients behind
//! that host. On the host, ffclockd with ffclock-serve and chronyd do so side by side, and each kind of client follows
//! both, plainly and with NTS.
//!
//! Nothing steers the system clock meanwhile, so it is the truth at every stage: no daemon may set it, and clients of
//! other projects only measure (`noselect` of chronyd, `disable ntp` of ntpd). What they would set the clock by is
//! their error.

mod chain;
mod config;
mod logs;
mod table;

use super::sampler::ObservedClock;
use super::stage::TruthSource;
use crate::GlobalOptions;
use crate::failure::Failure;
use chain::ServedChain;
use ffclock_units::Span;
use logs::LogMark;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use table::{ChainRatio, ChainRow};

/// Options of `ffclock-lab demo serve`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock-lab demo serve --chronyd /usr/sbin/chronyd --ntpd /usr/sbin/ntpd --output out/demo-serve

Errors are against this machine's system clock, which nothing steers meanwhile. The exit code is 1 if a claim of
ffclockd or ffclock-serve did not hold, or if a stage gave no time. What cannot run here is left out, with its reason.")]
pub(super) struct ChainArgs {
    /// Where the results go; the directory is made if it is missing.
    #[arg(long, value_name = "DIR", default_value = "out/demo-serve")]
    output: PathBuf,
    /// The chronyd that is the reference, the other server of the host, and a client.
    #[arg(long, value_name = "PATH", default_value = "/usr/sbin/chronyd")]
    chronyd: PathBuf,
    /// An ntpd (of ntpsec) that is a client.
    #[arg(long, value_name = "PATH")]
    ntpd: Option<PathBuf>,
    /// Seconds before the errors count.
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    before: f64,
    /// Seconds for which errors count.
    #[arg(long, value_name = "SECONDS", default_value_t = 40.0)]
    watch: f64,
    /// Time between two replies that are judged; none asks as fast as the servers answer, and disturbs the clients.
    #[arg(long, value_name = "SPAN", default_value = "25 ms")]
    ask_every: Span,
}

/// Time between two comparisons of each page with the truth.
const SAMPLING: Duration = Duration::from_millis(20);
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// One of the ways on which the host serves the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServedWay {
    server: &'static str,
    is_protected: bool,
}

const OURS: &str = "ffclock-serve";
const RIVAL: &str = "chronyd";

/// Each has an address of the host of its own, in this order.
const WAYS: [ServedWay; 4] = [
    ServedWay { server: OURS, is_protected: false },
    ServedWay { server: OURS, is_protected: true },
    ServedWay { server: RIVAL, is_protected: false },
    ServedWay { server: RIVAL, is_protected: true },
];

/// The names of the ffclockd behind each way, which their files have too.
const FOLLOWERS: [&str; 4] =
    ["behind-ffclock-serve", "behind-ffclock-serve-nts", "behind-chronyd", "behind-chronyd-nts"];
/// The ffclockd whose page ffclock-serve serves.
const HOST: &str = "host";

#[derive(Serialize)]
struct ChainSummary {
    title: &'static str,
    conditions: String,
    warm_up_s: f64,
    watched_s: f64,
    left_out: Vec<String>,
    stages: Vec<ChainRow>,
    ratios: Vec<ChainRatio>,
    claims_held: bool,
}

/// Runs the demonstration.
pub(super) fn run(global: &GlobalOptions, args: &ChainArgs) -> Result<(), Failure> {
    fs::create_dir_all(&args.output).map_err(|error| format!("{}: {error}", args.output.display()))?;
    let output = fs::canonicalize(&args.output)?;
    let mut chain = ServedChain::start(args, &output)?;
    let conditions = format!(
        "chronyd as reference, truth: the system clock; {}; a request each 250 ms (ntpd: 1 s)",
        chain.network_words()
    );
    eprintln!("{conditions}; {} s", args.before + args.watch);
    let clocks = observe(args, &mut chain)?;
    let left_out = chain.finish();
    let stages = table::rows(&clocks.0, &clocks.1)?;
    let summary = ChainSummary {
        title: "The time served on: errors at each stage of a chain",
        conditions,
        warm_up_s: args.before,
        watched_s: args.watch,
        left_out,
        ratios: table::ratios(&stages),
        claims_held: stages.iter().all(ChainRow::is_good),
        stages,
    };
    let json = serde_json::to_string_pretty(&summary).map_err(|error| error.to_string())?;
    fs::write(output.join("summary.json"), json)?;
    global.answer(&summary, || table::text(&summary))?;
    if summary.claims_held {
        return Ok(());
    }
    Err(format!("a claim of ours did not hold, or a stage gave no time; what all said is in {}", output.display())
        .into())
}

/// The pages that were looked at, and what the logs of the others say, from the end of the warm-up on.
fn observe(args: &ChainArgs, chain: &mut ServedChain) -> Result<(Vec<ObservedClock>, Vec<LogMark>), Failure> {
    let begun = Instant::now();
    let mut clocks = chain.pages()?;
    let warm_until = Duration::from_secs_f64(args.before);
    let end = warm_until + Duration::from_secs_f64(args.watch);
    let (mut marks, mut next_line) = (None, PROGRESS);
    while begun.elapsed() < end {
        let elapsed = begun.elapsed();
        if marks.is_none() && elapsed >= warm_until {
            // What was seen before does not count.
            clocks.iter_mut().for_each(|clock| clock.run.samples.clear());
            marks = Some(chain.logs().into_iter().map(LogMark::at_end).collect());
        }
        let t_s = elapsed.as_secs_f64();
        clocks.iter_mut().for_each(|clock| clock.sample(t_s, &TruthSource::SystemClock));
        if elapsed >= next_line {
            chain.check()?;
            eprintln!("{t_s:>4.0} of {:.0} s  host: {}", end.as_secs_f64(), clocks[0].state());
            next_line += PROGRESS;
        }
        sleep(SAMPLING);
    }
    Ok((clocks, marks.ok_or("there was no time to watch (--watch)")?))
}

/// An absolute path whose links are not resolved: a wrapper may depend on the name by which it is called.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
