//! The goals of the learned estimator, and what the scenarios say of them.
//!
//! Every figure is a median over the seeds, made scenario by scenario; what a goal asks of several scenarios is then the geometric mean or
//! the worst of them. Where the path is asymmetric, p99 and largest errors are without that constant bias, which is the same for
//! every clock and which none can see: with it all ratios would tend to one.

use crate::RunResult;
use ffclock_statistics::percentile;
use serde::Serialize;
use std::collections::BTreeMap;

/// The clocks that a run for the goals needs.
pub const JUDGED: [&str; 7] = ["classic", "learned", "pi", "pll", "regression", "oracle", "smoother"];
/// The feedback clocks that the learned one must beat.
const RIVALS: [&str; 3] = ["pi", "pll", "regression"];
/// Worlds under heavy congestion, in which the oracle may be farther ahead.
const CONGESTED: [&str; 6] =
    ["lan-congested", "lan-congested-forward", "bursts", "lan-markov", "lan-self-similar", "far-congested-forward"];
/// Worlds in which no clock can be near the truth: the server lies for hours without anything to tell it by, or the route turns out to have
/// been asymmetric.
const UNKNOWABLE: [&str; 3] = ["server-drift", "server-smear", "route-exposes-asymmetry"];
/// Worlds in which the server's claim about itself does not hold.
const LYING: [&str; 4] = ["server-drift", "server-smear", "server-wrong-150ms", "server-wrong-1s"];
const STARTS: [&str; 3] = ["start-0ppm", "start-50ppm", "start-100ppm"];
const SYMMETRIC: [&str; 2] = ["route-up", "route-down"];
const ONE_SIDED: [&str; 4] = ["route-up-forward", "route-up-backward", "route-down-forward", "route-down-backward"];
const WRONG: [&str; 2] = ["server-wrong-150ms", "server-wrong-1s"];

/// What no scenario may exceed over the best feedback clock, and over the causal oracle.
const WORST_IQR: f64 = 0.9;
const WORST_P99: f64 = 1.05;
const OVER_ORACLE: f64 = 1.15;

/// Which way a figure must lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// At most the limit.
    AtMost,
    /// At least the limit.
    AtLeast,
}

/// One goal and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goal {
    /// What it is about.
    pub about: &'static str,
    /// The figure; none if no run says anything about it. Seconds, s/s, or a ratio.
    pub measured: Option<f64>,
    /// What is asked.
    pub limit: f64,
    /// On which side of it.
    pub side: Side,
    /// `us`, `ppm`, or nothing for a ratio or a share.
    pub unit: &'static str,
    /// The scenario that the figure comes from, or how many went into it.
    pub from: String,
    /// The worst of the runs whose median the figure is; none of ratios and of figures of many scenarios.
    pub worst: Option<WorstRun>,
    /// Whether it is met; none if no run says anything about it.
    pub met: Option<bool>,
}

/// A run that a median hides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstRun {
    /// Its figure, in the unit of the goal's.
    pub measured: f64,
    /// Which scenario.
    pub scenario: String,
    /// With which seed.
    pub seed: u64,
}

/// The medians over the seeds of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Medians {
    /// Which scenario.
    pub scenario: String,
    /// How many seeds.
    pub seeds: usize,
    /// Of the learned clock [s].
    pub iqr: Option<f64>,
    /// 99th percentile of the size of the error, without the path's asymmetry [s].
    pub net_p99: Option<f64>,
    /// Largest error, without it [s].
    pub net_max: Option<f64>,
    /// 99th percentile of the rate error over 1000 s.
    pub rate_p99: Option<f64>,
    /// Learned over the best feedback clock.
    pub iqr_over_rivals: Option<f64>,
    /// The same.
    pub net_p99_over_rivals: Option<f64>,
    /// Which feedback clock has the smallest IQR.
    pub best_rival: Option<&'static str>,
    /// Learned over the causal oracle, run by run.
    pub iqr_over_oracle: Option<f64>,
    /// The same.
    pub net_p99_over_oracle: Option<f64>,
    /// Learned over the oracle that sees the future too, run by run.
    pub iqr_over_smoother: Option<f64>,
    /// The causal oracle over the best feedback clock, in the runs with an oracle, median over median.
    pub oracle_iqr_over_rivals: Option<f64>,
    /// The same.
    pub oracle_net_p99_over_rivals: Option<f64>,
    /// The smallest share of readings inside the bound, of any seed and either feed-forward clock.
    pub containment: Option<f64>,
    /// Share of readings within twice the uncertainty.
    pub calibration: Option<f64>,
    /// Twice the uncertainty over what would do.
    pub width: Option<f64>,
}

