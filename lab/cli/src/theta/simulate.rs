//! `ffclock-lab theta simulate`.

use crate::progress::Progress;
use crate::{Failure, GlobalOptions};
use ffclock_theta::algorithm::{AlgorithmForm, Quorum};
use ffclock_theta::faults::PlannedFault;
use ffclock_theta::simulate::{Simulation, SimulationError, SimulationOutcome, Spec, Unobserved};
use ffclock_units::Span;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta simulate --n 4 --f 1 --rounds 1000 --seed 1 --log run-1
  $ ffclock-lab theta simulate --scenario jumps.toml --seed 7 --log run-2
  $ ffclock-lab theta simulate --n 7 --f 2 --two-faced 5 --two-faced 6 --delay \"1 ms\" --json
  $ ffclock-lab theta simulate --fault 'kind = \"link-hold\", process = 1, hold = \"2 ms\", probability = 0.1'

A scenario is a short TOML file; docs/theta-run.md describes its keys. Options on the command line override the file. Exit
code 1 if correct processes stand still before the last round.")]
pub(super) struct Args {
    /// The scenario; all keys have defaults
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Processes [default: the scenario's, or 4]
    #[arg(long, value_name = "COUNT")]
    n: Option<u32>,
    /// Byzantine processes tolerated: n must be at least 3f + 1 [default: the scenario's, or the most that n allows]
    #[arg(long, value_name = "COUNT")]
    f: Option<u32>,
    /// The last round that processes send [default: the scenario's, or 1000]
    #[arg(long, value_name = "ROUND")]
    rounds: Option<u64>,
    /// The delay D between a quorum and the next round, such as "1 ms" [default: the scenario's, or 0 s]
    #[arg(long, value_name = "TIME")]
    delay: Option<Span>,
    /// Run the algorithm as printed in the paper, which is known to fail
    #[arg(long)]
    printed: bool,
    /// A process that sends different messages to different receivers; may be given several times
    #[arg(long, value_name = "PROCESS")]
    two_faced: Vec<u32>,
    /// A fault, with the keys that faults have in a scenario; may be given several times
    #[arg(long, value_name = "KEYS")]
    fault: Vec<PlannedFault>,
    /// The seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write the run as a log into this directory, which must not hold one
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
}

#[derive(Serialize)]
struct SimulateReport<'a> {
    n: u32,
    f: u32,
    rounds: u64,
    seed: u64,
    #[serde(flatten)]
    outcome: &'a SimulationOutcome,
    log: Option<&'a Path>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let (spec, directory) = spec(args)?;
    let simulation = Simulation::new(&spec, &directory, args.seed).map_err(failure)?;
    let mut progress = Progress::new();
    let mut watch = |messages| progress.show(|| format!("{messages} messages"));
    let outcome = match &args.log {
        Some(log) => simulation.run_to_log(log, &mut watch),
        None => simulation.run(&mut Unobserved, &mut watch),
    };
    let outcome = outcome.map_err(failure)?;
    drop(progress);
    let Spec { n, f, rounds, .. } = spec;
    let report = SimulateReport { n, f, rounds, seed: args.seed, outcome: &outcome, log: args.log.as_deref() };
    global.answer(&report, || render(&report))?;
    if outcome.unfinished.is_empty() { Ok(()) } else { Err(Failure::silent(Failure::FAILED)) }
}

fn failure(error: SimulationError) -> Failure {
    match error {
        SimulationError::Sense(_) | SimulationError::Syntax(_) => Failure::usage(error.to_string()),
        _ => Failure::from(error.to_string()),
    }
}

