//! Goals of the combined standard uncertainty, in worlds whose asymmetries are drawn from the prior that it contains.
//!
//! Each seed draws one asymmetry, so that the readings of a run are nearly all within or all without: only the mean
//! over the seeds says whether the uncertainty is right. That the noise, which is the rest of it, is right, another
//! goal says for each run.

use super::medians::{MedianKey, ScenarioRuns};
use super::{Campaign, Goal, GoalFigure, Limit};
use crate::ENSEMBLES;
use crate::scenario::Tag;

/// The clocks that state an uncertainty: that of one server of several, and that of all of them together.
const CLOCKS: [&str; 2] = [ENSEMBLES[0], ENSEMBLES[3]];

impl Campaign {
    /// The rows about the combined standard uncertainty.
    pub(super) fn goals_of_calibration(&self) -> Vec<Goal> {
        let smallest = |figure: fn(ScenarioRuns, &'static str) -> Option<f64>| {
            let tagged = self.tagged(Tag::DrawnAsymmetry);
            let each = tagged.flat_map(|(name, runs)| CLOCKS.map(|clock| (name, figure(runs, clock))));
            GoalFigure::smallest(each.filter_map(|(name, value)| GoalFigure::of(value, name)))
        };
        vec![
            Limit::ratio("asymmetries drawn from the prior: share of readings within twice the uncertainty", 0.95)
                .at_least(smallest(|runs, clock| mean(figures(runs, clock, "combined-calibration")))),
            Limit::ratio("asymmetries drawn from the prior: root mean square of the error over the uncertainty", 0.5)
                .at_least(smallest(|runs, clock| {
                    let squares = figures(runs, clock, "over-uncertainty").map(|over| over * over);
                    mean(squares).map(libm::sqrt)
                })),
        ]
    }
}

/// A figure of a clock, of every run.
fn figures(runs: ScenarioRuns<'_>, clock: &'static str, figure: &'static str) -> impl Iterator<Item = f64> {
    let key = MedianKey { clock, figure, window: "" };
    runs.0.iter().filter_map(move |run| key.of(run))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}
