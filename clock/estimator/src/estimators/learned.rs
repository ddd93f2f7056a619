//! The learned estimator: the guard with the learned filter behind it, and the classic filter as a second opinion.

use super::guarded::{Guarded, Judged};
use super::prior::{ServerPrior, combined};
use crate::bank::Densities;
use crate::bank::group::{Begin, Evident};
use crate::frame::Point;
use crate::guard::Entry;
use crate::learned::{Filter, Input, Measured, Revisions, State};
use crate::outcome::Measure;
use crate::tuning::learned::DISAGREEMENT;
use crate::{
    Agreement, ClassicConfig, Estimator, Event, Events, LearnedConfig, Outcome, ProvenInterval, Rejection, Summary,
    Verdict,
};
use ffclock_units::{
    ClockError, Counter, Estimate, Exchange, GrowthRate, Period, Rate, RateMemory, Span, StandardUncertainty, Status,
};

/// The learned algorithm within the bounds of the guard.
///
/// After [`Learned::new`] no memory is allocated; [`Learned::bytes`] says how much it is.
#[derive(Clone, Debug)]
pub struct Learned {
    guarded: Guarded,
    filter: Filter,
    /// The last exchange contradicted what is proven.
    is_contradicted: bool,
    disagrees: bool,
    revisions: Revisions,
    /// How the last exchange was used.
    last: Outcome,
    /// How the last exchange that the filter took entered it.
    entry: Entry,
}

impl Learned {
    /// An estimator without history. `classic` configures the guard and the second opinion; `nominal` is the period
    /// that the counter is sold with, and `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: LearnedConfig, classic: ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        Learned {
            guarded: Guarded::new(&classic, nominal, remembered),
            filter: Filter::new(config, &classic, nominal, 1),
            is_contradicted: false,
            disagrees: false,
            revisions: Revisions::default(),
            last: Outcome::rejected(Rejection::OutOfOrder),
            entry: Entry::First,
        }
    }

    /// The memory that this estimator occupies, in bytes; constant from its making on.
    pub fn bytes(&self) -> usize {
        let inline = size_of::<Self>().saturating_sub(size_of::<Guarded>());
        inline + self.guarded.bytes() + self.filter.bytes()
    }

    /// What the last exchange made the filter believe of the time before it.
    pub(crate) fn revisions(&self) -> &Revisions {
        &self.revisions
    }

    /// What is known of queueing now.
    pub(crate) fn densities(&self) -> Densities<'_> {
        self.filter.densities(0)
    }

    /// The filter behind the guard.
    pub(crate) fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The period that the counter is sold with.
    pub(crate) fn nominal(&self) -> Period {
        self.guarded.guard.nominal()
    }

    /// What is assumed of the server's time beyond what its exchanges show.
    pub(crate) fn server_prior(&self) -> ServerPrior {
        self.guarded.server_prior()
    }

    /// How the last exchange was used.
    pub(crate) fn last(&self) -> &Outcome {
        &self.last
    }

    /// The last exchange, for a filter of several servers.
    pub(crate) fn input<'a>(&'a self, server: usize, exchange: &'a Exchange, evident: Evident) -> Input<'a> {
        let Guarded { guard, classic, .. } = &self.guarded;
        let fallback_rate = classic.rate(guard.rates());
        Input { server, exchange, evident, guard, entry: self.entry, fallback_rate }
    }

    /// Where a clock begins with an exchange.
    pub(crate) fn beginning(&self, point: &Point) -> Begin {
        self.filter.begin_at(0, point, self.guarded.guard.prior())
    }

    /// Hands an exchange to the filter: one that is used, or one that only the second opinion suspects. Its two packets
    /// apart show more than its offset alone.
    fn measure(&mut self, exchange: &Exchange, judged: &Judged) -> Outcome {
        self.revisions = Revisions::default();
        let is_suspected_only = judged.outcome.verdict == Verdict::Contradiction && judged.is_suspected;
        self.is_contradicted = match judged.outcome.verdict {
            Verdict::Used | Verdict::FloorOnly => false,
            Verdict::Contradiction => !is_suspected_only,
            Verdict::Rejected(_) => self.is_contradicted,
        };
        let Some(entry) = judged.entry_without_suspicion() else { return judged.outcome };
        self.entry = entry;
        let Guarded { guard, classic, .. } = &self.guarded;
        let fallback_rate = classic.rate(guard.rates());
        let input = Input { server: 0, exchange, evident: Evident::All, guard, entry, fallback_rate };
        let Measured { mut events, offset, revisions, doubts_proof } = self.filter.measure(&input);
        self.revisions = revisions;
        if doubts_proof && self.guarded.guard.doubt_wander(exchange) {
            events.add(Event::WanderExceeded);
        }
        self.compare(&mut events);
        let common = match entry {
            Entry::Step(_) => judged.common,
            _ => judged.common.without(Event::ServerStepAccepted),
        };
        Outcome {
            verdict: Verdict::Used,
            events: events.with(common),
            measure: Measure { offset, ..judged.outcome.measure },
        }
    }

    /// Compares the two filters; an event says when they begin to disagree.
    fn compare(&mut self, events: &mut Events) {
        let states = self.filter.state().zip(self.guarded.estimate());
        let disagrees = states.is_some_and(|(state, other)| disagree(&state, &other));
        if disagrees && !self.disagrees {
            events.add(Event::Disagreement);
        }
        debug_assert!(self.filter.state().is_some() && self.guarded.estimate().is_some());
        self.disagrees = disagrees;
    }

    fn status(&self, state: &State) -> Status {
        if self.is_contradicted || state.is_displaced { Status::Holdover } else { state.status() }
    }

    fn make_estimate(&self, state: &State) -> Estimate {
        let guard = &self.guarded.guard;
        let bound = guard.bound_of(state.counter, state.time);
        let bound_growth = guard.growth(state.rate);
        let systematic = self.server_prior().deviation(self.filter.floor(0));
        Estimate {
            counter: state.counter,
            time: state.time,
            period: guard.period_at(state.rate),
            uncertainty: combined(state.noise, systematic).at_most(bound),
            noise: StandardUncertainty::from_seconds(state.noise).at_most(bound),
            uncertainty_growth: GrowthRate::of(Rate::from_fraction(state.growth)).min(bound_growth),
            bound,
            bound_growth,
            difference_period: guard.period_at(state.difference_rate),
            difference_bound: guard.growth(state.difference_rate),
            difference_uncertainty: GrowthRate::of(Rate::from_fraction(state.difference_deviation))
                .min(guard.growth(state.difference_rate)),
            status: self.status(state),
        }
    }

    fn agreement(&self, state: &State) -> Agreement {
        if self.disagrees {
            Agreement::Disagree
        } else if state.is_young || !state.is_taught {
            Agreement::TooLittleData
        } else {
            Agreement::Agree
        }
    }
}

