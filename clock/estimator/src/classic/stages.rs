//! The stages that an exchange passes once it is let in.

use super::floor::FloorChange;
use super::offset::{Offset, OffsetChange};
use super::rate::RateChange;
use super::{ClassicNow, Filter};
use crate::frame::{Frame, Point, Slope};
use crate::guard::{Entry, Passage};
use crate::history::{Added, Record};
use crate::interval::Interval;
use crate::tuning::classic::SHIFT_WITNESSES;
use crate::{Event, Events};
use ffclock_units::Counter;

/// What an exchange is measured with: the guard's view after it let the exchange in.
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    pub passage: Passage,
    pub frame: Frame,
    /// The end of the exchange.
    pub counter: Counter,
    /// The proven range of the rate.
    pub proven: Interval,
}

/// What happened on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClassicMeasured {
    /// To the long-term rate, which is published whichever filter's time is: its events, and the end of the warm-up.
    pub rate: Events,
    /// To this filter's own clock.
    pub clock: Events,
}

impl Filter {
    /// Lets an exchange pass all stages.
    pub fn measure(&mut self, admitted: &Admitted) -> ClassicMeasured {
        let mut measured = ClassicMeasured::default();
        let point = &admitted.passage.point;
        self.update_floor(point, &mut measured.clock);
        let record = self.record(point);
        self.update_long_rate(record, point.x, &mut measured.rate);
        self.update_local_rate(record, point.x, &mut measured);
        self.update_offset(admitted, &record, &mut measured.clock);
        measured
    }

    /// Prepares for an exchange that is not comparable with earlier ones.
    pub fn prepare(&mut self, entry: Entry, prior: Slope) {
        match entry {
            Entry::Restart | Entry::Step(None) => self.forget(prior),
            Entry::Step(Some(step)) => self.disconnect(step),
            Entry::First | Entry::Agreeing | Entry::Stretching => {}
        }
    }

    /// Takes the floor from an exchange, and nothing else.
    pub fn update_floor(&mut self, point: &Point, events: &mut Events) {
        let (history, thresholds) = (&self.history, &self.thresholds);
        let margin = thresholds.shift(self.floor.value());
        let confirms = |since: f64| history.since(since).has_witnesses(margin, SHIFT_WITNESSES);
        match self.floor.add(point.x, point.net, thresholds, confirms) {
            FloorChange::None => return,
            FloorChange::Lowered => {}
            FloorChange::Shortened => {
                events.add(Event::FloorShiftDown);
                self.shifts.down = self.shifts.down.saturating_add(1);
            }
            FloorChange::Raised { since } => {
                events.add(Event::FloorShiftUp);
                self.shifts.up = self.shifts.up.saturating_add(1);
                self.history.raise_floor(self.floor.value(), since);
                self.long.raise_floor(self.floor.value(), since);
                return;
            }
        }
        self.history.lower_floor(self.floor.value());
        self.long.lower_floor(self.floor.value());
    }

    fn update_long_rate(&mut self, record: Record, x: f64, events: &mut Events) {
        let change = if self.warming_up {
            self.long.warm_up(record, &self.thresholds)
        } else {
            self.long.add(record, &self.thresholds)
        };
        match change {
            RateChange::None => {}
            RateChange::Updated => events.add(Event::RateUpdated),
            RateChange::Insane => events.add(Event::RateInsane),
        }
        debug_assert!(self.floor.value() <= record.cost, "the floor is the least round trip");
        let begun = self.now.map_or(x, |now| now.begun);
        if self.warming_up && x - begun >= self.thresholds.shift_window_at(self.floor.poll()).length {
            self.warming_up = false;
            events.add(Event::WarmupEnded);
        }
    }

    fn update_local_rate(&mut self, record: Record, x: f64, measured: &mut ClassicMeasured) {
        let before = self.local.present().is_some();
        if self.history.add(record) == Added::Opened {
            match self.local.measure(&self.history, x, &self.thresholds) {
                RateChange::None => {}
                RateChange::Updated => measured.clock.add(Event::LocalRateUpdated),
                RateChange::Insane => measured.rate.add(Event::RateInsane),
            }
        }
        if before && self.local.present().is_none() {
            measured.clock.add(Event::LocalRateLost);
        }
    }

    fn update_offset(&mut self, admitted: &Admitted, record: &Record, events: &mut Events) {
        let Passage { point, entry } = &admitted.passage;
        let present = self.present(point.x, admitted.proven);
        let mut now = match self.now {
            Some(now) if entry.continues() => now,
            before => self.begin(admitted, before, Offset::begin(record, &present)),
        };
        match now.offset.update(&self.history, &present) {
            OffsetChange::Updated => events.add(Event::OffsetUpdated),
            OffsetChange::Held => events.add(Event::OffsetHeld),
            OffsetChange::Insane => events.add(Event::OffsetInsane),
        }
        now.uncorrected.advance(admitted.counter, self.period_at(self.long.present().rate));
        self.now = Some(now);
    }

    /// The state in which the first exchange, or the first after a step, finds the offset. The uncorrected clock goes
    /// on across a step.
    fn begin(&self, admitted: &Admitted, before: Option<ClassicNow>, offset: Offset) -> ClassicNow {
        let begin = || self.begin_uncorrected(&admitted.frame, admitted.counter, offset.height);
        ClassicNow {
            offset,
            uncorrected: before.map_or_else(begin, |now| now.uncorrected),
            begun: before.map_or(admitted.passage.point.x, |now| now.begun),
        }
    }
}
