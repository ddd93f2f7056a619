//! Closed intervals of heights and of rates, rounded outwards: what the guard proves and the filters are given.

use crate::tuning::guard::{FLOAT_OPERATIONS, FLOAT_ROUNDING};

/// A closed interval: of heights in seconds, or of rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn around(centre: f64, half: f64) -> Self {
        Interval { low: centre - half, high: centre + half }
    }

    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// What both intervals hold; empty where they share nothing.
    pub fn meet(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    /// The smallest interval that holds both.
    pub fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    pub fn widened(self, by: f64) -> Interval {
        Interval { low: self.low - by, high: self.high + by }
    }

    /// The interval with room for what a few operations on floats of this size can lose.
    pub fn outwards(self) -> Interval {
        self.widened(FLOAT_ROUNDING + FLOAT_OPERATIONS * f64::EPSILON * (self.low.abs() + self.high.abs()))
    }

    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The distance from `value` to the farther end.
    pub fn reach(self, value: f64) -> f64 {
        (self.high - value).max(value - self.low).max(0.0)
    }

    /// The interval `distance` later, at rates within `rates`, with room for the rounding of floats.
    pub fn carried(self, distance: f64, rates: Interval) -> Interval {
        let moved = Interval { low: self.low + distance * rates.low, high: self.high + distance * rates.high };
        moved.outwards()
    }

    /// What remains of the interval after being carried and met with another; `None` when nothing does.
    pub fn carried_to_meet(self, distance: f64, rates: Interval, other: Interval) -> Option<Interval> {
        let met = self.carried(distance, rates).meet(other);
        (!met.is_empty()).then_some(met)
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: f64) {
        *self = Interval { low: self.low - step, high: self.high - step }.outwards();
    }
}
