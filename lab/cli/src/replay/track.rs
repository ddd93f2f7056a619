//! One server's exchanges through an estimator, with the account of how its clock did.

use super::distribution::Distribution;
use ffclock_estimator::{Estimator, Event, Outcome, Verdict};
use ffclock_trace::TraceRow;
use ffclock_units::{
    Bound, ClockError, Counter, CounterEpoch, Estimate, Exchange, Moment, Period, Rate, Span, Status, Tai,
};

/// The errors of one kind of clock, and whether its bound held.
#[derive(Default)]
pub(super) struct Account {
    pub(super) errors: Distribution,
    pub(super) outside: u64,
    pub(super) readings: u64,
}

impl Account {
    fn add(&mut self, judged: Judged) {
        self.errors.add(judged.error.as_span().as_seconds());
        self.readings += 1;
        self.outside += u64::from(!judged.bound.contains(judged.error));
    }

    /// The share of readings inside their bound; `None` without readings.
    pub(super) fn containment(&self) -> Option<f64> {
        (self.readings > 0).then(|| (self.readings - self.outside) as f64 / self.readings as f64)
    }
}

/// A clock at one reading, against the truth.
#[derive(Clone, Copy)]
pub(super) struct Judged {
    pub(super) error: ClockError,
    pub(super) bound: Bound,
}

/// What happened to exchanges.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) exchanges: u64,
    pub(super) lost: u64,
    pub(super) used: u64,
    pub(super) rejected: u64,
    pub(super) contradictions: u64,
    pub(super) server_steps: u64,
    pub(super) shifts_up: u64,
    pub(super) shifts_down: u64,
    pub(super) epochs: u64,
}

impl Counts {
    fn note(&mut self, outcome: &Outcome) {
        self.exchanges += 1;
        match outcome.verdict {
            Verdict::Used => self.used += 1,
            Verdict::Rejected(_) => self.rejected += 1,
            Verdict::Contradiction => self.contradictions += 1,
            Verdict::FloorOnly => {}
        }
        self.server_steps += u64::from(outcome.events.contains(Event::ServerStepAccepted));
        self.shifts_up += u64::from(outcome.events.contains(Event::FloorShiftUp));
        self.shifts_down += u64::from(outcome.events.contains(Event::FloorShiftDown));
    }
}

/// The clock right after an exchange, for the output.
pub(super) struct Step {
    pub(super) sequence: u64,
    pub(super) verdict: Verdict,
    pub(super) estimate: Estimate,
    pub(super) counter: Counter,
    pub(super) error: Option<ClockError>,
    pub(super) error_before: Option<ClockError>,
    pub(super) truth: Option<Moment<Tai>>,
    /// Whether the statistics had begun.
    pub(super) counts: bool,
}

/// The truth at the first and the last reply of an epoch: the true mean period lies between them.
#[derive(Clone, Copy)]
struct TrueSlope {
    first: (Counter, Moment<Tai>),
    last: (Counter, Moment<Tai>),
}

/// Whose steps are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Steps {
    /// Every exchange's, for the output.
    All,
    /// Nobody's: only what the report needs is worked out.
    None,
}

/// One replay of one server.
pub(super) struct Track {
    estimator: Box<dyn Estimator>,
    from: Option<Span>,
    epoch: Option<CounterEpoch>,
    begin: Option<Moment<Tai>>,
    end: Option<Moment<Tai>>,
    warm: Option<Moment<Tai>>,
    published: Option<Estimate>,
    /// Whether the estimator has moved on since `published`.
    unpublished: bool,
    steps: Steps,
    last_counter: Counter,
    slope: Option<TrueSlope>,
    pub(super) counts: Counts,
    pub(super) after: Account,
    pub(super) before: Account,
}

impl Track {
    /// Statistics begin `from` after the first exchange, or at the end of the warm-up.
    pub(super) fn new(estimator: Box<dyn Estimator>, from: Option<Span>, steps: Steps) -> Self {
        Track {
            estimator,
            steps,
            from,
            epoch: None,
            begin: None,
            end: None,
            warm: None,
            published: None,
            unpublished: false,
            last_counter: Counter::default(),
            slope: None,
            counts: Counts::default(),
            after: Account::default(),
            before: Account::default(),
        }
    }

