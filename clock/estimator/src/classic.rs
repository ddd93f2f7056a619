//! The classic algorithm: RADclock's stages over windows in time, beside an observer that proves the bound.
//!
//! Stages run in this order, and a later one never reaches back: admission, proof, floor, long-term rate, local rate, offset. A longer
//! path is expressed only by editing the floor and its history before the later stages look. What each stage does, and why,
//! stands at the head of its file.

mod admission;
mod challenge;
mod floor;
mod minimum;
mod offset;
mod proof;
mod publish;
pub(crate) mod rate;
mod stages;
mod thresholds;
mod uncorrected;
mod weights;

use crate::frame::{Frame, Point};
use crate::history::{History, Record};
use crate::outcome::Measure;
use crate::{ClassicConfig, Event, Events, Outcome, RateMemory, Rejection, Verdict};
use admission::{Admission, Familiarity, Identities};
use challenge::{Case, Challenge, Ruling};
use ffclock_units::{Counter, Exchange, Period};
use floor::Floor;
use offset::{Offset, Present};
use proof::{Interval, Proof, Standing};
use rate::{LocalRate, LongRate, Slope};
use thresholds::Thresholds;
use uncorrected::Uncorrected;

/// The RADclock algorithm with windows in time and a proven bound.
///
/// After [`Classic::new`] no memory is allocated; [`Classic::bytes`] says how much it is.
#[derive(Clone, Debug)]
pub struct Classic {
    thresholds: Thresholds,
    nominal: Period,
    remembered: Option<RateMemory>,
    counts: Counts,
    admission: Admission,
    identities: Identities,
    floor: Floor,
    history: History,
    long: LongRate,
    local: LocalRate,
    proof: Proof,
    challenge: Challenge,
    now: Option<Now>,
    warming_up: bool,
}

/// What exists from the first exchange on.
#[derive(Clone, Copy, Debug)]
struct Now {
    frame: Frame,
    /// Tf of the last exchange that all stages used.
    counter: Counter,
    offset: Offset,
    uncorrected: Uncorrected,
    /// Where the warm-up began.
    begun: f64,
    /// Exchanges that the present time rests on.
    past: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    exchanges: u64,
    used: u64,
    rejected: u64,
    contradictions: u64,
    server_steps: u64,
    shifts_up: u64,
    shifts_down: u64,
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}

/// How an exchange enters the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// As the first one after a begin or a step.
    First,
    /// In agreement with what is proven.
    Agreeing,
    /// In agreement only if the rate moved more than assumed.
    Stretching,
}

