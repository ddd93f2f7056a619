//! The goals of the learned estimator, and what the scenarios show of them.
//!
//! Every figure is a median over the seeds, made scenario by scenario; a goal for several scenarios takes the geometric
//! mean or the worst of them. The tags of the scenarios say which goals they are for. Where the path is asymmetric, p99
//! and largest errors are without that constant bias, which is the same for every clock and which none can see: with it
//! all ratios would tend to one.

mod calibration;
mod escapes;
mod hidden;
mod medians;
mod scales;
mod several;
mod signals;

use crate::scenario::{NAMES, Tag};
use crate::{Cast, ORACLES, Run, RunResult, Scenario, ScenarioError, Sinks};
pub use escapes::{CampaignContainment, Escape};
pub use medians::Medians;
use medians::{MedianKey, ScenarioRuns};
use serde::Serialize;
use std::collections::BTreeMap;

/// The clocks that a run for the goals needs in a world of one server.
const JUDGED: [&str; 7] = ["classic", "learned", "pi", "pll", "regression", "oracle", "smoother"];

/// The scenarios that the goals need: the built-in ones, and what is made of them for worlds of several servers.
///
/// # Errors
/// A built-in scenario is wrong.
pub fn needed() -> Result<Vec<String>, ScenarioError> {
    let mut all = Vec::new();
    for name in NAMES {
        let (is_run, made) = several::made_of(name, &Scenario::named(name)?);
        all.extend(is_run.then(|| name.to_owned()));
        all.extend(made);
    }
    Ok(all)
}

/// The clocks that a run of this scenario needs.
pub fn judged(scenario: &Scenario) -> Vec<&str> {
    if crate::signals::names_in(scenario).is_some() {
        return crate::clocks_in(scenario);
    }
    if scenario.servers.is_empty() {
        return if several::needs_learned_only(scenario) { vec!["learned"] } else { JUDGED.to_vec() };
    }
    several::judged(scenario)
}

/// Makes a run for the goals.
pub fn execute(run: &Run<'_>, cast: &Cast<'_>) -> RunResult {
    if run.scenario.tags.contains(&Tag::Past) {
        run.execute_with_past(cast)
    } else {
        run.execute_as(cast, Sinks::default())
    }
}

/// What no scenario may exceed over the best feedback clock, and over the causal oracle.
const WORST_IQR: f64 = 0.9;
const WORST_P99: f64 = 1.05;
const OVER_ORACLE: f64 = 1.15;

/// The side of its limit on which a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At most the limit.
    AtMost,
    /// At least the limit.
    AtLeast,
}

/// One goal and its figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// The subject.
    pub about: &'static str,
    /// The figure; none if no run shows it. Seconds, s/s, or a ratio.
    pub measured: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// The side of the limit on which the figure must lie.
    pub side: Side,
    /// `us`, `ppm`, or nothing for a ratio or a share.
    pub unit: &'static str,
    /// The scenario that the figure comes from, or the number of scenarios in it.
    pub from: String,
    /// The worst of the runs whose median the figure is; none of ratios and of figures of many scenarios.
    pub worst: Option<WorstRun>,
    /// Whether it is met; none if no run shows it.
    pub met: Option<bool>,
}

/// A run that a median hides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstRun {
    /// Its figure, in the unit of the goal's.
    pub measured: f64,
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
}

/// All runs, by scenario.
#[derive(Debug, Default)]
pub struct Campaign(BTreeMap<String, Vec<RunResult>>);

impl Campaign {
    /// Takes in a run.
    pub fn admit(&mut self, result: RunResult) {
        self.0.entry(result.scenario.clone()).or_default().push(result);
    }

    /// The medians of each scenario of one server that is judged by itself.
    pub fn medians(&self) -> Vec<Medians> {
        let by_itself =
            |(_, runs): &(&str, ScenarioRuns)| runs.is_of_one() && !runs.tags().contains(&Tag::SeveralAlike);
        self.scenarios().filter(by_itself).map(|(scenario, runs)| runs.medians(scenario)).collect()
    }

