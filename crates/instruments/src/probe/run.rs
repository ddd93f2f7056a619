//! One run: packets out at an even rate, their replies in, and every stamp that the host gives noted.
//!
//! Two threads: this one sends, receives and stamps in user space, and nothing else, so that its stamps are those of a program that has
//! only its packets in mind; the other one empties the tap and the kernel's tracing, and compares the clocks.

use super::events::{Events, PacketEvent, Scope};
use super::pairs::PairLine;
use super::passages::{Passages, Placed};
use super::payload::{Direction, Identity, LONGEST, Lengths};
use super::site::Site;
use super::tap::{Tap, Tapped};
use crate::ffi;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use ffclock_counter::{CounterKind, read_ordered};
use ffclock_sys::{
    Mapper, PairReader, Received, SendId, SocketEvent, StampMode, StampedSocket, SystemPairs, Transmitted, mono_now,
};
use ffclock_units::{Moment, Mono, Period, Span};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use thiserror::Error;

/// The most packets of a run: their stamps are kept in memory, 88 bytes each.
pub const MOST_PACKETS: u64 = 10_000_000;
/// A reply that has not come by then is lost.
const PATIENCE: Span = Span::from_secs(1);
/// Between two looks at the tap and the tracing.
const COLLECT_EVERY: Duration = Duration::from_millis(4);
/// Packets that may be waiting for the kernel's stamp.
const MOST_IN_FLIGHT: usize = 4096;
/// Between two signs of life.
const REPORT_EVERY: Span = Span::from_millis(100);

/// Why nothing can be measured.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The socket cannot be made or used.
    #[error("{what}: {error}")]
    Socket {
        /// What was tried.
        what: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// Nobody answers.
    #[error(
        "none of {sent} packets was answered by {to}{reason}; start `ffclock probe echo` there, and let UDP port {port} pass",
        port = to.port()
    )]
    NoAnswer {
        /// How many packets were sent.
        sent: u64,
        /// Where to.
        to: SocketAddr,
        /// What the network said.
        reason: String,
    },
    /// The thread that collects the kernel's stamps ended.
    #[error("cannot collect the kernel's stamps: {0}")]
    Collector(String),
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The echo server.
    pub to: SocketAddr,
    /// The device on the way to it.
    pub device: String,
    /// How many packets.
    pub packets: u64,
    /// How many in a second.
    pub rate: f64,
    /// How long they are.
    pub lengths: Lengths,
    /// The counter that stamps.
    pub counter: CounterKind,
    /// Its nominal period.
    pub period: Period,
    /// Which kernel stamps to take.
    pub probes: Probes,
}

/// Which stamps to take beside those of user space and of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The packet tap.
    pub tap: Active,
    /// The kernel's tracing.
    pub tracing: Active,
}

/// Whether something is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// What happened to packets and stamps, all of it counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that left user space.
    pub sent: u64,
    /// Replies that reached it.
    pub received: u64,
    /// Requests without a reply.
    pub lost: u64,
    /// Replies that came more than once.
    pub duplicated: u64,
    /// Replies that came after one of a later request.
    pub reordered: u64,
    /// Packets to our port that are no reply to this run.
    pub foreign: u64,
    /// Errors that the network reported (ICMP).
    pub unreachable: u64,
    /// Requests that the kernel refused to take.
    pub refused: u64,
    /// Socket stamps that were discarded: the system clock was set, or they contradict the order of events.
    pub socket_stamps_discarded: u64,
    /// Packets that the tap could not hand over.
    pub tap_dropped: u64,
    /// Stamps of the tap that cannot be mapped to the counter.
    pub tap_stamps_discarded: u64,
    /// Events that the kernel's tracing lost.
    pub events_lost: u64,
    /// Events that belong to no packet of the run.
    pub events_unplaced: u64,
}

