//! One clock from several servers: the learned filter with one oscillator and a pair of floors per server.
//!
//! Each server keeps its own estimator, whose guard lets its exchanges in and proves an interval. What is let in is
//! also measured here, where only the paths differ: the oscillator is one. A change of the believed servers moves the
//! clock by the difference of their times, which the filter knows already. docs/algorithm/ensemble.md has the
//! equations.

mod creep;
mod testimony;

use super::Learned;
use super::prior::{ServerPrior, combined};
use crate::bank::group::Evident;
use crate::bank::measurement::MICRO;
use crate::learned::{Filter, Lead, ServerTime};
use crate::outcome::Measure;
use crate::tuning::ensemble::{LEAST_SYSTEMATIC, NO_LONGER_SUSPECT, SUSPECT};
use crate::tuning::learned::{DISAGREEMENT, OUTSIDE_LIMIT};
use crate::{ClassicConfig, Estimator, Event, LearnedConfig, Outcome, Verdict};
use alloc::vec;
use alloc::vec::Vec;
use creep::{ClockFinding, CommonTime, Crept, OwnClocks};
use ffclock_units::{Bound, Counter, Estimate, Exchange, GrowthRate, Period, Rate, Span, StandardUncertainty};
use testimony::Testimonies;

/// The most servers that one clock is made from.
pub const MOST_SERVERS: usize = crate::bank::group::MOST_SERVERS;

/// One clock from up to [`MOST_SERVERS`] servers.
///
/// After [`Ensemble::new`] no memory is allocated, unless it has to begin again or its servers change;
/// [`Ensemble::bytes`] says how much it is.
#[derive(Clone, Debug)]
pub struct Ensemble {
    filter: Filter,
    nominal: Period,
    members: Vec<EnsembleMember>,
    /// What is assumed of the servers' times.
    priors: Vec<ServerPrior>,
    /// The standard uncertainty of the published time by what is assumed of the servers' times, s.
    systematic: f64,
    /// By server, how far its time was ahead of the others' when it last had a part beside them, us.
    settled: Vec<Option<f64>>,
    /// By server, how many of its exchanges in a row found its own clock elsewhere than this one has it.
    astray: Vec<u32>,
    own_clocks: OwnClocks,
    testimonies: Testimonies,
    /// Up to when the testimonies have aged.
    aged: Option<Counter>,
}

/// One of the servers, as the others see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnsembleMember {
    /// Whether the vote of the servers believes it.
    pub is_believed: bool,
    /// Whether its time is further from the others' than what is known of their paths and claims explains, or moves
    /// against them. It then has no weight.
    pub is_suspect: bool,
    /// Its weight in the published time. Those of all servers and of the words of lost ones add up to one.
    pub weight: f64,
    /// How far its own time is ahead of the published one, s; `None` of a server without a part in the clock.
    pub ahead: Option<f64>,
}

impl EnsembleMember {
    const NEW: EnsembleMember = EnsembleMember { is_believed: true, is_suspect: false, weight: 0.0, ahead: None };
}

/// A server's own time, us ahead of theta, and its variances.
#[derive(Clone, Copy, Debug)]
struct Voice {
    server: usize,
    time: f64,
    /// By its path's asymmetry and its claim about itself, us^2.
    systematic: f64,
    /// By what the filter does not know of its floors yet, us^2.
    noise: f64,
}

impl Voice {
    fn variance(&self) -> f64 {
        self.systematic + self.noise
    }
}

impl Ensemble {
    /// A clock without history. `classic` holds the options of paths and servers, and `nominal` is the period that the
    /// counter is sold with.
    ///
    /// # Panics
    /// In debug builds, if there is no server or there are more than [`MOST_SERVERS`].
    pub fn new(config: LearnedConfig, classic: &ClassicConfig, nominal: Period, servers: usize) -> Self {
        debug_assert!((1..=MOST_SERVERS).contains(&servers), "{servers} servers");
        let servers = servers.clamp(1, MOST_SERVERS);
        Ensemble {
            filter: Filter::new(config, classic, nominal, servers),
            nominal,
            members: vec![EnsembleMember::NEW; servers],
            priors: vec![ServerPrior::NEW; servers],
            systematic: 0.0,
            settled: vec![None; servers],
            astray: vec![0; servers],
            own_clocks: OwnClocks::NEW,
            testimonies: Testimonies::default(),
            aged: None,
        }
    }

