//! The stages that an exchange passes once the guard has let it in.

use super::ambiguity::FloorAmbiguity;
use super::difference_rate::DifferenceRate;
use super::path_change::{self, Cause, Trial};
use super::recent::Observation;
use super::reinitialise::Attempt;
use super::{Filter, Input, MICRO, Now, Placed};
use crate::bank::group::{Begin, FLOORS, THETA};
use crate::bank::lanes::Lanes;
use crate::bank::measurement::measurements;
use crate::bank::revision::{Change, Revision};
use crate::bank::{Bank, Family};
use crate::frame::{Frame, Point};
use crate::guard::Entry;
use crate::tuning::learned::{
    EXPLAINED, GARBAGE, HORIZON, LEAST_HORIZON, LEAST_POLL, LONGEST_SILENCE, OUTSIDE_LIMIT, POLL_PART, RATE_AFTER_LOSS,
    SHARED_VARIANCE, UNEXPLAINED_LIMIT,
};
use crate::{Event, Events};
use ffclock_units::{Direction, Span};

impl Filter {
    /// Lets an exchange pass all stages.
    pub(super) fn pass(&mut self, input: &Input<'_>, placed: Placed, events: &mut Events) {
        let Placed { mut now, point } = placed;
        if !(point.x > 0.0 && point.x <= LONGEST_SILENCE) {
            return self.begin(input, events);
        }
        if matches!(input.entry, Entry::Step(_)) {
            return self.begin_time(input, placed, events);
        }
        let mut explained = self.filter(&point);
        if let Some(step) = self.reinitialise(input, &now.frame) {
            now.difference.exclude(step);
            explained = true;
            events.add(Event::Reinitialised);
        }
        self.look_for_changes(events);
        now.difference.exclude(self.judge_displacement(point.x, events));
        if events.contains(Event::RateJumped) {
            now.difference = DifferenceRate::begin(now.difference.rate);
        }
        self.bank.reseed(&self.set);
        now.poll = if now.past < 2 { point.x } else { now.poll + POLL_PART * (point.x - now.poll) };
        now.past = now.past.saturating_add(1);
        now.astray = if explained { 0 } else { now.astray.saturating_add(1) };
        self.conclude(input, now, events);
    }

