//! Hosts: how far a stamp is from the wire.
//!
//! The delays between the wire and the place of a stamp follow M. Wu, D. Veitch, T. Broomhead, "Latencies of software
//! timestamping", figures 1 and 3, in the order of magnitude of its light load: small and steady at the packet tap,
//! larger and longer-tailed towards user space, and longer for incoming packets than for outgoing ones.

use crate::queue::Queues;
use crate::random::Random;
use crate::scenario::{HostSpec, Location};
use ffclock_units::{Direction, Span, StampLocation};

/// The smallest delay and the mean of what adds to it [s].
#[derive(Clone, Copy)]
pub(crate) struct StampLatency {
    pub(crate) least: f64,
    pub(crate) varying: f64,
}

const fn latency(least: f64, varying: f64) -> StampLatency {
    StampLatency { least, varying }
}

/// From stamp to wire, and from wire to stamp.
pub(crate) fn latencies(location: Location) -> [StampLatency; 2] {
    match location {
        Location::Wire => [latency(0.0, 0.0); 2],
        Location::Driver => [latency(1e-6, 0.1e-6), latency(2e-6, 0.3e-6)],
        Location::Tap => [latency(2e-6, 0.2e-6), latency(4e-6, 0.5e-6)],
        Location::Socket => [latency(4e-6, 1e-6), latency(6e-6, 1.5e-6)],
        Location::User => [latency(15e-6, 3e-6), latency(20e-6, 6e-6)],
    }
}

/// A host between the wire and its stamps.
pub(crate) struct SimulatedHost {
    location: Location,
    sending: Queues,
    receiving: Queues,
    random: Random,
    /// What a reading of the counter takes, half of it before the value is taken and half after [s].
    read_latency: f64,
}

impl SimulatedHost {
    pub(crate) fn new(spec: &HostSpec, read_latency: f64, seed: u64) -> Self {
        SimulatedHost {
            location: spec.stamps,
            sending: Queues::new(&spec.noise, Direction::Outgoing),
            receiving: Queues::new(&spec.noise, Direction::Incoming),
            random: Random::named(seed, "host"),
            read_latency,
        }
    }

    /// From the stamp of a request until it is on the wire, or from a reply on the wire until its stamp.
    pub(crate) fn delay(&mut self, direction: Direction, at: Span) -> Span {
        let [sending, receiving] = latencies(self.location);
        let (latency, noise) = match direction {
            Direction::Outgoing => (sending, &mut self.sending),
            Direction::Incoming => (receiving, &mut self.receiving),
        };
        let varying = if latency.varying == 0.0 { 0.0 } else { latency.varying * self.random.exponential() };
        let noise = noise.delay(at.as_seconds(), &mut self.random);
        Span::from_seconds(latency.least + varying + noise + 0.5 * self.read_latency)
    }

    /// Sending minus receiving, of the smallest delays.
    pub(crate) fn asymmetry(&self) -> Span {
        let [sending, receiving] = latencies(self.location);
        Span::from_seconds(sending.least - receiving.least)
    }

    pub(crate) fn stamp_location(&self) -> StampLocation {
        match self.location {
            Location::Wire => StampLocation::Unknown,
            Location::User => StampLocation::User,
            Location::Driver | Location::Tap | Location::Socket => StampLocation::Kernel,
        }
    }
}
