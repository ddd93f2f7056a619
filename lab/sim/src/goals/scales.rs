//! Goals at every time scale: old stamps, intervals of any length, and the waves of a day.

use super::medians::{MedianKey, RIVALS, ScenarioRuns, median};
use super::{Campaign, Goal, GoalFigure, Limit};
use crate::scenario::Tag;
use ffclock_replay::{AgeErrors, LengthErrors, PastErrors, PastReport};

/// One percentile of errors.
type Percentile = fn(&PastErrors) -> f64;

const PERCENTILES: [Percentile; 2] = [|errors| errors.p50, |errors| errors.p99];

impl Campaign {
    /// What the clock says of the past.
    pub(super) fn scales(&self) -> Vec<Goal> {
        let [p50, p99] = PERCENTILES;
        let intervals = |percentile| self.past(move |past| over_better(past, percentile));
        let stamps = |percentile| self.past(move |past| over_fresh(past, percentile));
        vec![
            Limit::ratio("intervals of 1 ms to 1 day: error over the better of both clocks, p50, worst length", 1.1)
                .at_most(intervals(p50)),
            Limit::ratio("intervals of 1 ms to 1 day: error over the better of both clocks, p99, worst length", 1.1)
                .at_most(intervals(p99)),
            Limit::ratio("stamps of up to a day: error over that of a fresh one, p50, worst age", 2.0)
                .at_most(stamps(p50)),
            Limit::ratio("stamps of up to a day: error over that of a fresh one, p99, worst age", 2.0)
                .at_most(stamps(p99)),
            Limit::ratio("old stamps and intervals: share inside the bound, worst of all", 1.0)
                .at_least(self.least_inside()),
        ]
    }

    /// For each age or length the median of the runs' ratios; the worst of these in the worst scenario.
    fn past(&self, ratios: impl Fn(&PastReport) -> Vec<(f64, f64)>) -> Option<GoalFigure> {
        let worst = |runs: ScenarioRuns| {
            let all: Vec<(f64, f64)> = runs.0.iter().filter_map(|run| run.past.as_ref()).flat_map(&ratios).collect();
            let at = |place: f64| median(all.iter().filter(|one| one.0 == place).map(|one| one.1));
            all.iter().filter_map(|one| Some((one.0, at(one.0)?))).max_by(|one, other| one.1.total_cmp(&other.1))
        };
        let each = self.tagged(Tag::Past).filter_map(|(name, runs)| {
            let (place, value) = worst(runs)?;
            Some(GoalFigure { value, from: format!("{name}, {place} s") })
        });
        GoalFigure::largest(each)
    }

    fn least_inside(&self) -> Option<GoalFigure> {
        let inside = |past: &PastReport| {
            let stamps = past.stamps.iter().map(|ages| ages.inside);
            stamps.chain(past.intervals.iter().map(|lengths| lengths.inside)).reduce(f64::min)
        };
        let least =
            |runs: ScenarioRuns| runs.0.iter().filter_map(|run| run.past.as_ref()).filter_map(inside).reduce(f64::min);
        let each = self.tagged(Tag::Past).filter_map(|(name, runs)| GoalFigure::of(least(runs), name));
        GoalFigure::smallest(each)
    }

    /// A wave of a day with a peak of 1 ppm, which ordinary crystals have.
    pub(super) fn daily_waves(&self) -> Vec<Goal> {
        let restarts = |runs: ScenarioRuns| {
            let learned = runs.0.iter().flat_map(|run| &run.clocks).filter(|clock| clock.name == "learned");
            learned.filter_map(|clock| clock.restarts).max().map(|most| most as f64)
        };
        let largest = |runs: ScenarioRuns, clock| runs.median(MedianKey { clock, figure: "net-max", window: "" });
        let over_rivals = |runs: ScenarioRuns| {
            let best = RIVALS.into_iter().filter_map(|rival| largest(runs, rival)).min_by(f64::total_cmp)?;
            Some(largest(runs, "learned")? / best)
        };
        let worst = |figure: &dyn Fn(ScenarioRuns) -> Option<f64>| {
            let each = self.tagged(Tag::DailyWave);
            GoalFigure::largest(each.filter_map(|(name, runs)| GoalFigure::of(figure(runs), name)))
        };
        vec![
            Limit::ratio("daily wave of 1 ppm: restarts of the filter, worst run", 0.0).at_most(worst(&restarts)),
            Limit::ratio("daily wave of 1 ppm: largest error over the best feedback clock, worst scenario", 0.9)
                .at_most(worst(&over_rivals)),
        ]
    }
}

/// By length, the error of what is published over that of the better of both clocks.
fn over_better(past: &PastReport, of: Percentile) -> Vec<(f64, f64)> {
    let ratio = |one: &LengthErrors| of(&one.elapsed) / of(&one.difference).min(of(&one.absolute));
    past.intervals.iter().map(|one| (one.length_s, ratio(one))).collect()
}

/// By age, the error of a stamp over that of the youngest.
fn over_fresh(past: &PastReport, of: Percentile) -> Vec<(f64, f64)> {
    let Some(fresh) = past.stamps.first().map(|youngest| of(&youngest.newest_line)) else { return Vec::new() };
    let ratio = |one: &AgeErrors| of(&one.history) / fresh;
    past.stamps.iter().map(|one| (one.age_s, ratio(one))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_compared_with_the_better_clock_and_an_age_with_the_youngest() {
        let errors = |p50: f64| PastErrors { p50, p99: 3.0 * p50 };
        let age = |age_s: f64, p50: f64| AgeErrors {
            age_s,
            history: errors(p50),
            newest_line: errors(1e-6),
            bound_s: 1e-3,
            inside: 1.0,
        };
        let length = |length_s: f64, [difference, absolute, elapsed]: [f64; 3]| LengthErrors {
            length_s,
            difference: errors(difference),
            absolute: errors(absolute),
            elapsed: errors(elapsed),
            bound_s: 1e-3,
            uncertainty_s: 1e-6,
            inside: 1.0,
        };
        let past = PastReport {
            stamps: vec![age(4.0, 1e-6), age(16.0, 4e-6)],
            intervals: vec![length(1.0, [1e-6, 2e-6, 2e-6]), length(16.0, [4e-6, 2e-6, 2e-6])],
            critical_s: None,
        };
        let rounded = |ratios: Vec<(f64, f64)>| -> Vec<(f64, f64)> {
            ratios.into_iter().map(|(place, ratio)| (place, (ratio * 1e6).round() / 1e6)).collect()
        };
        for percentile in PERCENTILES {
            assert_eq!(rounded(over_better(&past, percentile)), [(1.0, 2.0), (16.0, 1.0)]);
            assert_eq!(rounded(over_fresh(&past, percentile)), [(4.0, 1.0), (16.0, 4.0)]);
        }
    }
}
