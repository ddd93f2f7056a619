//! What the filter says of the time.

use super::{Filter, MICRO, Now, Shifts};
use crate::tuning::learned::{LEAST_UNCERTAINTY, YOUNG};
use ffclock_units::{Counter, Moment, Tai};

/// The state at the end of the last exchange that was measured.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub counter: Counter,
    pub time: Moment<Tai>,
    /// The standard uncertainty of `time`, s, and how fast it grows, s/s.
    pub uncertainty: f64,
    pub growth: f64,
    /// The rate of the absolute clock and that of the difference clock, relative to the nominal one.
    pub rate: f64,
    pub difference_rate: f64,
    /// The standard uncertainty of the rate of the difference clock, relative.
    pub difference_deviation: f64,
    /// The sum of both floors, s.
    pub floor: f64,
    /// Few exchanges are behind it.
    pub is_young: bool,
    /// Both floors moved apart as if the server's time had stepped, and that is not decided yet.
    pub is_displaced: bool,
    /// The queueing densities rest on data.
    pub is_taught: bool,
}

impl Filter {
    /// The present state; `None` before the first exchange.
    pub fn state(&self) -> Option<State> {
        self.now.as_ref().map(|now| self.state_of(now))
    }

    pub(super) fn state_of(&self, now: &Now) -> State {
        let likely = libm::sqrt(now.blend.variance.max(0.0));
        let growth = now.blend.deviation_later - likely;
        let [forward, backward] = now.blend.floors;
        State {
            counter: now.counter,
            time: now.frame.moment(now.counter, now.blend.theta * MICRO),
            uncertainty: libm::hypot(self.ambiguity.deviation(), likely) * MICRO + LEAST_UNCERTAINTY,
            growth: growth.max(0.0) * MICRO / now.later,
            rate: now.blend.rate * MICRO,
            difference_rate: now.difference.rate * MICRO,
            difference_deviation: now.difference.deviation(&now.blend, now.later) * MICRO,
            floor: (forward + backward) * MICRO,
            is_young: now.past < YOUNG,
            is_displaced: self.displacement.step(self.floors()).is_some(),
            is_taught: !self.learning.is_young(),
        }
    }

    pub fn shifts(&self) -> Shifts {
        self.shifts
    }
}
