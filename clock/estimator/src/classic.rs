//! The classic filter: RADclock's stages over windows in time.
//!
//! Stages run in this order, and a later one never reaches back: floor, long-term rate, local rate, offset. A longer
//! path is expressed only by editing the floor and its history before the later stages look. What each stage does, and
//! why, stands at the head of its file.

mod floor;
mod minimum;
mod offset;
mod rate;
mod stages;
mod thresholds;
mod uncorrected;
mod weights;

pub use stages::{Admitted, ClassicMeasured};

use crate::ClassicConfig;
use crate::frame::{Frame, Move, Point, Slope};
use crate::history::{History, Record};
use crate::interval::Interval;
use ffclock_units::{Counter, Moment, Period, Rate, Span, Tai};
use floor::Floor;
use offset::{Offset, Present};
use rate::{LocalRate, LongRate};
use thresholds::Thresholds;
use uncorrected::Uncorrected;

/// The filter. After [`Filter::new`] no memory is allocated, but for another beginning.
#[derive(Clone, Debug)]
pub struct Filter {
    thresholds: Thresholds,
    nominal: Period,
    floor: Floor,
    history: History,
    long: LongRate,
    local: LocalRate,
    now: Option<ClassicNow>,
    warming_up: bool,
    shifts: Shifts,
}

/// What exists from the first exchange on.
#[derive(Clone, Copy, Debug)]
struct ClassicNow {
    offset: Offset,
    uncorrected: Uncorrected,
    /// Where the warm-up began.
    begun: f64,
}

/// How often the floor moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shifts {
    pub up: u64,
    pub down: u64,
}

impl Filter {
    /// A filter without history that knows `prior` of the rate.
    pub fn new(config: &ClassicConfig, nominal: Period, prior: Slope) -> Self {
        Self::with(Thresholds::new(config), nominal, prior)
    }

    fn with(thresholds: Thresholds, nominal: Period, prior: Slope) -> Self {
        Filter {
            nominal,
            floor: Floor::new(),
            history: History::new(thresholds.history()),
            long: LongRate::new(&thresholds, prior),
            local: LocalRate::default(),
            now: None,
            warming_up: true,
            shifts: Shifts::default(),
            thresholds,
        }
    }

    /// The bytes that its windows occupy.
    pub fn bytes(&self) -> usize {
        self.floor.bytes() + self.history.bytes() + self.long.bytes()
    }

    /// Forgets everything, and begins with another prior of the rate.
    pub fn forget(&mut self, prior: Slope) {
        let shifts = self.shifts;
        *self = Self::with(self.thresholds.clone(), self.nominal, prior);
        self.shifts = shifts;
    }

    /// The remembered rate proved wrong. What has been measured since counts more.
    pub fn forget_prior(&mut self, prior: Slope) {
        if self.warming_up {
            self.long.forget_prior(prior);
        }
    }

    /// The server's time stepped: the rate and the floor stay, every comparison with earlier times ends.
    fn disconnect(&mut self, step: Move) {
        self.history.clear();
        self.long.disconnect();
        self.local.forget();
        self.floor.follow(step);
        self.local.follow(step);
        if let Some(now) = &mut self.now {
            now.begun -= step.x_step;
        }
    }

    /// Whether an exchange alone is further off than queueing and what may have happened since the last estimate
    /// explain. The rate is proven to lie in `proven`.
    pub fn is_suspicious(&self, point: &Point, proven: Interval) -> bool {
        self.now.is_some_and(|now| now.offset.is_suspicious(&self.record(point), &self.present(point.x, proven)))
    }

    /// The floor where the path has been the same for a shift window, s: it must have had time to become that of the
    /// fastest exchange.
    pub fn settled_floor(&self, x: f64) -> Option<f64> {
        let window = self.thresholds.shift_window_at(self.floor.poll()).length;
        let settled = !self.warming_up && self.floor.steady_for(x) > window;
        settled.then(|| self.floor.value())
    }

