//! One server's exchanges through an estimator, and the account of its clock.

use crate::PublishedClock;
use ffclock_estimator::{Estimator, Event, Outcome, Verdict};
use ffclock_statistics::{Containment, ErrorDistribution};
use ffclock_trace::TraceRow;
use ffclock_units::{
    Bound, ClockError, Counter, CounterEpoch, Estimate, Exchange, Moment, Period, Rate, Span, Status, Tai,
};

/// The errors of one clock, and whether its bound held.
#[derive(Default)]
pub(crate) struct Account {
    pub(crate) errors: ErrorDistribution,
    pub(crate) containment: Containment,
}

impl Account {
    fn add(&mut self, judged: JudgedReading) {
        self.errors.add(judged.error.as_span().as_seconds());
        self.containment.judge(judged.error, judged.bound);
    }
}

/// A clock at one reading, against the truth.
#[derive(Clone, Copy)]
struct JudgedReading {
    error: ClockError,
    bound: Bound,
}

/// Rows and exchanges by what happened to them.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowCounts {
    pub(crate) exchanges: u64,
    pub(crate) lost: u64,
    pub(crate) used: u64,
    pub(crate) rejected: u64,
    pub(crate) contradictions: u64,
    pub(crate) server_steps: u64,
    pub(crate) shifts_up: u64,
    pub(crate) shifts_down: u64,
    pub(crate) epochs: u64,
}

impl RowCounts {
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

/// The clock right after an exchange.
#[derive(Clone, Copy, Debug)]
pub struct ReplayStep {
    /// The number of the exchange in the trace.
    pub sequence: u64,
    /// Whether the estimator used it.
    pub verdict: Verdict,
    /// What was published after it.
    pub estimate: Estimate,
    /// Where the reply was received.
    pub counter: Counter,
    /// The smallest round trip of the path.
    pub floor: Span,
    /// The error of the clock at `counter`, if the truth is known.
    pub error: Option<ClockError>,
    /// The error there of the clock that was published before the exchange.
    pub error_before: Option<ClockError>,
    /// The true time at `counter`.
    pub truth: Option<Moment<Tai>>,
    /// Whether the statistics had begun.
    pub counts: bool,
}

/// The truth at the first and the last reply of an epoch: the true mean period lies between them.
#[derive(Clone, Copy)]
struct TrueSlope {
    first: (Counter, Moment<Tai>),
    last: (Counter, Moment<Tai>),
}

/// At which exchanges the clock is worked out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// At every one: its step is shown.
    EveryExchange,
    /// Where the report needs it: at exchanges with a truth, and until the end of the warm-up.
    ReportOnly,
}

/// One replay of one server.
pub struct ReplayTrack {
    clock: PublishedClock,
    from: Option<Span>,
    epoch: Option<CounterEpoch>,
    begin: Option<Moment<Tai>>,
    end: Option<Moment<Tai>>,
    warm: Option<Moment<Tai>>,
    detail: Detail,
    last_counter: Counter,
    slope: Option<TrueSlope>,
    pub(crate) counts: RowCounts,
    pub(crate) after: Account,
    pub(crate) before: Account,
}

impl ReplayTrack {
    /// Statistics begin `from` after the first exchange, or at the end of the warm-up.
    pub fn new(estimator: Box<dyn Estimator>, from: Option<Span>, detail: Detail) -> Self {
        ReplayTrack {
            clock: PublishedClock::new(estimator),
            detail,
            from,
            epoch: None,
            begin: None,
            end: None,
            warm: None,
            last_counter: Counter::default(),
            slope: None,
            counts: RowCounts::default(),
            after: Account::default(),
            before: Account::default(),
        }
    }

