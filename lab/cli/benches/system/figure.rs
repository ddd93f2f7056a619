//! One measured figure, as `cargo xtask figures` reads it.

use serde::Serialize;

/// A figure, what it is compared with, and what it should be.
#[derive(Serialize)]
pub(crate) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    against: String,
    ratio: Option<f64>,
    goal: Option<String>,
    met: Option<bool>,
}

impl Figure {
    pub(crate) fn new(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Figure {
            name: name.into(),
            value: rounded(value),
            unit,
            against: String::new(),
            ratio: None,
            goal: None,
            met: None,
        }
    }

    /// Beside a figure of the same unit and of the same run.
    pub(crate) fn against(mut self, what: &str, base: f64) -> Self {
        self.against = format!("{what}: {}", rounded(base));
        self.ratio = Some(rounded(self.value / base)).filter(|ratio| ratio.is_finite());
        self
    }

    /// Beside something that was not measured in this run, and so gives no ratio.
    pub(crate) fn beside(mut self, what: impl Into<String>) -> Self {
        self.against = what.into();
        self
    }

    pub(crate) fn at_most(self, goal: f64) -> Self {
        let met = self.value <= goal;
        self.judged(format!("value <= {goal}"), met)
    }

    pub(crate) fn at_least(self, goal: f64) -> Self {
        let met = self.value >= goal;
        self.judged(format!("value >= {goal}"), met)
    }

    pub(crate) fn ratio_at_most(self, goal: f64) -> Self {
        let met = self.ratio.is_some_and(|ratio| ratio <= goal);
        self.judged(format!("ratio <= {goal}"), met)
    }

    fn judged(mut self, goal: String, met: bool) -> Self {
        (self.goal, self.met) = (Some(goal), Some(met));
        self
    }

    /// Prints it on standard output, a line.
    pub(crate) fn report(&self) -> Result<(), serde_json::Error> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

/// Four digits: more would be noise.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// The middle value.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    ffclock_statistics::upper_median(values).unwrap_or(f64::NAN)
}

/// The largest value.
pub(crate) fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(f64::NAN, f64::max)
}