    /// The first exchange of all, or the first that is usable.
    pub(super) fn begin(&mut self, input: &Input<'_>, events: &mut Events) {
        let frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &frame);
        self.bank = Bank::begin(&begin, &self.set);
        self.learning.restart();
        self.forget_paths();
        let blend = self.bank.blend(&self.set, 1.0, 1.0);
        let now = Now {
            frame,
            counter: input.exchange.received.counter,
            blend,
            difference: DifferenceRate::begin(blend.rate),
            later: 1.0,
            poll: 1.0,
            past: 1,
            astray: 0,
            outside: 0,
            doubts_proof: false,
        };
        self.conclude(input, now, events);
    }

    /// Takes the time and the floors from an exchange, and the rate from elsewhere; only the densities stay.
    fn begin_again(&mut self, input: &Input<'_>, mut now: Now, events: &mut Events) {
        now.frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &now.frame);
        let rate = input.fallback_rate / MICRO;
        let begin = Begin { rate, rate_variance: RATE_AFTER_LOSS * RATE_AFTER_LOSS, ..begin };
        self.bank = Bank::begin(&begin, &self.set);
        self.forget_paths();
        now.difference = DifferenceRate::begin(rate);
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    /// Takes the time and the floors from an exchange, and keeps what is known of the oscillator and of queueing.
    fn begin_time(&mut self, input: &Input<'_>, placed: Placed, events: &mut Events) {
        let Placed { mut now, point } = placed;
        self.bank.predict(point.x, self.learning.densities(), &self.set);
        now.frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &now.frame);
        self.bank.begin_time(&begin);
        self.forget_paths();
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    fn forget_paths(&mut self) {
        self.reinitialisation.clear();
        self.revisions.began = true;
        self.recent.clear();
        self.displacement = path_change::Displacement::default();
        self.ambiguity = FloorAmbiguity::NEW;
    }

    /// Predicts, updates and learns; the result says whether any model explains the exchange.
    fn filter(&mut self, point: &Point) -> bool {
        let measurements = measurements(point);
        let before = self.bank.groups;
        self.bank.predict(point.x, self.learning.densities(), &self.set);
        let predictions = self.bank.observe(&measurements, self.learning.densities(), &self.set);
        let observation = Observation { interval: point.x, measurements, predictions, step: 0.0 };
        self.recent.push(&before, observation);
        self.reinitialisation.push(observation);
        self.learning.take(&predictions);
        self.ambiguity.pass(self.learning.densities());
        let best = predictions[self.bank.best(&self.set).family.index()];
        let unexplained = libm::log(EXPLAINED * GARBAGE);
        best.logs.iter().any(|log| *log > unexplained)
    }

    /// Re-initialises from the last exchanges, when it is due and they are much likelier so. Returns the step of theta,
    /// us.
    fn reinitialise(&mut self, input: &Input<'_>, frame: &Frame) -> Option<f64> {
        if !self.config.reinitialisation || self.displacement.is_pending() || !self.reinitialisation.take_due() {
            return None;
        }
        let before = self.bank.blend(&self.set, 1.0, 1.0);
        let [forward, backward] = before.floors;
        let variance = self.asymmetry_variance().max(0.0);
        let (scratch, learning, set) = (&mut self.scratch, &self.learning, &self.set);
        let attempt = Attempt { rate: before.rate, asymmetry: [forward - backward, variance], scratch, learning, set };
        if !self.reinitialisation.succeeds(attempt) || !self.scratch.is_sound() {
            return None;
        }
        let theta = self.scratch.blend(&self.set, 1.0, 1.0).theta;
        let counter = input.exchange.received.counter;
        if !input.guard.is_proven(counter, frame.moment(counter, theta * MICRO)) {
            return None;
        }
        core::mem::swap(&mut self.bank, &mut self.scratch);
        self.reinitialisation.teach(&mut self.learning);
        // These were compared with the floors from before.
        self.recent.clear();
        self.ambiguity = FloorAmbiguity::NEW;
        Some(theta - before.theta)
    }

    fn look_for_changes(&mut self, events: &mut Events) {
        if !self.config.floor_changes {
            return;
        }
        for way in Direction::BOTH {
            let family = self.bank.best(&self.set).family;
            let density = self.learning.densities()[family.index()][way.index()];
            let Some(found) = path_change::find(&self.recent, way, family, density) else { continue };
            if self.ambiguity.explains(found.shift, density.ninth_decile) {
                self.revise(&Revision::UnseenFloor { since: found.since, way, shift: found.shift });
                continue;
            }
            let (densities, set) = (self.learning.densities(), &self.set);
            let trial = Trial { recent: &self.recent, densities, set, scratch: &mut self.scratch };
            match trial.cause(&found, family) {
                Cause::Open => {}
                Cause::Jump => self.move_floor(found, family, events),
                Cause::Rate(burst) => {
                    self.revise(&burst);
                    events.add(Event::RateJumped);
                    return;
                }
            }
        }
    }

    fn revise(&mut self, revision: &Revision) {
        self.recent.replay(revision, &mut self.bank, self.learning.densities(), &self.set);
        match revision {
            Revision::UnseenFloor { .. } => self.reinitialisation.take_predictions(&self.recent),
            Revision::Floor(_) | Revision::NoiseBurst { .. } => self.reinitialisation.interrupt(),
        }
        self.revisions.note(*revision);
    }

    fn move_floor(&mut self, change: Change, family: Family, events: &mut Events) {
        let way = change.way.index();
        let density = self.learning.densities()[family.index()][way];
        self.displacement.begin(self.floors(), density);
        self.revise(&Revision::Floor(change));
        let (event, count) = if change.shift > 0.0 {
            (Event::FloorShiftUp, &mut self.shifts.up)
        } else {
            (Event::FloorShiftDown, &mut self.shifts.down)
        };
        events.add(event);
        *count = count.saturating_add(1);
    }

    /// The floors of the best member, us.
    pub(super) fn floors(&self) -> [f64; 2] {
        let best = self.bank.best(&self.set);
        FLOORS.map(|part| self.bank.state(&best).map_or(0.0, |group| group.x[part].of(best.lane)))
    }

    /// A displacement of both floors in opposite directions that lasts was a step of the server's time; returns the
    /// step, us.
    fn judge_displacement(&mut self, interval: f64, events: &mut Events) -> f64 {
        let floors = self.floors();
        self.displacement.pass(interval, floors);
        if self.displacement.is_time_to_compare(self.step_patience) {
            self.share_change(floors);
        }
        if !self.displacement.is_ripe(self.step_patience) {
            return 0.0;
        }
        let step = self.displacement.step(floors);
        if let Some(step) = step {
            self.bank.for_groups(|group| {
                let [forward, backward] = FLOORS;
                group.x[THETA] += Lanes::all(step);
                group.x[forward] -= Lanes::all(step);
                group.x[backward] += Lanes::all(step);
            });
            self.recent.clear();
            self.reinitialisation.interrupt();
            self.revisions.began = true;
            events.add(Event::ServerStepAccepted);
        }
        self.displacement = path_change::Displacement::default();
        step.unwrap_or(0.0)
    }

    /// The variance of the difference of the floors of the best member, us^2.
    fn asymmetry_variance(&self) -> f64 {
        let best = self.bank.best(&self.set);
        self.bank.state(&best).map_or(f64::NAN, |group| group.asymmetry_variance().of(best.lane))
    }

    /// A change that both ways share leaves their difference as it was.
    fn share_change(&mut self, floors: [f64; 2]) {
        let deviation = libm::sqrt(self.asymmetry_variance().max(0.0));
        let Some(asymmetry) = self.displacement.shared(floors, deviation) else { return };
        self.bank.for_groups(|group| group.learn_asymmetry(asymmetry, SHARED_VARIANCE));
        // What happened before was predicted with floors that were not known like this.
        self.recent.clear();
    }

    /// Publishes the mean of the bank and moves the frame there; restarts when the mean makes no sense.
    pub(super) fn conclude(&mut self, input: &Input<'_>, mut now: Now, events: &mut Events) {
        let counter = input.exchange.received.counter;
        debug_assert!(now.past > 0);
        now.later = (HORIZON * now.poll).max(LEAST_HORIZON);
        now.blend = self.bank.blend(&self.set, now.poll.max(LEAST_POLL), now.later);
        now.difference.pass(now.frame.position(counter), &now.blend);
        now.counter = counter;
        let is_sound = self.bank.is_sound() && now.blend.is_sound();
        let step = Span::from_seconds(now.blend.theta * MICRO);
        let time = now.frame.moment(now.counter, step.as_seconds());
        if is_sound && !input.guard.is_proven(now.counter, time) {
            events.add(Event::OutsideProof);
            now.outside = now.outside.saturating_add(1);
        } else {
            now.outside = 0;
        }
        // A filter that explains its exchanges and lies within what this one proves alone is evidence against what the
        // proof assumes of the oscillator, not against itself.
        let is_refuted = now.outside >= OUTSIDE_LIMIT;
        now.doubts_proof = is_refuted && now.astray == 0 && input.guard.could_be_with_more_wander(input.exchange, time);
        if now.doubts_proof {
            now.outside = 0;
        }
        let is_lost = (is_refuted && !now.doubts_proof) || now.astray >= UNEXPLAINED_LIMIT;
        if now.past > 1 && (!is_sound || is_lost) {
            events.add(Event::FilterRestarted);
            return self.begin_again(input, now, events);
        }
        let moved = now.frame.move_to(now.counter, step.as_seconds());
        let moved = moved.y_step / MICRO;
        self.bank.for_groups(|group| group.follow(moved));
        self.recent.note_step(moved);
        self.reinitialisation.note_step(moved);
        now.blend.theta -= moved;
        self.now = Some(now);
        events.add(Event::OffsetUpdated);
    }
}
