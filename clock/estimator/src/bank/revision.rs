//! What is believed to have happened between two exchanges in place of what the filter assumed.

use super::group::{Evident, Group, RATE, THETA, floor_of, floors_of};
use super::lanes::Lanes;
use super::{BankExchange, FloorWalk};
use ffclock_units::Direction;

/// A floor that moved.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    pub server: usize,
    pub way: Direction,
    /// How many of the last exchanges came after it.
    pub since: usize,
    /// How far every member's floor moves, us.
    pub shift: f64,
    /// The variance of the new floor, us^2.
    pub variance: f64,
}

/// What is believed to have happened in place of what the filter took for granted.
#[derive(Clone, Copy, Debug)]
pub enum Revision {
    /// A floor moved.
    Floor(Change),
    /// The counter's rate changed by more than the bank expected.
    NoiseBurst {
        /// How many of the last exchanges came after it.
        since: usize,
        gained: BurstVariance,
    },
    /// The floor of one way had never been seen. It, the other floor and theta gain a common error of the size `shift`,
    /// us, so that the difference of the floors and the delays of the other way stay as they are known.
    UnseenFloor { server: usize, since: usize, way: Direction, shift: f64 },
    /// A lone packet met a floor that is met rarely: it lies `shift` from where it was believed, with the variance of
    /// the packet's prediction. Both floors stay as far apart as they are, as in [`Revision::UnseenFloor`].
    RareFloor(Change),
    /// The time of a server left those of the others.
    Departure(Departure),
}

/// The variances that theta and the rate gain at once.
#[derive(Clone, Copy, Debug)]
pub struct BurstVariance {
    /// Of theta, us^2.
    pub theta: f64,
    /// Of the rate, ppm^2.
    pub rate: f64,
}

impl BurstVariance {
    /// Theta may be off by `theta`, us, and the rate by `rate`, ppm.
    pub fn of(theta: f64, rate: f64) -> Self {
        BurstVariance { theta: theta * theta, rate: rate * rate }
    }
}

/// A server whose time left those of the others.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub server: usize,
    /// How many of the last exchanges came after it.
    pub since: usize,
    /// What its floors do before each of its exchanges from then on.
    pub walk: FloorWalk,
}

impl Revision {
    /// How many of the last exchanges came after it.
    pub fn since(&self) -> usize {
        match self {
            Revision::Floor(change) | Revision::RareFloor(change) => change.since,
            Revision::NoiseBurst { since, .. } | Revision::UnseenFloor { since, .. } => *since,
            Revision::Departure(departure) => departure.since,
        }
    }

    /// An exchange after it, as it has to be taken. `evident` is what one with a server that left is evidence for.
    pub fn retake(&self, exchange: &BankExchange, evident: Evident) -> BankExchange {
        match self {
            Revision::Departure(Departure { server, walk, .. })
                if *server == exchange.server && exchange.evident != Evident::Joins =>
            {
                let variance = exchange.walk.variance.max(walk.variance);
                BankExchange { evident, walk: FloorWalk { variance, ..*walk }, ..*exchange }
            }
            _ => *exchange,
        }
    }

    /// What it does to the beliefs of a group.
    pub fn apply(&self, group: &mut Group) {
        match self {
            Revision::Floor(change) => {
                let part = floor_of(change.server, change.way);
                group.p.cut(part);
                group.x[part] += Lanes::all(change.shift);
                group.p[part][part] = Lanes::all(change.variance);
            }
            Revision::NoiseBurst { gained: BurstVariance { theta, rate }, .. } => {
                group.p[THETA][THETA] += Lanes::all(*theta);
                group.p[RATE][RATE] += Lanes::all(*rate);
            }
            Revision::RareFloor(change) => {
                let theta = match change.way {
                    Direction::Outgoing => 1.0,
                    Direction::Incoming => -1.0,
                };
                let [forward, backward] = floors_of(change.server);
                // Half of it moves the floors, the other half theta: together they move the packets of this way by all
                // of it, and those of the other way not at all.
                let open = [(THETA, 0.5 * theta), (forward, 0.5), (backward, 0.5)];
                for (row, a) in open {
                    group.x[row] += Lanes::all(a * change.shift);
                    for (column, b) in open {
                        group.p[row][column] += Lanes::all(a * b * change.variance);
                    }
                }
            }
            Revision::Departure(_) => {}
            Revision::UnseenFloor { server, way, shift, .. } => {
                let theta = match way {
                    Direction::Outgoing => *shift,
                    Direction::Incoming => -shift,
                };
                let [forward, backward] = floors_of(*server);
                let open = [(THETA, theta), (forward, *shift), (backward, *shift)];
                for (row, a) in open {
                    for (column, b) in open {
                        group.p[row][column] += Lanes::all(a * b);
                    }
                }
            }
        }
    }
}
