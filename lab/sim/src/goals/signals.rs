//! Goals about hardware stamps of PTP and about pulses, which are no conversations with a server.

use super::medians::{MedianKey, ScenarioRuns};
use super::{Campaign, Goal, GoalFigure, Limit};
use crate::scenario::Tag;
use crate::signals::{OPTIMUM, SERVOS};

/// An error of the rate [s/s].
const fn rate(about: &'static str, limit: f64) -> Limit {
    Limit { about, value: limit, unit: "ppm" }
}

impl Campaign {
    /// The rows about them.
    pub(super) fn goals_of_signals(&self) -> Vec<Goal> {
        let iqr = |runs: ScenarioRuns, clock| runs.median(MedianKey { clock, figure: "iqr", window: "" });
        let over = |rival: &'static str| {
            self.worst_tagged(Tag::HardwareStamps, move |_, runs| Some(iqr(runs, "learned")? / iqr(runs, rival)?))
        };
        let [gains, regression] = SERVOS;
        let over_optimum =
            |tag| self.worst_tagged(tag, move |_, runs| Some(iqr(runs, "learned")? / iqr(runs, OPTIMUM)?));
        vec![
            Limit::ratio("PTP with hardware stamps: IQR over ptp4l with its gains, worst scenario", 0.6)
                .at_most(over(gains)),
            Limit::ratio("PTP with hardware stamps: IQR over ptp4l with linreg, worst scenario", 0.6)
                .at_most(over(regression)),
            Limit::ratio("PTP with hardware stamps: IQR over the best that any clock could have, worst scenario", 1.15)
                .at_most(over_optimum(Tag::HardwareStamps)),
            Limit::error("pulses with 1 us of jitter: IQR, worst scenario", 0.3e-6).at_most(self.of_pulses("iqr")),
            rate("pulses with 1 us of jitter: rate error over 1000 s after 1 h, p99", 1e-9)
                .at_most(self.of_pulses("rate-p99")),
            rate("pulses with 1 us of jitter: the same of the difference clock", 1e-9)
                .at_most(self.of_pulses("difference-p99")),
            Limit::ratio(
                "pulses with 1 us of jitter: IQR over the best that any clock could have, worst scenario",
                1.15,
            )
            .at_most(over_optimum(Tag::Pulses)),
        ]
    }

    /// A figure of the learned clock, of the worst scenario.
    fn of_pulses(&self, figure: &'static str) -> Option<GoalFigure> {
        let place = MedianKey { clock: "learned", figure, window: "" };
        self.worst_tagged(Tag::Pulses, move |_, runs| runs.median(place))
    }
}
