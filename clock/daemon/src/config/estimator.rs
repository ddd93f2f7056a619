//! How exchanges become a clock: which algorithm, and the options of each.

use ffclock_estimator::{Algorithm, Chosen, Configs, RateMemory};
use ffclock_units::{OptionDoc, OptionError, Period};

ffclock_units::options! {
    /// Which algorithm.
    pub struct Which {
        /// The algorithm. `"learned"` takes each direction as evidence of its own and learns how packets queue.
        /// `"classic"` is the one of the RADclock papers; it also runs inside the learned one, which takes the bound
        /// from it, so its options concern both.
        estimator: Algorithm = Algorithm::default();
    }
}

/// Which algorithm judges a server, and its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimatorConfig {
    /// Which algorithm.
    pub which: Which,
    /// The options of every algorithm.
    pub options: Configs,
}

impl EstimatorConfig {
    /// Sets the option called `name` in whichever struct knows it.
    ///
    /// # Errors
    /// No option has this name, or the value is none that it can have.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.which.set(name, text) {
            Err(OptionError::Unknown) => self.options.set(name, text),
            known => known,
        }
    }

    /// Shows every option.
    pub fn describe(visit: &mut dyn FnMut(OptionDoc<'_>)) {
        Which::describe(visit);
        Configs::describe(visit);
    }

    /// An estimator that knows nothing but the counter's rate, if that.
    pub fn build(&self, nominal: Period, remembered: Option<RateMemory>) -> Chosen {
        Chosen::new(self.which.estimator, self.options.clone(), nominal, remembered)
    }
}