/// So many of the worst runs are named.
const WORST: usize = 20;

/// A run in which a bound did not hold the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Escape {
    /// Which scenario.
    pub scenario: String,
    /// With which seed.
    pub seed: u64,
    /// Which clock.
    pub clock: String,
    /// At how many readings.
    pub outside: u64,
    /// The largest error of the run [s].
    pub largest: Option<f64>,
}

/// How often bounds held the truth.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Containment {
    /// Runs in which the server's claim about itself holds.
    pub runs: u64,
    /// Simulated hours of these runs.
    pub hours: f64,
    /// Readings with a bound, of both feed-forward clocks.
    pub readings: u64,
    /// Those whose bound did not hold the truth.
    pub outside: u64,
    /// The runs with the most of these.
    pub worst: Vec<Escape>,
}

/// All runs, by scenario.
#[derive(Debug, Default)]
pub struct Campaign(BTreeMap<String, Vec<RunResult>>);

/// A figure of a clock, and in which window.
type Place<'a> = (&'a str, &'a str, &'a str);

fn of(run: &RunResult, (clock, figure, window): Place) -> Option<f64> {
    let clock = run.clocks.iter().find(|result| result.name == clock)?;
    clock.windows.iter().find(|result| result.name == window)?.figure(figure)
}

impl Campaign {
    /// Takes in a run.
    pub fn admit(&mut self, result: RunResult) {
        self.0.entry(result.scenario.clone()).or_default().push(result);
    }

    /// The medians of each scenario.
    pub fn medians(&self) -> Vec<Medians> {
        self.0.keys().map(|scenario| self.medians_of(scenario)).collect()
    }

    fn values(&self, scenario: &str, place: Place) -> impl Iterator<Item = f64> {
        self.0.get(scenario).into_iter().flatten().filter_map(move |run| of(run, place))
    }

    fn median(&self, scenario: &str, place: Place) -> Option<f64> {
        median(&self.values(scenario, place).collect::<Vec<_>>())
    }

    fn best_rival(&self, scenario: &str, figure: &str) -> Option<(f64, &'static str)> {
        let each = RIVALS.into_iter().filter_map(|rival| Some((self.median(scenario, (rival, figure, ""))?, rival)));
        each.min_by(|one, other| one.0.total_cmp(&other.0))
    }

    fn over(&self, scenario: &str, figure: &str, other: Option<f64>) -> Option<f64> {
        Some(self.median(scenario, ("learned", figure, ""))? / other?)
    }

    /// The median of the ratio to the oracle, run by run: both see the same packets, and after a long silence what they err by is one
    /// draw of the oscillator, which is nearly the same for both and different with every seed.
    fn over_oracle(&self, scenario: &str, (oracle, figure, window): (&str, &str, &str)) -> Option<f64> {
        let runs = self.0.get(scenario).into_iter().flatten();
        let ratio = |run: &RunResult| Some(of(run, ("learned", figure, window))? / of(run, (oracle, figure, window))?);
        median(&runs.filter_map(ratio).collect::<Vec<_>>())
    }

    /// Of the seeds that the oracle was run with, its median over that of the best feedback clock.
    fn oracle_over_rivals(&self, scenario: &str, figure: &str) -> Option<f64> {
        let runs =
            || self.0.get(scenario).into_iter().flatten().filter(|run| of(run, ("oracle", figure, "")).is_some());
        let middle = |clock: &str| median(&runs().filter_map(|run| of(run, (clock, figure, ""))).collect::<Vec<_>>());
        let best = RIVALS.into_iter().filter_map(middle).min_by(f64::total_cmp)?;
        Some(middle("oracle")? / best)
    }

