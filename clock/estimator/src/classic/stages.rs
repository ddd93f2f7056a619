//! The stages that an exchange passes once it is let in.

use super::floor::FloorChange;
use super::offset::{Offset, OffsetChange, Present};
use super::proof::alone_calibrated;
use super::rate::RateChange;
use super::thresholds::SHIFT_WITNESSES;
use super::uncorrected::Uncorrected;
use super::{Classic, Entry, Now, count};
use crate::frame::{Frame, Move, Point};
use crate::history::{Added, Record};
use crate::outcome::Measure;
use crate::{Event, Events, Outcome, Verdict};
use ffclock_units::{Counter, Exchange, Moment, Period, Tai};

/// The frame moves on before positions in it exceed this, s, so that floats stay fine.
const FRAME_REACH: f64 = 65_536.0;

/// An exchange on its way through the later stages.
struct Passing {
    counter: Counter,
    frame: Frame,
    record: Record,
    x: f64,
    entry: Entry,
}

impl Passing {
    /// The state in which the first exchange, or the first after a step, finds the offset. The uncorrected clock goes on across a step.
    fn begin(&self, before: Option<Now>, present: &Present<'_>, period: Period) -> Now {
        let offset = Offset::begin(&self.record, present);
        let time = self.frame.moment(self.counter, offset.height);
        let uncorrected = before.map_or_else(|| Uncorrected::new(self.counter, time, period), |now| now.uncorrected);
        let begun = before.map_or(self.x, |now| now.begun);
        Now { frame: self.frame, counter: self.counter, offset, uncorrected, begun, past: 0 }
    }
}

impl Classic {
    /// Lets an exchange pass all stages.
    pub(super) fn pass(&mut self, exchange: &Exchange, entry: Entry, mut events: Events) -> Outcome {
        let predicted = if entry == Entry::First { None } else { self.now };
        if entry == Entry::First {
            self.place_anew(exchange);
        }
        let frame = self.now.map_or_else(|| Frame::at(self.nominal, exchange), |now| now.frame);
        let point = frame.place(exchange);
        let offset = predicted.map_or(f64::NAN, |now| self.naive_error(&now, &point));
        count(&mut self.counts.used);
        self.admission.admit(exchange);
        self.challenge.dismiss();
        self.prove(&point, entry, &mut events);
        self.update_floor(&point, &mut events);
        let record = self.record(&point);
        self.update_long_rate(record, point.x, &mut events);
        self.update_local_rate(record, point.x, &mut events);
        self.update_offset(
            &Passing { counter: exchange.received.counter, frame, record, x: point.x, entry },
            &mut events,
        );
        self.move_frame();
        let measure = Measure { round_trip: point.net, point_error: record.error(), offset };
        Outcome { verdict: Verdict::Used, events, measure }
    }

    /// Puts the frame through the end of `exchange`, whose time has nothing to do with earlier ones.
    fn place_anew(&mut self, exchange: &Exchange) {
        let frame = Frame::at(self.nominal, exchange);
        if let Some(now) = &mut self.now {
            let step = Move { x_step: now.frame.position(exchange.received.counter), y_step: 0.0 };
            self.floor.follow(step);
            self.local.follow(step);
            now.begun -= step.x_step;
            now.frame = frame;
        }
    }

    fn prove(&mut self, point: &Point, entry: Entry, events: &mut Events) {
        match entry {
            Entry::First => self.proof.begin(point, &self.thresholds),
            Entry::Stretching => self.proof.add_with_more_wander(point, &self.thresholds),
            Entry::Agreeing => {
                // The stated asymmetry is that of the fastest exchange, so the floor must have had time to become it.
                let window = self.thresholds.shift_window_at(self.floor.poll()).length;
                let settled = !self.warming_up && self.floor.steady_for(point.x) > window;
                let (rates, floor) = (self.proof.rates(), self.floor.value());
                let calibrated = if settled { alone_calibrated(point, rates, floor, &self.thresholds) } else { None };
                if !self.proof.add(point, calibrated, &self.thresholds) {
                    events.add(Event::AsymmetryContradicted);
                }
            }
        }
    }

    pub(super) fn update_floor(&mut self, point: &Point, events: &mut Events) {
        let (history, thresholds) = (&self.history, &self.thresholds);
        let margin = thresholds.shift(self.floor.value());
        let confirms = |since: f64| history.since(since).has_witnesses(margin, SHIFT_WITNESSES);
        match self.floor.add(point.x, point.net, thresholds, confirms) {
            FloorChange::None => return,
            FloorChange::Lowered => {}
            FloorChange::Shortened => {
                events.add(Event::FloorShiftDown);
                count(&mut self.counts.shifts_down);
            }
            FloorChange::Raised { since } => {
                events.add(Event::FloorShiftUp);
                count(&mut self.counts.shifts_up);
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
        let begun = self.now.map_or(x, |now| now.begun);
        if self.warming_up && x - begun >= self.thresholds.shift_window_at(self.floor.poll()).length {
            self.warming_up = false;
            events.add(Event::WarmupEnded);
        }
    }

    fn update_local_rate(&mut self, record: Record, x: f64, events: &mut Events) {
        let before = self.local.present().is_some();
        if self.history.add(record) == Added::Opened {
            match self.local.measure(&self.history, x, &self.thresholds) {
                RateChange::None => {}
                RateChange::Updated => events.add(Event::LocalRateUpdated),
                RateChange::Insane => events.add(Event::RateInsane),
            }
        }
        if before && self.local.present().is_none() {
            events.add(Event::LocalRateLost);
        }
    }

    fn update_offset(&mut self, passing: &Passing, events: &mut Events) {
        let period = self.period_at(self.long.present().rate);
        let present = self.present(passing.x);
        let mut now = match self.now {
            Some(now) if passing.entry != Entry::First => now,
            before => passing.begin(before, &present, period),
        };
        match now.offset.update(&self.history, &present) {
            OffsetChange::Updated => events.add(Event::OffsetUpdated),
            OffsetChange::Held => events.add(Event::OffsetHeld),
            OffsetChange::Insane => events.add(Event::OffsetInsane),
        }
        if !self.proof.height().contains(now.offset.height) {
            events.add(Event::OutsideProof);
        }
        now.uncorrected.advance(passing.counter, period);
        now.counter = passing.counter;
        now.past = now.past.saturating_add(1);
        self.now = Some(now);
    }

    /// Moves the frame to the present once positions in it have become large.
    fn move_frame(&mut self) {
        let Some(now) = &mut self.now else { return };
        if now.offset.x.abs() < FRAME_REACH {
            return;
        }
        let step = now.frame.move_to(now.counter, now.offset.height);
        now.begun -= step.x_step;
        now.offset.follow(step);
        self.floor.follow(step);
        self.history.follow(step);
        self.long.follow(step);
        self.local.follow(step);
        self.proof.follow(step);
        self.challenge.follow(step);
    }

    /// The period of a rate of the frame.
    pub(super) fn period_at(&self, rate: f64) -> Period {
        Period::from_seconds(self.nominal.as_seconds() * (1.0 + rate)).unwrap_or(self.nominal)
    }

    /// The absolute clock at the last exchange.
    pub(super) fn absolute(now: &Now) -> Moment<Tai> {
        now.frame.moment(now.counter, now.offset.height)
    }
}
