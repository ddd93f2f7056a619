//! Goals of the clock of several servers.
//!
//! What an oracle is for one server is here *one server of the same kind that is asked n times as often*: as many
//! packets on as good a path, and no question whom to believe.

use super::medians::{MedianKey, ScenarioRuns};
use super::{Campaign, Goal, GoalFigure, Limit};
use crate::scenario::{NAMES, Tag};
use crate::{BeliefResult, ENSEMBLES, RunResult, Scenario, clocks_in};

/// The clock under test, and those that it must beat.
const OURS: &str = ENSEMBLES[0];
const RIVALS: [&str; 2] = [ENSEMBLES[2], ENSEMBLES[3]];
/// How many servers of one kind, and with how many on paths whose asymmetry is drawn the bounds are compared.
const COUNTS: std::ops::RangeInclusive<usize> = 2..=5;
const BOUNDS_COUNT: usize = 5;

/// The scenarios that are made of a built-in one for the goals, and whether it is run itself.
pub(super) fn made_of(name: &str, scenario: &Scenario) -> (bool, Vec<String>) {
    if scenario.tags.contains(&Tag::SeveralAlike) {
        return (false, COUNTS.flat_map(|count| [several(name, count), often(name, count)]).collect());
    }
    let is_compared = [Tag::Liars, Tag::HiddenLiar].iter().any(|tag| scenario.tags.contains(tag));
    (true, if is_compared { vec![honest(name)] } else { Vec::new() })
}

/// Whether a world of one server serves only to be compared with one of several.
pub(super) fn needs_learned_only(scenario: &Scenario) -> bool {
    scenario.tags.contains(&Tag::SeveralAlike)
}

/// The clocks that a run with several servers needs: ours, where rivals count these as well, and where bounds are
/// compared those that ask one server alone.
pub(super) fn judged(scenario: &Scenario) -> Vec<&str> {
    if scenario.tags.contains(&Tag::SeveralAlike) {
        return [OURS].into_iter().chain(RIVALS).collect();
    }
    if scenario.tags.contains(&Tag::DrawnAsymmetry) && scenario.servers.len() == BOUNDS_COUNT {
        return clocks_in(scenario).into_iter().filter(|name| *name == OURS || !ENSEMBLES.contains(name)).collect();
    }
    vec![OURS]
}

fn several(name: &str, count: usize) -> String {
    format!("{name}x{count}")
}

fn often(name: &str, count: usize) -> String {
    format!("{name}/{count}")
}

pub(super) fn honest(name: &str) -> String {
    format!("{name}/honest")
}

pub(super) const fn ours(figure: &str) -> MedianKey<'_> {
    MedianKey { clock: OURS, figure, window: "" }
}

impl Campaign {
    /// The rows about several servers.
    pub(super) fn goals_of_several(&self) -> Vec<Goal> {
        [self.alike(), self.lied_to(), self.hidden(), self.changes(), self.humps()].concat()
    }

