//! What the filter says of the time.

use super::path::{ServerPath, ServerTime};
use super::{Filter, MICRO, Now, Shifts};
use crate::tuning::learned::{LEAST_UNCERTAINTY, WARM_RATE, YOUNG};
use ffclock_units::{Counter, Moment, Rate, Status, Tai};

/// The state at the end of the last exchange that was measured.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub counter: Counter,
    pub time: Moment<Tai>,
    /// The standard uncertainty of `time` by what exchanges show, s, and how fast it grows, s/s.
    pub noise: f64,
    pub growth: f64,
    /// The rate of the absolute clock and that of the difference clock, relative to the nominal one.
    pub rate: f64,
    pub difference_rate: f64,
    /// The standard uncertainty of the rate of the difference clock, relative.
    pub difference_deviation: f64,
    /// Few exchanges are behind it.
    pub is_young: bool,
    /// Both floors moved apart as if the server's time had stepped, and that is not decided yet.
    pub is_displaced: bool,
    /// The queueing densities rest on data.
    pub is_taught: bool,
}

impl State {
    /// Whether the clock is still warming up.
    pub fn status(&self) -> Status {
        if self.is_young || Rate::from_fraction(self.growth) > Rate::from_fraction(WARM_RATE) {
            Status::WarmingUp
        } else {
            Status::Synchronised
        }
    }
}

impl Filter {
    /// The present state; `None` before the first exchange.
    pub fn state(&self) -> Option<State> {
        self.now.as_ref().map(|now| self.state_of(now))
    }

    pub(super) fn state_of(&self, now: &Now) -> State {
        let likely = libm::sqrt(now.blend.variance.max(0.0));
        let growth = now.blend.deviation_later - likely;
        let difference = now.difference.published(&now.blend, now.later);
        State {
            counter: now.counter,
            time: now.frame.moment(now.counter, (now.blend.theta + self.ahead) * MICRO),
            noise: libm::hypot(self.ambiguity(), likely) * MICRO + LEAST_UNCERTAINTY,
            growth: growth.max(0.0) * MICRO / now.later,
            rate: now.blend.rate * MICRO,
            difference_rate: difference.rate * MICRO,
            difference_deviation: difference.deviation * MICRO,
            is_young: now.past < YOUNG,
            is_displaced: (0..self.paths.len()).any(|server| self.is_alone(server) && self.displaced(server).is_some()),
            is_taught: self.paths.iter().any(|path| path.has_joined() && !path.learning.is_young()),
        }
    }

    /// The ambiguity of the published time, us: the servers' ambiguities are independent.
    fn ambiguity(&self) -> f64 {
        let part = |path: &ServerPath| path.weight * path.ambiguity_deviation();
        match self.paths.as_slice() {
            [only] => only.ambiguity_deviation(),
            paths => libm::sqrt(paths.iter().map(part).map(|part| part * part).sum()),
        }
    }

    /// How far a server's time has stepped or crept away from what its floors showed before, us, if it has.
    fn displaced(&self, server: usize) -> Option<f64> {
        self.paths[server].displacement.step(self.floors(server))
    }

    /// A server's own time, if it has a part in the clock.
    pub fn server_time(&self, server: usize) -> Option<ServerTime> {
        let path = self.paths.get(server).filter(|path| path.has_joined())?;
        let ServerTime { ahead, variance } = path.time();
        if path.has_departed() {
            return Some(path.time());
        }
        Some(ServerTime { ahead: ahead + self.displaced(server).unwrap_or(0.0), variance })
    }

    /// Whether a server's time has stepped or crept away a short while ago.
    pub fn is_displaced(&self, server: usize) -> bool {
        self.paths.get(server).is_some_and(ServerPath::has_joined) && self.displaced(server).is_some()
    }

    /// What a server's time was before it left those of the others, while it is away.
    pub fn time_before(&self, server: usize) -> Option<ServerTime> {
        self.paths.get(server).filter(|path| path.has_joined())?.time_before()
    }

    /// Whether a server's time is away from where the others have it.
    pub fn has_departed(&self, server: usize) -> bool {
        self.paths.get(server).is_some_and(|path| path.has_joined() && path.has_departed())
    }

    /// The published time becomes this mean of the servers' own times. `testified`, us ahead of theta, is what servers
    /// that left add to it; their weights and these add up to one. `believed` is how many servers the vote believes,
    /// with those that are suspect.
    pub fn weigh(&mut self, weights: impl IntoIterator<Item = f64>, testified: f64, believed: usize) {
        self.believed = believed;
        self.ahead = testified;
        for (path, weight) in self.paths.iter_mut().zip(weights) {
            path.weight = weight;
            self.ahead += weight * path.time().ahead;
        }
    }

    /// How far the published time is ahead of theta, us.
    pub fn ahead(&self) -> f64 {
        self.ahead
    }

    /// A server has no part in the clock any longer.
    pub fn leave(&mut self, server: usize) {
        self.paths[server].leave();
        self.recent.clear();
        self.start.end();
    }

    /// The sum of both floors of a server, s.
    pub fn floor(&self, server: usize) -> f64 {
        let [forward, backward] = self.bank.floors(&self.set, server).floors;
        (forward + backward) * MICRO
    }

    pub fn shifts(&self) -> Shifts {
        self.shifts
    }
}
