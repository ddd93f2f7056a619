//! `ffclock-lab sim goals`: the goals of the learned estimator, each with what was measured.

use super::kept::Kept;
use super::pool::{Job, Jobs, Judges, Making, Seeds, jobs, run_all};
use super::{NamedScenario, open, without};
use crate::ablation::Ablation;
use crate::{Failure, GlobalOptions};
use ffclock_estimator::LearnedConfig;
use ffclock_sim::goals::{self, Campaign, CampaignContainment, Goal, Medians};
use ffclock_sim::{ORACLES, RunResult};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  $ ffclock-lab sim goals --seeds 1..20 --jobs 2
  $ ffclock-lab sim goals lan-16 wave-1000 --seeds 1..3 --oracles 1
  $ ffclock-lab sim goals queue-50us-64x3 queue-50us-64/3 --seeds 1..5
  $ ffclock-lab sim goals --seeds 1..220 --oracles 20 --keep runs.jsonl
  $ ffclock-lab sim goals lan-16 --seeds 1 --json | jq -c '.goals[] | select(.met != null)'

Exit code 1 if a goal is missed. A goal of which nothing was run is neither met nor missed.")]
pub(super) struct Args {
    /// Only these scenarios; rows about others stay empty
    names: Vec<String>,
    /// The seeds, first and last, such as `1..20`
    #[arg(long, default_value = "1..20")]
    seeds: Seeds,
    /// How many runs at a time [default: as many as there are processors]
    #[arg(long)]
    jobs: Option<Jobs>,
    /// Keep each run in this file, and reuse the runs in it that the same program has made, so that the command can be
    /// interrupted and resumed. A file with anything else in it is refused
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Run the oracles, which take most of the time, with the first N seeds only [default: with all]
    #[arg(long, value_name = "N")]
    oracles: Option<u64>,
    #[command(flatten)]
    ablation: Ablation,
}

#[derive(Serialize)]
struct GoalsAnswer {
    seeds: [u64; 2],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    goals: Vec<Goal>,
    containment: CampaignContainment,
    scenarios: Vec<Medians>,
}

pub(super) fn run(global: &GlobalOptions, args: &Args) -> Result<(), Failure> {
    let all = goals::needed().map_err(|error| Failure::from(error.to_string()))?;
    let names = if args.names.is_empty() { &all[..] } else { &args.names };
    let named: Vec<NamedScenario> = names.iter().map(|name| open(name)).collect::<Result<_, _>>()?;
    let learned = args.ablation.learned()?;
    let campaign = campaign(&named, args, &learned)?;
    let seeds = [args.seeds.0.start, args.seeds.0.end - 1];
    let (goals, containment) = (campaign.goals(), campaign.containment());
    let without = learned.left_out().into_iter().map(str::to_owned).collect();
    let answer = GoalsAnswer { seeds, without, goals, containment, scenarios: campaign.medians() };
    global.answer(&answer, || render(&answer))?;
    let missed = answer.goals.iter().any(|goal| goal.met == Some(false));
    if missed { Err(Failure::silent(Failure::FAILED)) } else { Ok(()) }
}

/// Every scenario with every seed.
fn campaign(named: &[NamedScenario], args: &Args, learned: &LearnedConfig) -> Result<Campaign, Failure> {
    let kept = args.keep.as_deref().map(Kept::open).transpose()?;
    let (mut kept, done) = kept.map_or((None, Vec::new()), |(kept, done)| (Some(kept), done));
    let seeds = args.seeds.0.clone();
    let with_oracle = |seed: u64| args.oracles.is_none_or(|first| seed - seeds.start < first);
    let judges: &Judges = &|job| {
        let all = goals::judged(job.scenario).into_iter();
        all.filter(|name| with_oracle(job.seed) || !ORACLES.contains(name)).collect()
    };
    let without = learned.left_out();
    let is_wanted = |run: &RunResult| seeds.contains(&run.seed) && run.without == without;
    let job = |run: &RunResult| named.iter().find(|one| one.name == run.scenario).map(|one| one.job(run.seed));
    let serves = |run: &RunResult| is_wanted(run) && job(run).is_some_and(|job| run.clocks.len() >= judges(&job).len());
    let made: BTreeMap<(String, u64), RunResult> =
        done.into_iter().filter(serves).map(|run| ((run.scenario.clone(), run.seed), run)).collect();
    let all: Vec<Job> = seeds.clone().flat_map(|seed| named.iter().map(move |named| named.job(seed))).collect();
    let (there, missing): (Vec<Job>, Vec<Job>) =
        all.into_iter().partition(|job| made.contains_key(&(job.name.to_owned(), job.seed)));
    let mut campaign = Campaign::default();
    for job in there {
        made.get(&(job.name.to_owned(), job.seed)).cloned().into_iter().for_each(|run| campaign.admit(run));
    }
    let mut outcome = Ok(());
    let making = Making { jobs: jobs(args.jobs), clocks: judges, learned, execute: goals::execute };
    run_all(&missing, &making, |run| {
        if let (Some(kept), Ok(())) = (&mut kept, &outcome) {
            outcome = kept.keep(&run);
        }
        campaign.admit(run);
    });
    outcome.map(|()| campaign)
}