    fn medians_of(&self, scenario: &str) -> Medians {
        let learned = |figure| self.median(scenario, ("learned", figure, ""));
        let rival = |figure| self.best_rival(scenario, figure).map(|best| best.0);
        let contained = |clock| self.values(scenario, (clock, "containment", ""));
        Medians {
            scenario: scenario.to_owned(),
            seeds: self.0.get(scenario).map_or(0, Vec::len),
            iqr: learned("iqr"),
            net_p99: learned("net-p99"),
            net_max: learned("net-max"),
            rate_p99: learned("rate-p99"),
            iqr_over_rivals: self.over(scenario, "iqr", rival("iqr")),
            net_p99_over_rivals: self.over(scenario, "net-p99", rival("net-p99")),
            best_rival: self.best_rival(scenario, "iqr").map(|best| best.1),
            iqr_over_oracle: self.over_oracle(scenario, ("oracle", "iqr", "")),
            net_p99_over_oracle: self.over_oracle(scenario, ("oracle", "net-p99", "")),
            iqr_over_smoother: self.over_oracle(scenario, ("smoother", "iqr", "")),
            oracle_iqr_over_rivals: self.oracle_over_rivals(scenario, "iqr"),
            oracle_net_p99_over_rivals: self.oracle_over_rivals(scenario, "net-p99"),
            containment: contained("learned").chain(contained("classic")).reduce(f64::min),
            calibration: learned("calibration"),
            width: learned("width"),
        }
    }

    /// How often the bound held the truth, over all runs in which the server's claim about itself holds.
    pub fn containment(&self) -> Containment {
        let mut sum = Containment::default();
        let honest = self.0.iter().filter(|(scenario, _)| !LYING.contains(&scenario.as_str()));
        for run in honest.flat_map(|(_, runs)| runs) {
            sum.runs += 1;
            sum.hours += run.duration_s / 3600.0;
            for name in ["classic", "learned"] {
                let whole = run.clocks.iter().find(|clock| clock.name == name).and_then(|clock| clock.windows.first());
                let Some((whole, share)) = whole.and_then(|whole| Some((whole, whole.containment?))) else { continue };
                let claimed = whole.readings as f64 * (1.0 - whole.unread);
                let outside = (claimed * (1.0 - share)).round() as u64;
                sum.readings += claimed.round() as u64;
                sum.outside += outside;
                if outside > 0 {
                    let (scenario, seed) = (run.scenario.clone(), run.seed);
                    sum.worst.push(Escape { scenario, seed, clock: name.to_owned(), outside, largest: whole.max });
                }
            }
        }
        sum.worst.sort_by(|one, other| {
            (other.outside, &one.scenario, one.seed).cmp(&(one.outside, &other.scenario, other.seed))
        });
        sum.worst.truncate(WORST);
        sum
    }

    /// The table of goals.
    pub fn goals(&self) -> Vec<Goal> {
        let medians = self.medians();
        [against_rivals(&medians), against_the_oracle(&medians), self.single(), claims(&medians)].concat()
    }

    /// Goals about single scenarios.
    fn single(&self) -> Vec<Goal> {
        let outage = "disconnection-2h";
        let from_outage = |figure: Option<f64>| Some((figure?, outage.to_owned()));
        let end = from_outage(self.over_oracle(outage, ("oracle", "net-max", "end")));
        let largest_in = |window| self.median(outage, ("learned", "net-max", window));
        let recovered =
            from_outage(largest_in("recovered").zip(largest_in("before")).map(|(after, before)| after / before));
        let about_end = "2 h without the server: error at the end over the causal oracle's";
        let about_recovery =
            "2 h without the server: largest error from the third poll on over that of the hours before";
        let outages = [at_most(about_end, (1.3, ""), end), at_most(about_recovery, (1.0, ""), recovered)];
        SINGLE.iter().map(|single| self.worst_of(single)).chain(outages).collect()
    }

    /// The median of the worst of the scenarios, and the worst run of them all.
    fn worst_of(&self, single: &Single) -> Goal {
        let medians =
            single.scenarios.iter().filter_map(|name| Some((self.median(name, single.place)?, (*name).to_owned())));
        let runs = single.scenarios.iter().filter_map(|name| self.0.get(*name)).flatten();
        let runs = runs.filter_map(|run| {
            Some(WorstRun { measured: of(run, single.place)?, scenario: run.scenario.clone(), seed: run.seed })
        });
        let worst = runs.max_by(|one, other| one.measured.total_cmp(&other.measured));
        let median = medians.max_by(|one, other| one.0.total_cmp(&other.0));
        Goal { worst, ..at_most(single.about, single.limit, median) }
    }
}

/// A goal about the learned clock in scenarios of one kind: what the median over the seeds is to be, in each of them.
struct Single {
    about: &'static str,
    limit: (f64, &'static str),
    scenarios: &'static [&'static str],
    place: Place<'static>,
}

