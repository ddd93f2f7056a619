//! The stages that an exchange passes once the guard has let it in.

use super::ambiguity::FloorAmbiguity;
use super::difference_rate::DifferenceRate;
use super::lone_packet::{LonePacket, Search};
use super::path::ServerPath;
use super::path_change::{self, Cause, ChangeWitnesses, Displacement, Trial};
use super::recent::{Filtering, Observation};
use super::reinitialise::{Attempt, FloorAsymmetry};
use super::{Filter, Input, MICRO, Now, Placed};
use crate::bank::group::{Begin, Evident, THETA, floors_of};
use crate::bank::lanes::Lanes;
use crate::bank::measurement::{Measurement, measurements};
use crate::bank::revision::{Change, Revision};
use crate::bank::{BankExchange, Blend, Family, FloorWalk};
use crate::frame::{Frame, Point};
use crate::guard::Entry;
use crate::tuning::learned::{
    EXPLAINED, GARBAGE, HORIZON, LEAST_HORIZON, LEAST_POLL, LONGEST_SILENCE, OUTSIDE_LIMIT, POLL_PART, RATE_AFTER_LOSS,
    SHARED_VARIANCE, SOFTWARE_TRIP, UNEXPLAINED_LIMIT,
};
use crate::{Event, Events};
use ffclock_units::{Direction, Exchange, Moment, Span, Stamp, StampLocation, Tai};

impl Filter {
    /// Lets an exchange pass all stages.
    pub(super) fn pass(&mut self, input: &Input<'_>, placed: Placed, events: &mut Events) {
        let Placed { mut now, point } = placed;
        let (server, is_alone) = (input.server, self.is_alone(input.server));
        if point.x > LONGEST_SILENCE || (is_alone && point.x <= 0.0) {
            return self.begin(input, events);
        }
        if is_alone && matches!(input.entry, Entry::Step(_)) {
            return self.begin_time(input, placed, events);
        }
        self.paths.iter_mut().for_each(|path| path.silence += point.x.max(0.0));
        if self.paths.len() == 1 && self.paths[server].shows_its_length() {
            let trip: f64 = self.floors(server).iter().sum();
            let trip = if is_free_of_software(input.exchange) { trip } else { trip.abs().max(SOFTWARE_TRIP) };
            self.paths[server].learning.refine(trip);
        }
        let exchange = self.exchange(input, &point);
        let mut is_explained = self.filter(exchange);
        self.continue_start(input, &exchange);
        if let Some(step) = self.reinitialise(input, &now.frame) {
            now.difference.exclude(step);
            is_explained = true;
            events.add(Event::Reinitialised);
        }
        if !self.look_for_departure(server) {
            self.look_for_changes(server, events);
        }
        now.difference.exclude(self.judge_displacement(server, events));
        self.paths[server].count();
        if events.contains(Event::RateJumped) {
            now.difference = now.difference.begin_again();
        }
        self.bank.reseed(&self.set);
        now.poll = if now.past < 2 { exchange.interval } else { now.poll + POLL_PART * (exchange.interval - now.poll) };
        now.past = now.past.saturating_add(1);
        if input.evident == Evident::All {
            now.astray = if is_explained { 0 } else { now.astray.saturating_add(1) };
        }
        self.conclude(input, now, events);
    }

    /// What an exchange shows to the bank. One that ended before the last one of another server shows the time then.
    fn exchange(&self, input: &Input<'_>, point: &Point) -> BankExchange {
        let evident = if self.paths[input.server].has_joined() { input.evident } else { Evident::Joins };
        let late = (-point.x).max(0.0);
        let measurements = measurements(point).map(|packet| Measurement { trip: packet.trip + late, ..packet });
        BankExchange {
            server: input.server,
            interval: point.x.max(0.0),
            measurements,
            evident,
            holds_floors: self.paths[input.server].learning.holds_floors(),
            walk: FloorWalk::NONE,
        }
    }

