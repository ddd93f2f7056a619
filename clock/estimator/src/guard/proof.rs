//! The proof of the bound: what the exchanges prove about the true time, whatever the filter believes.
//!
//! Both one-way delays are non-negative, so an exchange is two inequalities. With `u(T)` the height of the true time
//! over the frame's line:
//! ```text
//! u(Tf) >= (Te - L(Tf)) - width of Tf / 2 - root distance          the reply was received after it was sent
//! u(Ta) <= (Tb - L(Ta)) + width of Ta / 2 + root distance          the request was sent before it was received
//! ```
//! Between exchanges `u` moves by no more than the rates allow. Intersecting what is carried forward with what is new
//! gives an interval that holds the true time.
//!
//! Theorem. If (1) the server's claimed root distance is true, (2) the counter's rate stays within `nominal_error` of
//! its nominal one and, until the next exchange, within `wander` of its mean over any stretch that begins at most a day
//! and one bin of the history before the last exchange, and (3) a remembered range still holds the rate, then the
//! interval holds the true time at every exchange, and the rate range every rate until the next. Proof by induction:
//! the first interval holds by the two inequalities; the mean rate between two positions whose intervals hold lies
//! between the extreme slopes, thus the present rate within `wander` of these; what is carried forward at such rates
//! holds, and so does its intersection with another interval that holds.
//!
//! Where an exchange contradicts by no more than an oscillator could have caused, assumption (2) was too bold: the
//! interval is widened to cover both, and the history of rates begins again; `wander.rs` has the other signs of that.
//! But for a stated asymmetry, which needs the floor, and the limit of the wander, nothing here depends on floors,
//! weights or thresholds. `tools/bound-proofs` proves the steps of the induction by machine.

use super::assumptions::Assumptions;
use crate::frame::{Move, Point};
use crate::history::{Added, History, Record};
use crate::interval::Interval;
use crate::tuning::guard::{BLUR_MARGIN, CLOSEST_PAIR, RATE_PROOF_SPAN, RATE_ROUNDING};

/// How a new exchange stands to what is proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofStanding {
    /// It agrees.
    Agrees,
    /// It agrees when the remembered rate is not believed.
    AgreesWithoutMemory,
    /// It agrees when the rate may have moved a little more than assumed.
    AgreesWithMoreWander,
    /// It does not agree: the server's time moved, or the counter.
    Contradicts,
}

/// The proven interval of the true height at the last exchange and the proven range of the rate after it.
#[derive(Clone, Debug)]
pub struct Proof {
    x: f64,
    height: Interval,
    rates: Interval,
    nominal: Interval,
    remembered: Option<Remembered>,
    history: History,
    far: Option<Record>,
    /// What is carried to the next exchange was carried at rates that proved wrong: that exchange counts alone.
    is_void: bool,
}

/// How much more the rate may have moved than was assumed, and how much more is assumed from now on. s/s.
#[derive(Clone, Copy, Debug)]
pub struct Widening {
    pub room: f64,
    pub learned: f64,
}

/// A range of the rate from a time that no exchange connects to the present.
#[derive(Clone, Copy, Debug)]
struct Remembered {
    range: Interval,
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// By an earlier estimator, which may have had another counter.
    Remembered,
    /// By this one.
    Observed,
}

/// The interval of the true height that `point` proves alone, at its end, if the rate lies in `rates`.
pub fn alone(point: &Point, rates: Interval) -> Interval {
    let stretch = 1.0 + rates.high.abs().max(rates.low.abs());
    let low = point.backward - point.received_half * stretch - point.root;
    let high = point.forward + point.sent_half * stretch + point.root + point.trip * rates.high;
    let interval = Interval { low: low.min(high), high: low.max(high) };
    interval.outwards()
}

/// The same when the difference of the two delays is known: it is the asymmetry, give or take its stated error and
/// twice the queueing.
pub fn alone_calibrated(point: &Point, rates: Interval, floor: f64, assumptions: &Assumptions) -> Option<Interval> {
    let half_error = assumptions.half_asymmetry_error?;
    let centre = point.height() - assumptions.half_asymmetry;
    let queueing = 0.5 * (point.net - floor).max(0.0);
    let middle = Interval::around(centre, queueing + half_error + point.blur() * BLUR_MARGIN + point.root);
    Some(middle.carried(point.x - point.middle, rates))
}