fn render(answer: &GoalsAnswer) -> String {
    let [first, last] = answer.seeds;
    let without = without(&answer.without);
    let mut text = format!(
        "medians over the seeds {first} to {last}{without}; where runs can be compared, the worst of them\n\n{:<86}{:>12}{:>12}{:>12}\n",
        "goal", "asked", "measured", "worst run"
    );
    for goal in &answer.goals {
        let measured = goal.measured.map_or_else(|| "-".to_owned(), |measured| figure(measured, goal.unit));
        let mark = match goal.met {
            Some(true) => "met   ",
            Some(false) => "MISSED",
            None => "      ",
        };
        let asked = figure(goal.limit, goal.unit);
        let worst = goal.worst.as_ref().map_or_else(String::new, |worst| figure(worst.measured, goal.unit));
        let _ = writeln!(text, "{:<86}{asked:>12}{measured:>12}{worst:>12}  {mark}  {}", goal.about, origin(goal));
    }
    let _ = writeln!(
        text,
        "\n{:<24}{:>9}{:>9}{:>9}{:>11}{:>10}{:>10}{:>9}{:>11}{:>12}{:>11}{:>10}{:>7}  best feedback clock",
        "learned [us]",
        "iqr",
        "p99",
        "largest",
        "rate [ppb]",
        "iqr/best",
        "p99/best",
        "/oracle",
        "/smoother",
        "oracle/best",
        "inside [%]",
        "within 2u",
        "width"
    );
    answer.scenarios.iter().for_each(|one| render_scenario(&mut text, one));
    render_containment(&mut text, &answer.containment);
    text
}

/// Where the figures of a goal come from.
fn origin(goal: &Goal) -> String {
    match &goal.worst {
        None => goal.from.clone(),
        Some(worst) if worst.scenario == goal.from => format!("{}, worst seed {}", goal.from, worst.seed),
        Some(worst) => format!("{}, worst seed {} of {}", goal.from, worst.seed, worst.scenario),
    }
}

fn render_containment(text: &mut String, sum: &CampaignContainment) {
    let _ = writeln!(
        text,
        "\nbound: {} of {} readings did not hold the truth, in {} runs of {:.0} simulated hours together",
        sum.outside, sum.readings, sum.runs, sum.hours
    );
    for one in &sum.worst {
        let largest = one.largest.unwrap_or(f64::NAN) * 1e6;
        let _ = writeln!(
            text,
            "{:<24} seed {:<6} {}: {} readings, largest error {largest:.1} us",
            one.scenario, one.seed, one.clock, one.outside
        );
    }
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "us" => format!("{:.2} us", value * 1e6),
        "ppm" => format!("{:.4} ppm", value * 1e6),
        _ => format!("{value:.3}"),
    }
}

fn render_scenario(text: &mut String, one: &Medians) {
    let number =
        |value: Option<f64>, scale: f64| value.map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value * scale));
    let micros = |value| number(value, 1e6);
    let inside = one.containment.map_or_else(|| "-".to_owned(), |share| format!("{:.3}", share * 100.0));
    let _ = writeln!(
        text,
        "{:<24}{:>9}{:>9}{:>9}{:>11}{:>10}{:>10}{:>9}{:>11}{:>12}{inside:>11}{:>10}{:>7}  {}",
        one.scenario,
        micros(one.iqr),
        micros(one.net_p99),
        micros(one.net_max),
        number(one.rate_p99, 1e9),
        number(one.iqr_over_rivals, 1.0),
        number(one.net_p99_over_rivals, 1.0),
        number(one.iqr_over_oracle, 1.0),
        number(one.iqr_over_smoother, 1.0),
        number(one.oracle_iqr_over_rivals, 1.0),
        number(one.calibration, 100.0),
        number(one.width, 1.0),
        one.best_rival.unwrap_or("-")
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_sim::goals::{Side, WorstRun};

    #[test]
    fn what_was_not_run_is_neither_met_nor_missed() {
        let goals = Campaign::default().goals();
        assert!(goals.len() > 10);
        for goal in goals {
            let json = serde_json::to_value(&goal).unwrap();
            assert!(json["measured"].is_null() && json["met"].is_null(), "{json}");
        }
    }

    #[test]
    fn the_worst_run_stands_beside_the_median() {
        let goal = |worst: Option<WorstRun>| Goal {
            about: "largest error",
            measured: Some(2e-6),
            limit: 10e-6,
            side: Side::AtMost,
            unit: "us",
            from: "route-up".to_owned(),
            worst,
            met: Some(true),
        };
        let worst = |scenario: &str| Some(WorstRun { measured: 15e-6, scenario: scenario.to_owned(), seed: 7 });
        let goals = vec![goal(worst("route-up")), goal(worst("route-down")), goal(None)];
        let text = render(&GoalsAnswer {
            seeds: [1, 20],
            without: Vec::new(),
            goals,
            containment: CampaignContainment::default(),
            scenarios: Vec::new(),
        });
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("largest error")).collect();
        assert!(lines[0].contains("2.00 us    15.00 us  met     route-up, worst seed 7"), "{text}");
        assert!(lines[1].ends_with("route-up, worst seed 7 of route-down"), "{text}");
        assert!(lines[2].ends_with("2.00 us              met     route-up"), "{text}");
    }
}