    fn scenarios(&self) -> impl Iterator<Item = (&str, ScenarioRuns<'_>)> {
        self.0.iter().map(|(scenario, runs)| (scenario.as_str(), ScenarioRuns(runs)))
    }

    fn tagged(&self, tag: Tag) -> impl Iterator<Item = (&str, ScenarioRuns<'_>)> {
        self.scenarios().filter(move |(_, runs)| runs.tags().contains(&tag))
    }

    /// How often the bound held the truth, over all runs in which the claims that it rests on hold.
    pub fn containment(&self) -> CampaignContainment {
        let rests = |run: &&RunResult| !run.tags.contains(&Tag::LyingServer) && !run.tags.contains(&Tag::HiddenLiar);
        CampaignContainment::of(self.0.values().flatten().filter(rests))
    }

    /// The table of goals.
    pub fn goals(&self) -> Vec<Goal> {
        let medians = self.medians();
        let single: Vec<Goal> = SINGLE.iter().map(|single| self.worst_of(single)).collect();
        let of_one = [against_rivals(&medians), against_the_oracle(&medians), single, self.outage(), claims(&medians)];
        let of_several = [self.goals_of_several(), self.goals_of_calibration()].concat();
        [of_one.concat(), self.scales(), self.daily_waves(), of_several, self.goals_of_signals()].concat()
    }

    /// Goals about two hours without the server.
    fn outage(&self) -> Vec<Goal> {
        let at_the_end = MedianKey { clock: ORACLES[0], figure: "net-max", window: "end" };
        let largest =
            |runs: ScenarioRuns, window| runs.median(MedianKey { clock: "learned", figure: "net-max", window });
        let recovery = |runs: ScenarioRuns| Some(largest(runs, "recovered")? / largest(runs, "before")?);
        let worst = |figure: &dyn Fn(ScenarioRuns) -> Option<f64>| {
            GoalFigure::largest(
                self.tagged(Tag::Outage2h).filter_map(|(name, runs)| GoalFigure::of(figure(runs), name)),
            )
        };
        vec![
            Limit::ratio("2 h without the server: error at the end over the causal oracle's", 1.3)
                .at_most(worst(&|runs| runs.over_oracle(at_the_end))),
            Limit::ratio(
                "2 h without the server: largest error from the third poll on over that of the hours before",
                1.0,
            )
            .at_most(worst(&recovery)),
        ]
    }

    /// The median of the worst of the scenarios, and the worst run of them all.
    fn worst_of(&self, single: &SingleGoal) -> Goal {
        let tagged = || self.tagged(single.tag);
        let medians = tagged().filter_map(|(name, runs)| GoalFigure::of(runs.median(single.place), name));
        let runs = tagged().flat_map(|(_, runs)| runs.0).filter_map(|run| {
            Some(WorstRun { measured: single.place.of(run)?, scenario: run.scenario.clone(), seed: run.seed })
        });
        let worst = runs.max_by(|one, other| one.measured.total_cmp(&other.measured));
        Goal { worst, ..single.limit.at_most(GoalFigure::largest(medians)) }
    }
}

/// A figure with its origin: a scenario, or the number of scenarios in it.
struct GoalFigure {
    value: f64,
    from: String,
}

impl GoalFigure {
    fn of(value: Option<f64>, scenario: &str) -> Option<Self> {
        Some(GoalFigure { value: value?, from: scenario.to_owned() })
    }

    fn largest(each: impl Iterator<Item = GoalFigure>) -> Option<GoalFigure> {
        each.max_by(|one, other| one.value.total_cmp(&other.value))
    }

    fn smallest(each: impl Iterator<Item = GoalFigure>) -> Option<GoalFigure> {
        each.min_by(|one, other| one.value.total_cmp(&other.value))
    }

