//! Which algorithm: a choice by name, and an estimator that is whichever was chosen.

use crate::{Classic, ClassicConfig, Estimator, Learned, LearnedConfig, Outcome, ProvenInterval, Summary};
use alloc::boxed::Box;
use core::fmt;
use core::str::FromStr;
use ffclock_units::{Counter, Estimate, Exchange, OptionDoc, OptionError, OptionValue, ParseError, Period, RateMemory};

/// The algorithms there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// The one of the RADclock papers.
    Classic,
    /// One-sided evidence, two directions and a bank of oscillators.
    #[default]
    Learned,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 2] = [Algorithm::Classic, Algorithm::Learned];

    /// The name, as configurations have it.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Classic => "classic",
            Algorithm::Learned => "learned",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let named = Self::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        named.ok_or(ParseError::Unit("classic, learned"))
    }
}

impl OptionValue for Algorithm {
    const KIND: &'static str = "\"classic\" or \"learned\"";
}

/// The options of every algorithm. What the two share (the oscillator, the asymmetry, the patience with a server) is in
/// `classic`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configs {
    /// The classic algorithm, and what both share.
    pub classic: ClassicConfig,
    /// The learned algorithm.
    pub learned: LearnedConfig,
}

impl Configs {
    /// Sets the option of a name, whichever algorithm it belongs to.
    ///
    /// # Errors
    /// No option has this name, or the value is none that it can have.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), OptionError> {
        match self.classic.set(name, text) {
            Err(OptionError::Unknown) => self.learned.set(name, text),
            known => known,
        }
    }

    /// Shows every option.
    pub fn describe(visit: &mut dyn FnMut(OptionDoc<'_>)) {
        ClassicConfig::describe(visit);
        LearnedConfig::describe(visit);
    }
}

/// An estimator of the algorithm that was chosen.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// The classic one.
    Classic(Box<Classic>),
    /// The learned one.
    Learned(Box<Learned>),
}

impl Chosen {
    /// An estimator without history; see [`Classic::new`] and [`Learned::new`].
    pub fn new(algorithm: Algorithm, configs: Configs, nominal: Period, remembered: Option<RateMemory>) -> Self {
        let Configs { classic, learned } = configs;
        match algorithm {
            Algorithm::Classic => Chosen::Classic(Box::new(Classic::new(classic, nominal, remembered))),
            Algorithm::Learned => Chosen::Learned(Box::new(Learned::new(learned, classic, nominal, remembered))),
        }
    }

    /// The memory that this estimator occupies, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Chosen::Classic(classic) => classic.bytes(),
            Chosen::Learned(learned) => learned.bytes(),
        }
    }

    /// The learned estimator, if that was chosen.
    pub fn learned(&self) -> Option<&Learned> {
        match self {
            Chosen::Learned(learned) => Some(learned),
            Chosen::Classic(_) => None,
        }
    }

    fn get(&self) -> &dyn Estimator {
        match self {
            Chosen::Classic(classic) => classic.as_ref(),
            Chosen::Learned(learned) => learned.as_ref(),
        }
    }

    fn get_mut(&mut self) -> &mut dyn Estimator {
        match self {
            Chosen::Classic(classic) => classic.as_mut(),
            Chosen::Learned(learned) => learned.as_mut(),
        }
    }
}

impl Estimator for Chosen {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        self.get_mut().update(exchange)
    }

    fn estimate(&self) -> Option<Estimate> {
        self.get().estimate()
    }

    fn proven(&self, counter: Counter) -> Option<ProvenInterval> {
        self.get().proven(counter)
    }

    fn claimed(&self, counter: Counter) -> Option<ProvenInterval> {
        self.get().claimed(counter)
    }

    fn summary(&self) -> Summary {
        self.get().summary()
    }

    fn memory(&self) -> Option<RateMemory> {
        self.get().memory()
    }

    fn restart(&mut self) {
        self.get_mut().restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_chosen_by_its_name() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            let nominal = Period::from_hertz(1e9).unwrap();
            let chosen = Chosen::new(algorithm, Configs::default(), nominal, None);
            assert_eq!(matches!(chosen, Chosen::Learned(_)), algorithm == Algorithm::Learned);
            assert_eq!(chosen.estimate(), None);
            assert!(chosen.bytes() > 60_000);
        }
        assert!("chrony".parse::<Algorithm>().is_err());
        assert_eq!(Algorithm::default(), Algorithm::Learned);
    }

    #[test]
    fn options_of_either_algorithm_are_known() {
        let mut configs = Configs::default();
        assert_eq!(configs.set("cycles", "false"), Ok(()));
        assert_eq!(configs.set("wander", "1 ppm"), Ok(()));
        assert_eq!(configs.set("tides", "true"), Err(OptionError::Unknown));
        assert!(!configs.learned.cycles && configs.classic.wander.as_ppm() == 1.0);
        let mut names = 0;
        Configs::describe(&mut |_| names += 1);
        assert!(names > 15);
    }
}
