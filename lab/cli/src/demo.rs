//! The main job in minutes, on real packets: synchronise, compare with the known truth, survive the loss of the server
//! ([`cut`]) and the lie of one of three ([`liar`]), and serve the time on to others ([`serve`]).

mod cut;
mod exchanges;
mod liar;
mod sampler;
mod serve;
mod stage;
mod table;
mod track;

use crate::GlobalOptions;
use crate::failure::Failure;
use crate::lab::truth::Truth;
use ffclock_counter::CounterId;
use ffclock_replay::Figure;
use ffclock_units::{Rate, Span};
use serde::Serialize;
pub(crate) use stage::sibling;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Arguments of `ffclock-lab demo`.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  $ ffclock-lab demo --output out/demo
  $ ffclock-lab demo liar --output out/demo-liar
  $ ffclock-lab demo serve --chronyd /usr/sbin/chronyd --output out/demo-serve

Without a subcommand one server is cut off for a while and comes back. The exit code is 1 if the true time ever left the
published bound."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    scene: Option<Scene>,
    #[command(flatten)]
    cut: cut::CutArgs,
}

#[derive(clap::Subcommand)]
enum Scene {
    /// Synchronise to three servers, one of which begins to lie in the middle
    Liar(liar::LiarArgs),
    /// Serve the time on, through ffclock-serve and through chronyd on the same host, to chronyd, ntpd and ffclockd
    Serve(serve::ChainArgs),
}

/// What all demonstrations understand.
#[derive(clap::Args)]
struct WorldArgs {
    /// Time between two requests.
    #[arg(long, value_name = "SPAN", default_value = "250 ms")]
    poll: Span,
    /// The true time's rate against the counter's nominal rate.
    #[arg(long, value_name = "RATE", default_value = "-37 ppm", allow_hyphen_values = true)]
    skew: Rate,
    /// The largest deviation of that rate from its mean.
    #[arg(long, value_name = "RATE", default_value = "0.05 ppm")]
    wander: Rate,
    /// The Python interpreter that draws the report; without one, only figures and data are written.
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// How long one swing of the wander takes.
const SWING: Span = Span::from_secs(60);

impl WorldArgs {
    /// A truth that begins now.
    fn truth(&self) -> Result<Truth, Failure> {
        let nominal = ffclock_counter::nominal(CounterId::CPU).map_err(|error| error.to_string())?;
        let now = ffclock_units::LeapTable::built_in().tai_from_utc(ffclock_sys::system_utc_now());
        Ok(Truth {
            origin: ffclock_counter::read_ordered(CounterId::CPU),
            time: now,
            period: nominal.period.stretched(self.skew),
            wander: self.wander,
            swing: SWING,
        })
    }
}

#[derive(Serialize)]
struct DemoEvent {
    t_s: f64,
    duration_s: Option<f64>,
    text: String,
}

#[derive(Serialize)]
struct DemoSummary {
    title: String,
    conditions: String,
    /// The clock that the samples are of.
    clock: &'static str,
    warm_up_s: f64,
    figures: Vec<Figure>,
    events: Vec<DemoEvent>,
    bound_held: bool,
}

impl DemoSummary {
    /// Writes the summary beside the data that it is about.
    fn write(&self, directory: &Path) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).map_err(|error| error.to_string())?;
        Ok(fs::write(directory.join("summary.json"), json)?)
    }
}

/// Runs the demonstration.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    match &args.scene {
        None => cut::run(global, &args.cut),
        Some(Scene::Liar(args)) => liar::run(global, args),
        Some(Scene::Serve(args)) => serve::run(global, args),
    }
}

/// Draws the reports of several directories at the same time.
fn draw_reports(python: Option<&Path>, directories: &[&Path]) -> Result<(), Failure> {
    let Some(python) = python else { return Ok(()) };
    let start = |directory: &&Path| -> Result<Child, Failure> {
        let mut command = Command::new(python);
        command.args(["-m", "ffclock.report"]).arg(directory).arg("-o").arg(directory);
        command.stdout(std::process::Stdio::null());
        command.spawn().map_err(|error| format!("{}: {error}", python.display()).into())
    };
    let drawing = directories.iter().map(start).collect::<Result<Vec<_>, Failure>>()?;
    for (mut child, directory) in drawing.into_iter().zip(directories) {
        let status = child.wait()?;
        if !status.success() {
            return Err(format!("the report was not drawn: {status}").into());
        }
        eprintln!("report: {}", directory.join("report.html").display());
    }
    Ok(())
}
