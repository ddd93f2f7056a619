//! Whoever looks at a simulated run.

use crate::algorithm::RoundSwitch;

/// A message was perceived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Perceived {
    /// By whom.
    pub process: u32,
    /// From whom, as the network says.
    pub sender: u32,
    /// What it carries.
    pub round: u64,
    /// When it came to the host, in picoseconds.
    pub came_at: u64,
    /// When its processing was complete.
    pub at: u64,
}

/// Is told what happens. Times are true times in picoseconds since the origin; those of one process never go back, those of several do, by as much
/// as messages wait at their receivers: `until_now` says how far all is told.
pub trait Observer {
    /// A process invokes the broadcast of (init, `round`).
    fn broadcast(&mut self, process: u32, round: u64, at: u64);
    /// A message was perceived.
    fn perceived(&mut self, perceived: &Perceived);
    /// A process switched.
    fn switched(&mut self, process: u32, switch: &RoundSwitch, at: u64);
    /// Nothing that happened before `now` is still to be told.
    fn until_now(&mut self, now: u64);
}

/// Looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn broadcast(&mut self, _: u32, _: u64, _: u64) {}
    fn perceived(&mut self, _: &Perceived) {}
    fn switched(&mut self, _: u32, _: &RoundSwitch, _: u64) {}
    fn until_now(&mut self, _: u64) {}
}