/// The scenario, with the options of the command line, and the directory of its files.
fn spec(args: &Args) -> Result<(Spec, PathBuf), Failure> {
    let (mut spec, directory) = match &args.scenario {
        None => (Spec::default(), PathBuf::from(".")),
        Some(path) => {
            let complaint = |why: String| Failure::usage(format!("{}: {why}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| complaint(error.to_string()))?;
            let spec = Spec::parse(&text).map_err(|error| complaint(error.to_string()))?;
            (spec, path.parent().unwrap_or(Path::new(".")).to_owned())
        }
    };
    spec.n = args.n.unwrap_or(spec.n);
    // A scenario says for how many faulty processes it is made.
    let default = if args.scenario.is_some() { spec.f } else { Quorum::most_faulty(spec.n) };
    spec.f = args.f.unwrap_or(default);
    spec.rounds = args.rounds.unwrap_or(spec.rounds);
    spec.delay = args.delay.map_or(spec.delay, ffclock_sim::scenario::Length);
    if args.printed {
        spec.form = AlgorithmForm::Printed;
    }
    spec.faults.extend(args.two_faced.iter().map(|&process| PlannedFault::two_faced(process)));
    spec.faults.extend(args.fault.iter().cloned());
    Ok((spec, directory))
}

fn render(report: &SimulateReport<'_>) -> String {
    let outcome = report.outcome;
    let mut text = format!(
        "n = {}, f = {}, seed {}: {} messages in {:.6} s, {}, clocks at most {} apart\n",
        report.n,
        report.f,
        report.seed,
        outcome.perceived,
        outcome.end_ps as f64 * 1e-12,
        sent_rounds(report),
        outcome.precision
    );
    let faults = [
        (outcome.lost, "lost"),
        (outcome.duplicated, "duplicated"),
        (outcome.held, "held back"),
        (outcome.missed, "for processes that were not there"),
    ];
    for (count, what) in faults.iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{count} messages {what}");
    }
    if !outcome.unfinished.is_empty() {
        let _ = writeln!(text, "STOPPED: correct processes {:?} did not come to the last round", outcome.unfinished);
    }
    if let Some(log) = report.log {
        let _ = writeln!(text, "log: {}", log.display());
    }
    text
}

/// Up to which round the correct processes have sent. After the last one they switch once more, and send nothing.
fn sent_rounds(report: &SimulateReport<'_>) -> String {
    let sent = |round: u64| round.min(report.rounds);
    match (sent(report.outcome.least_round), sent(report.outcome.greatest_round)) {
        (least, greatest) if least == greatest => format!("{least} rounds"),
        (least, greatest) => format!("{least} to {greatest} rounds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theta::tests::theta;
    use clap::Parser;

    fn ended(words: &[&str]) -> Result<(), Failure> {
        theta(&[&["simulate", "--json"], words].concat())
    }

    #[test]
    fn a_run_ends_well() {
        assert_eq!(ended(&["--rounds", "50"]), Ok(()));
        assert_eq!(ended(&["--n", "7", "--f", "2", "--rounds", "50", "--two-faced", "5", "--delay", "1 ms"]), Ok(()));
    }

    #[test]
    fn wrong_usage_says_why() {
        for (words, part) in [
            (&["--n", "6", "--f", "2"][..], "at least 3f + 1 = 7"),
            (&["--delay=-1 s"], "between 0 s and 1000 s"),
            (&["--two-faced", "9"], "there is no process 9"),
            (&["--scenario", "no-such-file.toml"], "no-such-file.toml"),
        ] {
            let failure = ended(words).unwrap_err();
            assert_eq!(failure.code, Failure::USAGE, "{failure}");
            assert!(failure.message.contains(part), "{failure}");
        }
    }

    /// As many as were asked for, although processes then switch once more.
    #[test]
    fn the_rounds_that_were_sent_are_counted() {
        let text = |least_round, greatest_round| {
            let outcome = SimulationOutcome { least_round, greatest_round, ..SimulationOutcome::default() };
            render(&SimulateReport { n: 4, f: 1, rounds: 800, seed: 1, outcome: &outcome, log: None })
        };
        assert!(text(801, 801).contains(", 800 rounds,"), "{}", text(801, 801));
        assert!(text(3, 801).contains(", 3 to 800 rounds,"), "{}", text(3, 801));
    }

    #[test]
    fn as_many_are_tolerated_as_can_be_unless_it_is_said() {
        let sizes = |words: &[&str]| {
            let cli = Words::try_parse_from([&["simulate"], words].concat()).unwrap();
            spec(&cli.args).map(|(spec, _)| (spec.n, spec.f)).unwrap()
        };
        assert_eq!([sizes(&[]), sizes(&["--n", "7"]), sizes(&["--n", "3"])], [(4, 1), (7, 2), (3, 0)]);
        assert_eq!(sizes(&["--n", "7", "--f", "1"]), (7, 1));
    }

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn what_stands_still_is_named() {
        let outcome = SimulationOutcome { unfinished: vec![2], lost: 7, ..SimulationOutcome::default() };
        let log = Some(Path::new("here"));
        let text = render(&SimulateReport { n: 4, f: 1, rounds: 800, seed: 1, outcome: &outcome, log });
        assert!(text.contains("STOPPED: correct processes [2]") && text.contains("7 messages lost"), "{text}");
        assert!(text.contains("log: here"), "{text}");
    }
}