    /// The geometric mean.
    fn mean(each: impl Iterator<Item = GoalFigure>) -> Option<GoalFigure> {
        let logs: Vec<f64> = each.map(|one| one.value).filter(|ratio| *ratio > 0.0).map(libm::log).collect();
        let count = logs.len();
        let value = (count > 0).then(|| libm::exp(logs.iter().sum::<f64>() / count as f64))?;
        Some(GoalFigure { value, from: format!("{count} scenarios") })
    }
}

/// What a goal is about, and its limit.
#[derive(Clone, Copy)]
struct Limit {
    about: &'static str,
    value: f64,
    unit: &'static str,
}

impl Limit {
    const fn ratio(about: &'static str, value: f64) -> Self {
        Limit { about, value, unit: "" }
    }

    const fn error(about: &'static str, seconds: f64) -> Self {
        Limit { about, value: seconds, unit: "us" }
    }

    fn at_most(self, figure: Option<GoalFigure>) -> Goal {
        let met = figure.as_ref().map(|figure| figure.value <= self.value);
        self.judged(Side::AtMost, figure, met)
    }

    fn at_least(self, figure: Option<GoalFigure>) -> Goal {
        let met = figure.as_ref().map(|figure| figure.value >= self.value);
        self.judged(Side::AtLeast, figure, met)
    }

    fn judged(self, side: Side, figure: Option<GoalFigure>, met: Option<bool>) -> Goal {
        let (measured, from) = figure.map_or((None, "not run".to_owned()), |figure| (Some(figure.value), figure.from));
        Goal { about: self.about, measured, limit: self.value, side, unit: self.unit, from, worst: None, met }
    }
}

/// A goal about the learned clock in scenarios of one kind: a limit for the median over the seeds in each of them.
struct SingleGoal {
    limit: Limit,
    tag: Tag,
    place: MedianKey<'static>,
}

const fn largest_in(window: &'static str) -> MedianKey<'static> {
    MedianKey { clock: "learned", figure: "net-max", window }
}

const SINGLE: [SingleGoal; 7] = [
    SingleGoal {
        limit: Limit::error("start-up: largest error from 8 s after the first request on", 20e-6),
        tag: Tag::StartUp,
        place: largest_in("soon"),
    },
    SingleGoal {
        limit: Limit::error("start-up: largest error from the end of the burst on", 100e-6),
        tag: Tag::StartUp,
        place: largest_in("burst"),
    },
    SingleGoal {
        limit: Limit::error("start-up: largest error after 60 s", 20e-6),
        tag: Tag::StartUp,
        place: largest_in("minutes"),
    },
    SingleGoal {
        limit: Limit { about: "difference clock: rate error over 1000 s after 6 h, p99", value: 0.02e-6, unit: "ppm" },
        tag: Tag::DifferenceClock,
        place: MedianKey { clock: "learned", figure: "difference-p99", window: "" },
    },
    SingleGoal {
        limit: Limit::error("server wrong by 150 ms or 1 s for 5 min: largest error", 10e-6),
        tag: Tag::WrongServer,
        place: largest_in("around"),
    },
    SingleGoal {
        limit: Limit::error("route change of 0.9 ms, symmetric: largest error", 10e-6),
        tag: Tag::RouteBothWays,
        place: largest_in(""),
    },
    SingleGoal {
        limit: Limit::error("route change of 0.9 ms in one direction: largest error", 10e-6),
        tag: Tag::RouteOneWay,
        place: largest_in(""),
    },
];

/// One figure of each scenario that has it.
fn each<'a>(
    medians: impl Iterator<Item = &'a Medians>,
    figure: impl Fn(&Medians) -> Option<f64>,
) -> impl Iterator<Item = GoalFigure> {
    medians.filter_map(move |one| GoalFigure::of(figure(one), &one.scenario))
}