    /// The first exchange of all, or the first that is usable.
    pub(super) fn begin(&mut self, input: &Input<'_>, events: &mut Events) {
        let frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &frame);
        self.bank.restart(&begin, &self.set);
        self.paths.iter_mut().for_each(|path| path.learning.restart());
        self.begin_paths(input.server);
        self.begin_start(input, &begin, &frame);
        let blend = self.bank.blend(&self.set, 1.0, 1.0);
        let now = Now {
            prior: input.guard.prior(),
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
        self.bank.restart(&begin, &self.set);
        self.begin_paths(input.server);
        self.begin_start(input, &begin, &now.frame);
        now.difference = DifferenceRate::begin(rate);
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    /// Takes the time and the floors from an exchange, and keeps what is known of the oscillator and of queueing.
    fn begin_time(&mut self, input: &Input<'_>, placed: Placed, events: &mut Events) {
        let Placed { mut now, point } = placed;
        let exchange = self.exchange(input, &point);
        self.bank.predict(&exchange, self.paths[input.server].learning.densities(), &self.set);
        now.frame = Frame::at(self.nominal, input.exchange);
        let begin = self.beginning(input, &now.frame);
        self.bank.for_groups(|group| group.begin_time(&begin));
        self.begin_paths(input.server);
        (now.past, now.astray, now.outside) = (1, 0, 0);
        self.conclude(input, now, events);
    }

    /// The clock begins with this server; the others have to join again.
    fn begin_paths(&mut self, server: usize) {
        self.paths.iter_mut().for_each(ServerPath::leave);
        self.paths[server].begin();
        self.ahead = 0.0;
        self.revisions.began = true;
        self.recent.clear();
        self.start.end();
    }

    /// The first exchange of all is taken as far as it goes.
    fn begin_start(&mut self, input: &Input<'_>, begin: &Begin, frame: &Frame) {
        let measurements = measurements(&frame.place(input.exchange));
        self.start.begin(begin, &measurements, self.paths[input.server].half_asymmetry);
        self.adopt_start();
    }

    /// The first exchanges are taken together each time, as long as that is better than the bank one by one.
    fn continue_start(&mut self, input: &Input<'_>, exchange: &BankExchange) {
        if input.evident == Evident::All {
            self.start.take(exchange);
        } else {
            self.start.end();
        }
        self.adopt_start();
    }

    fn adopt_start(&mut self) {
        if let Some(belief) = self.start.belief() {
            self.bank.adopt(&belief, &self.set);
        }
    }

    /// Predicts, updates and learns; the result says whether any model explains the exchange.
    fn filter(&mut self, exchange: BankExchange) -> bool {
        let Filter { bank, set, paths, recent, .. } = self;
        let path = &mut paths[exchange.server];
        if exchange.evident == Evident::Joins {
            path.join();
        }
        recent.save(bank);
        bank.predict(&exchange, path.learning.densities(), set);
        let predictions = bank.observe(&exchange, path.learning.densities(), set);
        let observation = Observation { exchange, predictions, step: 0.0 };
        recent.push(observation);
        if exchange.evident == Evident::Joins {
            return true;
        }
        path.reinitialisation.push(observation);
        path.learning.take(&predictions);
        path.ambiguity.pass(path.learning.densities());
        let best = predictions[bank.best(set).family.index()];
        let unexplained = libm::log(EXPLAINED * GARBAGE);
        best.logs.iter().any(|log| *log > unexplained)
    }

    /// Re-initialises from the last exchanges when that is due, if it makes them much likelier. Returns the step of
    /// theta, us. Not where several servers have a part in the clock: they correct each other.
    fn reinitialise(&mut self, input: &Input<'_>, frame: &Frame) -> Option<f64> {
        let server = input.server;
        let is_alone = self.is_alone(server);
        let variance = self.asymmetry_variance(server).max(0.0);
        let Filter { bank, scratch, set, paths, recent, .. } = self;
        let ServerPath { learning, reinitialisation, displacement, ambiguity, .. } = &mut paths[server];
        if !is_alone {
            reinitialisation.interrupt();
            return None;
        }
        if !self.config.reinitialisation || displacement.is_pending() || !reinitialisation.take_due() {
            return None;
        }
        let before = bank.blend(set, 1.0, 1.0);
        let [forward, backward] = bank.floors(set, server).floors;
        let attempt = Attempt {
            server,
            rate: before.rate,
            asymmetry: FloorAsymmetry { difference: forward - backward, variance },
            scratch,
            learning,
            set,
        };
        if !reinitialisation.succeeds(attempt) || !scratch.is_sound() {
            return None;
        }
        let theta = scratch.blend(set, 1.0, 1.0).theta;
        let counter = input.exchange.received.counter;
        if !input.guard.is_proven(counter, frame.moment(counter, theta * MICRO)) {
            return None;
        }
        core::mem::swap(bank, scratch);
        reinitialisation.teach(learning);
        // These were compared with the floors from before.
        recent.clear();
        *ambiguity = FloorAmbiguity::NEW;
        Some(theta - before.theta)
    }

    fn look_for_changes(&mut self, server: usize, events: &mut Events) {
        if !self.config.floor_changes {
            return;
        }
        self.look_for_rare_floor(server);
        for way in Direction::BOTH {
            let family = self.bank.best(&self.set).family;
            let path = &self.paths[server];
            let density = path.learning.densities()[family.index()][way.index()];
            let witnesses = ChangeWitnesses { recent: &self.recent, server, way, family };
            let Some(found) = path_change::find(witnesses, density) else { continue };
            let Change { since, shift, .. } = found.change;
            if path.ambiguity.explains(shift, density.ninth_decile) {
                self.open_floor(found.change, Revision::UnseenFloor { server, since, way, shift });
                continue;
            }
            let paths = &self.paths;
            let densities = |server: usize| paths[server].learning.densities();
            let filtering = Filtering { densities: &densities, set: &self.set };
            let trial = Trial { recent: &self.recent, filtering, scratch: &mut self.scratch };
            match trial.cause(&found, family) {
                Cause::Open => {}
                Cause::Jump => self.move_floor(found.change, family, events),
                Cause::Rate(burst) => {
                    self.revise(server, &burst);
                    events.add(Event::RateJumped);
                    return;
                }
            }
        }
    }

    /// A lone packet before a floor shows it. From here on rare packets hold the floors of this path, and the hump of
    /// the others may have any shape.
    fn look_for_rare_floor(&mut self, server: usize) {
        if !self.paths[server].is_settled() {
            return;
        }
        let family = self.bank.best(&self.set).family;
        let path = &self.paths[server];
        let search = Search { recent: &self.recent, server, family };
        let Some(lone) = search.find(path.learning.densities()) else { return };
        let LonePacket { way, since, shift, variance } = lone;
        let floor = self.floors(server)[way.index()];
        if !self.paths[server].learning.shows_rare_floor(&lone, floor) {
            return;
        }
        let change = Change { server, way, since, shift, variance };
        self.open_floor(change, Revision::RareFloor(change));
        self.paths[server].learning.hold_floors(&lone);
    }

    /// Lowers a floor that had never been seen. The other servers know theta, where there are some.
    fn open_floor(&mut self, change: Change, unseen: Revision) {
        let revision = if self.is_alone(change.server) { unseen } else { Revision::Floor(change) };
        self.revise(change.server, &revision);
    }

    pub(super) fn revise(&mut self, server: usize, revision: &Revision) {
        self.start.end();
        let Filter { bank, set, paths, recent, .. } = self;
        let densities = |server: usize| paths[server].learning.densities();
        recent.replay(revision, bank, Filtering { densities: &densities, set });
        let reinitialisation = &mut paths[server].reinitialisation;
        match revision {
            Revision::UnseenFloor { .. } | Revision::RareFloor(_) => reinitialisation.take_predictions(recent),
            Revision::Floor(_) | Revision::NoiseBurst { .. } | Revision::Departure(_) => reinitialisation.interrupt(),
        }
        self.revisions.note(*revision);
    }

    fn move_floor(&mut self, change: Change, family: Family, events: &mut Events) {
        let server = change.server;
        let floors = self.floors(server);
        let path = &mut self.paths[server];
        let density = path.learning.densities()[family.index()][change.way.index()];
        path.displacement.begin(floors, density);
        path.keep_time();
        self.revise(server, &Revision::Floor(change));
        let (event, count) = if change.shift > 0.0 {
            (Event::FloorShiftUp, &mut self.shifts.up)
        } else {
            (Event::FloorShiftDown, &mut self.shifts.down)
        };
        events.add(event);
        *count = count.saturating_add(1);
    }

    /// The floors of a server by the best member, us.
    pub(super) fn floors(&self, server: usize) -> [f64; 2] {
        let best = self.bank.best(&self.set);
        floors_of(server).map(|part| self.bank.state(&best).map_or(0.0, |group| group.x[part].of(best.lane)))
    }

    /// A displacement of both floors in opposite directions that lasts was a step of the server's time. Returns how far
    /// the clock steps with it, us: not at all where other servers have a part in it.
    fn judge_displacement(&mut self, server: usize, events: &mut Events) -> f64 {
        let (floors, is_alone) = (self.floors(server), self.is_alone(server));
        let path = &mut self.paths[server];
        path.displacement.pass(path.silence, floors);
        if path.displacement.is_time_to_compare(self.step_patience) {
            self.share_change(server, floors);
        }
        let path = &mut self.paths[server];
        if !path.displacement.is_ripe(self.step_patience) {
            return 0.0;
        }
        let step = path.displacement.step(floors);
        path.displacement = Displacement::default();
        let Some(step) = step else { return 0.0 };
        events.add(Event::ServerStepAccepted);
        if !is_alone {
            path.step(step);
            return 0.0;
        }
        path.reinitialisation.interrupt();
        self.start.end();
        self.bank.for_groups(|group| {
            let [forward, backward] = floors_of(server);
            group.x[THETA] += Lanes::all(step);
            group.x[forward] -= Lanes::all(step);
            group.x[backward] += Lanes::all(step);
        });
        self.recent.clear();
        self.revisions.began = true;
        step
    }

    /// The variance of the difference of the floors of the best member, us^2.
    fn asymmetry_variance(&self, server: usize) -> f64 {
        let best = self.bank.best(&self.set);
        self.bank.state(&best).map_or(f64::NAN, |group| group.asymmetry_variance(server).of(best.lane))
    }

    /// A change that both ways share leaves their difference as it was.
    fn share_change(&mut self, server: usize, floors: [f64; 2]) {
        let deviation = libm::sqrt(self.asymmetry_variance(server).max(0.0));
        let Some(asymmetry) = self.paths[server].displacement.shared(floors, deviation) else { return };
        self.bank.for_groups(|group| group.learn_asymmetry(server, asymmetry, SHARED_VARIANCE));
        // What happened before was predicted with floors that were not known like this.
        self.recent.clear();
    }

    /// Publishes the mean of the bank and moves the frame there; restarts when the mean makes no sense.
    pub(super) fn conclude(&mut self, input: &Input<'_>, mut now: Now, events: &mut Events) {
        debug_assert!(now.past > 0);
        now.later = (HORIZON * now.poll).max(LEAST_HORIZON);
        now.blend = self.blend_for(&now);
        // A late exchange shows the time at the last one of another server.
        let passed = now.frame.position(input.exchange.received.counter);
        if passed > 0.0 || now.past == 1 {
            now.counter = input.exchange.received.counter;
        }
        now.difference.pass(passed, &now.blend);
        let is_sound = self.bank.is_sound() && now.blend.is_sound();
        let time = self.published(&now);
        if is_sound && input.evident == Evident::All && !input.guard.is_proven(now.counter, time) {
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
        let step = Span::from_seconds(now.blend.theta * MICRO);
        let moved = now.frame.move_to(now.counter, step.as_seconds());
        let moved = moved.y_step / MICRO;
        self.bank.for_groups(|group| group.follow(moved));
        self.recent.note_step(moved);
        self.start.note_step(moved);
        self.paths[input.server].reinitialisation.note_step(moved);
        now.blend.theta -= moved;
        self.now = Some(now);
        self.follow_servers();
        events.add(Event::OffsetUpdated);
    }

    /// The time that is published at the last exchange.
    fn published(&self, now: &Now) -> Moment<Tai> {
        let step = Span::from_seconds((now.blend.theta + self.ahead) * MICRO);
        now.frame.moment(now.counter, step.as_seconds())
    }

    fn blend_for(&self, now: &Now) -> Blend {
        self.bank.blend(&self.set, now.poll.max(LEAST_POLL), now.later)
    }

    /// The bank was changed after the last exchange was concluded.
    pub(super) fn blend_again(&mut self) {
        self.now = self.now.map(|now| Now { blend: self.blend_for(&now), ..now });
    }

    /// What the servers' floors say of their times now.
    pub(super) fn follow_servers(&mut self) {
        if self.paths.len() < 2 {
            return;
        }
        for (server, path) in self.paths.iter_mut().enumerate().filter(|(_, path)| path.has_joined()) {
            path.follow(&self.bank.floors(&self.set, server));
        }
    }
}

/// Whether no software delays what is stamped: the network card stamps both packets, or this host reads the reference
/// itself.
fn is_free_of_software(exchange: &Exchange) -> bool {
    let is_hardware = |stamp: &Stamp| stamp.location == StampLocation::Hardware;
    exchange.server.identity.stratum == 0 || (is_hardware(&exchange.sent) && is_hardware(&exchange.received))
}