/// What was measured.
#[derive(Debug)]
pub struct Outcome {
    /// Every stamp.
    pub passages: Passages,
    /// What happened to packets and stamps.
    pub counts: Counts,
    /// What the host does not offer, each with the reason.
    pub unavailable: Vec<String>,
    /// How long it took [s].
    pub length_s: f64,
}

/// What the collecting thread brings home.
struct Collected {
    tapped: Vec<Tapped>,
    events: Vec<PacketEvent>,
    pairs: PairLine,
    tap_dropped: u64,
    events_lost: u64,
}

struct Collector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Collected>>,
}

impl Collector {
    fn start(plan: &Plan, unavailable: &mut Vec<String>) -> Result<Self, ProbeError> {
        let tap = open_tap(plan, unavailable);
        let events = open_events(plan, unavailable);
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, counter, period) = (Arc::clone(&stop), plan.counter, plan.period);
        let name = "ffclock-collect".to_owned();
        let work = move || collect(tap, events, SystemPairs::new(counter), (period, &seen));
        let thread = std::thread::Builder::new().name(name).spawn(work);
        let thread = thread.map_err(|error| ProbeError::Collector(error.to_string()))?;
        Ok(Collector { stop, thread })
    }

    fn finish(self) -> Result<Collected, ProbeError> {
        self.stop.store(true, Ordering::Release);
        let failed = |reason: String| ProbeError::Collector(reason);
        let collected = self.thread.join().map_err(|_| failed("the thread ended unexpectedly".to_owned()))?;
        collected.map_err(|error| failed(error.to_string()))
    }
}

fn open_tap(plan: &Plan, unavailable: &mut Vec<String>) -> Option<Tap> {
    if plan.probes.tap == Active::No {
        return None;
    }
    let tap = Tap::open(&plan.device, plan.to.port());
    tap.map_err(|error| unavailable.push(format!("packet tap on {}: {error} (needs CAP_NET_RAW)", plan.device))).ok()
}

fn open_events(plan: &Plan, unavailable: &mut Vec<String>) -> Option<Events> {
    if plan.probes.tracing == Active::No {
        return None;
    }
    let ip_header = if plan.to.is_ipv4() { 20 } else { 40 };
    let scope = Scope { device: &plan.device, ip_header, lengths: plan.lengths };
    match Events::open(plan.counter, &scope) {
        Ok((events, missing)) => {
            unavailable.extend(missing);
            Some(events)
        }
        Err(error) => {
            unavailable.push(format!("kernel tracing: {error}"));
            None
        }
    }
}

fn collect(
    mut tap: Option<Tap>,
    mut events: Option<Events>,
    mut clock: SystemPairs,
    (period, stop): (Period, &AtomicBool),
) -> io::Result<Collected> {
    let (mut tapped, mut seen, mut pairs) = (Vec::new(), Vec::new(), PairLine::new(period));
    loop {
        let is_last = stop.load(Ordering::Acquire);
        pairs.push(clock.read_pair());
        if let Some(events) = &mut events {
            events.drain(|event| seen.push(event))?;
        }
        if let Some(tap) = &mut tap {
            tap.drain(|packet| tapped.push(packet));
        }
        if is_last {
            break;
        }
        std::thread::sleep(COLLECT_EVERY);
    }
    // What was stamped just now lies before this pair.
    pairs.push(clock.read_pair());
    let tap_dropped = tap.as_mut().map_or(Ok(0), Tap::dropped)?;
    let events_lost = events.as_ref().map_or(0, Events::lost);
    Ok(Collected { tapped, events: seen, pairs, tap_dropped, events_lost })
}