    /// Takes one row. Returns the clock after it where that is worked out, unless the exchange was lost or rejected, or
    /// there is no clock yet.
    pub fn feed(&mut self, row: &TraceRow) -> Option<ReplayStep> {
        self.enter(row.epoch);
        let Some(exchange) = &row.exchange else {
            self.counts.lost += 1;
            return None;
        };
        let truth = row.truth.map(|truth| truth.received);
        let is_watched = truth.is_some() || self.detail == Detail::EveryExchange || self.warm.is_none();
        if is_watched {
            self.clock.publish();
        }
        let before = self.clock.published().copied();
        let outcome = self.clock.update(exchange);
        self.counts.note(&outcome);
        let is_rejected = matches!(outcome.verdict, Verdict::Rejected(_));
        if !is_rejected {
            self.last_counter = exchange.received.counter;
        }
        if is_watched {
            self.clock.publish();
        }
        let after = self.clock.published().copied();
        let counts = self.count_time(exchange, truth);
        let judged = |estimate: Option<Estimate>| judge(&estimate?, exchange.received.counter, truth?);
        let (error, error_before) = (judged(after), judged(before));
        if counts {
            error.into_iter().for_each(|judged| self.after.add(judged));
            error_before.into_iter().for_each(|judged| self.before.add(judged));
        }
        let estimate = after.filter(|_| is_watched && !is_rejected)?;
        Some(ReplayStep {
            sequence: row.sequence,
            verdict: outcome.verdict,
            estimate,
            counter: exchange.received.counter,
            floor: self.floor().unwrap_or_default(),
            error: error.map(|judged| judged.error),
            error_before: error_before.map(|judged| judged.error),
            truth,
            counts,
        })
    }

    /// A new epoch ends the clock of the one before.
    fn enter(&mut self, epoch: CounterEpoch) {
        if self.epoch.is_some_and(|present| present != epoch) {
            self.clock.restart();
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
        let is_warm = self.clock.published().is_some_and(|estimate| estimate.status > Status::WarmingUp);
        if is_warm && self.warm.is_none() {
            self.warm = Some(now);
        }
        match self.from {
            Some(from) => now - begin >= from,
            None => self.warm.is_some(),
        }
    }

    /// From the first to the last exchange.
    pub(crate) fn span(&self) -> Option<Span> {
        Some(self.end? - self.begin?)
    }

    /// From the first exchange to the end of the warm-up.
    pub(crate) fn warmup(&self) -> Option<Span> {
        Some(self.warm? - self.begin?)
    }

    /// The clock at the last reply, with that reading.
    pub(crate) fn last(&self) -> Option<(Estimate, Counter)> {
        Some((self.clock.present()?, self.last_counter))
    }

    /// The clock as published after the last exchange at which it was worked out.
    pub fn published(&self) -> Option<&Estimate> {
        self.clock.published()
    }

    /// The number of counter epochs so far.
    pub fn epochs(&self) -> u64 {
        self.counts.epochs
    }

    /// The smallest round trip of the present path; `None` before there is a clock.
    pub fn floor(&self) -> Option<Span> {
        self.clock.published().map(|_| self.clock.summary().floor)
    }

    /// The uncorrected clock minus the absolute one at the last exchange; `None` before there is a clock.
    pub(crate) fn offset(&self) -> Option<Span> {
        self.clock.published().map(|_| self.clock.summary().offset.as_span())
    }

    /// The relative error of `period` against the true mean period of the present epoch; `None` without the truth.
    pub(crate) fn rate_error(&self, period: Period) -> Option<Rate> {
        let slope = self.slope?;
        let ticks = slope.last.0 - slope.first.0;
        let seconds = (slope.last.1 - slope.first.1).as_seconds();
        let truth = Period::from_seconds(seconds / ticks.as_f64())?;
        Some(period.relative_to(truth))
    }
}

/// The round trip of an exchange without the server's own time, by the rate of an estimate.
pub fn round_trip(exchange: &Exchange, estimate: &Estimate) -> Span {
    let away = estimate.period * (exchange.received.counter - exchange.sent.counter);
    away - (exchange.server_out - exchange.server_in)
}

/// The clock of an estimate minus the server's in the middle of an exchange, as if both ways took equally long.
pub fn offset_at(exchange: &Exchange, estimate: &Estimate) -> Span {
    let ahead_at_reply = estimate.at(exchange.received.counter).time - exchange.server_out;
    let ahead_at_request = estimate.at(exchange.sent.counter).time - exchange.server_in;
    (ahead_at_reply + ahead_at_request).halved()
}

fn judge(estimate: &Estimate, counter: Counter, truth: Moment<Tai>) -> Option<JudgedReading> {
    let at = estimate.at(counter);
    Some(JudgedReading { error: ClockError::new(at.time - truth), bound: at.bound })
}
