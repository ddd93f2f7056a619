//! The guard of one server: which exchanges are let in, what they prove about the true time, and when a contradiction
//! is believed.
//!
//! The guard decides and a filter only measures. It reads no filter's state. Two of a filter's findings reach it, as
//! arguments: a suspicion, which makes a contradiction of an exchange that the proof allows, and the path's floor,
//! which narrows the proof where an asymmetry is stated. `estimators/guarded.rs` passes both on. An exchange passes
//! [`Guard::examine`], then [`Guard::confirm`] or [`Guard::contradict`], and, where the decision is [`Decision::Use`],
//! [`Guard::admit`].

pub mod admission;
pub mod assumptions;
pub mod challenge;
pub mod proof;
mod shortest;
mod wander;

use crate::frame::{Frame, Move, Point, Slope};
use crate::interval::Interval;
use crate::tuning::guard::{FRAME_REACH, LARGEST_NOMINAL_ERROR, NOMINAL_ROOM, RATE_ROUNDING, ROUNDING, YOUNG};
use crate::{ClassicConfig, Event, Events, Outcome, ProvenInterval, Rejection, Verdict};
use admission::{Admission, Familiarity, Identities};
use assumptions::Assumptions;
use challenge::{Challenge, ChallengeContext, Resolution};
use ffclock_units::{Bound, Counter, Exchange, GrowthRate, Moment, Period, Rate, RateMemory, Tai};
use proof::{Proof, ProofStanding, alone_calibrated};
use shortest::ShortestTrips;

/// How an exchange enters a filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entry {
    /// As the first one of all.
    First,
    /// As the first one after everything but the remembered rate was forgotten: the counter or its order is another.
    Restart,
    /// As the first one after a step of the server: the rate and the floor stay, and positions moved. `None` after a
    /// step away from a past of a few exchanges, of which the guard keeps nothing but the remembered rate.
    Step(Option<Move>),
    /// In agreement with what is proven.
    Agreeing,
    /// In agreement only if the rate moved more than assumed.
    Stretching,
}

impl Entry {
    /// Whether earlier times are comparable with this exchange.
    pub fn continues(self) -> bool {
        matches!(self, Entry::Agreeing | Entry::Stretching)
    }
}

/// An exchange on its way through the filters, in the guard's frame.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    pub point: Point,
    pub entry: Entry,
}

/// What the guard finds before a filter is asked.
#[derive(Clone, Copy, Debug)]
pub enum Examined {
    /// Nothing is left to be asked.
    Decided(Decision),
    /// It agrees with what is proven.
    Consistent(Passage),
    /// It contradicts what is proven.
    Contradicts(Point),
}

/// How an exchange is used.
#[derive(Clone, Copy, Debug)]
pub enum Decision {
    /// It is not used.
    Rejected(Rejection),
    /// It is not used: it contradicts, and the past stands.
    Contradiction(Point),
    /// It shows the path, not the time: the server has just become another one.
    FloorOnly(Point),
    /// It is used.
    Use(Passage),
}

/// What exists from the first exchange on.
#[derive(Clone, Copy, Debug)]
struct GuardNow {
    frame: Frame,
    /// Tf of the last exchange that was used.
    counter: Counter,
    /// Exchanges that the present time rests on.
    past: u64,
}

/// How many exchanges there were, and how they were used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub exchanges: u64,
    pub used: u64,
    pub rejected: u64,
    pub contradictions: u64,
    pub server_steps: u64,
}

/// The guard.
#[derive(Clone, Debug)]
pub struct Guard {
    assumptions: Assumptions,
    nominal: Period,
    remembered: Option<RateMemory>,
    counts: Counts,
    admission: Admission,
    identities: Identities,
    proof: Proof,
    shortest: ShortestTrips,
    challenge: Challenge,
    now: Option<GuardNow>,
}

impl Guard {
    /// A guard that has seen nothing. `nominal` is the period that the counter is sold with, wrong by no more than
    /// `config.nominal_error`; `remembered` is what an earlier estimator of the same counter knew.
    pub fn new(config: &ClassicConfig, nominal: Period, remembered: Option<RateMemory>) -> Self {
        Self::with(Assumptions::new(config), nominal, remembered)
    }

