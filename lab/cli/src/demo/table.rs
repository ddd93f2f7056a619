//! The outcome of a demonstration as text: the table for people, and the samples for the report.

use ffclock_replay::{Figure, LiveRun, ServerAnswer, ServerLook};
use std::fmt::Write as _;

/// The comparisons as CSV with a header.
pub(super) fn samples_csv(run: &LiveRun) -> String {
    let mut text = String::from("t_s,error_s,bound_s,bound_strict_s,uncertainty_s,noise_s,status,rate_error_ppm\n");
    for s in &run.samples {
        let status = s.status.name();
        let rate = s.rate_error_ppm.map_or(String::new(), |ppm| format!("{ppm:.6}"));
        let spans =
            [s.error_s, s.bound_s, s.bound_strict_s, s.uncertainty_s, s.noise_s].map(|span| format!("{span:.12}"));
        let _ = writeln!(text, "{:.4},{},{status},{rate}", s.t_s, spans.join(","));
    }
    text
}

/// What a clock would have shown that follows the smallest claim, as CSV with a header.
pub(super) fn claims_csv(shown: &[ServerAnswer]) -> String {
    let mut text = String::from("t_s,error_s,bound_s\n");
    for answer in shown {
        let _ = writeln!(text, "{:.6},{:.12},{:.12}", answer.t_s, answer.error_s, answer.reach_s);
    }
    text
}

/// The answers of all servers, judged by the truth, as CSV with a header.
pub(super) fn answers_csv(answers: &[ServerAnswer], names: &[&str]) -> String {
    let mut text = String::from("t_s,server,error_s,claim_s,reach_s\n");
    for a in answers {
        let name = names.get(a.server).copied().unwrap_or_default();
        let _ = writeln!(text, "{:.6},{name},{:.12},{:.12},{:.12}", a.t_s, a.error_s, a.claim_s, a.reach_s);
    }
    text
}

/// What the daemon said of its servers, as CSV with a header.
pub(super) fn votes_csv(looks: &[ServerLook], names: &[&str]) -> String {
    let mut text = String::from("t_s,server,standing,weight,earliest_s,latest_s\n");
    for look in looks {
        let name = names.get(look.server).copied().unwrap_or_default();
        let weight = look.weight.map_or_else(String::new, |weight| format!("{weight:.4}"));
        let proven = look.proven_s.map_or_else(|| ",".to_owned(), |(from, to)| format!("{from:.12},{to:.12}"));
        let _ = writeln!(text, "{:.4},{name},{},{weight},{proven}", look.t_s, look.standing.name());
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
    use ffclock_replay::ServerStanding;

    #[test]
    fn what_is_not_known_is_an_empty_cell() {
        let look = ServerLook { t_s: 1.5, server: 1, standing: ServerStanding::Unknown, weight: None, proven_s: None };
        let rows = votes_csv(&[look], &["a", "b"]);
        assert_eq!(rows.lines().nth(1), Some("1.5000,b,unknown,,,"));
        assert_eq!(rows.lines().next().unwrap().split(',').count(), rows.lines().nth(1).unwrap().split(',').count());
    }

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
