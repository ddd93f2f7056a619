//! What an exchange passes through once the classic algorithm has let it in.

use super::doubt::EdgeDoubt;
use super::floors::{self, Cause, Trial};
use super::pace::Pace;
use super::recent::Taken;
use super::second::Look;
use super::{Continuity, Filter, Input, MICRO, Now};
use crate::bank::group::{Begin, FLOORS, THETA, Way};
use crate::bank::lanes::Lanes;
use crate::bank::measurement::sights;
use crate::bank::revision::{Change, Revision};
use crate::bank::{Bank, Family};
use crate::frame::{Frame, Point};
use crate::tuning::learned::{
    EXPLAINED, GARBAGE, HORIZON, LEAST_HORIZON, LEAST_POLL, LONGEST_SILENCE, OUTSIDE_LIMIT, POLL_PART, RATE_AFTER_LOSS,
    SHARED_VARIANCE, UNEXPLAINED_LIMIT,
};
use crate::{Event, Events};
use ffclock_units::Span;

impl Filter {
    /// Lets an exchange pass all stages, which is `point` in the present frame.
    pub(super) fn pass(&mut self, input: &Input<'_>, (mut now, point): (Now, Point), events: &mut Events) {
        if !(point.x > 0.0 && point.x <= LONGEST_SILENCE) {
            return self.begin(input, events);
        }
        if input.continuity == Continuity::Stepped {
            return self.begin_time(input, (now, point.x), events);
        }
        let mut explained = self.filter(&point);
        if let Some(step) = self.look_again(input, &now.frame) {
            now.pace.exclude(step);
            explained = true;
            events.add(Event::SecondLook);
        }
        self.look_for_changes(events);
        now.pace.exclude(self.judge_displacement(point.x, events));
        if events.contains(Event::RateJumped) {
            now.pace = Pace::begin(now.pace.rate);
        }
        self.bank.reseed(&self.roster);
        now.poll = if now.past < 2 { point.x } else { now.poll + POLL_PART * (point.x - now.poll) };
        now.past = now.past.saturating_add(1);
        now.astray = if explained { 0 } else { now.astray.saturating_add(1) };
        self.conclude(input, now, events);
    }

