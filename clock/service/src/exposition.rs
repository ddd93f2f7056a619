//! Metrics as OpenMetrics 1.0 text.

use ffclock_control::metrics::Family;
use std::fmt::{Display, Write};

/// A text that grows by families.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// Begins a family.
    pub fn describe(&mut self, family: &Family) {
        let Family { name, kind, unit, help } = family;
        let _ = writeln!(self.0, "# TYPE {name} {}", kind.name());
        if !unit.is_empty() {
            let _ = writeln!(self.0, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.0, "# HELP {name} {help}");
    }

    /// A family of one value; nothing where it is not known.
    pub fn value(&mut self, family: &Family, value: Option<f64>) {
        if let Some(value) = value {
            self.describe(family);
            let _ = writeln!(self.0, "{} {value}", family.sample());
        }
    }

    /// One value of a family, by its label (name, value).
    pub fn labelled(&mut self, family: &Family, (label, named): (&str, &str), value: &dyn Display) {
        let _ = writeln!(self.0, "{}{{{label}=\"{}\"}} {value}", family.sample(), escaped(named));
    }

    /// The whole text, with the ending that OpenMetrics demands.
    pub fn end(mut self) -> String {
        self.0.push_str("# EOF\n");
        self.0
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_break_out() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
