//! Checks: named sentences about the figures of a run, such as `classic.iqr <= 5 us`.
//!
//! ```text
//! CLOCK.FIGURE[@WINDOW] <|<=|>|>= VALUE
//! VALUE = NUMBER [UNIT] | NUMBER * CLOCK.FIGURE[@WINDOW]
//! ```
//! Units are those of lengths and rates; figures without a unit are shares or ratios. See docs/sim.md.

use crate::result::{ClockResult, FIGURES};
use crate::scenario::Scenario;
use ffclock_units::{Rate, Span};
use serde::{Deserialize, Serialize};

/// One figure of one clock.
#[derive(Clone, Debug, PartialEq)]
struct CheckedFigure {
    clock: String,
    figure: String,
    window: String,
}

#[derive(Clone, Debug, PartialEq)]
enum RightSide {
    Number(f64),
    Times(f64, CheckedFigure),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// A check that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScenarioCheck {
    name: String,
    text: String,
    left: CheckedFigure,
    relation: Relation,
    right: RightSide,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct CheckResult {
    /// Its name.
    pub name: String,
    /// Its text.
    pub check: String,
    /// The figure; none without readings.
    pub measured: Option<f64>,
    /// The limit.
    pub limit: Option<f64>,
    /// Whether it holds.
    pub passed: bool,
}

/// The checks of a scenario.
pub(crate) fn all(scenario: &Scenario) -> impl Iterator<Item = Result<ScenarioCheck, String>> + '_ {
    scenario.checks.iter().map(|(name, text)| {
        ScenarioCheck::parse(name, text, scenario).map_err(|why| format!("check \"{name}\": {why}"))
    })
}

impl ScenarioCheck {
    fn parse(name: &str, text: &str, scenario: &Scenario) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let left = CheckedFigure::parse(words.next().unwrap_or(""), scenario)?;
        let relation = match words.next() {
            Some("<") => Relation::Below,
            Some("<=") => Relation::AtMost,
            Some(">") => Relation::Above,
            Some(">=") => Relation::AtLeast,
            Some(other) => return Err(format!("{other:?} is no relation: it must be <, <=, > or >=")),
            None => return Err("after CLOCK.FIGURE there must be a relation (<, <=, > or >=) and a value".to_owned()),
        };
        let rest: Vec<&str> = words.collect();
        let right = match rest.as_slice() {
            [number] => RightSide::Number(parse_number(number)?),
            [factor, "*", place] => RightSide::Times(parse_number(factor)?, CheckedFigure::parse(place, scenario)?),
            [number, unit] => RightSide::Number(parse_measure(&format!("{number} {unit}"))?),
            _ => {
                let said = rest.join(" ");
                return Err(format!(
                    "{said:?} is no value: it must be a number, a number with a unit, or NUMBER * CLOCK.FIGURE"
                ));
            }
        };
        Ok(ScenarioCheck { name: name.to_owned(), text: text.to_owned(), left, relation, right })
    }

    /// Compares.
    pub(crate) fn judge(&self, clocks: &[ClockResult]) -> CheckResult {
        let measured = self.left.look_up(clocks);
        let limit = match &self.right {
            RightSide::Number(number) => Some(*number),
            RightSide::Times(factor, place) => place.look_up(clocks).map(|value| factor * value),
        };
        let holds = |(measured, limit): (f64, f64)| match self.relation {
            Relation::Below => measured < limit,
            Relation::AtMost => measured <= limit,
            Relation::Above => measured > limit,
            Relation::AtLeast => measured >= limit,
        };
        let passed = measured.zip(limit).is_some_and(holds);
        CheckResult { name: self.name.clone(), check: self.text.clone(), measured, limit, passed }
    }
}

impl CheckedFigure {
    fn parse(text: &str, scenario: &Scenario) -> Result<Self, String> {
        let (place, window) = text.split_once('@').unwrap_or((text, ""));
        let (clock, figure) = place.split_once('.').ok_or_else(|| format!("{text:?} must be CLOCK.FIGURE"))?;
        let clocks = crate::clock::names_in(scenario);
        if !clocks.contains(&clock) {
            return Err(format!("there is no clock {clock:?}: it must be one of {}", clocks.join(", ")));
        }
        if !FIGURES.contains(&figure) {
            return Err(format!("there is no figure {figure:?}: it must be one of {}", FIGURES.join(", ")));
        }
        if !window.is_empty() && !scenario.windows.contains_key(window) {
            return Err(format!("there is no window {window:?}: it must be a key of [windows]"));
        }
        Ok(CheckedFigure { clock: clock.to_owned(), figure: figure.to_owned(), window: window.to_owned() })
    }

    fn look_up(&self, clocks: &[ClockResult]) -> Option<f64> {
        let clock = clocks.iter().find(|clock| clock.name == self.clock)?;
        let window = clock.windows.iter().find(|window| window.name == self.window)?;
        window.figure(&self.figure)
    }
}

fn parse_number(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

fn parse_measure(text: &str) -> Result<f64, String> {
    let span = text.parse::<Span>().map(Span::as_seconds);
    span.or_else(|_| text.parse::<Rate>().map(Rate::as_fraction)).map_err(|error| format!("{text:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Run;

    const WORLD: &str = "about = \"x\"\nduration = \"1 h\"\nfrom = \"0 s\"\n[path]\nforward = \"1 ms\"\nbackward = \"1 ms\"\n\
                         [windows]\nend = [\"30 min\", \"1 h\"]\n[checks]\n";

    fn judged(check: &str) -> Result<CheckResult, String> {
        let scenario =
            Scenario::parse("x", &format!("{WORLD}\"it\" = \"{check}\"")).map_err(|error| error.to_string())?;
        let result = Run { name: "x", scenario: &scenario, seed: 1 }.execute_with(&["classic", "pll"], None);
        assert_eq!(result.passed, result.checks[0].passed);
        Ok(result.checks[0].clone())
    }

    #[test]
    fn relations_units_and_windows_are_understood() {
        for (check, holds) in [
            ("classic.max < 1 s", true),
            ("classic.max < 1 ps", false),
            ("classic.max@end > 1 ps", true),
            ("classic.rate-p99 <= 1 ppm", true),
            ("classic.containment >= 1", true),
            ("classic.unread > 0.5", false),
            ("classic.iqr <= 1e9 * pll.iqr@end", true),
            ("classic.iqr >= 1e9 * pll.iqr@end", false),
            // A clock that was not run has no figures, and nothing can be said of it.
            ("pi.max < 1 s", false),
        ] {
            assert_eq!(judged(check).unwrap().passed, holds, "{check}");
        }
        let limit = judged("classic.max < 250 us").unwrap().limit.unwrap();
        assert!((limit - 250e-6).abs() < 1e-15);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for check in [
            "",
            "classic",
            "classic.max",
            "classic.max = 1 s",
            "classic.max < 1 fish",
            "fish.max < 1 s",
            "classic.max@x < 1 s",
        ] {
            assert!(judged(check).is_err(), "{check}");
        }
    }
}