/// Sends and receives. `watch` is told how many packets were sent, ten times a second; it breaks where somebody wants the run to end early.
///
/// # Errors
/// [`ProbeError`]; what the host merely does not offer is no error but named in the outcome.
pub fn run(plan: &Plan, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<Outcome, ProbeError> {
    let mut unavailable = Vec::new();
    let mut talk = Talk::open(plan)?;
    if talk.socket.mode() == StampMode::User {
        unavailable.push("socket stamps: the kernel refuses SO_TIMESTAMPING".to_owned());
    }
    let collector = Collector::start(plan, &mut unavailable)?;
    let begin = mono_now();
    let ended = talk.hold(watch);
    // The tap hands a block over only when it is full or some milliseconds old.
    std::thread::sleep(Duration::from_millis(40));
    let collected = collector.finish()?;
    ended?;
    let mut outcome = Outcome {
        passages: talk.passages,
        counts: talk.counts,
        unavailable,
        length_s: (mono_now() - begin).as_seconds(),
    };
    outcome.take_in(&collected, talk.run);
    if outcome.counts.received == 0 {
        let foreign = outcome.counts.foreign;
        let reason = match talk.reason {
            none if none.is_empty() && foreign > 0 => format!(" ({foreign} packets came that are no replies to them)"),
            known => known,
        };
        return Err(ProbeError::NoAnswer { sent: outcome.counts.sent, to: plan.to, reason });
    }
    Ok(outcome)
}

impl Outcome {
    fn take_in(&mut self, collected: &Collected, run: u64) {
        let counts = &mut self.counts;
        (counts.tap_dropped, counts.events_lost) = (collected.tap_dropped, collected.events_lost);
        counts.lost = counts.sent - counts.received;
        for packet in collected.tapped.iter().filter(|packet| packet.identity.run == run) {
            let site = match (packet.identity.direction, packet.passed) {
                (Direction::Outgoing, Direction::Outgoing) => Site::TapOut,
                (Direction::Incoming, Direction::Incoming) => Site::TapIn,
                // Where both ends are on this host, the tap sees each packet twice.
                _ => continue,
            };
            match collected.pairs.counter_at(packet.stamped) {
                Some(counter) => drop(self.passages.note(packet.identity.sequence, site, counter)),
                None => counts.tap_stamps_discarded += 1,
            }
        }
        for event in &collected.events {
            counts.events_unplaced += u64::from(self.passages.note_event(event) == Placed::Nowhere);
        }
    }
}

/// Whether a later packet may be taken: buffers empty, and a device or a route that went may come back.
fn is_passing(error: &io::Error) -> bool {
    let gone = [libc::ENOBUFS, libc::ENETUNREACH, libc::ENETDOWN, libc::EHOSTUNREACH, libc::ENODEV];
    error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

/// The conversation with the echo server.
struct Talk<'a> {
    plan: &'a Plan,
    run: u64,
    socket: StampedSocket,
    mapper: Mapper,
    passages: Passages,
    counts: Counts,
    in_flight: VecDeque<(SendId, u64)>,
    latest: Option<u64>,
    reason: String,
}

impl<'a> Talk<'a> {
    fn open(plan: &'a Plan) -> Result<Self, ProbeError> {
        let failed = |error| ProbeError::Socket { what: format!("cannot talk to {}", plan.to), error };
        let socket = StampedSocket::connect(plan.to, StampMode::Kernel).map_err(failed)?;
        let run = ffclock_sys::random_nonce().map_err(failed)?;
        Ok(Talk {
            plan,
            run,
            socket,
            mapper: Mapper::system(plan.counter, plan.period),
            passages: Passages::new(read_ordered(plan.counter)),
            counts: Counts::default(),
            in_flight: VecDeque::new(),
            latest: None,
            reason: String::new(),
        })
    }

    fn hold(&mut self, watch: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<(), ProbeError> {
        let begin = mono_now();
        let mut next_report = begin;
        for sequence in 0..self.plan.packets {
            self.receive_until(begin + Span::from_seconds(sequence as f64 / self.plan.rate))?;
            self.send(sequence)?;
            if mono_now() >= next_report {
                next_report = next_report + REPORT_EVERY;
                if watch(self.counts.sent).is_break() {
                    break;
                }
            }
        }
        let end = mono_now() + PATIENCE;
        while self.counts.received < self.counts.sent && mono_now() < end {
            self.receive_until(mono_now() + Span::from_millis(10))?;
        }
        Ok(())
    }

    fn send(&mut self, sequence: u64) -> Result<(), ProbeError> {
        let mut buffer = [0; LONGEST];
        let identity = Identity { run: self.run, sequence, direction: Direction::Outgoing };
        let bytes = identity.write(self.plan.lengths, &mut buffer);
        self.counts.sent += 1;
        match self.socket.send(bytes, &mut self.mapper) {
            Ok(sent) => {
                self.passages.send(sent.user.counter);
                if self.in_flight.len() == MOST_IN_FLIGHT {
                    self.in_flight.pop_front();
                }
                self.in_flight.push_back((sent.id, sequence));
                Ok(())
            }
            Err(error) if is_passing(&error) => {
                self.passages.send(read_ordered(self.plan.counter));
                self.counts.refused += 1;
                self.reason = format!(" ({error})");
                Ok(())
            }
            Err(error) => Err(ProbeError::Socket { what: format!("cannot send to {}", self.plan.to), error }),
        }
    }

    /// Takes in what comes until `deadline`.
    fn receive_until(&mut self, deadline: Moment<Mono>) -> Result<(), ProbeError> {
        loop {
            self.drain()?;
            let rest = deadline - mono_now();
            if rest <= Span::ZERO {
                return Ok(());
            }
            ffi::wait_readable(self.socket.as_fd(), rest)
                .map_err(|error| ProbeError::Socket { what: "cannot wait for packets".to_owned(), error })?;
        }
    }

    fn drain(&mut self) -> Result<(), ProbeError> {
        let mut buffer = [0; LONGEST + 1];
        loop {
            let event = self.socket.next_event(&mut buffer, &mut self.mapper);
            match event.map_err(|error| ProbeError::Socket { what: "cannot receive".to_owned(), error })? {
                None => return Ok(()),
                Some(SocketEvent::Transmitted(sent)) => self.take_sent(&sent),
                Some(SocketEvent::Received(received)) => {
                    self.take_reply(&received, buffer.get(..received.length).unwrap_or(&[]));
                }
                Some(SocketEvent::Unreachable(error)) => {
                    self.counts.unreachable += 1;
                    self.reason = format!(" ({})", error.kind);
                }
            }
        }
    }

    fn take_sent(&mut self, sent: &Transmitted) {
        let Some(place) = self.in_flight.iter().position(|(id, _)| *id == sent.id) else { return };
        let Some((_, sequence)) = self.in_flight.remove(place) else { return };
        match sent.stamp {
            Ok(stamp) => drop(self.passages.note(sequence, Site::SocketOut, stamp.counter)),
            Err(_) => self.counts.socket_stamps_discarded += 1,
        }
    }

    fn take_reply(&mut self, received: &Received, bytes: &[u8]) {
        let ours = |identity: &Identity| identity.run == self.run && identity.direction == Direction::Incoming;
        let Some(identity) = Identity::read(bytes).filter(ours) else {
            self.counts.foreign += 1;
            return;
        };
        let sequence = identity.sequence;
        match self.passages.note(sequence, Site::UserReceive, received.user.counter) {
            Placed::First => self.counts.received += 1,
            Placed::Again => {
                self.counts.duplicated += 1;
                return;
            }
            Placed::Nowhere => {
                self.counts.foreign += 1;
                return;
            }
        }
        self.counts.reordered += u64::from(self.latest > Some(sequence));
        self.latest = self.latest.max(Some(sequence));
        match received.kernel {
            Ok(stamp) => drop(self.passages.note(sequence, Site::SocketIn, stamp.counter)),
            Err(_) => self.counts.socket_stamps_discarded += 1,
        }
    }
}
