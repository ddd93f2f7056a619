//! The real traffic of a UDP service, looked at in passing: nothing is sent, and nothing of the program is changed.
//!
//! The packet tap sees whose packets pass and with which payload; the kernel's tracing sees when they pass each place,
//! but of a packet only its length and the address of its buffer. So a packet is the copy that the tap has of it (flow,
//! IP identification, length and a digest of its payload distinguish it from all others), and an event belongs to the
//! copy of the same length on the same device that it is next to. Where two would fit, it is left out and counted.
//! System calls of the program itself stand for user space.

mod capture;
mod kernel;
mod matching;
pub mod program;

use self::capture::Copy;
use self::kernel::{Kernel, KernelEvent};
use self::matching::Matching;
use crate::pairs::PairLine;
use crate::passages::PacketPassages;
use crate::tap::Tap;
use ffclock_counter::{CounterId, read_ordered};
use ffclock_sys::{PairReader, SystemPairs, mono_now};
use ffclock_units::{Counter, Moment, Mono, Period, Utc};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io;

/// Events and copies that are kept: beyond them a busy host would fill the memory.
const MOST_KEPT: usize = 4_000_000;
/// The latest events, among which that of a packet of the last milliseconds is.
const SOUGHT_IN: usize = 50_000;

/// Why a service cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no tap.
    #[error("cannot tap packets: {0}; run as root or with CAP_NET_RAW")]
    NoTap(io::Error),
    /// What the kernel collected cannot be read.
    #[error("cannot read what the kernel collected: {0}")]
    Unreadable(io::Error),
}

/// The service to watch, and how.
#[derive(Clone, Debug)]
pub struct WatchPlan {
    /// The service's port.
    pub port: u16,
    /// The device, if not all of them.
    pub device: Option<String>,
    /// The threads of the program, for its system calls. Where it is empty, the sender of the first packet is looked
    /// at.
    pub threads: BTreeSet<u32>,
    /// Whether a program on this host has the port; decides on loopback, which every packet passes twice, whose packets
    /// are counted.
    pub role: Role,
    /// The counter that stamps.
    pub counter: CounterId,
    /// Its nominal period.
    pub period: Period,
}

/// Which end of the conversations is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The end that has the port.
    Server,
    /// The end that does not have the port.
    Client,
}

/// What happened to packets and events, all of it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WatchCounts {
    /// Packets on their way out.
    pub outgoing: u64,
    /// Packets on their way in.
    pub incoming: u64,
    /// Exchanges that this host began, with their reply.
    pub asked: u64,
    /// Exchanges that others began, with our reply.
    pub answered: u64,
    /// Packets without one of the opposite direction.
    pub single: u64,
    /// Copies of a packet that had passed another device already (bridges, tunnels, VLANs).
    pub seen_again: u64,
    /// Packets whose events could be those of another packet of the same length: left out.
    pub ambiguous: u64,
    /// Packets for which the kernel's tracing has no event.
    pub without_events: u64,
    /// Packets for which the program made no system call that fits.
    pub without_calls: u64,
    /// Copies that the tap could not hand over.
    pub tap_dropped: u64,
    /// Stamps of the tap that cannot be mapped to the counter: the system clock was set.
    pub tap_stamps_discarded: u64,
    /// Events that the kernel could not keep.
    pub events_lost: u64,
}

/// How the program was seen to use its sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Calls {
    /// Calls to send.
    pub sends: u64,
    /// Calls to receive that can hand over stamps (recvmsg, recvmmsg).
    pub receives_with_stamps: u64,
    /// Calls to receive that cannot (recvfrom).
    pub receives_without: u64,
    /// Looks at the error queue, where transmit stamps are.
    pub error_queue_reads: u64,
}

/// The results of an observation.
#[derive(Debug)]
pub struct Watched {
    /// A row for each exchange that this host began, and one for every other packet.
    pub passages: PacketPassages,
    /// What happened to packets and events.
    pub counts: WatchCounts,
    /// How the program uses its sockets; `None` where it could not be seen.
    pub calls: Option<Calls>,
    /// The thread that was found by its packets; `None` where it was known before, or did not send.
    pub sender: Option<u32>,
    /// How long the program takes from a request's stamp at the tap to its reply's [ns], one for each exchange that
    /// others began.
    pub turnarounds_ns: Vec<f64>,
    /// What the host does not offer, each with the reason.
    pub unavailable: Vec<String>,
    /// The length of the observation [s].
    pub length_s: f64,
}

/// An observation under way.
pub struct ServiceWatcher {
    plan: WatchPlan,
    tap: Tap,
    kernel: Option<Kernel>,
    clock: SystemPairs,
    pairs: PairLine<Utc>,
    copies: Vec<Copy>,
    events: Vec<KernelEvent>,
    unavailable: Vec<String>,
    begin: Counter,
    begun: Moment<Mono>,
    sender: Option<u32>,
    /// The number of copies at the last search for the sender.
    looked_at: usize,
    is_full: bool,
}

