//! The outcome of a demonstration as text: the table for people, and the samples for the report.

use ffclock_replay::{Figure, LiveRun};
use std::fmt::Write as _;

/// The comparisons as CSV with a header.
pub(super) fn samples_csv(run: &LiveRun) -> String {
    let mut text = String::from("t_s,error_s,bound_s,uncertainty_s,noise_s,status,rate_error_ppm\n");
    for s in &run.samples {
        let status = s.status.name();
        let rate = s.rate_error_ppm.map_or(String::new(), |ppm| format!("{ppm:.6}"));
        let _ = write!(text, "{:.4},{:.12},{:.12},{:.12}", s.t_s, s.error_s, s.bound_s, s.uncertainty_s);
        let _ = writeln!(text, ",{:.12},{status},{rate}", s.noise_s);
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
