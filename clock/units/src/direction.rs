//! Which way a packet goes.

/// The direction of a packet as this host sees it. Of an exchange with a server, the request is outgoing (forward) and
/// the reply incoming (backward).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From this host.
    Outgoing,
    /// To this host.
    Incoming,
}

impl Direction {
    /// Both, in the order in which the packets of an exchange travel.
    pub const BOTH: [Direction; 2] = [Direction::Outgoing, Direction::Incoming];

    /// Its place in [`Direction::BOTH`].
    pub fn index(self) -> usize {
        match self {
            Direction::Outgoing => 0,
            Direction::Incoming => 1,
        }
    }

    /// The other one.
    pub fn other(self) -> Direction {
        match self {
            Direction::Outgoing => Direction::Incoming,
            Direction::Incoming => Direction::Outgoing,
        }
    }
}