const SINGLE: [Single; 6] = [
    Single {
        about: "start-up: largest error from the end of the burst on",
        limit: (100e-6, "us"),
        scenarios: &STARTS,
        place: ("learned", "net-max", "burst"),
    },
    Single {
        about: "start-up: largest error after 60 s",
        limit: (20e-6, "us"),
        scenarios: &STARTS,
        place: ("learned", "net-max", "minutes"),
    },
    Single {
        about: "difference clock: rate error over 1000 s after 6 h, p99",
        limit: (0.02e-6, "ppm"),
        scenarios: &["difference-clock"],
        place: ("learned", "difference-p99", ""),
    },
    Single {
        about: "server wrong by 150 ms or 1 s for 5 min: largest error",
        limit: (10e-6, "us"),
        scenarios: &WRONG,
        place: ("learned", "net-max", "around"),
    },
    Single {
        about: "route change of 0.9 ms, symmetric: largest error",
        limit: (10e-6, "us"),
        scenarios: &SYMMETRIC,
        place: ("learned", "net-max", ""),
    },
    Single {
        about: "route change of 0.9 ms in one direction: largest error",
        limit: (10e-6, "us"),
        scenarios: &ONE_SIDED,
        place: ("learned", "net-max", ""),
    },
];

fn against_rivals(medians: &[Medians]) -> Vec<Goal> {
    let compared = || medians.iter().filter(|one| !UNKNOWABLE.contains(&one.scenario.as_str()));
    let iqr = |one: &Medians| one.iqr_over_rivals;
    let p99 = |one: &Medians| one.net_p99_over_rivals;
    let misses = |oracle: Option<f64>, limit: f64| oracle.is_some_and(|oracle| oracle > limit);
    let iqr_missed = compared().filter(|one| misses(one.oracle_iqr_over_rivals, WORST_IQR));
    let p99_missed = compared().filter(|one| misses(one.oracle_net_p99_over_rivals, WORST_P99));
    // Where the oracle misses a goal, the oracle is the goal.
    let instead = [
        (
            "the same where the causal oracle misses it: IQR over the oracle's",
            most(iqr_missed, |one| one.iqr_over_oracle),
        ),
        (
            "the same where the causal oracle misses it: p99 over the oracle's",
            most(p99_missed, |one| one.net_p99_over_oracle),
        ),
    ];
    let [iqr_instead, p99_instead] =
        instead.map(|(about, figure)| figure.map(|figure| at_most(about, (OVER_ORACLE, ""), Some(figure))));
    let goals = [
        Some(at_most("IQR over the best feedback clock, geometric mean", (0.35, ""), mean(compared(), iqr))),
        Some(at_most("p99 over the best feedback clock, geometric mean", (0.5, ""), mean(compared(), p99))),
        Some(at_most("IQR over the best feedback clock, worst scenario", (WORST_IQR, ""), most(compared(), iqr))),
        iqr_instead,
        Some(at_most("p99 over the best feedback clock, worst scenario", (WORST_P99, ""), most(compared(), p99))),
        p99_instead,
    ];
    goals.into_iter().flatten().collect()
}

fn against_the_oracle(medians: &[Medians]) -> Vec<Goal> {
    let known = |one: &&Medians| !UNKNOWABLE.contains(&one.scenario.as_str());
    let congested = |one: &&Medians| CONGESTED.contains(&one.scenario.as_str());
    let ratio = |one: &Medians| one.iqr_over_oracle;
    let usual = || medians.iter().filter(known).filter(|one| !congested(one));
    vec![
        at_most("IQR over the causal oracle, geometric mean", (OVER_ORACLE, ""), mean(usual(), ratio)),
        at_most("IQR over the causal oracle, worst scenario", (OVER_ORACLE, ""), most(usual(), ratio)),
        at_most(
            "IQR over the causal oracle, worst under heavy congestion",
            (1.3, ""),
            most(medians.iter().filter(congested), ratio),
        ),
    ]
}

/// What the clock says of itself.
fn claims(medians: &[Medians]) -> Vec<Goal> {
    let honest = || medians.iter().filter(|one| !LYING.contains(&one.scenario.as_str()));
    // An asymmetry that shows itself is no part of the uncertainty, which is told apart from it.
    let knowable = || honest().filter(|one| !UNKNOWABLE.contains(&one.scenario.as_str()));
    let at_least = |about, limit, figure: Option<(f64, String)>| judge(about, (limit, ""), figure, Side::AtLeast);
    vec![
        at_least("share of readings inside the bound, worst seed of all", 1.0, least(honest(), |one| one.containment)),
        at_least(
            "share of readings within twice the uncertainty, worst scenario",
            0.95,
            least(knowable(), |one| one.calibration),
        ),
        at_most(
            "twice the uncertainty over what 95 % of the readings need, worst scenario",
            (2.0, ""),
            most(knowable(), |one| one.width),
        ),
    ]
}

