//! Servers whose time creeps away from that of the others, more slowly than the last few exchanges show.
//!
//! A server with most of the weight leads the common clock where it creeps, and the floors of the others are taken
//! along, so that the common filter sees nothing. But each server has a clock of its own, which knows no other server.
//! How far these clocks moved against one another, over windows from some polls to days, is put to the vote: the change
//! that most of them can agree on is no server's, and a server that is far from it has crept away (after K. Marzullo,
//! Maintaining the time in a distributed system, 1984, with changes of time in place of times).

use super::MOST_SERVERS;
use crate::bank::measurement::MICRO;
use crate::tuning::bank::FLOOR_WALK;
use crate::tuning::ensemble::{
    CREPT, FIRST_WINDOW, LEAST_SYSTEMATIC, NO_LONGER_SUSPECT, STEADY_PART, WINDOWS, WITHIN_REACH,
};
use crate::{Event, Events};
use ffclock_units::{Counter, Estimate, Moment, Period, Status, Tai};

/// The servers' own clocks, now and at times that lie further and further back.
#[derive(Clone, Debug)]
pub struct OwnClocks {
    clocks: [Option<OwnClock>; MOST_SERVERS],
    /// Exchanges since the clocks were compared.
    exchanges: usize,
    /// How often they were compared.
    comparisons: u64,
    /// The last two comparisons whose number is a multiple of 2^k for each k from [`FIRST_WINDOW`] on, the newer first.
    past: [[Option<ClockComparison>; 2]; WINDOWS],
    /// The last one.
    last: [Option<OwnPlace>; MOST_SERVERS],
    /// By server that crept away, what it is compared with until it is back.
    away: [Option<Away>; MOST_SERVERS],
}

/// A server that crept away.
#[derive(Clone, Copy, Debug)]
struct Away {
    /// When it was where the others are.
    then: ClockComparison,
    /// How far it had moved from them when it was found, us.
    moved: f64,
}

/// A server's own clock after its last exchange.
#[derive(Clone, Copy, Debug)]
struct OwnClock {
    estimate: Estimate,
    /// The variance of the server's time by what is assumed of its path and its claim, us^2.
    systematic: f64,
    /// The number of the first comparison since which nothing happened to its server or its filter.
    steady_since: u64,
    /// What changes of its path and rate have added to the variance of its movement, us^2.
    unsettled: f64,
}

/// The servers' own clocks beside the common one, at one reading of the counter.
#[derive(Clone, Copy, Debug)]
struct ClockComparison {
    number: u64,
    counter: Counter,
    places: [Option<OwnPlace>; MOST_SERVERS],
    /// Whose time had left that of the others then.
    had_left: [bool; MOST_SERVERS],
}

/// How far an own clock is ahead of the common one, us, and the variance of this by its noise, us^2.
#[derive(Clone, Copy, Debug)]
pub struct OwnPlace {
    pub ahead: f64,
    pub variance: f64,
    /// What changes of its path and rate up to then have added to the variance of its movement, us^2.
    unsettled: f64,
}

/// How far a server's clock moved against the common one, us, and the variance of this, us^2.
#[derive(Clone, Copy, Debug)]
struct Movement {
    server: usize,
    by: f64,
    variance: f64,
}

/// What most servers agree on.
struct Agreed {
    /// The mean of the movements that can be one, us, and its variance, us^2.
    mean: f64,
    variance: f64,
    /// Who can.
    agrees: [bool; MOST_SERVERS],
}

/// What the clocks are compared with, and who has a voice.
#[derive(Clone, Copy, Debug)]
pub struct CommonTime {
    pub counter: Counter,
    /// Of the common clock there.
    pub time: Moment<Tai>,
    pub nominal: Period,
    /// By server, whether the vote believes it.
    pub is_believed: [bool; MOST_SERVERS],
    /// By server, whether its time has left that of the others.
    pub has_left: [bool; MOST_SERVERS],
}

/// A server that crept away.
#[derive(Clone, Copy, Debug)]
pub struct Crept {
    pub server: usize,
    /// How far its clock moved against the common one, us, and the time within which it did, s.
    pub by: f64,
    pub within: f64,
    /// By server that moved as most did, its own clock beside the common one.
    pub agreeing: [Option<OwnPlace>; MOST_SERVERS],
    /// The servers that left the others since then only because the common clock was led away.
    pub wronged: [bool; MOST_SERVERS],
}

/// What a comparison shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockFinding {
    pub crept: Option<Crept>,
    /// By server, whether it had crept away and is back.
    pub is_back: [bool; MOST_SERVERS],
}

/// Upsets in which a server's own clock goes on with its time. One that creeps away jumps in rate.
const GOES_ON: [Event; 3] = [Event::FloorShiftUp, Event::FloorShiftDown, Event::RateJumped];

impl OwnClocks {
    pub const NEW: OwnClocks = OwnClocks {
        clocks: [None; MOST_SERVERS],
        exchanges: 0,
        comparisons: 0,
        past: [[None; 2]; WINDOWS],
        last: [None; MOST_SERVERS],
        away: [None; MOST_SERVERS],
    };