    /// The clock that `own`, the estimator of `server`, has now, for a list of `servers`. The others may join.
    pub fn of(own: &Learned, server: usize, servers: usize) -> Self {
        debug_assert!(server < servers && servers <= MOST_SERVERS, "{server} of {servers} servers");
        let mut origins = vec![None; servers.clamp(1, MOST_SERVERS)];
        if let Some(place) = origins.get_mut(server) {
            *place = Some(0);
        }
        let mut ensemble = Ensemble {
            filter: own.filter().clone(),
            nominal: own.nominal(),
            members: vec![EnsembleMember::NEW],
            priors: vec![own.server_prior()],
            systematic: 0.0,
            settled: vec![None],
            astray: vec![0],
            own_clocks: OwnClocks::NEW,
            testimonies: Testimonies::default(),
            aged: None,
        };
        ensemble.renumber(&origins);
        ensemble
    }

    /// The memory that it occupies, in bytes; constant from its making on.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.filter.bytes()
            + self.members.capacity()
                * (size_of::<EnsembleMember>() + size_of::<ServerPrior>() + size_of::<Option<f64>>() + size_of::<u32>())
    }

    /// The servers.
    pub fn members(&self) -> &[EnsembleMember] {
        &self.members
    }

    /// Takes an exchange that the server's own estimator has just taken. Returns what happened here. The weights of the
    /// servers' times follow with the next [`Ensemble::believe`].
    pub fn update(&mut self, server: usize, exchange: &Exchange, own: &Learned) -> Outcome {
        let outcome = *own.last();
        if outcome.verdict == Verdict::Contradiction {
            self.keep_word_beside_others(server);
        }
        let Some(member) = self.members.get(server).filter(|_| outcome.verdict == Verdict::Used) else {
            return outcome;
        };
        let counts = member.is_believed && !member.is_suspect;
        let evident = if counts { Evident::All } else { Evident::OwnFloors };
        self.priors[server] = own.server_prior();
        self.filter.adopt_asymmetry(server, own.filter());
        let input = own.input(server, exchange, evident);
        if !input.entry.continues() {
            self.keep_word_beside_others(server);
        }
        let departed_before: [bool; MOST_SERVERS] = core::array::from_fn(|server| self.filter.has_departed(server));
        let measured = self.filter.measure(&input);
        self.keep_words_of_departed(&departed_before);
        let mut events = measured.events;
        if measured.revisions.began {
            self.testimonies.forget();
        }
        if counts {
            self.note_astray(server, own);
            if self.has_lost_all() {
                self.begin_again(own, server);
                events.add(Event::FilterRestarted);
            } else if self.has_lost(server) {
                self.astray[server] = 0;
                self.filter.adopt_path(server, own.filter());
            }
        }
        self.compare_own_clocks(server, own);
        Outcome { events, measure: Measure { offset: measured.offset, ..outcome.measure }, ..outcome }
    }

    /// Goes on as the clock of one server. What the servers' own clocks showed stays true: they are not this one. A
    /// server that was suspect stays so until it is found where it was beside the others: that this clock was wrong
    /// makes its time no better.
    fn begin_again(&mut self, own: &Learned, server: usize) {
        let own_clocks = self.own_clocks.clone();
        let (settled, members) = (core::mem::take(&mut self.settled), core::mem::take(&mut self.members));
        *self = Ensemble { own_clocks, settled, ..Ensemble::of(own, server, members.len()) };
        for (member, before) in self.members.iter_mut().zip(members) {
            (member.is_believed, member.is_suspect) = (before.is_believed, before.is_suspect);
        }
    }

    /// Looks for servers whose own clocks crept away from those of the others, and takes back where they led this one.
    fn compare_own_clocks(&mut self, server: usize, own: &Learned) {
        if self.members.len() < 3 {
            return;
        }
        let (Some(state), Some(estimate)) = (self.filter.state(), own.estimate()) else { return };
        let systematic = self.priors[server].variance(self.filter.floor(server));
        self.own_clocks.note(server, &estimate, (systematic, own.last().events));
        let member = |server: usize| self.members.get(server);
        let common = CommonTime {
            counter: state.counter,
            time: state.time,
            nominal: self.nominal,
            is_believed: core::array::from_fn(|server| member(server).is_some_and(|member| member.is_believed)),
            has_left: core::array::from_fn(|server| self.filter.has_departed(server)),
        };
        let ClockFinding { crept, is_back } = self.own_clocks.compare(&common);
        self.reinstate(is_back);
        if let Some(crept) = crept {
            self.reinstate(crept.wronged);
            self.filter.keep_time(crept.server, crept.by);
            if let Some(lead) = self.lead(&crept) {
                self.filter.take_back(&lead);
            }
        }
    }

    /// These servers are where they were before they were suspect.
    fn reinstate(&mut self, are_back: [bool; MOST_SERVERS]) {
        for server in (0..self.members.len()).filter(|server| are_back[*server]) {
            self.filter.come_back(server);
            (self.members[server].is_suspect, self.settled[server]) = (false, None);
        }
    }

    /// How far the clock is ahead of the own clocks of those that agree, where it takes their times as known. Where it
    /// follows their floors it cannot be led away.
    fn lead(&self, crept: &Crept) -> Option<Lead> {
        let published = self.filter.ahead();
        let (mut weight, mut sum) = (0.0, 0.0);
        for (server, own) in crept.agreeing.iter().enumerate().filter_map(|(server, own)| Some((server, own.as_ref()?)))
        {
            let Some(time) = self.filter.kept_time(server) else { continue };
            let variance = own.variance + LEAST_SYSTEMATIC;
            weight += 1.0 / variance;
            sum += (time - published - own.ahead) / variance;
        }
        (weight > 0.0).then(|| Lead { by: sum / weight, variance: 1.0 / weight, within: crept.within })
    }

    /// Whether the own clocks of all servers that have a part, of two at least, have been elsewhere for a while than
    /// this one has them. No other server moves these, so a liar that was believed for too long has led this one away,
    /// and the floors of the others were taken along.
    fn has_lost_all(&self) -> bool {
        self.parts().count() > 1 && self.parts().all(|astray| astray >= OUTSIDE_LIMIT)
    }

    /// Whether the own clock of this server alone has been elsewhere for a while, although its floors show its time:
    /// they began wrong, as they can where packets queue for long, and the oscillator that all share holds them there.
    fn has_lost(&self, server: usize) -> bool {
        let steady = self.parts().filter(|astray| *astray == 0).count();
        self.astray[server] >= OUTSIDE_LIMIT
            && self.filter.kept_time(server).is_none()
            && !self.filter.has_departed(server)
            && 2 * steady > self.parts().count()
    }

    /// For how many exchanges in a row the own clock of each server with a part has been elsewhere.
    fn parts(&self) -> impl Iterator<Item = u32> {
        self.members.iter().zip(&self.astray).filter(|(member, _)| member.weight > 0.0).map(|(_, astray)| *astray)
    }

    fn note_astray(&mut self, server: usize, own: &Learned) {
        let is_astray = self.is_astray(server, own).unwrap_or(false);
        self.astray[server] = if is_astray { self.astray[server].saturating_add(1) } else { 0 };
    }

    fn is_astray(&self, server: usize, own: &Learned) -> Option<bool> {
        let (state, mine) = (self.filter.state()?, own.estimate()?);
        let ahead = Span::from_seconds(self.members.get(server)?.ahead?);
        let apart = (state.time + ahead - mine.at(state.counter).time).as_seconds().abs();
        Some(!state.is_young && apart > DISAGREEMENT * libm::hypot(state.noise, mine.noise.as_seconds()))
    }

    /// The servers' vote, by server. The weights of their times and the published time follow at once.
    pub fn believe(&mut self, beliefs: impl IntoIterator<Item = bool>) {
        for (member, is_believed) in self.members.iter_mut().zip(beliefs) {
            member.is_believed = is_believed;
        }
        self.weigh();
    }

    /// A server is another one from now on, or is asked no longer.
    pub fn leave(&mut self, server: usize) {
        self.keep_word_of(server);
        if let Some(member) = self.members.get_mut(server) {
            *member = EnsembleMember { is_believed: member.is_believed, ..EnsembleMember::NEW };
            self.settled[server] = None;
            self.astray[server] = 0;
            self.own_clocks.forget(server);
            self.filter.leave(server);
            self.weigh();
        }
    }

    /// Goes on with another list of servers. `origins` has the present number of each, or `None` of a new one.
    pub fn renumber(&mut self, origins: &[Option<usize>]) {
        debug_assert!((1..=MOST_SERVERS).contains(&origins.len()), "{} servers", origins.len());
        debug_assert!(origins.iter().flatten().all(|origin| *origin < self.members.len()), "{origins:?}");
        if origins.iter().copied().eq((0..self.members.len()).map(Some)) {
            return;
        }
        for server in (0..self.members.len()).filter(|server| !origins.contains(&Some(*server))) {
            self.keep_word_of(server);
        }
        let before = core::mem::take(&mut self.priors);
        let prior = |origin: &Option<usize>| origin.and_then(|origin| before.get(origin).copied());
        self.priors = origins.iter().map(|origin| prior(origin).unwrap_or(ServerPrior::NEW)).collect();
        let before = core::mem::take(&mut self.settled);
        let settled = |origin: &Option<usize>| origin.and_then(|origin| before.get(origin).copied()).flatten();
        self.settled = origins.iter().map(settled).collect();
        let before = core::mem::take(&mut self.astray);
        let astray = |origin: &Option<usize>| origin.and_then(|origin| before.get(origin).copied());
        self.astray = origins.iter().map(|origin| astray(origin).unwrap_or(0)).collect();
        self.own_clocks.renumber(origins);
        let before = core::mem::take(&mut self.members);
        let member = |origin: &Option<usize>| origin.and_then(|origin| before.get(origin).copied());
        self.members = origins.iter().map(|origin| member(origin).unwrap_or(EnsembleMember::NEW)).collect();
        self.filter.renumber(origins);
        self.weigh();
    }

    /// The counter's epoch ended: forgets the time.
    pub fn restart(&mut self) {
        self.filter.forget();
        self.members.iter_mut().for_each(|member| *member = EnsembleMember::NEW);
        self.settled.fill(None);
        self.astray.fill(0);
        self.own_clocks = OwnClocks::NEW;
        self.testimonies.forget();
    }

    /// A server's time jumped: what it said before stands if the others no longer believe it. If they do, it has a part
    /// in the clock again before long, and its word is not needed.
    fn keep_word_beside_others(&mut self, server: usize) {
        if self.parts().count() > 1 {
            self.keep_word_of(server);
        }
    }

    /// A server's time left those of the others in the last exchange: what it was before stands.
    fn keep_words_of_departed(&mut self, departed_before: &[bool; MOST_SERVERS]) {
        for server in (0..self.members.len()).filter(|server| !departed_before[*server]) {
            let (Some(before), Some(prior)) = (self.filter.time_before(server), self.priors.get(server)) else {
                continue;
            };
            if self.members[server].weight > 0.0 {
                let systematic = prior.variance(self.filter.floor(server));
                self.testimonies.keep(&Voice { server, time: before.ahead, systematic, noise: before.variance });
            }
        }
    }

    /// A server that has a part in the clock is about to lose it.
    fn keep_word_of(&mut self, server: usize) {
        let has_part = self.members.get(server).is_some_and(|member| member.weight > 0.0);
        if let Some(voice) = self.voice(server).filter(|_| has_part) {
            self.testimonies.keep(&voice);
        }
    }

    /// Weighs the servers' own times: each by the inverse of its variance, those that are not believed or suspect not
    /// at all. Where nothing has a weight, the clock goes on as it is.
    fn weigh(&mut self) {
        let voices: Voices = core::array::from_fn(|server| self.voice(server));
        self.look_for_suspects(&voices);
        let counting = voices.map(|voice| voice.filter(|voice| self.counts(voice.server)));
        self.age_testimonies(&counting);
        let weights = counting.map(|voice| voice.map_or(0.0, |voice| 1.0 / voice.variance()));
        let heard: f64 = weights.iter().sum();
        let testified = self.testimonies.sums();
        let sum = if heard > 0.0 { heard + testified.weight } else { 0.0 };
        if sum > 0.0 {
            let weights = weights.map(|weight| weight / sum);
            // Paths and claims of different servers are taken as independent.
            let part = |(voice, weight): (&Voice, f64)| weight * weight * voice.variance();
            let parts = counting.iter().zip(weights).filter_map(|(voice, weight)| Some((voice.as_ref()?, weight)));
            self.systematic = libm::sqrt(parts.map(part).sum::<f64>() + testified.weight / (sum * sum)) * MICRO;
            let believed = self.members.iter().filter(|member| member.is_believed).count();
            self.filter.weigh(weights, testified.time / sum, believed);
        }
        let published = self.filter.ahead();
        for ((member, weight), voice) in self.members.iter_mut().zip(weights).zip(voices) {
            member.weight = if sum > 0.0 { weight / sum } else { 0.0 };
            member.ahead = voice.map(|voice| (voice.time - published) * MICRO);
        }
    }

    fn age_testimonies(&mut self, counting: &Voices) {
        let now = self.filter.state().map(|state| state.counter);
        let elapsed = self.aged.zip(now).map_or(0.0, |(before, now)| (self.nominal * (now - before)).as_seconds());
        self.testimonies.age(counting, elapsed.max(0.0));
        self.aged = now;
    }

    fn counts(&self, server: usize) -> bool {
        self.members.get(server).is_some_and(|member| member.is_believed && !member.is_suspect)
    }

    /// Whether it was suspect up to now.
    fn is_suspect(&self, server: usize) -> bool {
        self.members.get(server).is_some_and(|member| member.is_suspect)
    }

    fn voice(&self, server: usize) -> Option<Voice> {
        let prior = self.priors.get(server)?;
        let shown = self.filter.server_time(server)?;
        // The floors of a server that crept away show where the clock was led.
        let own = self.own_clocks.place_of_away(server);
        let ServerTime { ahead, variance } =
            own.map_or(shown, |own| ServerTime { ahead: self.filter.ahead() + own.ahead, variance: own.variance });
        Some(Voice { server, time: ahead, systematic: prior.variance(self.filter.floor(server)), noise: variance })
    }

    /// Finds the servers whose time is not explained: those that moved first, then the one that is furthest from the
    /// rest, as long as the rest is a majority of those that are believed.
    fn look_for_suspects(&mut self, voices: &Voices) {
        let is_heard = |server: usize| self.members.get(server).is_some_and(|member| member.is_believed);
        let mut rest = voices.map(|voice| voice.filter(|voice| is_heard(voice.server)));
        let heard = rest.iter().flatten().count();
        // After a new beginning no suspect is acquitted before all can be compared.
        let awaits_others = (0..MOST_SERVERS).any(|server| is_heard(server) && voices[server].is_none());
        let has_majority = |rest: &Voices| 2 * rest.iter().flatten().count().saturating_sub(1) > heard;
        let mut suspects = [false; MOST_SERVERS];
        // Those that crept away first: where they led the clock, the others seem to have left it.
        let is_away = |server: &usize| self.own_clocks.is_away(*server);
        let others = (0..MOST_SERVERS).filter(|server| !is_away(server));
        for server in (0..MOST_SERVERS).filter(is_away).chain(others) {
            // A majority saw it leave: that the vote has dropped some of them since makes its time no better.
            let has_left = is_away(&server) || self.filter.has_departed(server);
            let has_moved = has_left || self.filter.is_displaced(server) || self.is_still_away(server, &rest);
            let others_remain = rest.iter().flatten().count() > 1;
            let is_kept = awaits_others && self.is_suspect(server) && is_heard(server);
            let is_alone = rest[server].is_some() && !others_remain;
            let is_out = rest[server].is_some() && (has_left && others_remain || has_moved && has_majority(&rest));
            if is_out || is_kept && !is_alone {
                (suspects[server], rest[server]) = (true, None);
            }
        }
        while has_majority(&rest) {
            let Some((server, distance)) = furthest(&rest) else { break };
            if distance <= if self.is_suspect(server) { NO_LONGER_SUSPECT } else { SUSPECT } {
                break;
            }
            (suspects[server], rest[server]) = (true, None);
        }
        for (member, is_suspect) in self.members.iter_mut().zip(suspects) {
            member.is_suspect = is_suspect;
        }
        for (server, settled) in self.settled.iter_mut().enumerate() {
            *settled =
                rest[server].and_then(|voice| beside_others(&rest, &voice)).map(|beside| beside.ahead).or(*settled);
        }
    }

    /// Whether a suspect is still further from the others than when it last had a part in the clock. It left them, and
    /// they saw nothing of it: that it then stays where it is makes its time no better.
    fn is_still_away(&self, server: usize, rest: &Voices) -> bool {
        let settled = self.settled.get(server).copied().flatten().filter(|_| self.is_suspect(server));
        let Some(settled) = settled else { return false };
        let beside = rest[server].and_then(|voice| beside_others(rest, &voice));
        beside.is_some_and(|beside| {
            let room = SUSPECT * libm::sqrt(beside.noise + LEAST_SYSTEMATIC);
            beside.ahead.abs() > settled.abs() + room
        })
    }

    /// The clock at the last exchange, without bounds: these are for the vote to prove. `None` before the first
    /// exchange.
    pub fn estimate(&self) -> Option<Estimate> {
        let state = self.filter.state()?;
        let period = |rate: f64| self.nominal.stretched(Rate::from_fraction(rate));
        Some(Estimate {
            counter: state.counter,
            time: state.time,
            period: period(state.rate),
            uncertainty: combined(state.noise, self.systematic),
            noise: StandardUncertainty::from_seconds(state.noise),
            uncertainty_growth: GrowthRate::of(Rate::from_fraction(state.growth)),
            bound: Bound::UNKNOWN,
            bound_growth: GrowthRate::from_units(u64::MAX),
            difference_period: period(state.difference_rate),
            difference_bound: GrowthRate::from_units(u64::MAX),
            difference_uncertainty: GrowthRate::of(Rate::from_fraction(state.difference_deviation)),
            status: state.status(),
        })
    }
}

