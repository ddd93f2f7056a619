//! How exchanges become a clock: the algorithm, and the options of each.

use ffclock_estimator::{Algorithm, Chosen, ClassicConfig, Configs, LearnedConfig};
use ffclock_units::{OptionDoc, OptionError, Period, RateMemory};

ffclock_units::options! {
    /// The choice of the algorithm.
    pub struct Which {
        /// The algorithm. `"learned"` takes each direction as evidence of its own and learns how packets queue.
        /// `"classic"` is the one of the RADclock papers; it also runs beside the learned one as a second opinion,
        /// behind the same guard, so its options concern both.
        estimator: Algorithm = Algorithm::default();
    }
}

/// Which algorithm judges a server, and its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimatorConfig {
    /// The chosen algorithm.
    pub which: Which,
    /// The guard's options and the classic algorithm's.
    pub options: ClassicConfig,
}

/// Parts of the learned algorithm are left out to measure their worth, and never to keep a clock.
const ONLY_IN_THE_LAB: &str = "parts of the learned estimator are left out with `--without` of replay and sim only; \
    remove the line";

impl EstimatorConfig {
    /// Sets the option called `name` in the struct that knows it.
    ///
    /// # Errors
    /// No option has this name, the value is not one of its values, or the option belongs to the laboratory.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.which.set(name, text) {
            Err(OptionError::Unknown) => {}
            known => return known,
        }
        match self.options.set(name, text) {
            Err(OptionError::Unknown) if is_part(name) => Err(OptionError::Elsewhere(ONLY_IN_THE_LAB)),
            known => known,
        }
    }

    /// Shows every option.
    pub fn describe(visit: &mut dyn FnMut(OptionDoc<'_>)) {
        Which::describe(visit);
        ClassicConfig::describe(visit);
    }

    /// An estimator that knows at most the counter's rate.
    pub fn build(&self, nominal: Period, remembered: Option<RateMemory>) -> Chosen {
        let configs = Configs { classic: self.options.clone(), ..Configs::default() };
        Chosen::new(self.which.estimator, configs, nominal, remembered)
    }
}

/// Whether a part of the learned algorithm has this name.
fn is_part(name: &str) -> bool {
    let mut found = false;
    LearnedConfig::parts(&mut |part| found |= part == name);
    found
}