    fn with(mut assumptions: Assumptions, nominal: Period, remembered: Option<RateMemory>) -> Self {
        let prior = remembered.and_then(|memory| assumptions.believable(&memory, nominal));
        if let Some(memory) = remembered.filter(|_| prior.is_some()) {
            assumptions.recall_wander(&memory);
        }
        Guard {
            nominal,
            remembered: remembered.filter(|_| prior.is_some()),
            counts: Counts::default(),
            admission: Admission::default(),
            identities: Identities::default(),
            proof: Proof::new(&assumptions, prior.map(|slope| Interval::around(slope.rate, slope.error))),
            shortest: ShortestTrips::NONE,
            challenge: Challenge::default(),
            now: None,
            assumptions,
        }
    }

    /// The bytes that its history occupies.
    pub fn bytes(&self) -> usize {
        self.proof.bytes()
    }

    /// Looks at an exchange before any filter does.
    pub fn examine(&mut self, exchange: &Exchange, events: &mut Events) -> Examined {
        let frame = self.now.map_or_else(|| Frame::at(self.nominal, exchange), |now| now.frame);
        let point = frame.place(exchange);
        if let Err(why) = Admission::check_shape(exchange, &point, self.assumptions.nominal_error) {
            return Examined::Decided(Decision::Rejected(why));
        }
        if self.now.is_none() {
            self.identities.meet(exchange.server.identity);
            return Examined::Decided(Decision::Use(self.begin(exchange, Entry::First)));
        }
        if let Err(why) = self.admission.check_order(exchange) {
            let is_astray = self.admission.is_astray();
            let decision = if is_astray { self.begin_again(exchange, events) } else { Decision::Rejected(why) };
            return Examined::Decided(decision);
        }
        let entry = match self.proof.standing(&point, &self.assumptions) {
            ProofStanding::Agrees => Entry::Agreeing,
            ProofStanding::AgreesWithoutMemory => {
                events.add(Event::MemoryDropped);
                self.proof.drop_memory();
                self.remembered = None;
                Entry::Agreeing
            }
            ProofStanding::AgreesWithMoreWander => {
                events.add(Event::WanderExceeded);
                Entry::Stretching
            }
            ProofStanding::Contradicts => return Examined::Contradicts(point),
        };
        Examined::Consistent(Passage { point, entry })
    }

    /// Nothing speaks against an exchange. What it is used for depends on whose it is.
    pub fn confirm(&mut self, exchange: &Exchange, passage: Passage, events: &mut Events) -> Decision {
        self.challenge.dismiss();
        match self.identities.meet(exchange.server.identity) {
            Familiarity::Same => {}
            Familiarity::Known => events.add(Event::IdentityChanged),
            Familiarity::New => {
                events.add(Event::IdentityChanged);
                self.admission.admit(exchange);
                return Decision::FloorOnly(passage.point);
            }
        }
        Decision::Use(passage)
    }

    /// An exchange contradicts the past: what is proven, or what a filter holds possible.
    pub fn contradict(&mut self, exchange: &Exchange, point: &Point, events: &mut Events) -> Decision {
        debug_assert!(self.now.is_some(), "only a past can be contradicted");
        let past = self.now.map_or(0, |now| now.past);
        let patience = self.assumptions.step_patience;
        let context = ChallengeContext { rates: self.proof.rates(), past, patience };
        match self.challenge.take(exchange, point, context) {
            Resolution::PastHolds => Decision::Contradiction(*point),
            Resolution::StepAccepted => Decision::Use(self.accept_step(exchange, events)),
            Resolution::CounterDoubted => {
                self.assumptions.nominal_error =
                    (NOMINAL_ROOM * self.assumptions.nominal_error).min(LARGEST_NOMINAL_ERROR);
                self.remembered = None;
                self.begin_again(exchange, events)
            }
        }
    }

    /// Believes the server's new time. Against a young past that is a new beginning.
    fn accept_step(&mut self, exchange: &Exchange, events: &mut Events) -> Passage {
        events.add(Event::ServerStepAccepted);
        self.identities.meet(exchange.server.identity);
        let Some(now) = self.now.filter(|now| now.past >= YOUNG) else {
            self.forget();
            return self.begin(exchange, Entry::Step(None));
        };
        let step = Move { x_step: now.frame.position(exchange.received.counter), y_step: 0.0 };
        self.begin(exchange, Entry::Step(Some(step)))
    }