impl Classic {
    /// An estimator without history. `nominal` is the period that the counter is sold with, wrong by no more than
    /// `config.nominal_error`; `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        Self::with(Thresholds::new(&config), nominal, remembered)
    }

    fn with(thresholds: Thresholds, nominal: Period, remembered: Option<RateMemory>) -> Self {
        let prior = remembered.and_then(|memory| believable(&memory, nominal, &thresholds));
        let guess = prior.unwrap_or(Slope { rate: 0.0, error: thresholds.nominal_error });
        Classic {
            nominal,
            remembered: remembered.filter(|_| prior.is_some()),
            counts: Counts::default(),
            admission: Admission::default(),
            identities: Identities::default(),
            floor: Floor::new(),
            history: History::new(thresholds.history()),
            long: LongRate::new(&thresholds, guess),
            local: LocalRate::default(),
            proof: Proof::new(&thresholds, prior.map(|slope| Interval::around(slope.rate, slope.error))),
            challenge: Challenge::default(),
            now: None,
            warming_up: true,
            thresholds,
        }
    }

    /// The memory that this estimator occupies, in bytes; constant from its making on.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.floor.bytes() + self.history.bytes() + self.long.bytes() + self.proof.bytes()
    }

    fn take_in(&mut self, exchange: &Exchange) -> Outcome {
        let frame = self.now.map_or_else(|| Frame::at(self.nominal, exchange), |now| now.frame);
        let point = frame.place(exchange);
        if let Err(why) = Admission::check_shape(exchange, &point, self.thresholds.nominal_error) {
            return self.refuse(why);
        }
        let Some(now) = self.now else {
            self.identities.meet(exchange.server.identity);
            return self.pass(exchange, Entry::First, Events::NONE);
        };
        if let Err(why) = self.admission.check_order(exchange) {
            return if self.admission.is_astray() { self.begin_again(exchange) } else { self.refuse(why) };
        }
        self.weigh_up(exchange, &point, &now)
    }

    /// Decides whether the exchange contradicts the past, and whose it is.
    fn weigh_up(&mut self, exchange: &Exchange, point: &Point, now: &Now) -> Outcome {
        let mut events = Events::NONE;
        let mut entry = Entry::Agreeing;
        match self.proof.standing(point, &self.thresholds) {
            Standing::Agrees => {}
            Standing::AgreesWithoutMemory => {
                events.add(Event::MemoryDropped);
                self.drop_memory();
            }
            Standing::AgreesWithMoreWander => {
                events.add(Event::WanderExceeded);
                entry = Entry::Stretching;
            }
            Standing::Contradicts => return self.contradicted(exchange, point, events),
        }
        let record = self.record(point);
        if now.offset.is_suspicious(&record, &self.present(point.x)) {
            events.add(Event::OffsetInsane);
            return self.contradicted(exchange, point, events);
        }
        self.challenge.dismiss();
        match self.identities.meet(exchange.server.identity) {
            Familiarity::Same => {}
            Familiarity::Known => events.add(Event::IdentityChanged),
            Familiarity::New => return self.floor_only(exchange, point, events),
        }
        self.pass(exchange, entry, events)
    }

    fn refuse(&mut self, why: Rejection) -> Outcome {
        count(&mut self.counts.rejected);
        Outcome::rejected(why)
    }

    fn drop_memory(&mut self) {
        self.proof.drop_memory(&self.thresholds);
        self.remembered = None;
        if self.warming_up {
            self.long.forget_prior(Slope { rate: 0.0, error: self.thresholds.nominal_error });
        }
    }

    fn contradicted(&mut self, exchange: &Exchange, point: &Point, events: Events) -> Outcome {
        count(&mut self.counts.contradictions);
        let past = self.now.map_or(0, |now| now.past);
        let case = Case { rates: self.proof.rates(), past, thresholds: &self.thresholds };
        match self.challenge.hear(exchange, point, case) {
            Ruling::Stands => Outcome { verdict: Verdict::Contradiction, events, measure: self.measure(point) },
            Ruling::Overturned => self.overturn(exchange, events),
            Ruling::Mistrial => {
                self.thresholds.nominal_error = (4.0 * self.thresholds.nominal_error).min(0.5);
                self.remembered = None;
                self.begin_again(exchange)
            }
        }
    }

    /// A begin without any history but the remembered rate.
    fn begin_again(&mut self, exchange: &Exchange) -> Outcome {
        self.forget();
        self.identities.meet(exchange.server.identity);
        let mut events = Events::NONE;
        events.add(Event::Restarted);
        self.pass(exchange, Entry::First, events)
    }

    fn forget(&mut self) {
        let counts = self.counts;
        *self = Self::with(self.thresholds.clone(), self.nominal, self.remembered);
        self.counts = counts;
    }

    /// Believes the server's new time. The rate and the floor stay; every comparison with earlier times ends.
    fn overturn(&mut self, exchange: &Exchange, mut events: Events) -> Outcome {
        events.add(Event::ServerStepAccepted);
        count(&mut self.counts.server_steps);
        self.identities.meet(exchange.server.identity);
        if self.now.is_none_or(|now| now.past < challenge::YOUNG) {
            self.forget();
            return self.pass(exchange, Entry::First, events);
        }
        self.history.clear();
        self.long.disconnect();
        self.local.forget();
        self.pass(exchange, Entry::First, events)
    }

    fn floor_only(&mut self, exchange: &Exchange, point: &Point, mut events: Events) -> Outcome {
        events.add(Event::IdentityChanged);
        self.admission.admit(exchange);
        self.update_floor(point, &mut events);
        Outcome { verdict: Verdict::FloorOnly, events, measure: self.measure(point) }
    }

    /// What the later stages keep of an exchange.
    fn record(&self, point: &Point) -> Record {
        let y = point.height() - self.thresholds.half_asymmetry;
        Record { x: point.middle, y, cost: point.net + point.blur(), floor: self.floor.value() }
    }

    fn present(&self, now: f64) -> Present<'_> {
        Present {
            now,
            rate: self.rate(),
            floor: self.floor.value(),
            trusting: self.warming_up,
            thresholds: &self.thresholds,
        }
    }

    /// The rate of the absolute clock: the local one where it is known and not excluded, otherwise the long-term one, or what is
    /// proven nearest to it.
    fn rate(&self) -> f64 {
        let (proven, long) = (self.proof.rates(), self.long.present().rate);
        let local = self.local.present().map(|local| local.rate).filter(|rate| proven.contains(*rate));
        local.unwrap_or(long.min(proven.high).max(proven.low))
    }

    /// The error that `point` alone ascribes to the clock as it was predicted.
    fn naive_error(&self, now: &Now, point: &Point) -> f64 {
        now.offset.predict(point.middle, self.rate()) - self.record(point).y
    }

    fn measure(&self, point: &Point) -> Measure {
        let offset = self.now.map_or(f64::NAN, |now| self.naive_error(&now, point));
        Measure { round_trip: point.net, point_error: self.record(point).error(), offset }
    }
}

/// The prior that a remembered rate gives; `None` when it lies outside what the counter can be.
fn believable(memory: &RateMemory, nominal: Period, thresholds: &Thresholds) -> Option<Slope> {
    let rate = memory.period.relative_to(nominal).as_fraction();
    let error = memory.bound.abs().as_fraction() + thresholds.memory_margin;
    (error.is_finite() && rate.abs() - error <= thresholds.nominal_error).then_some(Slope { rate, error })
}
