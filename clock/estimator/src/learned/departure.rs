//! Servers whose time leaves that of the others: a generalised likelihood ratio test (G. Lorden, Annals of Mathematical
//! Statistics 42, 1971; A. Willsky and H. Jones, IEEE Trans. Automatic Control 21, 1976).
//!
//! All servers are read by one counter. What all see is the oscillator; what one sees in both directions with opposite
//! signs is that server. The bank refilters the last exchanges with one server's time free, and compares with the
//! oscillator or one direction free instead. A departure is believed from where it happened on,
//! so that nothing of it stays in the clock.

use super::Filter;
use super::path::ServerPath;
use super::recent::Filtering;
use crate::bank::group::Evident;
use crate::bank::revision::{BurstVariance, Change, Departure, Revision};
use crate::bank::{FloorBlend, FloorWalk};
use crate::tuning::ensemble::{
    DEPARTURE_GAIN, DEPARTURE_OVER_PATH, DEPARTURE_WITNESSES, EARLY, LEAST_SYSTEMATIC, NO_LONGER_SUSPECT,
};
use crate::tuning::learned::{BURST_SLACK, DECISIVE};
use ffclock_units::Direction;

/// A departure that the last exchanges may show.
#[derive(Clone, Copy)]
struct Suspicion {
    departure: Departure,
    /// The best member's score with it.
    score: f64,
    /// What the server's floors were before.
    shown: FloorBlend,
}

/// A packet that came before its floor.
#[derive(Clone, Copy)]
struct EarlyPacket {
    server: usize,
    way: Direction,
    /// How long before it, us.
    by: f64,
}

/// How far the clock was led away.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// Ahead of the own clocks of the servers that agree, us.
    pub by: f64,
    /// The variance of this, us^2.
    pub variance: f64,
    /// Since when, s.
    pub within: f64,
}

impl Filter {
    /// A server that crept away led the clock. Theta and the floors of all servers go back together, which changes no
    /// prediction of a packet; the rate is known less. A lead within what is not known of it is none.
    pub fn take_back(&mut self, lead: &Lead) {
        if lead.by.abs() <= NO_LONGER_SUSPECT * libm::sqrt(lead.variance) {
            return;
        }
        self.start.end();
        self.recent.clear();
        let rate = lead.by / lead.within;
        let gained = BurstVariance { theta: lead.variance, rate: rate * rate };
        self.bank.for_groups(|group| group.shift_times(-lead.by, gained));
        self.paths.iter_mut().for_each(ServerPath::lose_displacement);
        self.blend_again();
        self.follow_servers();
    }

    /// A server crept away by this, us: its time stays what it was before.
    pub fn keep_time(&mut self, server: usize, moved: f64) {
        self.paths[server].keep_time_before(moved);
    }

    /// A server's time, us ahead of theta, where its floors do not show it.
    pub fn kept_time(&self, server: usize) -> Option<f64> {
        self.paths.get(server)?.kept_time()
    }

    /// A server whose time had left that of the others is where it was.
    pub fn come_back(&mut self, server: usize) {
        self.paths[server].come_back();
    }

    /// Looks for a server whose time left that of the others, after an exchange with `server`. The result says whether
    /// the exchanges since then were taken again without it.
    pub(super) fn look_for_departure(&mut self, server: usize) -> bool {
        if self.is_alone(server) || !self.paths[server].is_settled() {
            return false;
        }
        let Some(early) = self.early_packet(server) else { return false };
        if self.paths[server].has_departed() {
            // It is away already, so that this moves no clock.
            let departure = Departure { server, since: 1, walk: FloorWalk::of_time(early.by * early.by) };
            self.revise(server, &Revision::Departure(departure));
            return true;
        }
        if self.is_unseen_floor(&early) {
            return false;
        }
        let Some(Suspicion { departure, shown, .. }) = self.suspicion(early) else { return false };
        self.revise(departure.server, &Revision::Departure(departure));
        self.paths[departure.server].depart(shown);
        true
    }

    /// The packet of the newest exchange that came before its floor by more than what is not known of it, if one did.
    fn early_packet(&self, server: usize) -> Option<EarlyPacket> {
        let family = self.bank.best(&self.set).family;
        let newest = self.recent.get(0).filter(|newest| newest.exchange.server == server)?;
        let cavities = newest.predictions[family.index()].cavities;
        let is_early = |way: &Direction| {
            let cavity = cavities[way.index()];
            -cavity.mean > EARLY * libm::sqrt(cavity.variance)
        };
        let early = Direction::BOTH.into_iter().filter(is_early);
        let early = early.map(|way| EarlyPacket { server, way, by: -cavities[way.index()].mean });
        early.max_by(|a, b| a.by.total_cmp(&b.by))
    }

    /// Whether the packet may just show a floor that no packet had met so far.
    fn is_unseen_floor(&self, early: &EarlyPacket) -> bool {
        let EarlyPacket { server, way, by } = *early;
        let path = &self.paths[server];
        let family = self.bank.best(&self.set).family;
        let density = path.learning.densities()[family.index()][way.index()];
        path.ambiguity.explains(-by, density.ninth_decile)
    }

