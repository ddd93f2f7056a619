//! `ffclock-lab sim campaign`: the strict bound against liars of every kind.

use super::pool::{Jobs, Seeds, jobs, show_progress};
use crate::{Failure, GlobalOptions};
use ffclock_sim::lying::{LyingWorld, StrictReport};
use serde::Serialize;
use serde_json::json;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim campaign --seeds 1..100
  $ ffclock-lab sim campaign --seeds 1..9000 --jobs 2 --json | jq .outside
  $ ffclock-lab sim campaign --show 7 > world.toml && ffclock-lab sim run world.toml --seed 7

Each seed draws a world of 3 to 7 servers, of which a minority lies, with polls of 64 s to 1024 s for 500 polls.
Guards and vote are those of ffclockd, the filter is the classic one. Exit code 1 if a reading is outside.")]
pub(super) struct Args {
    /// The seeds, first and last, such as `1..100`
    #[arg(long, default_value = "1..100", conflicts_with = "show")]
    seeds: Seeds,
    /// How many worlds at a time [default: as many as there are processors]
    #[arg(long)]
    jobs: Option<Jobs>,
    /// Print the world of this seed as a scenario, and do nothing else
    #[arg(long, value_name = "SEED")]
    show: Option<u64>,
}

/// What `--json` shows.
#[derive(Serialize)]
struct CampaignAnswer {
    seeds: [u64; 2],
    #[serde(flatten)]
    report: StrictReport,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    if let Some(seed) = args.show {
        let LyingWorld { text, .. } = LyingWorld::drawn(seed);
        return global.answer(&json!({ "seed": seed, "scenario": text }), || text.clone());
    }
    let seeds = [args.seeds.0.start, args.seeds.0.end - 1];
    let answer = CampaignAnswer { seeds, report: campaign(args) };
    global.answer(&answer, || render(&answer))?;
    if answer.report.outside > 0 { Err(Failure::silent(Failure::FAILED)) } else { Ok(()) }
}

/// Every seed, on several threads.
fn campaign(args: &Args) -> StrictReport {
    let seeds = args.seeds.0.clone();
    let next = AtomicU64::new(seeds.start);
    let whole = Mutex::new(StrictReport::default());
    let one = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let report = StrictReport::of_world(seed);
            // A thread that panicked has ended the program's work anyhow; what the others have is still whole.
            let mut whole = whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            whole.add(report);
            show_progress(whole.worlds, seeds.end - seeds.start);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs(args.jobs) {
            scope.spawn(one);
        }
    });
    whole.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn render(answer: &CampaignAnswer) -> String {
    let CampaignAnswer { seeds: [first, last], report } = answer;
    let mut text = format!(
        "seeds {first} to {last}: {} worlds, {:.0} simulated hours, {} exchanges\n",
        report.worlds, report.hours, report.exchanges
    );
    let kinds: Vec<String> = report.liars.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    let _ = writeln!(text, "liars: {}; in {} worlds all alike", kinds.join(", "), report.alike);
    let _ = writeln!(
        text,
        "strict bound: {} of {} readings outside; the largest error was {:.4} of its bound",
        report.outside, report.readings, report.largest_over_bound
    );
    for one in &report.escapes {
        let _ = writeln!(text, "seed {:<8} {} readings, up to {:.4}", one.seed, one.outside, one.error_over_bound);
    }
    text
}
