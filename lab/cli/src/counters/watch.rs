//! `ffclock-lab counters watch`: whether counters stay trustworthy.

use super::campaign::interval;
use super::conditions::Conditions;
use crate::failure::Failure;
use crate::{GlobalOptions, waiting_time};
use ffclock_counters::campaign::{self, schedule};
use ffclock_counters::watching::{CounterFault, CounterWatcher};
use ffclock_units::Span;

/// Options of `ffclock-lab counters watch`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab counters watch
  $ ffclock-lab counters watch --for '1 h' --json >findings.jsonl || mail -s 'counter' admin

Looks for jumps, standstills and backward runs of the CPU's counter and of the kernel's raw clock, for
offsets between CPUs, for suspends, and for clocksources that the kernel changes or withdraws. One line
for each finding. Exit code: 0 when nothing was found, 1 otherwise.")]
pub(super) struct Args {
    /// How long to watch [default: until interrupted]
    #[arg(long = "for", value_name = "SPAN", value_parser = waiting_time)]
    length: Option<Span>,
    /// How often to look
    #[arg(long, value_name = "SPAN", default_value = "1 s", value_parser = interval)]
    every: Span,
}

/// Watches until the time is up, and prints each finding.
pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let phases = schedule(&[], args.length.unwrap_or(Span::from_secs(366 * 86_400)));
    let mut conditions = Conditions::prepare(&phases)?;
    let failed = |error: ffclock_counters::watching::CounterWatchError| Failure::from(error.to_string());
    let mut watcher = CounterWatcher::start().map_err(failed)?;
    let (mut looks, mut findings) = (0_u64, 0_u64);
    let watched = campaign::run(&phases, args.every, &mut conditions, |_, t| {
        let found = watcher.look(t).map_err(failed)?;
        looks += 1;
        findings += found.len() as u64;
        found.iter().try_for_each(|finding| show(global, finding))
    });
    drop(conditions);
    watched.ended?;
    let end = serde_json::json!({ "record": "end", "looks": looks, "findings": findings });
    global.answer(&end, || format!("{looks} looks, {findings} findings\n"))?;
    if findings == 0 { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}

fn show(global: &GlobalOptions, finding: &CounterFault) -> Result<(), Failure> {
    let CounterFault { t, counter, kind, evidence } = finding;
    global.answer(finding, || format!("{t:9.3} s  {counter}  {kind}: {evidence}\n"))
}
