//! `--smooth`: the clock in retrospect, by the past and the future.
//!
//! The smoother runs beside whatever estimator is replayed and sees the same exchanges. What it says is known only at the end, so the steps
//! of the replay wait for it.

use super::distribution::{Distribution, Figures};
use super::track::Step;
use ffclock_estimator::{Configs, Smoothed, SmoothedTime, Smoother};
use ffclock_trace::TraceRow;
use ffclock_units::{ClockError, Counter, CounterEpoch, Period, Span};
use serde::Serialize;

/// Collects what the smoother needs.
pub(super) struct Retrospect {
    smoother: Smoother,
    epochs: Vec<CounterEpoch>,
    waiting: Vec<Waiting>,
    kept: usize,
}

/// A step of the replay, and which of the smoothed times belongs to it.
struct Waiting {
    step: Step,
    floor: Span,
    place: Option<usize>,
}

/// A step of the replay with its time in retrospect.
pub(super) struct Settled {
    pub(super) step: Step,
    pub(super) floor: Span,
    pub(super) smoothed: Option<SmoothedTime>,
    pub(super) error: Option<ClockError>,
}

/// The account of the smoothed clock, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The errors at the same replies as those of the causal clock.
    pub(super) error: Option<Figures>,
    /// The median of what the smoothed clock and the causal one say about their errors, in seconds.
    pub(super) uncertainty_s: Option<f64>,
    pub(super) causal_uncertainty_s: Option<f64>,
    /// The share of errors, less their median, within twice what is said: of the smoothed clock and of the causal one.
    pub(super) within_2u: Option<f64>,
    pub(super) causal_within_2u: Option<f64>,
}

impl Retrospect {
    pub(super) fn new(configs: Configs, nominal: Period) -> Self {
        let smoother = Smoother::new(configs.learned, configs.classic, nominal);
        Retrospect { smoother, epochs: Vec::new(), waiting: Vec::new(), kept: 0 }
    }

    /// Takes a row, and what the replay made of it.
    pub(super) fn feed(&mut self, row: &TraceRow, step: Option<Step>, floor: Span) {
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
            self.waiting.push(Waiting { step, floor, place });
        }
    }

    /// Works everything out; `progress` is shown how many of how many steps are done.
    pub(super) fn finish(self, progress: &mut dyn FnMut(usize, usize)) -> Hindsight {
        let smoothed = self.smoother.finish(progress);
        let settle = |Waiting { step, floor, place }: Waiting| {
            let smoothed = place.and_then(|place| smoothed.times().get(place)).copied();
            let error = smoothed.zip(step.truth).map(|(smoothed, truth)| ClockError::new(smoothed.time - truth));
            Settled { step, floor, smoothed, error }
        };
        Hindsight { steps: self.waiting.into_iter().map(settle).collect(), smoothed, epochs: self.epochs }
    }
}

/// Everything that is known afterwards.
pub(super) struct Hindsight {
    pub(super) steps: Vec<Settled>,
    smoothed: Smoothed,
    epochs: Vec<CounterEpoch>,
}

impl Hindsight {
    /// The time at a reading, of the last epoch where none is named; `None` outside what was recorded.
    pub(super) fn at(&self, counter: Counter, epoch: Option<CounterEpoch>) -> Option<SmoothedTime> {
        let is_meant = |index: &usize| epoch.is_none_or(|epoch| self.epochs.get(*index) == Some(&epoch));
        let epochs = (0..self.epochs.len()).rev().filter(is_meant);
        epochs.take(if epoch.is_none() { 1 } else { usize::MAX }).find_map(|index| self.smoothed.at(index, counter))
    }

    /// The account, at the replies that count.
    pub(super) fn report(&self) -> Report {
        let counted = || self.steps.iter().filter(|settled| settled.step.counts);
        let smoothed = Claims::of(counted().filter_map(|settled| {
            Some((settled.error?.as_span().as_seconds(), settled.smoothed?.uncertainty.as_seconds()))
        }));
        let causal = Claims::of(counted().filter_map(|settled| {
            let uncertainty = settled.step.estimate.at(settled.step.counter).uncertainty;
            Some((settled.step.error?.as_span().as_seconds(), uncertainty.as_seconds()))
        }));
        Report {
            error: smoothed.errors.figures(),
            uncertainty_s: smoothed.uncertainty(),
            causal_uncertainty_s: causal.uncertainty(),
            within_2u: smoothed.within_2u(),
            causal_within_2u: causal.within_2u(),
        }
    }
}

/// Errors with what was said about them, in seconds.
struct Claims {
    errors: Distribution,
    pairs: Vec<(f64, f64)>,
}

impl Claims {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut claims = Claims { errors: Distribution::default(), pairs: pairs.collect() };
        claims.pairs.iter().for_each(|(error, _)| claims.errors.add(*error));
        claims
    }

    fn uncertainty(&self) -> Option<f64> {
        let mut uncertainties: Vec<f64> = self.pairs.iter().map(|(_, uncertainty)| *uncertainty).collect();
        uncertainties.sort_by(f64::total_cmp);
        uncertainties.get(uncertainties.len() / 2).copied()
    }

    /// The constant asymmetry, which nothing can show, is taken out with the median.
    fn within_2u(&self) -> Option<f64> {
        let median = self.errors.figures()?.median;
        let within = self.pairs.iter().filter(|(error, uncertainty)| (error - median).abs() <= 2.0 * uncertainty);
        Some(within.count() as f64 / self.pairs.len() as f64)
    }
}