    /// Takes one row; returns the clock after it where steps are wanted, unless the exchange was lost or rejected, or there is no clock
    /// yet.
    pub(super) fn feed(&mut self, row: &TraceRow) -> Option<Step> {
        self.enter(row.epoch);
        let Some(exchange) = &row.exchange else {
            self.counts.lost += 1;
            return None;
        };
        let counter = exchange.received.counter;
        let truth = row.truth.map(|truth| truth.received);
        let watched = truth.is_some() || self.steps == Steps::All || self.warm.is_none();
        if watched {
            self.publish();
        }
        let before = self.published;
        let outcome = self.estimator.update(exchange);
        self.counts.note(&outcome);
        let rejected = matches!(outcome.verdict, Verdict::Rejected(_));
        if !rejected {
            self.last_counter = counter;
            self.unpublished = true;
        }
        if watched {
            self.publish();
        }
        let counts = self.count_time(exchange, truth);
        let judged = |estimate: &Option<Estimate>| judge(estimate.as_ref()?, counter, truth?);
        let (error, error_before) = (judged(&self.published), judged(&before));
        if counts {
            error.into_iter().for_each(|judged| self.after.add(judged));
            error_before.into_iter().for_each(|judged| self.before.add(judged));
        }
        let estimate = self.published.filter(|_| watched && !rejected)?;
        Some(Step {
            sequence: row.sequence,
            verdict: outcome.verdict,
            estimate,
            counter,
            error: error.map(|judged| judged.error),
            error_before: error_before.map(|judged| judged.error),
            truth,
            counts,
        })
    }

    /// Most exchanges are followed by another before anybody looks at the clock, so it is worked out only then.
    fn publish(&mut self) {
        if std::mem::take(&mut self.unpublished) {
            self.published = self.estimator.estimate();
        }
    }

    /// A new epoch ends the clock of the one before.
    fn enter(&mut self, epoch: CounterEpoch) {
        if self.epoch.is_some_and(|present| present != epoch) {
            self.estimator.restart();
            self.published = None;
            self.unpublished = false;
            self.slope = None;
        }
        if self.epoch != Some(epoch) {
            self.counts.epochs += 1;
            self.epoch = Some(epoch);
        }
    }

    /// Notes how far the trace has come, and says whether the statistics have begun.
    fn count_time(&mut self, exchange: &Exchange, truth: Option<Moment<Tai>>) -> bool {
        let now = truth.unwrap_or(exchange.server_out);
        let begin = *self.begin.get_or_insert(now);
        self.end = Some(self.end.map_or(now, |end| end.max(now)));
        if let Some(truth) = truth {
            let point = (exchange.received.counter, truth);
            let slope = self.slope.get_or_insert(TrueSlope { first: point, last: point });
            slope.last = point;
        }
        let is_warm = self.published.is_some_and(|estimate| estimate.status > Status::WarmingUp);
        if is_warm && self.warm.is_none() {
            self.warm = Some(now);
        }
        match self.from {
            Some(from) => now - begin >= from,
            None => self.warm.is_some(),
        }
    }

    /// From the first to the last exchange.
    pub(super) fn span(&self) -> Option<Span> {
        Some(self.end? - self.begin?)
    }

    /// From the first exchange to the end of the warm-up.
    pub(super) fn warmup(&self) -> Option<Span> {
        Some(self.warm? - self.begin?)
    }

    /// The clock at the last reply, with that reading.
    pub(super) fn last(&self) -> Option<(Estimate, Counter)> {
        let estimate = if self.unpublished { self.estimator.estimate() } else { self.published };
        Some((estimate?, self.last_counter))
    }

    /// The clock as published after the last exchange, where steps are wanted.
    pub(super) fn published(&self) -> Option<&Estimate> {
        self.published.as_ref()
    }

    /// The smallest round trip of the present path; `None` before there is a clock.
    pub(super) fn floor(&self) -> Option<Span> {
        self.published.map(|_| self.estimator.summary().floor)
    }

    /// The uncorrected clock minus the absolute one at the last exchange; `None` before there is a clock.
    pub(super) fn offset(&self) -> Option<Span> {
        self.published.map(|_| self.estimator.summary().offset.as_span())
    }

    /// How much too long `period` is against the true mean period of the present epoch; `None` without the truth.
    pub(super) fn rate_error(&self, period: Period) -> Option<Rate> {
        let slope = self.slope?;
        let ticks = slope.last.0 - slope.first.0;
        let seconds = (slope.last.1 - slope.first.1).as_seconds();
        let truth = Period::from_seconds(seconds / ticks.as_f64())?;
        Some(period.relative_to(truth))
    }
}

fn judge(estimate: &Estimate, counter: Counter, truth: Moment<Tai>) -> Option<Judged> {
    let at = estimate.at(counter);
    Some(Judged { error: ClockError::new(at.time - truth), bound: at.bound })
}