impl Proof {
    /// Before any exchange. `remembered` is the range in which a remembered rate lies.
    pub fn new(assumptions: &Assumptions, remembered: Option<Interval>) -> Self {
        let nominal = Interval::around(0.0, assumptions.nominal_error);
        let remembered = remembered.filter(|range| !range.meet(nominal).is_empty());
        Proof {
            x: 0.0,
            height: Interval { low: f64::NEG_INFINITY, high: f64::INFINITY },
            rates: remembered.map_or(nominal, |range| range.meet(nominal)),
            nominal,
            remembered: remembered.map(|range| Remembered { range, origin: Origin::Remembered }),
            history: History::new(assumptions.history()),
            far: None,
            is_void: false,
        }
    }

    pub fn bytes(&self) -> usize {
        self.history.bytes()
    }

    /// The position of the last exchange that was used.
    pub fn position(&self) -> f64 {
        self.x
    }

    /// The proven interval of the true height at the last exchange.
    pub fn height(&self) -> Interval {
        self.height
    }

    /// The proven interval of the true height at a position `x` after the last exchange.
    pub fn height_at(&self, x: f64) -> Interval {
        let distance = x - self.x;
        if distance > 0.0 { self.height.carried(distance, self.rates) } else { self.height }
    }

    /// The proven interval of the true height at any position. Before the last exchange the rate is known to lie in the
    /// nominal range only.
    pub fn height_around(&self, x: f64) -> Interval {
        let (distance, Interval { low, high }) = (x - self.x, self.height);
        if distance >= 0.0 {
            return self.height_at(x);
        }
        let moved = Interval { low: low + distance * self.nominal.high, high: high + distance * self.nominal.low };
        moved.outwards()
    }

    /// The proven range of the rate from the last exchange on.
    pub fn rates(&self) -> Interval {
        self.rates
    }

    /// Begins with an exchange. What was proven about the rate stays, as a remembered range; it says nothing about
    /// times.
    pub fn begin(&mut self, point: &Point) {
        self.forget_history();
        if self.height.low.is_finite() {
            self.remembered = Some(Remembered { range: self.rates, origin: Origin::Observed });
        }
        (self.x, self.height) = (point.x, alone(point, self.rates));
        self.note();
    }

    /// How `point` stands to what is proven. Changes nothing.
    pub fn standing(&self, point: &Point, assumptions: &Assumptions) -> ProofStanding {
        let distance = point.x - self.x;
        let agrees = |rates: Interval| !self.height.carried(distance, rates).meet(alone(point, rates)).is_empty();
        if agrees(self.rates) {
            return ProofStanding::Agrees;
        }
        if self.without_memory(assumptions).is_some_and(agrees) {
            return ProofStanding::AgreesWithoutMemory;
        }
        if agrees(self.rates.widened(assumptions.wander_room())) {
            ProofStanding::AgreesWithMoreWander
        } else {
            ProofStanding::Contradicts
        }
    }

    /// The range of the rate if nothing had been remembered; `None` where that changes nothing, or would allow any
    /// rate.
    fn without_memory(&self, assumptions: &Assumptions) -> Option<Interval> {
        let remembered = self.remembered?;
        let measured = self.measured(assumptions).map(|measured| measured.meet(self.nominal));
        measured.or_else(|| (remembered.origin == Origin::Remembered).then_some(self.nominal))
    }

    /// Stops believing the remembered rate. Whatever was carried at it proves nothing, so nothing but the nominal range
    /// is left of the rates, and the next exchange proves what it does alone.
    pub fn drop_memory(&mut self) {
        self.remembered = None;
        self.rates = self.nominal;
        self.forget_history();
        self.is_void = true;
    }

    /// Takes an exchange that agrees. `calibrated` is what it proves with a stated asymmetry; the result says whether
    /// that agreed too.
    pub fn add(&mut self, point: &Point, calibrated: Option<Interval>, assumptions: &Assumptions) -> bool {
        let own = alone(point, self.rates);
        let plain = if self.is_void { own } else { self.height.carried(point.x - self.x, self.rates).meet(own) };
        let narrowed = calibrated.map_or(plain, |interval| plain.meet(interval));
        let agreed = !narrowed.is_empty();
        self.accept(point.x, if agreed { narrowed } else { plain }, assumptions);
        agreed
    }

