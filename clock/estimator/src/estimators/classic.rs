//! The classic estimator: the guard with the classic filter behind it.

use super::guarded::Guarded;
use crate::{ClassicConfig, Estimator, Outcome, ProvenInterval, Summary};
use ffclock_units::{Counter, Estimate, Exchange, Period, RateMemory};

/// The RADclock algorithm with windows in time and a proven bound.
///
/// After [`Classic::new`] no memory is allocated; [`Classic::bytes`] says how much it is.
#[derive(Clone, Debug)]
pub struct Classic {
    guarded: Guarded,
}

impl Classic {
    /// An estimator without history. `nominal` is the period that the counter is sold with, wrong by no more than
    /// `config.nominal_error`; `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        Classic { guarded: Guarded::new(&config, nominal, remembered) }
    }

    /// The memory that this estimator occupies, in bytes; constant from its making on.
    pub fn bytes(&self) -> usize {
        self.guarded.bytes()
    }
}

impl Estimator for Classic {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        let judged = self.guarded.take(exchange);
        self.guarded.guard.count(&judged.outcome, judged.contradicted);
        judged.outcome
    }

    fn estimate(&self) -> Option<Estimate> {
        self.guarded.estimate()
    }

    fn proven(&self, counter: Counter) -> Option<ProvenInterval> {
        self.guarded.guard.proven(counter)
    }

    fn claimed(&self, counter: Counter) -> Option<ProvenInterval> {
        self.guarded.guard.claimed(counter)
    }

    fn summary(&self) -> Summary {
        self.guarded.summary()
    }

    fn memory(&self) -> Option<RateMemory> {
        self.guarded.memory()
    }

    fn restart(&mut self) {
        self.guarded.restart();
    }
}
