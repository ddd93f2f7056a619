//! The figures of the demonstration: a clock over real packets against the known truth, with kernel stamps and with
//! user-space stamps.

use crate::figure::Figure;
use crate::lab::{FFCLOCK_LAB, Lab};
use crate::{Outcome, setting};
use serde::Deserialize;
use std::process::{Command, Stdio};

/// What `ffclock-lab demo --json` says.
#[derive(Deserialize)]
struct Summary {
    conditions: String,
    figures: Vec<Shown>,
}

#[derive(Deserialize)]
struct Shown {
    name: String,
    value: Option<f64>,
    unit: String,
    goal: Option<f64>,
}

/// Endings of the names of figures that both clocks have.
const KERNEL: &str = ", kernel stamps";
const USER: &str = ", user stamps";

pub(crate) fn run() -> Outcome {
    let lab = Lab::new("demo")?;
    let mut command = Command::new(FFCLOCK_LAB);
    command.args(["demo", "--json", "--output"]).arg(lab.path("out")).stderr(Stdio::inherit());
    // Of a shorter run the first half minute, in which the clock settles, stays.
    if setting("FFCLOCK_BENCH_QUICK", 0.0)? > 0.0 {
        command.args(["--before", "45", "--cut", "5", "--after", "5"]);
    }
    let output = command.output()?;
    // A run that broke its bound ends with a failure, and has figures all the same.
    let summary: Summary =
        serde_json::from_slice(&output.stdout).map_err(|_| format!("the demonstration: {}", output.status))?;
    eprintln!("demo: {}", summary.conditions);
    summary.figures.iter().try_for_each(|shown| report(shown, &summary.figures))
}

/// A figure with kernel stamps, beside the same one with user-space stamps.
fn report(shown: &Shown, all: &[Shown]) -> Outcome {
    let Some(name) = shown.name.strip_suffix(KERNEL) else { return Ok(()) };
    let user = all.iter().find(|other| other.name.strip_suffix(USER) == Some(name)).and_then(|other| other.value);
    // What could not be measured has not met its goal.
    let value = shown.value.unwrap_or(f64::MAX);
    let (unit, scale) = unit(shown, value);
    let mut figure = Figure::new(format!("demo: {name}"), value * scale, unit);
    if let Some(user) = user {
        figure = figure.against("user stamps", user * scale);
    }
    // Seconds have been converted, and their goals with them.
    let figure = match shown.goal {
        Some(goal) => figure.at_most((goal * scale * 1e6).round() / 1e6),
        None => figure,
    };
    Ok(figure.report()?)
}

/// The unit in which to print a figure, and its number in one unit of the demonstration.
fn unit(shown: &Shown, value: f64) -> (&'static str, f64) {
    match shown.unit.as_str() {
        "s" if value.abs() < 1e-3 => ("us", 1e6),
        "s" => ("s", 1.0),
        "ppm" => ("ppm", 1.0),
        _ => ("", 1.0),
    }
}
