//! The algorithms of the estimator as values of an option.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ffclock_estimator::Algorithm;

/// Reads the name of an algorithm; help and completions list the names.
pub(crate) fn named() -> impl TypedValueParser<Value = Algorithm> {
    let values = Algorithm::ALL.map(|algorithm| PossibleValue::new(algorithm.name()).help(help(algorithm)));
    PossibleValuesParser::new(values).try_map(|name| name.parse::<Algorithm>())
}

fn help(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Classic => "The algorithm of the RADclock papers",
        Algorithm::Learned => "One-sided evidence, two directions and a bank of oscillators",
    }
}