    /// The first exchange of all, or the first that is worth anything.
    pub(super) fn begin(&mut self, input: &Input<'_>, events: &mut Events) {
        let frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &frame);
        self.bank = Bank::begin(&begin, &self.roster);
        self.learning.restart();
        self.forget_paths();
        let blend = self.bank.blend(&self.roster, 1.0, 1.0);
        let now = Now {
            frame,
            counter: input.exchange.received.counter,
            blend,
            pace: Pace::begin(blend.rate),
            later: 1.0,
            poll: 1.0,
            past: 1,
            astray: 0,
            outside: 0,
        };
        self.conclude(input, now, events);
    }

    /// Takes the time and the floors from an exchange, and the rate from elsewhere; only the densities stay.
    fn begin_again(&mut self, input: &Input<'_>, mut now: Now, events: &mut Events) {
        now.frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &now.frame);
        let rate = input.fallback_rate / MICRO;
        let begin = Begin { rate, rate_variance: RATE_AFTER_LOSS * RATE_AFTER_LOSS, ..begin };
        self.bank = Bank::begin(&begin, &self.roster);
        self.forget_paths();
        now.pace = Pace::begin(rate);
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    /// Takes the time and the floors from an exchange, and keeps what is known of the oscillator and of queueing.
    fn begin_time(&mut self, input: &Input<'_>, (mut now, interval): (Now, f64), events: &mut Events) {
        self.bank.predict(interval, self.learning.densities(), &self.roster);
        now.frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &now.frame);
        self.bank.begin_time(&begin);
        self.forget_paths();
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    fn forget_paths(&mut self) {
        self.second.clear();
        self.upset.began = true;
        self.recent.clear();
        self.known.clear();
        self.displacement = floors::Displacement::default();
        self.edges = EdgeDoubt::NEW;
    }

    /// Predicts, updates and learns; the result says whether any model explains the exchange.
    fn filter(&mut self, point: &Point) -> bool {
        let sights = sights(point);
        let before = self.bank.groups;
        self.bank.predict(point.x, self.learning.densities(), &self.roster);
        let told = self.bank.observe(&sights, self.learning.densities(), &self.roster);
        let taken = Taken { interval: point.x, sights, told, step: 0.0 };
        self.recent.push(&before, taken);
        self.second.push(taken);
        self.learning.take(&told);
        self.edges.pass(self.learning.densities());
        let best = told[self.bank.best(&self.roster).family.index()];
        let unexplained = libm::log(EXPLAINED * GARBAGE);
        best.logs.iter().any(|log| *log > unexplained)
    }

    /// Looks at the last exchanges again, when it is time to; returns by how much theta steps, us, if what comes of it is believed.
    fn look_again(&mut self, input: &Input<'_>, frame: &Frame) -> Option<f64> {
        if !self.config.second_look || self.displacement.is_pending() || !self.second.take_turn() {
            return None;
        }
        let before = self.bank.blend(&self.roster, 1.0, 1.0);
        let [forward, backward] = before.floors;
        let variance = self.asymmetry_variance().max(0.0);
        let (scratch, learning, roster) = (&mut self.scratch, &self.learning, &self.roster);
        let look = Look { rate: before.rate, asymmetry: [forward - backward, variance], scratch, learning, roster };
        if !self.second.convinces(look) || !self.scratch.is_sound() {
            return None;
        }
        let theta = self.scratch.blend(&self.roster, 1.0, 1.0).theta;
        let counter = input.exchange.received.counter;
        if !input.guard.is_proven(counter, frame.moment(counter, theta * MICRO)) {
            return None;
        }
        core::mem::swap(&mut self.bank, &mut self.scratch);
        self.second.teach(&mut self.learning);
        // What was held against the floors from before.
        self.recent.clear();
        self.known.clear();
        self.edges = EdgeDoubt::NEW;
        Some(theta - before.theta)
    }

    fn look_for_changes(&mut self, events: &mut Events) {
        if !self.config.floor_changes {
            return;
        }
        for way in Way::BOTH {
            let family = self.bank.best(&self.roster).family;
            let density = self.learning.densities()[family.index()][way.index()];
            let Some(found) = floors::find(&self.recent, way, family, density) else { continue };
            if self.edges.explains(found.shift, density.ninth_decile) {
                self.revise(&Revision::Revelation { since: found.since, way, shift: found.shift });
                continue;
            }
            let (densities, roster) = (self.learning.densities(), &self.roster);
            let trial = Trial { recent: &self.recent, densities, roster, scratch: &mut self.scratch };
            match trial.cause(&found, family) {
                Cause::Open => {}
                Cause::Jump => self.move_floor(found, family, events),
                Cause::Rate(jolt) => {
                    self.revise(&jolt);
                    events.add(Event::RateJumped);
                    return;
                }
            }
        }
    }

    fn revise(&mut self, revision: &Revision) {
        self.recent.replay(revision, &mut self.bank, self.learning.densities(), &self.roster);
        match revision {
            Revision::Revelation { .. } => {
                self.second.retell(&self.recent);
                // They were held against a time that has moved.
                self.known.clear();
            }
            Revision::Floor(_) | Revision::Jolt { .. } => self.second.interrupt(),
        }
        self.upset.note(*revision);
    }

    fn move_floor(&mut self, found: Change, family: Family, events: &mut Events) {
        let way = found.way.index();
        let density = self.learning.densities()[family.index()][way];
        let floors = self.floors();
        let change = if self.config.floor_memory {
            floors::recognise(found, floors[way], &mut self.known, density)
        } else {
            found
        };
        self.displacement.begin(floors, density);
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
        let best = self.bank.best(&self.roster);
        FLOORS.map(|part| self.bank.state(&best).map_or(0.0, |group| group.x[part].of(best.lane)))
    }

    /// A displacement of both floors in opposite directions that lasts was a step of the server's time; returns the step, us.
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
            self.second.interrupt();
            self.upset.began = true;
            events.add(Event::ServerStepAccepted);
        }
        self.displacement = floors::Displacement::default();
        step.unwrap_or(0.0)
    }

    /// The variance of the difference of the floors of the best member, us^2.
    fn asymmetry_variance(&self) -> f64 {
        let best = self.bank.best(&self.roster);
        self.bank.state(&best).map_or(f64::NAN, |group| group.asymmetry_variance().of(best.lane))
    }

    /// A change that both ways share leaves their difference as it was.
    fn share_change(&mut self, floors: [f64; 2]) {
        let deviation = libm::sqrt(self.asymmetry_variance().max(0.0));
        let Some(asymmetry) = self.displacement.shared(floors, deviation) else { return };
        self.bank.for_groups(|group| group.learn_asymmetry(asymmetry, SHARED_VARIANCE));
        // What happened before is seen with floors that were not known like this.
        self.recent.clear();
    }

    /// Publishes the mean of the bank and moves the frame there; begins anew when that makes no sense.
    pub(super) fn conclude(&mut self, input: &Input<'_>, mut now: Now, events: &mut Events) {
        let counter = input.exchange.received.counter;
        now.later = (HORIZON * now.poll).max(LEAST_HORIZON);
        now.blend = self.bank.blend(&self.roster, now.poll.max(LEAST_POLL), now.later);
        now.pace.pass(now.frame.position(counter), &now.blend);
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
        let is_lost = now.outside >= OUTSIDE_LIMIT || now.astray >= UNEXPLAINED_LIMIT;
        if now.past > 1 && (!is_sound || is_lost) {
            events.add(Event::FilterRestarted);
            return self.begin_again(input, now, events);
        }
        let moved = now.frame.move_to(now.counter, step.as_seconds());
        let moved = moved.y_step / MICRO;
        self.bank.for_groups(|group| group.follow(moved));
        self.recent.note_step(moved);
        self.second.note_step(moved);
        now.blend.theta -= moved;
        self.now = Some(now);
        events.add(Event::OffsetUpdated);
    }
}
