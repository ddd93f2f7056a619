//! Stamps taken by the raw counter itself at the boundary to the driver, without the way through the system clock.
//!
//! Two sources give them: the tracepoints of a stock kernel with a trace clock that is the raw counter
//! ([`DriverStamps::trace`]), and the kernel module `ffcounter` ([`DriverStamps::module`]). Neither says which packet
//! of a socket it was, so the stamp that the socket itself gave, which is by the system clock and some hundred ns wide,
//! serves to find the passage: the only one of its direction and length near it. Where there is none or more than one,
//! the stamp of the socket is kept.

mod passages;
mod traced;

use ffclock_counter::CounterId;
use ffclock_counter::ffcounter::{Ffcounter, ModuleCounter, PacketStamp, layout};
use ffclock_units::{Counter, Direction, Stamp, Ticks};
use passages::{DriverPassage, Passages};
use std::io;
use traced::Traced;

#[derive(Debug)]
enum PassageSource {
    Trace(Box<Traced>),
    Module {
        device: Ffcounter,
        counter: ModuleCounter,
    },
    /// What a test says has passed since the last look.
    #[cfg(test)]
    Scripted(Vec<DriverPassage>),
}

/// Passages of the last moments.
#[derive(Debug)]
pub struct DriverStamps {
    origin: PassageSource,
    sent: Passages,
    received: Passages,
    /// A second, about, in ticks.
    second: Ticks,
    tally: DriverTally,
}

/// How often a passage was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverTally {
    /// Stamps that were replaced by a passage.
    pub found: u64,
    /// Stamps that were kept since no passage, or more than one, was near.
    pub missed: u64,
}

impl DriverStamps {
    /// Stamps by the tracepoints of the kernel. `period_hertz` is the rate of the counter.
    ///
    /// # Errors
    /// The kernel has no trace clock that is the counter in use, or does not trace for us; the message names the
    /// remedy.
    pub fn trace(kind: CounterId, period_hertz: f64) -> io::Result<Self> {
        let traced = Traced::start(kind).map_err(io::Error::other)?;
        Ok(Self::of(PassageSource::Trace(Box::new(traced)), period_hertz))
    }

    /// Stamps by the kernel module, of packets from and to `ports`.
    ///
    /// # Errors
    /// The counter in use is not one of the module's, or the module does not stamp; the message names the remedy.
    pub fn module(kind: CounterId, ports: &[u16], period_hertz: f64) -> io::Result<Self> {
        let counter = match kind {
            CounterId::Tsc => ModuleCounter::Tsc,
            CounterId::Module(counter) => counter,
            other @ (CounterId::MonotonicRaw | CounterId::ArmVirtual) => {
                let text = format!("the module does not count by {other}: set counter = \"module:tsc\"");
                return Err(io::Error::other(text));
            }
        };
        let device = Ffcounter::open().map_err(io::Error::other)?;
        device.stamp_ports(counter, ports).map_err(io::Error::other)?;
        Ok(Self::of(PassageSource::Module { device, counter }, period_hertz))
    }

    fn of(origin: PassageSource, period_hertz: f64) -> Self {
        let second = Ticks::from_raw(period_hertz as i64);
        let [sent, received] = [Passages::within(second), Passages::within(second)];
        DriverStamps { origin, sent, received, second, tally: DriverTally::default() }
    }

    /// How often a passage was found so far.
    pub fn tally(&self) -> DriverTally {
        self.tally
    }

    /// The passage of the packet that the socket stamped so, if it is certain which one it was.
    ///
    /// The driver stamps a packet sent while the kernel hands it over, so the passage is the last one before the stamp.
    /// A packet received is stamped before its passage, and may have waited in a queue with others in between, so there
    /// must be one alone.
    pub fn refine(&mut self, direction: Direction, stamp: Stamp, ip_length: Option<usize>) -> Option<Counter> {
        self.drain(stamp.counter);
        let (before, after) = match direction {
            Direction::Outgoing => (self.part(2000), self.part(1_000_000)),
            Direction::Incoming => (self.part(1_000_000), self.part(5000)),
        };
        let half = stamp.width.halved();
        let (from, to) = (stamp.counter - half - before, stamp.counter + half + after);
        let is_like = |passage: &&DriverPassage| ip_length.is_none_or(|length| length == passage.ip_length);
        let found = match direction {
            Direction::Outgoing => self.sent.between(from, to).rfind(is_like),
            Direction::Incoming => {
                let mut near = self.received.between(from, to).filter(is_like);
                near.next().filter(|_| near.next().is_none())
            }
        };
        let found = found.map(|passage| passage.counter);
        match found {
            Some(_) => self.tally.found += 1,
            None => self.tally.missed += 1,
        }
        found
    }

    /// The given part of a second.
    fn part(&self, of_second: i64) -> Ticks {
        Ticks::from_raw(self.second.raw() / of_second)
    }

    /// Takes over what has passed. Done before a packet is sent, too, so that little is left to look at when its answer
    /// has come.
    pub(crate) fn drain(&mut self, now: Counter) {
        let (sent, received) = (&mut self.sent, &mut self.received);
        let mut keep = |passage: DriverPassage| match passage.direction {
            Direction::Outgoing => sent.add(passage),
            Direction::Incoming => received.add(passage),
        };
        match &mut self.origin {
            // Without events the stamps of the socket serve, and the tally says so.
            PassageSource::Trace(traced) => drop(traced.drain(&mut keep)),
            PassageSource::Module { device, counter } => {
                let mut room = [PacketStamp::EMPTY; 64];
                while let Ok(stamps @ [_, ..]) = device.read_stamps(&mut room) {
                    stamps.iter().filter(|stamp| stamp.id == counter.code()).map(passage_of).for_each(&mut keep);
                }
            }
            #[cfg(test)]
            PassageSource::Scripted(passed) => passed.drain(..).for_each(&mut keep),
        }
        self.sent.settle(now);
        self.received.settle(now);
    }
}

fn passage_of(stamp: &PacketStamp) -> DriverPassage {
    let headers = if stamp.family == 4 { 28 } else { 48 };
    let direction = if stamp.direction == layout::SENT { Direction::Outgoing } else { Direction::Incoming };
    DriverPassage { counter: Counter::from_raw(stamp.value), direction, ip_length: usize::from(stamp.length) + headers }
}

#[cfg(test)]
mod tests;
