//! What a run showed: figures beside their goals, and the files for the report.

use super::sampler::{Observed, Sample};
use ffclock_counters::spread::Sorted;
use serde::Serialize;
use std::fmt::Write as _;

/// One figure of the table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figure {
    pub(super) name: String,
    pub(super) value: Option<f64>,
    pub(super) unit: &'static str,
    /// The largest value that is good enough, where one is asked for.
    pub(super) goal: Option<f64>,
    pub(super) met: Option<bool>,
}

impl Figure {
    fn new(name: String, value: Option<f64>, unit: &'static str) -> Self {
        Figure { name, value, unit, goal: None, met: None }
    }

    fn at_most(mut self, goal: f64) -> Self {
        self.goal = Some(goal);
        self.met = Some(self.value.is_some_and(|value| value <= goal));
        self
    }
}

/// The times of a run [s since its start].
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) warm_until: f64,
    pub(super) cut_at: f64,
    pub(super) mended_at: f64,
    pub(super) end: f64,
}

/// After the link is mended the next poll has yet to be answered.
const REJOINING_S: f64 = 1.0;

impl Schedule {
    fn connected(&self, t_s: f64) -> bool {
        t_s < self.cut_at || t_s >= self.mended_at + REJOINING_S
    }
}

/// The figures of one observed clock.
pub(super) fn figures(observed: &Observed, schedule: &Schedule) -> Vec<Figure> {
    let name = |text: &str| format!("{text}, {} stamps", observed.name);
    let settled = |sample: &&Sample| sample.t_s >= schedule.warm_until && schedule.connected(sample.t_s);
    let settled_errors = || observed.samples.iter().filter(settled).map(|sample| sample.error_s);
    let errors = Sorted::of(settled_errors());
    let apart = |sample: &&Sample| !schedule.connected(sample.t_s);
    let largest = |part: &mut dyn Iterator<Item = f64>| part.map(f64::abs).reduce(f64::max);
    let iqr = errors.quantile(0.75).zip(errors.quantile(0.25)).map(|(high, low)| high - low);
    let outside = observed.samples.iter().filter(|sample| !sample.contained).count();
    let first_under = |limit: f64| observed.samples.iter().find(|s| s.error_s.abs() < limit).map(|s| s.t_s);
    let settled_bounds = Sorted::of(observed.samples.iter().filter(settled).map(|sample| sample.bound_s));
    let settled_uncertainties = Sorted::of(observed.samples.iter().filter(settled).map(|sample| sample.uncertainty_s));
    let rate = observed.samples.iter().rev().find(settled).and_then(|sample| sample.rate_error_ppm).map(f64::abs);
    vec![
        Figure::new(name("error IQR while connected, after 30 s"), iqr, "s"),
        Figure::new(name("largest error while connected, after 30 s"), largest(&mut settled_errors()), "s"),
        Figure::new(name("readings outside the bound"), Some(outside as f64), ""),
        Figure::new(name("median error"), errors.quantile(0.5), "s"),
        Figure::new(name("median bound"), settled_bounds.quantile(0.5), "s"),
        Figure::new(name("median uncertainty"), settled_uncertainties.quantile(0.5), "s"),
        Figure::new(
            name("largest error while cut off"),
            largest(&mut observed.samples.iter().filter(apart).map(|s| s.error_s)),
            "s",
        ),
        Figure::new(name("time to the first reading within 10 us"), first_under(10e-6), "s"),
        Figure::new(name("rate error of the difference clock at the end"), rate, "ppm"),
        Figure::new(name("readings refused after the first"), Some(observed.refused as f64), ""),
        Figure::new(name("comparisons"), Some(observed.samples.len() as f64), ""),
    ]
}

/// The goals of the first three figures, which a quiet link with kernel stamps must reach.
pub(super) fn set_goals(figures: &mut [Figure]) {
    for (figure, goal) in figures.iter_mut().zip([1.5e-6, 15e-6, 0.0]) {
        *figure = figure.clone().at_most(goal);
    }
}

/// Figures of the daemon as a process.
pub(super) fn usage_figures(usage: Option<(u64, u64)>) -> Vec<Figure> {
    let resident = usage.map(|(bytes, _)| bytes as f64 / (1024.0 * 1024.0));
    vec![Figure::new("ffclockd resident memory".to_owned(), resident, "MiB").at_most(8.0)]
}

/// Whether no reading of any clock was ever outside its bound, and there were readings at all.
pub(super) fn bound_held(observed: &[Observed]) -> bool {
    observed.iter().all(|clock| !clock.samples.is_empty() && clock.samples.iter().all(|sample| sample.contained))
}

/// The comparisons as CSV with a header.
pub(super) fn samples_csv(observed: &Observed) -> String {
    let mut text = String::from("t_s,error_s,bound_s,uncertainty_s,status,rate_error_ppm\n");
    for s in &observed.samples {
        let status = s.status.name();
        let rate = s.rate_error_ppm.map_or(String::new(), |ppm| format!("{ppm:.6}"));
        let _ =
            writeln!(text, "{:.4},{:.12},{:.12},{:.12},{status},{rate}", s.t_s, s.error_s, s.bound_s, s.uncertainty_s);
    }
    text
}

/// The figures as a table for people.
pub(super) fn table(figures: &[Figure]) -> String {
    let mut text = String::new();
    for figure in figures {
        let value = figure.value.map_or("-".to_owned(), |value| shown(value, figure.unit));
        let goal = match (figure.goal, figure.met) {
            (Some(goal), _) if figure.value.is_none() => format!("at most {}: not measured", shown(goal, figure.unit)),
            (Some(goal), Some(true)) => format!("at most {}: met", shown(goal, figure.unit)),
            (Some(goal), _) => format!("at most {}: NOT MET", shown(goal, figure.unit)),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {:<62} {value:>12}  {goal}", figure.name);
    }
    text
}

fn shown(value: f64, unit: &str) -> String {
    match unit {
        "s" => ffclock_units::Span::from_seconds((value * 1e11).round() / 1e11).to_string(),
        "" => format!("{value}"),
        _ => format!("{value:.4} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_goal_is_shouted() {
        let missed = Figure::new("x".into(), Some(2e-6), "s").at_most(1.5e-6);
        assert_eq!(missed.met, Some(false));
        assert!(table(&[missed]).contains("NOT MET"));
        let absent = Figure::new("x".into(), None, "s").at_most(1.0);
        assert_eq!(absent.met, Some(false));
        assert!(table(&[absent]).contains("not measured"));
    }
}