fn against_rivals(medians: &[Medians]) -> Vec<Goal> {
    let compared = || medians.iter().filter(|one| !one.tags.contains(&Tag::Unknowable));
    let iqr = || each(compared(), |one| one.iqr_over_rivals);
    let p99 = || each(compared(), |one| one.net_p99_over_rivals);
    let misses = |oracle: Option<f64>, limit: f64| oracle.is_some_and(|oracle| oracle > limit);
    let iqr_missed = compared().filter(|one| misses(one.oracle_iqr_over_rivals, WORST_IQR));
    let p99_missed = compared().filter(|one| misses(one.oracle_net_p99_over_rivals, WORST_P99));
    // Where the oracle misses a goal, the oracle is the goal.
    let instead = |about: &'static str, worst: Option<GoalFigure>| {
        worst.map(|worst| Limit::ratio(about, OVER_ORACLE).at_most(Some(worst)))
    };
    let goals = [
        Some(Limit::ratio("IQR over the best feedback clock, geometric mean", 0.35).at_most(GoalFigure::mean(iqr()))),
        Some(Limit::ratio("p99 over the best feedback clock, geometric mean", 0.5).at_most(GoalFigure::mean(p99()))),
        Some(
            Limit::ratio("IQR over the best feedback clock, worst scenario", WORST_IQR)
                .at_most(GoalFigure::largest(iqr())),
        ),
        instead(
            "the same where the causal oracle misses it: IQR over the oracle's",
            GoalFigure::largest(each(iqr_missed, |one| one.iqr_over_oracle)),
        ),
        Some(
            Limit::ratio("p99 over the best feedback clock, worst scenario", WORST_P99)
                .at_most(GoalFigure::largest(p99())),
        ),
        instead(
            "the same where the causal oracle misses it: p99 over the oracle's",
            GoalFigure::largest(each(p99_missed, |one| one.net_p99_over_oracle)),
        ),
    ];
    goals.into_iter().flatten().collect()
}

fn against_the_oracle(medians: &[Medians]) -> Vec<Goal> {
    let ratio = |one: &Medians| one.iqr_over_oracle;
    let congested = each(medians.iter().filter(|one| one.tags.contains(&Tag::Congested)), ratio);
    let usual = |one: &&Medians| !one.tags.contains(&Tag::Unknowable) && !one.tags.contains(&Tag::Congested);
    let usual = || each(medians.iter().filter(usual), ratio);
    vec![
        Limit::ratio("IQR over the causal oracle, geometric mean", OVER_ORACLE).at_most(GoalFigure::mean(usual())),
        Limit::ratio("IQR over the causal oracle, worst scenario", OVER_ORACLE).at_most(GoalFigure::largest(usual())),
        Limit::ratio("IQR over the causal oracle, worst under heavy congestion", 1.3)
            .at_most(GoalFigure::largest(congested)),
    ]
}

