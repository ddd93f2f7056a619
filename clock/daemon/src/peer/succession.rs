//! What becomes of a server's estimate when the server, or how it is judged, is another: the estimate serves on until
//! there is a better one, and the counter's rate stays known.

use super::outcome_log::Reported;
use super::{Context, Counterpart, LastExchange, Peer};
use crate::config::EstimatorConfig;
use crate::journal::Weight;
use ffclock_estimator::{Chosen, Estimator, Event as EstimatorEvent, Outcome, ProvenInterval, Verdict};
use ffclock_units::{Bound, Exchange, Span};

/// The other end and the options that the present estimate rests on.
#[derive(Clone, PartialEq)]
pub(super) struct Basis {
    pub(super) options: EstimatorConfig,
    pub(super) counterpart: Option<Counterpart>,
}

/// Pulses that are further from their past were given another number.
const HALF_A_SECOND: Span = Span::from_millis(500);

/// The counts of estimators that have been replaced.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) used: u64,
    pub(super) shifts_up: u64,
    pub(super) shifts_down: u64,
}

impl Peer {
    /// Another address or master is another server until proven the same, and other options make another estimator. The
    /// old estimate serves until an exchange that the new one can use; the counter's rate stays known. What another
    /// server inherits of it was learned from one that is believed, which its predecessor need not have been.
    pub(super) fn update(&mut self, exchange: &Exchange, context: &mut Context) -> Outcome {
        let basis = Basis { options: self.config.estimator.clone(), counterpart: self.counterpart() };
        let has_other_options = basis.options != self.basis.options;
        let is_other = self.basis.counterpart.is_some() && basis.counterpart != self.basis.counterpart;
        if !has_other_options && !is_other {
            self.basis = basis;
            return self.estimator.update(exchange);
        }
        let rate = if is_other { context.rate } else { self.estimator.memory() };
        let mut renewed = self.config.estimator.build(self.environment.nominal, rate);
        let outcome = renewed.update(exchange);
        let proven = |of: &Chosen| of.proven(exchange.received.counter);
        if let (false, Some(last), Some(new)) = (has_other_options, proven(&self.estimator), proven(&renewed))
            && last.meet(&new).is_none()
        {
            self.log_other_server(last.gap(&new), context);
            return self.challenge(exchange, basis);
        }
        if !matches!(outcome.verdict, Verdict::Rejected(_)) {
            if has_other_options {
                let kind = "the estimate starts again with other options; the rate stays known";
                self.log(context, Weight::Notice, kind, "");
            }
            self.basis = basis;
            self.replace_estimator(renewed);
        }
        outcome
    }

    /// Another server takes the place of one that is not believed: it inherits nothing, and need not insist against
    /// what that one said.
    pub(crate) fn begin_as_another(&mut self, context: &Context) {
        self.replace_estimator(self.config.estimator.build(self.environment.nominal, context.rate));
        self.last = LastExchange::default();
    }

    /// Pulses whose past rests on a number of seconds that several servers contradict begin again with theirs.
    pub(super) fn leave_false_numbers(&mut self, exchange: &Exchange, context: &mut Context) {
        let Some(numbers) = &context.numbers else { return };
        let counter = exchange.received.counter;
        let is_by_servers = (numbers.at(counter).time - exchange.server_out).abs() < HALF_A_SECOND;
        let numbered = ProvenInterval::around(exchange.server_out, Bound::ZERO);
        let gap = self.estimator.proven(counter).map(|past| past.gap(&numbered));
        let Some(gap) = gap.filter(|gap| is_by_servers && *gap > HALF_A_SECOND) else { return };
        let kind = "the pulses were numbered by a clock that was wrong: they are numbered again";
        self.log(context, Weight::Warning, kind, &format!("by {gap}"));
        self.begin_as_another(context);
    }

    /// Another server whose time lies outside what the last one proved has to insist for as long as one that steps.
    fn challenge(&mut self, exchange: &Exchange, basis: Basis) -> Outcome {
        let outcome = self.estimator.update(exchange);
        let is_believed = [EstimatorEvent::ServerStepAccepted, EstimatorEvent::Restarted];
        if is_believed.into_iter().any(|event| outcome.events.contains(event)) {
            self.basis = basis;
        }
        outcome
    }

    pub(super) fn replace_estimator(&mut self, estimator: Chosen) {
        let summary = std::mem::replace(&mut self.estimator, estimator).summary();
        self.tally.used += summary.used;
        self.tally.shifts_up += summary.shifts_up;
        self.tally.shifts_down += summary.shifts_down;
        self.reported = Reported::default();
    }
}
