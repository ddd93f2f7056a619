//! The offset: a weighted mean of naive heights, held when nothing good is at hand, and never moved by what is not
//! believed.

use super::thresholds::Thresholds;
use super::weights::{Weighing, survey, weigh};
use crate::frame::Move;
use crate::history::{Cursor, History, Record};
use crate::tuning::classic::{AGEING_REACH, BEST_ERROR_PART};

/// What an update did to the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetChange {
    /// It was estimated again.
    Updated,
    /// Nothing in the window was good enough; it runs on at the present rate.
    Held,
    /// The new value was not believed; it runs on at the present rate.
    Insane,
}

/// The estimated height of the true time over the frame's line.
#[derive(Clone, Copy, Debug)]
pub struct Offset {
    /// The position of the last exchange.
    pub x: f64,
    /// The estimate there.
    pub height: f64,
    /// The position of the last exchange at which it was estimated rather than predicted.
    pub genuine: f64,
    /// The standard uncertainty then.
    pub error: f64,
    window_from: Cursor,
    reach_from: Cursor,
}

/// What the estimate is made with.
#[derive(Clone, Copy, Debug)]
pub struct Present<'a> {
    /// The position of the new exchange's end.
    pub now: f64,
    /// The rate that heights are moved with.
    pub rate: f64,
    /// The present floor.
    pub floor: f64,
    /// Whether every value is believed, because there is nothing yet to compare it with.
    pub trusting: bool,
    pub thresholds: &'a Thresholds,
}

impl Offset {
    /// From a single exchange.
    pub fn begin(record: &Record, present: &Present<'_>) -> Self {
        let height = record.y + present.rate * (present.now - record.x);
        let error = record.error().max(0.0) + present.thresholds.stamp_noise;
        let (window_from, reach_from) = (Cursor::default(), Cursor::default());
        Offset { x: present.now, height, genuine: present.now, error, window_from, reach_from }
    }

    /// The height at `x`, at `rate` from the last estimate on.
    pub fn predict(&self, x: f64, rate: f64) -> f64 {
        self.height + rate * (x - self.x)
    }

    /// The standard uncertainty at the last exchange.
    pub fn uncertainty(&self, rate_error: f64) -> f64 {
        self.error + rate_error * (self.x - self.genuine)
    }

    /// Whether this exchange alone is further off than queueing and what may have happened since the last estimate
    /// explain.
    pub fn is_suspicious(&self, record: &Record, present: &Present<'_>) -> bool {
        if present.trusting {
            return false;
        }
        let off = (record.y - self.predict(record.x, present.rate)).abs();
        off > present.thresholds.offset_sanity(present.now - self.genuine) + record.error().max(0.0)
    }

    /// Estimates again from `history`.
    pub fn update(&mut self, history: &History, present: &Present<'_>) -> OffsetChange {
        let thresholds = present.thresholds;
        let (now, predicted) = (present.now, self.predict(present.now, present.rate));
        (self.x, self.height) = (now, predicted);
        let view = history.since_moving(now - thresholds.offset_window, &mut self.window_from);
        let gap = now - self.genuine;
        let mut how = Weighing { now, predicted, rate: present.rate, ageing: thresholds.ageing, scale: 1.0 };
        let errors = survey(view, &how, thresholds.offset_scale);
        // A held offset ages too: an exchange worse than the threshold but better than the aged offset is used.
        if errors.first > thresholds.offset_quality(present.floor) + thresholds.rate_error * gap {
            return OffsetChange::Held;
        }
        how.scale = thresholds.scale_for(errors.typical).max(errors.first / BEST_ERROR_PART);
        // Age alone takes all weight from what is older: exp(-16) and less.
        let reach = thresholds.offset_window.min(AGEING_REACH * how.scale / thresholds.ageing);
        let view = history.since_moving(now - reach, &mut self.reach_from);
        let Some(weighed) = weigh(view, &how) else { return OffsetChange::Held };
        if !present.trusting && weighed.deviation.abs() > thresholds.offset_sanity(gap) {
            return OffsetChange::Insane;
        }
        self.height = predicted + weighed.deviation;
        self.genuine = now;
        let second = if errors.second.is_finite() { errors.second } else { errors.first + thresholds.stamp_noise };
        // Queueing of E moves a height by at most E / 2.
        self.error = 0.5 * second.max(0.0).max(weighed.spread);
        OffsetChange::Updated
    }

    /// Follows a move of the frame.
    pub fn follow(&mut self, step: Move) {
        self.x -= step.x_step;
        self.genuine -= step.x_step;
        self.height -= step.y_step;
    }
}
