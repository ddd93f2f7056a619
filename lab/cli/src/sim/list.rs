//! `ffclock-lab sim list`.

use super::open;
use crate::{Failure, GlobalOptions};
use ffclock_sim::scenario::NAMES;
use serde::Serialize;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim list
  $ ffclock-lab sim list --json | jq -r 'select(.poll_s == 16).name'")]
pub(super) struct Args {}

#[derive(Serialize)]
struct ScenarioRow<'a> {
    name: &'a str,
    about: &'a str,
    duration_s: f64,
    poll_s: f64,
    /// Of its `[[server]]`.
    servers: usize,
    checks: usize,
}

pub(super) fn run(global: &GlobalOptions, _: &Args) -> Result<(), Failure> {
    let longest = NAMES.iter().map(|name| name.len()).max().unwrap_or(0);
    for name in NAMES {
        let scenario = open(name)?.scenario;
        let line = ScenarioRow {
            name,
            about: &scenario.about,
            duration_s: scenario.duration.seconds(),
            poll_s: scenario.poll.seconds(),
            servers: scenario.servers.len(),
            checks: scenario.checks.len(),
        };
        global.answer(&line, || format!("{name:longest$}  {}\n", line.about))?;
    }
    Ok(())
}
