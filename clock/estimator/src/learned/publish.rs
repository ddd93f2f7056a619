//! What the learned algorithm tells: its own time and uncertainty, within the bounds that the classic part proves.

use super::{Learned, MICRO, Now, YOUNG};
use crate::{Agreement, Estimator, Event, Events, Outcome, RateMemory, Summary};
use ffclock_units::{
    ClockError, Estimate, Exchange, GrowthRate, Moment, Period, Rate, Span, StandardUncertainty, Status, Tai,
};

/// What the arithmetic of the filter can lose, s.
const LEAST_UNCERTAINTY: f64 = 1e-8;

/// The two algorithms disagree when they are further apart than this many times their joint uncertainty.
const DISAGREEMENT: f64 = 3.0;

/// A rate that is uncertain by more than this is not known yet.
const WARM_RATE: f64 = 1e-6;

impl Learned {
    pub(super) fn time(now: &Now) -> Moment<Tai> {
        now.frame.moment(now.counter, now.blend.theta * MICRO)
    }

    /// The period at a rate in ppm.
    fn period_at(&self, rate: f64) -> Period {
        Period::from_seconds(self.nominal.as_seconds() * (1.0 + rate * MICRO)).unwrap_or(self.nominal)
    }

    pub(super) fn uncertainty(&self, now: &Now) -> StandardUncertainty {
        let deviation = libm::hypot(self.edges.deviation(), libm::sqrt(now.blend.variance.max(0.0)));
        StandardUncertainty::from_seconds(deviation * MICRO + LEAST_UNCERTAINTY)
    }

    fn uncertainty_growth(now: &Now) -> Rate {
        let growth = now.blend.deviation_later - libm::sqrt(now.blend.variance.max(0.0));
        Rate::from_fraction(growth.max(0.0) * MICRO / now.later)
    }

    pub(super) fn status(&self, now: &Now) -> Status {
        if self.is_contradicted || self.displacement.step(self.floors()).is_some() {
            Status::Holdover
        } else if now.past < YOUNG || Self::uncertainty_growth(now) > Rate::from_fraction(WARM_RATE) {
            Status::WarmingUp
        } else {
            Status::Synchronised
        }
    }

    fn make_estimate(&self, now: &Now) -> Option<Estimate> {
        self.classic.estimate()?;
        let time = Self::time(now);
        let bound = self.classic.bound_of(now.counter, time);
        let bound_growth = self.classic.growth(now.blend.rate * MICRO);
        Some(Estimate {
            counter: now.counter,
            time,
            period: self.period_at(now.blend.rate),
            uncertainty: self.uncertainty(now).at_most(bound),
            uncertainty_growth: GrowthRate::of(Self::uncertainty_growth(now)).min(bound_growth),
            bound,
            bound_growth,
            difference_period: self.period_at(now.pace.rate),
            difference_bound: self.classic.growth(now.pace.rate * MICRO),
            status: self.status(now),
        })
    }

    /// Holds the learned time against the classic one, and tells when they begin to disagree.
    pub(super) fn compare(&self, now: &mut Now, events: &mut Events) {
        let Some(other) = self.classic.estimate() else { return };
        let apart = (Self::time(now) - other.at(now.counter).time).as_seconds().abs();
        let joint = self.uncertainty(now).as_seconds() + other.uncertainty.as_seconds();
        let disagrees = now.past >= YOUNG && apart > DISAGREEMENT * joint;
        if disagrees && !now.disagrees {
            events.add(Event::Disagreement);
        }
        now.disagrees = disagrees;
    }

    fn agreement(&self) -> Agreement {
        match self.now {
            Some(now) if now.disagrees => Agreement::Disagree,
            Some(now) if now.past >= YOUNG && !self.learning.is_young() => Agreement::Agree,
            _ => Agreement::TooLittleData,
        }
    }
}

impl Estimator for Learned {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        self.take_in(exchange)
    }

    fn estimate(&self) -> Option<Estimate> {
        self.now.as_ref().and_then(|now| self.make_estimate(now))
    }

    fn summary(&self) -> Summary {
        let classic = self.classic.summary();
        let classic = Summary {
            used: classic.used.saturating_add(self.used_alone),
            contradictions: classic.contradictions.saturating_sub(self.used_alone),
            server_steps: self.server_steps,
            ..classic
        };
        let Some(now) = self.now else { return Summary { agreement: self.agreement(), ..classic } };
        let [forward, backward] = now.blend.floors;
        let before =
            self.classic.estimate().map(|other| other.at(now.counter).time - Self::time(&now)).unwrap_or_default();
        let rate = (1.0 + now.blend.rate * MICRO) / (1.0 + classic.period.relative_to(self.nominal).as_fraction());
        Summary {
            floor: Span::from_seconds((forward + backward) * MICRO),
            shifts_up: self.shifts_up,
            shifts_down: self.shifts_down,
            local_rate: Some(Rate::from_fraction(rate - 1.0)),
            offset: ClockError::new(classic.offset.as_span() + before),
            warming_up: now.past < YOUNG,
            agreement: self.agreement(),
            ..classic
        }
    }

    fn memory(&self) -> Option<RateMemory> {
        self.classic.memory()
    }

    fn restart(&mut self) {
        self.classic.restart();
        self.now = None;
    }
}