impl ServiceWatcher {
    /// Starts to watch.
    ///
    /// # Errors
    /// [`WatchError::NoTap`]; without tracing there is less to see, which is named.
    pub fn start(plan: WatchPlan) -> Result<Self, WatchError> {
        let mut unavailable = Vec::new();
        // The tap last: what it hands over was stamped after the first pair, and while events were traced.
        let kernel = Kernel::open(&plan, &mut unavailable);
        let mut clock = SystemPairs::new(plan.counter);
        let mut pairs = PairLine::new(plan.period);
        pairs.push(clock.read_pair());
        let tap = match &plan.device {
            Some(device) => Tap::open(device, plan.port),
            None => Tap::open_everywhere(plan.port),
        };
        let tap = tap.map_err(WatchError::NoTap)?;
        Ok(ServiceWatcher {
            tap,
            kernel,
            clock,
            pairs,
            copies: Vec::new(),
            events: Vec::new(),
            unavailable,
            begin: read_ordered(plan.counter),
            begun: mono_now(),
            sender: None,
            looked_at: 0,
            is_full: false,
            plan,
        })
    }

    /// Reads what has happened since the last call, and returns the number of packets so far. To be called every few
    /// milliseconds, so that no buffer overflows.
    ///
    /// # Errors
    /// [`WatchError::Unreadable`].
    pub fn look(&mut self) -> Result<u64, WatchError> {
        self.pairs.push(self.clock.read_pair());
        let (events, copies) = (&mut self.events, &mut self.copies);
        if let Some(kernel) = &mut self.kernel {
            kernel
                .drain(|event| {
                    if events.len() < MOST_KEPT {
                        events.push(event);
                    }
                })
                .map_err(WatchError::Unreadable)?;
        }
        self.tap.drain_all(|copy| {
            if copies.len() < MOST_KEPT {
                copies.extend(Copy::of(&copy));
            }
        });
        self.seek_sender();
        self.is_full = self.events.len() >= MOST_KEPT || self.copies.len() >= MOST_KEPT;
        Ok(self.copies.len() as u64)
    }

    /// A client may have its socket only while it asks, but its thread is seen when it sends.
    fn seek_sender(&mut self) {
        let is_needed = self.plan.threads.is_empty() && self.sender.is_none() && self.looked_at < self.copies.len();
        if !is_needed || self.kernel.is_none() {
            return;
        }
        let latest = &self.events[self.events.len().saturating_sub(SOUGHT_IN)..];
        let events = matching::TimedEvents::of(latest, self.begin);
        let (copies, whose) = (self.mapped(&self.copies[self.looked_at..]), self.whose());
        self.sender = Matching::new(self.scale(), &events).sender(&copies, &whose);
        // A copy later than the last pair is mapped at the next look.
        self.looked_at += copies.len();
        if let (Some(sender), Some(kernel)) = (self.sender, &mut self.kernel) {
            kernel.add_calls(&program::siblings(sender), &mut self.unavailable);
        }
    }

    fn mapped(&self, copies: &[Copy]) -> Vec<(i64, Copy)> {
        let ticks = |copy: &Copy| Some((self.pairs.counter_at(copy.stamped)? - self.begin).raw());
        copies.iter().filter_map(|copy| Some((ticks(copy)?, copy.clone()))).collect()
    }

    fn scale(&self) -> matching::TickScale {
        matching::TickScale { ticks_per_us: 1e-6 * self.plan.period.as_hertz() }
    }

    fn whose(&self) -> matching::Whose {
        matching::Whose { port: self.plan.port, role: self.plan.role, loopback: kernel::loopback() }
    }

    /// Whether the memory for events is full and the watch has to end.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Joins events and copies, and returns the results.
    ///
    /// # Errors
    /// [`WatchError::Unreadable`].
    pub fn finish(mut self) -> Result<Watched, WatchError> {
        // The tap hands a block over only when it is full or some milliseconds old.
        std::thread::sleep(core::time::Duration::from_millis(40));
        self.look()?;
        self.pairs.push(self.clock.read_pair());
        if self.is_full {
            self.unavailable.push(format!(
                "the rest: {MOST_KEPT} events are all that is kept; watch for a shorter time, or name the device"
            ));
        }
        if self.kernel.as_ref().is_some_and(|kernel| !kernel.sees_calls()) {
            self.unavailable.push("the program's system calls: no program of this host was seen to send".to_owned());
        }
        let mut counts = WatchCounts {
            tap_dropped: self.tap.dropped().map_err(WatchError::Unreadable)?,
            events_lost: self.kernel.as_ref().map_or(0, Kernel::lost),
            ..WatchCounts::default()
        };
        let calls = self.kernel.as_ref().filter(|kernel| kernel.sees_calls()).map(|_| kernel::calls(&self.events));
        let copies = self.mapped(&self.copies);
        counts.tap_stamps_discarded = (self.copies.len() - copies.len()) as u64;
        let events = matching::TimedEvents::of(&self.events, self.begin);
        let matching = Matching::new(self.scale(), &events);
        let matching = if self.kernel.is_some() { matching } else { matching.untraced() };
        let found = matching.run(&copies, &self.whose(), counts);
        let ns_per_tick = 1e9 / self.plan.period.as_hertz();
        Ok(Watched {
            passages: found.passages,
            counts: found.counts,
            calls,
            sender: self.sender,
            turnarounds_ns: found.turnarounds.into_iter().map(|ticks| ticks as f64 * ns_per_tick).collect(),
            unavailable: self.unavailable,
            length_s: (mono_now() - self.begun).as_seconds(),
        })
    }
}
