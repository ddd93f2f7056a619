//! `ffclock elapsed`: how long a command takes, or how far two stamps lie apart.
//!
//! Short intervals are measured by the difference clock, whose rate is the mean of the recent past, and long ones by
//! two conversions, whichever has the smaller uncertainty.

use crate::failure::Failure;
use crate::stamp::StampText;
use crate::{Global, output, page};
use ffclock::{Clock, Interval};
use ffclock_units::Status;
use serde::Serialize;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

/// Options of `ffclock elapsed`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock elapsed -- make
  elapsed 12.015705683 s +- 14.6515 us (standard uncertainty 1.0356 us)
  $ begin=$(ffclock stamp); sleep 1; ffclock elapsed $begin $(ffclock stamp)
  1.015024994 s +- 1.2265 us (standard uncertainty 352.5381 ns)
  $ ffclock elapsed --json $begin $end | jq .elapsed_s,.way

The true length lies within the bound (after +-) as long as the bounds of the times do, which `ffclock
now --help` explains. Intervals of seconds and minutes are measured by the difference clock, whose error grows with their length;
longer ones by the times of the two stamps, whose errors do not. The stamps may be a day old, if the daemon has
run since.

The figure for a command goes to standard error (or to the file of --output), so that the command's
own output stays as it is, and its exit code is passed on: 128 + N when signal N ended it, 126 when
it cannot be executed, 127 when it is not found. Starting the command counts as part of it. Where the
command succeeds, and between stamps: 1 when a stamp is refused, 3 when the interval is unsynchronised.")]
#[command(override_usage = "ffclock elapsed [OPTIONS] -- COMMAND...\n       ffclock elapsed [OPTIONS] BEGIN END")]
pub(crate) struct Args {
    /// Two stamps, as `ffclock stamp` printed them
    #[arg(value_name = "STAMP", num_args = 2, required_unless_present = "command", conflicts_with = "command")]
    stamps: Vec<StampText>,
    /// Write the figure for a command to this file instead of standard error
    #[arg(long, value_name = "FILE", conflicts_with = "stamps")]
    output: Option<PathBuf>,
    /// The command to run, with its arguments
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<OsString>,
}

/// What `--json` shows.
#[derive(Serialize)]
struct ElapsedReport {
    elapsed_s: f64,
    bound_s: Option<f64>,
    uncertainty_s: Option<f64>,
    status: &'static str,
    way: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
}

/// Measures a command, or the time between two stamps, and prints it.
pub(crate) fn run(global: &Global, args: &Args) -> Result<(), Failure> {
    let clock = page::open(global)?;
    match args.stamps.as_slice() {
        &[begin, end] => between(global, &clock, [begin, end]),
        _ => of_command(global, &clock, args),
    }
}

fn between(global: &Global, clock: &Clock, [begin, end]: [StampText; 2]) -> Result<(), Failure> {
    let interval = page::elapsed(clock, begin.0, end.0)?;
    let line = if global.json { output::to_json(&ElapsedReport::of(&interval, None))? } else { written(&interval) };
    output::line(&line)?;
    page::judge(interval.status)
}

fn of_command(global: &Global, clock: &Clock, args: &Args) -> Result<(), Failure> {
    let begin = clock.stamp();
    let status = execute(&args.command)?;
    let end = clock.stamp();
    let code = exit_code(status);
    let measured = page::elapsed(clock, begin, end)
        .and_then(|interval| show(global, args, &ElapsedReport::of(&interval, Some(code)), &interval));
    // The command's own failure matters more to the caller than that its time is not known.
    match (code, measured) {
        (0, measured) => measured,
        (code, Ok(())) => Err(Failure::silent(code)),
        (code, Err(failure)) => Err(Failure { code, message: failure.message }),
    }
}

fn show(global: &Global, args: &Args, report: &ElapsedReport, interval: &Interval) -> Result<(), Failure> {
    let text = if global.json { output::to_json(report)? } else { format!("elapsed {}", written(interval)) };
    match &args.output {
        None => output::write_aside(&format!("{text}\n"))?,
        Some(path) => std::fs::write(path, format!("{text}\n"))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?,
    }
    page::judge(interval.status)
}

fn execute(command: &[OsString]) -> Result<ExitStatus, Failure> {
    const NOT_EXECUTABLE: u8 = 126;
    const NOT_FOUND: u8 = 127;
    let (program, arguments) = command.split_first().ok_or_else(|| Failure::usage("no command is given"))?;
    Command::new(program).args(arguments).status().map_err(|error| Failure {
        code: if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE },
        message: format!("cannot run {}: {error}", program.display()),
    })
}

/// As shells have it: 128 + N for a command that signal N ended.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Failure::FAILED)
}

impl ElapsedReport {
    fn of(interval: &Interval, exit_code: Option<u8>) -> Self {
        ElapsedReport {
            elapsed_s: interval.span.as_seconds(),
            bound_s: page::known_seconds(interval.bound.as_span()),
            uncertainty_s: page::known_seconds(interval.uncertainty.as_span()),
            status: interval.status.name(),
            way: interval.way.name(),
            exit_code,
        }
    }
}

fn written(interval: &Interval) -> String {
    let nanos = interval.span.as_nanos();
    let (sign, size) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    // After the page has expired, nothing has checked that the counter kept running. The figure must not look checked.
    let doubt = if interval.status == Status::Unsynchronised { ", unsynchronised" } else { "" };
    let (seconds, nanos) = (size / 1_000_000_000, size % 1_000_000_000);
    let Interval { bound, uncertainty, .. } = interval;
    format!("{sign}{seconds}.{nanos:09} s +- {bound} (standard uncertainty {uncertainty}){doubt}")
}