    /// Whether a server has crept away from the others.
    pub fn is_away(&self, server: usize) -> bool {
        self.away.get(server).is_some_and(Option::is_some)
    }

    /// Where the own clock of a server is that crept away.
    pub fn place_of_away(&self, server: usize) -> Option<OwnPlace> {
        self.last.get(server).copied().flatten().filter(|_| self.is_away(server))
    }

    /// A server is another one from now on.
    pub fn forget(&mut self, server: usize) {
        if let (Some(clock), Some(away)) = (self.clocks.get_mut(server), self.away.get_mut(server)) {
            (*clock, *away) = (None, None);
        }
    }

    /// Goes on with another list of servers. `origins` has the present number of each, or `None` of a new one.
    pub fn renumber(&mut self, origins: &[Option<usize>]) {
        self.clocks = renumbered(&self.clocks, origins);
        self.last = renumbered(&self.last, origins);
        self.away = renumbered(&self.away, origins);
        let of_away = self.away.iter_mut().flatten().map(|away| &mut away.then);
        for comparison in self.past.iter_mut().flatten().flatten().chain(of_away) {
            comparison.places = renumbered(&comparison.places, origins);
            let had_left = comparison.had_left.map(|had_left| had_left.then_some(()));
            comparison.had_left = renumbered(&had_left, origins).map(|had_left| had_left.is_some());
        }
    }

    /// Takes over a server's own clock after an exchange, and what happened there. After an upset of the server or of
    /// its filter its time cannot be compared with that before. Its beginnings do not count either. Where its path or
    /// the rate changed, its time went on, known as well as the clock is.
    pub fn note(&mut self, server: usize, estimate: &Estimate, (systematic, events): (f64, Events)) {
        self.exchanges = self.exchanges.saturating_add(1);
        let Some(clock) = self.clocks.get_mut(server) else { return };
        let is_breach = GOES_ON.into_iter().fold(events, Events::without).is_upset();
        let known = clock.filter(|_| !is_breach && estimate.status == Status::Synchronised);
        let noise = estimate.noise.as_seconds() / MICRO;
        let changes = GOES_ON.into_iter().filter(|change| events.contains(*change)).count();
        let unsettled = clock.map_or(0.0, |clock| clock.unsettled) + changes as f64 * noise * noise;
        let steady_since = known.map_or(self.comparisons.saturating_add(1), |clock| clock.steady_since);
        *clock = Some(OwnClock { estimate: *estimate, systematic, steady_since, unsettled });
    }

    /// Compares the clocks, once all had the time to answer since the last time.
    pub fn compare(&mut self, common: &CommonTime) -> ClockFinding {
        if self.exchanges < self.clocks.iter().flatten().count() {
            return ClockFinding::default();
        }
        self.exchanges = 0;
        self.comparisons = self.comparisons.saturating_add(1);
        let now = self.comparison(common);
        let is_back = self.who_is_back(&now, common);
        let crept = self.look(&now, common);
        self.remember(now);
        self.last = now.places;
        for (away, is_back) in self.away.iter_mut().zip(is_back) {
            *away = away.filter(|_| !is_back);
        }
        ClockFinding { crept, is_back }
    }

    fn comparison(&self, common: &CommonTime) -> ClockComparison {
        let place = |clock: &Option<OwnClock>| {
            let here = clock.as_ref()?.estimate.carried_to(common.counter);
            let noise = here.noise.as_seconds() / MICRO;
            Some(OwnPlace {
                ahead: (here.time - common.time).as_seconds() / MICRO,
                variance: noise * noise,
                unsettled: clock.as_ref()?.unsettled,
            })
        };
        ClockComparison {
            number: self.comparisons,
            counter: common.counter,
            places: self.clocks.each_ref().map(place),
            had_left: core::array::from_fn(|server| common.has_left[server] || self.is_away(server)),
        }
    }

    fn remember(&mut self, now: ClockComparison) {
        let [newer, older] = [0, 1];
        for (window, past) in (FIRST_WINDOW..).zip(&mut self.past) {
            if now.number.trailing_zeros() >= window {
                (past[older], past[newer]) = (past[newer], Some(now));
            }
        }
    }

