//! `--without PART`: the learned estimator with parts left out, to measure what each is worth.

use crate::Failure;
use ffclock_estimator::LearnedConfig;

/// What to leave out.
#[derive(clap::Args)]
pub(crate) struct Ablation {
    /// Leave out a part of the learned estimator, to measure what it is worth; may be repeated
    /// (docs/algorithm/learned.md)
    #[arg(long = "without", value_name = "PART")]
    parts: Vec<String>,
}

impl Ablation {
    /// The learned estimator's options without these parts; a hyphen may stand for each underscore.
    pub(crate) fn learned(&self) -> Result<LearnedConfig, Failure> {
        let mut config = LearnedConfig::default();
        for part in &self.parts {
            config.leave_out(&part.replace('-', "_")).map_err(|_| unknown(part))?;
        }
        if !config.edges && !config.humps {
            return Err(Failure::usage("--without edges and --without humps: one family must stay"));
        }
        Ok(config)
    }
}

fn unknown(part: &str) -> Failure {
    let mut names = Vec::new();
    LearnedConfig::parts(&mut |name| names.push(name));
    Failure::usage(format!("--without {part}: no such part; there are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(parts: &[&str]) -> Result<LearnedConfig, Failure> {
        Ablation { parts: parts.iter().map(|part| (*part).to_owned()).collect() }.learned()
    }

    #[test]
    fn parts_are_left_out_by_name() {
        let config = without(&["cycles", "floor-changes"]).unwrap();
        assert!(!config.cycles && !config.floor_changes && config.directions);
        assert_eq!(without(&[]).unwrap(), LearnedConfig::default());
    }

    #[test]
    fn an_unknown_part_is_answered_with_the_names() {
        let failure = without(&["tides"]).unwrap_err();
        assert_eq!(failure.code, Failure::USAGE);
        assert!(failure.message.contains("there are cycles, several_walks, edges"), "{}", failure.message);
        assert!(without(&["edges", "humps"]).unwrap_err().message.contains("one family"));
    }
}
