//! `ffclock-lab probe advise`: where to stamp on this host.

use super::answer::ProbeAnswer;
use super::run::{RunExtras, TrafficOptions, measure};
use crate::failure::Failure;
use crate::{GlobalOptions, text};
use ffclock_probe::advice::{Advice, advise};
use serde_json::json;
use std::path::PathBuf;

/// Options of `ffclock-lab probe advise`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab probe advise --to 192.0.2.7
  $ ffclock-lab probe advise --netns --stress cpu,ip --phase '10 s'
  $ ffclock-lab probe advise --from probe.parquet
  $ ffclock-lab probe advise --from probe.parquet --json | jq .advice.location

Answers from a fresh run, or from a record of one. Locations that cannot be
distinguished are named as a tie, and the simplest of them is advised. Exit code: 0 with an answer, 1 where no
location can be advised.")]
pub(super) struct Args {
    #[command(flatten)]
    course: TrafficOptions,
    /// Judge this record instead of measuring
    // In the group of what says where packets go: one of them must be given.
    #[arg(long, value_name = "RECORD", group = "Target")]
    from: Option<PathBuf>,
}

/// Measures or reads, and judges.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let answer = match &args.from {
        Some(record) => ProbeAnswer::recorded(record)?,
        // A program that follows the advice does not pass a second probe at each place.
        None => measure(&args.course.without_ebpf(), RunExtras::default())?.answer(),
    };
    let advice = advise(&answer.digest(), &answer.unavailable());
    global.answer(&json!({ "about": answer.about, "advice": advice }), || page(&advice))?;
    if advice.location.is_some() { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}

fn page(advice: &Advice) -> String {
    let mut lines: Vec<String> = advice.reasons.iter().map(|reason| text::printable(reason)).collect();
    if let Some(how) = &advice.how {
        lines.insert(1, format!("How: {how}."));
    }
    lines.iter().map(|line| format!("- {line}\n")).collect()
}