    /// Takes an exchange that agrees only if the rate moved more than assumed: the interval must cover both, and the
    /// mean rate of the past is no longer a guide.
    pub fn add_with_more_wander(&mut self, point: &Point, widening: Widening, assumptions: &Assumptions) {
        let distance = (point.x - self.x).max(f64::MIN_POSITIVE);
        let (carried, new) = (self.height.carried(distance, self.rates), alone(point, self.rates));
        let gap = (carried.low - new.high).max(new.low - carried.high).max(0.0);
        let excess = (2.0 * gap / distance).min(widening.room).max(widening.learned);
        self.forget_pairs(excess);
        self.accept(point.x, carried.hull(new), assumptions);
    }

    /// The wander is assumed to be larger by `learned` than it was: what was carried at narrower rates proves nothing,
    /// and an exchange proves what it does alone. `point` is at the position of the last exchange or after it.
    pub fn reopen(&mut self, point: &Point, learned: f64, assumptions: &Assumptions) {
        self.forget_pairs(learned);
        self.accept(point.x, alone(point, self.rates), assumptions);
    }

    /// The history of rates begins again; until it proves a narrower one, the present range holds, widened by `room`.
    fn forget_pairs(&mut self, room: f64) {
        self.rates = self.rates.widened(room);
        self.remembered = Some(Remembered { range: self.rates, origin: Origin::Observed });
        self.forget_history();
    }

    fn forget_history(&mut self) {
        self.history.clear();
        (self.far, self.is_void) = (None, false);
    }

    fn accept(&mut self, x: f64, height: Interval, assumptions: &Assumptions) {
        debug_assert!(!height.is_empty(), "{height:?} at {x}");
        (self.x, self.height, self.is_void) = (x, height, false);
        self.note();
        self.update_rates(assumptions);
    }

    /// Keeps the present interval for later pairs: `y` is its low end, `cost` its width.
    fn note(&mut self) {
        let record = Record { x: self.x, y: self.height.low, cost: self.height.width(), floor: 0.0 };
        if self.history.add(record) == Added::Opened {
            self.choose_far(record);
        }
    }

    /// Chooses the earlier interval that gives the narrowest range of the mean rate with the present one.
    fn choose_far(&mut self, now: Record) {
        let width = |far: &Record| (far.cost + now.cost) / (now.x - far.x);
        let candidates = self.history.between(now.x - RATE_PROOF_SPAN, now.x);
        self.far = candidates.iter().min_by(|a, b| width(a).total_cmp(&width(b)));
    }

    /// The range of the present rate that the best pair of intervals proves.
    fn measured(&self, assumptions: &Assumptions) -> Option<Interval> {
        let far = self.far?;
        let distance = self.x - far.x;
        if distance.is_nan() || distance < CLOSEST_PAIR {
            return None;
        }
        let low = (self.height.low - far.y - far.cost) / distance;
        let high = (self.height.high - far.y) / distance;
        Some(Interval { low, high }.widened(assumptions.wander + RATE_ROUNDING))
    }

    fn update_rates(&mut self, assumptions: &Assumptions) {
        let Some(measured) = self.measured(assumptions) else { return };
        let mut rates = measured.meet(self.nominal);
        if rates.is_empty() {
            self.nominal = self.nominal.hull(measured);
            rates = measured;
        }
        if let Some(Remembered { range: remembered, .. }) = self.remembered {
            let both = rates.meet(remembered);
            // A measurement better than the memory replaces it: what was true before need not stay true.
            if both.is_empty() || measured.width() < remembered.width() {
                self.remembered = None;
            } else {
                rates = both;
            }
        }
        debug_assert!(!rates.is_empty(), "{rates:?}");
        self.rates = rates;
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.x -= step.x_step;
        self.height.follow(step.y_step);
        self.history.follow(step);
        if let Some(far) = &mut self.far {
            far.x -= step.x_step;
            far.y -= step.y_step;
        }
    }
}
