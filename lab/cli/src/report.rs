//! `ffclock-lab report`: a page with pictures of how well a clock did, drawn by the Python package.
//!
//! Finds a Python with the package and hands everything over.

use crate::GlobalOptions;
use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `ffclock-lab report`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab report site.trace -o site.html
  $ ffclock-lab sim run lan-16 --series lan.csv && ffclock-lab report lan.csv -o lan.html
  $ ffclock-lab report out/demo --title 'Two minutes' -o demo.html
  $ ffclock-lab probe run --netns --record probe.parquet && ffclock-lab report probe.parquet -o probe.html

RUN is a trace that `ffclock-lab replay` reads, what `replay --output` or `sim run --series` wrote, the JSON of `sim run`, a record of
`ffclock-lab probe run`, or the directory of a demonstration. The page holds its pictures inside itself and loads nothing. It is drawn by the Python package: docs/python.md.")]
pub(crate) struct Args {
    /// A trace or a run
    run: PathBuf,
    /// The page to write, or a directory for page and pictures
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Heading, instead of the run's own
    #[arg(long)]
    title: Option<String>,
    /// Which clock of a simulated run is looked at in detail
    #[arg(long, value_name = "NAME")]
    clock: Option<String>,
    /// The algorithm that replays a trace, `classic` or `learned`
    #[arg(long, value_name = "NAME")]
    estimator: Option<String>,
    /// The Python interpreter that has the package [default: $FFCLOCK_PYTHON, .venv/bin/python here, python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
}

/// Draws the report.
pub(crate) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    crate::files::check(&[("run", Some(&args.run))], &[("--output", Some(&args.output))])?;
    let python = interpreter(args.python.as_deref());
    ask_for_package(&python)?;
    let mut command = Command::new(&python);
    command.args(["-m", "ffclock.report"]).arg("-o").arg(&args.output);
    for (name, value) in [("--title", &args.title), ("--clock", &args.clock), ("--estimator", &args.estimator)] {
        if let Some(value) = value {
            command.arg(format!("{name}={value}"));
        }
    }
    // Replaying is done by this very program.
    if let Ok(program) = std::env::current_exe() {
        command.arg("--ffclock-lab").arg(program);
    }
    if global.json {
        command.arg("--json");
    }
    let status = command.arg("--").arg(&args.run).status().map_err(|error| cannot_start(&python, &error))?;
    // The package has said why; its own exit codes are not ours.
    if status.success() { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}

/// The interpreter that was named, or the first of the usual places that is there.
fn interpreter(named: Option<&Path>) -> PathBuf {
    let local = PathBuf::from(".venv/bin/python");
    let chosen = named.map(Path::to_owned).or_else(|| std::env::var_os("FFCLOCK_PYTHON").map(PathBuf::from));
    chosen.unwrap_or_else(|| if local.exists() { local } else { PathBuf::from("python3") })
}

/// Checks first, so that the error message about a missing package is ours and names the remedy.
fn ask_for_package(python: &Path) -> Result<(), Failure> {
    let check = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('ffclock') else 5)";
    let answer = Command::new(python).args(["-c", check]).output().map_err(|error| cannot_start(python, &error))?;
    if answer.status.success() {
        return Ok(());
    }
    Err(Failure::from(format!(
        "{} has no Python package ffclock, which draws the report; install it with\n  {0} -m pip install './python[analysis]'\n\
         in a checkout, or name another interpreter with --python or FFCLOCK_PYTHON",
        python.display()
    )))
}

fn cannot_start(python: &Path, error: &std::io::Error) -> Failure {
    Failure::from(format!(
        "cannot start {}: {error}; name a Python interpreter that has the package ffclock with --python or FFCLOCK_PYTHON",
        python.display()
    ))
}
