//! The clock in retrospect, by the past and the future.
//!
//! The smoother runs beside the estimator that is replayed and sees the same exchanges. Its times are known only at the
//! end, so the steps of the replay wait for it.

use crate::report::RetrospectReport;
use crate::track::ReplayStep;
use ffclock_estimator::{Configs, Smoothed, SmoothedTime, Smoother};
use ffclock_statistics::{Containment, ErrorDistribution, upper_median};
use ffclock_trace::TraceRow;
use ffclock_units::{ClockError, Counter, CounterEpoch, Period};

/// Collects what the smoother needs.
pub(crate) struct Retrospect {
    smoother: Smoother,
    epochs: Vec<CounterEpoch>,
    waiting: Vec<WaitingStep>,
    kept: usize,
}

/// A step of the replay, and the place of the smoothed time that belongs to it.
struct WaitingStep {
    step: ReplayStep,
    place: Option<usize>,
}

/// A step of the replay with its time in retrospect.
#[derive(Clone, Copy, Debug)]
pub struct SettledStep {
    /// The causal clock.
    pub step: ReplayStep,
    /// The clock in retrospect, where one is worked out and the smoother kept the exchange.
    pub smoothed: Option<SmoothedTime>,
    /// The error of the clock in retrospect, if the truth is known.
    pub error: Option<ClockError>,
}

impl SettledStep {
    /// A step that is not looked back on.
    pub(crate) fn causal(step: ReplayStep) -> Self {
        SettledStep { step, smoothed: None, error: None }
    }
}

impl Retrospect {
    pub(crate) fn new(configs: Configs, nominal: Period) -> Self {
        let smoother = Smoother::new(configs.learned, configs.classic, nominal);
        Retrospect { smoother, epochs: Vec::new(), waiting: Vec::new(), kept: 0 }
    }

    /// Takes a row and the step of the replay after it.
    pub(crate) fn feed(&mut self, row: &TraceRow, step: Option<ReplayStep>) {
        if self.epochs.last() != Some(&row.epoch) {
            if !self.epochs.is_empty() {
                self.smoother.restart();
            }
            self.epochs.push(row.epoch);
        }
        let is_kept = row.exchange.as_ref().is_some_and(|exchange| self.smoother.update(exchange));
        let place = is_kept.then_some(self.kept);
        self.kept += usize::from(is_kept);
        if let Some(step) = step {
            self.waiting.push(WaitingStep { step, place });
        }
    }

    /// Works everything out. `progress` gets the number of steps done, and of all steps.
    pub(crate) fn finish(self, progress: &mut dyn FnMut(usize, usize)) -> Hindsight {
        let smoothed = self.smoother.finish(progress);
        let settle = |WaitingStep { step, place }: WaitingStep| {
            let smoothed = place.and_then(|place| smoothed.times().get(place)).copied();
            let error = smoothed.zip(step.truth).map(|(smoothed, truth)| ClockError::new(smoothed.time - truth));
            SettledStep { step, smoothed, error }
        };
        Hindsight { steps: self.waiting.into_iter().map(settle).collect(), smoothed, epochs: self.epochs }
    }
}

/// Everything that is known afterwards.
pub struct Hindsight {
    pub(crate) steps: Vec<SettledStep>,
    smoothed: Smoothed,
    epochs: Vec<CounterEpoch>,
}

impl Hindsight {
    /// The time at a reading, of the last epoch where none is named; `None` outside what was recorded.
    pub fn at(&self, counter: Counter, epoch: Option<CounterEpoch>) -> Option<SmoothedTime> {
        let is_meant = |index: &usize| epoch.is_none_or(|epoch| self.epochs.get(*index) == Some(&epoch));
        let epochs = (0..self.epochs.len()).rev().filter(is_meant);
        epochs.take(if epoch.is_none() { 1 } else { usize::MAX }).find_map(|index| self.smoothed.at(index, counter))
    }

    /// The account, at the replies that count.
    pub(crate) fn report(&self) -> RetrospectReport {
        let counted = || self.steps.iter().filter(|settled| settled.step.counts);
        let smoothed = ClaimedErrors::of(counted().filter_map(|settled| {
            let uncertainty = settled.smoothed?.uncertainty.as_seconds();
            Some(ClaimedError { error: settled.error?.as_span().as_seconds(), uncertainty })
        }));
        let causal = ClaimedErrors::of(counted().filter_map(|settled| {
            let uncertainty = settled.step.estimate.at(settled.step.counter).noise.as_seconds();
            Some(ClaimedError { error: settled.step.error?.as_span().as_seconds(), uncertainty })
        }));
        RetrospectReport {
            error: smoothed.errors.figures(),
            uncertainty_s: smoothed.uncertainty(),
            causal_uncertainty_s: causal.uncertainty(),
            within_2u: smoothed.within_2u(),
            causal_within_2u: causal.within_2u(),
        }
    }
}

/// An error, and the standard uncertainty that the clock claimed for it by what exchanges show, in seconds.
struct ClaimedError {
    error: f64,
    uncertainty: f64,
}

struct ClaimedErrors {
    errors: ErrorDistribution,
    each: Vec<ClaimedError>,
}

impl ClaimedErrors {
    fn of(each: impl Iterator<Item = ClaimedError>) -> Self {
        let mut claims = ClaimedErrors { errors: ErrorDistribution::default(), each: each.collect() };
        claims.each.iter().for_each(|claim| claims.errors.add(claim.error));
        claims
    }

    fn uncertainty(&self) -> Option<f64> {
        upper_median(self.each.iter().map(|claim| claim.uncertainty))
    }

    /// The constant asymmetry, which nothing can show, is taken out with the median.
    fn within_2u(&self) -> Option<f64> {
        let median = self.errors.figures()?.median;
        let mut within = Containment::default();
        self.each.iter().for_each(|claim| within.judge_size((claim.error - median).abs(), 2.0 * claim.uncertainty));
        within.share()
    }
}
