//! Runs in which the learned clock is judged as well by what it says of the past.

use crate::{Cast, Run, RunResult, ShownReading, Sinks};
use ffclock_estimator::{ClassicConfig, Learned};
use ffclock_replay::PastJudge;
use ffclock_trace::TraceRow;
use std::cell::RefCell;

/// The clock whose past is judged. It must be one of the cast.
const JUDGED: &str = "learned";

impl Run<'_> {
    /// Lives through the scenario with this cast. A learned clock beside it publishes a page and a history as the
    /// daemon does, and is judged at every reading from the beginning of the statistics on: [`RunResult::past`].
    pub fn execute_with_past(&self, cast: &Cast<'_>) -> RunResult {
        let nominal = self.scenario.counter.nominal();
        let clock = Learned::new(cast.learned.clone(), ClassicConfig::default(), nominal, None);
        let judge = RefCell::new(PastJudge::new(Box::new(clock)));
        let from = self.scenario.from.0;
        let mut rows = |row: &TraceRow| judge.borrow_mut().feed(row);
        let mut samples = |sample: &ShownReading<'_>| {
            if sample.clock == JUDGED && sample.at >= from {
                judge.borrow_mut().look(sample.counter, sample.truth());
            }
        };
        let result = self.execute_as(cast, Sinks { rows: Some(&mut rows), samples: Some(&mut samples) });
        RunResult { past: Some(judge.borrow().report()), ..result }
    }
}