/// The servers' own times, by server.
type Voices = [Option<Voice>; MOST_SERVERS];

/// A server's time beside the weighted mean of the others' times.
struct Beside {
    /// How far it is ahead of that, us.
    ahead: f64,
    /// The variance of this, and the part of it by what the filter does not know of the floors, us^2.
    variance: f64,
    noise: f64,
}

/// `None` without others.
fn beside_others(voices: &Voices, voice: &Voice) -> Option<Beside> {
    let others = voices.iter().flatten().filter(|other| other.server != voice.server);
    let (mut weight, mut sum, mut noise) = (0.0, 0.0, 0.0);
    for other in others {
        weight += 1.0 / other.variance();
        sum += (other.time - voice.time) / other.variance();
        noise += other.noise / (other.variance() * other.variance());
    }
    let noise = voice.noise + noise / (weight * weight);
    (weight > 0.0).then(|| Beside { ahead: -sum / weight, variance: voice.variance() + 1.0 / weight, noise })
}

/// The server whose time is furthest from the weighted mean of the others, in standard deviations.
fn furthest(voices: &Voices) -> Option<(usize, f64)> {
    let distance = |voice: &Voice| {
        let beside = beside_others(voices, voice)?;
        Some((voice.server, beside.ahead.abs() / libm::sqrt(beside.variance)))
    };
    voices.iter().flatten().filter_map(distance).max_by(|a, b| a.1.total_cmp(&b.1))
}
