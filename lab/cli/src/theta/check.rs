//! `ffclock-lab theta check`.

use super::Sizes;
use crate::progress::Progress;
use crate::{Failure, GlobalOptions};
use ffclock_theta::algorithm::{AlgorithmForm, Quorum};
use ffclock_theta::check::{
    AdversaryCampaign, CampaignOutcome, CheckBounds, CheckBoundsError, CheckVerdict, Effort, Exploration,
    SimulationCampaign, SimulationCampaignOutcome, explore_deliveries, explore_switches,
};
use ffclock_theta::simulate::Spec;
use serde::Serialize;
use std::fmt::Write;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab theta check --n 4 --f 1
  $ ffclock-lab theta check --printed --n 7 --f 2
  $ ffclock-lab theta check --n 10 --f 3 --rounds 4 --campaign 1000000
  $ ffclock-lab theta check --n 7 --f 2 --window 2 --campaign-rounds 24
  $ ffclock-lab theta check --every-delivery 0 --rounds 0 --campaign 0 --simulations 100000
  $ ffclock-lab theta check --n 4 --f 1 --json | jq .switches.verdict

Exit code 1 if the algorithm can stop or do what it must not: this is the case with --printed from f = 2 on. docs/theta-run.md describes
what the explorations cover.")]
pub(super) struct Args {
    #[command(flatten)]
    sizes: Sizes,
    /// Check the algorithm as printed in the paper, which is known to fail, instead of the repaired one
    #[arg(long)]
    printed: bool,
    /// Explore with one step for each switch, until processes reach this round; 0 leaves this out
    #[arg(long, value_name = "ROUND", default_value_t = 6)]
    rounds: u64,
    /// Explore with one step for each delivery, until processes reach this round; 0 leaves this out [default: 3 for n
    /// <= 4, otherwise 0]
    #[arg(long, value_name = "ROUND")]
    every_delivery: Option<u64>,
    /// Number of runs with random adversaries
    #[arg(long, value_name = "RUNS", default_value_t = 10_000)]
    campaign: u64,
    /// The round to which random adversaries run
    #[arg(long, value_name = "ROUND", default_value_t = 12)]
    campaign_rounds: u64,
    /// Number of simulated runs, as `theta simulate` makes them, whose events are held to the rules; 0 leaves this out
    #[arg(long, value_name = "RUNS", default_value_t = 1000)]
    simulations: u64,
    /// The last round of the simulated runs
    #[arg(long, value_name = "ROUND", default_value_t = 5)]
    simulation_rounds: u64,
    /// Have processes remember a window of this many rounds (1, 2, 4, 8, 16, 32 or 64), and of later ones only the
    /// newest of each sender. For random adversaries and, without --printed, for every delivery; leaves out --rounds
    /// [default: as in real runs, up to 64]
    #[arg(long, value_name = "ROUNDS", value_parser = window, conflicts_with = "rounds")]
    window: Option<usize>,
    /// The seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Give up an exploration beyond this many states
    #[arg(long, value_name = "STATES", default_value_t = 2_000_000)]
    states: usize,
}

#[derive(Serialize)]
struct CheckReport {
    n: u32,
    f: u32,
    form: AlgorithmForm,
    /// Rounds that processes remember one by one; absent: as in real runs.
    window: Option<usize>,
    switches: Option<Exploration>,
    deliveries: Option<Exploration>,
    campaign: Option<CampaignOutcome>,
    simulations: Option<SimulationCampaignOutcome>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let quorum = args.sizes.quorum()?;
    let (n, f) = (quorum.processes(), quorum.faulty());
    let form = if args.printed { AlgorithmForm::Printed } else { AlgorithmForm::Repaired };
    let window = args.window;
    let bounds = |last_round| CheckBounds { quorum, form, last_round, window };
    let every_delivery = every_delivery(args)?;
    let rounds = if window.is_some() { 0 } else { args.rounds };
    let report = CheckReport {
        n,
        f,
        form,
        window,
        // Its bounds are the narrower ones: if they are exceeded, it fails before anything takes long.
        deliveries: explore(bounds(every_delivery), args.states, explore_deliveries)?,
        switches: explore(bounds(rounds), args.states, explore_switches)?,
        campaign: campaign(
            &AdversaryCampaign { bounds: bounds(args.campaign_rounds), seed: args.seed },
            args.campaign,
        )?,
        simulations: simulations(args, quorum, form)?,
    };
    global.answer(&report, || render(&report))?;
    if report.is_bad() { Err(Failure::silent(Failure::FAILED)) } else { Ok(()) }
}