    /// Looks for a server that crept away, in the longest window first: that reaches back to before it began.
    fn look(&mut self, now: &ClockComparison, common: &CommonTime) -> Option<Crept> {
        for window in (0..WINDOWS).rev() {
            let Some(then) = self.past[window][1] else { continue };
            let moved = |server: usize| self.steady_movement(server, &then, now).filter(|_| !then.had_left[server]);
            let movements: Movements =
                core::array::from_fn(|server| moved(server).filter(|_| common.is_believed[server]));
            let Some(agreed) = agreed(&movements, common) else { continue };
            let distance = |one: &Movement| (one.by - agreed.mean).abs() / libm::sqrt(one.variance + agreed.variance);
            let is_known = |server: usize| common.has_left[server] || self.is_away(server);
            let others = movements.iter().flatten().filter(|one| !agreed.agrees[one.server] && !is_known(one.server));
            let furthest = others.max_by(|a, b| distance(a).total_cmp(&distance(b)));
            let Some(furthest) = furthest.filter(|one| distance(one) > CREPT) else { continue };
            self.away[furthest.server] = Some(Away { then, moved: (furthest.by - agreed.mean).abs() });
            let is_wronged = |server: usize| agreed.agrees[server] && common.has_left[server];
            let Movement { server, by, .. } = *furthest;
            return Some(Crept {
                server,
                by,
                within: elapsed(&then, common),
                agreeing: core::array::from_fn(|server| now.places[server].filter(|_| agreed.agrees[server])),
                wronged: core::array::from_fn(is_wronged),
            });
        }
        None
    }

    /// Which of those that are away are where they were before, as most others see it, by clocks that would show it if
    /// they were not. Whatever happened to the paths meanwhile: an own clock goes on with its time.
    fn who_is_back(&self, now: &ClockComparison, common: &CommonTime) -> [bool; MOST_SERVERS] {
        core::array::from_fn(|server| {
            let Some(Away { then, moved }) = self.away[server] else { return false };
            let is_witness = |other: usize| other != server && !self.is_away(other) && !then.had_left[other];
            let movement = |other: usize| self.movement(other, &then, now).filter(|_| common.is_believed[other]);
            let witnesses: Movements = core::array::from_fn(|other| movement(other).filter(|_| is_witness(other)));
            movement(server).zip(agreed(&witnesses, common)).is_some_and(|(own, agreed)| {
                let room = NO_LONGER_SUSPECT * libm::sqrt(own.variance + agreed.variance);
                room <= 0.5 * moved && (own.by - agreed.mean).abs() <= room
            })
        })
    }

    /// How far a server's clock moved where nothing happened to it since then.
    fn steady_movement(&self, server: usize, then: &ClockComparison, now: &ClockComparison) -> Option<Movement> {
        self.clocks[server].filter(|clock| clock.steady_since <= then.number)?;
        self.movement(server, then, now)
    }

    /// How far a server's clock moved.
    fn movement(&self, server: usize, then: &ClockComparison, now: &ClockComparison) -> Option<Movement> {
        let clock = self.clocks[server]?;
        let (before, after) = then.places[server].zip(now.places[server])?;
        let age = (clock.estimate.period * (now.counter - then.counter)).as_seconds().max(0.0);
        let steady = STEADY_PART * STEADY_PART * clock.systematic;
        let unsettled = (after.unsettled - before.unsettled).max(0.0);
        let variance = before.variance + after.variance + unsettled + steady + FLOOR_WALK * age + LEAST_SYSTEMATIC;
        Some(Movement { server, by: after.ahead - before.ahead, variance })
    }
}

/// By server.
type Movements = [Option<Movement>; MOST_SERVERS];

/// What is known by server, for another list of servers.
fn renumbered<T: Copy>(before: &[Option<T>; MOST_SERVERS], origins: &[Option<usize>]) -> [Option<T>; MOST_SERVERS] {
    core::array::from_fn(|server| origins.get(server).copied().flatten().and_then(|origin| *before.get(origin)?))
}

/// Since a comparison, s.
fn elapsed(then: &ClockComparison, common: &CommonTime) -> f64 {
    (common.nominal * (common.counter - then.counter)).as_seconds()
}

/// The movement that most can agree on; `None` where these are not a majority of those that the vote believes.
fn agreed(movements: &Movements, common: &CommonTime) -> Option<Agreed> {
    let reach = |one: &Movement| WITHIN_REACH * libm::sqrt(one.variance);
    let all = || movements.iter().flatten();
    let covers = |point: f64| all().filter(|one| (one.by - point).abs() <= reach(one) * (1.0 + f64::EPSILON)).count();
    // Wherever most agree, the region begins at the lower end of one of them and ends at the upper end of one.
    let ends = |side: f64| all().map(move |one| one.by + side * reach(one));
    let most = ends(-1.0).map(covers).max()?;
    let lowest = ends(-1.0).filter(|end| covers(*end) == most).fold(f64::INFINITY, f64::min);
    let highest = ends(1.0).filter(|end| covers(*end) == most).fold(f64::NEG_INFINITY, f64::max);
    let believed = common.is_believed.iter().filter(|is_believed| **is_believed).count();
    if 2 * most <= believed {
        return None;
    }
    let can_agree = |one: &&Movement| one.by - reach(one) <= highest && one.by + reach(one) >= lowest;
    let (mut weight, mut sum, mut agrees) = (0.0, 0.0, [false; MOST_SERVERS]);
    for one in all().filter(can_agree) {
        weight += 1.0 / one.variance;
        sum += one.by / one.variance;
        agrees[one.server] = true;
    }
    (weight > 0.0).then(|| Agreed { mean: sum / weight, variance: 1.0 / weight, agrees })
}
