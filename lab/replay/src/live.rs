//! A clock that was compared with the truth while it ran: its figures beside their goals.

use ffclock_statistics::Sorted;
use ffclock_units::Status;
use serde::Serialize;

/// One comparison of a clock with the truth, at the very same counter reading.
#[derive(Clone, Copy, Debug)]
pub struct LiveSample {
    /// Since the start of the run [s].
    pub t_s: f64,
    /// Published clock - truth [s].
    pub error_s: f64,
    /// The published bound [s].
    pub bound_s: f64,
    /// The published bound that holds although a minority of the servers is false [s].
    pub bound_strict_s: f64,
    /// The published combined standard uncertainty [s].
    pub uncertainty_s: f64,
    /// The part of it that exchanges show [s].
    pub noise_s: f64,
    /// Whether the truth lay within the bound, in exact arithmetic, but for the width of the comparison itself.
    pub contained: bool,
    /// The same for the strict bound.
    pub contained_strict: bool,
    /// The published status.
    pub status: Status,
    /// Difference clock's period / true mean period - 1, where the truth has a known rate.
    pub rate_error_ppm: Option<f64>,
}

/// The samples of one clock in one run.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// The name of the clock in the table.
    pub name: &'static str,
    /// All comparisons, in their order.
    pub samples: Vec<LiveSample>,
    /// The number of readings that the page refused after it had given one.
    pub refused: u64,
}

/// One figure of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is about.
    pub name: String,
    /// Its value; none if nothing was measured.
    pub value: Option<f64>,
    /// The unit of `value` and `goal`.
    pub unit: &'static str,
    /// The largest value that is good enough, where one is asked for.
    pub goal: Option<f64>,
    /// Whether the goal is met, where there is one.
    pub met: Option<bool>,
}

impl Figure {
    /// A figure without a goal.
    pub fn new(name: String, value: Option<f64>, unit: &'static str) -> Self {
        Figure { name, value, unit, goal: None, met: None }
    }

    /// The same figure with a goal. What was not measured does not meet it.
    #[must_use]
    pub fn at_most(mut self, goal: f64) -> Self {
        self.goal = Some(goal);
        self.met = Some(self.value.is_some_and(|value| value <= goal));
        self
    }
}

/// The times of a run [s since its start].
#[derive(Clone, Copy, Debug)]
pub struct LiveSchedule {
    /// The clock is settled from here on.
    pub warm_until: f64,
    /// The server is cut off.
    pub cut_at: f64,
    /// The server is back.
    pub back_at: f64,
    /// The run ends.
    pub end: f64,
}

/// After the server is back the next poll has yet to be answered.
const REJOINING_S: f64 = 1.0;

impl LiveSchedule {
    fn connected(&self, t_s: f64) -> bool {
        t_s < self.cut_at || t_s >= self.back_at + REJOINING_S
    }
}

impl LiveRun {
    /// The figures of the clock in this run.
    pub fn figures(&self, schedule: &LiveSchedule) -> Vec<Figure> {
        let is_settled = |sample: &&LiveSample| sample.t_s >= schedule.warm_until && schedule.connected(sample.t_s);
        let settled: Vec<LiveSample> = self.samples.iter().filter(is_settled).copied().collect();
        let sorted = |figure: fn(&LiveSample) -> f64| Sorted::of(settled.iter().map(figure));
        let errors = sorted(|sample| sample.error_s);
        let iqr = errors.quantile(0.75).zip(errors.quantile(0.25)).map(|(high, low)| high - low);
        let apart = self.samples.iter().filter(|sample| !schedule.connected(sample.t_s));
        let outside = self.samples.iter().filter(|sample| !sample.contained).count();
        let rate = settled.last().and_then(|sample| sample.rate_error_ppm).map(f64::abs);
        let figure = |text: &str, value: Option<f64>, unit: &'static str| {
            Figure::new(format!("{text}, {} stamps", self.name), value, unit)
        };
        vec![
            figure("error IQR while connected, after 30 s", iqr, "s"),
            figure("largest error while connected, after 30 s", largest_error(settled.iter()), "s"),
            figure("readings outside the bound", Some(outside as f64), ""),
            figure("median error", errors.quantile(0.5), "s"),
            figure("median bound", sorted(|sample| sample.bound_s).quantile(0.5), "s"),
            figure("median uncertainty", sorted(|sample| sample.uncertainty_s).quantile(0.5), "s"),
            figure("largest error while cut off", largest_error(apart), "s"),
            figure("time to the first reading within 10 us", self.first_within(10e-6), "s"),
            figure("rate error of the difference clock at the end", rate, "ppm"),
            figure("readings refused after the first", Some(self.refused as f64), ""),
            figure("comparisons", Some(self.samples.len() as f64), ""),
        ]
    }

    fn first_within(&self, limit: f64) -> Option<f64> {
        self.samples.iter().find(|sample| sample.error_s.abs() < limit).map(|sample| sample.t_s)
    }
}