/// Goals about the clock's own claims.
fn claims(medians: &[Medians]) -> Vec<Goal> {
    let honest = || medians.iter().filter(|one| !one.tags.contains(&Tag::LyingServer));
    // An asymmetry that shows itself is no part of the noise.
    let knowable = || honest().filter(|one| !one.tags.contains(&Tag::Unknowable));
    vec![
        Limit::ratio("share of readings inside the bound, worst seed of all", 1.0)
            .at_least(GoalFigure::smallest(each(honest(), |one| one.containment))),
        Limit::ratio("share of readings within twice the noise, worst scenario", 0.95)
            .at_least(GoalFigure::smallest(each(knowable(), |one| one.calibration))),
        Limit::ratio("twice the noise over what 95 % of the readings need, worst scenario", 2.0)
            .at_most(GoalFigure::largest(each(knowable(), |one| one.width))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, scenario};

    #[test]
    fn every_goal_has_built_in_scenarios() {
        let tags: Vec<Tag> = scenario::NAMES.iter().flat_map(|name| Scenario::named(name).unwrap().tags).collect();
        let count = |tag: Tag| tags.iter().filter(|each| **each == tag).count();
        let counts = [Tag::Congested, Tag::Unknowable, Tag::LyingServer, Tag::StartUp, Tag::RouteBothWays].map(count);
        assert_eq!(counts, [7, 3, 4, 5, 2]);
        let counts = [Tag::RouteOneWay, Tag::WrongServer, Tag::Outage2h, Tag::DifferenceClock].map(count);
        assert_eq!(counts, [4, 2, 1, 1]);
        let counts = [Tag::Liars, Tag::HiddenLiar, Tag::SeveralAlike, Tag::DrawnAsymmetry, Tag::SoftHump].map(count);
        assert_eq!(counts, [20, 6, 5, 4, 2]);
        assert_eq!([Tag::DailyWave, Tag::Past, Tag::HardwareStamps, Tag::Pulses].map(count), [2, 5, 3, 2]);
        let needed = needed().unwrap();
        assert!(needed.iter().all(|name| Scenario::named(name).is_ok()));
        assert_eq!(needed.len(), scenario::NAMES.len() + 20 + 6 + 5 * 7);
    }

    #[test]
    fn where_the_oracle_misses_a_goal_it_is_the_goal() {
        let one = |scenario: &str, oracle: f64, ours: f64| Medians {
            scenario: scenario.to_owned(),
            seeds: 1,
            iqr_over_rivals: Some(oracle * ours),
            net_p99_over_rivals: Some(0.5),
            iqr_over_oracle: Some(ours),
            oracle_iqr_over_rivals: Some(oracle),
            oracle_net_p99_over_rivals: Some(0.5),
            ..Medians::default()
        };
        let goals = against_rivals(&[one("reached", 0.89, 1.2), one("missed", 0.91, 1.1)]);
        let instead: Vec<&Goal> = goals.iter().filter(|goal| goal.about.starts_with("the same")).collect();
        assert_eq!((instead.len(), instead[0].from.as_str(), instead[0].met), (1, "missed", Some(true)));
        let worst =
            goals.iter().find(|goal| goal.about.starts_with("IQR") && goal.about.ends_with("worst scenario")).unwrap();
        assert_eq!((worst.from.as_str(), worst.met), ("reached", Some(false)));
    }

    #[test]
    fn a_campaign_fills_the_rows_that_it_can() {
        let text = "extends = \"start-50ppm\"\nabout = \"x\"\ntags = [\"start-up\"]\nduration = \"1 h\"\n[windows]\nhours = [\"30 min\", \"1 h\"]\n";
        let scenario = Scenario::parse("start-50ppm", text).unwrap();
        let mut campaign = Campaign::default();
        for seed in 1..=3 {
            let run = Run { name: "start-50ppm", scenario: &scenario, seed };
            campaign.admit(run.execute_with(&["learned", "pi", "pll", "regression"], None));
        }
        let goals = campaign.goals();
        let find = |about: &str| goals.iter().find(|goal| goal.about.starts_with(about)).unwrap();
        let start = find("start-up: largest error after 60 s");
        assert!(start.met == Some(start.measured.unwrap() <= 20e-6) && start.from == "start-50ppm");
        // The median of three is not their largest.
        let worst = start.worst.as_ref().unwrap();
        assert!(worst.measured > start.measured.unwrap() && (1..=3).contains(&worst.seed), "{start:?}");
        let runs = &campaign.0["start-50ppm"];
        assert_eq!(Some(worst.measured), runs.iter().filter_map(|run| largest_in("minutes").of(run)).reduce(f64::max));
        assert_eq!((find("2 h without").measured, find("2 h without").met), (None, None));
        let medians = &campaign.medians()[0];
        assert_eq!((medians.seeds, medians.iqr_over_oracle), (3, None));
        let ratio = find("IQR over the best feedback clock, geometric mean").measured.unwrap();
        assert!((ratio / medians.iqr_over_rivals.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(find("share of readings inside").measured, medians.containment);
    }
}