/// A number of rounds that a window can have.
fn window(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok().filter(|rounds: &usize| rounds.is_power_of_two() && *rounds <= 64);
    rounds.ok_or_else(|| "must be 1, 2, 4, 8, 16, 32 or 64".to_owned())
}

/// To which round every delivery is explored. What the printed form forgets at the end of its window is no part of a
/// state there.
fn every_delivery(args: &Args) -> Result<u64, Failure> {
    let forgets = args.printed && args.window.is_some();
    match args.every_delivery {
        Some(1..) if forgets => Err(Failure::usage(
            "--every-delivery cannot explore the printed form with a --window: leave one of the three out",
        )),
        Some(rounds) => Ok(rounds),
        None => Ok(if args.sizes.n <= 4 && !forgets { 3 } else { 0 }),
    }
}

type Explore = fn(CheckBounds, &mut Effort<'_>) -> Result<Exploration, CheckBoundsError>;

fn explore(bounds: CheckBounds, states_max: usize, explore: Explore) -> Result<Option<Exploration>, Failure> {
    if bounds.last_round == 0 {
        return Ok(None);
    }
    let mut progress = Progress::new();
    let mut watch = |states| progress.show(|| format!("{states} states"));
    explore(bounds, &mut Effort { states_max, watch: &mut watch }).map(Some).map_err(usage)
}

fn usage(error: CheckBoundsError) -> Failure {
    Failure::usage(error.to_string())
}

fn campaign(campaign: &AdversaryCampaign, runs: u64) -> Result<Option<CampaignOutcome>, Failure> {
    let mut outcome = CampaignOutcome::default();
    let mut progress = Progress::new();
    for number in 0..runs {
        campaign.run(number, &mut outcome).map_err(usage)?;
        if number.is_multiple_of(256) {
            progress.show(|| format!("{number} of {runs} runs"));
        }
    }
    Ok((runs > 0).then_some(outcome))
}

fn simulations(args: &Args, quorum: Quorum, form: AlgorithmForm) -> Result<Option<SimulationCampaignOutcome>, Failure> {
    let (n, f) = (quorum.processes(), quorum.faulty());
    let spec = Spec { n, f, form, rounds: args.simulation_rounds, ..Spec::default() };
    let campaign = SimulationCampaign { spec, seed: args.seed };
    let mut outcome = SimulationCampaignOutcome::default();
    let mut progress = Progress::new();
    for number in 0..args.simulations {
        campaign.run(number, &mut outcome).map_err(|error| Failure::usage(error.to_string()))?;
        if number.is_multiple_of(64) {
            progress.show(|| format!("{number} of {} simulated runs", args.simulations));
        }
    }
    Ok((args.simulations > 0).then_some(outcome))
}

impl CheckReport {
    fn is_bad(&self) -> bool {
        let explorations = [&self.switches, &self.deliveries].into_iter().flatten();
        let mut verdicts = explorations.map(|exploration| exploration.verdict);
        verdicts.any(|verdict| matches!(verdict, CheckVerdict::Stops | CheckVerdict::Violated(_)))
            || self.campaign.as_ref().is_some_and(|outcome| !outcome.is_clean())
            || self.simulations.as_ref().is_some_and(|outcome| !outcome.is_clean())
    }
}

fn render(report: &CheckReport) -> String {
    let form = match report.form {
        AlgorithmForm::Repaired => "repaired",
        AlgorithmForm::Printed => "as printed",
    };
    let window = report.window.map_or_else(String::new, |rounds| format!(", with a window of {rounds} rounds"));
    let mut text = format!("n = {}, f = {}, {form}{window}\n", report.n, report.f);
    render_exploration(&mut text, "every switch", report.switches.as_ref());
    render_exploration(&mut text, "every delivery", report.deliveries.as_ref());
    if let Some(outcome) = &report.campaign {
        let CampaignOutcome { runs, deliveries, stopped, violated, .. } = outcome;
        let _ = writeln!(text, "random: {runs} runs, {deliveries} deliveries: {stopped} stopped, {violated} violated");
        if let Some((seed, _, _)) = &outcome.first_bad {
            let _ = writeln!(text, "  the first of them alone: --seed {seed} --campaign 1 --json");
        }
    }
    if let Some(outcome) = &report.simulations {
        let SimulationCampaignOutcome { runs, messages, switches, stopped, broken, .. } = outcome;
        let _ = writeln!(
            text,
            "simulated: {runs} runs, {messages} messages, {switches} switches: {stopped} stopped, {broken} broke the rules"
        );
        if let Some((seed, said)) = &outcome.first_bad {
            let _ = writeln!(text, "  the first of them alone: --seed {seed} --simulations 1");
            for said in said {
                let _ = writeln!(text, "  {said}");
            }
        }
    }
    text
}

fn render_exploration(text: &mut String, name: &str, exploration: Option<&Exploration>) {
    let Some(Exploration { verdict, states, steps, last_round, witness }) = exploration else { return };
    let verdict = match verdict {
        CheckVerdict::Holds => "holds: never stops, never misled".to_owned(),
        CheckVerdict::Unfinished => "nothing wrong so far; given up at the limit of states (--states)".to_owned(),
        CheckVerdict::Stops => "STOPS forever".to_owned(),
        CheckVerdict::Violated(violation) => format!("VIOLATED: {violation:?}"),
    };
    let _ = writeln!(text, "{name} to round {last_round}: {states} states, {steps} steps: {verdict}");
    if let Some(witness) = witness {
        let _ = write!(text, "{witness}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theta::tests::theta;

    fn ended(words: &[&str]) -> Result<(), Failure> {
        theta(&[&["check", "--json", "--simulations", "20"], words].concat())
    }

    #[test]
    fn the_exit_code_is_the_verdict() {
        assert_eq!(ended(&["--n", "4", "--f", "1", "--every-delivery", "2", "--campaign", "100"]), Ok(()));
        let printed = ended(&["--printed", "--n", "7", "--f", "2", "--campaign", "0"]);
        assert_eq!(printed, Err(Failure::silent(Failure::FAILED)));
    }

    /// The printed form stops at f = 1 only where what lies beyond the window is forgotten; of 20,000 seeds with a
    /// window of 2 this is the first.
    #[test]
    fn a_window_is_what_processes_remember() {
        let campaign = |words: &[&str]| {
            let all = ["--n", "4", "--f", "1", "--campaign-rounds", "40", "--seed", "2520", "--campaign", "1"];
            ended(&[&all[..], words].concat())
        };
        assert_eq!(campaign(&["--every-delivery", "0", "--rounds", "0", "--printed"]), Ok(()));
        assert_eq!(campaign(&["--window", "2", "--printed"]), Err(Failure::silent(Failure::FAILED)));
        assert_eq!(campaign(&["--window", "2", "--every-delivery", "2"]), Ok(()));
    }

    #[test]
    fn only_windows_that_there_can_be_are_taken() {
        for rounds in ["0", "3", "128", "x"] {
            assert!(window(rounds).is_err(), "{rounds}");
        }
        assert_eq!([window("1"), window("64")], [Ok(1), Ok(64)]);
        let failure = ended(&["--window", "2", "--printed", "--every-delivery", "2"]).unwrap_err();
        assert_eq!(failure.code, Failure::USAGE);
    }

    #[test]
    fn bad_sizes_and_depths_are_wrong_usage() {
        for (words, part) in [
            (&["--n", "6", "--f", "2"][..], "at least 3f + 1 = 7"),
            (&["--n", "0", "--f", "0"], "at least one process"),
            (&["--every-delivery", "0", "--rounds", "1"], "at least 2"),
            (&["--every-delivery", "0", "--rounds", "99"], "too much"),
            (&["--n", "10", "--f", "3", "--every-delivery", "4"], "too much"),
        ] {
            let failure = ended(words).unwrap_err();
            assert_eq!(failure.code, Failure::USAGE);
            assert!(failure.message.contains(part), "{failure}");
        }
    }

    #[test]
    fn a_witness_is_shown() {
        let quorum = Quorum::new(7, 2).unwrap();
        let bounds = CheckBounds { quorum, form: AlgorithmForm::Printed, last_round: 4, window: None };
        let switches = explore(bounds, 100_000, explore_switches).unwrap();
        let report = CheckReport {
            n: 7,
            f: 2,
            form: AlgorithmForm::Printed,
            window: None,
            switches,
            deliveries: None,
            campaign: None,
            simulations: None,
        };
        let text = render(&report);
        assert!(text.contains("STOPS forever") && text.contains("4 < 5 of (init,2) 2 < 3 of (init,3)"), "{text}");
    }
}