fn at_most(about: &'static str, limit: (f64, &'static str), figure: Option<(f64, String)>) -> Goal {
    judge(about, limit, figure, Side::AtMost)
}

fn judge(about: &'static str, (limit, unit): (f64, &'static str), figure: Option<(f64, String)>, side: Side) -> Goal {
    let met = figure.as_ref().map(|(measured, _)| match side {
        Side::AtMost => *measured <= limit,
        Side::AtLeast => *measured >= limit,
    });
    let (measured, from) = figure.map_or((None, "not run".to_owned()), |(measured, from)| (Some(measured), from));
    Goal { about, measured, limit, side, unit, from, worst: None, met }
}

/// The geometric mean, and over how many.
fn mean<'a>(each: impl Iterator<Item = &'a Medians>, of: impl Fn(&Medians) -> Option<f64>) -> Option<(f64, String)> {
    let logs: Vec<f64> = each.filter_map(of).filter(|ratio| *ratio > 0.0).map(libm::log).collect();
    let count = logs.len();
    (count > 0).then(|| (libm::exp(logs.iter().sum::<f64>() / count as f64), format!("{count} scenarios")))
}

fn most<'a>(each: impl Iterator<Item = &'a Medians>, of: impl Fn(&Medians) -> Option<f64>) -> Option<(f64, String)> {
    let figures = each.filter_map(|one| Some((of(one)?, one.scenario.clone())));
    figures.max_by(|one, other| one.0.total_cmp(&other.0))
}

fn least<'a>(each: impl Iterator<Item = &'a Medians>, of: impl Fn(&Medians) -> Option<f64>) -> Option<(f64, String)> {
    let figures = each.filter_map(|one| Some((of(one)?, one.scenario.clone())));
    figures.min_by(|one, other| one.0.total_cmp(&other.0))
}

fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, Scenario, scenario};

    #[test]
    fn every_scenario_that_a_goal_names_exists() {
        let lists = [&CONGESTED[..], &UNKNOWABLE, &LYING, &STARTS, &SYMMETRIC, &ONE_SIDED, &WRONG];
        for name in lists.concat().into_iter().chain(["disconnection-2h", "difference-clock"]) {
            assert!(scenario::NAMES.contains(&name), "{name}");
        }
        let outage = Scenario::named("disconnection-2h").unwrap();
        assert!(["before", "end", "recovered"].iter().all(|name| outage.windows.contains_key(*name)));
    }

    #[test]
    fn where_the_oracle_misses_a_goal_it_is_the_goal() {
        let one = |scenario: &str, oracle: f64, ours: f64| Medians {
            scenario: scenario.to_owned(),
            seeds: 1,
            iqr: None,
            net_p99: None,
            net_max: None,
            rate_p99: None,
            iqr_over_rivals: Some(oracle * ours),
            net_p99_over_rivals: Some(0.5),
            best_rival: None,
            iqr_over_oracle: Some(ours),
            net_p99_over_oracle: None,
            iqr_over_smoother: None,
            oracle_iqr_over_rivals: Some(oracle),
            oracle_net_p99_over_rivals: Some(0.5),
            containment: None,
            calibration: None,
            width: None,
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
        let text =
            "extends = \"start-50ppm\"\nabout = \"x\"\nduration = \"1 h\"\n[windows]\nhours = [\"30 min\", \"1 h\"]\n";
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
        assert_eq!(
            Some(worst.measured),
            campaign.values("start-50ppm", ("learned", "net-max", "minutes")).reduce(f64::max)
        );
        assert_eq!((find("2 h without").measured, find("2 h without").met), (None, None));
        let medians = &campaign.medians()[0];
        assert_eq!((medians.seeds, medians.iqr_over_oracle), (3, None));
        let ratio = find("IQR over the best feedback clock, geometric mean").measured.unwrap();
        assert!((ratio / medians.iqr_over_rivals.unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(find("share of readings inside").measured, medians.containment);
    }
}
