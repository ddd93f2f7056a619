//! The guard with the classic filter behind it: what both estimators are made of.

use super::prior::{AsymmetryPrior, ServerPrior, combined};
use crate::classic::{Admitted, ClassicMeasured, Filter};
use crate::frame::{Point, Slope};
use crate::guard::{Decision, Entry, Examined, Guard, Passage};
use crate::outcome::Measure;
use crate::{Agreement, ClassicConfig, Event, Events, Outcome, Summary, Verdict};
use ffclock_units::{
    ClockError, Counter, Estimate, Exchange, GrowthRate, Moment, Period, Rate, RateMemory, StandardUncertainty, Status,
    Tai,
};

/// The guard and the classic filter.
#[derive(Clone, Debug)]
pub struct Guarded {
    pub guard: Guard,
    pub classic: Filter,
    /// The server's claim of its own largest error with the last exchange that was used, s.
    claim: f64,
    /// The standard deviation of the path's asymmetry as a part of the round trip, where no error of it is stated.
    asymmetry_part: f64,
}

/// What the guard decided of an exchange, and what the classic filter measured.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// As the classic estimator publishes it.
    pub outcome: Outcome,
    /// Those of its events that are true whichever filter's time is published.
    pub common: Events,
    /// How the guard let the exchange in; `None` where it did not.
    pub entry: Option<Entry>,
    /// The exchange is within the proof, but the classic filter did not believe it.
    pub is_suspected: bool,
    /// How often the exchange contradicted, whether the past held or not: once or not at all.
    pub contradicted: u64,
}

impl Judged {
    /// How the exchange enters a filter that does not share the classic filter's suspicion: an exchange that was
    /// refused, or accepted as a step, because of this alone is an ordinary one. `None` if it does not enter.
    pub fn entry_without_suspicion(&self) -> Option<Entry> {
        if self.is_suspected { Some(Entry::Agreeing) } else { self.entry }
    }
}

