//! `ffclock reload`: makes the daemon read its configuration again, and reports whether it accepted it.

use crate::failure::Failure;
use crate::{Global, control, output};

/// Options of `ffclock reload`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  $ ffclock reload
  the new configuration is in force

Unlike SIGHUP, this says what is wrong with a faulty configuration; the old one then stays in
force.")]
pub(crate) struct Args {}

/// Asks for the reload.
pub(crate) fn run(global: &Global, _: &Args) -> Result<(), Failure> {
    control::reload(global)?;
    if global.json {
        output::json(&serde_json::json!({ "reloaded": true }))
    } else {
        output::line("the new configuration is in force")
    }
}