/// Whether the learned state and the classic estimate are further apart than their noise explains: what no exchange
/// shows is common to both.
fn disagree(state: &State, other: &Estimate) -> bool {
    let apart = (state.time - other.at(state.counter).time).as_seconds().abs();
    let joint = StandardUncertainty::from_seconds(state.noise).as_seconds() + other.noise.as_seconds();
    !state.is_young && apart > DISAGREEMENT * joint
}

impl Estimator for Learned {
    fn update(&mut self, exchange: &Exchange) -> Outcome {
        let judged = self.guarded.take(exchange);
        let outcome = self.measure(exchange, &judged);
        // What only the second opinion suspects is used here.
        let is_used_after_all = outcome.verdict != judged.outcome.verdict;
        let contradicted = if is_used_after_all { 0 } else { judged.contradicted };
        self.guarded.guard.count(&outcome, contradicted);
        self.last = outcome;
        outcome
    }

    fn estimate(&self) -> Option<Estimate> {
        self.filter.state().map(|state| self.make_estimate(&state))
    }

    fn proven(&self, counter: Counter) -> Option<ProvenInterval> {
        self.guarded.guard.proven(counter)
    }

    fn claimed(&self, counter: Counter) -> Option<ProvenInterval> {
        self.guarded.guard.claimed(counter)
    }

