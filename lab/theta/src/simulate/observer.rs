//! Observers of a simulated run.

use crate::algorithm::RoundSwitch;

/// A message was perceived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perceived {
    /// The process that perceived it.
    pub process: u32,
    /// The sender, as the network identifies it.
    pub sender: u32,
    /// The round that it carries.
    pub round: u64,
    /// When it came to the host, in picoseconds.
    pub came_at: u64,
    /// When its processing was complete.
    pub at: u64,
}

/// Receives the events of a run. Times are true times in picoseconds since the origin. Those of one process never go
/// back; those of several processes do, as messages wait at their receivers, and `until_now` gives the time up to
/// which all events have been reported.
pub trait Observer {
    /// A process invokes the broadcast of (init, `round`).
    fn broadcast(&mut self, process: u32, round: u64, at: u64);
    /// A message was perceived.
    fn perceived(&mut self, perceived: &Perceived);
    /// A process switched.
    fn switched(&mut self, process: u32, switch: &RoundSwitch, at: u64);
    /// All events before `now` have been reported.
    fn until_now(&mut self, now: u64);
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn broadcast(&mut self, _: u32, _: u64, _: u64) {}
    fn perceived(&mut self, _: &Perceived) {}
    fn switched(&mut self, _: u32, _: &RoundSwitch, _: u64) {}
    fn until_now(&mut self, _: u64) {}
}
