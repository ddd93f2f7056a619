//! A fault as scenarios and the command line describe it.

use crate::record::FaultKind;
use ffclock_sim::scenario::{Fraction, Length};
use serde::Deserialize;
use std::str::FromStr;

/// A fault. Which of the optional keys it takes depends on its kind; docs/theta-run.md has the table.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedFault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The process; of a link, its sender.
    pub process: Option<u32>,
    /// The receiver.
    pub receiver: Option<u32>,
    /// The host.
    pub host: Option<u32>,
    /// One side of a partition.
    pub group: Option<Vec<u32>>,
    /// When it begins; at the start unless given.
    pub from: Option<Length>,
    /// When it ends; at the end of the run unless given.
    pub until: Option<Length>,
    /// Its probability for each message.
    pub probability: Option<f64>,
    /// The time for which a link holds messages.
    pub hold: Option<Length>,
    /// The factor by which a host is slower.
    pub factor: Option<f64>,
    /// The step of a clock.
    pub step: Option<Length>,
    /// The drift of a clock.
    pub rate: Option<Fraction>,
}

impl PlannedFault {
    /// A fault of this kind with no key given.
    fn plain(kind: FaultKind) -> Self {
        PlannedFault {
            kind,
            process: None,
            receiver: None,
            host: None,
            group: None,
            from: None,
            until: None,
            probability: None,
            hold: None,
            factor: None,
            step: None,
            rate: None,
        }
    }

    /// A process that is two-faced from the start to the end.
    pub fn two_faced(process: u32) -> Self {
        PlannedFault { process: Some(process), ..Self::plain(FaultKind::TwoFaced) }
    }
}

/// What stands between the braces of a table in TOML.
#[derive(Deserialize)]
struct Inline {
    fault: PlannedFault,
}

impl FromStr for PlannedFault {
    type Err = String;

    /// The keys of a `[[fault]]` of a scenario on one line, with commas: `kind = "crash", process = 2, from = "1 s"`.
    fn from_str(text: &str) -> Result<Self, String> {
        let complaint = |error: toml::de::Error| {
            format!(
                "`{text}` is no fault: {}; say it as kind = \"crash\", process = 2, from = \"1 s\"",
                error.message()
            )
        };
        toml::from_str::<Inline>(&format!("fault = {{ {text} }}")).map(|inline| inline.fault).map_err(complaint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ffclock_units::Span;

    /// A scenario's table and the command line's words are the same fault.
    #[test]
    fn there_is_one_vocabulary() {
        #[derive(Deserialize)]
        struct File {
            fault: Vec<PlannedFault>,
        }
        let file = "[[fault]]\nkind = \"link-hold\"\nprocess = 1\nhold = \"2 ms\"\nprobability = 0.5";
        let file: File = toml::from_str(file).unwrap();
        let line: PlannedFault =
            r#"kind = "link-hold", process = 1, hold = "2 ms", probability = 0.5"#.parse().unwrap();
        assert_eq!(line.hold, Some(Length(Span::from_nanos(2_000_000))));
        assert_eq!(file.fault, [line]);
    }

    #[test]
    fn nonsense_is_told() {
        for (text, part) in [
            ("", "kind"),
            ("kind = \"heat\"", "heat"),
            ("kind = \"crash\", prozess = 2", "prozess"),
            ("kind = \"crash\", from = \"2\"", "unit"),
            ("kind = \"crash\" } [x", "is no fault"),
        ] {
            let error = text.parse::<PlannedFault>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