    pub(super) fn runs(&self, name: &str) -> Option<ScenarioRuns<'_>> {
        self.0.get(name).map(|runs| ScenarioRuns(runs))
    }

    /// A figure of every number of servers of every kind.
    fn each_alike<'a>(
        &'a self,
        figure: impl Fn(&str, usize) -> Option<f64> + Copy + 'a,
    ) -> impl Iterator<Item = GoalFigure> + 'a {
        let pairs = NAMES.into_iter().flat_map(|name| COUNTS.map(move |count| (name, count)));
        pairs.filter_map(move |(name, count)| GoalFigure::of(figure(name, count), &several(name, count)))
    }

    fn alike(&self) -> Vec<Goal> {
        let iqr = |name: &str, clock: &str| self.runs(name)?.median(MedianKey { clock, figure: "iqr", window: "" });
        let over_often =
            |name: &str, count: usize| Some(iqr(&several(name, count), OURS)? / iqr(&often(name, count), "learned")?);
        let over_rivals = |name: &str, count: usize| {
            let runs = several(name, count);
            let best = RIVALS.iter().filter_map(|rival| iqr(&runs, rival)).min_by(f64::total_cmp)?;
            Some(iqr(&runs, OURS)? / best)
        };
        let calibrated = |name: &str, count: usize| self.runs(&several(name, count))?.median(ours("calibration"));
        vec![
            Limit::ratio(
                "n servers of one kind: IQR over one server asked n times as often, worst of n = 2 to 5",
                1.15,
            )
            .at_most(GoalFigure::largest(self.each_alike(over_often))),
            Limit::ratio("n servers of one kind: IQR over the best of ntpd and chrony, geometric mean", 0.35)
                .at_most(GoalFigure::mean(self.each_alike(over_rivals))),
            Limit::ratio("n servers of one kind: IQR over the best of ntpd and chrony, worst", 0.9)
                .at_most(GoalFigure::largest(self.each_alike(over_rivals))),
            Limit::ratio("n servers of one kind: share of readings within twice the uncertainty, worst", 0.95)
                .at_least(GoalFigure::smallest(self.each_alike(calibrated))),
            Limit::ratio(
                "5 servers of one kind, asymmetries drawn: bound over the narrowest single one, worst kind",
                0.9,
            )
            .at_most(self.worst_tagged(Tag::DrawnAsymmetry, bound_over_narrowest)),
        ]
    }

    /// The median of the ratio, or of the difference, of the largest errors with and without liars, seed by seed.
    fn beside_honest(&self, name: &str, compare: impl Fn(f64, f64) -> f64) -> Option<f64> {
        let (with, without) = (self.runs(name)?, self.runs(&honest(name))?);
        let largest = |run: &RunResult| ours("max").of(run);
        let pair = |run: &RunResult| {
            let other = without.0.iter().find(|other| other.seed == run.seed)?;
            Some(compare(largest(run)?, largest(other)?))
        };
        super::medians::median(with.0.iter().filter_map(pair))
    }

    pub(super) fn worst_tagged(
        &self,
        tag: Tag,
        figure: impl Fn(&str, ScenarioRuns) -> Option<f64>,
    ) -> Option<GoalFigure> {
        GoalFigure::largest(self.tagged(tag).filter_map(|(name, runs)| GoalFigure::of(figure(name, runs), name)))
    }

    fn lied_to(&self) -> Vec<Goal> {
        let ratio = |name: &str, _: ScenarioRuns| self.beside_honest(name, |with, without| with / without);
        let extra = |name: &str, _: ScenarioRuns| self.beside_honest(name, |with, without| with - without);
        vec![
            Limit::ratio("a minority of servers lies: largest error over that without them, worst scenario", 1.5)
                .at_most(self.worst_tagged(Tag::Liars, ratio)),
            Limit::error("a minority of servers lies: largest error minus that without them, worst scenario", 10e-6)
                .at_most(self.worst_tagged(Tag::Liars, extra)),
            Limit::ratio("a minority of servers lies: share of the liars believed at the end", 0.0)
                .at_most(self.worst_tagged(Tag::Liars, believed_liars)),
            Limit::ratio("a minority of servers lies: share of readings inside the bound, worst seed", 1.0)
                .at_least(self.least_contained(Tag::Liars, "containment")),
            Limit::ratio("a minority of servers lies: share of readings inside the strict bound, worst seed", 1.0)
                .at_least(self.least_contained(Tag::Liars, "strict-containment")),
        ]
    }

    /// What changes of the believed servers do to readers: the worst run counts.
    fn changes(&self) -> Vec<Goal> {
        let worst = |runs: ScenarioRuns, figure: fn(&BeliefResult) -> f64| {
            runs.0.iter().filter_map(|run| beliefs(run)).map(figure).reduce(f64::max)
        };
        let over = |runs: ScenarioRuns| worst(runs, |beliefs| beliefs.largest_step_over_uncertainty);
        let all = self.scenarios().filter_map(|(name, runs)| GoalFigure::of(over(runs), name));
        let size = |_: &str, runs: ScenarioRuns| worst(runs, |beliefs| beliefs.largest_step_s);
        vec![
            Limit::ratio("change of the believed servers: step of the time over the uncertainty, worst run", 1.0)
                .at_most(GoalFigure::largest(all)),
            Limit::error("change of the believed servers on a LAN: step of the time, worst run", 10e-6)
                .at_most(self.worst_tagged(Tag::Liars, size)),
        ]
    }

    fn humps(&self) -> Vec<Goal> {
        let learned = |run: &RunResult| MedianKey { clock: "learned", figure: "median", window: "" }.of(run);
        let offset = |run: &RunResult| Some((learned(run)? - run.asymmetry_s / 2.0).abs());
        let offsets = |_: &str, runs: ScenarioRuns| super::medians::median(runs.0.iter().filter_map(offset));
        let iqr = |runs: ScenarioRuns, clock| runs.median(MedianKey { clock, figure: "iqr", window: "" });
        let over_classic = |_: &str, runs: ScenarioRuns| Some(iqr(runs, "learned")? / iqr(runs, "classic")?);
        vec![
            Limit::error("delays are a soft hump: offset from the middle of the least delays, worst scenario", 60e-6)
                .at_most(self.worst_tagged(Tag::SoftHump, offsets)),
            Limit::ratio("delays are a soft hump: IQR over that of the classic clock, worst scenario", 0.5)
                .at_most(self.worst_tagged(Tag::SoftHump, over_classic)),
        ]
    }
}

/// The median over the seeds; paths that are exactly alike prove the same interval, so that nothing could be gained.
fn bound_over_narrowest(_: &str, runs: ScenarioRuns) -> Option<f64> {
    let ratio = |run: &RunResult| {
        let bound = |clock: &str| MedianKey { clock, figure: "bound", window: "" }.of(run);
        let singles = run.servers.iter().filter_map(|server| bound(&server.name));
        Some(bound(OURS)? / singles.min_by(f64::total_cmp)?)
    };
    super::medians::median(runs.0.iter().filter(|run| run.servers.len() == BOUNDS_COUNT).filter_map(ratio))
}

pub(super) fn beliefs(run: &RunResult) -> Option<&BeliefResult> {
    run.clocks.iter().find(|clock| clock.name == OURS)?.beliefs.as_ref()
}

/// Of all liars in all runs of the scenario of this name, the share that is believed at the end.
pub(super) fn believed_liars(name: &str, runs: ScenarioRuns) -> Option<f64> {
    let scenario = Scenario::named(name).ok()?;
    let lies = |server: &str| scenario.servers.iter().any(|entry| entry.lies && entry.name == server);
    let liars = || runs.0.iter().filter_map(beliefs).flat_map(|one| &one.servers).filter(|one| lies(&one.name));
    let count = liars().count();
    (count > 0).then(|| liars().filter(|one| one.out_since_s.is_none()).count() as f64 / count as f64)
}
