//! What the estimator tells: the estimate with its bounds, and figures for people.

use super::challenge::YOUNG;
use super::proof::Interval;
use super::rate::Slope;
use super::{Classic, Now, believable, count};
use crate::{Agreement, Estimator, Outcome, RateMemory, Summary};
use ffclock_units::{
    Bound, ClockError, Counter, Estimate, Exchange, GrowthRate, Moment, Rate, Span, StandardUncertainty, Status, Tai,
};

/// What the arithmetic between the proof and a page can add to an error: s, and s/s.
const ROUNDING: f64 = 1e-12;
const RATE_ROUNDING: f64 = 1e-14;

impl Classic {
    /// How fast a clock at `rate` can leave the true time.
    pub(crate) fn growth(&self, rate: f64) -> GrowthRate {
        let reach = self.proof.rates().reach(rate) / (1.0 + rate).max(0.5);
        GrowthRate::of(Rate::from_fraction(reach + RATE_ROUNDING))
    }

    /// What is proven of the height at `counter`, not before the last exchange that was used, and the height of `time` there.
    fn proven_beside(&self, counter: Counter, time: Moment<Tai>) -> Option<(Interval, f64)> {
        let frame = self.now?.frame;
        Some((self.proof.height_at(frame.position(counter)), frame.height(counter, time)))
    }

    /// How far a clock that reads `time` at `counter`, not before the last exchange that was used, can be from the true time.
    pub(crate) fn bound_of(&self, counter: Counter, time: Moment<Tai>) -> Bound {
        self.proven_beside(counter, time).map_or(Bound::UNKNOWN, |(proven, height)| bound_within(proven, height))
    }

    /// Whether `time` at `counter`, not before the last exchange that was used, lies within what is proven.
    pub(crate) fn is_proven(&self, counter: Counter, time: Moment<Tai>) -> bool {
        self.proven_beside(counter, time).is_none_or(|(proven, height)| proven.contains(height))
    }

    /// The rate that the absolute clock runs at, relative to the nominal one.
    pub(crate) fn present_rate(&self) -> f64 {
        self.rate()
    }

    /// What was believed about the rate before any exchange.
    pub(crate) fn prior(&self) -> Slope {
        let remembered = self.remembered.and_then(|memory| believable(&memory, self.nominal, &self.thresholds));
        remembered.unwrap_or(Slope { rate: 0.0, error: self.thresholds.nominal_error })
    }

    fn status(&self, now: &Now) -> Status {
        let held = now.offset.x - now.offset.genuine > self.thresholds.offset_window;
        if self.challenge.is_open() || held {
            Status::Holdover
        } else if self.long.present().error > self.thresholds.local_quality || now.past < YOUNG {
            Status::WarmingUp
        } else {
            Status::Synchronised
        }
    }

    fn make_estimate(&self, now: &Now) -> Estimate {
        let rate = self.rate();
        let bound = bound_within(self.proof.height(), now.offset.height);
        let bound_growth = self.growth(rate);
        let rate_error = self.thresholds.rate_error;
        let uncertainty = StandardUncertainty::from_seconds(now.offset.uncertainty(rate_error));
        Estimate {
            counter: now.counter,
            time: Self::absolute(now),
            period: self.period_at(rate),
            uncertainty: uncertainty.at_most(bound),
            uncertainty_growth: GrowthRate::of(Rate::from_fraction(rate_error)).min(bound_growth),
            bound,
            bound_growth,
            difference_period: self.period_at(self.long.present().rate),
            difference_bound: self.growth(self.long.present().rate),
            status: self.status(now),
        }
    }

    /// The local rate relative to the long-term one, if it is in use.
    fn local_rate(&self) -> Option<Rate> {
        let long = self.long.present().rate;
        let local = self.local.present().filter(|local| self.proof.rates().contains(local.rate));
        local.map(|local| Rate::from_fraction((1.0 + local.rate) / (1.0 + long) - 1.0))
    }
}

/// How far a clock of this height can be from the true one, which is within `proven`.
fn bound_within(proven: Interval, height: f64) -> Bound {
    Bound::from_seconds(proven.reach(height) + ROUNDING)
}

impl Estimator for Classic {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        count(&mut self.counts.exchanges);
        self.take_in(exchange)
    }

    fn estimate(&self) -> Option<Estimate> {
        self.now.as_ref().map(|now| self.make_estimate(now))
    }

    fn summary(&self) -> Summary {
        let offset = self.now.map(|now| ClockError::new(now.uncorrected.at(now.counter) - Self::absolute(&now)));
        let long = self.long.present();
        Summary {
            exchanges: self.counts.exchanges,
            used: self.counts.used,
            rejected: self.counts.rejected,
            contradictions: self.counts.contradictions,
            server_steps: self.counts.server_steps,
            floor: Span::from_seconds(self.floor.value()),
            shifts_up: self.counts.shifts_up,
            shifts_down: self.counts.shifts_down,
            period: self.period_at(long.rate),
            period_error: Rate::from_fraction(long.error),
            local_rate: self.local_rate(),
            offset: offset.unwrap_or_default(),
            poll: Span::from_seconds(self.floor.poll()),
            warming_up: self.warming_up,
            agreement: Agreement::Alone,
        }
    }

    fn memory(&self) -> Option<RateMemory> {
        let long = self.long.present();
        let measured = self.now.filter(|now| now.past >= YOUNG).map(|_| {
            let bound = Rate::from_fraction(self.proof.rates().reach(long.rate));
            RateMemory { period: self.period_at(long.rate), bound }
        });
        // A short run is better than nothing, but it does not replace what a longer one found out.
        if long.error <= self.thresholds.local_quality { measured } else { self.remembered.or(measured) }
    }

    fn restart(&mut self) {
        self.remembered = self.memory();
        self.forget();
    }
}
