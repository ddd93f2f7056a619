//! What the programs do as a whole, measured beside others that do the same: rates, replay, the daemon as a process,
//! the demonstration.
//!
//! `cargo bench -p ffclock-lab --bench system -- [rates] [replay] [simulation] [daemon] [demo] [theta-watch]
//! [theta-disk]`; `tools/bench` builds what it needs and makes the table. Standard output has one JSON line per figure,
//! standard error shows the progress. How each figure is measured, and what it does not show, is in docs/benchmarks.md.
//!
//! Nothing here sets a clock, and nothing leaves this host: servers listen on loopback or in namespaces of their own.

mod daemon;
mod demo;
mod figure;
mod lab;
mod rates;
mod replay;
mod simulation;
mod start_up;
mod theta_disk;
mod theta_watch;
mod traffic;

use std::error::Error;
use std::process::ExitCode;

type Outcome = Result<(), Box<dyn Error>>;

/// A part by its name.
type Part = (&'static str, fn() -> Outcome);

const PARTS: [Part; 6] = [
    ("replay", replay::run),
    ("simulation", simulation::run),
    ("daemon", daemon::run),
    ("demo", demo::run),
    ("theta-watch", theta_watch::run),
    ("rates", rates::run),
];

/// Parts that want more of the machine than may be taken unasked.
const PARTS_BY_NAME: [Part; 1] = [("theta-disk", theta_disk::run)];

fn main() -> ExitCode {
    // Cargo adds an option of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let outcome = match words.as_slice() {
        [first, seconds] if first == start_up::COMMAND => start_up::run(seconds),
        words => measure(words),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the parts that are named; where none is, all that may run unasked.
fn measure(names: &[String]) -> Outcome {
    let known = || PARTS.iter().chain(&PARTS_BY_NAME);
    if let Some(name) = names.iter().find(|name| known().all(|part| part.0 != name.as_str())) {
        return Err(format!("there is no part {name:?}").into());
    }
    let is_named = |part: &&Part| names.iter().any(|name| name == part.0);
    let unnamed = PARTS.iter().filter(|_| names.is_empty());
    for (name, run) in unnamed.chain(known().filter(is_named)) {
        run().map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}

/// A number from the environment, for shorter or longer runs.
fn setting(name: &str, default: f64) -> Result<f64, String> {
    let Ok(text) = std::env::var(name) else { return Ok(default) };
    text.parse().map_err(|_| format!("{name}={text} is not a number"))
}