impl Guarded {
    pub fn new(config: &ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        let guard = Guard::new(config, nominal, remembered);
        let classic = Filter::new(config, nominal, guard.prior());
        Guarded { guard, classic, claim: 0.0, asymmetry_part: config.asymmetry_deviation }
    }

    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.guard.bytes() + self.classic.bytes()
    }

    /// Takes an exchange; the estimator has to count it.
    pub fn take(&mut self, exchange: &Exchange) -> Judged {
        let mut events = Events::NONE;
        let examined = self.guard.examine(exchange, &mut events);
        let is_suspected = matches!(examined, Examined::Consistent(passage) if self.suspects(&passage, &events));
        let contradicted = u64::from(is_suspected || matches!(examined, Examined::Contradicts(_)));
        let decision = match examined {
            Examined::Decided(decision) => decision,
            Examined::Contradicts(point) => self.guard.contradict(exchange, &point, &mut events),
            Examined::Consistent(Passage { point, .. }) if is_suspected => {
                self.guard.contradict(exchange, &point, &mut events)
            }
            Examined::Consistent(passage) => self.guard.confirm(exchange, passage, &mut events),
        };
        let is_suspected = is_suspected && !events.contains(Event::Restarted);
        let judged = Judged {
            outcome: Outcome { verdict: Verdict::Used, events, measure: Measure::NONE },
            common: events,
            entry: None,
            is_suspected,
            contradicted,
        };
        let judged = self.carry_out(exchange, decision, judged);
        if judged.entry_without_suspicion().is_some() {
            self.claim = exchange.server.root_distance.as_seconds();
        }
        judged
    }

    /// What is assumed of the server's time beyond what its exchanges show.
    pub fn server_prior(&self) -> ServerPrior {
        let stated = self.guard.half_asymmetry_error().map(AsymmetryPrior::HalfError);
        ServerPrior { asymmetry: stated.unwrap_or(AsymmetryPrior::PartOfTrip(self.asymmetry_part)), claim: self.claim }
    }

    /// Whether the classic filter does not believe an exchange that is within the proof.
    fn suspects(&mut self, passage: &Passage, events: &Events) -> bool {
        if events.contains(Event::MemoryDropped) {
            self.classic.forget_prior(self.guard.prior());
        }
        self.classic.is_suspicious(&passage.point, self.guard.rates())
    }

    fn carry_out(&mut self, exchange: &Exchange, decision: Decision, judged: Judged) -> Judged {
        let mut own = Events::NONE;
        if judged.is_suspected {
            own.add(Event::OffsetInsane);
        }
        match decision {
            Decision::Rejected(why) => Judged { outcome: Outcome::rejected(why), common: Events::NONE, ..judged },
            Decision::Contradiction(point) => self.leave(Verdict::Contradiction, &point, own, judged),
            Decision::FloorOnly(point) => {
                self.classic.update_floor(&point, &mut own);
                self.leave(Verdict::FloorOnly, &point, own, judged)
            }
            Decision::Use(passage) => self.pass(exchange, passage, own, judged),
        }
    }

    /// An exchange that no filter takes the time from.
    fn leave(&self, verdict: Verdict, point: &Point, own: Events, judged: Judged) -> Judged {
        let offset = self.classic.naive_error(point, self.guard.rates());
        let measure = Measure { round_trip: point.net, point_error: self.classic.point_error(point), offset };
        Judged { outcome: Outcome { verdict, events: judged.common.with(own), measure }, ..judged }
    }

    fn pass(&mut self, exchange: &Exchange, passage: Passage, own: Events, judged: Judged) -> Judged {
        let Passage { point, entry } = passage;
        let offset = if entry.continues() { self.classic.naive_error(&point, self.guard.rates()) } else { f64::NAN };
        self.classic.prepare(entry, self.guard.prior());
        let proven = self.guard.admit(exchange, &passage, self.classic.settled_floor(point.x));
        let ClassicMeasured { rate, clock } = self.measure(passage);
        let measure = Measure { round_trip: point.net, point_error: self.classic.point_error(&point), offset };
        let common = judged.common.with(proven).with(rate);
        let events = common.with(own).with(clock);
        let outcome = Outcome { verdict: Verdict::Used, events, measure };
        Judged { outcome, common, entry: Some(entry), ..judged }
    }

    fn measure(&mut self, passage: Passage) -> ClassicMeasured {
        debug_assert!(self.guard.place().is_some(), "the guard let an exchange in");
        let Some((frame, counter)) = self.guard.place() else { return ClassicMeasured::default() };
        let proven = self.guard.rates();
        let mut measured = self.classic.measure(&Admitted { passage, frame, counter, proven });
        if let Some(height) = self.classic.height() {
            if !self.guard.allows(height) {
                measured.clock.add(Event::OutsideProof);
            }
            if let Some(step) = self.guard.move_frame(height) {
                self.classic.follow(step);
            }
        }
        measured
    }

    fn status(&self) -> Status {
        if self.guard.is_challenged() || self.classic.is_holding() {
            Status::Holdover
        } else if self.classic.long_rate().error > self.classic.local_quality() || self.guard.is_young() {
            Status::WarmingUp
        } else {
            Status::Synchronised
        }
    }

    /// The absolute clock of the classic filter at the last exchange that was used.
    pub fn time(&self) -> Option<(Counter, Moment<Tai>)> {
        let (frame, counter) = self.guard.place()?;
        Some((counter, frame.moment(counter, self.classic.height()?)))
    }

    /// The classic filter's estimate.
    pub fn estimate(&self) -> Option<Estimate> {
        let (counter, time) = self.time()?;
        let Slope { rate: rate_error, error } = self.classic.uncertainty()?;
        let rate = self.classic.rate(self.guard.rates());
        let Slope { rate: long, error: long_error } = self.classic.long_rate();
        let bound = self.guard.bound_of_height(self.classic.height()?);
        let bound_growth = self.guard.growth(rate);
        let systematic = self.server_prior().deviation(self.classic.floor().as_seconds());
        Some(Estimate {
            counter,
            time,
            period: self.guard.period_at(rate),
            uncertainty: combined(error, systematic).at_most(bound),
            noise: StandardUncertainty::from_seconds(error).at_most(bound),
            uncertainty_growth: GrowthRate::of(Rate::from_fraction(rate_error)).min(bound_growth),
            bound,
            bound_growth,
            difference_period: self.guard.period_at(long),
            difference_bound: self.guard.growth(long),
            difference_uncertainty: GrowthRate::of(Rate::from_fraction(long_error)).min(self.guard.growth(long)),
            status: self.status(),
        })
    }

    /// The figures of the classic filter.
    pub fn summary(&self) -> Summary {
        let offset = self.time().and_then(|(counter, time)| Some(self.classic.uncorrected(counter)? - time));
        let long = self.classic.long_rate();
        let (counts, shifts) = (self.guard.counts(), self.classic.shifts());
        Summary {
            exchanges: counts.exchanges,
            used: counts.used,
            rejected: counts.rejected,
            contradictions: counts.contradictions,
            server_steps: counts.server_steps,
            floor: self.classic.floor(),
            shifts_up: shifts.up,
            shifts_down: shifts.down,
            period: self.guard.period_at(long.rate),
            period_error: Rate::from_fraction(long.error),
            local_rate: self.classic.local_rate(self.guard.rates()),
            offset: offset.map(ClockError::new).unwrap_or_default(),
            poll: self.classic.poll(),
            wander: self.guard.wander(),
            warming_up: self.classic.is_warming_up(),
            agreement: Agreement::Alone,
        }
    }

    /// What is worth keeping across a restart of the program.
    pub fn memory(&self) -> Option<RateMemory> {
        self.guard.memory(self.classic.long_rate(), self.classic.local_quality())
    }

    /// Forgets everything but the rate.
    pub fn restart(&mut self) {
        self.guard.restart(self.memory());
        self.classic.forget(self.guard.prior());
    }
}