    /// A beginning without any history but the remembered rate; whatever else happened no longer matters.
    fn begin_again(&mut self, exchange: &Exchange, events: &mut Events) -> Decision {
        self.forget();
        self.identities.meet(exchange.server.identity);
        *events = Events::NONE;
        events.add(Event::Restarted);
        Decision::Use(self.begin(exchange, Entry::Restart))
    }

    /// Puts the frame through the end of `exchange`, whose time has nothing to do with earlier ones.
    fn begin(&mut self, exchange: &Exchange, entry: Entry) -> Passage {
        let frame = Frame::at(self.nominal, exchange);
        self.now = Some(GuardNow { frame, counter: exchange.received.counter, past: 0 });
        Passage { point: frame.place(exchange), entry }
    }

    fn forget(&mut self) {
        let counts = self.counts;
        *self = Self::with(self.assumptions.clone(), self.nominal, self.remembered);
        self.counts = counts;
    }

    /// Half of how far the stated asymmetry can be off, s; `None` where that is not stated.
    pub fn half_asymmetry_error(&self) -> Option<f64> {
        self.assumptions.half_asymmetry_error
    }

    /// Lets an exchange in. `floor` is the net round trip of the present path without queueing, s, where a filter is
    /// sure of it; the stated asymmetry is that of the fastest exchange.
    pub fn admit(&mut self, exchange: &Exchange, passage: &Passage, floor: Option<f64>) -> Events {
        let (point, assumptions) = (&passage.point, &self.assumptions);
        let mut events = Events::NONE;
        self.admission.admit(exchange);
        self.challenge.dismiss();
        match passage.entry {
            Entry::First | Entry::Restart | Entry::Step(_) => self.proof.begin(point),
            Entry::Stretching => self.stretch(point),
            Entry::Agreeing => {
                let rates = self.proof.rates();
                let calibrated = floor.and_then(|floor| alone_calibrated(point, rates, floor, assumptions));
                if !self.proof.add(point, calibrated, assumptions) {
                    events.add(Event::AsymmetryContradicted);
                }
            }
        }
        self.check_width(point, &mut events);
        debug_assert!(self.now.is_some(), "an exchange is examined first");
        if let Some(now) = &mut self.now {
            now.counter = exchange.received.counter;
            now.past = now.past.saturating_add(1);
        }
        events
    }

    /// Moves the frame to `height` at the last exchange once positions in it have become large; the filters have to
    /// follow.
    pub fn move_frame(&mut self, height: f64) -> Option<Move> {
        let now = self.now.as_mut()?;
        if self.proof.position().abs() < FRAME_REACH {
            return None;
        }
        let step = now.frame.move_to(now.counter, height);
        self.proof.follow(step);
        self.shortest.follow(step);
        self.challenge.follow(step);
        Some(step)
    }