    fn summary(&self) -> Summary {
        let shifts = self.filter.shifts();
        let common = self.guarded.summary();
        let Some(state) = self.filter.state() else {
            return Summary { agreement: Agreement::TooLittleData, ..common };
        };
        let before = self.guarded.estimate().map(|other| other.at(state.counter).time - state.time);
        let rate = (1.0 + state.rate) / (1.0 + common.period.relative_to(self.guarded.guard.nominal()).as_fraction());
        Summary {
            floor: Span::from_seconds(self.filter.floor(0)),
            shifts_up: shifts.up,
            shifts_down: shifts.down,
            local_rate: Some(Rate::from_fraction(rate - 1.0)),
            offset: ClockError::new(common.offset.as_span() + before.unwrap_or_default()),
            warming_up: state.is_young,
            agreement: self.agreement(&state),
            ..common
        }
    }

    fn memory(&self) -> Option<RateMemory> {
        self.guarded.memory()
    }

    fn restart(&mut self) {
        self.guarded.restart();
        self.filter.forget();
        self.disagrees = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learned::tests::exchange;
    use ffclock_units::{Bound, Ticks};

    /// A clock after a while, and its state.
    fn settled() -> (Learned, State) {
        settled_with(ClassicConfig::default())
    }

    fn settled_with(config: ClassicConfig) -> (Learned, State) {
        let nominal = Period::from_hertz(1e9).unwrap();
        let mut learned = Learned::new(LearnedConfig::default(), config, nominal, None);
        (0..400).for_each(|number| _ = learned.update(&exchange(number)));
        let state = learned.filter.state().unwrap();
        assert_eq!(learned.status(&state), Status::Synchronised);
        (learned, state)
    }

    #[test]
    fn a_clock_whose_noise_grows_by_more_than_1_ppm_is_warming_up() {
        let (learned, state) = settled();
        for (ppm, status) in [(0.9, Status::Synchronised), (1.1, Status::WarmingUp)] {
            assert_eq!(learned.status(&State { growth: ppm * 1e-6, ..state }), status);
        }
    }

    /// The exchanges have a floor of 280 us, and the server claims no error, which counts for 0.1 us.
    #[test]
    fn the_uncertainty_contains_what_the_options_say_of_the_path() {
        let usual = ClassicConfig::default();
        let narrow = ClassicConfig { asymmetry_deviation: 0.02, ..usual.clone() };
        let stated = ClassicConfig { asymmetry_error: Bound::of(Span::from_micros(40)), ..usual.clone() };
        for (config, expected_us) in [(usual, 14.0), (narrow, 2.8), (stated, 20.0 / 3.0_f64.sqrt())] {
            let (learned, state) = settled_with(config);
            let estimate = learned.estimate().unwrap();
            assert_eq!(estimate.noise, StandardUncertainty::from_seconds(state.noise));
            let [noise, combined] = [estimate.noise, estimate.uncertainty].map(|one| one.as_seconds() * 1e6);
            let systematic = (combined * combined - noise * noise - 0.01).sqrt();
            assert!((systematic / expected_us - 1.0).abs() < 0.02, "{systematic} {expected_us}");
        }
    }

    #[test]
    fn the_filters_disagree_beyond_three_joint_uncertainties() {
        let (learned, state) = settled();
        let other = learned.guarded.estimate().unwrap();
        let joint = state.noise + other.noise.as_seconds();
        for (times, disagrees) in [(2.9, false), (3.1, true)] {
            let time = other.at(state.counter).time + Span::from_seconds(times * joint);
            assert_eq!(disagree(&State { time, ..state }, &other), disagrees, "{times}");
        }
    }

    #[test]
    fn the_proven_interval_holds_the_time_and_grows() {
        let (learned, state) = settled();
        let at = |ticks: i64| learned.proven(state.counter + Ticks::from_raw(ticks));
        let (now, later) = (at(0).unwrap(), at(1_000_000_000_000).unwrap());
        assert!(now.earliest <= state.time && state.time <= now.latest);
        assert!(later.latest - later.earliest > now.latest - now.earliest);
        let before = at(-1_000_000_000).unwrap();
        assert!(before.latest - before.earliest > now.latest - now.earliest);
        assert!(before.latest < now.latest && before.earliest < now.earliest);
        let bound = learned.estimate().unwrap().bound.as_seconds();
        let reach = (now.latest - state.time).max(state.time - now.earliest).as_seconds();
        assert!((reach - bound).abs() < 1e-11, "{reach} {bound}");
    }
}