    /// What the stages keep of an exchange.
    fn record(&self, point: &Point) -> Record {
        let y = point.height() - self.thresholds.half_asymmetry;
        Record { x: point.middle, y, cost: point.net + point.blur(), floor: self.floor.value() }
    }

    fn present(&self, now: f64, proven: Interval) -> Present<'_> {
        Present {
            now,
            rate: self.rate(proven),
            floor: self.floor.value(),
            trusting: self.warming_up,
            thresholds: &self.thresholds,
        }
    }

    /// The rate of the absolute clock: the local one where it is known and not excluded, otherwise the long-term one,
    /// or what is proven nearest to it.
    pub fn rate(&self, proven: Interval) -> f64 {
        let long = self.long.present().rate;
        let local = self.local.present().map(|local| local.rate).filter(|rate| proven.contains(*rate));
        local.unwrap_or(long.min(proven.high).max(proven.low))
    }

    /// The local rate relative to the long-term one, if it is in use.
    pub fn local_rate(&self, proven: Interval) -> Option<Rate> {
        let long = self.long.present().rate;
        let local = self.local.present().filter(|local| proven.contains(local.rate));
        local.map(|local| Rate::from_fraction((1.0 + local.rate) / (1.0 + long) - 1.0))
    }

    /// The long-term rate.
    pub fn long_rate(&self) -> Slope {
        self.long.present()
    }

    /// The largest error of a rate that is used.
    pub fn local_quality(&self) -> f64 {
        self.thresholds.local_quality
    }

    /// The height at the last exchange; `None` before the first one.
    pub fn height(&self) -> Option<f64> {
        self.now.map(|now| now.offset.height)
    }

    /// The standard uncertainty of the height at the last exchange [s], and how fast it grows [s/s].
    pub fn uncertainty(&self) -> Option<Slope> {
        let growth = self.thresholds.rate_error;
        self.now.map(|now| Slope { rate: growth, error: now.offset.uncertainty(growth) })
    }

    /// Whether the offset has been held for longer than its window.
    pub fn is_holding(&self) -> bool {
        self.now.is_some_and(|now| now.offset.x - now.offset.genuine > self.thresholds.offset_window)
    }

    /// The uncorrected clock at `counter`.
    pub fn uncorrected(&self, counter: Counter) -> Option<Moment<Tai>> {
        self.now.map(|now| now.uncorrected.at(counter))
    }

    /// The error that `point` alone ascribes to the clock as it was predicted, s; NaN where nothing was.
    pub fn naive_error(&self, point: &Point, proven: Interval) -> f64 {
        let rate = self.rate(proven);
        self.now.map_or(f64::NAN, |now| now.offset.predict(point.middle, rate) - self.record(point).y)
    }

    /// How far a round trip exceeds the floor, s.
    pub fn point_error(&self, point: &Point) -> f64 {
        self.record(point).error()
    }

    /// The smallest round trip of the present path.
    pub fn floor(&self) -> Span {
        Span::from_seconds(self.floor.value())
    }

    /// The time between exchanges, smoothed.
    pub fn poll(&self) -> Span {
        Span::from_seconds(self.floor.poll())
    }

    pub fn shifts(&self) -> Shifts {
        self.shifts
    }

    pub fn is_warming_up(&self) -> bool {
        self.warming_up
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        if let Some(now) = &mut self.now {
            now.begun -= step.x_step;
            now.offset.follow(step);
        }
        self.floor.follow(step);
        self.history.follow(step);
        self.long.follow(step);
        self.local.follow(step);
    }

    /// The period of a rate of the frame.
    fn period_at(&self, rate: f64) -> Period {
        self.nominal.stretched(Rate::from_fraction(rate))
    }

    /// The uncorrected clock as it begins at an exchange with this height.
    fn begin_uncorrected(&self, frame: &Frame, counter: Counter, height: f64) -> Uncorrected {
        Uncorrected::new(counter, frame.moment(counter, height), self.period_at(self.long.present().rate))
    }
}