    /// Forgets everything but `remembered`.
    pub fn restart(&mut self, remembered: Option<RateMemory>) {
        self.remembered = remembered;
        self.forget();
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Counts an exchange by what is published of it. `contradicted` is how often it contradicted the past: once or not
    /// at all.
    pub fn count(&mut self, outcome: &Outcome, contradicted: u64) {
        let Counts { exchanges, used, rejected, contradictions, server_steps } = &mut self.counts;
        let add = |count: &mut u64, more: u64| *count = count.saturating_add(more);
        add(exchanges, 1);
        add(used, u64::from(outcome.verdict == Verdict::Used));
        add(rejected, u64::from(matches!(outcome.verdict, Verdict::Rejected(_))));
        add(contradictions, contradicted);
        add(server_steps, u64::from(outcome.events.contains(Event::ServerStepAccepted)));
    }

    pub fn nominal(&self) -> Period {
        self.nominal
    }

    /// The period of a rate of the frame.
    pub fn period_at(&self, rate: f64) -> Period {
        self.nominal.stretched(Rate::from_fraction(rate))
    }

    /// The frame and the end of the last exchange that was used.
    pub fn place(&self) -> Option<(Frame, Counter)> {
        self.now.map(|now| (now.frame, now.counter))
    }

    /// Whether fewer exchanges than make an authority are behind the present time.
    pub fn is_young(&self) -> bool {
        self.now.is_none_or(|now| now.past < YOUNG)
    }

    /// Whether the server contradicts itself at present.
    pub fn is_challenged(&self) -> bool {
        self.challenge.is_open()
    }

    /// What is believed about the rate without any exchange.
    pub fn prior(&self) -> Slope {
        let remembered = self.remembered.and_then(|memory| self.assumptions.believable(&memory, self.nominal));
        remembered.unwrap_or(Slope { rate: 0.0, error: self.assumptions.nominal_error })
    }

    /// The proven range of the rate from the last exchange on.
    pub fn rates(&self) -> Interval {
        self.proof.rates()
    }

    /// Whether a height at the last exchange lies within what is proven.
    pub fn allows(&self, height: f64) -> bool {
        self.proof.height().contains(height)
    }

    /// How far a clock of this height at the last exchange can be from the true time.
    pub fn bound_of_height(&self, height: f64) -> Bound {
        bound_within(self.proof.height(), height)
    }

    /// How fast a clock at `rate` can leave the true time.
    pub fn growth(&self, rate: f64) -> GrowthRate {
        let reach = self.proof.rates().reach(rate) / (1.0 + rate).max(0.5);
        GrowthRate::of(Rate::from_fraction(reach + RATE_ROUNDING))
    }

    /// What is proven of the height at `counter`, not before the last exchange that was used, and the height of `time`
    /// there.
    fn proven_beside(&self, counter: Counter, time: Moment<Tai>) -> Option<(Interval, f64)> {
        let frame = self.now?.frame;
        Some((self.proof.height_at(frame.position(counter)), frame.height(counter, time)))
    }

    /// How far a clock that reads `time` at `counter`, not before the last exchange that was used, can be from the true
    /// time.
    pub fn bound_of(&self, counter: Counter, time: Moment<Tai>) -> Bound {
        self.proven_beside(counter, time).map_or(Bound::UNKNOWN, |(proven, height)| bound_within(proven, height))
    }

    /// Whether `time` at `counter`, not before the last exchange that was used, lies within what is proven.
    pub fn is_proven(&self, counter: Counter, time: Moment<Tai>) -> bool {
        self.proven_beside(counter, time).is_none_or(|(proven, height)| proven.contains(height))
    }

    /// The interval that is proven to hold the true time at `counter`; `None` before the first exchange. It is
    /// narrowest at the last exchange that was used.
    pub fn proven(&self, counter: Counter) -> Option<ProvenInterval> {
        let frame = self.now?.frame;
        Some(times_at(counter, &frame, self.proof.height_around(frame.position(counter))))
    }

    /// What the server says of the true time at `counter`: what is proven or, where exchanges contradict that
    /// persistently, what they say. `None` before the first exchange. Among several servers a vote decides which of
    /// them to believe, so it must hear what each says now.
    pub fn claimed(&self, counter: Counter) -> Option<ProvenInterval> {
        let frame = self.now?.frame;
        let x = frame.position(counter);
        let proven = self.proof.height_around(x);
        // A filter's suspicion opens a challenge, too, but contradicts nothing that is proven.
        let claimed = self.challenge.claimed(x, self.proof.rates()).filter(|claimed| claimed.meet(proven).is_empty());
        Some(times_at(counter, &frame, claimed.unwrap_or(proven)))
    }

    /// What is worth keeping across a restart, given the measured rate; one whose error exceeds `quality` is not good.
    /// A short run is better than nothing, and than a rate that was known less well, as after a suspend; but it does
    /// not replace what a longer one found out.
    pub fn memory(&self, measured: Slope, quality: f64) -> Option<RateMemory> {
        let own = (!self.is_young()).then(|| {
            let bound = Rate::from_fraction(self.proof.rates().reach(measured.rate));
            RateMemory { period: self.period_at(measured.rate), bound, wander: None }
        });
        let is_better = |remembered: &RateMemory| {
            measured.error > quality && own.is_none_or(|own| remembered.bound.as_fraction() <= own.bound.as_fraction())
        };
        let memory = self.remembered.filter(is_better).or(own);
        memory.map(|memory| RateMemory { wander: self.assumptions.learned_wander(), ..memory })
    }
}

/// The times at `counter` that these heights stand for, rounded outwards.
fn times_at(counter: Counter, frame: &Frame, height: Interval) -> ProvenInterval {
    let [earliest, latest] = [height.low - ROUNDING, height.high + ROUNDING].map(|end| frame.moment(counter, end));
    ProvenInterval { earliest, latest }
}

/// How far a clock of this height can be from the true one, which is within `proven`.
fn bound_within(proven: Interval, height: f64) -> Bound {
    Bound::from_seconds(proven.reach(height) + ROUNDING)
}
