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
