//! One run: packets out at an even rate, their replies in, and every stamp that the host gives noted.
//!
//! Two threads: this one sends, receives and stamps in user space, and nothing else, so that its stamps are those of a program that has
//! only its packets in mind; the other one empties the tap and the kernel's tracing, and compares the clocks.

use super::agreement::{Methods, SecondStamps};
use super::collect::{Collected, Collector, Label};
use super::effect::Stamped;
use super::passages::{Passages, Placed};
use super::payload::{Direction, Identity, LONGEST, Lengths};
use super::site::{Site, Sites};
use crate::ffi;
use core::ops::ControlFlow;
use core::time::Duration;
use ffclock_counter::{CounterKind, read_bracketed, read_ordered};
use ffclock_sys::{Mapper, Received, SendId, SocketEvent, StampMode, StampedSocket, Transmitted, mono_now};
use ffclock_units::{Moment, Mono, Period, Span, Ticks};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use thiserror::Error;

/// The most packets of a run: their stamps are kept in memory, eight bytes for each site and packet.
pub const MOST_PACKETS: u64 = 10_000_000;
/// A reply that has not come by then is lost.
const PATIENCE: Span = Span::from_secs(1);
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
        "none of {sent} packets was answered by {to}{reason}; start `ffclock-lab probe echo` there, and let UDP port {port} pass",
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
    /// How many packets that nobody answers to send in one go afterwards, to see what a send costs.
    pub burst: u64,
}

/// Which stamps to take beside those of user space and of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The packet tap.
    pub tap: Active,
    /// The kernel's tracing, at these of [`Sites::TRACED`].
    pub tracing: Sites,
    /// eBPF programs, at these of [`Sites::PROGRAMMED`] and [`Site::XdpIn`].
    pub ebpf: Sites,
    /// Whether a program may sit at a function by fentry. Otherwise a kprobe does it, which costs more and which more kernels have.
    pub fentry: Active,
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
    /// Stamps by eBPF that the kernel could not keep.
    #[serde(default)]
    pub ebpf_lost: u64,
    /// Stamps by eBPF that belong to no packet of the run.
    #[serde(default)]
    pub ebpf_unplaced: u64,
    /// Stamps by eBPF that cannot be mapped to the counter.
    #[serde(default)]
    pub ebpf_discarded: u64,
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
    /// How long each send of the burst took.
    pub sends: Vec<Ticks>,
    /// Where the stamps come from.
    pub methods: Methods,
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
    let collector = Collector::start(plan, &talk.label()?, &mut unavailable)?;
    let begin = mono_now();
    let ended = talk.hold(watch).and_then(|()| talk.burst());
    // The tap hands a block over only when it is full or some milliseconds old.
    std::thread::sleep(Duration::from_millis(40));
    let collected = collector.finish()?;
    let sends = ended?;
    let mut outcome = Outcome {
        passages: talk.passages,
        counts: talk.counts,
        unavailable,
        length_s: (mono_now() - begin).as_seconds(),
        sends,
        methods: Methods::default(),
    };
    outcome.take_in(&collected, talk.run);
    outcome.compare(&collected, plan);
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

    /// Stamps by eBPF count where the tracing has none, and are compared with its stamps where it has.
    fn compare(&mut self, collected: &Collected, plan: &Plan) {
        let mut second = SecondStamps::default();
        for passage in &collected.passages {
            match collected.mono_pairs.counter_at(passage.stamped) {
                Some(counter) => second.place(passage, counter, &self.passages),
                None => self.counts.ebpf_discarded += 1,
            }
        }
        (self.counts.ebpf_lost, self.counts.ebpf_unplaced) = (collected.passages_lost, second.unplaced());
        self.methods.agreements = second.compare(&self.passages, plan.period);
        self.methods.stamped = Stamped {
            tracing: collected.events.iter().fold(Sites::NONE, |set, event| set.with(event.site)),
            ebpf: second.sites(),
            tap: [Site::TapOut, Site::TapIn]
                .into_iter()
                .fold(Sites::NONE, |set, site| if self.passages.count(site) > 0 { set.with(site) } else { set }),
        };
        second.fill(&mut self.passages);
        let wanted = plan.probes.tracing.contains(Site::CopyIn) || plan.probes.ebpf.contains(Site::CopyIn);
        if wanted && self.counts.received > 0 && self.passages.count(Site::CopyIn) == 0 {
            let reason =
                "no packet passed skb_copy_datagram_iovec (this kernel copies packets without fragments another way)";
            self.unavailable.push(format!("copy: {reason}"));
        }
        self.methods.mapping = collected.mono_pairs.error().filter(|_| !collected.passages.is_empty());
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

    /// By what the kernel knows this conversation.
    fn label(&self) -> Result<Label, ProbeError> {
        let failed = |error| ProbeError::Socket { what: "cannot tell the port".to_owned(), error };
        Ok(Label {
            run: self.run,
            own_port: self.socket.local_address().map_err(failed)?.port(),
            thread: ffclock_sys::thread_in_events(),
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

    /// Sends without a pause and without wanting anything back, by a socket that takes no stamps.
    fn burst(&self) -> Result<Vec<Ticks>, ProbeError> {
        if self.plan.burst == 0 {
            return Ok(Vec::new());
        }
        let failed = |error| ProbeError::Socket { what: format!("cannot send to {}", self.plan.to), error };
        let any = if self.plan.to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).and_then(|socket| socket.connect(self.plan.to).map(|()| socket));
        let socket = socket.map_err(failed)?;
        let (mut buffer, mut sends) = ([0; LONGEST], Vec::new());
        for number in 0..self.plan.burst {
            let bytes = Identity::write_unanswered(self.run, u64::MAX - number, &mut buffer, self.plan.lengths);
            let sent = read_bracketed(self.plan.counter, || socket.send(bytes));
            // What the queue does not take costs something else.
            if sent.value.is_ok() {
                sends.push(sent.width());
            }
        }
        Ok(sends)
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
