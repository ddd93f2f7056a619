//! The classic algorithm.

use crate::outcome::Measure;
use crate::{ClassicConfig, Estimator, Events, Outcome, RateMemory, Rejection, Summary, Verdict};
use ffclock_units::{Bound, ClockError, Estimate, Exchange, GrowthRate, Period, Rate, Span, Status};

/// The RADclock algorithm with windows in time and a proven bound.
pub struct Classic {
    config: ClassicConfig,
    nominal: Period,
    remembered: Option<RateMemory>,
    last: Option<Exchange>,
    used: u64,
    exchanges: u64,
}

impl Classic {
    /// An estimator without history. `nominal` is the period that the counter is sold with, wrong by no more than
    /// `config.nominal_error`; `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        Classic { config, nominal, remembered, last: None, used: 0, exchanges: 0 }
    }

    fn period(&self) -> Period {
        self.remembered.map_or(self.nominal, |memory| memory.period)
    }
}

impl Estimator for Classic {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        self.exchanges = self.exchanges.saturating_add(1);
        if !exchange.received.counter.is_after(exchange.sent.counter) {
            return Outcome::rejected(Rejection::NegativeRoundTrip);
        }
        self.used = self.used.saturating_add(1);
        self.last = Some(*exchange);
        Outcome { verdict: Verdict::Used, events: Events::NONE, measure: Measure::NONE }
    }

    fn estimate(&self) -> Option<Estimate> {
        let last = self.last?;
        let half = (self.period() * (last.received.counter - last.sent.counter)).halved();
        let growth = GrowthRate::of(self.config.nominal_error);
        Some(Estimate {
            counter: last.received.counter,
            time: last.server_in.midpoint(last.server_out) + half,
            period: self.period(),
            uncertainty: Bound::of(half),
            uncertainty_growth: growth,
            bound: Bound::of(half) + last.server.root_distance,
            bound_growth: growth,
            difference_period: self.period(),
            difference_bound: growth,
            status: Status::WarmingUp,
        })
    }

    fn summary(&self) -> Summary {
        Summary {
            exchanges: self.exchanges,
            used: self.used,
            rejected: self.exchanges.saturating_sub(self.used),
            contradictions: 0,
            server_steps: 0,
            floor: Span::ZERO,
            shifts_up: 0,
            shifts_down: 0,
            period: self.period(),
            period_error: Rate::ZERO,
            local_rate: None,
            offset: ClockError::default(),
            poll: Span::ZERO,
            warming_up: true,
        }
    }

    fn memory(&self) -> Option<RateMemory> {
        self.remembered
    }

    fn restart(&mut self) {
        self.last = None;
    }
}