fn largest_error<'a>(samples: impl Iterator<Item = &'a LiveSample>) -> Option<f64> {
    samples.map(|sample| sample.error_s.abs()).reduce(f64::max)
}

/// The goals of the first three figures, which a quiet link with kernel stamps must reach.
pub fn set_goals(figures: &mut [Figure]) {
    for (figure, goal) in figures.iter_mut().zip([1.5e-6, 15e-6, 0.0]) {
        *figure = figure.clone().at_most(goal);
    }
}

/// Whether no reading of any clock was ever outside its bound, and there were readings at all.
pub fn bound_held<'a>(runs: impl IntoIterator<Item = &'a LiveRun>) -> bool {
    let held = |run: &LiveRun| !run.samples.is_empty() && run.samples.iter().all(|sample| sample.contained);
    runs.into_iter().all(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: LiveSchedule = LiveSchedule { warm_until: 2.0, cut_at: 6.0, back_at: 8.0, end: 10.0 };

    fn sample(t_s: f64, error_s: f64) -> LiveSample {
        LiveSample {
            t_s,
            error_s,
            bound_s: 1e-3,
            bound_strict_s: 1e-3,
            uncertainty_s: 1e-6,
            noise_s: 1e-7,
            contained: error_s.abs() <= 1e-3,
            contained_strict: error_s.abs() <= 1e-3,
            status: Status::Synchronised,
            rate_error_ppm: Some(-t_s),
        }
    }

    fn run(errors: &[(f64, f64)]) -> LiveRun {
        let samples = errors.iter().map(|(t_s, error_s)| sample(*t_s, *error_s)).collect();
        LiveRun { name: "kernel", samples, refused: 0 }
    }

    /// The warm-up, the time without the server and one second after it do not count for the clock that is connected.
    #[test]
    fn each_figure_is_made_of_its_part_of_the_run() {
        let run = run(&[(0.0, 90e-6), (3.0, 1e-6), (4.0, -2e-6), (5.0, 3e-6), (7.0, 50e-6), (8.5, 60e-6), (9.5, 2e-6)]);
        let figures = run.figures(&SCHEDULE);
        let value = |begin: &str| figures.iter().find(|figure| figure.name.starts_with(begin)).unwrap().value;
        assert_eq!(value("largest error while connected"), Some(3e-6));
        assert_eq!(value("largest error while cut off"), Some(60e-6));
        assert_eq!(value("median error"), Some(1.5e-6));
        assert_eq!(value("time to the first reading within 10 us"), Some(3.0));
        assert_eq!(value("rate error"), Some(9.5));
        assert_eq!((value("comparisons"), value("readings outside")), (Some(7.0), Some(0.0)));
        assert!(figures.iter().all(|figure| figure.name.ends_with(", kernel stamps")));
    }

    #[test]
    fn a_bound_that_was_never_judged_did_not_hold() {
        assert!(!bound_held(&[run(&[])]));
        assert!(bound_held(&[run(&[(1.0, 1e-3)])]));
        assert!(!bound_held(&[run(&[(1.0, 1e-3)]), run(&[(1.0, -1.1e-3)])]));
    }

    #[test]
    fn goals_are_for_the_first_three_figures() {
        let mut figures = run(&[(3.0, 1e-6), (4.0, 20e-6)]).figures(&SCHEDULE);
        set_goals(&mut figures);
        let met: Vec<Option<bool>> = figures.iter().map(|figure| figure.met).take(4).collect();
        assert_eq!(met, [Some(false), Some(false), Some(true), None]);
        assert_eq!(Figure::new("x".into(), None, "s").at_most(1.0).met, Some(false));
    }
}
