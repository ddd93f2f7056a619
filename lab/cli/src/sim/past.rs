//! `ffclock-lab sim past`: old stamps and long intervals in a simulated world.

use super::open;
use crate::{Failure, GlobalOptions};
use ffclock_cli::text::{self, Align};
use ffclock_estimator::LearnedConfig;
use ffclock_replay::{PastErrors, PastReport};
use ffclock_sim::{Cast, Run};
use serde::Serialize;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim past lan-16 --seed 3
  $ ffclock-lab sim past near-64 --json | jq '.stamps[] | [.age_s, .history.p50, .newest_line.p50]'

The learned clock publishes into a page and a history as ffclockd does. At every reading, stamps that were taken
before are converted, by the history and by the newest line alone, and the interval from each to the present is measured
by the difference clock, by two conversions and as `ffclock elapsed` does. Errors are sizes: the median and the
99th percentile.")]
pub(super) struct Args {
    /// A built-in scenario, or a file that ends in `.toml`
    name: String,
    /// The seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What `--json` shows.
#[derive(Serialize)]
struct PastAnswer<'a> {
    scenario: &'a str,
    seed: u64,
    #[serde(flatten)]
    report: PastReport,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let named = open(&args.name)?;
    if !named.scenario.servers.is_empty() {
        return Err(Failure::usage("sim past judges the clock of one server, and this world has several"));
    }
    let run = Run { name: &named.name, scenario: &named.scenario, seed: args.seed };
    let learned = LearnedConfig::default();
    let result = run.execute_with_past(&Cast { clocks: &["learned"], learned: &learned });
    let report = result.past.ok_or_else(|| Failure::from("the run was not judged".to_owned()))?;
    let answer = PastAnswer { scenario: &named.name, seed: args.seed, report };
    global.answer(&answer, || render(&format!("{}: {}", named.name, named.scenario.about), &answer.report))
}

fn render(title: &str, report: &PastReport) -> String {
    let micros =
        |seconds: f64| if seconds < 1e-7 { format!("{:.2e}", seconds * 1e6) } else { format!("{:.2}", seconds * 1e6) };
    let cells = |errors: &PastErrors| [micros(errors.p50), micros(errors.p99)];
    let names = |names: &[&'static str]| -> Vec<(&'static str, Align)> {
        names.iter().map(|name| (*name, Align::Right)).collect()
    };
    let stamps: Vec<Vec<String>> = report
        .stamps
        .iter()
        .map(|row| {
            let [history, newest] = [cells(&row.history), cells(&row.newest_line)];
            let age = text::span(row.age_s);
            [vec![age], newest.into(), history.into(), vec![micros(row.bound_s), percent(row.inside)]].concat()
        })
        .collect();
    let intervals: Vec<Vec<String>> = report
        .intervals
        .iter()
        .map(|row| {
            let [difference, absolute, elapsed] = [&row.difference, &row.absolute, &row.elapsed].map(cells);
            let claims = vec![micros(row.uncertainty_s), micros(row.bound_s), percent(row.inside)];
            [vec![text::span(row.length_s)], difference.into(), absolute.into(), elapsed.into(), claims].concat()
        })
        .collect();
    let stamp_names = ["AGE", "LINE p50", "p99", "HISTORY p50", "p99", "BOUND", "INSIDE"];
    let interval_names = [
        "LENGTH",
        "DIFFERENCE p50",
        "p99",
        "ABSOLUTE p50",
        "p99",
        "ELAPSED p50",
        "p99",
        "UNCERTAINTY",
        "BOUND",
        "INSIDE",
    ];
    let critical =
        report.critical_s.map_or_else(String::new, |scale| format!("\ncritical scale {}\n", text::span(scale)));
    format!(
        "{title}\n\nold stamps: error [us]\n{}\nintervals: error [us]\n{}{critical}",
        text::table(&names(&stamp_names), &stamps),
        text::table(&names(&interval_names), &intervals)
    )
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