    /// The likeliest departure that explains an early packet, if nothing else does as well.
    fn suspicion(&mut self, early: EarlyPacket) -> Option<Suspicion> {
        let EarlyPacket { server, by, .. } = early;
        let without = self.bank.best(&self.set).score;
        let mut found: Option<Suspicion> = None;
        for count in [DEPARTURE_WITNESSES, 2 * DEPARTURE_WITNESSES, self.recent.depth()] {
            let Some(since) = self.recent.since(server, count) else { break };
            let tried = self.tried(Departure { server, since, walk: FloorWalk::of_time(by * by) });
            found = likelier(found, tried.filter(|tried| tried.score - without > DEPARTURE_GAIN));
        }
        let found = found?;
        let since = found.departure.since;
        let is_path = found.score - self.score_of_path(early, since) < DEPARTURE_OVER_PATH;
        let is_rate = self.score_of_rate(early, since) - found.score > DECISIVE;
        if is_path || is_rate {
            return None;
        }
        // Where another server led the clock away, it is this one that seems to leave.
        let rivals = (0..self.paths.len()).filter(|other| *other != server);
        let rival = rivals.fold(None, |best, rival| {
            likelier(best, self.rival(server, Departure { server: rival, ..found.departure }))
        });
        match rival {
            Some(rival) if rival.score > found.score + DECISIVE => Some(rival),
            Some(rival) if rival.score > found.score - DECISIVE => None,
            _ => Some(found),
        }
    }

    /// The departure of another server, then or as early as exchanges of `server` are remembered.
    fn rival(&mut self, server: usize, departure: Departure) -> Option<Suspicion> {
        let earliest = self.recent.since(server, self.recent.depth());
        let earlier = earliest.and_then(|since| self.tried(Departure { since, ..departure }));
        likelier(earlier, self.tried(departure))
    }

    /// What the last exchanges say with a departure; `None` where the others do not show it.
    fn tried(&mut self, departure: Departure) -> Option<Suspicion> {
        let Departure { server, since, .. } = departure;
        if !self.can_decide(server, since) {
            return None;
        }
        let score = self.score(since, Revision::Departure(departure));
        let shows = self.scratch.floors(&self.set, server);
        self.recent.restore(since, &mut self.scratch);
        let shown = self.scratch.floors(&self.set, server);
        let variance = shown.variance + shows.variance + LEAST_SYSTEMATIC;
        let is_away = (shows.ahead - shown.ahead).abs() > NO_LONGER_SUSPECT * libm::sqrt(variance);
        is_away.then_some(Suspicion { departure, score, shown })
    }

    /// Whether this server has a part in the clock, in each of its last exchanges, and those of the others that
    /// answered since then are a majority of all that are believed.
    fn can_decide(&self, server: usize, since: usize) -> bool {
        let exchanges = || (0..since).filter_map(|age| self.recent.get(age)).map(|observation| observation.exchange);
        let speaks = |other: usize| {
            let mut own = exchanges().filter(|exchange| exchange.server == other).peekable();
            self.paths[other].weight > 0.0
                && own.peek().is_some()
                && own.all(|exchange| exchange.evident == Evident::All)
        };
        let others = (0..self.paths.len()).filter(|other| *other != server && speaks(*other)).count();
        speaks(server) && 2 * others > self.believed
    }

    /// The best score with the path in place of the server's time: the early packet's way became shorter, then or just
    /// now; or both ways are restless, as they are on a host that other work disturbs.
    fn score_of_path(&mut self, early: EarlyPacket, since: usize) -> f64 {
        let EarlyPacket { server, way, by } = early;
        let shorter = |since| Revision::Floor(Change { server, way, since, shift: -by, variance: by * by });
        let restless = Revision::Departure(Departure { server, since, walk: FloorWalk::of_path(by * by) });
        let scores = [(since, shorter(since)), (1, shorter(1)), (since, restless)];
        scores.into_iter().map(|(since, revision)| self.score(since, revision)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The score with a burst of noise in the counter's rate that makes up for the early packet.
    fn score_of_rate(&mut self, early: EarlyPacket, since: usize) -> f64 {
        let gained = BurstVariance::of(BURST_SLACK * early.by, early.by / self.recent.elapsed(since));
        self.score(since, Revision::NoiseBurst { since, gained })
    }

    /// The best member's score with a revision before the last `since` exchanges; the scratch bank holds what it made
    /// of them.
    fn score(&mut self, since: usize, revision: Revision) -> f64 {
        let Filter { paths, recent, scratch, set, .. } = self;
        let densities = |server: usize| paths[server].learning.densities();
        recent.score(since, &[revision], scratch, Filtering { densities: &densities, set })
    }
}

fn likelier(one: Option<Suspicion>, other: Option<Suspicion>) -> Option<Suspicion> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.score > one.score { other } else { one }),
        (one, other) => one.or(other),
    }
}
